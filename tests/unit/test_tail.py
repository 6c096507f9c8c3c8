"""C15: where the recent tail starts, and what a bundle is."""

import pytest

from builders import make_unit
from holdfast.context.plan import base_start, safe_starts


def session(*turns):
    """Build turns from `author` or `author/bundle id`."""
    made = []
    for index, turn in enumerate(turns):
        author, _, bundle = turn.partition("/")
        made.append(make_unit(f"t{index}", f"turn {index}", author=author, bundle_id=bundle or None))
    return made


@pytest.mark.parametrize(
    ("turns", "minimum", "start"), [(10, 4, 6), (4, 4, 0), (3, 4, 0), (0, 4, 0), (10, 0, 10), (10, -3, 10), (1, 1, 0)]
)
def test_t_base_is_the_shortest_suffix_with_enough_turns(turns, minimum, start):
    assert base_start(turns, minimum) == start


def test_a_user_turn_and_what_answers_it_are_one_bundle():
    turns = session("user", "assistant", "tool", "assistant", "user", "assistant")
    assert safe_starts(turns, 5) == [4, 0]


def test_coupling_ends_with_its_bundle():
    # The original couples assistant and user too, so that an alternating chat is one bundle and all of it is tail.
    turns = session(*["user", "assistant"] * 4)
    assert safe_starts(turns, 7) == [6, 4, 2, 0]


def test_turns_of_one_author_are_not_coupled():
    assert safe_starts(session("user", "user", "user"), 2) == [2, 1, 0]
    assert safe_starts(session("assistant", "assistant"), 1) == [1, 0]


def test_an_answer_without_a_question_stands_alone():
    assert safe_starts(session("system", "assistant", "user", "assistant"), 3) == [2, 1, 0]
    assert safe_starts(session("user", "system", "assistant"), 2) == [2, 1, 0]


def test_turns_that_share_an_id_are_one_bundle():
    assert safe_starts(session("user", "user/p", "user/p", "user"), 3) == [3, 1, 0]


def test_a_bundle_with_others_in_between_is_not_split():
    assert safe_starts(session("user", "user/p", "user", "user/p", "user"), 4) == [4, 1, 0]


def test_two_bundles_that_overlap_are_both_whole():
    assert safe_starts(session("user", "user/p", "user/q", "user/p", "user/q", "user"), 5) == [5, 1, 0]


def test_an_answer_joins_the_named_bundle_of_its_question():
    assert safe_starts(session("user", "user/p", "assistant", "user"), 3) == [3, 1, 0]


def test_a_named_answer_leaves_its_question():
    assert safe_starts(session("user", "assistant/p", "assistant"), 2) == [2, 1, 0]


def test_an_empty_bundle_id_is_none():
    turns = [turn.evolve(bundle_id="") for turn in session("user", "user")]
    assert safe_starts(turns, 1) == [1, 0]


def test_only_suffixes_that_hold_t_base_are_offered():
    turns = session(*["user", "assistant"] * 3)
    assert safe_starts(turns, 3) == [2, 0]
    assert safe_starts(turns, 0) == [0]
