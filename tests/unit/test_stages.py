"""Stages of the default recipe: worked numbers, convexity, explanations, and that the reference recipe has none."""

import dataclasses
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, constants, known_of, later, make_claims, make_pool, make_unit, make_view, opened
from holdfast import Settings
from holdfast.errors import SettingsError
from holdfast.ranking import stages
from holdfast.ranking.pool import StageEffect, StageInputs
from holdfast.ranking.score import Fusion, explain_rel, fuse
from holdfast.ranking.stages import (
    prefer_perspective,
    prefer_time_range,
    prefer_years,
    share_session,
    smooth_neighbours,
    years_overlap,
)
from holdfast.retrieval.collect import add_times
from holdfast.settings import FusionSettings, ProfileSettings, StageSettings
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import Adjustment, Contribution, Lineage, QueryProfile, RetrievalResult, StrategyExplanation

EAGER = Settings.load(
    {"refusal.enabled": False, "hybrid.min_score": 0.0, "hybrid.gap": 0.0}, environ={}
).without_timeouts()
STAGES_OFF = StageSettings(
    names_leave=False, perspective=0.0, own_words=0.0, smoothing=0.0, time_range=0.0, told_years=0.0, mentions=0.0,
    shared_names=0.0, questions=0.0, diversity=0.0,
)  # fmt: skip


def pool_of(*rows, beside=None, **fields):
    """Return a pool of turns: (id, relevance, text)."""
    return make_pool([(make_unit(key, text, **fields), rel) for key, rel, text in rows], beside=beside)


def smoothed(pool, weight=0.5):
    return smooth_neighbours(pool, setting_of(asking(), StageSettings(smoothing=weight)))


def setting_of(query, settings):
    """Return what stages need that look at one row at a time: nothing is looked up."""
    return StageInputs(query, settings, 0, None, None, None)


def preferred(stage, query, **fields):
    """Return what a preference does to a unit with these fields."""
    staging = setting_of(query, StageSettings(perspective=0.15, own_words=0.15, time_range=0.1))
    [one] = stage(make_pool([(make_unit(**fields), 0.5)]), staging).candidates()
    return one.adjustments


def asking(**fields):
    return QueryProfile(text="?", terms=(), **fields)


# ---------------------------------------------------------------------------------------------- neighbours


@pytest.mark.parametrize(
    ("characters", "taken"), [(1, 0.5 / (1 + 1 / 160**2)), (160, 0.25), (320, 0.1), (480, 0.05), (1600, 0.5 / 101)]
)
def test_a_turn_takes_over_less_the_longer_it_is(characters, taken):
    rows = ("a", 0.2, "x" * characters), ("b", 0.8, "said"), ("c", 0.6, "said")
    found = smoothed(pool_of(*rows, beside={"a": ("b", "c")})).candidate(0)
    assert found.adjustments == (Adjustment("neighbours", pytest.approx(taken, rel=1e-15), 0.8),)


@pytest.mark.parametrize("beside", [{}, {"a": ()}, {"a": ("elsewhere",)}, {"b": ("a",)}])
def test_a_turn_without_neighbours_in_the_pool_stays_as_it_is(beside):
    pool = pool_of(("a", 0.2, "said"), ("b", 0.8, "said"), beside=beside)
    assert smoothed(pool).candidate(0).adjustments == ()
    assert smoothed(pool_of(("a", 0.2, "said"))).candidate(0).adjustments == ()  # nobody looked beside it


@pytest.mark.parametrize(("characters", "taken"), [(1, 0.0), (160, 0.25), (480, 0.45), (1600, 0.5 * 100 / 101)])
def test_an_answer_takes_over_from_what_it_answers_where_it_is_asked_for(characters, taken):
    asked = (make_unit("a", "any ideas?"), 0.8)
    answer = (make_unit("b", "x" * characters, author="assistant"), 0.2)
    thanks = (make_unit("c", "thanks"), 0.9)
    pool = make_pool([asked, answer, thanks], beside={"a": (None, "b"), "b": ("a", "c"), "c": ("b", None)})
    staging = setting_of(asking(perspective="assistant"), StageSettings(smoothing=0.5))
    found = smooth_neighbours(pool, staging).candidate(1)
    assert found.adjustments == (Adjustment("neighbours", pytest.approx(taken, abs=1e-4), 0.8),)


