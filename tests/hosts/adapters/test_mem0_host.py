"""mem0 itself beside ours: the same signatures, and the same calls with the same results, without an LLM."""

import asyncio
import inspect
import os

import pytest

os.environ["MEM0_TELEMETRY"] = "False"
mem0 = pytest.importorskip("mem0")

from holdfast.integrations import mem0 as ours  # noqa: E402
from holdfast.testing.contracts import HashEmbedder  # noqa: E402

VERBS = (
    "add",
    "search",
    "get",
    "get_all",
    "update",
    "delete",
    "delete_all",
    "history",
    "reset",
    "close",
    "from_config",
)


class Vectors:
    """An embedder for mem0 that needs no address."""

    embedder = HashEmbedder()

    def embed(self, text, *_, **__):
        return self.embedder.embed_documents([text])[0].tolist()

    def embed_batch(self, texts, *_, **__):
        return self.embedder.embed_documents(texts).tolist()


@pytest.mark.parametrize("kind", ["Memory", "AsyncMemory"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_of_mem0_is_taken(kind, verb):
    theirs = inspect.signature(getattr(getattr(mem0, kind), verb)).parameters
    taken = inspect.signature(getattr(getattr(ours, kind), verb)).parameters
    for name, parameter in theirs.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert taken[name].kind == parameter.kind, name
            assert (taken[name].default is parameter.empty) == (parameter.default is parameter.empty), name
    extra = [one for name, one in taken.items() if name not in theirs]
    assert all(one.default is not one.empty for one in extra)


@pytest.fixture(params=["mem0", "holdfast"])
def memory(request, memory, tmp_path):
    if request.param == "holdfast":
        return ours.Memory(memory=memory)
    place = {"path": str(tmp_path / "vectors"), "embedding_model_dims": Vectors.embedder.dims}
    theirs = mem0.Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": place},
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": str(tmp_path / "history.db"),
        }
    )
    theirs.embedding_model = Vectors()
    return theirs


CHAT = [
    {"role": "user", "content": "I'm planning to watch a movie tonight."},
    {"role": "assistant", "content": "How about a thriller?", "name": "critic"},
    {"role": "user", "content": "I love sci-fi movies."},
]


def test_the_calls_of_its_documentation_give_the_same(memory):
    added = memory.add(CHAT, user_id="alice", metadata={"category": "movies"}, infer=False)["results"]
    assert [(one["memory"], one["event"], one["role"], one["actor_id"]) for one in added] == [
        (CHAT[0]["content"], "ADD", "user", None),
        (CHAT[1]["content"], "ADD", "assistant", "critic"),
        (CHAT[2]["content"], "ADD", "user", None),
    ]
    listed = memory.get_all(filters={"user_id": "alice"})["results"]
    assert sorted(one["memory"] for one in listed) == sorted(one["content"] for one in CHAT)
    one = memory.get(added[2]["id"])
    assert (one["id"], one["memory"], one["user_id"]) == (added[2]["id"], "I love sci-fi movies.", "alice")
    assert one["metadata"] == {"category": "movies"}
    assert one["role"] == "user"
    assert {"hash", "created_at", "updated_at"} <= one.keys()
    found = memory.search("I love sci-fi movies.", filters={"user_id": "alice"}, top_k=1)["results"][0]
    assert found["memory"] == "I love sci-fi movies."
    assert found["score"] > 0
    assert memory.update(one["id"], "I love westerns.") == {"message": "Memory updated successfully!"}
    assert [(row["old_memory"], row["new_memory"], row["event"]) for row in memory.history(one["id"])] == [
        (None, "I love sci-fi movies.", "ADD"),
        ("I love sci-fi movies.", "I love westerns.", "UPDATE"),
    ]
    assert memory.history(one["id"])[0].keys() == {
        "id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted", "actor_id",
        "role",
    }  # fmt: skip
    assert memory.delete(one["id"]) == {"message": "Memory deleted successfully!"}
    assert memory.get(one["id"]) is None
    assert memory.delete_all(user_id="alice") == {"message": "Memories deleted successfully!"}
    assert memory.get_all(filters={"user_id": "alice"}) == {"results": []}


def test_filters_choose_the_same(memory):
    for name, price in (("apple", 1), ("pear", 2), ("bread", 3)):
        memory.add(name, user_id="alice", agent_id="cook", metadata={"kind": name, "price": price}, infer=False)
    memory.add("water", user_id="alice", infer=False)
    memory.add("wine", user_id="bob", infer=False)
    for filters, expected in (
        ({"agent_id": "cook"}, ["apple", "bread", "pear"]),
        ({"kind": "pear"}, ["pear"]),
        ({"price": {"gte": 2}}, ["bread", "pear"]),
        ({"kind": {"in": ["pear", "apple"]}}, ["apple", "pear"]),
        ({"AND": [{"kind": "pear"}, {"price": 2}]}, ["pear"]),
        ({"OR": [{"kind": "pear"}, {"price": 3}]}, ["bread", "pear"]),
    ):
        asked = {"filters": {"user_id": "alice", **filters}, "threshold": 0.0}
        found = {
            one["memory"]
            for query in ("apple", "pear", "bread", "water")
            for one in memory.search(query, **asked)["results"]
        }
        assert sorted(found) == expected, filters


def test_what_is_wrong_is_refused_as_a_value(memory):
    for call in (
        lambda: memory.add("words"),
        lambda: memory.search("words", filters={}),
        memory.get_all,
        memory.delete_all,
        lambda: memory.search(" ", filters={"user_id": "alice"}),
    ):
        with pytest.raises((ValueError, mem0.exceptions.ValidationError)):
            call()


def test_the_event_loop_is_served_as_well(memory):
    if not isinstance(memory, ours.Memory):
        pytest.skip("ours is what is tried")

    async def work():
        again = ours.AsyncMemory(memory=memory.memory)
        await again.add("I love tea", user_id="alice")
        return await again.search("tea", user_id="alice")

    assert asyncio.run(work())["results"][0]["memory"] == "I love tea"
