"""Laws of facts, proofs, mention links and diversity through `Memory`: 5, 11, 12, 13, 16 and 18."""

import dataclasses
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders import NOW, ask, constants, costly, known_facts, later, make_view, opened
from holdfast import Contribution, Settings
from holdfast.kernels.closure import Limits
from holdfast.kernels.triples import SearchLimits
from holdfast.ranking import stages
from holdfast.retrieval.symbolic import SymbolicStrategy
from holdfast.store.sqlite import live_index
from holdfast.store.sqlite.shard import Shard
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.names import symbol, symbol_tokens

# Everything that is found is a hit, so that nothing hides behind a cut.
WIDE = {"refusal.enabled": False}
for _profile in ("hybrid", "thinking"):
    WIDE |= {f"{_profile}.min_score": 0.0, f"{_profile}.gap": 0.0, f"{_profile}.max_results": 1000}
EAGER = Settings.load(WIDE, environ={}).without_timeouts()
THINGS = ("Heron", "Plover", "Kestrel", "Linnet", "the gate", "the mill", "Upper Weir")
VERBS = ("uses", "provides", "depends on", "supports", "causes", "is useful for", "is part of", "does not use")
QUESTION = "Why does Heron matter for the mill and Upper Weir?"
KEYS = ("heron", "plover", "kestrel", "linnet", "gate", "mill", "upper weir")

sentences = st.builds(
    lambda one, verb, other: f"{one[0].upper()}{one[1:]} {verb} {other}.",
    st.sampled_from(THINGS), st.sampled_from(VERBS), st.sampled_from(THINGS),
)  # fmt: skip


def shown(result):
    """Return all that a search says, durations apart."""
    hits = [(hit.unit.id, hit.score, hit.rel, hit.merged_ids, hit.contributions, hit.notes) for hit in result]
    claims = [one.candidates for one in result.trace.results]
    return hits, claims


def asked(memory, profile, question=QUESTION, **owner):
    return memory.search(question, profile=profile, explain=True, **({"user": "ana"} | owner))


def names(memory, view, most, keys=None):
    """Return where names lead: {name: units} of those that are called so, and of those that mention it."""
    return tuple(
        ask(memory, lambda reading, more=more: reading.find_names(keys or KEYS, most, mentioned=more), view)
        for more in (False, True)
    )


# --------------------------------------------------------------------------------------------------- law 18

steps = st.lists(
    st.tuples(
        st.sampled_from(["remember", "remember", "update", "supersede", "reinstate", "forget", "global", "document"]),
        st.integers(0, 4),
        sentences,
    ),
    max_size=12,
)


def played(memory, changes):
    for number, (verb, i, text) in enumerate(changes):
        known = {unit.id for unit in memory.list(user="ana", limit=None, current_only=False)}
        unit_id = f"u{i}"
        if verb == "update" and unit_id in known:
            memory.update(unit_id, user="ana", text=text)
        elif verb == "supersede" and unit_id in known:
            memory.remember(text, id=f"n{number}", user="ana", supersedes=unit_id)
        elif verb == "reinstate" and unit_id in known:
            memory.reinstate(unit_id, user="ana")
        elif verb == "forget" and unit_id in known:
            memory.forget(ids=unit_id, user="ana")
        elif verb == "global":
            memory.remember(text, id=f"g{i}", user="ana", scope="global")
        elif verb == "document":
            memory.ingest(text, name=f"d{i}.md", user="ana")
        else:
            memory.remember(text, id=unit_id, user="ana")


def answers(facts):
    """Return what a collection of facts says to every question that a closure asks."""
    tokens = {token for key in KEYS for token in symbol_tokens(key)}
    return (
        [*facts.symbols_with(tokens, 100)],
        [*facts.about(KEYS, 100)],
        [*facts.about(KEYS, 1)],
        [*facts.between(KEYS[:3], KEYS[2:])],
    )


@costly
@given(steps)
def test_the_facts_followed_equal_those_rebuilt_and_those_of_a_snapshot(changes):
    with opened(EAGER) as memory:
        asked(memory, "thinking")  # loads the index, which then has to follow
        played(memory, changes)
        known_facts(memory)
        for owner in ("ana", ""):
            followed = memory.store._index._shard("local", owner)
            built = memory.store._index._built("local", owner)
            restored = Shard.from_arrays(followed.to_arrays(), symbol_tokens)
            assert followed.facts.rows() == built.facts.rows() == restored.facts.rows()
            assert answers(followed.facts) == answers(built.facts) == answers(restored.facts)


