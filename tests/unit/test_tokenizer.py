"""The default tokenizer (C2): words inside code, paths, addresses, JSON, Markdown, numbers, ranges and dashes."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import make_unit
from holdfast.settings import AnalysisSettings
from holdfast.text import analyse
from holdfast.text.questions import opening, profile_query
from holdfast.text.terms import STOP_WORDS, TOKENIZERS, reference_terms, terms
from holdfast.types import FIELDS

PIECES = "aesxyzAES éÉñßΣσ -'’._/@#0123 \t\n.,;:!?()“”[]{}=—–京都かナハー・กาแ한국कि़तЖяعשİ\u0301\u200d🎉"
texts = st.text(st.sampled_from(PIECES), max_size=40) | st.text(max_size=40)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("error[E0502]: cannot borrow", "E0502"),
        ("error[E0502]: cannot borrow", "error"),
        (" --> src/schedule.rs:212:9", "schedule.rs"),
        (" --> src/schedule.rs:212:9", "schedule"),
        (" --> src/schedule.rs:212:9", "src/schedule.rs:212:9"),
        ("He was mayor 1931-1935.", "1931"),
        ("He was mayor 1931-1935.", "1931-1935"),
        ("He was mayor 1931\u20131935.", "1935"),
        ("tea\u2014or coffee\u2014whatever", "tea"),
        ("tea\u2014or coffee\u2014whatever", "coffee"),
        ("key=value", "value"),
        ("foo(bar, baz=3)", "baz"),
        ("foo(bar, baz=3)", "foo"),
        ("get_user_by_id", "user"),
        ("get_user_by_id", "get_user_by_id"),
        ("CamelCase", "camel"),
        ("CamelCase", "CamelCase"),
        ("an HTTPServer", "server"),
        ("https://docs.python.org/3/library/asyncio.html", "asyncio"),
        ("https://docs.python.org/3/library/asyncio.html", "docs.python.org"),
        ("nadia@havenlicht.nl", "havenlicht"),
        ("breakfast/lunch", "lunch"),
        ('{"carrier":"bpost"}', "bpost"),
        ("[link](notes.md)", "link"),
        ("an _italic_ word", "italic"),
        ("first.Second", "second"),
        ("first...second", "second"),
        ("TODO(nadia)", "nadia"),
        ("C:\\temp\\a.log", "temp"),
        ("na\u00efve caf\u00e9", "cafe"),
        ("M\u00fcller", "muller"),
        ("muller", "M\u00fcller"),
        ("\u0141\u00f3d\u017a", "lodz"),
        ("the rent is 1,640 euros", "1640"),
        ("the rent is 1640 euros", "1,640"),
        ("1.640 Euro", "1640"),
        ("1'640 francs", "1640"),
        ("PLUM-1187", "1187"),
        ("low-fat yoghurt", "low-fat"),
        ("written in C++", "C++"),
        ("the o\ufb03ce \ufb01le", "office file"),
        ("\uff37\uff29\uff26\uff29 \uff14\uff14\uff17\uff11", "wifi 4471"),
        ("the user's-guide", "user"),
        ("written in C#.", "C#"),
    ],
)
def test_a_text_is_found_by_the_words_inside_it(text, asked):
    assert terms(asked)[0] in terms(text)


def test_short_numbers_inside_a_number_are_not_words():
    assert terms("9:30 on 2026-03-14") == ["9:30", "2026-03-14", "2026"]
    assert terms("3.0 then v1.4.2") == ["3.0", "v1.4.2", "v1"]


def test_a_compound_is_given_whole_then_by_steps_then_by_parts():
    assert terms("src/plan.rs:212") == ["src/plan.rs:212", "plan.r", "src", "plan", "rs", "212"]


@pytest.mark.parametrize("text", ["京都駅", "カフェ", "กาแฟ", "김치찌개"])
def test_scripts_without_spaces_are_cut_as_the_reference_cuts_them(text):
    assert terms(text) == reference_terms(text)


@pytest.mark.parametrize(
    "text", ["・", "។", "။", "。", "「」", "…", "--", "!?", "🎉", "__", "::", "[]()", "", " \t\u3000"]
)
def test_marks_alone_are_no_terms(text):
    assert terms(text) == []


def test_marks_of_other_scripts_stay_on_their_letters():
    assert terms("मेरी किताब।") == reference_terms("मेरी किताब।")
    assert terms("がぎ") == reference_terms("がぎ")


def test_no_stop_word_becomes_a_term():
    assert all(terms(word) == terms(word.upper()) == terms(f"({word})") == [] for word in STOP_WORDS)


@given(texts)
def test_composed_and_decomposed_text_has_the_same_terms(text):
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text)) == terms(text)


@given(texts, texts)
def test_terms_of_two_texts_are_the_terms_of_both_in_order(first, second):
    assert terms(f"{first} {second}") == terms(first) + terms(second)


@given(texts)
@example("ハリー・ホッター")
def test_every_term_holds_a_letter_digit_or_mark_and_no_space(text):
    for term in terms(text):
        assert term
        assert not any(character.isspace() for character in term)
        assert any(unicodedata.category(c)[0] in "LMN" for c in term)


@given(texts.filter(str.strip), st.sampled_from(sorted(TOKENIZERS)))
def test_one_function_serves_units_and_queries(text, name):
    tokenise = TOKENIZERS[name]
    claim = analyse(make_unit(text=text), AnalysisSettings(tokenizer=name)).terms[FIELDS.index("claim")]
    assert list(claim) == tokenise(text)
    # A word in front keeps an act verb from standing at the head, which a query may lose.
    query = profile_query(f"zebra {text}", tokenise=tokenise).terms
    assert list(query) == list(dict.fromkeys(tokenise(f"zebra {text}")))


@pytest.mark.parametrize(
    ("question", "identifiers"),
    [
        ("What does error E0308 mean?", ("e0308",)),
        ("Is ticket AK-5519 done?", ("ak-5519",)),
        ("error[E0308]: what is it?", ("e0308",)),
        ("What calls foo(user_id) with status=AK-5519?", ("user_id", "ak-5519")),
        ("What is in schedule.rs?", ("schedule.r",)),
        ("Where is get_user_by_id called?", ("get_user_by_id",)),
        ("What is the KLM voucher worth?", ("klm",)),
        ("Who wrote nadia@havenlicht.nl?", ("nadia@havenlicht.nl",)),
        ("Which file holds `plan`?", ("plan",)),
        ('What is "harbour" about, and "The Blue Harbour"?', ("harbour",)),
        ("Which US holiday needs the ATS?", ()),
        ("Order 4471 and python 3.11.7", ("4471", "3.11.7")),
        ("What did we do on the 3rd at 9:30am in the 1990s?", ()),
        ("Did I eat and/or drink low-fat yoghurt in 2023?", ()),
        ("WHERE DO I LIVE", ()),
    ],
)
def test_identifiers_are_what_names_one_thing_exactly(question, identifiers):
    assert profile_query(question).identifiers == identifiers


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("E0308: the types do not agree", True),
        ("error[E0308]: mismatched types", True),
        ("The error E0308 means that the types do not agree.", True),
        ("[E0308] mismatched types", True),
        ("Fix of E0308: copy the value", True),
        ("E0308 - mismatched types", True),
        ("See also the error E0308.", False),
        ("We had E0308 again: what a day", True),
        ("We met, and E0308 came up", False),
        ("At 10:30 we saw E0308", False),
        ("E0308 again?", False),
        ("", False),
    ],
)
def test_a_text_opens_with_what_stands_at_its_head(text, opens):
    assert ("e0308" in opening(text)) is opens
