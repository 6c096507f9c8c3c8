"""`Memory.about`: what is known of a user, as turns that answer questions, with dates and what they replaced."""

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, later
from commands import command_line
from holdfast import AsyncMemory, InputError, Memory, ReaderError, Settings
from holdfast import about as portrait
from holdfast.about import AboutCache, questions
from holdfast.retrieval import question as engine_module
from holdfast.types.known import About, AboutLine, Replaced

# Said plainly, so that the reader is sure of each.
HOME = "I live in Utrecht now, in a small flat by the canal."
CAR = "I drive a red Toyota Yaris these days."
PET = "My dog is called Waldo, he is a beagle."
SAID = (HOME, CAR, PET, "It rained all day and the bread was burnt.")


def opened(path=":memory:", now=lambda: NOW):
    """Open a memory that finds by meaning too: no statement has the words of its question."""
    return Memory.open(path, settings=Settings().without_timeouts(), now=now)


def say(memory, *texts, user="ana", first=0, **more):
    """Keep one turn a day and return their ids."""
    return [
        memory.remember(text, user=user, at=later(days=first + day - 30), **more)[0].id
        for day, text in enumerate(texts)
    ]


@pytest.fixture
def memory():
    with opened() as memory:
        yield memory


@pytest.fixture(scope="module")
def told():
    """Return the ids of what was said, and what is known of who said it."""
    with opened() as memory:
        ids = say(memory, *SAID)
        yield ids, memory.about(user="ana")


@contextlib.contextmanager
def searches():
    """Count the searches that are made meanwhile."""
    asked = []
    original = portrait.search

    def search(engine, question, view):
        asked.append(question.text)
        return original(engine, question, view)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portrait, "search", search)
        yield asked


def texts(found):
    return [line.text for line in found]


# --------------------------------------------------------------------------------------------- questions


def test_there_are_fifty_questions_each_with_a_topic_and_words_of_its_subject():
    asked = questions()
    assert len({one.text for one in asked}) == len(asked) == 50
    assert all(one.topic and one.terms and one.text.endswith("?") for one in asked)
    topics = [one.topic for one in asked]
    assert [*dict.fromkeys(topics)] == sorted({*topics}, key=topics.index)


# ------------------------------------------------------------------------------------------------ answers


def test_a_line_is_a_turn_word_for_word_with_its_date_and_how_sure_it_is(told):
    ids, found = told
    assert found.asked == 50
    [car] = [line for line in found if line.text == CAR]
    assert (car.topic, car.question) == ("Car and travel", "What car do I drive?")
    assert (car.id, car.at, car.author) == (ids[1], later(days=-29), "user")
    assert 0.5 <= car.confidence <= 1.0
    assert HOME in texts(found)
    assert SAID[3] not in texts(found)


def test_a_turn_that_answers_several_questions_stands_once(told):
    _, found = told
    assert len({line.id for line in found}) == len(found)


def test_it_reads_well_by_topic_and_as_lines_for_a_prompt(told):
    _, found = told
    assert f"Car and travel\n  {CAR}  (2026-04-05, confidence 0." in str(found)
    assert f"Car and travel | {CAR} | said 2026-04-05 | confidence 0." in found.text
    old = Replaced("old", NOW, "I drive a van.")
    line = AboutLine("Home", "Where?", "new", "word " * 60, NOW, "user", 0.75, replaced=(old,))
    shown = str(About((line,), 50))
    assert all(len(one) < 200 for one in shown.splitlines())
    assert "    before: I drive a van.  (2026-05-04)" in shown
    assert "| replaced, said 2026-05-04: I drive a van." in line.line
    assert line.to_json()["replaced"] == [
        {"id": "old", "at": "2026-05-04T12:00:00.000000Z", "text": "I drive a van."}
    ]


def test_what_was_replaced_stands_beside_what_took_its_place(memory):
    old, new = say(memory, "I drive a blue Ford Fiesta.", CAR)
    memory.supersede(old, by=new, user="ana")
    [line] = memory.about(user="ana", topic="Car and travel")
    assert (line.id, line.replaced) == (new, (Replaced(old, later(days=-30), "I drive a blue Ford Fiesta."),))


def test_what_the_reader_calls_earlier_stands_beside_what_came_later(memory):
    old, _, new = say(
        memory, "I drive a blue Ford Fiesta.", "I had pasta.", "We sold the Fiesta and drive a red Yaris now."
    )
    [line] = memory.about(user="ana", topic="Car and travel")
    assert (line.id, [one.id for one in line.replaced]) == (new, [old])


def test_a_question_or_what_the_assistant_says_answers_nothing(memory):
    say(memory, "What car do I drive?")
    say(memory, "You drive a red Toyota Yaris these days.", author="assistant")
    assert len(memory.about(user="ana", topic="Car and travel")) == 0


def test_an_empty_memory_has_no_lines(memory):
    found = memory.about(user="ana")
    assert (found.lines, found.asked, str(found)) == ((), 50, "nothing that is sure, of 50 questions\n")


def test_a_topic_asks_its_questions_and_a_limit_keeps_the_surest(memory):
    say(memory, *SAID)
    with searches() as asked:
        found = memory.about(user="ana", topic="Pets")
    of_pets = [one.text for one in questions() if one.topic == "Pets"][:2]  # nobody spoke of what it eats
    assert asked == [*of_pets, *(line.question for line in found)]  # what a line superseded is looked for
    assert {line.topic for line in found} <= {"Pets"}
    everything = memory.about(user="ana")
    [one] = memory.about(user="ana", limit=1)
    assert one.confidence == max(line.confidence for line in everything)
    with pytest.raises(InputError, match="there is no topic 'Cooking'; choose one of Home, Work"):
        memory.about(user="ana", topic="Cooking")