def test_neighbours_count_as_they_were_before_the_stage():
    beside = {"a": ("b",), "b": ("a", "c"), "c": ("b",)}
    with constants(stages, SMOOTHING_HALF_LENGTH=1e9):
        pool = smoothed(pool_of(("a", 0.0, "x"), ("b", 0.0, "x"), ("c", 1.0, "x"), beside=beside), 1.0)
    assert dict(zip(pool.ids, pool.rel.tolist(), strict=True)) == {"a": 0.0, "b": 1.0, "c": 0.0}


# --------------------------------------------------------------------------------------------- perspective


@pytest.mark.parametrize(
    ("wanted", "participants", "fields", "signal"),
    [
        ("user", (), {"author": "user"}, 1.0),
        ("user", (), {"author": "assistant"}, 0.0),
        ("assistant", (), {"author": "assistant"}, 1.0),
        ("assistant", ("Ana",), {"author": "user", "speaker": "Ana"}, 0.0),
        ("Ana", ("Ana",), {"speaker": "ANA"}, 1.0),
        ("Ana", ("Ana", "Tomas"), {"speaker": "tomas"}, 1.0),
        ("Ana", ("Ana",), {"speaker": ""}, 0.0),
    ],
)
def test_the_words_of_the_one_asked_for_are_preferred(wanted, participants, fields, signal):
    query = asking(perspective=wanted, participants=participants)
    assert preferred(prefer_perspective, query, **fields) == (Adjustment("perspective", 0.15, signal),)


def test_a_question_for_nobodys_words_changes_nothing():
    assert preferred(prefer_perspective, asking()) == ()


def test_the_user_s_words_and_the_assistant_s_have_a_weight_of_their_own_and_a_summary_has_none():
    pool = make_pool([(make_unit(author="user"), 0.5)])
    settings = StageSettings(perspective=0.1, own_words=0.4)
    for query, weights in (
        (asking(perspective="user"), [0.4]),
        (asking(perspective="user", summary=True), []),
        (asking(perspective="assistant", summary=True), [0.4]),
        (asking(perspective="Ana", participants=("Ana",)), [0.1]),
    ):
        [found] = prefer_perspective(pool, setting_of(query, settings)).candidates()
        assert [one.weight for one in found.adjustments] == weights


def test_the_right_speaker_alone_carries_nothing_past_the_cuts():
    pool = make_pool(
        [(make_unit("near"), 0.5), (make_unit("far"), 0.1), (make_unit("reply", author="assistant"), 0.1)]
    )
    found = prefer_perspective(pool, setting_of(asking(perspective="user"), StageSettings(own_words=0.4)))
    assert dict(zip(found.ids, found.rel.tolist(), strict=True)) == pytest.approx(
        {"near": 0.7, "far": 0.1, "reply": 0.06}
    )


# ------------------------------------------------------------------------------------------------ sessions


def test_a_turn_takes_over_from_the_best_three_of_its_session():
    rels = {"a": (0.9, 0.6, 0.3, 0.1), "b": (0.8, 0.1)}
    rows = [(make_unit(f"{name}{rel}", session=name), rel) for name, found in rels.items() for rel in found]
    pool = make_pool([*rows, (make_unit("page", session=None), 0.7)])
    found = share_session(pool, setting_of(asking(), StageSettings(session=0.1))).candidates()
    signals = {one.unit_id: [(made.weight, pytest.approx(made.signal)) for made in one.adjustments] for one in found}
    assert signals["a0.9"] == signals["a0.1"] == [(0.1, 0.9)]  # (.9 + .6 + .3) / 3, the best session
    assert signals["b0.8"] == [(0.1, 0.9 * 0.3 / 0.6)]
    assert signals["page"] == []


