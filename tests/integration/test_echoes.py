"""A question is not an answer (C19): what was asked before stands below what states something, never hidden."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory
from holdfast.server import host
from holdfast.settings import Settings, StageSettings

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
REPLY = "Let me check that for you."
TOLD = [
    "let the climbing hall contract run out, joined the rowing club on the river",
    "sold the folding bike to Petra, the red gravel bike from Aldous is the only one left",
    "the dentist moved my appointment to 14 April, Dr Okafor is on leave",
    "Nora is allergic to walnuts, the other nuts are fine",
    "we adopted a grey greyhound called Pistachio from the shelter",
    "the office wifi key was rotated, it is plum-anchor-17 now",
    "my brother Jonas works as a roofer in Aarhus these days",
    "the landlord wants the rent by standing order from May, 840 a month",
]
# Of each: as it is asked, as it was asked before, and once more in other words.
ASKED = [
    ("what sports club am I in?", "Which sports club am I a member of?", "tell me again which club I joined"),
    ("Which bike do I own?", "what bike do i have", "i forgot which bike is mine"),
    ("When is my dentist appointment?", "when do I see the dentist", "do you remember when my appointment is?"),
    ("What can't Nora eat?", "which nuts is Nora allergic to?", "remind me what Nora is allergic to"),
    ("What is our dog called?", "name of the dog", "whats our greyhound called"),
    ("What is the wifi key of the office?", "the office wifi key?", "what was the wifi key again"),
    ("What does Jonas do for a living?", "where does Jonas work?", "tell me where my brother works"),
    ("How much rent do I pay?", "what's the rent", "how much is the rent from May"),
]
SETTINGS = dataclasses.replace(
    Settings().without_timeouts(), stages=StageSettings(read="off")
)  # the rule holds without a model that reads


def remembered(settings=SETTINGS, *, echoes):
    """Open a memory of what was told, and of what was asked; the first of the chats is the oldest."""
    memory = Memory.open(":memory:", settings=settings, now=lambda: START + timedelta(days=60))
    for day, text in enumerate(TOLD):
        memory.remember(text, user="u", session=f"told {day}", at=START + timedelta(days=day))
    for day, (_, *asked) in enumerate(ASKED if echoes else ()):
        for number, text in enumerate(asked):
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": REPLY}]
            at = START + timedelta(days=20 + day, hours=number)
            memory.remember(said, user="u", session=f"asked {day}.{number}", at=at)
    return memory


@pytest.fixture(scope="module")
def plain():
    with remembered(echoes=False) as memory:
        yield memory


@pytest.fixture(scope="module")
def echoing():
    with remembered(echoes=True) as memory:
        yield memory


def texts(found):
    return [hit.unit.text for hit in found]


@pytest.mark.parametrize("number", range(len(ASKED)))
def test_what_was_asked_before_does_not_stand_above_its_answer(plain, echoing, number):
    question = ASKED[number][0]
    assert texts(plain.search(question, user="u"))[0] == TOLD[number]
    assert texts(echoing.search(question, user="u"))[0] == TOLD[number]
    context = echoing.assemble(question, user="u", budget=400)
    assert context.items[0].text == TOLD[number]


def test_what_stood_first_as_a_question_is_lowered_and_not_hidden(echoing):
    off = dataclasses.replace(SETTINGS, stages=dataclasses.replace(SETTINGS.stages, questions=0.0))
    echo_first = []
    with remembered(off, echoes=True) as as_before:
        for number, (question, *asked) in enumerate(ASKED):
            before = texts(as_before.search(question, user="u"))
            found = texts(echoing.search(question, user="u"))
            if before[0] in asked:
                echo_first.append(question)
                assert found.index(TOLD[number]) < found.index(before[0])
    assert len(echo_first) >= 6


def test_a_question_about_what_was_asked_finds_it(echoing):
    for question, asked in (
        ("What did I ask you about the wifi key?", ASKED[5]),
        ("Did I ask about Nora?", ASKED[3]),
    ):
        found = echoing.search(question, user="u", explain=True)
        assert {*texts(found)[:3]} & {*asked[1:]}
        assert all(hit.contributions.find("only asks") is None for hit in found)


def test_the_explanation_and_why_say_that_it_only_asks(echoing):
    found = echoing.search(ASKED[0][0], user="u", explain=True, limit=100)
    echo = next(hit for hit in found if hit.unit.text == ASKED[0][1])
    assert echo.contributions.find("only asks") is not None
    assert echo.contributions.compose().hex() == echo.score.hex()
    why = echoing.why(ASKED[0][0], echo.unit.id, user="u", limit=100)
    assert why.returned
    assert why.contributions.find("it only asks") is not None
    assert found[0].contributions.find("only asks") is None


def test_a_reply_that_says_nothing_takes_nothing_over_from_the_question_before_it(echoing):
    found = echoing.search(ASKED[1][0], user="u", limit=100, explain=True)
    replies = [hit for hit in found if hit.unit.text == REPLY]
    assert all(hit.rel < found[0].rel / 2 for hit in replies)


def test_an_answer_still_takes_over_from_the_question_that_somebody_else_asked():
    with Memory.open(":memory:", settings=SETTINGS, now=lambda: START) as memory:
        talk = [("assistant", "What is your dog called?"), ("user", "Pistachio.")]
        turns = [{"role": role, "content": text} for role, text in talk]
        memory.remember(turns, user="u", session="s", at=START)
        memory.remember("the cat of the neighbours is a Persian", user="u", session="t", at=START)
        assert texts(memory.search("What is the name of my dog?", user="u"))[0] == "Pistachio."


def test_a_question_that_was_asked_later_is_no_news():
    with Memory.open(":memory:", settings=SETTINGS, now=lambda: START) as memory:
        memory.remember("I live in Aarhus.", user="u", session="a", at=START - timedelta(days=9))
        memory.remember("do I live in Porto now", user="u", session="b", at=START - timedelta(days=2))
        assert texts(memory.search("Where do I live now?", user="u"))[0] == "I live in Aarhus."
        assert [fact.value for fact in memory.facts(user="u")] == ["Aarhus"]


def test_what_a_host_is_told_has_the_answer_before_the_echo():
    boat, asked = "My boat is called Petrel.", "What is the name of my boat?"
    with Memory.open(":memory:", settings=Settings().without_timeouts()) as memory:
        for number, text in enumerate((boat, asked)):
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": f"You said: {text}"}]
            host.commit(memory, said, key=f"t{number}", session="a")
        found = host.recall(memory, query=asked).text
    assert found.index(f"user: {boat}") < found.index(asked)


def test_the_reference_recipe_ranks_questions_as_it_did():
    assert Settings.reference().stages.questions == 0.0
