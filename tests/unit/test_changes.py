"""Changed facts (C19): what a later statement replaces, and everything it does not."""

import json
from pathlib import Path

import pytest

from holdfast.language.changes import Change, find_change, find_changes, read_assertions
from holdfast.language.symbols import symbol

ROWS = json.loads((Path(__file__).parents[1] / "data" / "changed_facts.json").read_text(encoding="utf-8"))


# What a user may declare to have one value at a time.
DECLARED = frozenset({"lives_in", "works_at", "works_as", "married_to", "has car", "favourite_colour"})


def found(new, old, speaker="Vera", functional=frozenset()):
    return find_changes(read_assertions(new, speaker), read_assertions(old, "Vera"), functional)


@pytest.mark.parametrize("row", [row for row in ROWS if row["change"] is None], ids=lambda row: row["new"])
def test_no_pair_is_taken_for_a_change_that_is_none(row):
    assert found(row["new"], row["old"]) == ()


@pytest.mark.parametrize("held_out", [False, True])
def test_most_changes_are_found(held_out):
    rows = [row for row in ROWS if row["change"] and row["held_out"] is held_out]
    right = 0
    for row in rows:
        got = {(symbol(one.old), symbol(one.new)) for one in found(row["new"], row["old"], functional=DECLARED)}
        want = tuple(map(symbol, row["change"]))
        assert got <= {want}, row
        right += want in got
    assert right / len(rows) >= 0.8


def test_the_pairs_are_enough_to_measure_with():
    assert sum(row["change"] is not None for row in ROWS) >= 40
    assert sum(row["change"] is None for row in ROWS) >= 60
    assert sum(row["held_out"] for row in ROWS) >= 40


@pytest.mark.parametrize("row", [row for row in ROWS if row["change"]], ids=lambda row: row["new"])
def test_another_speaker_changes_nothing(row):
    assert found(row["new"], row["old"], speaker="Bo") == ()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["new"])
def test_a_statement_does_not_change_itself(row):
    assert found(row["new"], row["new"]) == ()


def test_a_change_says_its_slot_its_values_its_rule_and_its_words():
    assert found("I moved to Porto.", "I live in Lisbon.") == (
        Change("lives_in", "Lisbon", "Porto", "marked", "moved"),
    )
    assert found("I live in Porto.", "I live in Lisbon.") == ()
    assert found("I live in Porto.", "I live in Lisbon.", functional=DECLARED)[0].rule == "functional"
    assert found("We no longer use Jenkins.", "We use Jenkins.") == (
        Change("uses", "Jenkins", "", "ended", "no longer"),
    )
    assert found("We switched from Jenkins to Buildkite.", "We use Jenkins.") == (
        Change("uses", "Jenkins", "Buildkite", "replaced", "switched"),
    )


def test_which_relations_have_one_value_is_the_callers_choice():
    (new,), (old,) = read_assertions("I speak Basque.", "Vera"), read_assertions("I speak Catalan.", "Vera")
    assert find_change(new, old) is None
    assert find_change(new, old, frozenset({"speaks"})) == Change("speaks", "Catalan", "Basque", "functional", "")


def test_a_denial_without_words_of_change_ends_nothing():
    assert found("I don't like sushi.", "I like sushi.") == ()


def test_without_a_speaker_the_first_person_states_nothing():
    assert read_assertions("I live in Lisbon. My phone is a Pixel.", "") == ()


def test_a_meeting_moved_to_another_day_keeps_its_hour():
    assert found("The meeting was moved to Friday.", "The meeting is at 3.") == ()