@costly
@given(steps)
def test_only_current_units_state_facts_and_they_state_all_that_they_say(changes):
    with opened(EAGER) as memory:
        played(memory, changes)
        current = {unit.id: unit for unit in memory.list(user="ana", limit=None)}
        found = known_facts(memory).about(KEYS, 1000)
        assert {source for fact in found for source in fact.sources} <= current.keys()
        with opened(EAGER) as fresh:
            for unit in current.values():
                fresh.remember(unit.text, user="ana", id=unit.id)
            again = known_facts(fresh).about(KEYS, 1000)
        assert {(fact.key, fact.sources) for fact in found} == {(fact.key, fact.sources) for fact in again}


@given(steps, st.integers(0, 11))
def test_the_past_states_the_facts_of_its_time(changes, moment):
    # Erasure reaches into the past, so it has no place here.
    changes = [change for change in changes if change[0] not in {"forget", "reinstate"}]
    # Two supersessions of one unit: see the next test.
    superseded = [i for verb, i, _ in changes if verb == "supersede"]
    assume(len(superseded) == len(set(superseded)))
    before = changes[:moment]
    clock = [NOW]
    with opened(EAGER, now=lambda: clock[0]) as memory, opened(EAGER, now=lambda: clock[0]) as then:
        played(memory, before)
        played(then, before)
        clock[0] = later(days=2)
        played(memory, changes[moment:])
        view = memory._view(user="ana", as_of=later(days=1))
        facts = [
            sorted(known_facts(one, view).about(KEYS, 1000), key=lambda fact: fact.key) for one in (memory, then)
        ]
        assert facts[0] == facts[1]


def test_a_unit_that_is_superseded_again_later_was_superseded_before():
    clock = [NOW]
    with opened(EAGER, now=lambda: clock[0]) as memory:
        memory.remember("Heron uses Plover.", user="ana", id="old")
        memory.remember("Kestrel sings.", user="ana", id="first", supersedes="old")
        clock[0] = later(days=2)
        memory.remember("Linnet sings.", user="ana", id="second", supersedes="old")
        then = memory._view(user="ana", as_of=later(days=1))
        assert [*known_facts(memory, then).about(["heron"], 10)] == []
        assert len(memory.search("Heron", user="ana", as_of=later(days=1))) == 0


def of_both(own, everyones, settings=EAGER):
    """Return a memory with facts of the user's own and facts of everyone's."""
    memory = opened(settings)
    for scope, said in (("user", own), ("global", everyones)):
        for i, (subject, relation, other, confidence) in enumerate(said):
            fact = {"subject": subject, "relation": relation, "object": other, "confidence": confidence}
            unit = {"claim": f"Note {scope} {i}.", "id": f"{scope}{i}", **fact}
            memory.remember(unit, user="ana", scope=scope)
    return memory


LESS, MORE = ("hub", "uses", "less", 0.5), ("hub", "uses", "more", 0.9)


def test_the_facts_of_ones_own_and_everyones_answer_as_one_collection():
    with of_both([LESS, MORE], []) as together, of_both([LESS], [MORE]) as apart:
        keys = [[fact.key for fact in known_facts(one).about(["hub"], 1)] for one in (together, apart)]
        assert keys[0] == [MORE[:3]]
        assert keys[1] == keys[0]


CROWD = [("Atlas", "provides", f"ware {i}", 1.0) for i in range(20)]
WAY = [("heron desk", "uses", "Atlas", 0.9), ("Atlas", "provides", "tide tables", 0.9)]
GOAL = ("tide tables", "relevant_for", "night sailing", 0.9)


def test_a_bridge_from_ones_own_hub_to_what_is_everyones_is_kept():
    settings = Settings.load(WIDE, environ={}).without_timeouts()
    strategy = SymbolicStrategy(settings)
    strategy._limits = Limits(reach=SearchLimits(fan_out=4))  # of the crowd, few are read
    found = []
    for own, everyones in (([*CROWD, *WAY, GOAL], []), ([*CROWD, *WAY], [GOAL])):
        with of_both(own, everyones, settings) as memory:
            query = asked(memory, "thinking", "What is the heron desk good for?").trace.query
            derived = ask(memory, lambda reading, query=query: strategy.prove(query, reading)).derived
            found.append(("heron desk", "relevant_for", "night sailing") in [proof.key for proof in derived])
    assert found[0]
    assert found[1]


# --------------------------------------------------------------------------------------------------- law 13

owned = st.lists(
    st.tuples(
        st.sampled_from(["t1", "t2"]),
        st.sampled_from(["ana", "ben"]),
        st.sampled_from([None, "cook", "clerk"]),
        sentences,
    ),
    max_size=12,
)


