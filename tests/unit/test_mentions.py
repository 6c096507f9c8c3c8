"""Names of a text: which runs of words are one, and under which keys titles and mentions meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_unit
from holdfast.settings import AnalysisSettings
from holdfast.text import analyse
from holdfast.text.names import entities, folded_words, initials, phrases, titles


@pytest.mark.parametrize(
    ("topic", "keys"),
    [
        ("", ()),
        ("Kestrel Quay", ("kestrel quay",)),
        ("Kestrel (1998 film)", ("kestrel 1998 film", "kestrel")),
        ("Lindow, Dorset", ("lindow dorset", "lindow")),
        ("Lindow, a history", ("lindow a history",)),
        ("Berta, Countess of Lindow", ("berta countess of lindow",)),
        ("Lower Lindow, Dorset", ("lower lindow dorset", "lower lindow")),
        ("Red Kestrel F.C.", ("red kestrel f.c", "red kestrel")),
        ("Red Kestrel Co. Ltd. (1998)", ("red kestrel co ltd 1998", "red kestrel co ltd", "red kestrel")),
        ("Kestrel Inc.", ("kestrel inc",)),
        ("The Lower Mill", ("lower mill",)),
        ("Café Zoë", ("cafe zoe",)),
        ("Ana’s Kitchen", ("ana kitchen",)),
        ("the", ()),
        ("Tea", ()),
        ("March", ()),
        ("How we came to leave the old house by the river", ()),
        ("x" * 201, ()),
    ],
)
def test_a_unit_is_called_by_its_topic_with_and_without_its_qualifier(topic, keys):
    assert titles(topic) == keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("We met Berta Lindqvist at the Bank of Lindow.", ("berta lindqvist", "bank of lindow")),
        ("the House of the Seven Gables", ("house of the seven gables",)),
        ("with Berta and Carla", ("berta", "carla")),
        ("Yesterday it rained. Kestrels flew. (Nothing else.)", ()),
        ("Kestrel Quay burned.", ("kestrel quay",)),
        ("The Kestrel sank, In Lindow it rained", ("kestrel", "lindow")),
        ("we flew on Apollo 13 to Mars", ("apollo 13", "mars")),
        ("with Berta\nCarla wrote", ("berta",)),
        ("near O'Neill’s and Saint-Malo", ("o'neill", "saint-malo")),
        ("to the café Élan and to Ögon", ("elan", "ogon")),
        ("my iPhone, self-Made, on Monday in May for Bob", ()),
        ("Berta met Berta Lindqvist; later, Berta Lindqvist left", ("berta lindqvist",)),
        ("我们在北京见面", ()),
        ("", ()),
    ],
)
def test_a_name_is_a_run_of_capitals_that_no_sentence_opens(text, keys):
    assert entities(text) == keys


def test_a_title_is_found_inside_a_longer_run_and_with_small_words():
    found = phrases("Then President Berta Lindqvist of Lindow saw The Kestrel and the Sea in 1998")
    assert {"berta lindqvist", "berta lindqvist of lindow", "kestrel and the sea", "1998"} <= {*found}
    assert not {"then", "of lindow", "the kestrel", "lindow saw"} & {*found}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Kestrel sank.", True),
        ("the Kestrel, Lindow", True),
        ("In Kestrel it rained", True),
        ("Kestrel's Lower Mill", True),
        ("Lindow\u2019s Kestrel", True),
        ("on Kestrel 1998", True),
        ("Port of Kestrel", True),
        ("Kestrel Quay burned", False),
        ("New Kestrel burned", False),
        ("by J. R. Kestrel", False),
        ("by J.R. Kestrel", False),
        ("A. Kestrel came", False),
        ("with T-Kestrel. Kestrel sank", True),
        ("of Lindow-K. Kestrel sank", True),
        ("The ship sank. Kestrel sank.", True),
        ("It was Lindow. Kestrel sank.", True),
        ("Kestrel Quay burned, and so did Kestrel", True),
    ],
)
def test_one_word_of_a_longer_name_is_no_name(text, found):
    assert ("kestrel" in phrases(text)) is found


@pytest.mark.parametrize("text", ["J. R. Hale came", "by J.R. Hale", "of J. Hale\u2019s"])
@pytest.mark.parametrize("topic", ["John Hale", "J. R. Hale", "John Robert Hale (potter)", "Joan Hale, potter"])
def test_initials_name_whom_they_may_stand_for(text, topic):
    assert {*initials(topic)} & {*phrases(text)} == {"j. hale"}


def test_an_initial_inside_a_name_may_be_left_out_where_the_name_is_used():
    assert "john hale" in phrases("by John R. Hale")
    assert "john hale" not in titles("John Q. Hale")  # another one
    assert not [key for key in phrases("A Hale man. I Hale saw. J.\nHale") if ". " in key]


@pytest.mark.parametrize("topic", ["", "Hale", "How John came to Hale"])
def test_what_is_nobody_has_no_initials(topic):
    assert initials(topic) == ()


def test_what_a_question_speaks_of_is_found_whatever_its_case():
    asked = folded_words("who owns kestrel Quay’s boats?")
    assert " kestrel quay " in asked
    assert " kestrel " in asked
    assert " quay's " not in asked
    assert " kest " not in asked


def test_analysis_carries_both():
    found = analyse(make_unit(text="It is near the Lower Mill", topic="Kestrel (inn)"), AnalysisSettings())
    assert (found.titles, found.mentions) == (("kestrel inn", "kestrel"), ("lower mill",))
    assert analyse(make_unit(topic="John Hale"), AnalysisSettings()).titles == ("john hale", "j. hale")


@given(st.text() | st.lists(st.sampled_from("Ana of the 1 . Élan's\n ( ibn".split(" "))).map(" ".join))
def test_any_text_gives_clean_keys_and_gives_them_once(text):
    for found in (entities(text), phrases(text), titles(text)):
        assert len(set(found)) == len(found)
        for key in found:
            assert key == " ".join(key.split()) != ""
    assert all(f" {key} " in folded_words(text) for key in entities(text))
