"""C19 and C18 over time: the past, changes to covered turns, expiry, pins, agents, and what becomes of summaries."""

import pytest

from builders import NOW, later
from histories import check_whole, everything, small_memory, tail_of, talk
from holdfast.errors import EmbedderError, InputError, NotFoundError
from holdfast.testing.contracts import HashEmbedder

# --------------------------------------------------------------------------------------------- the past


@pytest.fixture
def clock():
    return [NOW]


@pytest.fixture(params=["compete", "hide"])
def memory(request, clock):
    with small_memory(now=lambda: clock[0], compaction__covered=request.param) as memory:
        yield memory


def test_the_past_before_a_compaction_ranks_turns(memory, clock):
    ids = talk(memory, 16)
    then = memory.search("boat number3", user="ana", session="s")
    clock[0] = later(hours=2)
    [done] = memory.compact(user="ana", session="s")
    clock[0] = later(hours=3)
    asked = {"user": "ana", "session": "s", "as_of": later(hours=1)}
    found = memory.search("boat number3", **asked)
    assert found[0].unit.id == ids[3] == then[0].unit.id
    assert {hit.unit.kind for hit in found} == {"turn"}
    context = memory.assemble("boat number3", **asked)
    assert {item.id for item in context.items} <= set(ids)
    assert ids[3] in {item.id for item in context.section("projection").items}
    assert memory.search("boat number3", user="ana", session="s", as_of=later(hours=2, minutes=1))
    assert done.summaries


@pytest.mark.parametrize("how", ["compete", "hide"])
def test_why_agrees_with_search_about_the_past(clock, how):
    with small_memory(now=lambda: clock[0], compaction__covered=how) as memory:
        ids = talk(memory, 16)
        clock[0] = later(hours=2)
        memory.compact(user="ana", session="s")
        clock[0] = later(hours=3)
        asked = {"user": "ana", "session": "s", "as_of": later(hours=1)}
        assert memory.search("boat number3", **asked)[0].unit.id == ids[3]
        assert memory.why("boat number3", ids[3], **asked).returned


def test_the_past_before_a_supersession_gives_the_old_answer(memory, clock):
    [old] = memory.remember("the meeting is on Tuesday", user="ana")
    clock[0] = later(hours=2)
    [new] = memory.remember("the meeting is on Thursday", user="ana")
    memory.supersede(old.id, by=new.id, user="ana")
    clock[0] = later(hours=3)

    def answer(**more):
        return {hit.unit.id for hit in memory.search("when is the meeting", user="ana", **more)}

    assert answer() == {new.id}
    assert answer(as_of=later(hours=1)) == {old.id}
    assert answer(current_only=False) == {old.id, new.id}
    assert [unit.id for unit in memory.list(user="ana")] == [new.id]
    assert [item.id for item in memory.assemble("when is the meeting", user="ana").items] == [new.id]
    before = memory.assemble("when is the meeting", user="ana", as_of=later(hours=1))
    assert [item.id for item in before.items] == [old.id]
    memory.reinstate(old.id, user="ana")
    assert answer() == {old.id, new.id}
    assert memory.get(old.id, user="ana").superseded_by is None


# -------------------------------------------------------------------------------- changes to covered turns

