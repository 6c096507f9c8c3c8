"""A memory at an address: nothing is sent early, a lost answer costs no write, and a server that is back is found."""

import contextlib
import gzip
import io
import json
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from served import place_of, served
from typer.testing import CliRunner

import holdfast.client.remote
from builders import opened
from holdfast import AccessError, ClosedStoreError, InputError, Memory, MissingExtraError, NotFoundError, ServerError
from holdfast.cli.main import app
from holdfast.client.remote import RemoteMemory
from holdfast.server.access import Tokens
from holdfast.testing.contracts import HashEmbedder
from holdfast.wire import problem_of

ALIVE = {"status": "alive", "version": "0"}
NOBODY = "http://127.0.0.1:9"  # the port that discards


class Time:
    """A clock that only waiting moves; `waits` are those asked for."""

    def __init__(self, during=lambda: None):
        self.now, self.waits, self._during = 0.0, [], during

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now += seconds
        self._during()


def client(address, time=None, **options):
    time = time or Time()
    return RemoteMemory(address, clock=time, wait=time.wait, **options)


def scripted(*answers, health=(200, ALIVE)):
    """Return a transport that gives these answers in turn, the last one for ever, and the requests it saw."""
    seen, left = [], [*answers]

    def answer(request):
        if request.url.path.endswith("/health"):
            return httpx.Response(health[0], json=health[1])
        seen.append(request)
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found

    return httpx.MockTransport(answer), seen


@pytest.fixture
def memory():
    with opened(embedder=HashEmbedder(64)) as memory:
        memory.remember("the kettle is copper", user="ana", id="kettle")
        yield memory


# ---------------------------------------------------------------------------------------------------- opening


def test_nothing_is_sent_before_the_first_call():
    with Memory.open(NOBODY) as remote:
        assert isinstance(remote, RemoteMemory)
        assert (remote.state, remote.address) == ("new", NOBODY)


def test_a_socket_file_is_an_address(memory, tmp_path):
    with served(memory, unix=str(tmp_path / "s")) as address, Memory.open(address) as remote:
        assert address.startswith("unix:/")
        assert remote.get("kettle", user="ana") == memory.get("kettle", user="ana")


@pytest.mark.parametrize(
    "address",
    ["http://", "https://:80", "http://host:0", "http://host:99999", "http://[::1", "http://a b", "http://ü.de",
     "http://host/?x=1", "unix:", "unix: ", "http://me:pw@host"],
)  # fmt: skip
def test_what_is_no_address_is_refused_at_once(address):
    with pytest.raises(InputError) as refused:
        Memory.open(address)
    assert "pw" not in str(refused.value)


def test_values_of_a_memory_of_ones_own_are_refused_with_an_address_and_a_token_without_one():
    with pytest.raises(InputError, match=r"embedder cannot be given with http://host: it belongs to the server"):
        Memory.open("http://host", embedder=HashEmbedder())
    with pytest.raises(InputError, match="token is for the address of a server, not for 'store'"):
        Memory.open("store", token="secret")
    with pytest.raises(InputError, match="not shown") as refused:
        Memory.open("http://host", token="sécret")
    assert "cret" not in str(refused.value)


def test_without_the_extra_the_error_has_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "holdfast.client.remote")
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[remote\]'"):
        Memory.open(NOBODY)


# --------------------------------------------------------------------------------------------- trying and waiting


def test_a_server_that_is_not_there_is_tried_with_growing_waits_then_refused_at_once_until_it_is_back(memory, caplog):
    with served(memory) as address:
        time = Time()
    with client(address, time) as remote:
        with pytest.raises(ServerError, match=r"cannot be reached: .*; start it with `holdfast serve`"):
            remote.get("kettle", user="ana")
        assert remote.state == "down"
        assert 8.0 < sum(time.waits) <= 10.0
        assert all(0.025 <= first <= 0.05 for first in time.waits[:1])
        assert max(time.waits) <= 2.0
        assert time.waits[4] > time.waits[0]
        waited = len(time.waits)
        for _ in range(3):
            with pytest.raises(ServerError, match="cannot be reached"):
                remote.get("kettle", user="ana")
        assert len(time.waits) == waited
        assert [record.levelno for record in caplog.records] == [logging.WARNING]  # said once
        with served(memory, port=place_of(address)[1]):
            assert remote.get("kettle", user="ana").id == "kettle"
            assert remote.state == "up"


def test_a_server_that_is_started_again_meanwhile_answers_the_call(memory):
    with contextlib.ExitStack() as stack:
        with served(memory) as address:
            again = served(memory, port=place_of(address)[1])
            time = Time(lambda: len(time.waits) == 1 and stack.enter_context(again))
            remote = stack.enter_context(client(address, time))
            remote.get("kettle", user="ana")
        assert remote.remember("the lamp is blue", user="ana")[0].status == "added"
        assert remote.state == "up"


