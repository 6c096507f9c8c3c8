"""The search index (law 18): after any changes it equals one rebuilt, and its proposals lose no winner."""

import random
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW,
    ask,
    column,
    costly,
    expired_after,
    later,
    make_unit,
    make_view,
    opened,
    patient,
    propose,
    read_shards,
)
from holdfast.kernels import bm25
from holdfast.settings import AnalysisSettings, Settings
from holdfast.store import rows
from holdfast.store.queries import LexicalQuery
from holdfast.store.sqlite import postings
from holdfast.store.sqlite import shard as index
from holdfast.store.visibility import agent_matches, hidden_reason
from holdfast.text import analyse
from holdfast.types import FIELDS, ROLES

# Uneven on purpose: frequent words are worth little, so that a proposer may stop before it has read them.
WORDS = ["oak"] * 12 + ["elm"] * 6 + ["fig"] * 3 + ["ash", "yew"]
TERMS = ("oak", "elm", "fig", "ash", "yew", "gum")
ALL_FIELDS = tuple(Settings().lexical.weights[name] for name in FIELDS)
CLAIM_ONLY = tuple(float(name == "claim") for name in FIELDS)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
# Names, for what units are called and what they mention: some are shared, some are nobody's.
NAMES = ["Lower Mill", "Upper Mill", "Kestrel Quay"]
KEYS = ("lower mill", "upper mill", "kestrel quay", "nobody here")
named_texts = st.tuples(texts, st.lists(st.sampled_from(NAMES), max_size=2)).map(
    lambda said: ", by the ".join([said[0], *said[1]])
)


