"""Laws of the time a question names (C13): a range is a range, and only the phrase decides it."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.dates import time_mention

MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
UNITS = ["day", "week", "month", "quarter", "year", "decade"]

zones = st.builds(timezone, st.integers(-23 * 60, 23 * 60).map(lambda minutes: timedelta(minutes=minutes)))
references = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=zones)  # noqa: DTZ001
any_reference = st.datetimes(timezones=zones)

# One phrase of every family.
phrases = st.one_of(
    st.dates().filter(lambda day: 1500 <= day.year < 2200).map(lambda day: f"on {day.isoformat()}"),
    st.builds("on {} {}, {}".format, st.sampled_from(MONTHS), st.integers(1, 28), st.integers(1500, 2199)),
    st.builds("on the {}th of {}".format, st.integers(4, 20), st.sampled_from(MONTHS)),
    st.builds("{} {}".format, st.sampled_from(["in", "since", "before", "after"]), st.sampled_from(MONTHS)),
    st.builds("in {} {}".format, st.sampled_from(["early", "mid", "late"]), st.sampled_from(MONTHS)),
    st.builds("{} {}".format, st.sampled_from(["last", "this", "next"]), st.sampled_from([*MONTHS, *WEEKDAYS])),
    st.builds("{} {}".format, st.sampled_from(["last", "this", "next"]), st.sampled_from(UNITS[1:])),
    st.builds("last {}".format, st.sampled_from(["spring", "summer", "fall", "winter", "weekend", "night"])),
    st.builds("in {}".format, st.integers(1500, 2199)),
    st.builds("from {} to {}".format, st.sampled_from(MONTHS), st.sampled_from(MONTHS)),
    st.builds("{} {}s ago".format, st.integers(1, 5000), st.sampled_from([*UNITS, "hour", "night"])),
    st.builds("in the past {} {}s".format, st.integers(1, 5000), st.sampled_from([*UNITS, "hour"])),
    st.builds("two {}s before {} 5".format, st.sampled_from(UNITS), st.sampled_from(MONTHS)),
    st.sampled_from(["yesterday", "today", "on New Year's Eve", "at Easter", "for Christmas", "in Q2", "in the 90s"]),
)
# Words that say nothing about time, about what is usual, or about the future.
fillers = st.lists(st.sampled_from("blue dentist kitchen alpha Anna guitar quickly nothing".split()), max_size=4)
scraps = st.sampled_from(
    "in on at the last next this past of before after since may march fall 2021 2023-13-45 3/4 31 first second week "
    "day weekend ago two 99999 years months between and to from until Monday Feb 29th 30 Q4 the trip my birthday "
    "when I was half a couple few early mid-end ' - – , ? ſ ı İ K ٣ 's".split()
)


@given(phrases, any_reference)
def test_a_range_starts_before_it_ends_in_utc(phrase, reference):
    mention = time_mention(f"What did I do {phrase}?", reference)
    if mention and mention.range:
        assert mention.range.start < mention.range.end
        assert mention.range.start.tzinfo is mention.range.end.tzinfo is UTC


numbers = st.sampled_from("two 2 twenty five 10 99999 a couple few half ٣".split())
amounts = st.builds(
    "{}{}{} weeks ago".format, numbers, st.sampled_from([" ", "-", "–", "+", " or ", " to "]), numbers
)


@given(st.text(max_size=120) | st.lists(scraps, max_size=12).map(" ".join) | amounts, any_reference)
def test_no_text_breaks_it_and_the_phrase_stands_in_the_question(question, reference):
    mention = time_mention(question, reference)
    assert mention == time_mention(question, reference)
    if mention:
        assert mention.phrase in question
        assert (mention.range is None) == (mention.event is not None)
        assert mention.event is None or mention.event in mention.phrase


@given(phrases, references, fillers, fillers)
def test_other_words_around_the_phrase_do_not_change_its_range(phrase, reference, before, after):
    alone = time_mention(phrase, reference)
    among = time_mention(" ".join([*before, phrase, *after]), reference)
    assert (alone and alone.range) == (among and among.range)


@given(references, st.integers(0, 9999), st.integers(0, 9999))
def test_more_days_ago_is_earlier(reference, fewer, more):
    fewer, more = sorted((fewer, more))
    late, early = (time_mention(f"What did I do {count} days ago?", reference).range for count in (fewer, more))
    assert late.end - late.start == early.end - early.start == timedelta(days=1)
    assert early.start == late.start - timedelta(days=more - fewer)


@given(references, st.integers(1, 500), st.sampled_from(UNITS))
def test_that_long_ago_is_as_far_back_as_the_past_so_many_reach(reference, count, unit):
    ago = time_mention(f"What did I do {count} {unit}s ago?", reference).range
    past = time_mention(f"What did I do in the past {count} {unit}s?", reference).range
    assert ago.holds(past.start)
    assert past.holds(reference)


def local_range(question, reference):
    found = time_mention(question, reference).range
    return found.start.astimezone(reference.tzinfo), found.end.astimezone(reference.tzinfo)


@given(references, st.sampled_from(MONTHS))
def test_a_month_without_a_year_has_begun_and_lasts_a_month(reference, month):
    start, end = local_range(f"What did I do in {month}?", reference)
    assert start.strftime("%B") == month
    assert start <= reference < start.replace(year=start.year + 1)
    assert (end - timedelta(days=1)).month == start.month


@given(references, st.sampled_from(WEEKDAYS))
def test_a_weekday_is_one_of_the_seven_days_before_today_or_after_it(reference, weekday):
    past = time_mention(f"What did I do on {weekday}?", reference).range
    coming = time_mention(f"What will I do on {weekday}?", reference).range
    for found in (past, coming):
        assert found.start.astimezone(reference.tzinfo).strftime("%A") == weekday
    assert not past.holds(reference)
    assert past.start < reference < coming.start
    assert coming.start - past.start <= timedelta(days=14)


@given(
    references,
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.sampled_from(["before", "after"]),
    st.integers(1, 60),
    st.sampled_from(["day", "week", "month", "year"]),
)
def test_a_measured_distance_from_an_event_lies_on_its_side(reference, moment, side, count, unit):
    mention = time_mention(f"What did I do {count} {unit}s {side} the trip?", reference)
    found = mention.around(moment)
    assert found.start < found.end
    assert found.start < moment if side == "before" else found.end > moment
    assert not found.holds(moment)