class Losing(httpx.HTTPTransport):
    """Loses the answers to writes, as many as `lost`, after the server has given them."""

    def __init__(self, lost):
        super().__init__()
        self._lost, self.keys = lost, []

    def handle_request(self, request):
        answer = super().handle_request(request)
        if "idempotency-key" in request.headers:
            self.keys.append(request.headers["idempotency-key"])
            if self._lost > 0:
                self._lost -= 1
                answer.read()
                raise httpx.ReadError("connection lost")
        return answer


def test_a_write_whose_answer_is_lost_happens_once_and_its_answer_comes_again(memory):
    transport = Losing(2)
    with served(memory) as address, client(address, transport=transport) as remote:
        written = remote.update("kettle", user="ana", text="the kettle is brass")
        assert written.version == 2
        assert len(transport.keys) == 3
        assert len({*transport.keys}) == 1
        assert len(memory.history("kettle", user="ana")) == 2
        assert remote.update("kettle", user="ana", text="the kettle is tin").version == 3
        assert len({*transport.keys}) == 2


def test_a_busy_server_is_asked_again_when_it_says_and_says_so_itself_in_the_end():
    busy = httpx.Response(503, json=problem_of(ServerError("server busy")), headers={"Retry-After": "3"})
    done = httpx.Response(200, json={"units": 1})
    time = Time()
    transport, seen = scripted(busy, busy, httpx.Response(200, json=[]))
    with client("http://host", time, transport=transport) as remote:
        assert remote.list(user="ana") == []
        assert time.waits == [3.0, 3.0]
    transport, seen = scripted(busy, done)
    with client("http://host", patience=2.0, transport=transport) as remote:
        with pytest.raises(ServerError, match=r"^server busy$"):
            remote.list(user="ana")
        assert len(seen) == 1
        assert remote.state != "down"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            httpx.Response(200, text="<html>hello</html>"),
            "answers with HTTP 200 and '<html>hello</html>', which is not",
        ),
        (httpx.Response(200, json={"hits": 3}), "answers as another version of Holdfast does"),
        (httpx.Response(302, headers={"Location": "http://elsewhere"}), "answers with HTTP 302"),
        (httpx.Response(500, text="oops"), "answers with HTTP 500 and 'oops'; check its log"),
        (httpx.Response(502, text="bad gateway"), "answers with HTTP 502"),
        (
            httpx.Response(
                503, headers={"Retry-After": b"\xb2"}, json=problem_of(ServerError("http://host is busy"))
            ),
            "is busy",
        ),
        (httpx.ReadTimeout("slow"), "gave no answer in time"),
    ],
)
def test_an_answer_that_is_none_is_a_server_error_that_says_what_came(answer, said):
    transport, _ = scripted(answer)
    with client("http://host", transport=transport) as remote, pytest.raises(ServerError, match=said) as error:
        remote.list(user="ana")
    assert "http://host" in str(error.value)


def test_another_program_at_the_address_is_told_apart():
    for health in ((200, {"status": "ok"}), (200, ["alive"]), (404, {"detail": "Not Found"})):
        transport, seen = scripted(httpx.Response(200, json=[]), health=health)
        with client("http://host", transport=transport) as remote, pytest.raises(ServerError):
            remote.list(user="ana")
        assert seen == []  # nobody's words went there


def test_an_error_of_the_memory_is_raised_at_once(memory):
    time = Time()
    with served(memory) as address, client(address, time) as remote:
        with pytest.raises(NotFoundError, match="there is no unit 'nobody'"):
            remote.get("nobody", user="ana")
        assert (remote.state, time.waits) == ("up", [])


# ------------------------------------------------------------------------------------------------------- tokens


def test_a_token_opens_what_it_is_for(memory, tmp_path):
    tokens = Tokens(tmp_path / "tokens")
    secret = tokens.add("host", "local", "ana")
    with served(memory, tokens) as address:
        with Memory.open(address, token=secret) as remote:
            assert remote.get("kettle", user="ana").id == "kettle"
            with pytest.raises(AccessError, match="token not valid for user 'ben'"):
                remote.list(user="ben")
        for wrong in (None, "hf_wrong"):
            with client(address, token=wrong) as remote, pytest.raises(AccessError):
                remote.list(user="ana")


# --------------------------------------------------------------------------------------------- what stays at home


