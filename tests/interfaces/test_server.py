"""The server as a program meets it: every verb, its errors, and what is refused before it reaches the memory."""

import asyncio
import contextlib
import json
import re
import socket
import threading
from functools import partial

import pytest
from served import PATIENCE, client, place_of, served

from builders import WORDS_ONLY, opened, without_pool
from holdfast import Memory, Settings
from holdfast.errors import BudgetError, InputError, NotFoundError
from holdfast.server.access import Tokens, token_file
from holdfast.server.limits import IdempotencyKeys, Job, Rate, Refused, ServerSettings, Work
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import VERBS, write_call
from holdfast.wire import decode, error_of


@pytest.fixture(scope="module")
def memory():
    with opened(embedder=HashEmbedder()) as memory:
        yield memory


@pytest.fixture(scope="module")
def http(memory):
    with served(memory) as address, client(address) as http:
        yield http


def ask(http, verb, detail="full", **arguments):
    """Call a verb over HTTP as a client would; return what an embedded memory returns."""
    verb = VERBS[verb]
    call = write_call(verb, arguments)
    query = call.query | ({"detail": detail} if verb.brief else {})
    headers = {"Content-Type": call.media_type} if call.media_type else {}
    answer = http.request(call.method, call.path, params=query, content=call.body, headers=headers)
    if answer.status_code != 200:
        assert answer.headers["content-type"] == "application/problem+json"
        raise error_of(answer.json())
    return decode(verb.result, answer.json())


def test_every_verb_answers_as_the_memory_does(http, memory):
    owner = {"user": "every"}
    turns = [{"role": "user", "content": f"the ferry {n} leaves for Porto at {n}"} for n in range(24)]
    written = ask(http, "remember", content=turns, session="s", **owner)
    assert [one.id for one in memory.list(limit=99, order="oldest", **owner)] == [one.id for one in written]
    first, second = written[0].id, written[1].id
    document = ask(http, "ingest", source="# Ferries\n\nThe ferry is blue.\n", name="a.md", **owner)
    asked = {"query": "when does the ferry leave?", "session": "s", **owner}
    for name, arguments in {
        "get": {"id": first}, "history": {"id": first}, "list": {"limit": None, "order": "oldest"}, "stats": {},
        "facts": {}, "about": {"topic": "Home"},
        "widen": {"id": document[0].id}, "search": {**asked, "explain": True, "zone": "Asia/Tokyo"},
        "why": {**asked, "id": second},
    }.items():  # fmt: skip
        assert ask(http, name, **owner | arguments) == without_pool(getattr(memory, name)(**owner | arguments)), name
    context = ask(http, "assemble", **asked, track_access=False)
    assert context == without_pool(memory.assemble(**asked, track_access=False))
    assert context.explain() == memory.assemble(**asked, track_access=False).explain()
    assert ask(http, "update", id=first, metadata={"seen": True}, **owner) == memory.get(first, **owner)
    assert ask(http, "supersede", id=first, by=second, **owner).superseded_by == second
    assert ask(http, "reinstate", id=first, **owner).superseded_by is None
    [compaction] = ask(http, "compact", session="s", **owner)
    assert ask(http, "compact", session="s", **owner) == memory.compact(session="s", **owner)
    again = http.post("/v1/sessions/s/compact", json=owner)
    assert decode(VERBS["compact"].result, again.json()) == memory.compact(session="s", **owner)
    for summary in compaction.summaries:
        assert ask(http, "expand", id=summary, **owner) == memory.expand(summary, **owner)
    assert ask(http, "reembed") == 0
    planned = memory.forget(ids=[second], dry_run=True, **owner)
    assert ask(http, "forget", ids=[second], dry_run=True, **owner).units == tuple(planned.units)
    assert ask(http, "forget", ids=[second], **owner).complete
    with pytest.raises(NotFoundError):
        memory.get(second, **owner)


def test_a_file_of_bytes_is_taken_in_and_other_programs_files_are_not(http, memory):
    body = {"user": "bytes", "name": "b.html"}
    answer = http.post("/v1/documents", params=body, content="<h1>Café</h1><p>It is open.</p>".encode())
    assert [row["status"] for row in answer.json()] == ["added"]
    assert memory.list(user="bytes")[0].text == "It is open."
    with pytest.raises(InputError, match="no text by its name"):
        ask(http, "ingest", source=b"PK", user="bytes", name="b.odt")
    with pytest.raises(InputError, match=r"no whole \.docx file"):
        ask(http, "ingest", source=b"PK", user="bytes", name="b.docx")


