"""What a summariser reads of a turn (C18)."""

import re

import pytest

from holdfast.lifecycle.summarise import PLACEHOLDER, sanitise
from reference import vectors

LONG = "QUJDREVG" * 20


def fenced(lines, fence="```", info=""):
    return "\n".join([f"{fence}{info}", *lines, fence])


def test_words_stay_as_they_are():
    assert sanitise("The kettle is on the left shelf.\nThe cups are not.") == (
        "The kettle is on the left shelf.\nThe cups are not."
    )


def test_edges_are_trimmed_and_blank_lines_folded():
    assert sanitise("  \n one\n \n\t\n\ntwo  \n") == "one\n\ntwo"


@pytest.mark.parametrize("blank", ["", " ", "\n\t\n", "\u2003\x1c"])
def test_nothing_stays_nothing(blank):
    assert sanitise(blank) == ""


def test_a_block_of_eight_lines_becomes_one_that_counts_them():
    text = "before\n" + fenced([f"x = {n}" for n in range(14)], info="python") + "\nafter"
    assert sanitise(text) == "before\n[code, 14 lines]\nafter"
    assert sanitise(fenced("1234567")) == fenced("1234567")
    assert sanitise(fenced("12345678")) == "[code, 8 lines]"


def test_a_block_of_240_bytes_becomes_a_placeholder_however_few_its_lines():
    frame = len(fenced([""]))
    assert sanitise(fenced(["x y " * 58])) == "[code, 1 line]"
    assert sanitise(fenced(["é " * ((240 - frame + 2) // 3)])) == "[code, 1 line]"
    short = fenced(["a b " * 20])
    assert sanitise(short) == short


def test_tildes_and_longer_fences_open_a_block_that_only_their_like_closes():
    inner = ["```", *"abcdefgh", "```"]
    assert sanitise(fenced(inner, "````")) == "[code, 10 lines]"
    assert sanitise(fenced(inner, "~~~")) == "[code, 10 lines]"


def test_a_fence_that_nothing_closes_leaves_the_words_behind_it():
    text = "```\n" + "\n".join(f"word {n}" for n in range(20))
    assert sanitise(text) == text


def test_code_within_a_line_opens_nothing():
    text = "\n".join(["```x``` is how", *(f"line {n}" for n in range(9)), "```"])
    assert sanitise(text) == text


def test_embedded_data_becomes_a_placeholder_from_64_characters_on():
    line = "data:image/png;base64," + LONG
    assert sanitise(f"look:\n  {line}") == f"look:\n[data, {len(line)} characters]"
    assert sanitise("data:text/plain;base64,QUJD") == "data:text/plain;base64,QUJD"


def test_a_line_that_is_mostly_encoded_becomes_a_placeholder():
    assert sanitise(f"key {LONG}==") == "[encoded text, 166 characters]"
    assert sanitise("ab" * 48) == "[encoded text, 96 characters]"


def test_in_a_long_line_of_words_only_the_encoded_run_is_left_out():
    words = "The deploy of Tuesday failed because the digest of the image was not the one that we had pinned: "
    digest = "0f" * 32
    assert sanitise(f"{words}{digest}, so Ana rolled it back.") == (
        f"{words}[encoded text, 64 characters], so Ana rolled it back."
    )


def test_a_digest_in_a_short_line_is_read():
    line = "digest " + "0f" * 32
    assert sanitise(line) == line


def test_placeholders_can_be_told_from_words():
    texts = [fenced("12345678"), fenced(["x" * 300]), "data:," + LONG, LONG]
    assert all(PLACEHOLDER.fullmatch(sanitise(text)) for text in texts)
    assert not PLACEHOLDER.search("[code] of conduct, [data] and [encoded]")


@pytest.mark.parametrize(
    "text",
    [
        "```a\n" * 40_000,
        "~~~~\n```\n" * 40_000,
        "`" * 400_000,
        "a" * 400_000,
        ("0f" * 31 + " ") * 6_000,
        "\n" * 400_000,
    ],
)
def test_hostile_texts_take_no_longer_than_others(text):
    # Each of these takes minutes where a scan starts again at every place; the suite would not finish.
    assert sanitise(sanitise(text)) == sanitise(text)


def test_the_oracle_agrees():
    entries = vectors("sanitizeContinuityText")
    assert len(entries) == 11
    for entry in entries:
        text, expected = entry["inputs"]["text"], entry["expected"]
        assert PLACEHOLDER.sub("<<>>", sanitise(text)) == re.sub("<<[A-Z_]+>>", "<<>>", expected)
