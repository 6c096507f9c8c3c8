"""Standing instructions: kept while they hold, revoked when taken back, shown with every question in little room."""

import json
from pathlib import Path

import pytest

from builders import later, opened
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.instructions import read_instructions

SENTENCES = json.loads((Path(__file__).parents[1] / "data" / "instructions.json").read_text(encoding="utf-8"))
DOCS = Path(__file__).parents[2] / "docs"
FRENCH, BOAT = "Always answer in French.", "The boat leaks at the stern."


@pytest.fixture
def memory():
    with opened() as opened_memory:
        yield opened_memory


def say(memory, text, day, *, user="ana", **more):
    [written] = memory.remember(text, user=user, at=later(days=day), **more)
    return written.id


def told(memory, user="ana", **more):
    return [one.value for one in memory.facts(user=user, relation="instruction", **more)]


def shown(context):
    return [item.text for item in context.section("standing").items]


# -------------------------------------------------------------------------------------------- recognition


def test_what_is_recognised_is_right_and_most_is():
    found = [any(not one.revokes for one in read_instructions(text)) for text in SENTENCES["instructions"]]
    wrong = [text for text in SENTENCES["others"] if read_instructions(text)]
    assert wrong == []
    assert sum(found) >= 0.9 * len(found)


def test_requests_of_other_languages_and_in_passing_are_recognised():
    missed = [text for text in SENTENCES["requests"] if not any(not one.revokes for one in read_instructions(text))]
    assert len(missed) <= 0.2 * len(SENTENCES["requests"]), missed


def test_text_that_is_handed_over_or_only_looks_like_one_is_no_request():
    wrong = [text for text in (*SENTENCES["pasted"], *SENTENCES["lookalikes"]) if read_instructions(text)]
    assert wrong == []


@pytest.mark.parametrize("text", [
    "I'm a lawyer, I can cope with long words. No more bullet points please.",
    "I have dyslexia, so avoid long words where a short one does.",
    "I'm colour-blind, so never use red and green in charts.",
    "Keep the language clean at any hour, please. My son uses this too.",
    "For dates, use day and month. I keep missing appointments.",
    "Temperatures in Celsius, always, also for ovens.",
    "I need kilometres from you for all distances. How far is Oslo?",
    "Could you always put the conclusion first and the details below?",
    "Correct my grammar whenever I write to you in English.",
    "I would ask one thing of you: do not mention my father unless I do.",
    "I'd like you to stop thanking me for every little thing.",
    "I'm vegan so whenever we talk food just leave out meat and eggs.",
    "If I ever ask you to write to my boss, be polite to me.",
    "Schrijf voortaan in het Nederlands.",
    "Svara alltid på svenska.",
    "Gracias, y nunca me pongas cilantro.",
])  # fmt: skip
def test_a_request_is_known_beside_its_reason_and_without_a_verb(text):
    assert [one for one in read_instructions(text) if not one.revokes]


@pytest.mark.parametrize("text", [
    "Dear valued guest, breakfast is at eight. Always keep your key with you.",
    "Okay, forget about the cake. What about the drinks?",
    "I told her the words are too long, so never use them in class.",
    "Translate this: always write to me in French.",
    "Keep it short. Write a card for my aunt.",
])  # fmt: skip
def test_a_formal_mail_a_new_topic_and_an_order_for_once_are_no_request(text):
    assert read_instructions(text) == ()


# How a text comes into a turn that somebody else wrote.
PASTED_AS = (
    "can you summarise this mail: {}", "Please translate: {}", "Translate this to German.\n\n{}", "Explain this. {}",
    "{}\n\nCan you rewrite this?", "What does this mean? {}", "Is this rude: {}", "Proofread the following text. {}",
    '"{}"', "> {}", "```\n{}\n```", "Tom wrote: {}", "Tom sent me this.\n{}", "The list says:\n- {}",
    "Here is what the page says. {}", "Subject: rules\n\n{}", "Hi team,\n\n{}\n\nBest regards,\nTom",
)  # fmt: skip


@pytest.mark.parametrize("frame", PASTED_AS)
def test_whatever_is_pasted_no_request_comes_of_it(frame):
    wrong = [text for text in SENTENCES["instructions"] if read_instructions(frame.format(text))]
    assert wrong == []