@contextmanager
def folding_at(tail):
    """Let the tail be folded into the block as soon as it holds more than `tail` postings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_SMALL_TAIL", tail)
        patch.setattr(postings, "_TAIL_SHARE", 0.0)
        yield


tails = st.sampled_from([0, 7, 40, 10_000])


def analysed(unit):
    return analyse(unit, AnalysisSettings())


@st.composite
def units(draw, unit_id):
    role = draw(st.sampled_from(ROLES))
    return make_unit(
        unit_id,
        draw(named_texts),
        role=role,
        topic=draw(st.just("") | texts | st.sampled_from(NAMES)),
        session=draw(st.sampled_from([None, "s1", "s2"])),
        agent=draw(st.sampled_from([None, "cook", "clerk"])),
        speaker=draw(st.sampled_from(["", "Berta", "Carla"])),
        valid_to=draw(st.sampled_from([None, None, later(hours=-1), later(hours=1)])),
    )


# An operation on one of nine keys: a unit to add or to put in place of the last, or None to remove it.
operations = st.lists(
    st.integers(0, 8).flatmap(lambda key: st.tuples(st.just(key), st.none() | units(f"u{key}"), st.booleans())),
    max_size=25,
)


def applied(changes):
    """Return the shard that the changes made, and what is left: {key: (unit, superseded)}."""
    shard, left = index.Shard(), {}
    for key, unit, superseded in changes:
        if unit is None:
            shard.remove(key)
            left.pop(key, None)
        else:
            shard.add(key, unit, analysed(unit), content=0, superseded=superseded)
            left[key] = (unit, superseded)
    return shard, left


def rebuilt(left, order=sorted):
    shard = index.Shard()
    with shard.bulk():
        for key in order(left):
            unit, superseded = left[key]
            shard.add(key, unit, analysed(unit), content=0, superseded=superseded)
    return shard


def lexical_query(*terms):
    return LexicalQuery(terms, ALL_FIELDS, 1.2, 0.75, frozenset(), 1.3)


def evidence_of(shards, terms, ids):
    return read_shards(shards).evidence(lexical_query(*terms), ids)


@st.composite
def lexical_queries(draw):
    return LexicalQuery(
        terms=tuple(draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=5, unique=True))),
        weights=draw(st.sampled_from([ALL_FIELDS, CLAIM_ONLY])),
        k1=draw(st.sampled_from([1.2, 0.0])),
        b=draw(st.sampled_from([0.75, 0.0, 1.0])),
        boosted_roles=frozenset(draw(st.sets(st.sampled_from(ROLES), max_size=3))),
        role_boost=1.3,
    )


views = st.builds(
    make_view,
    agent=st.sampled_from([None, None, "cook", "nobody"]),
    session=st.just("s1"),
    only_session=st.booleans(),
    current_only=st.booleans(),
)


def names_of(shard):
    """Return whom every name leads to, whatever the view: {(kind, key): ids}."""
    kinds = (rows.CALLED, rows.NAMING)
    return {
        (kind, key): sorted(shard.ids[place] for place in shard.named(kind, key)) for kind in kinds for key in KEYS
    }


def assert_same_evidence(first, second, ids):
    one, two = (evidence_of([shard], TERMS, ids) for shard in (first, second))
    assert one.ids == two.ids
    assert one.roles == two.roles
    assert (one.unit_count, one.df, one.field_totals) == (two.unit_count, two.df, two.field_totals)
    assert np.array_equal(one.tf, two.tf)
    assert np.array_equal(one.lengths, two.lengths)
    assert first.speakers == second.speakers
    assert names_of(first) == names_of(second)
    for name in ("superseded", "anchor_density", "expires", "valid_from", "valid_to"):
        columns = [
            {key: s.column(name)[place].item() for key, place in s.place_of_id.items()} for s in (first, second)
        ]
        assert columns[0] == columns[1]


@given(operations, tails, lexical_queries(), views, st.integers(1, 10))
def test_a_changed_shard_equals_one_rebuilt_from_what_is_left(changes, tail, query, view, depth):
    with folding_at(tail):
        shard, left = applied(changes)
    fresh = rebuilt(left)
    assert_same_evidence(shard, fresh, [f"u{key}" for key in range(9)])
    for order in (sorted, lambda keys: sorted(keys, reverse=True)):
        other = rebuilt(left, order)
        proposals = [read_shards([s], view).propose(query, depth, patient()) for s in (shard, other)]
        assert sorted(proposals[0].ids) == sorted(proposals[1].ids)


@given(operations, tails)
def test_the_integers_behind_the_scores_are_those_of_the_words_that_are_left(changes, tail):
    with folding_at(tail):
        shard, left = applied(changes)
    words = {unit.id: analysed(unit).terms for unit, _ in left.values()}
    found = evidence_of([shard], TERMS, [*words, "unknown"])
    assert set(found.ids) == set(words)
    assert found.unit_count == len(words)
    assert found.df == tuple(sum(any(t in field for field in unit) for unit in words.values()) for t in TERMS)
    assert found.field_totals == tuple(sum(len(unit[f]) for unit in words.values()) for f in range(len(FIELDS)))
    for row, unit_id in enumerate(found.ids):
        assert found.lengths[row].tolist() == [len(field) for field in words[unit_id]]
        assert found.tf[row].tolist() == [[field.count(t) for t in TERMS] for field in words[unit_id]]


@given(operations, tails)
def test_names_lead_to_the_units_that_are_left_and_to_no_others(changes, tail):
    with folding_at(tail):
        shard, left = applied(changes)
    found = {unit.id: analysed(unit) for unit, _ in left.values()}
    for kind, keys_of in ((rows.CALLED, lambda a: a.titles), (rows.NAMING, lambda a: a.mentions)):
        for key in KEYS:
            assert names_of(shard)[kind, key] == sorted(i for i, one in found.items() if key in keys_of(one))


@given(operations, tails)
def test_a_saved_shard_comes_back_with_its_names(changes, tail):
    with folding_at(tail):
        shard, left = applied(changes)
    again = index.Shard.from_arrays(shard.to_arrays())
    assert_same_evidence(shard, again, [unit.id for unit, _ in left.values()])


@given(operations, tails, views, st.integers(0, 4))
def test_a_name_leads_to_what_the_view_sees_and_is_as_rare_as_among_all(changes, tail, view, most):
    with folding_at(tail):
        shard, left = applied(changes)
    eligible = {shard.ids[place] for place in np.flatnonzero(shard.eligible(view, None))}
    for key in KEYS:
        all_called = {u.id for u, _ in left.values() if key in analysed(u).titles}
        sharing = all_called | {u.id for u, _ in left.values() if key in analysed(u).mentions}
        for mentioned, ids in ((False, all_called), (True, sharing)):
            found = read_shards([shard], view).find_names([*KEYS, key], most, mentioned=mentioned)
            assert found.get(key, ()) == (tuple(sorted(ids & eligible)) if len(ids) <= most else ())


def test_removing_an_unknown_key_changes_nothing():
    shard = rebuilt({1: (make_unit(text="oak"), False)})
    shard.remove(99)
    assert evidence_of([shard], ("oak",), ["u1"]).df == (1,)


# ------------------------------------------------------------------------------------------------ proposals


def exhaustive(shards, query, ids):
    """Score every unit with the exact kernel: {id: score}."""
    found = evidence_of(shards, query.terms, ids)
    idfs = np.array([bm25.idf(found.unit_count, df) for df in found.df])
    boosts = np.where([role in query.boosted_roles for role in found.roles], query.role_boost, 1.0)
    weights = np.array(query.weights)
    scores = bm25.scores(found.tf, found.lengths, idfs, found.averages, weights, boosts, query.k1, query.b)
    return dict(zip(found.ids, scores.tolist(), strict=True))


def winners(scores, depth):
    """Return the ids of the `depth` best scores above zero, with every tie of the last."""
    above = sorted((score for score in scores.values() if score > 0.0), reverse=True)
    bar = above[min(depth, len(above)) - 1] if above else 0.0
    return {unit_id for unit_id, score in scores.items() if score > 0.0 and score >= bar}


def keyed(prefix, size):
    return st.lists(texts, max_size=size).map(
        lambda said: {i: (make_unit(f"{prefix}{i}", text, scope="user"), False) for i, text in enumerate(said)}
    )


@costly
@given(keyed("own", 40), keyed("shared", 15), lexical_queries(), st.data())
def test_no_member_of_the_exact_best_is_lost_whatever_the_depth(own, shared, query, data):
    shards = [rebuilt(own), rebuilt(shared)]
    ids = [unit.id for unit, _ in (*own.values(), *shared.values())]
    scores = exhaustive(shards, query, ids)
    for depth in data.draw(st.sets(st.integers(1, len(ids) + 1), min_size=1, max_size=6)) | {1}:
        proposal = read_shards(shards).propose(query, depth, patient())
        assert not proposal.exhausted
        assert len(set(proposal.ids)) == len(proposal.ids)
        assert winners(scores, depth) <= set(proposal.ids) <= {key for key, score in scores.items() if score > 0.0}


@given(st.integers(0, 2**32), st.permutations(TERMS), st.sampled_from([0.75, 0.0]), st.sampled_from([1.3, 9.0]))
def test_no_winner_is_lost_when_frequent_words_are_not_read_to_the_end(seed, terms, b, boost):
    # A hundred units, and words that are ten times rarer from one to the next: the proposer does stop early here.
    chance = random.Random(seed)
    said = [chance.choices(TERMS, [1000, 300, 30, 10, 3, 1], k=chance.randint(1, 5)) for _ in range(100)]
    roles = chance.choices(["Narrative", "Definition"], [9, 1], k=100)
    left = {i: (make_unit(f"u{i}", " ".join(words), role=roles[i]), False) for i, words in enumerate(said)}
    shard = rebuilt(left)
    query = LexicalQuery(tuple(terms), CLAIM_ONLY, 1.2, b, frozenset({"Definition"}), boost)
    scores = exhaustive([shard], query, [unit.id for unit, _ in left.values()])
    for depth in (1, 2, 3, 5, 8, 20, 100):
        proposal = read_shards([shard]).propose(query, depth, patient())
        assert winners(scores, depth) <= set(proposal.ids)


@given(keyed("u", 12), lexical_queries(), st.sets(st.integers(0, 12)), st.integers(1, 4))
def test_only_allowed_units_are_proposed_and_none_of_their_best_is_lost(left, query, allowed, depth):
    shard = rebuilt(left)
    scores = exhaustive([shard], query, [unit.id for key, (unit, _) in left.items() if key in allowed])
    proposal = read_shards([shard], allowed=frozenset(allowed)).propose(query, depth, patient())
    assert winners(scores, depth) <= set(proposal.ids) <= set(scores)


def test_a_global_unit_hidden_by_an_own_one_does_not_crowd_out_the_next_best():
    own = rebuilt({1: (make_unit("a", "elm"), False)})
    shared = rebuilt({2: (make_unit("a", "oak oak oak"), False), 3: (make_unit("b", "oak elm fig"), False)})
    query = LexicalQuery(("oak",), CLAIM_ONLY, 1.2, 0.75, frozenset(), 1.3)
    assert set(read_shards([own, shared]).propose(query, 1, patient()).ids) == {"b"}


@given(keyed("u", 25), lexical_queries().filter(lambda query: len(query.terms) > 1), st.integers(0, 4))
def test_when_time_runs_out_what_there_is_is_returned_and_said_to_be_partial(left, query, checks):
    shard, view = rebuilt(left), make_view()
    everything = read_shards([shard], view).propose(query, 1000, patient())
    partial = read_shards([shard], view).propose(query, 1000, expired_after(checks))
    assert set(partial.ids) <= set(everything.ids)
    assert partial.exhausted == (bool(left) and checks < len(query.terms) - 1)  # where nothing is, nothing is missed
    if not partial.exhausted:
        assert set(partial.ids) == set(everything.ids)


@given(operations, operations, tails)
def test_shards_do_not_know_of_each_other(mine, theirs, tail):
    with folding_at(tail):
        alone, left = applied(mine)
        beside, others = index.Shard(), index.Shard()
        for i in range(max(len(mine), len(theirs))):
            for shard, changes in ((beside, mine), (others, theirs)):
                if i < len(changes):
                    key, unit, superseded = changes[i]
                    if unit is None:
                        shard.remove(key)
                    else:
                        shard.add(key, unit, analysed(unit), content=0, superseded=superseded)
    assert_same_evidence(alone, beside, [unit.id for unit, _ in left.values()])


# ----------------------------------------------------------------------------------- the index in its store

moments = st.sampled_from([None, later(hours=-1), NOW, later(hours=1)])


@st.composite
def histories(draw):
    """Draw the arguments of `remember` for units that may expire, be pinned, be valid for a time, or supersede."""
    said = []
    for i in range(draw(st.integers(1, 8))):
        fields = {
            "session": draw(st.sampled_from([None, "s1", "s2"])),
            "agent": draw(st.sampled_from([None, "cook", "clerk"])),
            "ttl": draw(st.sampled_from([None, 60, 7200])),
            "pinned": draw(st.booleans()),
            "valid_from": draw(moments),
            "valid_to": draw(moments),
        }
        # An agent can supersede what it can see: its own units and shared ones; a call that names no agent sees all.
        seen = [key for key, _, others in said if fields["agent"] in (None, others["agent"]) or not others["agent"]]
        if seen and draw(st.booleans()):
            fields["supersedes"] = draw(st.sampled_from(seen))
        said.append((f"u{i}", f"oak {draw(texts)}", fields))
    return said


@given(histories(), st.builds(dict, agent=st.sampled_from([None, "cook"]), current_only=st.booleans()), st.booleans())
def test_search_list_and_the_spoken_reason_hide_the_same_units(said, wanted, only_session):
    # Remembered an hour ago, so that a ttl of a minute has run out by now.
    clock = iter([later(hours=-1)] * len(said))
    with opened(now=lambda: next(clock, NOW)) as memory:
        for unit_id, text, fields in said:
            memory.remember(text, id=unit_id, user="ana", **fields)
        session = "s1" if only_session else None
        view = make_view(**wanted, session=session, only_session=only_session)
        listed = {unit.id for unit in memory.list(user="ana", session=session, limit=None, **wanted)}
        proposed = set(propose(memory, lexical_query("oak"), 100, view))
        stored = ask(memory, lambda reading: reading.units([unit_id for unit_id, _, _ in said]))
        superseded = {target for unit in stored.values() for target in unit.supersedes}
        spoken = {
            unit.id
            for unit in stored.values()
            if agent_matches(view, unit)
            and hidden_reason(view, unit, "another" if unit.id in superseded else None) is None
        }
        why = dict(zip(stored, column(memory, "hidden", [*stored], view), strict=True))
        seen = {unit_id for unit_id in stored if why[unit_id] is None}
    assert listed == proposed == spoken == seen


@costly
@given(
    st.lists(st.tuples(st.integers(0, 5), texts, st.sampled_from(["remember", "update", "supersede", "global"]))),
    tails,
)
def test_the_stores_index_equals_one_loaded_afresh_after_any_history(steps, tail):
    with folding_at(tail), opened() as memory:
        memory.search("oak", user="ana")  # loads the index, which then has to follow
        for number, (i, text, verb) in enumerate(steps):
            known = {unit.id for unit in memory.list(user="ana", limit=None, current_only=False)}
            if verb == "update" and f"u{i}" in known:
                memory.update(f"u{i}", user="ana", text=text)
            elif verb == "supersede" and f"u{i}" in known:
                memory.remember(text, id=f"n{number}", user="ana", supersedes=f"u{i}")
            elif verb == "global":
                memory.remember(text, id=f"g{i}", user="ana", scope="global")
            else:
                memory.remember(text, id=f"u{i}", user="ana")
        store = memory.store
        for owner in ("ana", ""):
            followed, fresh = store._index._shard("local", owner), store._index._built("local", owner)
            assert_same_evidence(followed, fresh, sorted(fresh.place_of_id))
            assert sorted(followed.place_of_id) == sorted(fresh.place_of_id)
            for view in (make_view(), make_view(current_only=False)):
                eligible = [
                    {shard.ids[place] for place in np.flatnonzero(shard.eligible(view, None))}
                    for shard in (followed, fresh)
                ]
                assert eligible[0] == eligible[1]


def speakers(memory):
    return ask(memory, lambda reading: reading.names("speaker"))


def test_the_names_that_speak_are_those_of_a_rebuilt_index_after_a_speaker_has_changed(tmp_path):
    path = tmp_path / "speakers.db"
    with opened(path=path) as memory:
        memory.remember("the oak is old", id="u", user="ana", speaker="Berta")
        assert speakers(memory) == ("Berta",)
        memory.remember("the oak is old", id="u", user="ana", speaker="Carla")
        followed = speakers(memory)
    with opened(path=path) as memory:
        assert followed == speakers(memory) == ("Carla",)


def test_a_second_memory_on_the_same_file_follows_the_first(tmp_path):
    path = tmp_path / "shared.db"
    with opened(path=path) as one, opened(path=path) as two:
        assert len(two.search("walnut", user="ana")) == 0
        one.remember("a walnut desk", id="w", user="ana")
        assert [hit.unit.id for hit in two.search("walnut", user="ana")] == ["w"]
        two.update("w", user="ana", text="a cherry desk")
        assert len(one.search("walnut", user="ana")) == 0
        assert [hit.unit.id for hit in one.search("cherry", user="ana")] == ["w"]
