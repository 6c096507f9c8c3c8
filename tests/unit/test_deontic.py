"""The deontic lexer (C14): which sentences oblige, forbid or permit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.deontic import Deontic, deontic
from reference import vectors

NONE, DUTY, BAN, MAY = Deontic(0), Deontic.OBLIGATION, Deontic.FORBIDDEN, Deontic.PERMITTED

# One group per rule: the sentence, and what it says.
RULES = {
    "you and a modal": [
        ("You must lock the door.", DUTY),
        ("In winter you shall wear gloves.", DUTY),
        ("You really do always have to, and must, wait.", NONE),  # further than three words away
        ("You truly, deeply must rest.", DUTY),
        ("You should water the plants.", DUTY),
        ("You are required to sign in.", DUTY),
        ("You are not required to sign in.", NONE),
        ("You may borrow two books.", MAY),
        ("You may not borrow the atlas.", BAN),
        ("You must not feed the cat.", BAN),
        ("You should not feed the cat.", BAN),  # the reference reads this as a duty
        ("You should never feed the cat.", DUTY | BAN),
        ("You cannot smoke here.", BAN),
        ("You can not smoke here.", BAN),
        ("You can smoke here.", NONE),
        ("Your must-have list is long.", NONE),
        ("For the next page you must picture a lake.", NONE),
        ("You should to envision it.", NONE),
    ],
    "contractions": [
        ("You can't smoke here.", BAN),
        ("You mustn't smoke here.", BAN),
        ("You mustn’t smoke here.", BAN),
        ("You shouldn’t smoke here.", BAN),
        ("Don't use glue.", BAN),
        ("Don’t use glue.", BAN),
        ("Don't forget the keys.", DUTY),
        ("You're a careful editor.", DUTY),
        ("Guests can't be late.", NONE),
    ],
    "identity": [
        ("You are a careful editor.", DUTY),
        ("You speak in short sentences.", DUTY),
        ("You always greet the guest first.", DUTY),
        ("You are not a judge.", BAN),
        ("You do not lecture.", BAN),
        ("You do not need to answer.", NONE),
        ("You like tea.", NONE),
        ("Perhaps you are tired.", NONE),
    ],
    "prohibitions": [
        ("Do not use glue.", BAN),
        ("Do not enter.", BAN),
        ("Never use glue.", BAN),
        ("Never enter alone.", BAN),
        ("Never forget the keys.", DUTY),
        ("Never.", NONE),
        ("Never mind.", NONE),
        ("Never again would they sail.", NONE),
        ("Never assumes that the reader knows.", NONE),
        ("Never pass the salt.", BAN),
        ("Force pushes are prohibited.", BAN),
        ("Whistling is strictly forbidden.", BAN),
        ("Whistling is not forbidden.", NONE),
        ("Dogs are not allowed.", BAN),
        ("The forbidden garden was large.", NONE),
    ],
    "no": [
        ("No spare copies.", BAN),
        ("No", NONE),
        ("No thanks.", NONE),
        ("No, we stayed at home.", NONE),
        ("No, dinner was late.", NONE),
        ("No one knows why.", NONE),
        ("Nothing was found.", NONE),
    ],
    "commands": [
        ("Run the linter.", DUTY),
        ("USE SPACES", DUTY),
        ("2. Use spaces.", DUTY),
        ("Explain each step.", DUTY),
        ("Prioritise the oldest request.", DUTY),
        ("Running the linter helps.", NONE),
        ("They run every morning.", NONE),
        ("Use of the lift is free.", NONE),
        ("Change is constant.", NONE),
        ("use_spaces is on", NONE),
        ("Use-case drawings are on the wall.", NONE),
        ("“Use less” was a motto.", NONE),
        ("Prefer spaces; avoid tabs.", DUTY),
        ("Note: use spaces.", DUTY),
        ("⚠ Use spaces.", DUTY),
        ("Make sure that the lamp is off.", DUTY),
        ("Remember to switch the lamp off.", DUTY),
        ("Instead, use spaces.", DUTY),
        ("Additionally, never use tabs.", BAN),
        ("The goal is: use spaces.", NONE),
        ("The main purpose is: keep order.", NONE),
        ("See below, e.g. use of glue or run times.", NONE),
        ("Small tools, e.g. run and build.", NONE),
        ("Small tools, e.g.\nUse glue.", DUTY),
    ],
    "always, strictly, please": [
        ("Always answer the bell.", DUTY),
        ("Always greet the guest first.", DUTY),
        ("Always gentle.", NONE),
        ("Always a pleasure to see them.", NONE),
        ("Strictly follow the recipe.", DUTY),
        ("Strictly speaking, it rained.", NONE),
        ("Please cite the source.", DUTY),
        ("Please, cite the source.", DUTY),
        ("Please greet the guest first.", DUTY),
        ("Please always answer the bell.", DUTY),
        ("Please do not ring the bell.", BAN),
    ],
    "conditions": [
        ("If it snows, use the side door.", DUTY),
        ("If it snows use the side door.", NONE),
        ("If it snows, do not use the lift.", BAN),
        ("If you change the lock, make sure to tell the porter.", DUTY),
        ("Before every release, run the linter.", DUTY),
        ("When in doubt, ask.", DUTY),
        ("When it snowed, they stayed.", NONE),
    ],
    "procedures": [
        ("to get the lamp going open the box then run the setup", DUTY),
        ("if you need to change the lamp check the fuse but don't change the wiring", DUTY | BAN),
        ("if you need to use the lift it is on the left", NONE),
        ("It was late, but check the lamp.", DUTY),
        ("It was late, but do not change the lamp.", BAN),
        ("It was late, but the lamp was on.", NONE),
        ("Last night,run number two was cancelled.", NONE),  # the reference trips over the missing space
    ],
    "labels": [
        ("Build: make everything", DUTY),
        ("Lint quickly: make lint", DUTY),
        ("Build: failed twice", NONE),
        ("Test: passed", NONE),
        ("Test the bell tomorrow.", NONE),
        ("Default requirement: every door has a lock.", DUTY),
        ("Default requirement", NONE),
        ("ERROR POLICY: fail early", DUTY),
        ("Error policy: fail early", NONE),
        ("ON TEST FAILURE -> stop", DUTY),
        ("ON POWER LOSS → save", DUTY),
        ("ON FAILURE: stop", NONE),
        ("On Monday -> stop", NONE),
    ],
    "subjects": [
        ("Every door must have a lock.", DUTY),
        ("Each guest should sign in.", DUTY),
        ("Any guest may not smoke.", BAN),
        ("Every day is short.", NONE),
        ("Functions must return early.", DUTY),
        ("The system shall log out idle guests.", DUTY),
        ("Tests should be reviewed.", DUTY),
        ("Tests should not be skipped.", BAN),
        ("Code should be quick.", NONE),
        ("Commits must be signed.", DUTY),
        ("Visitors must not smoke.", BAN),
        ("Visitors must never smoke.", BAN),
        ("It must be late.", NONE),
        ("The knight must guard the bridge.", NONE),
        ("They must hurry.", NONE),
        ("Features MUST have a test.", DUTY),
        ("Plug-ins SHOULD NOT block.", BAN),
        ("A client MAY retry.", MAY),
        ("Logs NEVER hold secrets.", BAN),
        ("We should perhaps keep the old lamp.", NONE),
    ],
    "questions": [
        ("Must you go?", NONE),
        ("Do you know what you must do?", NONE),
        ("Use spaces or tabs?", NONE),
        ("Which one? Use spaces.", DUTY),
        ("Use spaces or tabs? Both are fine.", NONE),
    ],
    "other scripts": [
        ("Что делать? You must wait.", DUTY),
        ("必ず確認する。", NONE),
        ("", NONE),
        (" \n…", NONE),
    ],
}
CASES = [pytest.param(text, mask, id=f"{group}: {text}") for group, rows in RULES.items() for text, mask in rows]


@pytest.mark.parametrize(("text", "mask"), CASES)
def test_each_rule_finds_its_sentences_and_passes_over_their_doubles(text, mask):
    assert deontic(text) == mask


def test_the_flags_are_the_masks_of_the_reference():
    assert [int(flag) for flag in Deontic] == [2, 4, 8]
    assert not deontic("The lamp is on.")


@given(
    st.lists(st.sampled_from([row for rows in RULES.values() for row in rows]), max_size=6), st.sampled_from("\n ")
)
def test_a_text_says_what_its_sentences_say_together(rows, joint):
    whole = NONE
    for _, mask in rows:
        whole |= mask
    # A line end ends a sentence; a blank does so after a full stop only.
    parts = [text if joint == "\n" or text.endswith((".", "?")) else f"{text}." for text, _ in rows]
    assert deontic(joint.join(parts)) == whole


@given(st.text())
def test_no_text_is_too_odd(text):
    assert deontic(text) in range(16)
    assert deontic(text.replace("'", "’")) == deontic(text.replace("’", "'"))


def test_the_references_sentences_are_judged_as_the_reference_does():
    entries = vectors("EvaluateText")
    wrong = [e for e in entries if deontic(e["inputs"]["text"]) != e["expected"]["mask"]]
    assert len(entries) >= 13
    # Where it contradicts what a reader would say, its value is marked as a quirk.
    assert [e["inputs"]["text"] for e in wrong if e["kind"] == "conform"] == []