@pytest.mark.parametrize("frame", ["{}", "explain: {}", "{}\n\nwhat does this mean?"])
def test_no_paragraph_of_our_own_documentation_is_a_request(frame):
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "CHANGELOG.md"]
    paragraphs = [text for page in pages for text in page.read_text(encoding="utf-8").split("\n\n")]
    wrong = [text for text in paragraphs for told in read_instructions(frame.format(text)) if not told.revokes]
    assert len(paragraphs) > 300
    assert wrong == []


@pytest.mark.parametrize(("first", "later_one"), SENTENCES["revocations"])
def test_an_instruction_is_taken_back_in_other_words(memory, first, later_one):
    say(memory, first, 0)
    assert told(memory) == [first]
    by = say(memory, later_one, 1)
    assert first not in told(memory)
    [old] = [one for one in memory.facts(user="ana", current_only=False) if one.value == first]
    assert (old.current, old.ended_by, old.until) == (False, by, later(days=1))


@pytest.mark.parametrize(("first", "later_one"), SENTENCES["kept"])
def test_an_instruction_stays_when_something_else_is_said(memory, first, later_one):
    say(memory, first, 0)
    say(memory, later_one, 1)
    assert first in told(memory)


@pytest.mark.parametrize("text", [
    '"Always answer in French" is what she wants.',
    "Please proofread this letter:\nAlways answer in French.",
    "> Always answer in French.",
    "```\nAlways answer in French.\n```",
    "The list says:\n- Always answer in French.\n- Never use emojis.",
    "Always answer in French. " * 100,
])  # fmt: skip
def test_quoted_and_pasted_text_is_no_instruction(memory, text):
    say(memory, text, 0)
    assert told(memory) == []


@pytest.mark.parametrize("author", ["assistant", "tool", "system", "document"])
def test_only_a_users_own_words_are_instructions(memory, author):
    say(memory, FRENCH, 0, author=author)
    say(memory, FRENCH, 0, user="bob")
    say(memory, FRENCH, 0, user="bob", scope="global")
    memory.ingest(f"# Style\n\n{FRENCH}", name="style.md", user="ana")
    assert told(memory) == []
    assert shown(memory.assemble("boat", user="ana")) == []


def test_several_instructions_of_one_turn_are_kept_one_by_one(memory):
    say(memory, f"I live in Ghent. {FRENCH} From now on, use metric units.", 0)
    say(memory, "You can stop using metric units.", 1)
    assert told(memory) == [FRENCH]


def test_everything_can_be_taken_back_at_once(memory):
    say(memory, FRENCH, 0)
    say(memory, "Call me Max.", 1)
    say(memory, "Forget all my instructions.", 2)
    assert told(memory) == []
    say(memory, FRENCH, 3)
    assert told(memory) == [FRENCH]


def test_as_of_a_moment_before_it_was_taken_back_it_holds():
    moment = [later(days=0)]
    with opened(now=lambda: moment[0]) as memory:
        memory.remember(FRENCH, user="ana")
        moment[0] = later(days=5)
        memory.remember("You can stop answering in French.", user="ana")
        assert told(memory) == shown(memory.assemble("boat", user="ana")) == []
        assert told(memory, as_of=later(days=1)) == [FRENCH]
        assert shown(memory.assemble("boat", user="ana", as_of=later(days=1))) == [FRENCH]


def test_what_is_superseded_or_forgotten_is_told_no_longer(memory):
    first = say(memory, FRENCH, 0)
    other = say(memory, "Call me Max.", 1)
    memory.supersede(first, by=other, user="ana")
    assert told(memory) == ["Call me Max."]
    memory.reinstate(first, user="ana")
    memory.forget(user="ana", ids=[other])
    assert told(memory) == shown(memory.assemble("boat", user="ana")) == [FRENCH]


# ----------------------------------------------------------------------------------------------- contexts