def test_progress_is_told_from_none_to_all(memory):
    say(memory, "I feed my cat.")
    told = []
    memory.about(user="ana", topic="Pets", progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_without_the_reader_nothing_is_sure_and_it_is_said(memory, monkeypatch):
    def missing():
        raise ReaderError("the reader is missing; install Holdfast again")

    monkeypatch.setattr(engine_module, "open_reader", missing)
    say(memory, *SAID)
    found = memory.about(user="ana", topic="Pets")
    assert (len(found), found.warnings) == (
        0,
        ("hits were not read together: the reader is missing; install Holdfast again",),
    )


# -------------------------------------------------------------------------------------- cache and erasure


def test_what_is_not_valid_any_more_takes_no_line_from_another(memory):
    _, ended = say(memory, HOME, "I live in Ghent, in a small flat.")
    memory.update(ended, user="ana", valid_to=later(days=-1))
    assert texts(memory.about(user="ana", topic="Home")) == [HOME]


def test_a_second_call_asks_nothing_until_somebody_writes(tmp_path):
    place = tmp_path / "m.db"
    with opened(path=place) as one, opened(path=place) as other:
        say(one, CAR)
        first = one.about(user="ana", topic="Pets")
        with searches() as asked:
            assert one.about(user="ana", topic="Pets") == first
            assert asked == []
            say(other, PET, user="ben")
            assert one.about(user="ana", topic="Pets") == first
            assert asked == []
            say(other, PET)
            assert PET in texts(one.about(user="ana", topic="Pets"))
            assert asked != []


def test_what_nobody_spoke_of_is_not_searched_for(memory):
    say(memory, CAR)
    with searches() as asked:
        found = memory.about(user="ana")
    assert "What car do I drive?" in asked
    assert "What pets do I have?" not in asked
    assert found.asked == 50


def test_what_is_written_meanwhile_is_asked_about_again(memory):
    say(memory, "I feed my cat.")
    memory.about(user="ana", topic="Pets", progress=lambda done, of: say(memory, PET) if done == of else None)
    assert PET in texts(memory.about(user="ana", topic="Pets"))


def test_nothing_of_the_words_is_kept_and_nothing_is_left_after_an_erasure(tmp_path):
    place = tmp_path / "m.db"
    with opened(path=place) as one, opened(path=place) as other:
        [pet] = say(one, PET)
        assert texts(one.about(user="ana", topic="Pets")) == [PET]
        kept = [cache for cache in vars(one).values() if isinstance(cache, AboutCache)]
        assert "Waldo" not in repr([vars(cache) for cache in kept])
        assert pet in repr([vars(cache) for cache in kept])
        other.forget(ids=pet, user="ana")
        assert len(one.about(user="ana", topic="Pets")) == 0
        assert pet not in repr([vars(cache) for cache in kept])
        say(one, PET)
        one.about(user="ana", topic="Pets")
        one.forget(all=True, user="ana")
        assert not any(vars(cache)["_kept"] for cache in kept)


def test_what_expires_is_shown_no_longer_though_nothing_was_written():
    now = [NOW]
    with opened(now=lambda: now[0]) as memory:
        say(memory, PET, ttl=3_600)
        assert texts(memory.about(user="ana", topic="Pets")) == [PET]
        now[0] = later(hours=2)
        assert len(memory.about(user="ana", topic="Pets")) == 0


# ----------------------------------------------------------------------------------------------- isolation


@settings(max_examples=6)  # each asks four memories
@given(whose=st.lists(st.sampled_from(["ana", "ben", "global", "agent"]), min_size=2, max_size=4, unique=True))
def test_every_line_is_of_what_the_caller_may_see(whose):
    with opened() as memory:
        for number, owner in enumerate(whose):
            text = f"My dog is called Waldo{number}, he is a beagle."
            more = {"global": {"scope": "global"}, "agent": {"agent": "helper"}}.get(owner, {})
            say(memory, text, user="ben" if owner == "ben" else "ana", id=f"{owner}", **more)
        for view in (
            {"user": "ana"},
            {"user": "ben"},
            {"user": "ana", "agent": "other"},
            {"user": "ana", "tenant": "x"},
        ):
            seen = {unit.id: unit.text for unit in memory.list(**view, limit=None)}
            assert {line.id: line.text for line in memory.about(**view, topic="Pets")}.items() <= seen.items()


# ------------------------------------------------------------------------------------------- other interfaces


def test_an_async_memory_answers_alike(told):
    async def ask():
        async with AsyncMemory.open(":memory:", settings=Settings()) as memory:
            await memory.remember(PET, user="ana")
            return await memory.about(user="ana", topic="Pets")

    assert texts(asyncio.run(ask())) == [PET]


def test_the_command_shows_topics_and_prints_json(tmp_path, monkeypatch):
    command = command_line(tmp_path, monkeypatch, COLUMNS="200")
    run = lambda *arguments: command(*arguments, "--user", "ana")  # noqa: E731
    run("remember", PET, "--id", "pet", "--at", "2026-04-02T09:00:00Z")
    shown = run("about", "--topic", "Pets")
    assert shown.startswith("Pets\n  said 2026-04-02, confidence 0.")
    assert PET in shown
    found = run("about", "--topic", "Pets", "--json")
    assert (found["asked"], [line["id"] for line in found["lines"]]) == (3, ["pet"])
