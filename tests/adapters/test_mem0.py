"""mem0's verbs over a memory: the calls that its documentation shows, and their results."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest

from builders import NOW, opened
from holdfast import FilterError, InputError
from holdfast import Memory as Holdfast
from holdfast.integrations.mem0 import AsyncMemory, Memory
from interfaces.served import served

CHAT = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
    {"role": "assistant", "content": "How about a thriller movie? They can be quite engaging."},
    {"role": "user", "content": "I'm not a big fan of thriller movies but I love sci-fi movies."},
    {"role": "assistant", "content": "Got it! I'll avoid thriller recommendations and suggest sci-fi movies."},
]
SCI_FI = "I'm not a big fan of thriller movies but I love sci-fi movies."


@pytest.fixture(params=["embedded", "remote"])
def memory(request):
    if request.param == "embedded":
        with opened() as inner:
            yield Memory(memory=inner)
    else:
        with served(opened()) as address, Holdfast.open(address) as inner:
            yield Memory(memory=inner)


def words(result):
    return [one["memory"] for one in result["results"]]


def test_messages_are_kept_word_for_word(memory):
    added = memory.add(CHAT, user_id="alice", metadata={"category": "movie_recommendations"})
    assert words(added) == [message["content"] for message in CHAT[1:]]
    assert {one["event"] for one in added["results"]} == {"ADD"}
    assert [one["role"] for one in added["results"]] == ["user", "assistant"] * 2
    assert {one["event"] for one in memory.add(CHAT, user_id="alice", infer=False)["results"]} == {"NONE"}
    assert len(memory.get_all(user_id="alice")["results"]) == 4


@pytest.mark.parametrize("given", [{"user_id": "alice"}, {"filters": {"user_id": "alice"}}])
def test_ids_stand_before_other_arguments_or_in_filters(memory, given):
    memory.add(CHAT, user_id="alice")
    memory.add("I love romance movies", user_id="bob")
    found = memory.search("Which movies do I love?", **given)
    assert SCI_FI in words(found)
    assert "I love romance movies" not in words(found)
    assert len(memory.get_all(**given)["results"]) == 4
    assert len(memory.get_all(**given, top_k=2)["results"]) == len(memory.get_all(**given, limit=2)["results"]) == 2
    assert len(memory.search("movies", **given, limit=1)["results"]) == 1
    assert found["state"] in ("found", "closest")
    assert memory.search("movies", **given, threshold=1.0)["state"] == "nothing"


def test_a_result_has_mem0s_fields(memory):
    memory.add(
        [{"role": "user", "content": "I love sci-fi", "name": "al"}], user_id="alice", agent_id="film", run_id="r1",
        metadata={"category": "movies"}, timestamp=1_735_689_600,
    )  # fmt: skip
    [found] = memory.search("sci-fi", user_id="alice", explain=True)["results"]
    assert found["memory"] == "I love sci-fi"
    assert len(found["hash"]) == 32
    assert found["created_at"].startswith("2025-01-01T00:00:00")
    assert found["metadata"] == {"category": "movies"}
    named = {name: found[name] for name in ("user_id", "agent_id", "run_id", "actor_id", "role")}
    assert named == {"user_id": "alice", "agent_id": "film", "run_id": "r1", "actor_id": "al", "role": "user"}
    assert found["score"] > 0
    assert found["score_details"]["value"] == found["score"]
    same = memory.get(found["id"])
    assert same == {name: value for name, value in found.items() if name not in ("score", "score_details")}
    assert memory.get("alice/u-none") is None


def test_a_memory_is_updated_and_its_history_kept(memory):
    [added] = memory.add("I love tennis", user_id="alice", metadata={"a": 1, "b": 2})["results"]
    assert memory.update(added["id"], "I love football", metadata={"b": 3}) == {
        "message": "Memory updated successfully!"
    }
    assert memory.update(added["id"], data="I love chess") == {"message": "Memory updated successfully!"}
    assert memory.get(added["id"])["memory"] == "I love chess"
    assert memory.get(added["id"])["metadata"] == {"a": 1, "b": 3}
    changes = memory.history(added["id"])
    assert [(one["old_memory"], one["new_memory"], one["event"]) for one in changes] == [
        (None, "I love tennis", "ADD"),
        ("I love tennis", "I love football", "UPDATE"),
        ("I love football", "I love chess", "UPDATE"),
    ]
    with pytest.raises(ValueError, match="nothing to change"):
        memory.update(added["id"])
    with pytest.raises(ValueError, match="not found"):
        memory.update("alice/u-none", "text")


def test_memories_are_deleted_one_by_one_and_by_id(memory):
    first, second = memory.add([{"role": "user", "content": text} for text in ("one", "two")], user_id="alice")[
        "results"
    ]
    assert memory.delete(first["id"]) == {"message": "Memory deleted successfully!"}
    assert memory.get(first["id"]) is None
    assert memory.history(first["id"]) == []
    with pytest.raises(ValueError, match="not found"):
        memory.delete(first["id"])
    memory.add("three", user_id="alice", run_id="trip")
    memory.add("four", user_id="bob", run_id="trip")
    assert memory.delete_all(user_id="alice", run_id="trip") == {"message": "Memories deleted successfully!"}
    assert words(memory.get_all(user_id="alice")) == ["two"] == [second["memory"]]
    memory.delete_all(user_id="alice")
    memory.delete_all(user_id="alice")
    assert words(memory.get_all(user_id="alice")) == []
    assert words(memory.get_all(user_id="bob")) == ["four"]
    with pytest.raises(ValueError, match="at least one of"):
        memory.delete_all()


def test_agents_and_runs_choose_among_a_users_memories(memory):
    memory.add("tea with milk", user_id="alice", agent_id="cook")
    memory.add("tea without sugar", user_id="alice", agent_id="doctor", run_id="visit")
    memory.add("tea at five", agent_id="cook")
    assert words(memory.get_all(user_id="alice", agent_id="cook")) == ["tea with milk"]
    assert words(memory.search("tea", filters={"user_id": "alice", "run_id": "visit"})) == ["tea without sugar"]
    assert len(words(memory.search("tea", user_id="alice"))) == 2
    assert words(memory.search("tea", agent_id="cook")) == ["tea at five"]
    assert "user_id" not in memory.get_all(agent_id="cook")["results"][0]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"kind": "fruit"}, ["apple", "pear"]),
        ({"kind": {"eq": "fruit"}, "price": {"gt": 1}}, ["pear"]),
        ({"price": {"gte": 1, "lte": 2}}, ["apple", "pear"]),
        ({"price": {"lt": 2}}, ["apple"]),
        ({"kind": {"ne": "fruit"}}, ["bread", "water"]),
        ({"kind": {"in": ["bakery", "drink"]}}, ["bread"]),
        ({"kind": {"nin": ["bakery", "drink"]}}, ["apple", "pear", "water"]),
        ({"kind": {"contains": "rui"}}, ["apple", "pear"]),
        ({"kind": "*"}, ["apple", "bread", "pear"]),
        ({"AND": [{"kind": "fruit"}, {"price": 1}]}, ["apple"]),
        ({"OR": [{"kind": "bakery"}, {"price": 1}]}, ["apple", "bread"]),
        ({"NOT": [{"kind": "bakery"}, {"price": 1}]}, ["pear", "water"]),
        (
            {"AND": [{"OR": [{"kind": "fruit"}, {"kind": "bakery"}]}, {"NOT": [{"price": {"gt": 2}}]}]},
            ["apple", "pear"],
        ),
    ],
)
def test_filters_have_mem0s_operators(memory, filters, found):
    memory.add("apple", user_id="alice", metadata={"kind": "fruit", "price": 1})
    memory.add("pear", user_id="alice", metadata={"kind": "fruit", "price": 2})
    memory.add("bread", user_id="alice", metadata={"kind": "bakery", "price": 3})
    memory.add("water", user_id="alice")
    assert sorted(words(memory.get_all(filters={"user_id": "alice", **filters}))) == found
    assert sorted(words(memory.get_all(filters={"AND": [{"user_id": "alice"}, filters]}))) == found


@pytest.mark.parametrize(
    "filters",
    [
        {"kind": "fruit"},
        {"OR": [{"user_id": "alice"}]},
        {"user_id": {"in": ["alice", "bob"]}},
        {"user_id": "alice", "kind": {"icontains": "x"}},
        {"user_id": "alice", "AND": {"kind": "x"}},
        {"user_id": "alice", "OR": []},
        {"user_id": " "},
    ],
)
def test_what_a_filter_cannot_ask_is_refused(memory, filters):
    memory.add("apple", user_id="alice")
    with pytest.raises(ValueError, match=r"\w") as caught:
        memory.search("apple", filters=filters)
    assert isinstance(caught.value, InputError | FilterError)


def test_a_threshold_leaves_out_what_scores_less(memory):
    memory.add("apple pie", user_id="alice")
    [found] = memory.search("apple", user_id="alice", threshold=None)["results"]
    assert memory.search("apple", user_id="alice", threshold=found["score"])["results"]
    assert not memory.search("apple", user_id="alice", threshold=1.0)["results"]


def test_time_is_when_it_was_said_and_when_it_is_asked():
    with opened() as inner:
        memory = Memory(memory=inner)
        memory.add("I flew to Oslo.", user_id="alice", timestamp="2024-03-05T10:00:00Z")
        memory.add("I flew to Rome.", user_id="alice", timestamp=datetime(2025, 3, 4, tzinfo=UTC))
        for day, said in (("2024-03-06", "I flew to Oslo."), ("2025-03-05", "I flew to Rome.")):
            found = memory.search("I flew yesterday", user_id="alice", reference_date=day)
            assert words(found)[0] == said


def test_what_has_expired_is_hidden_unless_it_is_asked_for():
    now = [NOW]
    with opened(now=lambda: now[0]) as inner:
        memory = Memory(memory=inner)
        [added] = memory.add("tea is free", user_id="alice", expiration_date=NOW.date())["results"]
        assert memory.get(added["id"])["expiration_date"] == NOW.date().isoformat()
        assert words(memory.search("tea", user_id="alice")) == ["tea is free"]
        now[0] = NOW + timedelta(days=1)
        assert words(memory.search("tea", user_id="alice")) == words(memory.get_all(user_id="alice")) == []
        assert words(memory.search("tea", user_id="alice", show_expired=True)) == ["tea is free"]
        assert words(memory.get_all(user_id="alice", show_expired=True)) == ["tea is free"]
        memory.update(added["id"], expiration_date=None)
        assert words(memory.get_all(user_id="alice")) == ["tea is free"]
        with pytest.raises(ValueError, match="not a day"):
            memory.update(added["id"], expiration_date="soon")
        memory.update(added["id"], expiration_date=date(2026, 12, 31))
        assert memory.get(added["id"])["expiration_date"] == "2026-12-31"


def test_everything_is_gone_after_a_reset(memory):
    memory.add("one", user_id="alice")
    memory.add("two", agent_id="cook")
    memory.reset()
    assert words(memory.get_all(user_id="alice")) == words(memory.get_all(agent_id="cook")) == []


def test_a_configuration_of_mem0_opens_a_memory(tmp_path):
    config = {"version": "v1.1", "llm": {"provider": "openai"}, "holdfast": {"path": str(tmp_path / "m.db")}}
    with Memory.from_config(config) as memory:
        memory.add("one", user_id="alice")
    with Memory(memory=tmp_path / "m.db") as memory:
        assert words(memory.get_all(user_id="alice")) == ["one"]
    with pytest.raises(InputError, match="not understood"):
        Memory("memory.db")
    for wrong in ("u-1", "", None):
        with pytest.raises(InputError, match="not the id"), Memory(memory=":memory:") as memory:
            memory.get(wrong)


def test_the_event_loop_has_the_same_verbs(memory):
    again = AsyncMemory(memory=memory.memory)

    async def work():
        [added] = (await again.add(CHAT[3], user_id="alice"))["results"]
        await again.update(added["id"], "I love westerns")
        found, kept, changes = await asyncio.gather(
            again.search("westerns", user_id="alice"), again.get(added["id"]), again.history(added["id"])
        )
        await again.delete(added["id"])
        await again.delete_all(user_id="alice")
        return words(found), kept["memory"], len(changes), await again.get_all(user_id="alice")

    assert asyncio.run(work()) == (["I love westerns"], "I love westerns", 2, {"results": []})


NO_TIMES = [float("nan"), float("inf"), 1e18, -1e18, 10**400]
MISTAKES = [
    *(("add", {"messages": wrong, "user_id": "alice"}) for wrong in (None, 5, 1.5, True, object(), {1, 2})),
    *(("add", {"messages": "x", "user_id": "alice", "timestamp": wrong}) for wrong in NO_TIMES),
    *(("search", {"query": "x", "user_id": "alice", "reference_date": wrong}) for wrong in NO_TIMES),
    *(("search", {"query": "x", "user_id": "alice", "filters": wrong}) for wrong in ("a", 5, [{"a": 1}], True)),
    *(("search", {"query": "x", "user_id": "alice", "threshold": wrong}) for wrong in ("a", [1], {"a": 1})),
    ("get_all", {"user_id": "alice", "filters": "a"}),
    ("add", {"messages": "x", "user_id": "alice", "expiration_date": "9999-12-31"}),
]


@pytest.mark.parametrize(("verb", "given"), MISTAKES)
def test_what_cannot_be_understood_is_an_input_error_and_nothing_is_kept(memory, verb, given):
    with pytest.raises(InputError):
        getattr(memory, verb)(**given)
    assert words(memory.get_all(user_id="alice")) == []


@pytest.mark.parametrize("metadata", ["a", 5, [1], True])
def test_metadata_that_is_none_changes_nothing(memory, metadata):
    [added] = memory.add("one", user_id="alice")["results"]
    with pytest.raises(InputError):
        memory.update(added["id"], metadata=metadata)
    assert memory.get(added["id"])["metadata"] is None