def test_turns_of_one_session_alone_stay_as_they_are():
    pool = make_pool([(make_unit("a"), 0.9), (make_unit("b"), 0.2)])
    assert share_session(pool, setting_of(asking(), StageSettings(session=0.1))) is pool


# -------------------------------------------------------------------------------------------------- years


def year(number):
    return datetime(number, 1, 1, tzinfo=UTC)


def rels_of(*rows, first=1931, last=1935, **fields):
    """Return relevances by id after the stage, of units (id, relevance, text) for a question of some years."""
    units = {key: make_unit(key, text) for key, _, text in rows}
    span = {"years": (str(first),), "time_range": (year(first), year(last + 1)), **fields}
    staging = StageInputs(asking(**span), StageSettings(told_years=0.4), 20, lambda ids: units, None, None)
    pool = prefer_years(make_pool([(units[key], rel) for key, rel, _ in rows]), staging)
    return dict(zip(pool.ids, pool.rel.tolist(), strict=True))


def test_what_tells_of_the_years_asked_for_rises_towards_twice_its_relevance():
    found = rels_of(("a", 0.4, "He led it 1931-1935."), ("b", 0.4, "She led it."), ("c", 0.4, "They led it in 1960."))
    assert found == pytest.approx({"a": 0.6 * 0.4 + 0.4 * 0.8, "b": 0.4, "c": 0.4})


def test_years_lift_nothing_above_full_relevance_and_nothing_that_is_not_relevant():
    assert rels_of(("a", 0.9, "since 1931"), ("b", 0.0, "since 1931")) == pytest.approx({"a": 0.94, "b": 0.0})


@pytest.mark.parametrize("fields", [{"years": ()}, {"time_range": None}, {"only_time": True}])
def test_years_count_only_for_a_question_that_names_a_year_and_a_topic(fields):
    assert rels_of(("a", 0.4, "He led it 1931-1935."), **fields) == {"a": 0.4}


def test_the_years_of_an_open_question_are_its_last_one():
    assert rels_of(("a", 0.4, "He led it in 1935."), first=1, years=("1935",))["a"] > 0.4


@pytest.mark.parametrize(
    ("spans", "worth"),
    [
        ([], 0.0),
        ([(1931, 1931)], 1.0),  # what held from then on began then
        ([(1930, 1936)], 1.0),
        ([(1920, 9999)], 1.0),
        ([(1900, 1980)], 0.8 / (1 + 31 / 10)),  # a life covers everything
        ([(1931, 1933)], 1.0),
        ([(1930, 1933)], 0.8 / 1.1),
        ([(1921, 1921)], 0.4),
        ([(1921, 1921), (1926, 1926)], 0.8 / 1.5),
        ([(1933, 1933)], 0.0),
        ([(1936, 1940)], 0.0),
    ],
)
def test_years_are_worth_what_they_cover(spans, worth):
    assert years_overlap(spans, 1931, 1935) == pytest.approx(worth)


# ---------------------------------------------------------------------------------------------- time range


def of_time(**fields):
    """Return what the time range does to a unit, beside one that lies in it."""
    query = asking(time_range=(NOW, NOW + timedelta(days=1)))
    units = {unit.id: unit for unit in (make_unit("one", **fields), make_unit("beside"))}
    reading = SimpleNamespace(view=make_view(), units=lambda ids: {one: units[one] for one in ids})
    pool, notice = add_times(make_pool([(unit, 0.5) for unit in units.values()]), query, reading)
    assert notice == ""
    found, _ = prefer_time_range(pool, setting_of(query, StageSettings(time_range=0.1))).candidates()
    return found.adjustments


@pytest.mark.parametrize(("hours", "signal"), [(-1, 0.0), (0, 1.0), (23, 1.0), (24, 0.0), (25, 0.0)])
def test_a_range_holds_its_start_and_not_its_end(hours, signal):
    assert of_time(event_time=later(hours=hours)) == (Adjustment("time range", 0.1, signal),)


