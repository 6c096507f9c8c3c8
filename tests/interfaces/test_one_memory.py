"""One memory behind every interface: embedded, async, remote and async remote answer alike, to the last bit."""

import asyncio
import contextlib
import inspect
import io
from datetime import UTC, datetime, timedelta

import pytest
from served import served

from builders import NOW, opened, without_pool
from holdfast import AsyncMemory, HoldfastError, Memory, Settings
from holdfast.client.remote import RemoteMemory
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import LOCAL, VERBS

# A small budget has a short tail: most of the session can be compacted.
SETTINGS = Settings.load(
    {"refusal.enabled": False, "assembly.budget": 300, "compaction.cluster": 8}, environ={}
).without_timeouts()
SAID = [
    "My kettle is copper, and I bought it in Lisbon on Tuesday",
    "The ferry to Cacilhas leaves at ten",
    "Please remember that I am allergic to walnuts",
    "I moved from Porto to Lisbon in March",
]
CHAT = [{"role": "user", "content": f"{SAID[i % 4]} {i}"} for i in range(32)]
RULES = "# House rules\n\n- Always answer in English.\n- Never call before nine.\n\n> Be brief.\n"
DATED = datetime(2026, 4, 1, 8, 30, 15, 123456, tzinfo=UTC)
ANA = {"user": "ana"}


def _exported():
    """Return the export of a small memory."""
    out = io.BytesIO()
    with opened(SETTINGS, now=NOW, embedder=HashEmbedder(64)) as memory:
        memory.remember("the tram is yellow", user="bea", id="tram")
        memory.update("tram", user="bea", text="the tram is red")
        memory.export(out, user="bea")
    return out.getvalue()


EXPORT = _exported()


def history(answers):
    """Yield calls of every verb, in order: what one writes, the next ones see; `answers` are those until now."""
    yield "remember", ("the kettle is copper",), {**ANA, "id": "kettle"}
    yield "remember", (CHAT,), {**ANA, "session": "s1"}
    yield "remember", (CHAT,), {**ANA, "session": "s1"}  # once more: known already
    yield (
        "remember",
        ({"role": "assistant", "content": "Lisbon it is.\n\tReally — ünïcödé 🎉"},),
        {
            **ANA, "session": "s1", "agent": "helper", "at": DATED, "metadata": {"n": [1, 2.5, None], "of": {}},
            "ttl": timedelta(days=2), "speaker": "Rui", "links": ["kettle"], "id": "with/slash and space",
        },
    )  # fmt: skip
    yield "remember", ("I live in Faro now, not in Lisbon any more.",), {**ANA, "id": "moved", "pinned": True}
    yield "update", ("kettle",), {**ANA, "text": "the kettle is brass", "metadata": {"seen": 1.1}}
    yield "update", ("with/slash and space",), {**ANA, "ttl": None, "zone": "Asia/Tokyo"}
    yield "ingest", (RULES,), {**ANA, "name": "rules.md", "core": True}
    yield "ingest", ("# Ferry\n\nIt leaves at ten.\n\n## Tickets\n\nSold on board.",), {**ANA, "name": "ferry.md"}
    yield "widen", (answers[-1][0].id,), ANA
    yield "ingest", (b"# Tram\n\nLine 28 is full of tourists.",), {**ANA, "name": "tram.md", "scope": "global"}
    yield "search", ("Where is the kettle from?",), {**ANA, "explain": True}
    yield "search", (CHAT[:3],), {**ANA, "limit": 3, "group": "session", "strict": True}
    yield "search", ("ferry",), {**ANA, "filters": {"kind": "turn"}, "session": "s1", "only_session": True}
    yield "search", ("When did I buy it?",), {**ANA, "as_of": "2026-05-04T12:00:00Z", "zone": "Asia/Tokyo"}
    yield "search", ("zeppelin",), {**ANA, "profile": "fast", "reference_time": DATED}
    yield "search", ("kettle",), {"user": "ben"}
    yield "assemble", ("When does the ferry leave, before or after the sale?",), {**ANA, "budget": 400}
    yield "assemble", (CHAT[-2:],), {**ANA, "session": "s1", "window": 8_000, "track_access": False}
    yield "assemble", ("ferry",), {**ANA, "session": "s1", "budget": 60}
    yield "why", ("copper kettle", "kettle"), ANA
    yield "why", ("copper kettle", "moved"), {**ANA, "budget": 200}
    yield "get", ("kettle",), {**ANA, "tenant": ""}
    yield "get", ("with/slash and space",), ANA
    yield "list", (), {**ANA, "limit": 5, "order": "oldest", "session": "s1"}
    yield "list", (), {**ANA, "filters": {"or": [{"pinned": True}, {"id": {"in": ["kettle"]}}]}, "limit": None}
    yield "facts", (), {**ANA, "current_only": False}
    yield "facts", (), {**ANA, "subject": "user"}
    yield "about", (), ANA
    yield "about", (), {**ANA, "topic": "Home", "limit": 1}
    yield "history", ("kettle",), ANA
    yield "stats", (), ANA
    yield "stats", (), {**ANA, "whole": True}
    yield "users", (), {}
    yield "users", (), {**ANA, "limit": 1}
    yield "sessions", (), ANA
    yield "documents", (), {**ANA, "limit": None}
    yield "agents", (), ANA
    yield "supersede", ("kettle",), {**ANA, "by": "moved"}
    yield "reinstate", ("kettle",), ANA
    yield "overrule", ("kettle",), {**ANA, "decision": "earlier"}
    yield "decisions", ("kettle",), ANA
    yield "overrule", ("kettle",), {**ANA, "decision": "earlier", "undo": True}
    yield "compact", (), ANA
    [done] = [one for one in answers[-1] if one.session == "s1"]
    yield "expand", (done.summaries[0],), ANA
    yield "search", ("Where is the kettle from?",), {**ANA, "explain": True, "session": "s1"}
    yield "why", ("ferry", done.summaries[0]), ANA
    yield "reembed", (), {}
    yield "export", (io.BytesIO(),), {**ANA, "vectors": True}
    yield "export", (io.BytesIO(),), {"all": True, "format": "markdown"}
    yield "import_", (b"User: is the ferry late?\nAssistant: By ten minutes.\n",), {**ANA, "name": "chat.txt"}
    yield "import_", (EXPORT,), {"user": "cleo"}
    yield "forget", (), {**ANA, "ids": ["kettle", "moved"], "dry_run": True}
    yield "forget", (), {**ANA, "document": "ferry.md"}
    yield "forget", (), {**ANA, "all": True}
    yield "stats", (), ANA


