"""One splitter: where sentences end, for readers that differ in marks and abbreviations; and the words of one."""

import re

import pytest

from holdfast.text.sentences import EXCERPT, PROSE, Splitter, is_question, parts_in, read_sentence


def cut(splitter, text):
    return [text[start:end] for start, end in splitter.spans(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Roe came. He left.", ["Dr. Roe came.", "He left."]),
        ("The band (with Roe Jr.) played. It rained.", ["The band (with Roe Jr.) played.", "It rained."]),
        ('She said "go." They went.', ['She said "go."', "They went."]),
        ("version 3.5 is out", ["version 3.5 is out"]),
        ("one\ntwo", ["one", "two"]),
        ("好。」再见。", ["好。」", "再见。"]),
        ("  \n ", []),
    ],
)
def test_prose_is_cut_at_its_marks_and_lines(text, sentences):
    assert cut(PROSE, text) == sentences


def test_abbreviations_belong_to_the_reader():
    assert cut(EXCERPT, "Dr. Roe came.") == ["Dr.", "Roe came."]
    assert cut(Splitter(re.compile(r"[.]\s+"), frozenset({"fig"})), "See Fig. 3. Done.") == ["See Fig. 3.", "Done."]


def test_a_contraction_is_two_words_and_only_the_first_has_a_width():
    text = "We can't say it's a Pixel’s."
    sentence = read_sentence(text, 0, len(text))
    assert sentence.words == ("we", "can", "not", "say", "it", "is", "a", "pixel's", ".")
    assert [text[start:end] for start, end in sentence.places][:4] == ["We", "can", "", "say"]
    assert sentence.slice(0, 2) == "We can"
    assert (sentence.at(-1), sentence.at(99), sentence.raw(99)) == ("", "", "")
    assert not is_question(text, 0, len(text))


def test_a_word_of_plain_letters_is_among_the_parts_of_its_text():
    assert {"use", "src", "app", "py", "/", "3"} <= parts_in("Use src/app.py 3 times")
