"""Which turns only ask, which put off an answer, and which questions are about questions."""

import json
from importlib import resources

import pytest

from builders import make_unit
from holdfast.text.asking import DATA, features_of, form_of, is_for, parts_of
from holdfast.text.questions import asks_only, asks_what_was_asked, only_asks

ASKING = [
    "Where do I live?", "what sports club am I in", "whats my salary", "Thanks! And when is Nora's birthday?",
    "do I smoke", "which bank is rhea at", "On which weekday do I rehearse?", "my blood group?", "our address",
    "date of the surgery", "i forgot where I parked", "do you remember where my bike is?",
    "tell me again when the demo is", "remind me which blood I have", "I can't remember the name of the vet",
    "show me the plan you wrote", "Could you remind me what the key is?", "When is the fair, and who goes?",
    "Which do I prefer, tea or coffee?", "For my trip to Oslo, which hotel did I book?", "Nora, when do you land?",
    "a form wants to know what street I live in", "You asked: where do I live?",
    "What did we do on 31 May 2024?", "How is it spelled: with a k?",
    "hey do u remember who our dentist is", "I was wondering if Ada and I are still going",
    "how many hens had I in May",
    "I would like to know when my last day is to be.", "Is my bike an electric one", "specs?",
    "can you list for me all the towns where I've lived", "Where is it the cat and me sit, most evenings",
    "¿Dónde vivo?", "Wann kommen die Fenster?", "现在几点？",
]  # fmt: skip
TELLING = [
    "I moved to Porto, did I tell you?", "Can you believe I got the job?", "did you know that Nora is vegan now?",
    "Did I mention my sister is pregnant?", "Is the build green? I fixed the flaky test.", "My knee hurts",
    "severe nut allergy, what can I eat?", "We keep bees; what should we plant?", "What a long day!",
    "When I get home I call Ana", "What I need is a nap", "Which reminds me, I sold the car.", "my sister Nora",
    "my boss, who is from Leeds", "the build fails on Python, how do I fix it?", "remind me to water the plants",
    "can you book a table for two", "Can you help me pack for Oslo?", "could we move the demo to 12 June?",
    "How about a walk on Sunday?", "How do I stay below $90 for the party?", "What fits, 42 or 43?", "",
    "Where can I eat, now that I am vegan?", "Where should I look, I need to be in Lyon by noon?", "Thanks a lot!",
    "Wo kann ich gut essen, ich bin am Freitag da?", "我搬到波尔图了，你知道吗？", "where " * 40 + "is it?",
]  # fmt: skip


@pytest.mark.parametrize("text", ASKING)
def test_a_turn_that_states_nothing_only_asks(text):
    assert only_asks(text)
    assert only_asks(text.replace("'", "\u2019"))


@pytest.mark.parametrize("text", TELLING)
def test_a_turn_that_states_anything_is_a_statement(text):
    assert not only_asks(text)
    assert not only_asks(f"Where do I live? {text or 'In Faro.'}") or text == "Thanks a lot!"


def test_only_turns_ask():
    assert asks_only(make_unit(text="Where do I live?"))
    assert not asks_only(make_unit(text="Where do I live?", kind="knowledge", author="document"))


@pytest.mark.parametrize(
    ("text", "off"),
    [
        ("Let me check that for you.", True),
        ("Good question. I'd have to look that up.", True),
        ("One moment. Which car do you mean?", True),
        ("Let me go back and see where the count stands.", True),
        ("I'd have to look at how that ended.", True),
        ("Hold on, I'm looking for the list.", True),
        ("Let me see, your boss is Oskar.", False),
        ("Let me check: the demo is on 12 June.", False),
        ("I'm sure you live in Faro.", False),
    ],
)
def test_an_assistant_that_only_puts_off_states_nothing(text, off):
    assert asks_only(make_unit(text=text, author="assistant")) is off
    assert not asks_only(make_unit(text=text, author="user"))


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("What did I ask you about the car?", True),
        ("which questions did Nora ask yesterday", True),
        ("what was I wondering about last week?", True),
        ("In which order did I bring up the topics?", True),
        ("What did you ask me first?", True),
        ("Where do I live?", False),
        ("Who can I ask for the key?", False),
    ],
)
def test_a_question_about_questions_is_told_by_its_words(text, about):
    assert asks_what_was_asked(text) is about


def test_the_model_says_what_it_was_made_of_and_sums_integers():
    data = json.loads((resources.files("holdfast.text") / DATA).read_text(encoding="utf-8"))
    assert data["provenance"].keys() == {"trained on", "licence", "files"}
    assert all(len(digest) == 64 for digest in data["provenance"]["files"].values())
    assert data["weights"].keys() == data["least"].keys() == {"asks", "delays"}
    listed = [feature for groups in data["weights"]["asks"].values() for feature in groups.split("|")]
    assert len(listed) == len(set(listed)) > 1000
    assert all(int(weight) for groups in data["weights"].values() for weight in groups)


def test_names_numbers_and_rare_words_count_by_their_form():
    known = {"where", "my"}
    forms = [form_of(part, known) for part in parts_of("where is my 2nd zorbing, pet's: jumped?")]
    assert forms == ["where", "_", "my", "0", "_ing", ",", "_'s", ":", "_ed", "?"]
    asked = [features_of(parts_of(f"where does {name} live?"), known) for name in ("zoran", "maude")]
    assert asked[0] == asked[1]


def test_a_sentence_of_unknown_words_is_not_judged():
    assert is_for("where is my bike", "asks")
    assert not is_for("missä pyöräni mahtaa oikein olla", "asks")