REFUSED = [
    ("get", ("nobody",), ANA),
    ("get", ("",), ANA),
    ("get", ("..",), ANA),
    ("get", ("kettle",), {"user": 5}),
    ("get", ("kettle",), {"user": True}),
    ("get", ("kettle",), {"user": None}),
    ("get", ("kettle",), {**ANA, "agent": ["x"]}),
    ("get", ("kettle",), {**ANA, "tenant": "\ud800"}),
    ("list", (), {**ANA, "session": "\ud800"}),
    ("list", (), {**ANA, "session": ""}),
    ("facts", (), {**ANA, "subject": 2.5}),
    ("about", (), {**ANA, "topic": "Cooking"}),
    ("about", (), {**ANA, "topic": 5}),
    ("about", (), {**ANA, "limit": 0}),
    ("about", (), {"user": ""}),
    ("remember", ("x",), {"user": {}}),
    ("ingest", ("x",), {**ANA, "name": 7}),
    ("ingest", ("x",), {**ANA, "name": "x" * 3_000}),
    ("remember", ("",), ANA),
    ("remember", ("x",), {"user": ""}),
    ("remember", ("x",), {**ANA, "scope": "planet"}),
    ("remember", ("x",), {**ANA, "at": "the day after tomorrow"}),
    ("remember", ("x",), {**ANA, "ttl": -5}),
    ("remember", (["x", "y"],), {**ANA, "id": "one"}),
    ("remember", ({"role": "wizard", "content": "x"},), ANA),
    ("remember", ("\ud800",), ANA),
    ("remember", ("x",), {**ANA, "metadata": {"a": "\ud800"}}),
    ("update", ("kettle",), ANA),
    ("update", ("nobody",), {**ANA, "text": "x"}),
    ("search", (" ",), ANA),
    ("search", ("x",), {**ANA, "profile": "psychic"}),
    ("search", ("x",), {**ANA, "limit": 0}),
    ("search", ("x",), {**ANA, "filters": {"a": {"near": 1}}}),
    ("search", ("x",), {**ANA, "zone": "Mars/Olympus"}),
    ("search", ("x",), {**ANA, "only_session": True}),
    ("search", ([],), ANA),
    ("assemble", ("x",), {**ANA, "budget": -1}),
    ("assemble", ("x",), {**ANA, "window": 0}),
    ("why", ("x", "nobody"), ANA),
    ("list", (), {**ANA, "order": "sideways"}),
    ("list", (), {**ANA, "filters": {"a": {"near": 1}}}),
    ("history", ("nobody",), ANA),
    ("users", (), {"user": ""}),
    ("export", (io.BytesIO(),), {}),
    ("export", (io.BytesIO(),), {**ANA, "all": True}),
    ("export", (io.BytesIO(),), {"user": "nobody"}),
    ("export", (io.BytesIO(),), {**ANA, "format": "pdf"}),
    ("import_", (b"nothing that is known",), ANA),
    ("import_", (b"",), ANA),
    ("import_", (b"PK\x03\x04 no archive",), ANA),
    ("import_", (EXPORT,), {"user": ""}),
    ("import_", (EXPORT,), {**ANA, "format": "whatsapp"}),
    ("users", (), {"limit": 0}),
    ("sessions", (), {"user": None}),
    ("documents", (), {**ANA, "limit": -1}),
    ("agents", (), {**ANA, "tenant": "\ud800"}),
    ("expand", ("nobody",), ANA),
    ("expand", ("kettle",), ANA),
    ("widen", ("kettle",), ANA),
    ("supersede", ("kettle",), {**ANA, "by": "kettle"}),
    ("reinstate", ("nobody",), ANA),
    ("decisions", ("nobody",), ANA),
    ("overrule", ("nobody",), {**ANA, "decision": "earlier"}),
    ("overrule", ("kettle",), {**ANA, "decision": "pinned"}),
    ("forget", (), ANA),
    ("forget", (), {**ANA, "ids": ["nobody"]}),
    ("ingest", ("- rule\n" * 300,), {**ANA, "name": "rules.md", "core": True}),
    ("ingest", ("x",), ANA),
    ("ingest", (b"\xff\xfe\x00",), {**ANA, "name": "x.md"}),
    ("compact", (), {"user": "x" * 2_000}),
]  # fmt: skip