def remembered(memory, said, only=lambda *_: True):
    for number, (tenant, user, agent, text) in enumerate(said):
        if only(tenant, user, agent):
            at = later(minutes=number)
            memory.remember(text, tenant=tenant, user=user, agent=agent, id=f"u{number}", at=at)


@costly
@given(owned)
def test_a_users_answer_does_not_depend_on_what_others_have(said):
    with opened(EAGER, embedder=HashEmbedder(64)) as shared, opened(EAGER, embedder=HashEmbedder(64)) as alone:
        remembered(shared, said)
        remembered(alone, said, lambda tenant, user, _: (tenant, user) == ("t1", "ana"))
        owner = {"tenant": "t1", "user": "ana"}
        for profile in ("thinking", "hybrid"):
            assert shown(asked(shared, profile, **owner)) == shown(asked(alone, profile, **owner))
        view = make_view(**owner)
        assert answers(known_facts(shared, view)) == answers(known_facts(alone, view))
        assert names(shared, view, 5) == names(alone, view, 5)


@costly
@given(owned, st.sampled_from(["cook", "clerk"]))
def test_an_agents_proofs_and_links_rest_on_what_it_may_see(said, agent):
    owner = {"tenant": "t1", "user": "ana", "agent": agent}
    seen = {f"u{i}" for i, one in enumerate(said) if one[0] == "t1" and one[1] == "ana" and one[2] in (None, agent)}
    with opened(EAGER) as shared, opened(EAGER) as alone:
        remembered(shared, said)
        remembered(alone, said, lambda tenant, user, own: (tenant, user) == ("t1", "ana") and own in (None, agent))
        view = make_view(**owner)
        assert answers(known_facts(shared, view)) == answers(known_facts(alone, view))
        query = asked(shared, "thinking", **owner).trace.query
        strategy = SymbolicStrategy(EAGER)
        one, other = (ask(memory, lambda reading: strategy.prove(query, reading), view) for memory in (shared, alone))
        assert one == other
        for leads in names(shared, view, 100):
            assert {target for targets in leads.values() for target in targets} <= seen
        for profile in ("thinking", "hybrid"):
            assert {hit.unit.id for hit in asked(shared, profile, **owner)} <= seen


# --------------------------------------------------------------------------------------------- laws 5, 11, 12

texts = st.lists(sentences, min_size=1, max_size=2).map(" ".join)
stores = st.lists(st.tuples(texts, st.sampled_from(["", "Heron", "Upper Weir", "the mill"])), min_size=1, max_size=10)


def filled(memory, said, order):
    for i in order:
        text, topic = said[i]
        unit = {"claim": text, "topic": topic, "id": f"u{i}", "at": later(minutes=i)}
        memory.remember(unit, user="ana")
    return memory


@costly
@given(stores, st.data())
def test_proofs_and_links_do_not_depend_on_the_order_of_writing(said, data):
    order = data.draw(st.permutations(range(len(said))))
    # What a change replaces depends on what is there already; that has tests of its own.
    settings = dataclasses.replace(EAGER, changes=Settings.reference().changes)
    with (
        opened(settings, embedder=HashEmbedder(64)) as one,
        opened(settings, embedder=HashEmbedder(64)) as other,
    ):
        filled(one, said, range(len(said)))
        filled(other, said, order)
        for profile in ("thinking", "hybrid"):
            first = shown(asked(one, profile))
            assert first == shown(asked(one, profile))
            assert first == shown(asked(other, profile))


@costly
@given(stores)
def test_every_hit_is_explained_bit_for_bit_and_lies_in_its_range(said):
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        filled(memory, said, range(len(said)))
        for profile in ("thinking", "hybrid"):
            result = asked(memory, profile)
            for hit in result:
                tree = Contribution.from_json(json.loads(json.dumps(hit.contributions.to_json())))
                assert tree.compose() == hit.score
                assert 0.0 <= hit.rel <= 1.0
                assert profile == "thinking" or 0.0 <= hit.score <= 1.0
            assert [hit.score for hit in result] == sorted((hit.score for hit in result), reverse=True)
            for one in result.trace.results:
                assert all(0.0 <= claim.normalized_score <= 1.0 for claim in one.candidates)


OFF = {"stages.mentions": 0.0, "stages.shared_names": 0.0, "stages.diversity": 0.0}
# The other way to say it: no name is rare.
NOBODY = {"RARE_NAME_UNITS": 0}


@costly
@given(stores)
def test_links_and_diversity_switched_off_leave_the_ranking_as_it_was(said):
    found = []
    for off, bounds in ((OFF, {}), ({"stages.diversity": 0.0}, NOBODY)):
        settings = Settings.load(WIDE | off, environ={}).without_timeouts()
        with constants(stages, **bounds), opened(settings, embedder=HashEmbedder(64)) as memory:
            filled(memory, said, range(len(said)))
            result = asked(memory, "hybrid")
            seen = {one.stage for candidate in result.trace.candidates for one in candidate.adjustments}
            assert seen.isdisjoint({"mentions", "diversity"})
            found.append(shown(result))
    assert found[0] == found[1]


