"""Names of a text: which runs of words are one, and under which keys titles and mentions meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_unit
from holdfast.language import analyse
from holdfast.language.mentions import entities, phrases, spoken, titles
from holdfast.settings import AnalysisSettings


@pytest.mark.parametrize(
    ("topic", "keys"),
    [
        ("", ()),
        ("Kestrel Quay", ("kestrel quay",)),
        ("Kestrel (1998 film)", ("kestrel 1998 film", "kestrel")),
        ("Lindow, Dorset", ("lindow dorset", "lindow")),
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


def test_what_a_question_speaks_of_is_found_whatever_its_case():
    asked = spoken("who owns kestrel Quay’s boats?")
    assert " kestrel quay " in asked
    assert " kestrel " in asked
    assert " quay's " not in asked
    assert " kest " not in asked


def test_analysis_carries_both():
    found = analyse(make_unit(text="It is near the Lower Mill", topic="Kestrel (inn)"), AnalysisSettings())
    assert (found.titles, found.mentions) == (("kestrel inn", "kestrel"), ("lower mill",))


@given(st.text() | st.lists(st.sampled_from("Ana of the 1 . Élan's\n ( ibn".split(" "))).map(" ".join))
def test_any_text_gives_clean_keys_and_gives_them_once(text):
    for found in (entities(text), phrases(text), titles(text)):
        assert len(set(found)) == len(found)
        for key in found:
            assert key == " ".join(key.split()) != ""
    assert all(f" {key} " in spoken(text) for key in entities(text))
