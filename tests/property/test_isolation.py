"""Isolation (law 13): no verb returns or changes anything outside the named owner keys."""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, ask, column, costly, make_view, opened
from holdfast import Settings
from holdfast.errors import HoldfastError, NotFoundError

TENANTS, USERS, AGENTS, SESSIONS = ("t1", "t2"), ("ana", "ben"), (None, "cook", "clerk"), (None, "s1", "s2")
# Everything that shares a word is a hit, so that a leak cannot hide behind a cut.
OPEN_WIDE = Settings.load({"hybrid.min_score": 0.0, "hybrid.gap": 0.0, "hybrid.max_results": 1000}, environ={})


@dataclass(frozen=True)
class Kept:
    """What the model knows about one unit: whose it is, and the words it holds now."""

    tenant: str
    user: str | None
    agent: str | None
    session: str | None
    id: str
    text: str
    versions: int = 1

    def seen_by(self, tenant, user, agent=None, session=None):
        """Return whether a call with these owner keys may see it; `session` means only that session."""
        mine = self.tenant == tenant and self.user in (user, None)
        return (
            mine and (agent is None or self.agent in (agent, None)) and (session is None or self.session == session)
        )


@st.composite
def histories(draw):
    """Draw steps: remember under few ids, so that they collide between owners, or update one of them."""
    steps = []
    for number in range(draw(st.integers(1, 12))):
        tenant, user = draw(st.sampled_from(TENANTS)), draw(st.sampled_from(USERS))
        agent, session = draw(st.sampled_from(AGENTS)), draw(st.sampled_from(SESSIONS))
        scope = draw(st.sampled_from(["user", "global"] + ["session"] * (session is not None)))
        verb = draw(st.sampled_from(["remember", "remember", "update"]))
        # Ids meet between tenants and users; where agents or an own and a global unit meet has tests of its own.
        unit_id = draw(st.sampled_from(["g1", "g2"] if scope == "global" else ["u1", "u2"])) + (agent or "")
        words = draw(st.sampled_from(["a boat", "a blue boat boat", "boat, hedge and kiln"]))
        steps.append((verb, tenant, user, agent, session, scope, unit_id, f"{words} mark{number}"))
    return steps


def played(memory, steps):
    """Play a history, checking every write against the model; return what is kept, by (tenant, user, id)."""
    model = {}
    for verb, tenant, user, agent, session, scope, unit_id, text in steps:
        owner = (tenant, None if scope == "global" else user, unit_id)
        known = model.get(owner)
        if verb == "remember":
            keys = {"tenant": tenant, "user": user, "agent": agent, "session": session, "scope": scope}
            [written] = memory.remember(text, id=unit_id, **keys)
            assert (written.id, written.status) == (unit_id, "updated" if known else "added")
            # Owner keys, like the id, are fixed at the first version.
            first = known or Kept(*owner[:2], agent, session, unit_id, text, versions=0)
            model[owner] = replace(first, text=text, versions=first.versions + 1)
        elif known is not None and known.seen_by(tenant, user, agent):
            assert memory.update(unit_id, tenant=tenant, user=user, agent=agent, text=text).text == text
            model[owner] = replace(known, text=text, versions=known.versions + 1)
        else:
            with pytest.raises(NotFoundError):
                memory.update(unit_id, tenant=tenant, user=user, agent=agent, text=text)
    return model


def assert_only(kept, units):
    """The units are those of the model, neither more nor fewer, with the owner and the words it knows."""
    found = {(unit.tenant, unit.user, unit.id): (unit.agent, unit.session, unit.text) for unit in units}
    assert found == {(one.tenant, one.user, one.id): (one.agent, one.session, one.text) for one in kept}


@costly
@given(histories())
def test_every_verb_shows_exactly_what_the_owner_keys_allow(steps):
    with opened(OPEN_WIDE) as memory:
        model = played(memory, steps).values()
        for tenant, user, agent, session in product(TENANTS, USERS, AGENTS[:2], SESSIONS[:2]):
            keys = {"tenant": tenant, "user": user, "agent": agent}
            narrow = {"session": session, "only_session": True} if session else {}
            visible = [one for one in model if one.seen_by(tenant, user, agent, session)]
            result = memory.search("boat", **keys, **narrow)
            assert_only(visible, [hit.unit for hit in result])
            for found in (result.trace.results[0].candidates, result.trace.candidates):
                names = [one.unit_id for one in found]
                units = ask(memory, lambda reading, names=names: reading.units(names), make_view(**keys))
                assert_only(visible, [units[name] for name in names])
            assert_only(visible, memory.list(**keys, session=session, limit=None))


