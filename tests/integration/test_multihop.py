"""Questions whose answer stands in several sentences (C8); the middle of the chain shares no word with the question.

A folder of Markdown and YAML is taken in as a user would do it; nothing is told about the facts in it.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from builders import ask, opened
from holdfast import Contribution, Settings
from holdfast.kernels.closure import FURTHER_RULES, RULES
from holdfast.retrieval.symbolic import SymbolicStrategy
from holdfast.text.terms import terms

FOLDER = Path(__file__).parents[1] / "data" / "multihop"
QUESTIONS = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
# No question may fail by the clock; `has_part` is a relation that a file of units has to declare.
SETTINGS = Settings.load({"symbolic.relations": ("has_part",)}, environ={}).without_timeouts()
# Lexical hits on "good" and "comes" fill the eight places before the bridge: `max` has no exemption for proofs (C6).
CROWDED_OUT = {"What good comes out of the lighthouse?"}

every_question = pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["question"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder with its paragraphs as quotes: then each is a unit, and a chain has several links."""
    root = tmp_path_factory.mktemp("files") / FOLDER.name
    root.mkdir()
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        quoted = re.sub(r"(?m)^(?=[^#\s])", "> ", text) if path.suffix == ".md" else text
        (root / path.name).write_text(quoted, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def memory(folder):
    with opened(SETTINGS) as opened_memory:
        report = opened_memory.ingest_folder(folder, user="ana", include=("*.md", "*.yaml"))
        assert report.failed == ()
        assert len(report.added) == 5
        yield opened_memory


@pytest.fixture(scope="module")
def units(memory):
    return memory.list(user="ana", limit=None)


def saying(units, sentence):
    """Return the one unit that holds a sentence."""
    [unit] = [unit for unit in units if sentence in unit.text]
    return unit


def ids_of(units, sentences):
    return {saying(units, sentence).id for sentence in sentences}


def hits(memory, asked, profile):
    return memory.search(asked["question"], user="ana", profile=profile, explain=True)


def notes_of(result):
    return {hit.unit.id: hit.notes for hit in result}


def is_answered(memory, units, asked):
    """Return whether `thinking` returns every bridge with a derived proof, and `fast` does not return them all."""
    bridge = ids_of(units, asked["bridge"])
    thought = hits(memory, asked, "thinking")
    notes = notes_of(thought)
    proved = {
        hit.unit.id for hit in thought if any(note.startswith("derived: ") for note in notes.get(hit.unit.id, ()))
    }
    return bridge <= proved and not bridge <= {hit.unit.id for hit in hits(memory, asked, "fast")}


def test_the_documents_are_mostly_about_something_else(units):
    said = [unit.text for unit in units]
    sentences = sum(len(re.findall(r"[^.]+\.", text)) for text in said)
    proving = {sentence for asked in QUESTIONS for sentence in asked["proof"]}
    assert 150 <= sentences <= 300
    assert len(proving) < sentences / 2
    assert len(QUESTIONS) >= 44


def test_every_rule_is_asked_for():
    wanted = Counter(rule for asked in QUESTIONS for rule in asked["rules"])
    assert wanted.keys() == {rule.name for rule in (*RULES, *FURTHER_RULES)}
    assert sum(len(asked["proof"]) == 3 for asked in QUESTIONS) >= 15


@every_question
def test_the_bridge_shares_no_word_with_the_question(memory, units, asked):
    assert asked["bridge"]
    assert set(asked["bridge"]) < set(asked["proof"])
    words = set(terms(asked["question"]))
    for sentence in asked["bridge"]:
        unit = saying(units, sentence)
        assert words.isdisjoint(terms(f"{unit.topic} {unit.text}"))


@every_question
def test_fast_does_not_find_the_bridge(memory, units, asked):
    assert not ids_of(units, asked["bridge"]) & {hit.unit.id for hit in hits(memory, asked, "fast")}


def derived(memory, asked, settings):
    """Return what follows from the facts around a question: {fact in words: proof}."""
    query = hits(memory, asked, "thinking").trace.query
    standings = ask(memory, lambda reading: SymbolicStrategy(settings).prove(query, reading)).standings
    return {" ".join(one.proof.key): one.proof for one in standings if one.proof.rule is not None}


@every_question
def test_the_proof_says_what_follows_by_which_rules_from_which_units(memory, units, asked):
    proof = derived(memory, asked, SETTINGS)[asked["derived"]]
    assert list(proof.rules()) == asked["rules"]
    assert {source for fact in proof.base() for source in fact.sources} == ids_of(units, asked["proof"])


@pytest.mark.parametrize(
    "asked", [asked for asked in QUESTIONS if asked["question"] not in CROWDED_OUT], ids=lambda a: a["question"]
)
def test_thinking_returns_the_whole_chain_with_a_proof(memory, units, asked):
    thought = hits(memory, asked, "thinking")
    notes = notes_of(thought)
    found = {hit.unit.id: hit for hit in thought}
    assert ids_of(units, asked["proof"]) <= found.keys()
    for unit_id in ids_of(units, asked["bridge"]):
        assert any(note.startswith("derived: ") for note in notes[unit_id])
        proof = found[unit_id].contributions.find(notes[unit_id][0])
        assert proof is not None
        assert proof.op == "product"
        assert [part.name.split()[0] for part in proof.parts][-1] == "rule"


@every_question
def test_every_score_is_recomposed_bit_for_bit_and_lies_in_its_range(memory, asked):
    for hit in hits(memory, asked, "thinking"):
        tree = hit.contributions
        assert tree.compose() == tree.value == hit.score
        assert Contribution.from_json(json.loads(json.dumps(tree.to_json()))).compose() == hit.score
        assert 0.0 <= hit.rel <= 1.0


def test_how_many_questions_are_answered_by_thinking_alone(memory, units):
    missed = {asked["question"] for asked in QUESTIONS if not is_answered(memory, units, asked)}
    assert missed == CROWDED_OUT
    assert len(QUESTIONS) - len(missed) == 48


def test_without_our_further_rules_the_other_eight_still_answer(units, folder):
    names = {rule.name for rule in RULES}
    reference = Settings.load(
        {"symbolic.relations": ("has_part",), "symbolic.further_rules": False}, environ={}
    ).without_timeouts()
    with opened(reference) as memory:
        memory.ingest_folder(folder, user="ana", include=("*.md", "*.yaml"))
        for asked in QUESTIONS:
            if asked["question"] not in CROWDED_OUT:
                known = set(asked["rules"]) <= names
                assert is_answered(memory, units, asked) or not known
                assert (asked["derived"] in derived(memory, asked, reference)) == known


def test_a_stranger_gets_no_answer_from_another_users_documents(memory):
    for asked in QUESTIONS:
        assert len(memory.search(asked["question"], user="ben", profile="thinking")) == 0
