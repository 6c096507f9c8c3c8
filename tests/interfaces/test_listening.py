"""Where servers listen, how they end, and callers who do not wait for their answer."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest
from served import PATIENCE, client, place_of, served
from typer.testing import CliRunner

from builders import PATIENT, WORDS_ONLY, opened
from holdfast import AccessError, InputError, Memory, ServerError, Settings, StoreError
from holdfast.cli.main import app
from holdfast.server import listening
from holdfast.server.access import Tokens, token_file
from holdfast.server.http import HttpServer
from holdfast.server.limits import ServerSettings
from holdfast.server.listening import Listener, listen_on, serve


def environment():
    """Return what a server sees: the environment of a test, which hides what is set for the tests themselves."""
    return {**os.environ, **PATIENT, "HOLDFAST_EMBEDDING__EMBEDDER": "none"}


@contextlib.contextmanager
def running(*arguments):
    """Run `holdfast serve` as a user does; yields the process and where it says that it listens."""
    command = [sys.executable, "-m", "holdfast", "serve", *map(str, arguments)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = process.stdout.readline()
            assert said.startswith("listening at "), process.stderr.read()
            yield process, said.removeprefix("listening at ").strip()
        finally:
            process.kill()


def test_a_server_runs_until_it_is_told_to_end(tmp_path):
    with running("--db", tmp_path / "a.db", "--port", 0) as (process, address):
        with client(address) as http:
            assert http.post("/v1/units", json={"content": "it rains", "user": "ana"}).status_code == 200
        with pytest.raises(ServerError, match=f"served by process {process.pid}"):
            serve(str(tmp_path / "a.db"), Settings(), ServerSettings(port=0))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    with Memory.open(tmp_path / "a.db") as memory:
        assert [unit.text for unit in memory.list(user="ana")] == ["it rains"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_however_a_server_is_told_to_end_it_closes_its_store_and_its_socket(tmp_path, number, status):
    with running("--db", tmp_path / "a.db", "--unix", tmp_path / "s") as (process, address):
        with client(address) as http:
            said = [f"the lamp {n} is lit" for n in range(300)]
            assert http.post("/v1/units", json={"content": said, "user": "ana"}).status_code == 200
            assert http.post("/v1/search", json={"query": "lamp", "user": "ana"}).json()["hits"]
        process.send_signal(number)
        assert process.wait(PATIENCE) == status
    assert {path.name for path in tmp_path.iterdir()} == {"a.db", "a.db.serving"}


def test_tokens_are_made_listed_and_revoked_from_the_command_line(tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(app, ["token", *arguments, "--db", str(tmp_path / "a.db"), "--json"])
        return json.loads(done.stdout)

    made = run("add", "laptop", "--tenant", "acme", "--user", "ana")
    assert Tokens(token_file(tmp_path / "a.db")).find(made["token"]).user == "ana"
    assert run("list") == [{"name": "laptop", "tenant": "acme", "user": "ana"}]
    assert run("revoke", "laptop") == {"name": "laptop"}
    assert run("list") == []


def test_beyond_this_machine_a_server_needs_tokens(tmp_path):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com"):
        with pytest.raises(AccessError, match="make a token first"):
            serve(str(tmp_path / "a.db"), Settings(), ServerSettings(host=host))
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_one_clear_error(tmp_path):
    with served() as address:
        _, port = place_of(address)
        with pytest.raises(ServerError, match=f"port {port}: something else has it; choose another with --port"):
            serve(str(tmp_path / "a.db"), Settings(), ServerSettings(port=port))
    with pytest.raises(InputError, match="invalid port 70000"):
        serve(str(tmp_path / "a.db"), Settings(), ServerSettings(port=70_000))


def test_a_socket_file_serves_its_owner_alone_and_is_gone_afterwards(tmp_path):
    path = tmp_path / "s"
    with served(unix=str(path)) as address, client(address) as http:
        assert address == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert http.get("/v1/stats?user=ana", headers={"Host": "whatever"}).status_code == 200
        with pytest.raises(ServerError, match="a server listens at"), listen_on(ServerSettings(unix=str(path))):
            pass
        assert http.get("/health").status_code == 200
    assert not path.exists()


def test_a_socket_file_that_was_left_behind_is_replaced_and_another_file_is_not(tmp_path):
    stale, other = tmp_path / "stale", tmp_path / "other"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    other.write_text("mine")
    with served(unix=str(stale)) as address, client(address) as http:
        assert http.get("/health").status_code == 200
    with pytest.raises(InputError, match="is no socket"), listen_on(ServerSettings(unix=str(other))):
        pass
    assert other.read_text() == "mine"
    with (
        pytest.raises(InputError, match="cannot listen"),
        listen_on(ServerSettings(unix=str(tmp_path / ("x" * 200)))),
    ):
        pass


def test_a_link_to_a_store_and_a_folder_that_is_not_there_are_told_in_one_line(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    with running("--db", tmp_path / "a.db", "--port", 0), pytest.raises(ServerError, match="is served by process"):
        serve(str(tmp_path / "link.db"), Settings(), ServerSettings(port=0), pytest.fail)
    with pytest.raises(StoreError, match=r"cannot be served.*check --db"):
        serve(str(tmp_path / "none" / "a.db"), Settings(), ServerSettings(port=0))
    with pytest.raises(StoreError, match=r"tokens cannot be stored.*check --db"):
        Tokens(token_file(tmp_path / "none" / "a.db")).add("a", "acme")


@pytest.mark.parametrize("limit", [{"_HEAD_SECONDS": 0.01}, {"_HEAD_BYTES": 1_000}])
@pytest.mark.parametrize("before", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_caller_who_never_says_what_is_wanted_is_sent_away(monkeypatch, limit, before):
    for name, value in limit.items():
        monkeypatch.setattr(listening, name, value)
    with served() as address, socket.create_connection(place_of(address), PATIENCE) as caller:
        caller.sendall(before)
        assert not before or caller.recv(99).startswith(b"HTTP/1.1 200 ")
        caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        with pytest.raises(ConnectionError):
            caller.sendall(b"a" * 50_000_000)


def test_a_head_that_is_too_long_is_refused_also_in_one_piece():
    with served() as address, socket.create_connection(place_of(address), PATIENCE) as caller:
        caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 120_000 + b"\r\n\r\n")
        assert caller.recv(99).startswith(b"HTTP/1.1 400 ")


def test_of_connections_that_show_no_token_the_oldest_goes_and_callers_with_one_stay(tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    token = tokens.add("ana", "acme")
    with (
        served(tokens=tokens, strangers=3) as address,
        client(address, token) as http,
        contextlib.ExitStack() as stack,
    ):
        assert http.get("/v1/stats?user=ana").status_code == 200
        known = [one.get_extra_info("socket").getsockname() for one in _streams(http)]
        silent = [stack.enter_context(socket.create_connection(place_of(address), PATIENCE)) for _ in range(4)]
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(9) == b""
        silent[3].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[3].recv(99).startswith(b"HTTP/1.1 200 ")
        assert http.get("/v1/stats?user=ana").status_code == 200
        assert [one.get_extra_info("socket").getsockname() for one in _streams(http)] == known


def _streams(http):
    """Return the connections that a client keeps."""
    return [one._connection._network_stream for one in http._transport._pool.connections]


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/forget"])
def test_a_form_is_small_and_one_that_is_larger_is_refused_before_it_is_read(tmp_path, path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    tokens.add("ana", "acme")
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n".encode()
    with served(tokens=tokens) as address:
        for rest in (
            b"Content-Length: 1000000\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n11170\r\n" + b"a" * 70_000,
        ):
            with socket.create_connection(place_of(address), PATIENCE) as caller:
                caller.sendall(head + rest)
                assert caller.recv(99).startswith(b"HTTP/1.1 413 ")


def test_a_caller_who_comes_while_the_server_ends_is_sent_away(monkeypatch):
    accepted = []

    class Noticed(listening._Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            accepted.append(self)

    async def run():
        how = ServerSettings(port=0)
        with opened() as memory, listen_on(how) as own:
            listener = Listener(HttpServer(memory, how), own, lambda _: None)
            serving = asyncio.ensure_future(listener.serve([own]))
            while not listener.started:
                await asyncio.sleep(0)
            with socket.create_connection(own.getsockname(), PATIENCE):
                while not accepted:  # and the server does not know of it before the next turn of the loop
                    await asyncio.sleep(0)
                assert not listener.server_state.connections
                listener.config.timeout_graceful_shutdown = 1
                await listener.shutdown([own])
                assert not listener.server_state.connections
            listener.should_exit = True
            await serving

    monkeypatch.setattr(listening, "_Connection", Noticed)
    asyncio.run(run())


class Paused(Memory):
    """A memory that begins to write, and goes on when it is let."""

    def pause(self):
        self.begun, self.gate, self.done = threading.Event(), threading.Event(), threading.Event()
        return self

    def remember(self, content, **options):
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        written = super().remember(content, **options)
        self.done.set()
        return written


@pytest.fixture
def paused(tmp_path):
    with Paused.open(tmp_path / "a.db", settings=Settings(embedding=WORDS_ONLY)) as memory:
        yield memory.pause()


def post(body):
    head = (
        f"POST /v1/units HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return f"{head}\r\n\r\n{body}".encode()


BODY = json.dumps({"content": "it rains", "user": "ana"})


def test_a_write_whose_caller_went_away_is_finished(paused):
    with served(paused) as address:
        with socket.create_connection(place_of(address), PATIENCE) as caller:
            caller.sendall(post(BODY))
            assert paused.begun.wait(PATIENCE)
        paused.gate.set()
        assert paused.done.wait(PATIENCE)
        with client(address) as http:
            assert http.get("/v1/stats?user=ana").json()["units"] == 1


def test_a_caller_who_goes_away_within_the_body_writes_nothing(paused):
    with served(paused) as address:
        with socket.create_connection(place_of(address), PATIENCE) as caller:
            caller.sendall(post(BODY)[:-9])
        with client(address) as http:
            assert http.get("/v1/stats?user=ana").json()["units"] == 0
    assert not paused.begun.is_set()


def test_a_server_that_ends_finishes_and_answers_what_it_accepted(paused):
    with served(paused) as address:
        caller = socket.create_connection(place_of(address), PATIENCE)
        caller.sendall(post(BODY))
        assert paused.begun.wait(PATIENCE)
        threading.Timer(0, paused.gate.set).start()
    with caller:
        assert caller.recv(99).startswith(b"HTTP/1.1 200 ")
    assert [unit.text for unit in paused.list(user="ana")] == ["it rains"]


def test_a_slow_reader_holds_nobody_up():
    with opened() as memory:
        memory.remember(["a long line of words " * 500 for _ in range(60)], user="ana", session="s")
        with (
            served(memory, work=1) as address,
            client(address) as http,
            socket.create_connection(place_of(address), PATIENCE) as slow,
        ):
            slow.sendall(b"GET /v1/units?user=ana&limit=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert slow.recv(10)
            assert http.get("/v1/stats?user=ana").status_code == 200
