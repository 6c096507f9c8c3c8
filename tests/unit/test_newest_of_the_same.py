"""The newest of the same: two statements with the same words but for a value, and which of them stands first."""

import pytest

from builders import later, opened
from holdfast import Settings
from holdfast.ranking.same import have_same_words
from holdfast.testing.contracts import HashEmbedder

OLD, NEW = "The wifi code is kiwi.", "The wifi code is plum-anchor-17."
TURNS = (OLD, "The garden gate squeaks in the rain.", NEW, "Nora repaired the old radio.")


def remembered(said, **given):
    """Open a memory in which nothing is read and words of change do nothing, and tell it one text a day."""
    given = {"stages__read": "off", "stages__current": 0.0, "refusal__enabled": False, **given}
    known = Settings.load({key.replace("__", "."): value for key, value in given.items()}, environ={})
    memory = opened(known, embedder=HashEmbedder(64))
    for day, text in enumerate(said):
        message = {"role": "user", "at": later(days=day - 30)} | (
            text if isinstance(text, dict) else {"content": text}
        )
        memory.remember(message, user="ana", session=f"s{day}")
    return memory


def ask(question, said=TURNS, **given):
    """Return the texts that are found for a question, best first."""
    with remembered(said, **given) as memory:
        return [hit.unit.text for hit in memory.search(question, user="ana")]


def stages_of(question, said):
    """Return the stages that changed anything."""
    with remembered(said) as memory:
        trace = memory.search(question, user="ana").trace
        return {made.stage for one in trace.candidates for made in one.adjustments}


@pytest.mark.parametrize("question", ["What is the wifi code?", "wifi code", "Can you tell me the code of the wifi?"])
def test_of_two_with_the_same_words_but_for_a_value_the_newest_stands_above(question):
    assert ask(question)[0] == NEW


def test_the_newest_of_several_stands_first_and_the_oldest_last():
    codes = [f"The wifi code is {word}." for word in ("kiwi", "plum", "fig", "pear")]
    assert ask("What is the wifi code?", codes) == codes[::-1]


def test_an_older_one_of_a_wider_scope_stands_below_all_the_same():
    with remembered(()) as memory:
        memory.remember({"role": "user", "content": OLD, "at": later(days=-9)}, user="ana")
        memory.remember({"role": "user", "content": NEW, "at": later(days=-8)}, user="ana", session="s1")
        found = [hit.unit for hit in memory.search("What is the wifi code?", user="ana")]
        assert [(unit.text, unit.scope) for unit in found] == [(NEW, "session"), (OLD, "user")]


def test_where_the_question_asks_for_then_the_order_stays():
    question = "What was the wifi code before?"
    assert ask(question) == ask(question, stages__newest=0.0)


def test_what_another_one_says_is_not_newer():
    said = [{"content": f"My shoe size is {size}.", "name": name} for name, size in (("Ann", "forty"), ("Bo", "ten"))]
    assert "newest" not in stages_of("shoe size", said)
    assert "newest" in stages_of("shoe size", [{**one, "name": "Ann"} for one in said])


def test_nothing_is_hidden_by_it_and_the_explanation_names_it():
    question = "What is the wifi code?"
    assert sorted(ask(question)) == sorted(ask(question, stages__newest=0.0))
    assert "newest" in stages_of(question, TURNS)


@pytest.mark.parametrize(
    ("one", "other", "asked", "same"),
    [
        ("the wifi code is kiwi", "the wifi code is plum", (), True),
        ("the ferry to mull leaves at nine sharp", "the ferry to mull leaves at half past ten sharp", (), True),
        # What differs is what the question asks about, or stands in two places.
        ("box number 2 holds the lamps", "box number 3 holds the lamps", ("2",), False),
        ("the code of flat one is kiwi", "the code of flat two is plum", (), False),
        # They begin differently, have too little in common, or one only says more.
        ("anna runs the bakery", "bela runs the bakery", (), False),
        ("i am at home", "i am at work", (), False),
        ("the wifi code is kiwi", "the wifi code is kiwi again", (), False),
        ("the wifi code is kiwi", "the wifi code is on the back of the old box in the hall", (), False),
    ],
)
def test_same_words_but_for_a_value(one, other, asked, same):
    assert have_same_words(one.split(), other.split(), frozenset(asked)) is same
    assert have_same_words(other.split(), one.split(), frozenset(asked)) is same
