"""Questions about now: what they are, what shows that a turn replaces an earlier one, and what that does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, make_pool, make_unit
from holdfast.ranking.current import prefer_current
from holdfast.ranking.pool import StageInputs
from holdfast.settings import StageSettings
from holdfast.text.questions import find_stance, profile_query
from holdfast.text.statements import (
    find_rare,
    has_other_value,
    is_correction,
    read_cues,
    read_question_cues,
    read_values,
    share_rare_words,
    tells_change,
)
from holdfast.types import Adjustment

# ---------------------------------------------------------------------------------------------- the question


@pytest.mark.parametrize(
    "question",
    [
        "Where do I live now?",
        "where do I live",
        "Do I still drink tea?",
        "Am I a member there any more?",
        "What's the latest on the roof?",
        "Who's my dentist?",
        "How many hens do we have?",
        "How old is Meg?",
        "When was the demo?",
        "What time was kick-off in the final?",
        "Have I still got the loft key?",
        "Which date did the fair have in the end?",
        "my weekend curfew",
        "How many pages have I read so far?",
    ],
)
def test_a_question_for_what_holds_asks_about_now(question):
    assert find_stance(question) == "now"


@pytest.mark.parametrize(
    "question",
    [
        "Where did I live?",
        "Where did I live before Hull?",
        "What was I paying back then?",
        "Which car did I use to drive?",
        "What was my previous goal?",
        "Who was my first boss?",
        "How has my rent changed?",
        "What's the story with my gym?",
        "Which cars have we gone through?",
        "How many days are there between the fair and the trip?",
        "Have I ever been to Oslo?",
        "Can you give me a summary of my moves?",
    ],
)
def test_a_question_for_what_held_before_or_how_it_went_asks_about_then(question):
    assert find_stance(question) == "then"


@pytest.mark.parametrize(
    "question",
    [
        "How should I pack for a week away?",
        "Can you suggest a name for a dog?",
        "Have I met the new vicar?",
    ],
)
def test_a_request_and_a_question_whether_it_ever_happened_ask_about_neither(question):
    assert find_stance(question) is None


def test_of_a_named_speaker_only_words_of_now_ask_for_what_holds():
    assert profile_query("What does Ana do to relax?", speakers=["Ana"]).stance is None
    assert profile_query("What does Ana do to relax?").stance == "now"
    assert profile_query("Does Ana still swim?", speakers=["Ana"]).stance == "now"
    assert profile_query("Where do I live these days\u2026 I\u2019ve forgotten").stance == "now"


# ------------------------------------------------------------------------------------------------- its signs

ASKED = read_question_cues("Which gym am I a member of?")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("I cancelled the gym, it was too dear.", True),
        ("I'm with another gym now.", True),
        ("We moved house. The gym is open till ten.", False),
        ("Right. I quit in June.", True),
        ("The gym is open till ten.", False),
        ("", False),
    ],
)
def test_words_of_change_count_in_the_sentence_that_speaks_of_the_same(text, changes):
    assert tells_change(ASKED, read_cues("I joined a gym on the corner."), read_cues(text)) is changes


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("no wait, it's the 21st", True),
        ("Oh sorry, 10:30", True),
        ("Sheila says I've got it wrong, it's at 11", True),
        ("It is on the 21st", False),
        ("Nothing planned so far", False),
    ],
)
def test_a_turn_that_puts_right_what_was_said_is_told_by_its_words(text, wrong):
    assert is_correction(text) is wrong


def test_words_that_few_turns_hold_tie_two_of_them():
    old = read_cues("TalkTalk for the internet, and it drops out")
    new = read_cues("we chucked TalkTalk, the internet is fine")
    others = [read_cues("the internet is slow") for _ in range(2)]
    rare = find_rare([old, new, *others])
    assert "talktalk" in rare
    assert "internet" not in rare
    assert share_rare_words(ASKED, old, new, rare) == 0.25
    assert share_rare_words(read_question_cues("Is TalkTalk any good?"), old, new, rare) == 0.0
    long = read_cues("badger otter heron stoat weasel")
    assert share_rare_words(ASKED, long, long, find_rare([long])) == 1.0


def test_only_the_beginning_of_a_turn_is_read():
    told = read_cues("word " * 1000 + "zebra")
    assert told.words == {"word"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$1,200 a month, up from 900 euros", {("money", "1200"), ("money", "900")}),
        ("it is 17.50 now", {("count", "17.50")}),
        ("Wednesdays at 4:45, or at six", {("time", "wednesday"), ("time", "4:45"), ("time", "six")}),
        ("the 21st, not 14 October", {("time", "21"), ("time", "14")}),
        ("95% after 20 minutes", {("percent", "95"), ("span", "20")}),
        ("seven hens", {("count", "seven")}),
        ("nothing of the kind", set()),
    ],
)
def test_values_are_read_with_their_kind(text, values):
    assert read_values(text) == values


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When is the fair?", {"time"}),
        ("How long does it take?", {"span"}),
        ("How many hens do we have?", {"count", "span"}),
        ("How much is the rent?", {"money", "count", "span"}),
        ("Who is my dentist?", set()),
        ("So is the rent still due on Monday?", set()),
    ],
)
def test_a_question_asks_for_kinds_of_value(question, kinds):
    assert read_question_cues(question).kinds == kinds


def test_another_value_counts_only_if_it_is_of_the_kind_that_is_asked_for_and_new():
    asked, old = read_question_cues("How much is the rent for 2 rooms?"), read_values("the rent is $900")
    assert has_other_value(asked, old, read_values("the rent went up to $980")) is True
    assert has_other_value(asked, old, read_values("$900 for 2 rooms, due on the 3rd")) is False
    assert has_other_value(asked, read_values("the rent is a joke"), read_values("$980")) is None


# ------------------------------------------------------------------------------------------------- the stage


def told(key, rel, text, days=0, **fields):
    return make_unit(key, text, event_time=NOW + timedelta(days=days), **fields), rel


HOME = [
    told("old", 0.9, "I live in Hull, by the station in Princes Avenue."),
    told("roof", 0.7, "The roof leaks again.", days=2),
    told("new", 0.6, "We moved, goodbye Princes Avenue, so I live in Ripon.", days=9),
]


def preferred(rows, question="Where do I live?", beside=None, **settings):
    units = {unit.id: unit for unit, _ in rows}
    query = profile_query(question) if isinstance(question, str) else question
    staging = StageInputs(query, StageSettings(**settings), 64, lambda ids: {i: units[i] for i in ids}, None, None)
    return prefer_current(make_pool(rows, full_marks=2.0, beside=beside), staging).sorted()


def test_what_seems_to_replace_the_best_row_stands_just_above_it_and_says_why():
    pool = preferred(HOME)
    assert pool.ids == ("new", "old", "roof")
    found = pool.candidate(0)
    assert found.adjustments == (
        Adjustment("current", 1.0, pytest.approx(0.9 + 0.005 + 0.02 * 0.6), "rel of old, which it seems to replace"),
    )
    assert found.rel == found.adjustments[0].signal
    assert pool.candidate(1).adjustments == ()
    assert dict(pool.replaced) == {"old": "new"}


@pytest.mark.parametrize("question", ["Where did I live before?", "How has my home changed?", "Suggest a home"])
def test_questions_about_then_and_for_advice_are_left_alone(question):
    pool = preferred(HOME, question)
    assert pool.ids == ("old", "roof", "new")
    assert not pool.replaced


def test_without_its_weight_nothing_moves():
    assert preferred(HOME, current=0.0).ids == ("old", "roof", "new")


def test_an_earlier_turn_never_takes_the_place_of_a_later_one():
    turned = [told("late", 0.9, HOME[2][0].text, days=9), told("early", 0.6, HOME[0][0].text)]
    assert preferred(turned).ids == ("late", "early")


def test_documents_do_not_replace_one_another():
    rows = [(replace(unit, kind="knowledge"), rel) for unit, rel in HOME]
    assert preferred(rows).ids == ("old", "roof", "new")


def test_of_several_the_one_that_answers_better_stands_first():
    more = [*HOME, told("newest", 0.59, "My new desk lives by the window.", days=20)]
    assert preferred(more).ids == ("new", "newest", "old", "roof")


def test_a_turn_of_a_session_stands_further_above_what_was_promoted():
    rows = [HOME[0], (replace(HOME[2][0], scope="session", session="s"), 0.6)]
    assert preferred(rows).rel[0] == pytest.approx(0.9 + 0.04 + 0.02 * 0.6)


RENT = [
    told("old", 0.9, "The rent is 900 dollars.", session="s"),
    told("again", 0.8, "New paint, and the rent of 900 dollars stays with us.", days=3, session="t"),
    told("new", 0.7, "The rent is 950 dollars.", days=1, session="s"),
]


def test_of_two_later_turns_the_one_with_another_value_replaces_the_first():
    assert preferred(RENT, "How much is the rent?").ids == ("new", "old", "again")


def test_what_the_assistant_replies_is_no_news_but_what_it_tells_unasked_is():
    news = "The roofer moved your visit to the 21st."
    rows = [
        told("old", 0.9, "The roofer comes for a visit on the 14th."),
        told("news", 0.8, news, days=2, author="assistant"),
    ]
    asked = "When does the roofer come for his visit?"
    assert preferred(rows, asked).ids == ("news", "old")
    assert preferred(rows, asked, beside={"old": (None, "news"), "news": ("old", None)}).ids == ("old", "news")


def test_somebody_else_s_turn_does_not_replace_what_one_said():
    rows = [(replace(unit, speaker=name), rel) for (unit, rel), name in zip(HOME, ("Ana", "Ana", "Ben"), strict=True)]
    assert preferred(rows).ids == ("old", "roof", "new")


def test_a_time_that_is_over_is_no_question_for_what_holds():
    query = profile_query("Where do I live?")
    for end, ids in ((5, ("old", "roof", "new")), (20, ("new", "old", "roof"))):
        assert preferred(HOME, replace(query, time_range=(NOW, NOW + timedelta(days=end)))).ids == ids


def test_what_names_the_number_that_is_asked_for_is_not_replaced():
    rows = [told(f"box {n}", rel, f"Box {n} holds the new lamps.", days=n) for n, rel in ((2, 0.9), (3, 0.88))]
    assert preferred(rows, "What is in box 2?").ids == ("box 2", "box 3")
    assert preferred(rows, "What is in the box?").ids == ("box 3", "box 2")


def test_a_wish_for_the_future_replaces_nothing():
    rows = [HOME[0], told("wish", 0.85, "From now on call me Nad, and always answer briefly.", days=9)]
    assert preferred(rows).ids == ("old", "wish")
