"""Laws of the gate (C17): the six invariants, monotony, and any text at all."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.lifecycle.gate import (
    NEAREST_DURABLE,
    frequency,
    judge,
    mixed,
    novelty,
    repetition,
    saturation,
    weighted,
)
from holdfast.settings import GateSettings
from holdfast.text import signals
from holdfast.text.sentences import parts_in
from holdfast.types import Gate

unit = st.floats(0.0, 1.0)
cosine = st.floats(-1.0, 1.0)
cosines = st.lists(cosine, max_size=14)
# Sentences that carry signals more often than random text does.
pieces = st.sampled_from(
    """I prefer tea and/or my friend Ana is 7 on 2026-03-29 src/app.py ``` func f(x) ENOENT HTTP 502 go build make
    test $ ls panic: at x.go:3 fixed merged decided to use it instead 我喜欢茶 я живу ありがとう ? . ,
    (((( //// """.split()
)
texts = st.one_of(st.text(max_size=80), st.lists(pieces, max_size=20).map(" ".join))
gates = st.builds(
    GateSettings,
    policy=st.sampled_from(["gate", "all", "off"]),
    threshold=unit,
    similar=cosine,
    saturated=cosine,
    wide=st.booleans(),
)


# ------------------------------------------------------------------------------------------------------- invariants


@given(texts, cosines, gates)
def test_an_empty_memory_finds_everything_new(text, turns, settings):
    assert novelty([]) == 1.0
    assert judge(text, turns, [], settings).novelty == 1.0


@given(unit, cosines, st.lists(st.floats(0.9, 1.0), min_size=3, max_size=5), texts)
def test_what_is_held_already_is_no_repetition(often, turns, durable, text):
    assert repetition(often, 1.0) == 0.0
    gate = judge(text, turns, durable, GateSettings())
    assert gate.saturation == 1.0
    assert gate.repetition == 0.0


@given(texts, cosines, cosines, gates)
def test_every_number_lies_in_the_unit_interval(text, turns, durable, settings):
    gate = judge(text, turns, durable, settings)
    numbers = {name: value for name, value in gate.to_json().items() if isinstance(value, float)}
    assert len(numbers) == 12
    for name, value in numbers.items():
        assert 0.0 <= value <= 1.0, name


@given(texts, cosines, cosines, gates)
def test_the_gate_lies_between_its_two_ends(text, turns, durable, settings):
    gate = judge(text, turns, durable, settings)
    low, high = sorted((gate.conversational, gate.technical))
    assert low <= gate.score <= high


@given(unit, unit, unit)
def test_the_mix_lies_between_its_two_ends_to_the_last_bit(technical, left, right):
    assert min(left, right) <= mixed(technical, left, right) <= max(left, right)
    assert mixed(0.0, left, right) == left
    assert mixed(1.0, left, right) == right


@given(st.sampled_from(["I like tea", "we counted 7 boats", "我喜欢茶"]), cosines, cosines, gates)
def test_plain_talk_is_judged_as_talk(text, turns, durable, settings):
    gate = judge(text, turns, durable, settings)
    assert gate.technical_density == 0.0
    assert gate.score == gate.conversational


@given(cosines, cosines)
def test_wholly_technical_text_is_judged_as_such(turns, durable):
    gate = judge("```\n$ git log src/app.py\nrun()\n```", turns, durable, GateSettings())
    assert gate.technical_density == 1.0
    assert gate.score == gate.technical


# ---------------------------------------------------------------------------------------------------------- monotony


@given(st.lists(cosine, min_size=1, max_size=NEAREST_DURABLE), st.data())
def test_novelty_falls_as_memory_comes_closer(durable, data):
    closer = [data.draw(st.floats(value, 1.0)) for value in durable]
    assert novelty(closer) <= novelty(durable)


@given(st.lists(cosine, max_size=10), cosine, cosine)
def test_counts_grow_with_neighbours_and_fall_with_the_limit(found, more, limit):
    assert frequency([*found, more], limit) >= frequency(found, limit)
    assert saturation([*found, more], limit) >= saturation(found, limit)
    stricter = min(1.0, limit + 0.1)
    assert frequency(found, stricter) <= frequency(found, limit)


@given(unit, unit, unit)
def test_repetition_falls_as_saturation_grows(often, first, second):
    low, high = sorted((first, second))
    assert repetition(often, high) <= repetition(often, low)


@given(st.lists(unit, min_size=3, max_size=3), st.lists(unit, min_size=3, max_size=3), st.integers(0, 2), unit)
def test_more_of_a_signal_is_never_worth_less(weights, values, place, more):
    total = sum(weights)
    assume(total > 0)
    shares = [weight / total for weight in weights]
    raised = [max(value, more) if i == place else value for i, value in enumerate(values)]
    assert weighted(shares, raised) >= weighted(shares, values)


@given(texts, cosines, cosines)
def test_a_higher_threshold_never_promotes_more(text, turns, durable):
    decided = [
        judge(text, turns, durable, GateSettings(threshold=threshold)).promoted for threshold in (0.0, 0.2, 0.35, 0.6)
    ]
    assert decided == sorted(decided, reverse=True)


# -------------------------------------------------------------------------------------------------------- any input


@given(texts, cosines, cosines, gates, st.randoms(use_true_random=False))
def test_neither_the_order_of_neighbours_nor_white_space_around_matters(text, turns, durable, settings, random):
    gate = judge(text, turns, durable, settings)
    random.shuffle(turns)
    random.shuffle(durable)
    assert judge(f" \n{text}\t ", turns, durable, settings) == gate


@given(texts, cosines, cosines, gates)
def test_a_decision_survives_json(text, turns, durable, settings):
    gate = judge(text, turns, durable, settings)
    assert Gate.from_json(json.loads(json.dumps(gate.to_json()))) == gate


MEGABYTE = 1_000_000
LARGE = ["a/", "(((", " ", "1"]
# Less of each, because there are many: time that grows with the square would still be hours.
HARD = [
    "/", "\n", "1/", "a", "a.", "a.b(", "f", "0x", "```", "$ ", "i ", "my ", "use ", "set ", "at ", "go ",
    "we ", "e", "E",
    "-", "..", "../", "http://", "https://a/", "?", "a? ", "我", "が", "ich a ", "\u00a0", "é", "\U0001f44d",
    "dr. ",
    "my friend ", "_", "4", "error ", "code ", "ich habe ", "i\n", "return\t", "ก", "아", "ア", ".a", "a_",
]  # fmt: skip


@pytest.mark.parametrize(("piece", "length"), [(p, MEGABYTE) for p in LARGE] + [(p, MEGABYTE // 5) for p in HARD])
def test_a_long_text_of_anything_is_read(piece, length):
    text = "i" + (piece * length)[:length] + "x"
    gate = judge(text, (), (), GateSettings(wide=True))
    assert 0.0 <= gate.technical_density <= 1.0


# ------------------------------------------------------------------------------------------------- quick looks

SIGNS = [
    *signals._ACTIONS,
    *signals._STRUCTURES,
    *(value for value in vars(signals).values() if isinstance(value, signals._Sign)),
]


@given(texts)
def test_no_sign_is_missed_by_the_quick_look(text):
    for sign in SIGNS:
        assert sign.is_in(text, parts_in(text)) == bool(sign.pattern.search(text))
