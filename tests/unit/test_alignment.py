"""Which messages of a list a conversation holds already: worked examples and laws of the kernel."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.writing import align


def new(held, said, calls=None):
    """Return what of `said` is new, each letter a message; by default every message came in a call of its own."""
    found = align(list(held), list(calls or range(len(held))), list(said))
    return "".join(letter for place, letter in enumerate(said) if place not in found)


@pytest.mark.parametrize(
    ("held", "said", "expected"),
    [
        ("", "ab", "ab"),
        ("ab", "ab", ""),
        ("ab", "abc", "c"),
        ("abcd", "cde", "e"),
        ("abcd", "cd", ""),
        ("yy", "yyy", "y"),
        ("xyy", "yyn", "n"),
        ("abab", "ababab", "ab"),
        ("abcd", "ef", "ef"),
    ],
)
def test_a_list_continues_where_it_fits(held, said, expected):
    assert new(held, said) == expected


@pytest.mark.parametrize(
    ("held", "said", "expected"),
    [
        ("abcdef", "abcdeX", "X"),  # an answer was made anew
        ("abcdefX", "abcdeXg", "g"),  # and the talk went on
        ("abcdefgh", "bcdef", ""),  # a writer that is behind
        ("abdef", "abcdefg", "cg"),  # one was erased
        ("abdefc", "abcdefg", "g"),  # and kept again
        ("abcdefX", "abXdefg", "g"),  # one was edited, and kept
        ("abdefcc", "abcdefg", "cg"),  # kept twice: which of them it is cannot be told
        ("abcdef", "Xdefg", "Xg"),  # something was put in front
    ],
)
def test_a_list_that_does_not_fit_is_compared(held, said, expected):
    assert new(held, said) == expected


@pytest.mark.parametrize(
    ("held", "calls", "said"),
    [
        ("abcb", "1122", "ab"),  # an exchange, said again later
        ("abcdefgh", "11112222", "abcd"),
        ("abc", "111", "ax"),
        ("yes", "123", "yo"),
        ("yyy", "112", "nyyy"),  # said over and over
        ("xnaybycydy", "1122222222", "anbycydz"),  # asked again, and answered otherwise
    ],
)
def test_an_exchange_that_is_said_again_is_new(held, calls, said):
    assert new(held, said, calls) == said


@pytest.mark.parametrize(("held", "said"), [("abcd", "xdcba"), ("abab", "xbbaa"), ("abcdef", "xdefabcghi")])
def test_words_in_another_order_or_in_a_list_that_says_more_of_its_own_are_new(held, said):
    assert new(held, said) == said


letters = st.text("abcdef", max_size=8)


@given(letters, letters, letters)
def test_whatever_is_known_is_held_once_and_says_the_same(held, calls, said):
    found = align(list(held), (calls * 9)[: len(held)].ljust(len(held)), list(said))
    assert len(set(found.values())) == len(found)
    assert all(said[place] == held[at] for place, at in found.items())
    in_order = [found[place] for place in sorted(found) if held.count(said[place]) > 1 or said.count(said[place]) > 1]
    assert in_order == sorted(in_order)


@given(letters, letters)
def test_a_whole_history_with_more_adds_just_that(held, more):
    assert new(held, held + more) == more


def times_looked_up(length, compare):
    """Return how often messages are hashed to compare a list of which every other message was edited."""
    times = 0

    class Message(str):
        __slots__ = ()
        __eq__ = str.__eq__

        def __hash__(self):
            nonlocal times
            times += 1
            return super().__hash__()

    held = [Message(number) for number in range(length)]
    compare(held, [Message(number if number % 2 else f"edited {number}") for number in range(length)])
    return times


def test_to_choose_among_many_runs_costs_a_few_steps_a_message_beside_the_comparison():
    compared = times_looked_up(160, lambda a, b: SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    assert times_looked_up(160, lambda held, said: align(held, range(160), said)) <= compared + 10 * 160
