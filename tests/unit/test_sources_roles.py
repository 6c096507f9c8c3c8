"""Roles and conditions by rule (C1): a sign of each role, and what must not be taken for one."""

import pytest

from holdfast.documents.pieces import condition_of, role_of


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("A fender is a cushion of rope.", "Definition"),
        ("SOG stands for speed over ground.", "Definition"),
        ("Ebb means the falling tide.", "Definition"),
        ("The crane is a gift of the town.", "Description"),
        ("Crates move by means of a crane.", "Description"),
        ("Berth seven is deeper than berth eight.", "Comparison"),
        ("Unlike steel, rope gives way.", "Comparison"),
        ("It has more than two hundred berths.", "Description"),
        ("We use rope rather than chain.", "Description"),
        ("The engine fails to start in the cold.", "Diagnostic"),
        ("The pump does not respond.", "Diagnostic"),
        ("The drawback of chain is its weight.", "Evaluation"),
        ("Nylon is the best for mooring.", "Evaluation"),
        ("Salt weakens rope, therefore lines are rinsed.", "Explanation"),
        ("The harbour silts up because the river is slow.", "Explanation"),
        ("The quay burned down in 1931.", "Narrative"),
        ("She came home, and we laughed.", "Narrative"),
        ("Install the pump, and run it for a minute.", "Procedure"),
        ("To start the pump, open the valve.", "Procedure"),
        ("To me, it looks ugly.", "Description"),
        ("Visitors must sign the book.", "Constraint"),
        ("Never leave the crane unlocked.", "Constraint"),
        ("Smoking is not allowed on the quay.", "Constraint"),
        ("She must have been a pilot.", "Description"),
        ("The harbour has forty berths.", "Description"),
        ("", "Description"),
    ],
)
def test_a_role_is_what_the_words_show(text, role):
    assert role_of(text) == role


@pytest.mark.parametrize(
    ("heading", "kind", "role"),
    [
        ("Troubleshooting", "paragraph", "Diagnostic"),
        ("Glossary", "item", "Definition"),
        ("Installation", "list", "Procedure"),
        ("Installation", "code", "Procedure"),
        ("Installation", "paragraph", "Description"),
        ("Glossary", "table", "Description"),
        ("Harbours", "item", "Description"),
    ],
)
def test_a_heading_speaks_for_pieces_that_say_nothing_themselves(heading, kind, role):
    assert role_of("The valve, the hose.", kind=kind, heading=heading) == role


def test_words_count_more_than_the_heading():
    assert role_of("It is slow because of silt.", heading="Glossary") == "Explanation"


def test_numbered_commands_are_a_procedure():
    steps = "Check the oil.\nRun the pump.\nThe lamp turns green."
    assert role_of(steps, kind="list", ordered=True) == "Procedure"
    assert role_of("Aurora\nBoreas\nCalypso", kind="list", ordered=True) == "Description"


def test_code_and_tables_are_judged_by_their_lead_in():
    assert role_of("never = True", kind="code") == "Description"
    assert role_of("make all", kind="code", lead="To build it, run:") == "Procedure"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("If the wind rises, come home.", "If the wind rises"),
        ("When the bell rings then stop.", "When the bell rings"),
        ("Unless told otherwise, wait; then ask.", "Unless told otherwise"),
        ("In case of fire, leave.", "In case of fire"),
        ("Come home if the wind rises.", ""),
        ("If only it were so.", ""),
        ("If it rains. Then, stay.", ""),
        ("Iffy, they said.", ""),
    ],
)
def test_a_condition_is_the_clause_that_comes_first(text, condition):
    assert condition_of(text) == condition
