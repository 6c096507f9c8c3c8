"""Times that a text tells of count as much as when it was said: what a question for a time finds and says."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from builders import opened
from commands import holdfast
from holdfast import Settings
from holdfast.text.dates import TimeRange
from holdfast.text.temporal import date_words, name_time, told_times

SAID = datetime(2026, 6, 10, 18, 0, tzinfo=UTC)  # a Wednesday


def day(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def told(text, said=SAID):
    """Return the days that a text tells of, each as its first and last."""
    return [(f"{one.start:%Y-%m-%d}", f"{one.end - timedelta(hours=1):%Y-%m-%d}") for one in told_times(text, said)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("We hiked the gorge on 31 May.", "2026-05-31", "2026-05-31"),
        ("The release went out yesterday", "2026-06-09", "2026-06-09"),
        ("We're getting married on 19 September in Krakow", "2026-09-19", "2026-09-19"),
        ("Getting the keys on 3 January", "2027-01-03", "2027-01-03"),
        ("I lost my keys on 20 November", "2025-11-20", "2025-11-20"),
        ("They've moved my driving test to 23 June", "2026-06-23", "2026-06-23"),
        ("Easter: the lamb was burnt", "2026-04-03", "2026-04-06"),
        ("valentine's: we had pizza", "2026-02-14", "2026-02-14"),
        ("I've got the interview on the 3rd of September", "2026-09-03", "2026-09-03"),
        ("The town hall confirmed Saturday 29 August", "2026-08-29", "2026-08-29"),
        ("Dinner is this Tuesday at seven", "2026-06-16", "2026-06-16"),
        ("The run was this Tuesday", "2026-06-09", "2026-06-09"),
        ("I was in hospital from Friday to Monday", "2026-06-05", "2026-06-08"),
        ("I'll be in Rome from Friday to Monday", "2026-06-12", "2026-06-15"),
        ("My passport expires on 20 October", "2026-10-20", "2026-10-20"),
        ("We met on Friday", "2026-06-05", "2026-06-05"),
        ("Dentist Friday at nine", "2026-06-12", "2026-06-12"),
        ("Hand the form in by Friday", "2026-06-12", "2026-06-12"),
        ("I slept badly last night", "2026-06-09", "2026-06-10"),
        ("The plumber comes on the 18th and brings the boiler", "2026-06-18", "2026-06-18"),
        ("She rode 80 km on the 7th", "2026-06-07", "2026-06-07"),
        ("I've been ill since Monday", "2026-06-08", "2026-06-08"),
        ("My last day there was Friday the 29th", "2026-05-29", "2026-05-29"),
        ("Next week I'm in Rome", "2026-06-15", "2026-06-21"),
        ("The report is due in two weeks", "2026-06-21", "2026-06-27"),
        ("In spring we planted leeks", "2026-03-01", "2026-05-31"),
        ("The fair was from 3 to 5 April", "2026-04-03", "2026-04-05"),
        ("We were away for the first ten days of May", "2026-05-01", "2026-05-10"),
        ("The reunion (2019) was fun", "2019-01-01", "2019-12-31"),
    ],
)
def test_a_text_tells_of_the_time_that_was_meant_when_it_was_said(text, first, last):
    assert told(text) == [(first, last)]


def test_each_time_is_on_the_side_of_the_verb_before_it():
    assert told("I met Ann on Friday, and I'll go there again on Monday") == [
        ("2026-06-05", "2026-06-05"),
        ("2026-06-15", "2026-06-15"),
    ]


@pytest.mark.parametrize("text", ["We may march on", "It took 3 tries in two weeks", "2 of 5", "the second one"])
def test_what_is_no_time_is_told_by_nobody(text):
    assert told(text) == []


def test_a_day_is_told_in_the_zone_of_the_question():
    [found] = told_times("It arrived yesterday", datetime(2026, 6, 10, 1, 0, tzinfo=ZoneInfo("Asia/Tokyo")))
    assert found == TimeRange(datetime(2026, 6, 8, 15, tzinfo=UTC), datetime(2026, 6, 9, 15, tzinfo=UTC))


@pytest.mark.parametrize(
    ("first", "after", "name", "words"),
    [
        ("2026-05-31", "2026-06-01", "on 31 May 2026", {"may", "31", "31st", "2026-05-31"}),
        ("2026-05-22", "2026-06-01", "between 22 and 31 May 2026", {"may", "22", "22nd", "30th", "2026-05-31"}),
        ("2026-05-30", "2026-06-02", "between 30 May 2026 and 1 June 2026", {"may", "jun", "1st", "13"}),
        ("2026-03-01", "2026-06-01", "between 1 March 2026 and 31 May 2026", {"march", "april", "may"}),
        ("2025-01-01", "2026-01-01", "between 1 January 2025 and 31 December 2025", set()),
    ],
)
def test_a_time_is_named_and_looked_for_by_its_words(first, after, name, words):
    time = TimeRange(day(first), day(after))
    assert name_time(time, UTC) == name
    assert words - {"13"} <= {*date_words(time, UTC).split()}
    assert bool(words) == bool(date_words(time, UTC))


def test_an_open_time_is_named_by_its_known_side():
    always, never = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    assert name_time(TimeRange(always, day("2026-06-01")), UTC) == "before 1 June 2026"
    assert name_time(TimeRange(day("2026-06-01"), never), UTC) == "since 1 June 2026"


# ------------------------------------------------------------------------------------------------ what is found

# Else a small memory is in the context whole.
FOUND_ONLY = Settings.load({"assembly.fill": 0.0}, environ={}).without_timeouts()
ASKED = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)


def remembering(*said, now=ASKED):
    """Open a memory in which texts were said: pairs of a time and a text, whose ids are their numbers."""
    memory = opened(FOUND_ONLY, now=now)
    for number, (moment, text) in enumerate(said):
        memory.remember(text, user="ana", id=str(number), at=day(moment))
    return memory


# Enough of other days, so that not everything is looked at.
NOISE = [
    (f"2026-{month:02}-{date:02}", f"note {month} {date} on the roof")
    for month in (2, 3, 7, 8)
    for date in range(1, 29)
]


@pytest.mark.parametrize(
    ("question", "said", "asked"),
    [
        ("What did we do at the end of May?", ("2026-06-10", "We hiked the gorge on 31 May."), ASKED),
        ("What happened on 9 June?", ("2026-06-10", "v4 went out yesterday"), ASKED),
        ("What do I have to do this week?", ("2026-10-02", "The boiler has to be checked on 19 November"), ASKED),
        ("What do I have to do this week?", ("2026-11-10", "Next week I hand in the tax form"), ASKED),
        ("Where was I on the weekend of 19 September?", ("2026-04-02", "getting married on 19 September"), ASKED),
        ("What happened in April?", ("2026-12-24", "We moved house on 3 April"), day("2027-01-10")),
    ],
)
def test_a_question_for_a_time_alone_finds_what_tells_of_it(question, said, asked):
    with remembering(said, *NOISE, now=asked) as memory:
        found = memory.search(question, user="ana")
        assert found[0].unit.id == "0"
        assert not found.warnings
        assert "0" in [item.id for item in memory.assemble(question, user="ana").section("projection").items]


def test_what_tells_of_the_time_stands_beside_what_was_said_in_it():
    said = [("2026-05-30", "The milk is off"), ("2026-06-10", "We hiked the gorge on 31 May.")]
    with remembering(*said, *NOISE) as memory:
        assert {hit.unit.id for hit in memory.search("What did we do at the end of May?", user="ana")} == {"0", "1"}


def test_a_longer_time_counts_by_the_share_of_it_that_is_asked_for():
    said = [("2026-06-20", "We were in Oslo from 5 to 14 June"), ("2026-06-20", "On 9 June we saw the fjord")]
    with remembering(*said) as memory:
        assert [hit.unit.id for hit in memory.search("What happened on 9 June?", user="ana")][:2] == ["1", "0"]


def test_with_a_topic_what_tells_of_the_time_stands_above_what_was_only_said_in_it():
    said = [("2026-06-09", "The kettle is broken"), ("2026-06-12", "We saw a film about whales on 9 June")]
    with remembering(*said, ("2026-03-03", "We saw a film about owls")) as memory:
        found = memory.search("Which film did we see on 9 June?", user="ana")
        assert [hit.unit.id for hit in found][:2] == ["1", "2"]


# --------------------------------------------------------------------------------------- where nothing is of the time

GORGE = [("2026-05-04", "The gorge is closed"), ("2026-06-10", "We painted the shed"), ("2026-09-01", "A new bike")]
NOTHING = "nothing was said or dated between 22 and 31 May 2026; nearest: 4 May 2026 and 10 June 2026"


def test_a_time_in_which_nothing_lies_brings_up_what_is_nearest_and_says_so():
    with remembering(*GORGE) as memory:
        found = memory.search("What did we do at the end of May?", user="ana")
        assert {hit.unit.id for hit in found[:2]} == {"0", "1"}
        assert found.warnings == (NOTHING,)
        assert memory.assemble("What did we do at the end of May?", user="ana").warnings == (NOTHING,)


def test_the_nearest_may_be_told_as_well():
    with remembering(("2026-05-01", "We leave for Whitby on 3 June"), ("2026-09-01", "A new bike")) as memory:
        [warning] = memory.search("What did we do at the end of May?", user="ana").warnings
        assert warning.endswith("nearest: 1 May 2026 and 3 June 2026")


def test_a_topic_of_another_time_is_found_with_a_word_about_the_time():
    with remembering(*GORGE) as memory:
        found = memory.search("Who painted the shed in April?", user="ana")
        assert found[0].unit.id == "1"
        assert found.warnings == ("nothing that was found was said or dated between 1 and 30 April 2026",)


def test_an_empty_memory_has_nothing_near():
    with remembering() as memory:
        assert len(memory.search("What did we do at the end of May?", user="ana")) == 0


def test_why_names_the_time_that_took_a_unit_away():
    with remembering(
        ("2026-06-10", "We hiked the gorge on 31 May."), ("2026-07-02", "The end of the rope")
    ) as memory:
        why = memory.why("What did we do at the end of May?", "1", user="ana")
        assert not why.returned
        assert why.verdict.endswith("because it was neither said in the time asked for nor tells of it")


def test_the_command_line_says_that_nothing_lies_in_the_time(tmp_path):
    store = f"--db={tmp_path / 'g.db'}"
    holdfast("remember", "The gorge is closed", "--at=2026-05-04", store)
    ended = holdfast("search", "What did we do at the end of May?", store, "--reference-time=2026-11-17")
    assert "nothing was said or dated between 22 and 31 May 2026" in " ".join((ended.out + ended.err).split())
