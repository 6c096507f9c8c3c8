"""Token cost (C3): worked numbers, an obvious oracle, laws, and the committed measurement."""

import json
import math
import sys
import unicodedata
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import program
from holdfast.errors import InputError
from holdfast.text.tokens import DEFAULT_RATIOS, REFERENCE_RATIOS, Estimator, checked_counter, class_of, estimate
from reference import vectors

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks/results/token_ratios.json"
PAGE = ROOT / "benchmarks/token-ratios.md"

# Neither recipe leaves accents dear and digits neutral; the code allows it, so the oracle covers it.
CUSTOM_RATIOS = replace(DEFAULT_RATIOS, coded=None, symbol=None, emoji=None)
RECIPES = [REFERENCE_RATIOS, DEFAULT_RATIOS, CUSTOM_RATIOS]
RECIPE_IDS = ["reference", "default", "custom"]
WORD = {"latin", "accented", "coded"}
LENDERS = {"han_kana", "hangul", "cyrillic", "arabic", "hebrew", "partly_known", "other"}

# Random code points seldom make words; these do, and every class is among them.
mixed = st.text(st.sampled_from("abzé ñ019_-.,\n\t漢かカ글Жяعשαकไதა“→😀🎉\u0301\u00a0ー。") | st.characters())


def oracle(text, ratios):
    """Price one code point after the other, in exact fractions, by the rules of C3 as the module states them."""
    classes = [class_of(character) for character in text]
    without_price = {name for name, price in asdict(ratios).items() if price is None} | {"neutral"}
    classes = ["neutral" if name in without_price else name for name in classes]
    start = 0
    while start < len(classes):
        end = start
        while end < len(classes) and classes[end] in WORD:
            end += 1
        for whole in ("coded", "accented"):
            if whole in classes[start:end]:
                classes[start:end] = [whole] * (end - start)
        start = end + 1
    lenders = [None] * len(classes)
    lender = None
    for place, name in enumerate(classes):
        if name in LENDERS or name in {"latin", "accented", "coded"}:
            lender = name if name in LENDERS else "latin"
        lenders[place] = lender
    first = next((name for name in lenders if name), "latin")
    cost = Fraction(0)
    for name, before in zip(classes, lenders, strict=True):
        cost += Fraction(getattr(ratios, (before or first) if name == "neutral" else name), 1000)
    return math.ceil(cost)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("abcd", 1),
        ("abcde", 2),
        ("hello world", 3),
        ("漢字漢字漢字", 4),
        ("Привет мир", 4),
        ("漢字 漢字", 4),
    ],
)
def test_the_contracts_worked_numbers(text, tokens):
    assert estimate(text, REFERENCE_RATIOS) == tokens


@pytest.mark.parametrize(
    ("text", "cjk", "middle", "rest"),
    [
        ("notes in English and one 漢", 1, 0, 25),
        ("漢字, 12! tail", 8, 0, 4),
        ("  42 漢字", 7, 0, 0),
        ("мир and 漢", 1, 4, 4),
        ("סוף END", 0, 4, 3),
        ("ﾊﾛｰ 글 𠀋 々", 9, 0, 0),
    ],
)
def test_the_reference_recipe_sums_mixed_text_by_script(text, cjk, middle, rest):
    assert cjk + middle + rest == len(text)
    assert estimate(text, REFERENCE_RATIOS) == math.ceil(Fraction(25 * cjk + 16 * middle + 10 * rest, 40))


def test_one_foreign_character_does_not_reprice_a_text():
    english = "plain words without any accent " * 100
    for ratios in RECIPES:
        for foreign in "漢Жशé😀":
            assert estimate(english + foreign, ratios) - estimate(english, ratios) <= 3


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("word word", 9 * 230),
        ("café bar", 4 * 600 + 4 * 230),
        ("it's", 3 * 230 + 600),
        ("sha256", 6 * 750),
        ("é9", 2 * 750),
        ("a_1", 230 + 600 + 750),
        ("漢 字。", 3 * 1180 + 1000),
        ("ok 😀", 3 * 230 + 2700),
        ("글 글", 3 * 900),
        ("да", 2 * 600),
        ("سلام", 4 * 760),
        ("שלום", 4 * 1060),
        ("ไทย", 3 * 1060),
        ("தமிழ்", 5 * 1850),
    ],
)
def test_the_default_recipe_prices_each_class(text, thousandths):
    assert estimate(text) == math.ceil(Fraction(thousandths, 1000))


@pytest.mark.parametrize("ratios", RECIPES, ids=RECIPE_IDS)
@given(text=mixed)
def test_it_equals_the_obvious_loop(ratios, text):
    assert estimate(text, ratios) == oracle(text, ratios)


@pytest.mark.parametrize("ratios", RECIPES, ids=RECIPE_IDS)
@given(lines=st.lists(st.lists(mixed, max_size=4), max_size=4))
def test_counting_by_lines_equals_counting_the_whole(ratios, lines):
    count = Estimator(ratios).by_lines()
    for texts in lines:
        text = "\n".join(texts)
        assert count(text) == estimate(text, ratios)