def test_what_only_a_memory_of_ones_own_has_is_refused_with_the_reason(memory, tmp_path):
    with client(NOBODY) as remote:
        for call in (
            lambda: remote.backup(tmp_path / "copy.db"),
            lambda: remote.ingest_folder(tmp_path, user="ana"),
            lambda: remote.ingest(Path("notes.md"), user="ana"),
            lambda: remote.assemble("kettle", user="ana", counter=len),
            lambda: remote.settings,
            lambda: remote.store,
        ):
            with pytest.raises(InputError):
                call()
        with pytest.raises(TypeError, match=r"Memory\.list\(\) got an unexpected keyword argument 'usr'"):
            remote.list(usr="ana", user="ana")


def test_closed_or_forked_it_is_refused(monkeypatch):
    remote = client(NOBODY)
    remote.close()
    remote.close()
    with pytest.raises(ClosedStoreError, match="this memory is closed; open it again"):
        remote.list(user="ana")
    remote = client(NOBODY)
    monkeypatch.setattr("holdfast.client.remote.os.getpid", lambda: -1)
    with pytest.raises(ClosedStoreError, match="open it again after a fork"):
        remote.list(user="ana")
    monkeypatch.undo()
    remote.close()


# ----------------------------------------------------------------------------------------------------- progress


def test_progress_of_long_work_is_heard_and_its_answer_is_the_same(memory):
    with served(memory) as address, client(address) as remote:
        heard, here = [], []
        assert remote.compact(user="ana", progress=lambda *far: heard.append(far)) == memory.compact(
            user="ana", progress=lambda *far: here.append(far)
        )
        assert heard[-1] == here[-1]
        assert {*heard} <= {*here}
        with pytest.raises(NotFoundError, match="nobody"):
            remote.forget(user="ana", ids=["nobody"], progress=heard.append)
        assert remote.forget(user="ana", all=True, progress=heard.append).complete


def test_a_stream_that_breaks_is_not_begun_again():
    whole = b'event: progress\ndata: {"done": 0, "of": 2}\n\nevent: result\ndata: []\n\n'
    for cut in (*range(0, len(whole) - 1, 3), len(whole) - 1):
        transport, seen = scripted(httpx.Response(200, content=whole[:cut]))
        with client("http://host", transport=transport) as remote:
            heard = []
            with pytest.raises(ServerError, match="the work may be done, check before you retry"):
                remote.compact(user="ana", progress=lambda *far: heard.append(far))  # noqa: B023 - called at once
            assert (heard, len(seen)) == ([(0, 2)] * (cut >= whole.index(b"\n\n") + 2), 1)
    transport, seen = scripted(httpx.ConnectError("nobody there"), httpx.Response(200, content=whole))
    with client("http://host", transport=transport) as remote:
        assert remote.compact(user="ana", progress=lambda *_: None) == []
        assert len(seen) == 2  # what was not sent can be


@pytest.mark.parametrize("data", ["{", "5", "[" * 9_999])
@pytest.mark.parametrize("name", ["progress", "problem", "greeting"])
def test_a_stream_of_something_else_is_a_server_error(name, data):
    transport, _ = scripted(httpx.Response(200, content=f"event: {name}\ndata: {data}\n\n".encode()))
    with client("http://host", transport=transport) as remote, pytest.raises(ServerError, match="no event of Holdf"):
        remote.compact(user="ana", progress=lambda *_: None)


@pytest.mark.parametrize("told", [{}, {"done": 1}, {"of": 1, "done": 2}, {"done": 1, "of": 2, "more": 3}])
def test_a_report_of_other_numbers_than_the_verbs_is_a_server_error(told):
    transport, _ = scripted(httpx.Response(200, content=f"event: progress\ndata: {json.dumps(told)}\n\n".encode()))
    with client("http://host", transport=transport) as remote, pytest.raises(ServerError, match="no event of Holdf"):
        remote.compact(user="ana", progress=lambda _done, _of: None)


# ------------------------------------------------------------------------------------------------- evil servers