@pytest.mark.parametrize(
    ("starts", "ends", "signal"), [(-9, -1, 0.0), (-9, 0, 1.0), (-9, 99, 1.0), (23, 99, 1.0), (24, 99, 0.0)]
)
def test_a_summary_counts_by_all_of_its_span(starts, ends, signal):
    lineage = Lineage((), "extractive", 1.0, 0.0, 1.0, 1.0, later(hours=starts), later(hours=ends))
    [found] = of_time(kind="summary", lineage=lineage)
    assert found.signal == signal


@pytest.mark.parametrize(
    ("text", "signal"),
    [("on 4 May", 0.5**0.5), ("on 5 May", 0.5**0.5), ("on 6 May", 0.0), ("in May", (1 / 31) ** 0.5)],
)
def test_what_is_told_counts_by_the_root_of_its_share_in_the_range(text, signal):
    [found] = of_time(text=f"We rowed {text}", event_time=later(days=9))
    assert found.signal == pytest.approx(signal)


# -------------------------------------------------------------------------------------- convex, and explained

shares = st.floats(0.0, 1.0)
adjustments = st.lists(st.builds(Adjustment, st.just("any"), shares, shares), max_size=4)


def staged(pool, changes):
    """Return a pool after stages that do the same to every row."""
    rows = len(pool)
    for change in changes:
        weight, signal = np.full(rows, change.weight), np.full(rows, change.signal)
        pool = pool.apply(StageEffect(change.stage, weight, signal, change.because))
    return pool.sorted()


@given(st.lists(shares, min_size=1, max_size=5), adjustments, st.floats(0.1, 4.0))
def test_stages_are_convex_and_keep_a_total_order(rels, changes, full_marks):
    pool = make_pool([(make_unit(f"u{i}"), rel) for i, rel in enumerate(rels)], full_marks=full_marks)
    found = staged(pool, changes).candidates()
    assert [(-one.fused, one.unit_id) for one in found] == sorted((-one.fused, one.unit_id) for one in found)
    signals = [change.signal for change in changes]
    for one in found:
        before = rels[int(one.unit_id[1:])]
        assert 0.0 <= one.rel <= 1.0
        assert min([before, *signals]) - 1e-12 <= one.rel <= max([before, *signals]) + 1e-12
        assert one.adjustments == tuple(change for change in changes if change.weight)
        if not one.adjustments:
            assert one.rel.hex() == before.hex()


@given(st.dictionaries(st.sampled_from("abc"), st.floats(0.01, 9.0), min_size=1), adjustments)
def test_the_tree_of_a_staged_relevance_recomposes_it_bit_for_bit(raws, changes):
    ids = tuple(sorted(raws))
    claims, claimed = make_claims(ids, raws, relative=True)
    results = [RetrievalResult("lexical", claims, 0.0, scale=max(raws.values()))]
    fusion = Fusion.of(results, ProfileSettings(), FusionSettings())
    known = known_of([make_unit(key, key) for key in ids])
    pool = staged(fuse(ids, {"lexical": claims}, {"lexical": claimed}, known, fusion), changes)
    for row, one in enumerate(pool.candidates()):
        accounts = {"lexical": StrategyExplanation(Contribution("raw", raws[one.unit_id]), ("lexical",))}
        tree = explain_rel(pool, row, accounts, fusion)
        assert tree.compose().hex() == tree.value.hex() == one.rel.hex()


@pytest.mark.parametrize("name", ["perspective", "smoothing", "time_range"])
@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan")])
def test_a_share_outside_its_domain_is_refused(name, value):
    with pytest.raises(SettingsError):
        StageSettings(**{name: value})


# ----------------------------------------------------------------------------------------- inside a search


class Listening(HashEmbedder):
    """Keeps the questions it was given."""

    def __init__(self):
        super().__init__(64)
        self.asked = []

    def embed_documents(self, texts):
        return HashEmbedder(64).embed_documents(texts)

    def embed_query(self, text):
        self.asked.append(text)
        return super().embed_query(text)