@given(text=st.text(st.characters(max_codepoint=127)))
def test_ascii_equals_the_obvious_loop(text):
    assert estimate(text, REFERENCE_RATIOS) == math.ceil(Fraction(len(text), 4))
    assert estimate(text) == oracle(text, DEFAULT_RATIOS)


@pytest.mark.parametrize("ratios", RECIPES[:2], ids=RECIPE_IDS[:2])
@given(text=mixed, more=mixed)
def test_a_longer_text_never_costs_less(ratios, text, more):
    assert estimate(text, ratios) <= estimate(text + more, ratios)
    assert (estimate(text, ratios) == 0) == (text == "")


@pytest.mark.parametrize("ratios", RECIPES, ids=RECIPE_IDS)
@example(first="ᨀ", second="0 ")  # a number holds the space behind it: a letter of the line before must not
@given(first=mixed, second=mixed)
def test_lines_that_start_with_a_letter_cost_at_most_the_sum_of_their_parts(ratios, first, second):
    """What a budget relies on when it adds up costs before it joins texts."""
    first, second = f"a{first}\n", f"b{second}"
    assert estimate(first + second, ratios) <= estimate(first, ratios) + estimate(second, ratios)


@pytest.mark.parametrize(
    ("prefixes", "name"),
    [
        (("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA LETTER", "KATAKANA LETTER"), "han_kana"),
        (("HALFWIDTH KATAKANA LETTER",), "han_kana"),
        (("HANGUL SYLLABLE", "HANGUL LETTER", "HANGUL CHOSEONG", "HALFWIDTH HANGUL LETTER"), "hangul"),
        (("CYRILLIC CAPITAL LETTER", "CYRILLIC SMALL LETTER"), "cyrillic"),
        (("ARABIC LETTER", "ARABIC LIGATURE"), "arabic"),
        (("HEBREW LETTER",), "hebrew"),
        (("GREEK CAPITAL LETTER", "GREEK SMALL LETTER", "DEVANAGARI LETTER", "THAI CHARACTER"), "partly_known"),
    ],
)
def test_scripts_are_told_by_their_ranges(prefixes, name):
    """Python's own character names are the independent witness."""
    found = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.name(chr(code), "").startswith(prefixes)]
    assert len(found) > 20
    assert {class_of(character) for character in found} == {name}


def test_latin_letters_digits_and_signs_are_told_apart():
    expected = {
        "latin": "aZ",
        "coded": "09",
        "punctuation": "!~_'\"",
        "neutral": " \t\n\x00\u0301\ufeff",
        "accented": "éßŁơệ",
        "symbol": "“”—…×²½→。！",
        "emoji": "😀🎉",
        "other": "აԱதࠀ",
    }
    for name, characters in expected.items():
        assert {class_of(character) for character in characters} == {name}


def test_a_checked_counter_passes_good_numbers_through():
    assert checked_counter(len)("four") == 4
    assert checked_counter(lambda text: 0)("four") == 0


@pytest.mark.parametrize("answer", [-1, True, 2.0, None, "4"])
def test_a_checked_counter_refuses_what_is_no_count(answer):
    def odd_counter(text):
        return answer

    with pytest.raises(InputError, match=r"odd_counter gave .*>= 0"):
        checked_counter(odd_counter)("text")


def test_a_failing_counter_is_named_and_its_error_kept():
    class Broken:
        def __call__(self, text):
            raise KeyError("vocabulary")

    with pytest.raises(InputError, match=r"Broken failed with KeyError") as caught:
        checked_counter(Broken())("text")
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_interrupt_is_not_the_counters_fault():
    def interrupted(text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checked_counter(interrupted)("text")


@pytest.mark.skipif(not RESULT.exists(), reason="the benchmarks are not part of this tree")
def test_the_committed_measurement_is_of_these_prices_and_the_page_shows_it():
    result = json.loads(RESULT.read_text("utf-8"))
    prices = {"reference": asdict(REFERENCE_RATIOS), "default": asdict(DEFAULT_RATIOS)}
    assert result["price_per_character_in_thousandths"] == prices
    assert program("benchmarks/token_ratios.py").markdown(result, "check") in PAGE.read_text("utf-8")


def test_text_of_one_script_costs_what_the_seeds_computed():
    entries = [entry for entry in vectors("host.estimateTokens") if entry["kind"] == "conform"]
    compared = 0
    for entry in entries:
        text = entry["inputs"]["text"]
        prices = {getattr(REFERENCE_RATIOS, class_of(c)) for c in text if class_of(c) != "neutral"} - {None}
        # Mixed text is decided by the contract, which sums by script.
        if len(prices) <= 1:
            assert estimate(text, REFERENCE_RATIOS) == entry["expected"]
            compared += 1
    assert compared >= 20
