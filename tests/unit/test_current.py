"""Questions about now: what they are, what shows that a turn replaces an earlier one, and what that does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, make_pool, make_unit
from holdfast.language.current import content_words, corrects, find_rare, read_told, share_rare, tells_change
from holdfast.language.query import find_stance, profile_query
from holdfast.ranking.stages import Staging, prefer_current
from holdfast.settings import StageSettings
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


@pytest.mark.parametrize("question", ["How should I pack for a week away?", "Can you suggest a name for a dog?"])
def test_a_question_for_advice_asks_about_neither(question):
    assert find_stance(question) is None


def test_of_a_named_speaker_only_words_of_now_ask_for_what_holds():
    assert profile_query("What does Ana do to relax?", speakers=["Ana"]).stance is None
    assert profile_query("What does Ana do to relax?").stance == "now"
    assert profile_query("Does Ana still swim?", speakers=["Ana"]).stance == "now"
    assert profile_query("Where do I live these days\u2026 I\u2019ve forgotten").stance == "now"


# ------------------------------------------------------------------------------------------------- its signs

ASKED = content_words("Which gym am I a member of?")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("I cancelled the gym, it was too dear.", True),
        ("I'm with another gym now.", True),
        ("We moved house. The gym is open till ten.", False),
        ("The gym is open till ten.", False),
        ("", False),
    ],
)
def test_words_of_change_count_in_the_sentence_that_speaks_of_the_same(text, changes):
    assert tells_change(ASKED, read_told("I joined a gym on the corner."), read_told(text)) is changes


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
    assert corrects(text) is wrong


def test_words_that_few_turns_hold_tie_two_of_them():
    old = read_told("TalkTalk for the internet, and it drops out")
    new = read_told("we chucked TalkTalk, the internet is fine")
    others = [read_told("the internet is slow") for _ in range(2)]
    rare = find_rare([old, new, *others])
    assert "talktalk" in rare
    assert "internet" not in rare
    assert share_rare(frozenset(), old, new, rare) == 0.25
    assert share_rare(frozenset({"talktalk"}), old, new, rare) == 0.0
    long = read_told("badger otter heron stoat weasel")
    assert share_rare(frozenset(), long, long, find_rare([long])) == 1.0


def test_only_the_beginning_of_a_turn_is_read():
    told = read_told("word " * 1000 + "zebra")
    assert told.words == {"word"}


# ------------------------------------------------------------------------------------------------- the stage


def told(key, rel, text, days=0, **fields):
    return make_unit(key, text, event_time=NOW + timedelta(days=days), **fields), rel


HOME = [
    told("old", 0.9, "I live in Hull, by the station in Princes Avenue."),
    told("roof", 0.7, "The roof leaks again.", days=2),
    told("new", 0.6, "We moved, goodbye Princes Avenue, so I live in Ripon.", days=9),
]


def preferred(rows, question="Where do I live?", **settings):
    units = {unit.id: unit for unit, _ in rows}
    staging = Staging(
        profile_query(question), StageSettings(**settings), 64, lambda ids: {i: units[i] for i in ids}, None, None
    )
    return prefer_current(make_pool(rows, full_marks=2.0), staging).sorted()


def test_what_seems_to_replace_the_best_row_stands_just_above_it_and_says_why():
    pool = preferred(HOME)
    assert pool.ids == ("new", "old", "roof")
    found = pool.candidate(0)
    assert found.adjustments == (
        Adjustment("current", 1.0, pytest.approx(0.9 + 0.01 + 0.05 * 0.6), "rel of old, which it seems to replace"),
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
    more = [*HOME, told("newest", 0.5, "I moved my desk in Princes Avenue; I live for it.", days=20)]
    assert preferred(more).ids == ("new", "newest", "old", "roof")