@costly
@given(histories())
def test_an_id_of_another_owner_is_not_found_by_any_verb(steps):
    with opened(OPEN_WIDE) as memory:
        model = played(memory, steps).values()
        for tenant, user, agent in product((*TENANTS, "t9"), (*USERS, "eve"), AGENTS):
            keys = {"tenant": tenant, "user": user, "agent": agent}
            visible = {one.id: one for one in model if one.seen_by(tenant, user, agent)}
            for unit_id in {one.id for one in model}:
                if unit_id in visible:
                    one = visible[unit_id]
                    assert_only([one], [memory.get(unit_id, **keys)])
                    assert_only([one], [memory.why("boat", unit_id, **keys).unit])
                    versions = memory.history(unit_id, **keys)
                    assert_only([one], versions[-1:])
                    assert [version.version for version in versions] == [*range(1, one.versions + 1)]
                    assert {(v.tenant, v.user, v.id) for v in versions} == {(one.tenant, one.user, one.id)}
                else:
                    for verb in (
                        lambda: memory.get(unit_id, **keys),  # noqa: B023 - called in this very turn of the loop
                        lambda: memory.history(unit_id, **keys),  # noqa: B023
                        lambda: memory.why("boat", unit_id, **keys),  # noqa: B023
                        lambda: memory.update(unit_id, text="taken", **keys),  # noqa: B023
                    ):
                        with pytest.raises(NotFoundError):
                            verb()
        for one in model:
            assert_only([one], [memory.get(one.id, tenant=one.tenant, user=one.user or "ana")])


@given(histories())
def test_stats_count_what_one_user_has_and_nothing_else(steps):
    with opened(OPEN_WIDE) as memory:
        model = played(memory, steps).values()
        for tenant, user in product(TENANTS, (*USERS, "eve")):
            mine = [one for one in model if one.seen_by(tenant, user)]
            stats = memory.stats(tenant=tenant, user=user)
            assert (stats.units, stats.versions) == (len(mine), sum(one.versions for one in mine))
            assert stats.sessions == len({one.session for one in mine} - {None})
            assert sum(stats.by_kind.values()) == sum(stats.by_scope.values()) == len(mine)
            assert stats.by_scope.get("global", 0) == sum(one.user is None for one in mine)


def standing(hits):
    return [(hit.unit.id, hit.score.hex(), hit.rel.hex()) for hit in hits]


@costly
@given(histories(), st.sampled_from(["boat", "blue hedge", "Describe the kiln and the boat"]))
def test_what_others_remember_changes_no_score_of_mine(steps, question):
    mine = [step for step in steps if step[1] == "t1" and (step[2] == "ana" or step[5] == "global")]
    with opened(OPEN_WIDE) as alone, opened(OPEN_WIDE) as crowded:
        played(alone, mine)
        played(crowded, steps)
        for agent in AGENTS[:2]:
            answers = [m.search(question, tenant="t1", user="ana", agent=agent) for m in (alone, crowded)]
            assert standing(answers[0]) == standing(answers[1])


def test_what_another_agent_remembers_changes_no_score_of_mine():
    with opened(OPEN_WIDE) as alone, opened(OPEN_WIDE) as crowded:
        for memory in (alone, crowded):
            memory.remember("the blue boat", user="ana", agent="x", id="a")
            memory.remember("the kiln", user="ana", id="b")
        for number in range(9):
            crowded.remember(f"boat {number} of the other agent", user="ana", agent="y")
        answers = [memory.search("blue boat kiln", user="ana", agent="x") for memory in (alone, crowded)]
        assert standing(answers[0]) == standing(answers[1])


def test_a_global_unit_does_change_the_statistics_of_everyone_in_its_tenant():
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana")
        before = memory.search("boat", user="ana").trace.results[0].candidates[0].raw_score
        memory.remember("a boat", id="x", user="ben", tenant="t9", scope="global")
        assert memory.search("boat", user="ana").trace.results[0].candidates[0].raw_score == before
        memory.remember("a boat", id="g", user="ben", scope="global")
        assert memory.search("boat", user="ana").trace.results[0].candidates[-1].raw_score != before