@contextlib.contextmanager
def evil(head, piece, *, health=ALIVE):
    """Answer questions for health well, and any other with a head and one piece again and again."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path == "/health":
                body = json.dumps(health).encode()
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                return
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.write(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode())
                while True:
                    self.wfile.write(piece)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


REPORT = json.dumps({"format": "jsonl", "units": 1, "versions": 1, "documents": 0, "bytes": 9, "digest": "x"})
EVENT = b'event: progress\ndata: {"done": 1, "of": 2}\n\n'


@pytest.mark.parametrize(
    ("head", "piece", "ask"),
    [
        ("", b"[" * 65_536, lambda remote: remote.list(user="ana")),
        ("", EVENT * 999, lambda remote: remote.compact(user="ana", progress=lambda *_: None)),
        ("", b"data: " + b"x" * 65_536, lambda remote: remote.compact(user="ana", progress=lambda *_: None)),
        ("", b": working\n\n" * 999, lambda remote: remote.compact(user="ana", progress=lambda *_: None)),
        (f"Holdfast-Exported: {REPORT}\r\n", b"x" * 65_536, lambda remote: remote.export(io.BytesIO(), user="ana")),
    ],
    ids=["answer", "events", "line", "silence", "export"],
)
def test_an_answer_without_end_is_ended(monkeypatch, head, piece, ask):
    monkeypatch.setattr(holdfast.client.remote, "_MOST_BYTES", 1_000_000)
    with evil(head, piece) as address, client(address) as remote, pytest.raises(ServerError, match="sends more than"):
        ask(remote)


@pytest.mark.parametrize("head", ["", "Content-Type: text/event-stream\r\n"])
def test_an_answer_that_only_drips_is_ended(head):
    time = Time()

    def ask(remote):
        if not head:
            return remote.list(user="ana")
        return remote.compact(user="ana", progress=lambda *_: None)

    class Drips(httpx.SyncByteStream):
        def __iter__(self):
            for _ in range(10_000_000):  # a test that fails ends, too
                time.now += 50.0
                yield b" "

    transport, _ = scripted(httpx.Response(200, stream=Drips()))
    with client("http://host", time, transport=transport) as remote, pytest.raises(ServerError, match="too slowly"):
        ask(remote)
    assert time.now < 100_000


def test_what_is_compressed_unasked_is_refused_unread():
    body = gzip.compress(b" " * 10_000_000)
    head, told = f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n", "sends 'gzip', which was not asked for"
    with evil(head, body) as address, client(address) as remote, pytest.raises(ServerError, match=told):
        remote.list(user="ana")


@pytest.mark.parametrize(
    "told", ["[[[", '"x"', "{}", REPORT.replace("9", '"9"'), REPORT.replace("9", "1e999"), "\xe9"]
)
def test_an_export_whose_header_is_wrong_is_a_server_error_and_leaves_no_file(tmp_path, told):
    head = f"Holdfast-Exported: {told}\r\nContent-Length: 9\r\n"
    with evil(head, b"x" * 9) as address, client(address) as remote, pytest.raises(ServerError):
        remote.export(tmp_path / "a.jsonl", user="ana")
    assert not (tmp_path / "a.jsonl").exists()


# ------------------------------------------------------------------------------------------------------- threads


def test_threads_share_it(memory):
    with served(memory) as address, Memory.open(address) as remote, ThreadPoolExecutor(8) as pool:
        written = [*pool.map(lambda i: remote.remember(f"lamp {i}", user="ana", id=f"l{i}")[0].status, range(24))]
        assert written == ["added"] * 24
        assert threading.active_count() < 64
        assert memory.stats(user="ana").units == 25


def test_a_request_carries_the_token_and_a_write_a_key():
    transport, seen = scripted(httpx.Response(200, json=[]))
    with client("http://host/base", transport=transport, token="hf_secret") as remote:
        remote.remember([], user="ana")
        remote.list(user="ana")
    written, listed = seen
    assert (written.url.path, json.loads(written.content)) == ("/base/v1/units", {"content": [], "user": "ana"})
    assert written.headers["authorization"] == "Bearer hf_secret"
    assert "idempotency-key" in written.headers
    assert "idempotency-key" not in listed.headers


def test_the_command_line_uses_a_server_with_the_token_of_the_environment(tmp_path, monkeypatch):
    tokens = Tokens(tmp_path / "tokens")
    monkeypatch.setenv("HOLDFAST_TOKEN", tokens.add("ana's", "default", "ana"))
    note = tmp_path / "ferry.md"
    note.write_text("# Ferries\n\nThe blue ferry leaves at nine.\n")
    with served(tokens=tokens) as address:

        def run(*arguments):
            done = CliRunner().invoke(app, [*arguments, "--user", "ana", "--db", address, "--json"])
            assert done.exit_code == 0, done.output
            return json.loads(done.stdout)

        assert [one["status"] for one in run("remember", "the tram leaves at ten")] == ["added"]
        assert run("ingest", str(note))[0]["id"].startswith("ferry.md#")
        [first, *_] = run("search", "when does the ferry leave?")["hits"]
        assert first["unit"]["text"] == "The blue ferry leaves at nine."
        monkeypatch.setenv("HOLDFAST_TOKEN", "hf_wrong")
        with pytest.raises(AccessError, match="unknown or revoked token"):
            CliRunner().invoke(app, ["stats", "--db", address], catch_exceptions=False)


def test_a_server_of_a_server_is_refused():
    with pytest.raises(InputError, match="is served already"):
        CliRunner().invoke(app, ["serve", "--db", NOBODY], catch_exceptions=False)