TALK = [
    {"role": "user", "speaker": "Ana", "content": "Where did you put the ladder?", "at": later(days=-8)},
    {"role": "user", "speaker": "Tomas", "content": "Behind the shed.", "at": later(days=-8, minutes=1)},
    {"role": "assistant", "content": "I suggested a lock for the shed.", "at": later(days=-3)},
    {"role": "user", "speaker": "Ana", "content": "The ladder is green.", "at": later(days=-1)},
]
# It names a speaker, and a time, and short turns have neighbours: every stage has something to do.
QUESTION = "What did Tomas say about the ladder last week?"


def told(settings, embedder=None):
    memory = opened(settings, embedder=embedder or HashEmbedder(64))
    memory.remember(TALK, user="ana", session="s1")
    return memory


def test_every_stage_is_named_in_the_explanation_and_recomposes():
    with told(EAGER) as memory:
        found = memory.search(QUESTION, user="ana", explain=True)
        assert {change.stage for c in found.trace.candidates for change in c.adjustments} == {
            "neighbours",
            "perspective",
            "time range",
            "only asks",
        }
        for hit in found:
            assert hit.contributions.compose().hex() == hit.score.hex()
            assert hit.contributions.find("relevance").parts[1].value.hex() == hit.rel.hex()
            assert hit.contributions.find("perspective") is not None
            assert hit.contributions.find("time range") is not None


def test_a_short_answer_gains_by_the_question_before_it():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        memory.remember(["Where is the long ladder kept, and the lock?", "A ladder?"], user="ana", session="s1")
        memory.remember(["A ladder? No.", "Good night."], user="ana", session="s2")
        rels = {hit.unit.text: hit.rel for hit in memory.search("long ladder lock", user="ana")}
        assert rels["A ladder?"] > rels["A ladder? No."] > 0.0


@pytest.mark.parametrize(
    "settings", [Settings.reference().without_timeouts(), dataclasses.replace(EAGER, stages=STAGES_OFF)]
)
def test_without_stages_relevance_is_untouched(settings):
    with told(settings) as memory:
        found = memory.search(QUESTION, user="ana", explain=True)
        assert found.trace.query.time_range is None
        assert found.trace.candidates
        for one in found.trace.candidates:
            assert one.adjustments == ()
            full = Fusion.of(found.trace.results, settings.hybrid, settings.fusion).full_marks
            assert one.rel == min(one.fused / full, 1.0)
        for hit in found:
            assert hit.contributions.find("neighbours") is None


def test_in_the_reference_recipe_relevance_is_the_cosine():
    with told(Settings.reference().without_timeouts()) as memory:
        for one in memory.search(QUESTION, user="ana").trace.candidates:
            assert one.rel == max(0.0, one.claims["dense"])


@pytest.mark.parametrize(
    ("stage", "off"),
    [
        ("neighbours", {"smoothing": 0.0}),
        ("perspective", {"perspective": 0.0}),
        ("time range", {"time_range": 0.0}),
        ("only asks", {"questions": 0.0}),
    ],
)
def test_each_stage_can_be_switched_off_alone(stage, off):
    with told(dataclasses.replace(EAGER, stages=StageSettings(**off))) as memory:
        found = memory.search(QUESTION, user="ana")
        seen = {change.stage for one in found.trace.candidates for change in one.adjustments}
        assert seen == {"neighbours", "perspective", "time range", "only asks"} - {stage}


# -------------------------------------------------------------------------------------------- names leave


@pytest.mark.parametrize(
    ("question", "embedded"),
    [
        ("What did Tomas say about the ladder?", "What did say about the ladder?"),
        ("Tomas's ladder, and TOMAS’s lock", "ladder, and lock"),
        ("Tomasine's ladder", "Tomasine's ladder"),
        ("Tomas", "Tomas"),
        ("Tomas? Ana!", "Tomas? Ana!"),
    ],
)
def test_names_of_speakers_leave_the_question_before_it_is_embedded(question, embedded):
    ear = Listening()
    with told(EAGER, ear) as memory:
        memory.search(question, user="ana")
    assert ear.asked == [embedded]