@given(st.lists(st.sampled_from(["yes", "a boat", "no"]), min_size=1, max_size=5))
def test_the_same_words_of_two_owners_are_two_units(words):
    owners = [
        {"user": "ana", "session": "s1"},
        {"user": "ben", "session": "s1"},
        {"user": "ana", "session": "s2"},
        {"user": "ana", "session": "s1", "agent": "cook"},
        {"user": "ana", "session": "s1", "tenant": "t2"},
    ]
    with opened() as memory:
        ids = [written.id for owner in owners for written in memory.remember(words, **owner)]
        assert len(set(ids)) == len(owners) * len(words)


@pytest.mark.parametrize("thief", [{"user": "ben"}, {"user": "ana", "tenant": "t2"}])
def test_no_one_supersedes_another_owners_unit_and_a_failed_try_writes_nothing(thief):
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana")
        with pytest.raises(NotFoundError):
            memory.remember("a red boat", supersedes="u", **thief)
        assert memory.list(**thief) == []
        assert [hit.unit.text for hit in memory.search("boat", user="ana")] == ["a blue boat"]


def test_another_agent_cannot_update_a_unit_that_it_cannot_see():
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana", agent="cook")
        with pytest.raises(NotFoundError):
            memory.update("u", user="ana", agent="clerk", text="a red boat")
        assert memory.get("u", user="ana", agent="cook").text == "a blue boat"


def test_remembering_under_the_id_of_another_agents_unit_does_not_change_it():
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana", agent="cook")
        with suppress(HoldfastError):  # to refuse the id is as good as to keep two units apart
            memory.remember("a red boat", id="u", user="ana", agent="clerk")
        assert memory.get("u", user="ana", agent="cook").text == "a blue boat"


def test_an_agent_may_change_a_shared_unit_and_cannot_make_it_its_own():
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana")
        memory.remember("a red boat", id="u", user="ana", agent="clerk")
        assert memory.get("u", user="ana", agent="cook").text == "a red boat"


@pytest.mark.parametrize(("first", "then"), [(None, "s1"), ("s1", None), ("s1", "s2")])
def test_a_unit_stays_in_the_session_and_scope_of_its_first_version(first, then):
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana", session=first)
        before = memory.get("u", user="ana")
        memory.remember("a red boat", id="u", user="ana", session=then)
        after = memory.get("u", user="ana")
        assert (after.text, after.version) == ("a red boat", 2)
        assert (after.session, after.scope, after.position) == (before.session, before.scope, before.position)


def test_an_agent_cannot_supersede_a_unit_that_it_cannot_see():
    with opened() as memory:
        memory.remember("a blue boat", id="u", user="ana", agent="cook")
        with suppress(NotFoundError):
            memory.remember("a red boat", user="ana", agent="clerk", supersedes="u")
        assert [hit.unit.id for hit in memory.search("blue boat", user="ana", agent="cook")] == ["u"]


def test_neighbours_are_of_the_same_session_of_the_same_owner():
    with opened() as memory:
        for i in range(3):
            for user, session in (("ana", "s1"), ("ana", "s2"), ("ben", "s1")):
                memory.remember(f"turn {i}", id=f"{user}-{session}-{i}", user=user, session=session, at=NOW)
        for user, before, after in (("ana", "ana-s1-0", "ana-s1-2"), ("ben", None, None)):
            view = make_view(user=user)
            assert column(memory, "before", ["ana-s1-1"], view) == [before]
            assert column(memory, "after", ["ana-s1-1"], view) == [after]


# ------------------------------------------------------------------------------- an own unit and a global one


def test_an_own_unit_hides_a_global_one_of_the_same_id_in_every_verb():
    with opened(OPEN_WIDE) as memory:
        memory.remember("a boat for everyone", id="x", user="ben", scope="global")
        memory.remember("a boat of my own", id="x", user="ana")
        memory.remember("a boat for hire", id="y", user="ben", scope="global")
        assert memory.get("x", user="ana").text == "a boat of my own"
        found = {hit.unit.text for hit in memory.search("boat", user="ana")}
        assert found == {"a boat of my own", "a boat for hire"}
        assert {unit.text for unit in memory.list(user="ana")} == found
        assert memory.get("x", user="ben").text == "a boat for everyone"


def test_an_own_unit_that_an_agent_cannot_see_hides_no_global_one_from_it():
    with opened(OPEN_WIDE) as memory:
        memory.remember("a boat", id="x", user="ben", scope="global")
        memory.remember("boat boat boat boat", id="x", user="ana", agent="cook")
        keys = {"user": "ana", "agent": "clerk"}
        assert memory.get("x", **keys).text == "a boat"
        [hit] = memory.search("boat", **keys)
        assert hit.unit.text == "a boat"
        assert memory.why("boat", "x", **keys).standings[0].rank == 1
