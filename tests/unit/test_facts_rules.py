"""Facts by rules (C8): what a text states, what it denies, and what it leaves open."""

import json
from pathlib import Path

import pytest

from holdfast.text.facts import CONFIDENCE, RELATIONS, extract, resolve_speaker
from holdfast.text.grammar import SPEAKER
from holdfast.text.names import symbol

ROWS = json.loads((Path(__file__).parents[1] / "data" / "facts.json").read_text(encoding="utf-8"))


def triples(text, *, negated=False):
    return {
        (symbol(one.fact.subject), one.fact.relation, symbol(one.fact.object))
        for one in extract(text)
        if one.negated == negated
    }


def measured(rows):
    found = wanted = right = 0
    for row in rows:
        want = {(symbol(s), relation, symbol(o)) for s, relation, o in row["facts"]}
        got = triples(row["text"])
        found, wanted, right = found + len(got), wanted + len(want), right + len(want & got)
    return right / found, right / wanted


@pytest.mark.parametrize("held_out", [False, True])
def test_precision_and_recall_on_our_sentences(held_out):
    precision, recall = measured([row for row in ROWS if row["held_out"] is held_out])
    assert precision >= 0.95
    assert recall >= 0.88


def test_the_sentences_are_enough_to_measure_with():
    assert sum(bool(row["facts"]) for row in ROWS) >= 60
    assert sum(not row["facts"] for row in ROWS) >= 60
    assert sum(row["held_out"] for row in ROWS) >= 40


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Kestrel does not use Redis.", ("kestrel", "uses", "redis")),
        ("Kestrel doesn’t depend on Plover.", ("kestrel", "depends_on", "plover")),
        ("Kestrel never uses Redis.", ("kestrel", "uses", "redis")),
        ("Kestrel no longer uses Redis.", ("kestrel", "uses", "redis")),
        ("Kestrel stopped using Redis.", ("kestrel", "uses", "redis")),
        ("Kestrel is not part of Heron.", ("kestrel", "part_of", "heron")),
        ("Redis is not used by Kestrel.", ("kestrel", "uses", "redis")),
        ("Kestrel uses neither Redis nor Kafka.", ("kestrel", "uses", "kafka")),
        ("Neither Kestrel nor Heron uses Redis.", ("heron", "uses", "redis")),
        ("The build runs without Docker.", ("build", "depends_on", "docker")),
        ("Heron cannot use Redis.", ("heron", "uses", "redis")),
    ],
)
def test_a_denied_sentence_makes_no_positive_fact(text, denied):
    assert triples(text) == set()
    assert denied in triples(text, negated=True)


@pytest.mark.parametrize("words", ["not Kafka", "but not Kafka", "instead of Kafka", "rather than Kafka"])
def test_what_is_set_apart_is_denied(words):
    assert triples(f"Kestrel uses Redis {words}.") == {("kestrel", "uses", "redis")}
    assert triples(f"Kestrel uses Redis {words}.", negated=True) == {("kestrel", "uses", "kafka")}


@pytest.mark.parametrize(
    "text",
    [
        "Themes like love run through it.",
        "It is quick and often provides good results.",
        "I love listening to rain.",
        "Kestrel uses Redis or Kafka.",
        "Ana insists Kestrel uses Redis.",
        "Kestrel uses it.",
        "Exploring is an adventure.",
        "My favourite jumper is super soft.",
        "I moved to Rome in 2009.",
        "I have a feeling about the harbour.",
        "Difficult days are part of life.",
        "",
        "???",
    ],
)
def test_what_is_open_gives_nothing(text):
    assert extract(text) == ()


def test_a_fact_carries_its_sentence_its_rule_and_its_confidence():
    text = "Hello there. Kestrel is a broker. The gate is powered by Heron!"
    copula, state = extract(text)
    assert text[copula.start : copula.end] == "Kestrel is a broker."
    assert text[state.start : state.end] == "The gate is powered by Heron!"
    assert (copula.rule, copula.fact.confidence) == ("copula", CONFIDENCE["copula"])
    assert (state.rule, state.fact.confidence) == ("state", 0.9)


def test_an_abbreviation_ends_no_sentence():
    assert triples("I live in St. Ives.") == {("speaker", "lives_in", "st ives")}


def test_a_subject_is_not_its_own_object():
    # The reference compares with case and gives "Alpha uses alpha".
    assert extract("Alpha uses alpha.") == ()


def test_the_speaker_takes_the_place_of_the_first_person():
    stated = extract("I live in Lisbon. My sister lives in Oslo. Kestrel uses Redis.")
    assert [one.fact.subject for one in stated] == [SPEAKER, f"{SPEAKER}'s sister", "Kestrel"]
    assert [one.fact.subject for one in resolve_speaker(stated, "Ana")] == ["Ana", "Ana's sister", "Kestrel"]
    assert [one.fact.subject for one in resolve_speaker(stated, "")] == ["Kestrel"]


def test_every_relation_of_the_contract_can_be_read():
    found = {relation for row in ROWS for _, relation, _ in triples(row["text"])}
    assert set(RELATIONS) <= found


# The reference's extractor on sentences of its own form. Where we differ: articles are no part of a name; a second
# verb is a second fact; a denied sentence makes none; both sides are compared by symbol.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Heron helps with isolation", {("heron", "relevant_for", "isolation")}),
        ("Salt leads to rust!", {("salt", "causes", "rust")}),
        ("The oar is part of the boat.", {("oar", "part_of", "boat")}),
        ("'Kestrel' depends on \"Heron\"", {("kestrel", "depends_on", "heron")}),
        (
            "Kestrel uses Heron and depends on Plover",
            {("kestrel", "uses", "heron"), ("kestrel", "depends_on", "plover")},
        ),
        ("A enables B.", {("a", "supports", "b")}),
        ("It was snowing.", set()),
        ("Nothing causes", set()),
        ("Kestrel never uses Heron", set()),
    ],
)
def test_against_the_reference(text, expected):
    assert triples(text) == expected