@pytest.mark.parametrize(
    "settings", [Settings.reference(), dataclasses.replace(EAGER, stages=StageSettings(names_leave=False))]
)
def test_names_stay_where_that_stage_is_off(settings):
    ear = Listening()
    with told(settings, ear) as memory:
        memory.search("What did Tomas say?", user="ana")
    assert ear.asked == ["What did Tomas say?"]


def test_the_words_are_asked_for_with_their_names():
    with told(EAGER) as memory:
        assert "toma" in "".join(memory.search("Tomas and the ladder", user="ana").trace.query.terms)


# --------------------------------------------------------------------------------------- a time and no topic


@pytest.mark.parametrize(
    "question",
    ["what did we talk about last week?", "What happened last week?", "last week?", "what did I tell you last week?"],
)
def test_a_question_that_names_only_a_time_retrieves_from_it(question):
    found_only = Settings.load({"assembly.fill": 0.0}, environ={}).without_timeouts()
    with opened(found_only, embedder=HashEmbedder(64)) as memory:
        for day in range(30):
            memory.remember(f"entry {day} on quite other things", user="ana", id=f"d{day:02}", at=later(days=-day))
        # NOW is a Monday: the week before it is the seven days behind.
        week = {f"d{day:02}" for day in range(1, 8)}
        found = memory.search(question, user="ana")
        assert found.trace.query.only_time
        assert {hit.unit.id for hit in found} == week
        assert {item.id for item in memory.assemble(question, user="ana").section("projection").items} == week


def test_a_time_alone_brings_up_nothing_of_others_and_nothing_that_filters_hide():
    with opened(embedder=HashEmbedder(64)) as memory:
        memory.remember("of ana", user="ana", id="a", at=later(days=-3), metadata={"room": "hall"})
        memory.remember("of ana too", user="ana", id="b", at=later(days=-3))
        memory.remember("of ben", user="ben", id="c", at=later(days=-3))
        found = memory.search("what happened last week?", user="ana", filters={"room": "hall"})
        assert [hit.unit.id for hit in found] == ["a"]


def test_with_a_topic_the_time_only_prefers():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        memory.remember("the boat leaks", user="ana", id="then", at=later(days=-3))
        memory.remember("the boat leaks", user="ana", id="long ago", at=later(days=-300))
        found = memory.search("what about the boat last week?", user="ana")
        assert not found.trace.query.only_time
        rels = {hit.unit.id: hit.rel for hit in found}
        assert rels["then"] > rels["long ago"] > 0.0


# ---------------------------------------------------------------------------------------- told by an event


def with_trip(memory, text="We left for the trip to Porto today"):
    memory.remember(text, user="ana", id="trip", at=later(days=-100))
    memory.remember("I bought new boots", user="ana", id="boots", at=later(days=-104))
    memory.remember("I bought a new kettle", user="ana", id="kettle", at=later(days=-20))


@pytest.mark.parametrize(
    "question", ["what happened the week before the trip?", "what did we do the week before the trip to Porto?"]
)
def test_a_time_told_by_an_event_is_the_events_own(question):
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        with_trip(memory)
        found = memory.search(question, user="ana")
        start, end = found.trace.query.time_range
        event = memory.get("trip", user="ana").event_time
        assert start <= event - timedelta(days=4) < end <= event
        assert "boots" in [hit.unit.id for hit in found]
        assert found[0].unit.id == "boots"


def test_an_event_that_nobody_told_of_names_no_time():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        with_trip(memory, "We went away today")
        assert memory.search("what happened the week before the wedding?", user="ana").trace.query.time_range is None


def test_an_event_of_another_user_names_no_time():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        with_trip(memory)
        memory.remember("a boat", user="ben")
        assert memory.search("what happened the week before the trip?", user="ben").trace.query.time_range is None
