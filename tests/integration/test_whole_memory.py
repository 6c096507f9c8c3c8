"""A memory that fits its share of a budget is in the context whole; recalled turns stand in groups (C16)."""

import pytest

from builders import NOW, later, opened
from holdfast import Settings
from holdfast.ranking import score
from holdfast.testing.contracts import HashEmbedder

FAR = "quantum chromodynamics of zeppelins"
HOME = [
    {"role": "user", "content": "I moved to Porto in May.", "at": later(days=-9)},
    {"role": "assistant", "content": "Lovely, near the river?", "at": later(days=-9, minutes=1)},
]
DOG = [
    {"role": "user", "content": "My dog is called Rex.", "at": later(days=-5)},
    {"role": "assistant", "content": "A fine name.", "at": later(days=-5, minutes=1)},
]


def settings(**given):
    return Settings.load({key.replace("__", "."): value for key, value in given.items()}, environ={})


@pytest.fixture
def memory():
    with opened(Settings().without_timeouts(), embedder=HashEmbedder(64)) as opened_memory:
        opened_memory.remember(HOME, user="ana", session="s1")
        opened_memory.remember(DOG, user="ana", session="s2")
        yield opened_memory


def texts(context, name="projection"):
    return [item.text for item in context.section(name).items]


SAID = [one["content"] for one in (*HOME, *DOG)]


def test_a_memory_that_fits_its_share_is_there_whole_what_was_found_first(memory):
    context = memory.assemble("What is my dog called?", user="ana", budget=400)
    assert texts(context)[:1] == ["My dog is called Rex."]
    assert sorted(texts(context)) == sorted(SAID)
    assert "[recalled, best first, then all else that is remembered, UTC" in context.text


def test_a_refusal_does_not_empty_it_and_search_still_refuses(memory):
    context = memory.assemble(FAR, user="ana", budget=400)
    assert texts(context) == SAID
    assert "nothing close to the question was found; all that is remembered" in context.text
    assert list(memory.search(FAR, user="ana")) == []
    assert context.found == ()


def test_a_question_that_is_refused_gets_it_too(monkeypatch):
    monkeypatch.setattr(score, "LEAST_NEARNESS_TURNS", 9.0)
    with opened(embedder=HashEmbedder(64)) as memory:
        memory.remember(HOME, user="ana", session="s1")
        context = memory.assemble("Which river is the deepest?", user="ana", budget=400)
        assert (bool(context.trace.refused), texts(context)) == (True, SAID[:2])
        assert memory.search("Which river is the deepest?", user="ana").trace.refused


def test_without_a_share_only_what_is_found_comes_along():
    with opened(settings(assembly__fill=0.0), embedder=HashEmbedder(64)) as memory:
        memory.remember(HOME, user="ana", session="s1")
        assert memory.assemble(FAR, user="ana", budget=400).text == ""


def test_a_memory_beyond_its_share_is_not(memory):
    whole = memory.assemble(FAR, user="ana", budget=10_000)
    assert texts(memory.assemble(FAR, user="ana", budget=2 * whole.tokens)) == SAID
    assert memory.assemble(FAR, user="ana", budget=2 * whole.tokens - 2).text == ""


def test_nothing_stands_in_tail_and_memory_twice_and_the_host_sees_nothing_again(memory):
    for turn in ("The boat leaks.", "So does the roof."):
        memory.remember([{"role": "user", "content": turn}, {"role": "assistant", "content": "Oh."}], user="ana",
                        session="now")  # fmt: skip
        context = memory.assemble(FAR, user="ana", session="now", budget=2_000)
        shown = [item.id for item in context.items]
        assert len(shown) == len(set(shown)) == len(memory.list(user="ana", limit=None))
        assert texts(context) == SAID
    asked = [*HOME, {"role": "user", "content": FAR}]
    said = [{"role": one["role"], "content": one["content"]} for one in asked]
    assert texts(memory.assemble(said, user="ana", session="s1", budget=2_000))[:2] == SAID[2:]


def test_it_is_what_the_view_may_recall(memory):
    [old] = memory.remember("I work at the bank.", user="ana", id="old", at=later(days=-4))
    memory.remember("I work at the mill.", user="ana", supersedes=[old.id], at=later(days=-3))
    memory.remember("The guest leaves soon.", user="ana", ttl=60.0, at=later(days=-2))
    memory.remember("Ben likes tea.", user="ben")

    def seen(**view):
        return texts(memory.assemble(FAR, user="ana", budget=4_000, **view))

    assert seen() == [*SAID, "I work at the mill.", "The guest leaves soon."]
    assert seen(session="s2", only_session=True) == []  # its tail shows it
    assert seen(filters={"session": "s1"}) == SAID[:2]
    assert seen(as_of=later(minutes=-1)) == []
    assert texts(memory.assemble(FAR, user="ben", budget=4_000)) == ["Ben likes tea."]