def outcome(call, name, args, kwargs):
    """Return what a verb returns, or how it fails."""
    try:
        return call(name, args, kwargs)
    except HoldfastError as error:
        return type(error), str(error)


@contextlib.contextmanager
def embedded(memory):
    yield lambda name, args, kwargs: getattr(memory, name)(*args, **kwargs)


@contextlib.contextmanager
def asynchronous(memory):
    with asyncio.Runner() as runner:
        awaited = AsyncMemory(memory)
        yield lambda name, args, kwargs: runner.run(getattr(awaited, name)(*args, **kwargs))
        runner.run(awaited.close())


@contextlib.contextmanager
def remote(memory, wrap=embedded):
    with served(memory) as address, Memory.open(address) as client, wrap(client) as call:
        yield call


INTERFACES = {
    "async": asynchronous,
    "remote": remote,
    "async remote": lambda memory: remote(memory, asynchronous),
}


def fresh():
    return opened(SETTINGS, now=NOW, embedder=HashEmbedder(64))


def kettle(memory):
    memory.remember("the kettle is copper", user="ana", id="kettle")
    return memory


@pytest.fixture(scope="module")
def told():
    """Return every step of the history, and what an embedded memory answered."""
    steps, answers = [], []
    with fresh() as memory, embedded(memory) as call:
        for step in history(answers):
            steps.append(step)
            answers.append(call(*step))
    return steps, answers


@pytest.mark.parametrize("interface", INTERFACES)
def test_every_verb_answers_alike_through_every_interface(interface, told):
    with fresh() as memory, INTERFACES[interface](memory) as call:
        for step, due in zip(*told, strict=True):
            assert outcome(call, *step) == (due if interface == "async" else without_pool(due)), step


def test_the_history_has_every_verb_that_travels(told):
    assert {name for name, *_ in told[0]} == set(VERBS)


@pytest.mark.parametrize("interface", INTERFACES)
def test_every_refusal_is_alike_through_every_interface(interface):
    with kettle(fresh()) as one, embedded(one) as plain, kettle(fresh()) as two, INTERFACES[interface](two) as call:
        for step in REFUSED:
            due = outcome(plain, *step)
            assert isinstance(due, tuple), step
            assert outcome(call, *step) == due, step


def test_a_remote_memory_has_every_verb_of_a_memory_and_none_of_its_insides():
    public = {name for name, value in inspect.getmembers(Memory) if not name.startswith("_")}
    assert public == set(VERBS) | set(LOCAL)
    assert public - set(vars(RemoteMemory)) == {"open"}
    for name in VERBS:
        assert inspect.signature(getattr(RemoteMemory, name)) == inspect.signature(getattr(Memory, name))
