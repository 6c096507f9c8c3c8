"""Found links: worked numbers, laws, and what they do to a search; and near-duplicates that step back."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, constants, make_pool, make_unit, opened
from holdfast import Settings
from holdfast.errors import SettingsError
from holdfast.ranking import stages
from holdfast.ranking.pool import StageInputs
from holdfast.ranking.stages import choose_parents, diversify, is_same, raise_mentioned
from holdfast.settings import StageSettings
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import Adjustment, Mention, QueryProfile

DEFAULT = StageSettings()
OFF = {"mentions": 0.0, "shared_names": 0.0}
EAGER = Settings.load(
    {"refusal.enabled": False, "hybrid.min_score": 0.0, "hybrid.gap": 0.0}, environ={}
).without_timeouts()


def turn(key, rel, text="said", **fields):
    return make_unit(key, text, **fields), rel


def linked(rows, mentions, settings=DEFAULT, full_marks=2.0, **more):
    """Return what links make of a pool of (unit, relevance)."""
    pool = make_pool(rows, full_marks=full_marks, **more)
    return pool.apply(raise_mentioned(pool, mentions, settings)).sorted().candidates()


def diversified(rows, settings=DEFAULT, most=64, full_marks=2.0):
    """Return what is made of a pool of (unit, relevance) when repetitions step back."""
    units = {unit.id: unit for unit, _ in rows}
    staging = StageInputs(
        QueryProfile(text="?", terms=()), settings, most, lambda ids: {i: units[i] for i in ids}, None, None
    )
    return diversify(make_pool(rows, full_marks=full_marks), staging).candidates()


def rels(candidates):
    return {one.unit_id: one.rel for one in candidates}


# ---------------------------------------------------------------------------------------------------- links


def test_a_unit_takes_over_from_a_better_one_that_names_it():
    pool = [turn("p", 0.8), turn("t", 0.2), turn("x", 0.5)]
    found = linked(pool, [Mention("p", "t", "lower mill", called=True)])
    assert [one.unit_id for one in found] == ["p", "t", "x"]
    target = found[1]
    assert target.rel == pytest.approx(0.35 * 0.2 + 0.65 * 0.8, rel=1e-15)
    assert target.fused == target.rel * 2.0
    because = "rel of p, which names it: lower mill"
    assert target.adjustments == (Adjustment("mentions", 0.65, 0.8, because),)


@pytest.mark.parametrize(("characters", "taken"), [(2000, 0.25), (4000, 0.1), (6000, 0.05)])
def test_a_shared_name_says_less_the_longer_the_unit_is(characters, taken):
    pool = [turn("p", 0.8), turn("t", 0.2, "x" * characters)]
    [_, target] = linked(pool, [Mention("p", "t", "lower mill", called=False)], full_marks=1.0)
    assert target.adjustments[0].weight == pytest.approx(taken, rel=1e-15)


@pytest.mark.parametrize(
    ("parent", "target", "lifted"),
    [
        ({"session": "s1"}, {"session": "s1"}, False),
        ({"session": "s1"}, {"session": "s2"}, True),
        ({}, {}, True),
        ({"session": "s1", "kind": "knowledge"}, {"session": "s1", "kind": "knowledge"}, True),
    ],
)
def test_turns_of_one_session_are_not_linked_by_a_shared_name(parent, target, lifted):
    pool = [turn("p", 0.8, **parent), turn("t", 0.2, **target)]
    found = linked(pool, [Mention("p", "t", "lower mill", called=False)], full_marks=1.0)
    assert (rels(found)["t"] > 0.2) is lifted
    assert rels(linked(pool, [Mention("p", "t", "lower mill", called=True)], full_marks=1.0))["t"] > 0.2


def test_the_parent_that_lifts_most_counts_and_a_copy_stands_for_its_original():
    pool = [turn("p", 0.8), turn("q", 0.7), turn("t", 0.2)]
    mentions = [
        Mention("p", "t2", "lower mill", called=False),
        Mention("q", "t", "upper mill", called=True),
        Mention("gone", "t", "kestrel", called=True),
        Mention("p", "gone", "kestrel", called=True),
    ]
    target = linked(pool, mentions, merged={"t": ("t2",)})[-1]
    assert [(change.weight, change.signal) for change in target.adjustments] == [(0.65, 0.7)]


def chosen(rows, **settings):
    """Return the ids of the parents that links are looked for in."""
    units = {unit.id: unit for unit, _ in rows}
    staging = StageInputs(
        QueryProfile(text="?", terms=()),
        StageSettings(**settings),
        9,
        lambda ids: {i: units[i] for i in ids},
        None,
        None,
    )
    return [unit.id for unit in choose_parents(make_pool(rows), staging)]


def test_two_of_one_title_are_parents_and_the_next_best_of_others():
    alike = [turn(f"a{i}", 0.9, topic="Kestrel") for i in range(4)]
    rows = [*alike, turn("b", 0.5, topic="Lindow"), turn("c", 0.4), turn("d", 0.3), turn("e", 0.2), turn("f", 0.0)]
    assert chosen(rows) == ["a0", "a1", "b", "c", "d"]
    assert chosen(alike) == ["a0", "a1"]
    assert chosen([turn("f", 0.0)]) == chosen(rows, **OFF) == []


def test_few_rows_are_looked_at_for_parents():
    rows = [*(turn(f"a{i}", 0.9, topic="Kestrel") for i in range(6)), turn("b", 0.5, topic="Lindow")]
    with constants(stages, LINK_PARENTS=3):
        assert chosen(rows) == ["a0", "a1", "b"]
    with constants(stages, LINK_PARENTS=2):
        assert chosen(rows) == ["a0", "a1"]


def test_initials_lead_to_whom_they_name():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        notes = [
            {"topic": "Pottery school", "text": "The pottery school was founded by J. R. Hale.", "id": "school"},
            {"topic": "John Hale", "text": "He comes from a village near Lindow.", "id": "john"},
            {"topic": "Hale", "text": "A village near the sea.", "id": "hale"},
        ]
        memory.remember(notes, user="ana")
        found = memory.search(QUESTION, user="ana", explain=True)
        named = {hit.unit.id: hit.contributions.find("mentions") for hit in found}
        assert [unit_id for unit_id, part in named.items() if part is not None] == ["john"]


shares = st.floats(0.0, 1.0)
pools = st.lists(shares, min_size=1, max_size=6).map(
    lambda found: [turn(f"u{i}", rel) for i, rel in enumerate(found)]
)
names = st.builds(Mention, *[st.sampled_from([f"u{i}" for i in range(6)])] * 2, st.just("lower mill"), st.booleans())


@given(pools, st.lists(names, max_size=8), shares, shares)
def test_links_only_lift_never_above_the_best_parent_and_keep_a_total_order(pool, mentions, called, shared):
    settings = StageSettings(mentions=called, shared_names=shared)
    found = linked(pool, mentions, settings)
    before, after = {unit.id: rel for unit, rel in pool}, rels(found)
    best = max(before.values())
    assert before.keys() == after.keys()
    assert all(before[key] <= after[key] <= best <= 1.0 for key in before)
    assert list(found) == sorted(found, key=lambda one: (-one.fused, one.unit_id))
    assert found == linked(pool[::-1], mentions, settings)


@given(pools, st.lists(names, max_size=8))
def test_links_that_are_off_change_nothing(pool, mentions):
    settings = StageSettings(**OFF)
    assert rels(linked(pool, mentions, settings)) == {unit.id: rel for unit, rel in pool}
    assert all(one.adjustments == () for one in linked(pool, mentions, settings))


# ------------------------------------------------------------------------------------------------- searching

QUESTION = "Where was the founder of the pottery school born?"
NOTES = [
    {"topic": "Pottery school", "text": "The pottery school was founded by Berta Lindqvist.", "id": "school"},
    {"topic": "Berta Lindqvist (potter)", "text": "She comes from a village near Lindow.", "id": "berta"},
    {"topic": "Carla Moreno", "text": "She comes from a village near Kestrel.", "id": "carla"},
    {"topic": "Glaze", "text": "Berta Lindqvist likes blue best.", "id": "glaze"},
    *({"topic": f"Note {i}", "text": f"A school of pottery, a born founder, number {i}.", "id": f"n{i}"}
      for i in range(3)),
]  # fmt: skip


def noted(settings=EAGER, embedder=None):
    memory = opened(settings, embedder=embedder or HashEmbedder(64))
    memory.remember(NOTES, user="ana")
    return memory


def without(**changes):
    return dataclasses.replace(EAGER, stages=dataclasses.replace(EAGER.stages, **changes))


def test_what_the_best_unit_names_is_found_and_explained():
    with noted() as memory:
        found = memory.search(QUESTION, user="ana", explain=True)
        by_id = {hit.unit.id: hit for hit in found}
        assert by_id["school"].rel > by_id["berta"].rel > max(hit.rel for hit in found if hit.unit.id == "glaze")
        assert by_id["glaze"].contributions.find("mentions") is not None
        named = by_id["berta"].contributions.find("rel of school, which names it: berta lindqvist")
        assert named.value == by_id["school"].rel
        for hit in found:
            assert hit.contributions.compose().hex() == hit.score.hex()
            assert hit.contributions.find("relevance").parts[1].value.hex() == hit.rel.hex()


def test_explaining_changes_no_score():
    with noted() as memory:
        plain, told = (memory.search(QUESTION, user="ana", explain=explain) for explain in (False, True))
        assert [(hit.unit.id, hit.score) for hit in plain] == [(hit.unit.id, hit.score) for hit in told]


def test_targets_are_looked_up_beyond_what_the_strategies_found():
    settings = dataclasses.replace(EAGER, retrieval=dataclasses.replace(EAGER.retrieval, max_candidates=1))
    quiet = dataclasses.replace(settings, stages=dataclasses.replace(settings.stages, **OFF))
    with noted(settings) as memory:
        assert "berta" in {hit.unit.id for hit in memory.search(QUESTION, user="ana")}
    with noted(quiet) as memory:
        assert "berta" not in {hit.unit.id for hit in memory.search(QUESTION, user="ana")}


def test_a_context_follows_links_too():
    with noted() as memory:
        told = {
            change.stage
            for one in memory.assemble(QUESTION, user="ana", budget=500).trace.candidates
            for change in one.adjustments
        }
        assert "mentions" in told


@pytest.mark.parametrize("question", ["Where was Berta Lindqvist born, of the pottery school?"])
def test_a_name_in_the_question_links_nothing(question):
    with noted() as memory:
        found = memory.search(question, user="ana")
        because = [change.because for one in found.trace.candidates for change in one.adjustments]
        assert not [text for text in because if "berta" in text]


def test_a_frequent_name_links_nothing():
    with constants(stages, RARE_NAME_UNITS=1), noted() as memory:
        changes = [c for one in memory.search(QUESTION, user="ana").trace.candidates for c in one.adjustments]
        assert {change.weight for change in changes if change.stage == "mentions"} == {0.65}
    with constants(stages, RARE_NAME_UNITS=0), noted() as memory:
        changes = [c for one in memory.search(QUESTION, user="ana").trace.candidates for c in one.adjustments]
        assert not [change for change in changes if change.stage == "mentions"]


@pytest.mark.parametrize(
    ("settings", "profile"),
    [
        (without(**OFF), "hybrid"),
        (Settings.reference().without_timeouts(), "hybrid"),
        (EAGER, "fast"),
        (EAGER, "balanced"),
    ],
)
def test_nothing_is_linked_where_links_are_off(settings, profile):
    with noted(settings) as memory:
        found = memory.search(QUESTION, user="ana", profile=profile)
        assert not [c for one in found.trace.candidates for c in one.adjustments if c.stage == "mentions"]


def test_the_reference_recipe_has_neither_stage():
    own = Settings.reference().stages
    assert (own.mentions, own.shared_names, own.diversity) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"mentions": 1.1},
        {"shared_names": -0.1},
        {"diversity": float("nan")},
    ],
)
def test_settings_outside_their_domain_are_refused(bad):
    with pytest.raises(SettingsError):
        StageSettings(**bad)


# ------------------------------------------------------------------------------------------- near-duplicates

TEN = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        (TEN, True),
        (TEN.upper() + "!", True),
        (TEN + " eleven", True),
        (TEN + " eleven twelve", False),
        (TEN + " 11", False),
        ("one", False),
        ("", False),
    ],
)
def test_two_units_say_the_same_when_nearly_all_words_and_all_numbers_agree(text, alike):
    words = [frozenset(said.casefold().replace("!", "").split()) for said in (TEN, text)]
    assert is_same(words[0], words[1]) is alike
    assert is_same(words[1], words[0]) is alike


def test_a_repetition_steps_back_behind_what_is_new():
    pool = [turn("a", 0.9, TEN), turn("b", 0.8, TEN + "."), turn("c", 0.5, "other words")]
    found = diversified(pool)
    assert [(one.unit_id, one.rel) for one in found] == [("a", 0.9), ("c", 0.5), ("b", 0.4)]
    assert found[2].adjustments == (Adjustment("diversity", 0.5, 0.0, "a says the same"),)
    untouched = make_pool(pool, full_marks=2.0).candidates()
    assert diversified(pool, most=1) == diversified(pool, StageSettings(diversity=0.0)) == untouched


def test_the_first_twin_of_the_best_hit_stays_in_the_list():
    own = [turn(f"o{i}", 0.7 - 0.01 * i, f"other words {'x' * i}") for i in range(4)]
    pool = [turn("a", 0.9, TEN), turn("b", 0.85, TEN + "."), turn("c", 0.8, TEN + "!"), *own]
    found = diversified(pool, most=4)
    assert [one.unit_id for one in found[:4]] == ["a", "o0", "b", "o1"]
    assert found[2].rel == found[3].rel == rels(found)["o1"]
    because = "a says the same, and it stays among the hits"
    assert found[2].adjustments == (Adjustment("diversity", 1.0, found[3].rel, because),)
    assert rels(found)["c"] == 0.4


@given(st.lists(shares, min_size=3, max_size=8, unique=True), st.integers(2, 5), shares)
def test_a_twin_of_the_best_hit_is_never_pushed_out_nor_lifted(values, most, weight):
    best, *others = sorted(values, reverse=True)
    pool = [turn("a", best, TEN), *(turn(f"o{i}", rel, f"w{'x' * i}") for i, rel in enumerate(others))]
    pool[2] = (make_unit("o1", TEN + "."), pool[2][1])
    found = diversified(pool, StageSettings(diversity=weight), most, full_marks=1.0)
    reached = [one.unit_id for one in found[:most]]
    assert ("o1" in reached) is (most > 2)
    assert rels(found)["o1"] <= pool[2][1]


@pytest.mark.parametrize("other", [{"author": "assistant"}, {"speaker": "Berta"}])
def test_the_same_words_of_another_one_are_no_repetition(other):
    pool = [turn("a", 0.9, TEN), turn("b", 0.8, TEN, **other)]
    assert diversified(pool) == make_pool(pool, full_marks=2.0).candidates()


said = st.lists(st.sampled_from("red red kiln boat 5 6".split()), max_size=4).map(" ".join)


@given(st.lists(st.tuples(shares, said), max_size=7), shares, st.floats(0.1, 1.0), st.integers(1, 9))
def test_repetitions_are_lowered_and_the_first_to_say_something_never_is(told, weight, share, most):
    pool = [turn(f"u{i}", rel, text) for i, (rel, text) in enumerate(told)]
    with constants(stages, SAME_WORDS=share):
        found = diversified(pool, StageSettings(diversity=weight), most)
    after = rels(found)
    assert all(0.0 <= after[unit.id] <= rel for unit, rel in pool)
    assert list(found) == sorted(found, key=lambda one: (-one.fused, one.unit_id))
    if pool:
        first, rel = min(pool, key=lambda row: (-row[1], row[0].id))
        assert after[first.id] == rel


def test_a_repetition_is_explained_and_recomposes():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        memory.remember(["The long ladder is behind the shed", "the long ladder is behind the shed!"], user="ana")
        found = memory.search("long ladder", user="ana", explain=True, reference_time=NOW)
        [first, second] = found
        assert second.contributions.find(f"{first.unit.id} says the same").value == 0.0
        assert second.contributions.compose().hex() == second.score.hex()
        assert second.rel < first.rel