def test_passages_of_documents_neither_come_along_nor_count(memory):
    memory.ingest("# Boats\n\n" + "\n\n".join(f"Part {n} of the hull is tarred." for n in range(200)), name="b.md",
                  user="ana")  # fmt: skip
    context = memory.assemble("What is my dog called?", user="ana", budget=800)
    assert {*SAID} <= {*texts(context)}
    assert texts(memory.assemble(FAR, user="ana", budget=800)) == SAID


def test_turns_stand_for_their_summary_and_a_summary_for_turns_it_hides():
    for covered in ("compete", "hide"):
        given = settings(compaction__covered=covered, assembly__tail_share=0.0, assembly__min_turns=0)
        with opened(given, embedder=HashEmbedder(64)) as memory:
            talk = [
                {"role": "user", "content": f"The boat number {n} leaks at the stern and is tarred in May."}
                for n in range(40)
            ]
            memory.remember(talk, user="ana", session="s")
            done = memory.compact(user="ana", session="s")
            summaries = {one.id for one in memory.list(user="ana", limit=None) if one.kind == "summary"}
            assert done
            assert summaries
            context = memory.assemble("boat number 7", user="ana", budget=8_000)
            there = {item.id for item in context.section("projection").items}
            assert (summaries <= there) == (covered == "hide")
            assert len(there) == (40 if covered == "compete" else len(summaries))


def test_copies_of_the_same_words_are_there_once():
    with opened(embedder=HashEmbedder(64)) as memory:
        for key in ("a", "b"):
            memory.remember("The boat leaks.", user="ana", id=key, at=NOW)
        assert texts(memory.assemble(FAR, user="ana", budget=400)) == ["The boat leaks."]


def test_it_says_why_it_is_there_and_what_was_not_found_is_not_counted(memory):
    context = memory.assemble("What is my dog called?", user="ana", budget=400)
    [unit] = [one for one in memory.list(user="ana") if one.text == texts(context)[-1]]
    line = next(line for line in context.explain().splitlines() if unit.id in line)
    assert line.endswith("as all of the memory fits")
    why = memory.why("What is my dog called?", unit.id, user="ana", budget=400)
    assert (why.returned, why.verdict) == (True, "in the context, in its projection, as all of the memory fits")
    assert memory.get(unit.id, user="ana").access_count == 0
    assert memory.get(context.found[0], user="ana").access_count == 1


def test_documents_that_fill_the_room_do_not_push_the_memory_out(memory):
    for n in range(60):
        page = f"My dog is called Rex, says page {n} of the register of dogs."
        memory.remember([{"text": page, "kind": "knowledge", "author": "document"}], user="ana")
    context = memory.assemble("My dog is called Rex, says page 7", user="ana", budget=500)
    assert {*SAID} <= {*texts(context)}
    assert context.tokens <= 500
    assert context.left_out


# ------------------------------------------------------------------------------------------------- groups


def test_recalled_turns_of_one_day_stand_together_in_the_order_of_time():
    with opened(settings(assembly__fill=0.0, refusal__enabled=False), embedder=HashEmbedder(64)) as memory:
        for day, session in enumerate(("s1", "s2", "s3")):
            said = (
                "we have a boat",
                f"the boat leaks at the stern, {session}",
                "the boat leaks",
                "boat, leaks, stern",
            )
            memory.remember([{"role": "user", "content": text, "at": later(days=day - 9, minutes=minute)}
                             for minute, text in enumerate(said)], user="ana", session=session)  # fmt: skip
        context = memory.assemble("the boat leaks at the stern", user="ana", budget=2_000)
        ranked = [one.unit for one in context.trace.projection.items]
        sessions = [*dict.fromkeys(unit.session for unit in ranked)]
        grouped = sorted(ranked, key=lambda unit: (sessions.index(unit.session), unit.moment))
        assert [item.id for item in context.section("projection").items] == [unit.id for unit in grouped]
        assert ranked != grouped
        assert context.text.count(" #") == 1 + len(sessions)  # one line each says when and where


def test_a_context_asks_less_of_what_it_recalls_than_a_search():
    with opened(settings(assembly__fill=0.0, refusal__enabled=False), embedder=HashEmbedder(64)) as memory:
        words = "boat kiln violin hedge storm harbour river ferry lamp"
        for count in range(1, 10):
            memory.remember(" ".join(words.split()[-count:]) + " of it" * 9, user="ana", id=str(count))
        found = {hit.unit.id for hit in memory.search(words, user="ana", limit=50)}
        context = memory.assemble(words, user="ana", budget=2_000)
        assert found < {*context.found}
