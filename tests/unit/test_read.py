"""Reading the first hits together: the reader's input, the stage, the verbs, and what is left alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders import NOW, later, make_pool, make_unit, opened
from holdfast import InputError, Memory, ReaderError, Settings
from holdfast.models import embedder as shipped
from holdfast.models import open_reader
from holdfast.models.embedder import shipped_folder
from holdfast.models.reader import Judgement, Reader, Turn, best_window, join, join_pair, load_reader, share_room
from holdfast.ranking import read
from holdfast.ranking.pool import ReadingInputs, StageEffect, StageInputs
from holdfast.ranking.read import RECIPES, TOGETHER, find_outdated, read_together
from holdfast.settings import StageSettings
from holdfast.text.questions import is_request
from holdfast.types import QueryProfile, Readings, TurnReading
from holdfast.why import parts_of

MOVED = (
    "The flat in Utrecht is lovely, we moved in last week.",
    "My rent is nine hundred euros.",
    "We unpacked the last boxes in Rotterdam, the new flat is bright.",
    "I had pasta with Ines.",
)
QUESTION = "Where do I live?"


# Nothing is superseded or marked by its words.
NO_RULES = Settings.load({"stages.current": 0.0, "changes.detect": False}, environ={})


@pytest.fixture(scope="module")
def memory():
    with Memory.open(":memory:", now=lambda: NOW) as memory:
        for number, text in enumerate(MOVED):
            message = {"role": "user", "content": text, "at": later(days=number - 30)}
            memory.remember(message, user="ana", session=f"s{number}")
        yield memory


def texts(hits):
    return [hit.unit.text for hit in hits]


def reading_of(judge, pair=lambda _question, _turn: 0.0, recipe="once"):
    """Return what stages need to read, where hits are ranked by relevance alone."""

    def read_alone(question, turns):
        return [pair(question, turn) for turn in turns]

    return ReadingInputs(judge, read_alone, lambda pool: (pool, pool.rel), 1.0, recipe)


def staging(pool_units, reading, text=QUESTION):
    query = QueryProfile(text=text, terms=())
    known = {unit.id: unit for unit in pool_units}
    return StageInputs(
        query, StageSettings(), 20, lambda ids: {i: known[i] for i in ids}, None, None, reading=reading
    )


def judgement(ranks, other_time=0.0, earlier=0.0, nothing=0.0):
    """Return what a reader says of as many turns as there are ranks."""
    same = (np.full(len(ranks), share) for share in (0.5, earlier, other_time))
    return Judgement(np.array(ranks), *same, nothing=nothing)


def judging(ranks, other_time=0.0, earlier=0.0):
    """Return a reader that gives each turn, by its text, a rank."""

    def judge(_question, turns):
        return judgement([ranks[turn.text] for turn in turns], other_time, earlier)

    return judge


# ---------------------------------------------------------------------------------------------- the model


def test_a_later_turn_about_the_same_is_read_as_what_holds_now():
    judged = open_reader().judge(QUESTION, [Turn("user", text) for text in MOVED])
    assert judged.rank.argmax() == 2
    assert judged.other_time[0] > 0.5 > judged.other_time[2]
    assert judged.earlier[0] > 0.5 > judged.earlier[2]
    assert judged.answers.argmax() in (0, 2)


def test_where_nothing_answers_the_reader_says_so():
    turns = [Turn("user", text) for text in MOVED]
    asked, unknown = (open_reader().judge(text, turns) for text in (QUESTION, "What is my dentist called?"))
    assert asked.nothing < 0.0 < unknown.nothing


def test_turns_read_at_the_same_time_are_read_as_one_by_one():
    turns = [Turn("user", f"{text} {number}") for number in range(4) for text in MOVED]
    together = open_reader().read_alone("Where did I move to?", turns)
    reader = load_reader(shipped_folder("reader"), shipped_folder("minilm"), 1)
    assert together == [reader.pair("Where did I move to?", turn) for turn in turns]


def test_a_turn_alone_is_judged_by_what_it_says():
    near, far = (open_reader().pair(QUESTION, Turn("user", MOVED[place])) for place in (0, 3))
    assert near > 0.0 > far


def test_a_pair_is_the_same_beside_others_and_is_read_once():
    ran = []
    reader = Reader(lambda text: [*text.encode()], lambda *given: ran.append(given) or np.full((1, 1), len(ran)))
    first, other, again = (reader.pair("a?", Turn("u", text)) for text in "xyx")
    assert (first, other, again) == (1.0, 2.0, 1.0)
    assert [given[0] for given in ran] == ["answer", "answer"]


def test_a_reading_does_not_depend_on_the_threads():
    turns = [Turn("user", text) for text in MOVED]
    one, two = (open_reader(threads).judge(QUESTION, turns) for threads in (1, 2))
    assert (one.rank == two.rank).all()
    assert (one.other_time == two.other_time).all()


def test_the_same_turns_are_read_once():
    ran = []
    reader = Reader(lambda text: [*text.encode()], lambda *given: ran.append(given) or np.zeros((3, 5)))
    for _ in range(2):
        reader.judge("a?", [Turn("u", "x"), Turn("u", "y")])
    reader.judge("a?", [Turn("u", "y"), Turn("u", "x")])
    assert len(ran) == 2


@given(
    st.lists(st.integers(200, 260), max_size=90),
    st.lists(st.lists(st.integers(200, 260), max_size=400), min_size=1, max_size=24),
)
def test_what_is_read_fits_the_model_and_every_turn_is_in_it(question, bodies):
    ids, types, markers = join(question, [([7] * 20, body) for body in bodies], set())
    assert len(ids) == len(types) <= 512
    assert [ids[marker] for marker in markers] == [11] * len(bodies)
    assert types == [0] * markers[0] + [1] * (len(ids) - markers[0])


@given(
    st.lists(st.integers(200, 260), max_size=90),
    st.lists(st.integers(200, 260), max_size=30),
    st.lists(st.integers(200, 260), max_size=400),
)
def test_a_pair_fits_the_model(question, speaker, body):
    ids, types = join_pair(question, speaker, body, set())
    assert len(ids) == len(types) <= 256
    assert ids.count(102) == 2
    assert types == [0] * (ids.index(102) + 1) + [1] * (len(ids) - ids.index(102) - 1)


@given(st.lists(st.integers(0, 300), min_size=1), st.integers(50, 500))
def test_room_is_shared_so_that_the_longest_pay(lengths, room):
    size = share_room(lengths, room)
    kept = [min(length, size) for length in lengths]
    assert sum(kept) <= max(room, len(lengths))
    assert kept == lengths or sum(min(length, size + 1) for length in lengths) > room


def test_a_long_turn_is_cut_to_where_it_is_about_the_question():
    text = [1] * 50 + [7, 8] + [1] * 50
    assert {7, 8} <= set(best_window(text, [7, 8, 1], 12, plain={1}))
    assert best_window(text, [9], 12, plain={1}) == text[:12]


# ---------------------------------------------------------------------------------------------- the stage


ROWS = st.lists(st.tuples(st.floats(0.05, 0.8), st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=26)


@given(ROWS, st.sampled_from(sorted(RECIPES)))
def test_turns_that_are_read_share_out_the_relevance_they_have(rows, recipe):
    rows, way = sorted(rows, reverse=True), RECIPES[recipe]
    units = [make_unit(f"u{number:02}", f"text {number}") for number in range(len(rows))]
    pool = make_pool([(unit, rel) for unit, (rel, *_) in zip(units, rows, strict=True)])
    ranks, logits = ({unit.text: row[column] for unit, row in zip(units, rows, strict=True)} for column in (1, 2))
    reading = reading_of(judging(ranks, earlier=0.5), lambda _question, turn: logits[turn.text], recipe)
    found = read_together(pool, staging(units, reading))
    assert np.allclose(sorted(found.rel), sorted(pool.rel), atol=1e-12)
    assert (found.rel[way.hits :] == pool.rel[way.hits :]).all()
    turns = found.readings.turns
    assert len(turns) == min(len(rows), TOGETHER)
    assert {unit.id for unit in units[: way.alone]} <= {*turns}
    assert {one.id for one in units[: way.hits] if one.id not in turns} == {
        *found.sorted().ids[len(turns) : way.hits]
    }
    assert all(turn.alone is None or turn.alone == logits[f"text {int(name[1:])}"] for name, turn in turns.items())
    value = {
        name: rows[place][0] + read._RANK * rows[place][1] for place, name in enumerate(pool.ids) if name in turns
    }
    assume(len({*value.values()}) == len(value))
    for name in sorted(value, key=value.get)[::-1][: way.finalists]:
        logit = turns[name].alone
        value[name] += 100.0 + read._ANSWER * (logit if logit < 0.0 else logit / 2.0)
    best = pool.ids.index(max(value, key=value.get))
    assert found.rel[: way.hits].max() - found.rel[best] <= 1e-9


def test_a_turn_further_down_that_answers_by_itself_is_read_with_the_others():
    units = [make_unit(f"u{number:02}", f"text {number}") for number in range(20)]
    pool = make_pool([(unit, 0.6 - place / 100) for place, unit in enumerate(units)])
    ranks = {unit.text: 0.0 for unit in units} | {"text 17": 9.0}
    alone = []

    def pair(_question, turn):
        alone.append(turn.text)
        return 8.0 if turn.text == "text 17" else -8.0

    found = read_together(pool, staging(units, reading_of(judging(ranks), pair)))
    assert alone == [f"text {number}" for number in (*range(8, 20), 0, 1)]
    assert found.sorted().ids[0] == "u17"
    assert found.readings.turns["u17"].alone == 8.0


def test_of_a_few_turns_those_that_read_best_are_read_alone_too():
    units = [make_unit(f"u{number:02}", f"text {number}") for number in range(TOGETHER)]
    pool = make_pool([(unit, 0.6 - place / 100) for place, unit in enumerate(units)])
    ranks = {unit.text: -float(place) for place, unit in enumerate(units)}

    def pair(_question, turn):
        return 50.0 if turn.text == "text 2" else 0.0

    found = read_together(pool, staging(units, reading_of(judging(ranks), pair)))
    assert [turn.alone for turn in found.readings.turns.values()] == [0.0, 0.0, 50.0, *[None] * 9]
    assert found.sorted().ids[:3] == ("u02", "u00", "u01")


@pytest.mark.parametrize("said", ["earlier", "other_time"])
def test_what_is_out_of_date_gains_nothing_by_its_own_words(said):
    units = [make_unit(name, name) for name in "ab"]
    pool = make_pool([(units[0], 0.5), (units[1], 0.49)])

    def judge(_question, turns):
        shares = np.array([1.0 if turn.text == "b" else 0.0 for turn in turns])
        return replace(judgement([0.0, 0.0]), **{said: shares})

    def pair(_question, turn):
        return 9.0 if turn.text == "b" else 0.0

    plain = reading_of(judging({"a": 0.0, "b": 0.0}), pair)
    assert read_together(pool, staging(units, plain)).sorted().ids == ("b", "a")
    assert read_together(pool, staging(units, reading_of(judge, pair))).sorted().ids == ("a", "b")


def test_turns_are_read_in_the_order_of_time():
    seen = []
    units = [make_unit(name, name, event_time=later(days=-day)) for name, day in (("a", 1), ("b", 3), ("c", 2))]

    def judge(_question, turns):
        seen.extend(turn.text for turn in turns)
        return judgement([0.0, 9.0, 0.0])

    pool = make_pool([(unit, 0.5 - place / 10) for place, unit in enumerate(units)])
    found = read_together(pool, staging(units, reading_of(judge)))
    assert seen == ["b", "c", "a"]
    assert found.sorted().ids == ("c", "a", "b")


def test_the_pool_keeps_what_the_reader_says_of_each_turn():
    units = [make_unit(name, name, event_time=later(days=-day)) for name, day in (("a", 1), ("b", 3), ("c", 2))]
    pool = make_pool([(unit, 0.5 - place / 10) for place, unit in enumerate(units)])
    said = read_together(pool, staging(units, reading_of(judging({"a": 1.0, "b": 2.0, "c": 3.0})))).readings
    assert [(name, turn.rank) for name, turn in said.turns.items()] == [("b", 2.0), ("c", 3.0), ("a", 1.0)]


def test_turns_in_the_time_asked_for_stay_above_the_others():
    units = [make_unit(name, name) for name in "abcd"]
    pool = make_pool([(unit, 0.5 - place / 10) for place, unit in enumerate(units)])
    inside = StageEffect("time range", np.full(4, 0.2), np.array([1.0, 1.0, 0.0, 0.0]))
    pool = pool.apply(inside)
    ranks = dict(zip("abcd", (0.0, 3.0, 2.0, 9.0), strict=True))
    found = read_together(pool, staging(units, reading_of(judging(ranks, other_time=0.9))))
    assert found.sorted().ids == ("b", "a", "d", "c")


@pytest.mark.parametrize(
    ("units", "question"),
    [
        ([make_unit("a", "x" * 300), make_unit("b", "y" * 300)], QUESTION),
        ([make_unit("a", "x", kind="knowledge"), make_unit("b", "y", kind="knowledge")], QUESTION),
        ([make_unit("a", "x"), make_unit("b", "y")], "Can you summarise my flat?"),
    ],
    ids=["long messages", "documents", "requests"],
)
def test_what_the_reader_does_not_know_is_left_alone(units, question):
    pool = make_pool([(unit, 0.5) for unit in units])

    def judge(_question, _turns):
        raise AssertionError("read")

    assert read_together(pool, staging(units, reading_of(judge), question)) is pool


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Summarise what I said about the boat.", True),
        ("Can you give me ideas for the garden?", True),
        ("How many days passed between the two trips?", True),
        ("How do I usually get to work?", False),
        ("What is my dentist called?", False),
        ("Which car did I drive before?", False),
    ],
)
def test_requests_are_told_from_questions(text, expected):
    assert is_request(text) is expected


# -------------------------------------------------------------------------------- what was put out of date


def find_marked(stance="now", logit=5.0, earlier=0.95, **unit):
    """Return which of two turns are found to be out of date, where the reader says so of the first."""
    old, new = make_unit("old", text="flat in Utrecht", **unit), make_unit("new", text="flat in Rotterdam")
    turns = {"old": TurnReading(-2.0, 0.1, earlier, 0.9), "new": TurnReading(3.0, 0.9, 0.1, 0.1)}
    pool = replace(make_pool([(old, 0.6), (new, 0.5)]), readings=Readings(turns, -3.0))
    query = QueryProfile(text=QUESTION, terms=(), stance=stance)
    return find_outdated(pool, query, {"old": old, "new": new}, lambda _question, _turn: logit)


def test_a_turn_is_out_of_date_where_both_readings_are_sure():
    found = find_marked()
    assert found.outdated == {"old"}
    assert (found.readings.turns["old"].alone, found.readings.turns["new"].alone) == (5.0, None)


@pytest.mark.parametrize(
    "unsure", [{"earlier": 0.85}, {"logit": 3.9}, {"stance": "then"}, {"overruled": ("earlier",)}], ids=str
)
def test_what_is_not_sure_or_not_asked_or_overruled_is_not_called_out_of_date(unsure):
    assert not find_marked(**unsure).outdated


def test_what_the_assistant_only_repeats_is_not_called_out_of_date():
    told, question = "My boat is called Petrel.", "What is the name of my boat?"
    said = [{"role": "user", "content": told}, {"role": "assistant", "content": f"You told me: {told}"}]
    with Memory.open(":memory:", now=lambda: NOW) as memory:
        memory.remember(said, user="ana", session="a")
        text = memory.assemble(question, user="ana", budget=200).text
    assert f"user: {told}" in text


# ---------------------------------------------------------------------------------------------- the verbs


def test_search_and_assemble_put_the_same_turn_first(memory):
    found = memory.search(QUESTION, user="ana")
    context = memory.assemble(QUESTION, user="ana", budget=200)
    assert found[0].unit.text == MOVED[2] == context.section("projection").items[0].text
    assert memory.search(QUESTION, user="ana", read=False)[0].unit.text != MOVED[2]


@pytest.mark.parametrize("way", ["once", "wide"])
def test_every_score_composes_with_reading(memory, way):
    hits = memory.search(QUESTION, user="ana", read=way, explain=True)
    assert [hit.contributions.compose() for hit in hits] == [hit.score for hit in hits]
    assert all(hit.contributions.find("rel with read") for hit in hits)


def test_the_trace_has_what_the_reader_says_of_each_turn(memory):
    found, unread = (memory.search(QUESTION, user="ana", read=read).trace.readings for read in ("once", False))
    told = memory.assemble(QUESTION, user="ana", read="once").trace.readings
    ids = {unit.text: unit.id for unit in memory.list(user="ana")}
    first, last = (found.turns[ids[MOVED[place]]] for place in (0, 2))
    assert first.earlier > 0.5 > last.earlier
    assert found.nothing < 0.0
    assert unread is None
    together = ({one: replace(turn, alone=None) for one, turn in given.turns.items()} for given in (told, found))
    assert next(together) == next(together)
    # A context reads the turns that it shows alone too; a search those that it has to choose from.
    assert all(turn.alone in (None, told.turns[one].alone) for one, turn in found.turns.items())


def test_a_context_calls_what_was_put_out_of_date_earlier_and_shows_the_newest_first():
    said = (
        "I drink five coffees a day, ask anyone.",
        "The ferry was late.",
        "Down to one coffee a day since the summer, and I sleep again.",
    )
    question = "How many coffees do I drink a day?"
    with Memory.open(":memory:", now=lambda: NOW, settings=NO_RULES) as memory:
        for number, text in enumerate(said):
            message = {"role": "user", "content": text, "at": later(days=number - 30)}
            memory.remember(message, user="ana", session=f"s{number}")
        read, unread = (memory.assemble(question, user="ana", read=read, budget=2_000) for read in ("once", False))
        assert f"user (earlier): {said[0]}" in read.text
        assert "(earlier" not in unread.text
        shown = [item.text for item in read.section("projection").items if item.score is not None]
        assert shown.index(said[2]) < shown.index(said[0])
        assert [item.text for item in read.items if item.earlier] == [said[0]]


def test_wide_reads_every_turn_alone(memory):
    found = memory.search(QUESTION, user="ana", read="wide")
    told = memory.why(QUESTION, found[0].unit.id, user="ana", read="wide")
    assert found[0].unit.text == MOVED[2]
    assert all(turn.alone is not None for turn in found.trace.readings.turns.values())
    assert told.score == found[0].score
    assert memory.assemble(QUESTION, user="ana", read="wide").trace.readings == found.trace.readings


def test_settings_say_how_every_call_reads():
    settings = Settings(stages=StageSettings(read="wide"))
    with Memory.open(":memory:", settings=settings, now=lambda: NOW) as memory:
        for text in MOVED:
            memory.remember(text, user="ana")
        turns, unread = (memory.search(QUESTION, user="ana", read=way).trace.readings for way in (None, False))
    assert len([turn for turn in turns.turns.values() if turn.alone is not None]) == len(turns.turns)
    assert unread is None


def test_why_tells_what_was_read(memory):
    hit = memory.search(QUESTION, user="ana")[0]
    told, plain = (memory.why(QUESTION, hit.unit.id, user="ana", read=read) for read in (None, False))
    assert [part.name for part in parts_of(told.contributions)].count("read") == 1
    assert (told.rank, told.score) == (1, hit.score)
    assert plain.rank != 1


def test_a_memory_without_models_reads_only_when_asked():
    with opened() as memory:
        for text in MOVED:
            memory.remember(text, user="ana")
        found, read = (memory.search("flat", user="ana", read=read) for read in (None, "once"))
    assert [one.stage for hit in found.trace.candidates for one in hit.adjustments].count("read") == 0
    assert [one.stage for hit in read.trace.candidates for one in hit.adjustments].count("read") == 2


def test_the_reference_recipe_never_reads():
    assert Settings.reference().stages.read == "off"
    assert Settings().stages.read == "once"


def test_another_way_of_reading_is_refused(memory):
    with pytest.raises(InputError, match="no read 'twice'"):
        memory.search(QUESTION, user="ana", read="twice")


def test_without_its_model_hits_stand_as_they_were_found_and_the_answer_says_so(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "shipped_folder", lambda name: tmp_path / name)
    open_reader.cache_clear()
    plain = memory.search(QUESTION, user="ana", read=False)
    found = memory.search(QUESTION, user="ana", read="once")
    assert texts(found) == texts(plain)
    assert "not read together" in found.degraded
    assert "not read together" in memory.assemble(QUESTION, user="ana", read="once").degraded
    with pytest.raises(ReaderError, match="install Holdfast again"):
        memory.search(QUESTION, user="ana", read="once", strict=True)
    open_reader.cache_clear()
