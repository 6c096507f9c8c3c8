"""Laws of facts and changes: nothing outside the text, nothing positive from a denial, the same for every order."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text import facts
from holdfast.text.changes import find_change, read_assertions
from holdfast.text.facts import CONFIDENCE, extract, resolve_speaker
from holdfast.text.names import Aliases, learned_aliases, symbol, symbol_tokens

WORDS = """
    Kestrel Redis Ana I we the a my uses use depends on is are was not never no longer and or , . ; ? ! " ' ( )
    which that who moved to from lives in live likes like has have been of by part used C++ .NET it's don't Ana's now
    instead but neither nor can cannot without
""".split()
soup = st.lists(st.sampled_from([*WORDS, "\n"]), max_size=25).map(" ".join)
texts = st.one_of(st.text(max_size=80), soup)
names = st.sampled_from(["Kestrel", "Heron", "Plover", "the gateway", "Node.js", "C++", "Harbour Desk"])
verbs = st.sampled_from([("uses", "use"), ("provides", "provide"), ("requires", "require"), ("supports", "support")])


@given(texts)
def test_what_is_read_stands_in_its_sentence(text):
    for one in extract(text):
        assert 0 <= one.start < one.end <= len(text)
        assert symbol(one.fact.subject) != symbol(one.fact.object)
        assert one.fact.confidence == CONFIDENCE[one.rule]
        said = symbol(text[one.start : one.end])
        for word in symbol_tokens(symbol(one.fact.object.replace("<speaker>'s ", ""))):
            assert word.rstrip("y") in said


@given(texts)
def test_no_text_is_too_odd_to_read(text):
    stated = extract(text)
    assert resolve_speaker(stated, "Vera") == resolve_speaker(extract(text), "Vera")
    assert all(one.speaker == "Vera" for one in read_assertions(text, "Vera"))
    assert isinstance(learned_aliases(text), tuple)


@given(names, verbs, names)
def test_a_denial_turns_the_same_fact_around(subject, verb, value):
    third, base = verb
    stated = extract(f"{subject} {third} {value}.")
    assert len(stated) == (symbol(subject) != symbol(value))
    for words in (f"does not {base}", f"doesn't {base}", f"never {third}", f"no longer {third}"):
        denied = extract(f"{subject} {words} {value}.")
        assert [one.fact for one in denied] == [one.fact for one in stated]
        assert all(one.negated for one in denied)


@given(names, verbs, names, st.sampled_from(["might", "may", "could", "would", "should", "will", "wants to"]))
def test_what_may_be_is_no_fact(subject, verb, value, modal):
    third, base = verb
    for text in (
        f"{subject} {modal} {base} {value}.",
        f"If {subject} {third} {value}.",
        f"{subject} {third} {value}?",
    ):
        assert extract(text) == ()


@given(st.text(max_size=40))
def test_a_symbol_is_its_own_symbol_in_every_case(text):
    key = symbol(text)
    assert symbol(key) == key
    assert symbol(text.casefold()) == key


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=8), st.randoms())
def test_aliases_do_not_depend_on_order(pairs, random):
    shuffled = [tuple(random.sample(pair, 2)) for pair in random.sample(pairs, len(pairs))]
    aliases = Aliases.of(pairs)
    assert dict(Aliases.of(shuffled).canonical) == dict(aliases.canonical)
    for one, other in pairs:
        assert aliases.symbol(one) == aliases.symbol(other)
        assert aliases.symbol(aliases.symbol(one)) == aliases.symbol(one)


@given(texts, texts)
def test_a_change_takes_a_value_of_the_old_statement(new, old):
    for one in read_assertions(new, "Vera"):
        for other in read_assertions(old, "Vera"):
            change = find_change(one, other)
            if change:
                assert (change.old, change.slot) == (other.value, other.slot)
                assert symbol(change.new) != symbol(change.old)
                assert find_change(one, one) is None


@given(texts)
def test_no_fact_is_missed_by_the_quick_look(text):
    read = inspect.unwrap(facts.extract)
    found = read(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "_may_state", lambda _: True)
        assert read(text) == found