CHANGES = {
    "text": lambda memory, key, _: memory.update(key, user="ana", text="other words altogether"),
    "ttl": lambda memory, key, _: memory.update(key, user="ana", ttl=864000.0),
    "valid_to": lambda memory, key, _: memory.update(key, user="ana", valid_to=later(days=9)),
    "supersede": lambda memory, key, other: memory.supersede(key, by=other, user="ana"),
    "remember": lambda memory, key, _: memory.remember("a newer word", user="ana", supersedes=key),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_summary_is_withdrawn_when_one_of_its_turns_changes(memory, clock, change):
    ids = talk(memory, 16)
    [done] = memory.compact(user="ana", session="s")
    cluster = done.clusters[0]
    clock[0] = later(hours=1)
    CHANGES[change](memory, cluster.turns[1], ids[-1])
    units = everything(memory)
    assert units[cluster.summary].superseded_by is not None
    assert {units[key].covered_by for key in cluster.turns} == {None}
    assert cluster.summary not in {hit.unit.id for hit in memory.search(units[cluster.summary].text, user="ana")}
    check_whole(memory)
    [again] = memory.compact(user="ana", session="s")
    assert cluster.turns[1] not in {key for one in again.clusters for key in one.turns} or change == "text"
    assert not [key for key in everything(memory) if key not in units and not key.startswith("s-")]
    check_whole(memory)


def test_supersede_and_reinstate_bring_the_same_summary_back(memory):
    ids = talk(memory, 16)
    [done] = memory.compact(user="ana", session="s")
    memory.supersede(ids[0], by=ids[-1], user="ana")
    memory.reinstate(ids[0], user="ana")
    [again] = memory.compact(user="ana", session="s")
    assert again.summaries == done.summaries[:1]
    check_whole(memory)


def test_a_withdrawn_summary_does_not_come_back_by_itself(memory):
    talk(memory, 16)
    [done] = memory.compact(user="ana", session="s")
    cluster = done.clusters[0]
    memory.update(cluster.turns[0], user="ana", text="other words altogether")
    try:
        memory.reinstate(cluster.summary, user="ana")
    except InputError:
        return
    check_whole(memory)


# ---------------------------------------------------------------------------------------- expiry and pins


def test_expiry_and_pins_hold_everywhere(memory, clock):
    ids = talk(memory, 12)
    memory.update(ids[1], user="ana", ttl=3600.0)
    memory.update(ids[2], user="ana", ttl=3600.0)
    memory.update(ids[2], user="ana", pinned=True)
    memory.update(ids[3], user="ana", pinned=True)
    memory.compact(user="ana")
    assert {memory.get(key, user="ana").covered_by for key in ids[1:4]} == {None}
    clock[0] = later(hours=2)
    listed = {unit.id for unit in memory.list(user="ana", limit=None)}
    assert ids[1] not in listed
    assert {ids[2], ids[3]} <= listed
    found = {hit.unit.id for number in (1, 2) for hit in memory.search(f"number{number}", user="ana", profile="fast")}
    assert ids[1] not in found
    assert ids[2] in found
    context = memory.assemble("number1 number2", user="ana", session="s", budget=2000)
    assert ids[1] not in {item.id for item in context.items}
    assert ids[2] in {item.id for item in context.items}
    memory.compact(user="ana")
    assert memory.get(ids[1], user="ana").covered_by is None
    assert ids[1] in {unit.id for unit in memory.forget(user="ana", session="s", dry_run=True).units}
    assert [unit.id for unit in memory.forget(user="ana", ids=ids[1]).units] == [ids[1]]


def test_agents_are_never_mixed_in_a_summary(memory):
    for number in range(24):
        talk(memory, 1, start=number, agent=("x", "y", None)[number % 3])
    [done] = memory.compact(user="ana", session="s")
    assert done.summaries
    for key in done.summaries:
        agents = {unit.agent for unit in memory.expand(key, user="ana")}
        assert agents == {memory.get(key, user="ana").agent}
        if agents == {"x"}:
            with pytest.raises(NotFoundError):
                memory.expand(key, user="ana", agent="y")


# -------------------------------------------------------------------------- turns of everyone, fate of summaries


def everyones(memory):
    return talk(memory, 16, scope="global")


def test_turns_of_everyone_are_not_covered_by_a_summary_of_one_user(tmp_path):
    with small_memory(tmp_path / "memory.db", compaction__covered="hide") as memory:
        ids = everyones(memory)
        memory.compact(user="ana", session="s")
    with small_memory(tmp_path / "memory.db", compaction__covered="hide") as memory:
        found = {hit.unit.id for hit in memory.search("number3", user="ben", profile="fast")}
        assert ids[3] in found


def test_an_index_that_follows_equals_one_that_is_built_again(tmp_path):
    with small_memory(tmp_path / "memory.db", compaction__covered="hide") as memory:
        everyones(memory)
        memory.search("number3", user="ben", profile="fast")
        memory.compact(user="ana", session="s")
        followed = [hit.unit.id for hit in memory.search("number3 boat", user="ben", profile="fast")]
        with small_memory(tmp_path / "memory.db", compaction__covered="hide") as other:
            assert [hit.unit.id for hit in other.search("number3 boat", user="ben", profile="fast")] == followed


FATES = {
    "superseded": lambda memory, summary, other: memory.supersede(summary, by=other, user="ana"),
    "expired": lambda memory, summary, _: memory.update(summary, user="ana", ttl=60.0),
    "over": lambda memory, summary, _: memory.update(summary, user="ana", valid_to=later(minutes=1)),
    "forgotten": lambda memory, summary, _: memory.forget(user="ana", ids=summary),
}


@pytest.mark.parametrize(
    "fate",
    [
        "forgotten",
        "superseded",
        "expired",
        "over",
    ],
)
def test_the_turns_of_a_summary_that_no_longer_counts_can_be_found(clock, fate):
    with small_memory(now=lambda: clock[0], compaction__covered="hide") as memory:
        ids = talk(memory, 16)
        [done] = memory.compact(user="ana", session="s")
        FATES[fate](memory, done.summaries[0], ids[-1])
        clock[0] = later(hours=1)
        assert ids[0] in {hit.unit.id for hit in memory.search("number0", user="ana", session="s", profile="fast")}


def test_a_pin_holds_when_a_summary_is_made_again(memory):
    talk(memory, 16)
    [done] = memory.compact(user="ana", session="s")
    pinned, erased, *_ = done.clusters[0].turns
    memory.update(pinned, user="ana", pinned=True)
    memory.forget(user="ana", ids=erased)
    assert memory.get(pinned, user="ana").covered_by is None


def test_the_past_between_superseding_and_reinstating_stays_as_it_was(memory, clock):
    [old] = memory.remember("the meeting is on Tuesday", user="ana")
    [new] = memory.remember("the meeting is on Thursday", user="ana")
    clock[0] = later(hours=1)
    memory.supersede(old.id, by=new.id, user="ana")
    clock[0] = later(hours=2)
    memory.reinstate(old.id, user="ana")
    clock[0] = later(hours=3)
    then = memory.search("when is the meeting", user="ana", as_of=later(minutes=90))
    assert {hit.unit.id for hit in then} == {new.id}


# -------------------------------------------------------------------------------------------- by itself


def test_a_session_is_compacted_by_itself_when_it_is_due(caplog):
    with small_memory(compaction__session_tokens=100) as memory:
        ids = talk(memory, 20)
        units = everything(memory)
        waiting = [key for key in ids if units[key].covered_by is None and key not in tail_of(memory)]
        count = memory._counter
        assert sum(count(units[key].text) for key in waiting) < 100
        assert len(waiting) + len(tail_of(memory)) < len(ids)
        check_whole(memory)
    with small_memory(compaction__session_tokens=0) as memory:
        talk(memory, 20)
        assert not [unit for unit in everything(memory).values() if unit.covered_by]


def test_words_are_kept_when_a_due_compaction_fails(caplog):
    class Tired(HashEmbedder):
        asked = 0

        def embed_documents(self, texts):
            self.asked += 1
            if self.asked > 8:
                raise EmbedderError("the embedder is away; try again later")
            return super().embed_documents(texts)

    with small_memory(compaction__session_tokens=50, embedder=Tired(64)) as memory:
        ids = talk(memory, 20)
        assert set(ids) <= set(everything(memory))
        check_whole(memory)
    assert "is not compacted now" in caplog.text