@costly
@given(stores)
def test_links_only_lift_and_diversity_only_lowers(said):
    def rels(changes):
        settings = Settings.load(WIDE | OFF | changes, environ={}).without_timeouts()
        with opened(settings, embedder=HashEmbedder(64)) as memory:
            filled(memory, said, range(len(said)))
            return {hit.unit.id: hit.rel for hit in asked(memory, "hybrid")}

    plain = rels({})
    linked = rels({"stages.mentions": 0.65, "stages.shared_names": 0.5})
    diverse = rels({"stages.diversity": 0.5})
    assert plain.keys() <= linked.keys()
    assert all(linked[unit_id] >= rel for unit_id, rel in plain.items())
    assert diverse.keys() == plain.keys()
    assert all(rel <= plain[unit_id] for unit_id, rel in diverse.items())


def test_a_linked_and_a_diversified_hit_are_explained_by_their_stages():
    said = [
        ("Heron keeps its keys at Upper Weir in a red tin.", ""),
        ("The sluice is opened by hand.", "Upper Weir"),
        ("Heron keeps its keys at Upper Weir in a red tin!", ""),
    ]
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        filled(memory, said, range(3))
        found = {hit.unit.id: hit for hit in asked(memory, "hybrid", "Where does Heron keep its keys?")}
    stages = {unit_id: json.dumps(hit.contributions.to_json()) for unit_id, hit in found.items()}
    assert "which names it: upper weir" in stages["u1"]
    assert sum("says the same" in tree for tree in stages.values()) == 1
    for hit in found.values():
        assert hit.contributions.compose() == hit.score


# --------------------------------------------------------------------------------------------------- law 16


@pytest.fixture
def saved_always(monkeypatch):
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 0)


def bytes_beside(path):
    return {file.name: file.read_bytes().lower() for file in path.parent.iterdir() if file.is_file()}


@pytest.mark.parametrize("by", ["document", "everything"])
def test_what_is_forgotten_leaves_no_fact_no_name_and_no_symbol_on_disk(tmp_path, saved_always, by):
    path = tmp_path / "m.db"
    secret = "Brackenthwaite uses Ottermill. See Ottermill Grange.\n"
    with opened(EAGER, path=path) as memory:
        memory.remember("Heron uses Plover.", user="ana", id="kept")
        memory.ingest(f"# Ottermill\n\n{secret}", name="gone.md", user="ana")
        memory.search("Brackenthwaite", user="ana", profile="thinking")
    assert any(b"ottermill grange" in data for name, data in bytes_beside(path).items() if name != "m.db")
    assert any(b'"brackenthwaite"' in data for name, data in bytes_beside(path).items() if name != "m.db")
    with opened(EAGER, path=path) as memory:
        wanted = {
            "document": {"document": "gone.md"},
            "everything": {"all": True},
        }
        memory.forget(user="ana", **wanted[by])
        facts = known_facts(memory)
        assert not facts.symbols_with(["brackenthwaite", "ottermill"], 10)
        assert names(memory, make_view(), 10, ("ottermill", "ottermill grange")) == ({}, {})
        memory.search("Heron", user="ana", profile="thinking")
    files = bytes_beside(path)
    assert len(files) >= 1
    for data in files.values():
        assert b"brackenthwaite" not in data
        assert b"ottermill" not in data
    with opened(EAGER, path=path) as memory:
        found = memory.search("What does Heron use?", user="ana", profile="thinking")
        assert [hit.unit.id for hit in found] == ([] if by == "everything" else ["kept"])


def test_a_forgotten_turn_leaves_no_fact_in_a_snapshot_that_is_written_next(tmp_path, saved_always):
    path = tmp_path / "m.db"
    with opened(EAGER, path=path) as memory:
        memory.remember("Heron uses Plover.", user="ana", id="kept")
        memory.remember("Brackenthwaite uses Plover.", user="ana", id="gone")
        memory.search("Plover", user="ana", profile="thinking")
        memory.forget(user="ana", ids="gone")
        assert [fact.sources for fact in known_facts(memory).about(["plover"], 10)] == [("kept",)]
        memory.search("Plover", user="ana", profile="thinking")
    for data in bytes_beside(path).values():
        assert b"brackenthwaite" not in data


def test_names_of_the_tests_are_symbols():
    assert tuple(symbol(thing) for thing in THINGS) == KEYS