@pytest.mark.parametrize("unit_id", ["a/b", "..", ".", "a?b#c", "%2F", "naïve 🌧", "a b"])
def test_any_id_is_found_under_its_path(http, memory, unit_id):
    memory.remember("it is here", user="paths", id=unit_id)
    assert ask(http, "get", id=unit_id, user="paths").id == unit_id
    assert len(ask(http, "history", id=unit_id, user="paths")) == 1


def test_errors_come_back_as_the_same_class_and_message(http, memory):
    wrong = {
        "get": {"id": "nobody"}, "search": {"query": "x", "filters": {"a": {"near": 1}}},
        "assemble": {"query": "x", "budget": -1}, "why": {"query": "x", "id": "nobody"},
        "remember": {"content": ["fine", ""]}, "forget": {}, "update": {"id": "nobody", "ttl": -1},
    }  # fmt: skip
    for name, arguments in wrong.items():
        with pytest.raises((InputError, NotFoundError, BudgetError)) as embedded:
            getattr(memory, name)(**arguments, user="ana")
        with pytest.raises(type(embedded.value), match=re.escape(str(embedded.value))):
            ask(http, name, **arguments, user="ana")
    assert memory.stats(user="ana").units == 0


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 400, "a list; send a JSON object"),
        (b'{"query": NaN, "user": "ana"}', 400, "NaN is not a number"),
        (b'{"query": "x", "user": "\xff"}', 400, "not JSON"),
        (
            b'{"query": "x", "user": "ana", "filters": ' + b'{"not": ' * 99 + b"{}" + b"}" * 100,
            400,
            "nested more than",
        ),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"query": "x", "user": "ana", "limit": 1' + b"0" * 5_000 + b"}", 400, "not JSON"),
        (b'{"query": "x", "user": "ana", "limit": 1e400}', 400, "1e400, which is too large, is not a number"),
        (b'{"query": [' + b"[]," * 99_999 + b"[" * 70 + b"]" * 71 + b', "user": "ana"}', 400, "nested more than"),
        (b'{"query": "x", "user": "ana", "lmit": 1}', 422, "takes no 'lmit'"),
        (b'{"query": "x", "user": "ana", "explain": "yes"}', 422, "explain = 'yes' is not boolean"),
        (b'{"query": "x", "user": "ana", "profile": ["hybrid"]}', 422, "profile = "),
        (b'{"query": "x", "user": "\\ud800"}', 422, "lone surrogate"),
        (b'{"query": "x"}', 422, "needs user"),
        (b"", 422, "needs query"),
    ],
)
def test_a_bad_body_is_a_problem_that_says_why(http, body, status, reason):
    answer = http.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert reason in problem["detail"]
    assert (problem["status"], problem["error"], problem["type"]) == (status, "InputError", "/problems/input")
    assert problem["instance"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404), ("DELETE", "/v1/units", 405), ("GET", "/v1/search", 405),
        ("GET", "/v1/units", 422), ("GET", "/v1/units?user=ana&limit=many", 422),
        ("GET", "/v1/units?user=ana&colour=1", 422), ("POST", "/v1/search?detail=some", 422),
        ("GET", "/v1/units//history?user=ana", 404), ("GET", "/..%2f..%2fetc", 404),
        ("GET", "/v1/units/a%00b?user=ana", 422), ("GET", "/v1/units/a%2541/?user=ana", 404),
    ],
)  # fmt: skip
def test_what_is_no_route_and_no_argument_is_a_problem(http, method, path, status):
    answer = http.request(method, path, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert (answer.headers.get("allow") is not None) == (status == 405)


def test_millions_of_values_are_refused_before_they_are_read(http):
    body = b'{"user": "ana", "content": "x", "metadata": {"a": [' + b"[]," * 1_000_001 + b"1]}}"
    answer = http.post("/v1/units", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "more than 1,000,000 commas" in answer.json()["detail"]) == (413, True)


def test_without_a_name_of_its_own_a_path_is_a_problem_whatever_the_host_is_called(memory, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add("only", "acme")
    with served(memory, tokens) as address, client(address, secret, Host="[") as http:
        assert http.get("/v1/nothing").json()["detail"].startswith("GET '/v1/nothing': Not Found")


def test_only_json_is_read_as_json(http):
    answer = http.post("/v1/search", content=b'{"query": "x", "user": "ana"}', headers={"Content-Type": "text/plain"})
    assert (answer.status_code, "send application/json" in answer.json()["detail"]) == (415, True)


def test_a_brief_answer_keeps_words_that_were_erased_to_itself(http, memory):
    memory.remember("a secret nobody needs", user="brief", id="one")
    answer = http.post("/v1/forget", json={"user": "brief", "ids": ["one"]})
    assert answer.json()["units"] == ["one"]
    assert "secret" not in answer.text


def test_answers_are_small_until_a_trace_is_asked_for(http, memory):
    turns = [{"role": "user", "content": f"ferry {n} to Porto leaves at {n} from pier {n % 7}"} for n in range(200)]
    memory.remember(turns, user="small", session="s")
    asked = {"user": "small", "query": "when does the ferry to Porto leave?"}
    context = http.post("/v1/context", json=asked | {"budget": 200})
    assert "ferry" in context.json()["text"]
    assert len(context.content) < 4_000
    found = http.post("/v1/search", json=asked)
    assert len(found.json()["hits"]) > 5
    assert len(found.content) < 1_000 * len(found.json()["hits"])
    traced = http.post("/v1/search?detail=full", json=asked).json()
    assert traced["trace"]["query"]["text"] == asked["query"]


def test_health_readiness_metrics_and_documents_are_there(http):
    assert http.get("/health").json()["status"] == "alive"
    assert http.get("/ready").json()["status"] == "ready"
    http.get("/v1/units?user=ana")
    metrics = http.get("/metrics").text
    assert re.search(r'holdfast_requests_total\{route="list",status="200"\} [1-9]', metrics)
    assert "ana" not in metrics
    document = http.get("/openapi.json").json()
    assert {verb.path for verb in VERBS.values()} <= document["paths"].keys()
    page = http.get("/docs").text
    assert not re.search(r"(src|href)=\"?(https?:)?//", page)
    assert all(verb.path in page for verb in VERBS.values())


def test_a_server_is_not_ready_while_its_embedder_cannot_be_loaded_and_is_once_it_can():
    class Missing(HashEmbedder):
        away = True

        @property
        def space(self):
            if self.away:
                raise OSError("no such file")
            return "hash/64/bag/1"

        @space.setter
        def space(self, _):
            pass

    def readiness(asked, wanted):
        answers = (asked.get("/ready").json() for _ in range(10_000))
        return next(one for one in answers if wanted in str(one))

    missing = Missing()
    with opened(embedder=missing) as memory, served(memory) as address, client(address) as asked:
        assert "OSError: no such file" in readiness(asked, "no such file")["detail"]
        assert asked.get("/ready").status_code == 503
        assert asked.get("/health").status_code == 200
        kept = asked.post("/v1/units", json={"user": "ana", "content": "The cat is Tom."})  # words go on
        assert (kept.status_code, kept.json()[0]["waits"]) == (200, True)
        found = asked.post("/v1/search", json={"user": "ana", "query": "cat"}).json()
        assert (found["hits"][0]["unit"]["text"], "no such file" in found["degraded"]) == ("The cat is Tom.", True)
        missing.away = False
        assert readiness(asked, "ready'")["status"] == "ready"


def test_a_request_id_is_given_back_and_logged_without_what_was_asked(http, caplog):
    with caplog.at_level("INFO", logger="holdfast.server"):
        answer = http.get("/v1/units/private-id?user=anneliese", headers={"X-Request-Id": "mine-1"})
        assert answer.headers["x-request-id"] == "mine-1"
        http.get("/health", headers={"X-Request-Id": "no\tgood"})
        http.get("/health", headers={"X-Request-Id": "zurück".encode("latin-1")})
    assert "mine-1 GET get 404" in caplog.text
    assert "anneliese" not in caplog.text
    assert "private-id" not in caplog.text
    assert "no\tgood" not in caplog.text
    assert "zur" not in caplog.text


def test_long_work_tells_how_far_it_is_and_then_its_answer(http, memory):
    memory.remember([f"the tram {n} stops at the old market hall" for n in range(20)], user="long", session="s")
    events = {}
    with http.stream("POST", "/v1/compact", json={"user": "long"}, headers={"Accept": "text/event-stream"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for event in answer.read().decode().split("\n\n"):
            if event.startswith("event: "):
                name, data = event.split("\n", 1)
                events.setdefault(name.removeprefix("event: "), []).append(json.loads(data.removeprefix("data: ")))
    assert all(report.keys() == {"done", "of"} for report in events.get("progress", ()))
    [result] = events["result"]
    assert decode(VERBS["compact"].result, result)[0].session == "s"
    with http.stream("POST", "/v1/forget", json={"user": "long"}, headers={"Accept": "text/event-stream"}) as answer:
        assert 'event: problem\ndata: {"type": "/problems/input"' in answer.read().decode()


class Broken(Memory):
    """A memory with a defect."""

    def compact(self, **_):
        raise ZeroDivisionError("nobody thought of this")


def test_a_defect_is_told_without_its_words_and_logged_under_the_id_of_the_request(tmp_path, caplog):
    with Broken.open(tmp_path / "a.db", settings=Settings(embedding=WORDS_ONLY)) as memory, served(memory) as address:
        for kind in ("application/json", "text/event-stream"):
            with client(address, Accept=kind) as http:
                answer = http.post("/v1/compact", json={"user": "ana"}, headers={"X-Request-Id": f"of-{kind[:4]}"})
            assert "HoldfastError" in answer.text
            assert "nobody thought" not in answer.text
            assert re.search(f"of-{kind[:4]} failed", caplog.text)
    assert caplog.text.count("nobody thought of this") >= 2


def test_the_same_key_writes_once_and_another_request_with_it_is_refused(http, memory):
    def send(key, content, user="keys"):
        return http.post("/v1/units", json={"content": content, "user": user}, headers={"Idempotency-Key": key})

    first = send("k1", "the bus is late")
    assert send("k1", "the bus is late").json() == first.json()
    assert first.json()[0]["status"] == "added"
    assert send("k2", "the bus is late").json()[0]["status"] == "duplicate"
    other = send("k1", "the bus is early")
    assert (other.status_code, "another request" in other.json()["detail"]) == (422, True)
    assert send("k1", "the bus is early", user="keys2").status_code == 200
    assert send("k3", "").status_code == 422
    assert send("k3", "words after all").status_code == 200
    assert send("x" * 300, "words").status_code == 400
    assert memory.stats(user="keys").units == 2


class Slow(Memory):
    """A memory whose stats wait until they are let go."""

    begun, gate = threading.Semaphore(0), threading.Event()

    def stats(self, **options):
        if options["user"] == "slow":
            self.begun.release()
            assert self.gate.wait(PATIENCE)
        return super().stats(**options)


def test_more_than_may_wait_is_sent_away_at_once_and_let_in_again_later(tmp_path):
    with (
        Slow.open(tmp_path / "a.db") as memory,
        served(memory, work=1, waiting=0) as address,
        client(address) as http,
    ):
        answers = []
        first = threading.Thread(target=lambda: answers.append(http.get("/v1/stats?user=slow")))
        first.start()
        assert memory.begun.acquire(timeout=PATIENCE)
        refused = http.get("/v1/stats?user=quick")
        assert (refused.status_code, refused.json()["error"]) == (503, "ServerError")
        assert int(refused.headers["retry-after"]) >= 1
        assert http.get("/health").status_code == 200
        memory.gate.set()
        first.join(PATIENCE)
        assert [answer.status_code for answer in answers] == [200]
        assert http.get("/v1/stats?user=quick").status_code == 200


class Busy(Memory):
    """A memory that takes in Ana's documents when it is let, and counts what it is asked for."""

    def prepare(self):
        self.begun, self.gate, self.asked = threading.Semaphore(0), threading.Event(), []
        return self

    def ingest(self, source, **options):
        self.asked.append(options["user"])
        self.begun.release()
        assert options["user"] != "ana" or self.gate.wait(PATIENCE)
        return super().ingest(source, **options)


@pytest.fixture
def busy(tmp_path):
    with Busy.open(tmp_path / "a.db", settings=Settings(embedding=WORDS_ONLY)) as memory:
        yield memory.prepare()
        memory.gate.set()


def test_a_caller_with_much_long_work_keeps_neither_documents_nor_forgetting_of_others_waiting(busy, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    busy.remember("bob keeps bees", user="bob", tenant="acme", id="bees")
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(served(busy, tokens))
        ana, bob = (stack.enter_context(client(address, tokens.add(name, "acme", name))) for name in ("ana", "bob"))
        answers = []

        def upload(number):
            answers.append(ana.post(f"/v1/documents?name={number}.md", content="# a\n\nwords\n").status_code)

        uploads = [threading.Thread(target=upload, args=(number,)) for number in range(3)]
        for one in uploads:
            one.start()
        assert busy.begun.acquire(timeout=PATIENCE)
        assert bob.post("/v1/documents?name=b.md", content="# b\n\nwords\n").status_code == 200
        assert bob.post("/v1/forget", json={"ids": ["bees"]}).json()["complete"]
        assert (answers, busy.asked) == ([], ["ana", "bob"])
        busy.gate.set()
        for one in uploads:
            one.join(PATIENCE)
        assert answers == [200] * 3


def test_who_holds_every_place_makes_room_for_who_holds_none():
    async def run():
        gate, work = threading.Event(), Work(1, 2, "test")
        ana = [work.start(Job("ana"), partial(gate.wait, PATIENCE)) for _ in range(3)]
        with pytest.raises(Refused):
            work.start(Job("ana"), bool)
        bob = work.start(Job("bob"), bool)
        gate.set()
        found = await asyncio.gather(*(one.answer for one in (*ana, bob)), return_exceptions=True)
        await work.finish()
        return [type(one) for one in found]

    assert asyncio.run(run()) == [bool, bool, Refused, bool]


class Gated(HashEmbedder):
    """An embedder that goes on when it is let, and counts its batches."""

    def __init__(self):
        super().__init__()
        self.begun, self.gate, self.batches = threading.Event(), threading.Event(), 0

    def embed_documents(self, texts):
        self.batches += 1
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        return super().embed_documents(texts)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_long_work_ends_when_its_caller_goes_away_and_what_is_done_stays(kind):
    embedder = Gated()
    body = "".join(f"# {n}\n\nthe lamp {n} is lit\n\n" for n in range(200)).encode()
    head = f"POST /v1/documents?user=ana&name=a.md HTTP/1.1\r\nHost: localhost\r\nAccept: {kind}\r\n"
    with opened(embedder=embedder) as memory, served(memory) as address, client(address) as http:
        with socket.create_connection(place_of(address), PATIENCE) as caller:
            caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert embedder.begun.wait(PATIENCE)
        while 'holdfast_requests_total{route="ingest"' not in http.get("/metrics").text:
            pass  # until the server has noticed
        embedder.gate.set()
        while "holdfast_working_long 0\n" not in http.get("/metrics").text:
            pass
        assert embedder.batches == 1
        assert len(memory.list(user="ana", limit=None)) == 200
        assert ask(http, "ingest", source=body, name="a.md", user="ana")[0].status == "duplicate"


def test_long_work_that_waits_for_its_turn_never_begins_when_its_caller_goes_away(busy):
    with served(busy) as address, client(address) as http, client(address) as other:
        first = threading.Thread(target=lambda: http.post("/v1/documents?user=ana&name=a.md", content="words"))
        first.start()
        assert busy.begun.acquire(timeout=PATIENCE)
        with socket.create_connection(place_of(address), PATIENCE) as caller:
            head = b"POST /v1/documents?user=eva&name=e.md HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"
            caller.sendall(head + b"a")
            while "holdfast_working_long 2\n" not in other.get("/metrics").text:
                pass
        while "holdfast_working_long 1\n" not in other.get("/metrics").text:
            pass
        busy.gate.set()
        first.join(PATIENCE)
        assert busy.asked == ["ana"]


def test_a_body_of_too_many_units_is_refused_before_anything_is_kept(memory):
    said = json.dumps([{"role": "user", "content": f"line {n}"} for n in range(4)]).encode()
    with served(memory, units=3) as address, client(address) as http:
        many = http.post("/v1/documents?user=many&name=a.md", content="".join(f"# {n}\n\nx\n\n" for n in range(4)))
        assert (many.status_code, many.json()["detail"][:14]) == (422, "4 units at onc")
        assert http.post("/v1/import?user=many&name=a.json", content=said).status_code == 422
        assert http.get("/v1/stats?user=many").json()["units"] == 0


def test_a_key_holds_for_answers_that_are_streamed(tmp_path):
    calls = []

    class Counting(Memory):
        def compact(self, **options):
            calls.append(options)
            return super().compact(**options)

    with (
        Counting.open(tmp_path / "a.db", embedder=HashEmbedder()) as memory,
        served(memory) as address,
        client(address, **{"Idempotency-Key": "once"}) as http,
    ):
        memory.remember([f"the tram {n} stops at the market" for n in range(20)], user="ana", session="s")
        streamed = [
            http.post("/v1/compact", json={"user": "ana"}, headers={"Accept": "text/event-stream"}) for _ in range(2)
        ]
        plain = http.post("/v1/compact", json={"user": "ana"})
        other = http.post("/v1/compact", json={"user": "eva"}, headers={"Accept": "text/event-stream"})
    results = [answer.text.partition("event: result\ndata: ")[2].strip() for answer in streamed]
    assert results == [plain.text] * 2
    assert (len(calls), other.status_code) == (2, 200)


def test_whoever_asks_too_often_is_told_when_to_come_again():
    with served(rate=2.0) as address, client(address) as http:
        found = [http.get("/v1/stats?user=ana") for _ in range(20)]
        assert found[0].status_code == 200
        refused = next(answer for answer in found if answer.status_code != 200)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_a_rate_below_one_lets_one_in_and_says_how_long_to_wait():
    time = [0.0]
    rate = Rate(0.25, lambda: time[0])
    rate.take("ana")
    with pytest.raises(Refused) as refused:
        rate.take("ana")
    assert refused.value.headers == {"Retry-After": "4"}
    time[0] = 4.0
    rate.take("ana")


@pytest.mark.parametrize("wrong", [{"work": 0}, {"rate": 0.0}, {"rate": -1.0}, {"rate": float("nan")}])
def test_a_server_that_would_let_nobody_in_is_refused(wrong):
    with pytest.raises(InputError, match=r"give --(work|rate)"):
        ServerSettings(**wrong)


def test_keys_are_bounded_also_when_several_writes_fail_together():
    def fail():
        raise InputError("no")

    async def run():
        complaints = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        keys, work = IdempotencyKeys(ServerSettings(keys=2)), Work(2, 9, "test")

        def begin(call):
            return work.start(Job("ana"), call)

        failing = [keys.once("ana", f"bad-{n}", b"", partial(begin, fail)).answer for n in range(3)]
        assert all(isinstance(one, InputError) for one in await asyncio.gather(*failing, return_exceptions=True))
        for n in range(5):
            await keys.once("ana", f"good-{n}", b"", partial(begin, lambda: b"x" * 10)).answer
        await work.finish()
        return complaints, len(keys._known)

    assert asyncio.run(run()) == ([], 2)


def test_bodies_and_batches_that_are_too_large_are_refused_before_they_are_read():
    with served(body_bytes=2_000, batch=3) as address, client(address) as http:
        large = {"content": "x" * 3_000, "user": "ana"}
        assert http.post("/v1/units", json=large).status_code == 413
        chunks = (b"x" * 500 for _ in range(100))
        assert http.post("/v1/documents?user=ana&name=a.txt", content=chunks).status_code == 413
        assert http.post("/v1/units", json={"content": ["a", "b", "c", "d"], "user": "ana"}).status_code == 413
        turns = [{"role": "user", "content": word} for word in "abcd"]
        assert http.post("/v1/host/commit", json={"messages": turns, "user": "ana"}).status_code == 413
        assert http.get("/v1/stats?user=ana").json()["units"] == 0


def test_a_body_that_never_comes_ends():
    with served(body_seconds=0.01) as address, socket.create_connection(place_of(address), PATIENCE) as caller:
        caller.sendall(b"POST /v1/units HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert caller.recv(99).startswith(b"HTTP/1.1 408 ")
