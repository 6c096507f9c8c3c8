"""Temporal anchors (C13): A(d) = min(distinct anchors / 3, 1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_unit
from holdfast.settings import AnalysisSettings
from holdfast.text import analyse
from holdfast.text.temporal import OPEN_END, anchor_density, anchors, mentioned_years

# One anchor each, by pattern group.
EXAMPLES = {
    "ISO date": ["2026-03-29", "1999-12-31"],
    "numeric date": ["3/29", "12/24", "3/29/26", "29/3/2026", "03/04/2025"],
    "month and day": ["March 29", "march 29th", "Mar. 3", "Sept 1st, 2025", "29 March", "3rd of June 2024", "May 5"],
    "weekday": ["Monday", "tuesdays", "WEDNESDAY"],
    "relative": [
        "today",
        "Yesterday",
        "tomorrow",
        "tonight",
        "last week",
        "next month",
        "last  night",
        "next Friday",
    ],
    "middle of": ["mid-June", "mid-week", "mid-2024"],
    "clock time": ["9:30", "09:30", "23:59", "9:30 pm", "7:05am", "7:05 a.m."],
    "year": ["1987", "2031"],
    "epoch": ["1774780000", "1774780000000"],
}


@pytest.mark.parametrize("anchor", [a for group in EXAMPLES.values() for a in group])
def test_each_pattern_counts_as_one_anchor_inside_a_sentence(anchor):
    assert anchors(f"We met ({anchor}), and it rained.") == {" ".join(anchor.lower().split())}
    assert anchor_density(f"We met ({anchor}), and it rained.") == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "text",
    [
        "The midfielder scored in the middle of the mid-season lull",
        "a mid-range phone",
        "the ratio was 16/9, the odds 50/50",
        "care around the clock, 24/7",
        "the 50/30/20 rule of saving",
        "a mix of 70/20/10",
        "a score of 3:2 and a lap of 25:99",
        "running Python 3.11 on kernel 6.8.12",
        "firmware 10.4.2021 and build 1.2.1999",
        "release 2023.10.1 of the tool",
        "it cost 1999.99 euros",
        "flat 12, 305 steps, 90210",
        "room v2024b and model X1987",
        "an account of 123456789 or 12345678901234",
        "she may march on and will decide in summer",
        "",
    ],
)
def test_what_only_looks_like_a_date_is_no_anchor(text):
    assert anchors(text) == frozenset()
    assert anchor_density(text) == 0.0


@pytest.mark.parametrize("date", ["2026-03-29", "3/29/2026", "March 29, 2026", "29 March 2026"])
def test_one_date_is_one_anchor_and_not_a_date_and_a_year(date):
    assert len(anchors(f"Paid on {date}.")) == 1


def test_two_timestamps_of_one_year_are_two_anchors():
    found = anchors("started 2026-03-29T10:15:00Z, stopped 2026-05-01T18:00:00Z")
    assert len(found) >= 2
    assert {text[:10] for text in found} >= {"2026-03-29", "2026-05-01"}


def test_a_range_of_years_is_two_anchors():
    assert anchors("from 2019-2021") == {"2019", "2021"}


def test_equal_anchors_count_once_whatever_their_case_and_spacing():
    assert anchors("Monday, monday and MONDAY") == {"monday"}
    assert anchors("last week … last\nweek … Last  Week") == {"last week"}


def test_density_is_a_third_for_each_anchor_and_saturates_at_three():
    said = "On Monday at 9:30 we flew; back on 2026-04-02, then 5 June."
    assert [anchor_density(text) for text in ("On Monday", "On Monday at 9:30")] == pytest.approx([1 / 3, 2 / 3])
    assert anchor_density("Monday 9:30 2026-04-02") == 1.0
    assert len(anchors(said)) == 4
    assert anchor_density(said) == 1.0


def test_density_is_derived_from_the_raw_text_and_stored_with_the_unit():
    unit = make_unit(text="The boiler was mended on Tuesday.", claim="The boiler works.")
    assert analyse(unit, AnalysisSettings()).anchor_density == pytest.approx(1 / 3)


@given(st.lists(st.sampled_from([a for group in EXAMPLES.values() for a in group]), max_size=6), st.text(max_size=30))
def test_density_lies_in_zero_to_one_and_never_falls_when_text_is_added(parts, tail):
    text = " — ".join(parts)
    assert 0.0 <= anchor_density(text) <= anchor_density(f"{text} — {tail}") <= 1.0


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("( 2015-2019 )", [(2015, 2019)]),
        ("2015\u201316 and 1999", [(2015, 2016), (1999, 1999)]),
        ("October 2003 \u2013 May 2005", [(2003, 2005)]),
        ("1 July 1931 to 3 May 1935", [(1931, 1935)]),
        ("between 1957 and 1961", [(1957, 1961)]),
        ("between March 1957 and June 1961", [(1957, 1961)]),
        ("in 1998 and 2002", [(1998, 1998), (2002, 2002)]),
        ("since 2003", [(2003, OPEN_END)]),
        ("since May 2004", [(2004, OPEN_END)]),
        ("2003-present", [(2003, OPEN_END)]),
        ("(1960 - )", [(1960, OPEN_END)]),
        ("in the 1990s", [(1990, 1999)]),
        ("until 1973", [(1973, 1973)]),
        ("on 1998-05-03", [(1998, 1998)]),
        ("from 1999 to 1990", [(1999, 1999)]),
        ("$2000, 1,950 or 1950.5 and A1999 in room 12034", []),
    ],
)
def test_the_years_that_a_text_tells_of_are_read_as_ranges(text, years):
    assert mentioned_years(text) == tuple(years)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("two days ago", {"two days ago"}),
        ("A week ago we met at 3 p.m.", {"a week ago", "3 p.m."}),
        ("the 3pm train on 2026-03-04 at 10:00", {"3pm", "2026-03-04", "10:00"}),
        ("at noon, or twelve days later", {"noon", "twelve days later"}),
        ("in 3 weeks", {"in 3 weeks"}),
        ("it costs 3 pounds in a shop", set()),
        ("yesterday at 9:30 pm", {"yesterday", "9:30 pm"}),
    ],
)
def test_relative_days_and_hours_of_the_clock_are_anchors_beside_those_of_the_reference(text, found):
    assert anchors(text, wide=True) == found
    assert anchors(text) <= found


def test_a_memory_counts_them_unless_it_follows_the_reference():
    unit = make_unit(text="We met two days ago at noon, at 3pm.")
    densities = [
        analyse(unit, AnalysisSettings(tokenizer=recipe)).anchor_density for recipe in ("default", "reference")
    ]
    assert densities == [1.0, 0.0]