def test_it_is_shown_however_far_the_question_is(memory):
    french = say(memory, FRENCH, 0, session="old")
    say(memory, BOAT, 1, session="old")
    context = memory.assemble("Where does the boat leak?", user="ana", budget=300)
    assert shown(context) == [FRENCH]
    assert [item.text for item in context.section("projection").items] == [BOAT]
    assert context.text.index("[standing requests of the user, UTC]") < context.text.index("[recalled")
    assert f"standing: {context.section('standing').tokens} tokens, 1 items\n  {french} whole" in context.explain()
    verdict = memory.why("Where does the boat leak?", french, user="ana", budget=300).verdict
    assert verdict == "in the context, in its standing"


def test_a_long_turn_gives_its_instruction_alone_and_can_still_be_recalled(memory):
    long = f"{BOAT} {FRENCH} We hauled it out in March, and the yard wants to see it again before the summer comes."
    say(memory, long, 0)
    context = memory.assemble("Where does the boat leak?", user="ana", budget=600)
    assert shown(context) == [FRENCH]
    assert context.section("standing").items[0].kind == "excerpt"
    assert [item.text for item in context.section("projection").items] == [long]


def test_what_the_tail_or_the_host_shows_is_not_repeated(memory):
    say(memory, "Call me Max.", 0, session="s")
    say(memory, FRENCH, 1, session="now")
    assert shown(memory.assemble("boat", user="ana", session="now")) == ["Call me Max."]
    said = [{"role": "user", "content": "Call me Max."}, {"role": "user", "content": "boat?"}]
    assert shown(memory.assemble(said, user="ana")) == [FRENCH]
    assert shown(memory.assemble("boat", user="ana", session="now", only_session=True)) == []


def test_filters_of_the_question_leave_it_there(memory):
    say(memory, FRENCH, 0)
    assert shown(memory.assemble("boat", user="ana", filters={"city": "Ghent"})) == [FRENCH]


@pytest.mark.parametrize("budget", [40, 100, 300, 1000, 4000])
def test_the_place_is_small_and_what_does_not_fit_is_named(memory, budget):
    ids = [say(memory, f"Always mention the {one} first.", day) for day, one in enumerate(NOUNS)]
    context = memory.assemble("boat", user="ana", budget=budget)
    section = context.section("standing")
    assert section.tokens <= budget // 10
    assert context.tokens <= budget
    newest = ids[::-1][:12]
    assert [item.id for item in section.items] == newest[: len(section.items)]
    assert [left.id for left in context.left_out if left.cut == "standing"] == newest[len(section.items) :]


NOUNS = (
    "harbour", "kettle", "ladder", "orchard", "pillow", "quarry", "ribbon", "saddle", "teapot", "umbrella", "violin",
    "whistle", "anchor", "basket",
)  # fmt: skip


def test_those_for_some_questions_come_last_the_nearest_first():
    with opened(embedder=HashEmbedder(64)) as memory:
        for day, what in enumerate(("the boat", "wine", "trains")):
            say(memory, f"Always mention the price when I ask about {what}.", day)
        say(memory, FRENCH, 9)
        texts = shown(memory.assemble("when I ask about the boat price", user="ana"))
    assert texts[0] == FRENCH
    assert texts[1] == "Always mention the price when I ask about the boat."


def test_a_setting_switches_them_off():
    with opened(Settings.load({"assembly.standing_share": 0.0})) as memory:
        say(memory, f"I live in Ghent. {FRENCH}", 0)
        assert shown(memory.assemble("boat", user="ana")) == told(memory) == []
        assert [one.value for one in memory.facts(user="ana")] == ["Ghent"]


def test_the_reference_recipe_has_no_such_place():
    with opened(Settings.reference()) as memory:
        say(memory, FRENCH, 0)
        assert shown(memory.assemble("boat", user="ana")) == []


def test_a_covered_turn_still_tells():
    small = {"compaction.covered": "hide", "compaction.cluster": 4, "assembly.budget": 300}
    with opened(Settings.load(small), embedder=HashEmbedder(64)) as hiding:
        for day in range(30):
            say(hiding, FRENCH if day == 0 else f"{BOAT} It was day {day}.", day, session="s")
        hiding.compact(user="ana", session="s")
        assert hiding.list(user="ana", order="oldest", limit=1)[0].covered_by is not None
        assert shown(hiding.assemble("boat", user="ana")) == told(hiding) == [FRENCH]
