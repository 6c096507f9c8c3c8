"""Remembering (law 14, C1's identity): the same message is kept once, and a bad list writes nothing at all."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from random import Random
from threading import Barrier

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from builders import NOW, later, make_unit, opened
from holdfast import Settings
from holdfast.errors import HoldfastError, InputError, NotFoundError
from holdfast.store.sqlite.migrate import queries
from holdfast.store.writing import Writer
from holdfast.testing.contracts import HashEmbedder

OWNER = {"user": "ana", "session": "s1"}


def statuses(written):
    return [one.status for one in written]


def said(memory, **owner):
    """Return (author, text) of everything kept, in the session's order."""
    return [(u.author, u.text) for u in memory.list(limit=None, order="oldest", **{**OWNER, **owner})]


# ------------------------------------------------------------------------------------ without id and without time


def ticking(step=timedelta(seconds=1)):
    """Return a clock that goes on by `step` whenever it is read."""
    moments = (NOW + number * step for number in count())
    return lambda: next(moments)


HOUR = timedelta(hours=1)
authors = st.sampled_from(["user", "assistant"])
lines = st.lists(st.tuples(authors, st.sampled_from(["yes", "no", "a boat"])), max_size=6)


def as_messages(talk):
    return [{"role": author, "content": text} for author, text in talk]


def test_every_yes_of_a_live_chat_is_kept():
    talk = [("assistant", "Friday?"), ("user", "Yes"), ("assistant", "And the dentist?"), ("user", "Yes")]
    with opened(now=ticking()) as memory:
        for message in as_messages(talk):
            assert statuses(memory.remember(message, **OWNER)) == ["added"]
        assert said(memory) == talk


@given(lines, st.booleans())
@example([("user", "yes"), ("user", "yes"), ("user", "yes")], True)
def test_one_message_a_call_keeps_every_message_of_any_talk(talk, in_list):
    with opened(now=ticking(HOUR)) as memory:
        for message in as_messages(talk):
            assert statuses(memory.remember([message] if in_list else message, **OWNER)) == ["added"]
        assert said(memory) == talk
        units = memory.list(limit=None, **OWNER)
        assert len({unit.id for unit in units}) == len(units)


def test_a_note_without_a_session_is_kept_each_day():
    with opened(now=ticking(24 * HOUR)) as memory:
        for _ in range(3):
            assert statuses(memory.remember("Took my pill", user="ana")) == ["added"]
        assert [unit.text for unit in memory.list(user="ana")] == ["Took my pill"] * 3


@pytest.mark.parametrize(
    ("seconds", "status"),
    [(0, "duplicate"), (59, "duplicate"), (60, "added"), (86_400, "added"), (-1, "added"), (-86_400, "added")],
)
@pytest.mark.parametrize("owner", [OWNER, {"user": "ana"}], ids=["a session", "no session"])
def test_a_message_that_repeats_the_last_turn_soon_is_a_call_tried_again(seconds, status, owner):
    clock = iter([NOW, later(seconds=seconds)])
    with opened(now=lambda: next(clock, NOW)) as memory:
        [first] = memory.remember("the boiler is fixed", **owner)
        [again] = memory.remember("the boiler is fixed", **owner)
        assert again.status == status
        assert (again.id == first.id) == (status == "duplicate")


def test_how_soon_is_a_setting():
    settings = Settings.load({"ingest.retry_seconds": 3600})
    with opened(settings, now=ticking(timedelta(minutes=50))) as memory:
        memory.remember("the boiler is fixed", **OWNER)
        assert statuses(memory.remember("the boiler is fixed", **OWNER)) == ["duplicate"]


def test_no_seconds_to_try_again_switch_it_off():
    with opened(Settings.load({"ingest.retry_seconds": 0})) as memory:
        for _ in range(2):
            assert statuses(memory.remember("Yes", **OWNER)) == ["added"]


def test_a_message_that_repeats_an_earlier_turn_is_new_however_soon():
    with opened() as memory:
        for text in ("yes", "no", "yes"):
            assert statuses(memory.remember(text, **OWNER)) == ["added"]
        assert [text for _, text in said(memory)] == ["yes", "no", "yes"]


def test_two_speakers_who_say_the_same_at_once_both_spoke():
    with opened() as memory:
        for name in ("Ana", "Ben"):
            message = {"role": "user", "content": "yes", "name": name}
            assert statuses(memory.remember(message, **OWNER)) == ["added"]


def test_the_same_words_with_another_picture_are_another_message():
    with opened() as memory:
        for url in ("one.png", "two.png"):
            parts = [{"type": "text", "text": "look"}, {"type": "image", "url": url}]
            assert statuses(memory.remember({"role": "user", "content": parts}, **OWNER)) == ["added"]


def test_a_talk_without_a_session_is_told_apart_from_one_with_a_session_and_from_another_agents():
    with opened() as memory:
        for owner in ({"user": "ana"}, OWNER, {**OWNER, "agent": "a1"}, {**OWNER, "user": "ben"}):
            assert statuses(memory.remember("yes", **owner)) == ["added"]
        for owner in ({"user": "ana"}, OWNER, {**OWNER, "agent": "a1"}, {**OWNER, "user": "ben"}):
            assert statuses(memory.remember("yes", **owner)) == ["duplicate"]


def test_sending_a_longer_list_adds_only_what_is_new():
    talk = [
        {"role": "user", "content": "Shall we book the ferry?"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "And the cabin?"},
    ]
    more = [*talk, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "Done then."}]
    with opened() as memory:
        memory.remember(talk, **OWNER)
        assert statuses(memory.remember(more, **OWNER)) == ["duplicate"] * 3 + ["added"] * 2
        assert [text for _, text in said(memory)] == [message["content"] for message in more]


def test_two_real_yes_stay_two():
    with opened() as memory:
        assert statuses(memory.remember(["yes", "no", "yes"], **OWNER)) == ["added"] * 3
        assert Counter(text for _, text in said(memory)) == {"yes": 2, "no": 1}


def test_the_same_words_of_another_author_are_another_message():
    with opened() as memory:
        both = [{"role": "user", "content": "yes"}, {"role": "assistant", "content": "yes"}]
        assert statuses(memory.remember(both, **OWNER)) == ["added", "added"]
        assert statuses(memory.remember("yes", author="tool", **OWNER)) == ["added"]
        assert statuses(memory.remember("yes", author="tool", **OWNER)) == ["duplicate"]
        assert sorted(said(memory)) == [("assistant", "yes"), ("tool", "yes"), ("user", "yes")]


def test_words_that_differ_in_a_space_or_a_capital_are_kept_apart():
    with opened() as memory:
        memory.remember(["Yes", "yes", "yes ", "yes!"], **OWNER)
        assert [text for _, text in said(memory)] == ["Yes", "yes", "yes ", "yes!"]


@given(lines, lines.filter(bool))
def test_resending_a_history_with_new_turns_keeps_its_order(old, new):
    with opened(now=ticking(HOUR)) as memory:
        if old:
            memory.remember(as_messages(old), **OWNER)
        memory.remember(as_messages([*old, *new]), **OWNER)
        units = memory.list(limit=None, order="oldest", **OWNER)
        assert [(u.author, u.text) for u in units] == [*old, *new]
        assert [u.position for u in units] == [*range(len(units))]


def windows(talk, ends, starts):
    """Return what a host sends that shows the last turns: windows, each with a turn or more of the one before."""
    held = 0
    for end, start in zip(sorted({min(end, len(talk)) for end in ends} | {len(talk)}), starts, strict=False):
        yield held, max(0, min(start, held - 1)), end
        held = end


def unmistakable(talk, held, start, end):
    """Return whether a window can be read in one way only: no more of it than it repeats looks like a repetition."""
    said_again = held - start
    longer = range(said_again + 1, min(held, end - start) + 1)
    return end - start > 1 and not any(talk[held - k : held] == talk[start : start + k] for k in longer)


@given(
    st.lists(st.tuples(authors, st.sampled_from(["yes", "no", "a boat"])), min_size=2, max_size=10),
    st.lists(st.integers(1, 10), min_size=1, max_size=6),
    st.lists(st.integers(0, 10), min_size=8, max_size=8),
    st.sampled_from([OWNER, {"user": "ana"}]),
    st.booleans(),
)
@example([("user", "yes")] * 4 + [("user", "no")], [2, 5], [0, 1] + [0] * 6, OWNER, True)
def test_any_growing_or_sliding_window_of_any_talk_leaves_the_talk(talk, ends, starts, owner, again):
    sent = [*windows(talk, ends, starts)]
    assume(all(unmistakable(talk, *window) for window in sent))
    with opened(now=ticking(HOUR)) as memory:
        for held, start, end in sent:
            window = as_messages(talk[start:end])
            assert statuses(memory.remember(window, **owner)) == ["duplicate"] * (held - start) + ["added"] * (
                end - held
            )
            if again:
                assert set(statuses(memory.remember(window, **owner))) == {"duplicate"}
        units = memory.list(limit=None, order="oldest", **owner)
        assert [(unit.author, unit.text) for unit in units] == talk
        assert len({unit.id for unit in units}) == len(talk)


@given(lines.filter(lambda talk: len(talk) > 1), st.lists(st.integers(2, 6), max_size=5))
def test_the_whole_list_each_turn_never_adds_anything_twice(talk, ends):
    with opened(now=ticking(HOUR)) as memory:
        for end in sorted({min(end, len(talk)) for end in ends} | {len(talk)}):
            for _ in range(2):
                memory.remember(as_messages(talk[:end]), **OWNER)
                assert said(memory) == talk[:end]


@given(st.lists(lines.filter(lambda talk: len(talk) > 1), max_size=4))
def test_nothing_of_a_list_is_lost(sends):
    with opened(now=ticking(HOUR)) as memory:
        for talk in sends:
            memory.remember(as_messages(talk), **OWNER)
            assert Counter(talk) <= Counter(said(memory))


def test_an_exchange_a_call_keeps_one_that_is_said_again_later():
    light, off = [("user", "light on"), ("assistant", "Done.")], [("user", "light off"), ("assistant", "Done.")]
    with opened(now=ticking()) as memory:
        for exchange in (light, off, light, off):
            assert statuses(memory.remember(as_messages(exchange), **OWNER)) == ["added"] * 2
        assert said(memory) == [*light, *off, *light, *off]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=8))
def test_an_exchange_a_call_keeps_every_exchange_but_one_that_is_repeated_at_once(exchanges):
    talk = [one for one, before in zip(exchanges, [None, *exchanges], strict=False) if one != before]
    with opened(now=ticking(HOUR)) as memory:
        for asked, answered in talk:
            memory.remember(as_messages([("user", asked), ("assistant", answered)]), **OWNER)
        assert said(memory) == [line for u, a in talk for line in (("user", u), ("assistant", a))]


TALK = [(("user", "assistant")[number % 2], f"line {number}") for number in range(8)]


def live(memory, talk):
    for message in as_messages(talk):
        memory.remember(message, **OWNER)


def test_an_answer_that_was_made_anew_is_all_that_is_new():
    with opened(now=ticking()) as memory:
        live(memory, TALK[:6])
        other = [*TALK[:5], ("assistant", "another answer")]
        assert statuses(memory.remember(as_messages(other), **OWNER)) == ["duplicate"] * 5 + ["added"]
        more = [*other, ("user", "thanks")]
        assert statuses(memory.remember(as_messages(more), **OWNER)) == ["duplicate"] * 6 + ["added"]
        assert statuses(memory.remember(as_messages(more[2:]), **OWNER)) == ["duplicate"] * 5


def test_a_writer_that_is_behind_adds_nothing():
    with opened(now=ticking()) as memory:
        live(memory, TALK)
        assert set(statuses(memory.remember(as_messages(TALK[1:6]), **OWNER))) == {"duplicate"}
        assert said(memory) == TALK


def test_erased_words_that_a_host_sends_again_are_kept_again_once_and_nothing_else_is_added():
    with opened(now=ticking()) as memory:
        live(memory, TALK[:6])
        memory.forget(ids=[memory.list(order="oldest", **OWNER)[2].id], user="ana")
        added = [statuses(memory.remember(as_messages(TALK[:end]), **OWNER)).count("added") for end in (6, 7, 8, 8)]
        assert added == [1, 1, 1, 0]
        assert sorted(said(memory)) == sorted(TALK)


def test_instructions_before_a_window_are_kept_once():
    head = [("system", "Be kind.")]
    with opened(now=ticking()) as memory:
        for end in range(2, len(TALK) + 1):
            memory.remember(as_messages([*head, *TALK[max(0, end - 3) : end]]), **OWNER)
        assert said(memory) == [*head, *TALK]


def test_a_correction_is_not_undone_by_a_host_that_sends_the_first_words_again():
    with opened(now=ticking()) as memory:
        live(memory, TALK[:4])
        memory.update(memory.list(order="oldest", **OWNER)[1].id, user="ana", text="corrected")
        assert statuses(memory.remember(as_messages(TALK[:5]), **OWNER)) == ["duplicate"] * 4 + ["added"]
        assert said(memory)[1] == ("assistant", "corrected")


def test_a_list_with_some_ids_and_times_is_told_apart_by_all_it_has():
    talk = [
        {"role": "user", "content": "yes", "id": "m1"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "yes", "at": later(days=-1)},
        {"role": "assistant", "content": "yes"},
    ]
    with opened(now=ticking()) as memory:
        assert statuses(memory.remember(talk, **OWNER)) == ["added"] * 4
        assert statuses(memory.remember(talk, **OWNER)) == ["duplicate"] * 4
        more = [*talk, {"role": "user", "content": "yes", "id": "m2"}, {"role": "assistant", "content": "yes"}]
        assert statuses(memory.remember(more, **OWNER)) == ["duplicate"] * 4 + ["added"] * 2
        assert statuses(memory.remember(more[2:], **OWNER)) == ["duplicate"] * 4


def test_answers_to_two_calls_of_tools_are_two_messages_however_alike():
    with opened() as memory:
        for call in ("c1", "c2", "c2"):
            memory.remember({"role": "tool", "tool_call_id": call, "content": "ok"}, user="ana", session="s")
        kept = memory.list(user="ana", session="s", order="oldest")
        assert [unit.metadata["tool_call_id"] for unit in kept] == ["c1", "c2"]


def test_a_list_that_is_sent_again_with_another_time_for_all_of_it_adds_only_what_is_new():
    talk = ["Shall I book Friday?", "Yes", "Shall I also cancel the dentist?", "Yes"]
    with opened() as memory:
        for count in range(2, len(talk) + 1):
            said = [{"role": "user", "content": text} for text in talk[:count]]
            memory.remember(said, user="ana", session="s", at=NOW + timedelta(minutes=count))
        assert [unit.text for unit in memory.list(user="ana", session="s", order="oldest")] == talk


def test_messages_of_several_sessions_in_one_call_are_told_apart_session_by_session():
    talk = [
        {"role": "user", "content": text, "session": name} for text, name in (("Yes", "a"), ("Yes", "b"), ("No", "a"))
    ]
    with opened() as memory:
        assert [one.status for one in memory.remember(talk, user="ana")] == ["added"] * 3
        assert [one.status for one in memory.remember(talk, user="ana")] == ["duplicate"] * 3
        longer = [*talk, {"role": "user", "content": "Yes", "session": "b"}]
        assert [one.status for one in memory.remember(longer, user="ana")] == ["duplicate"] * 3 + ["added"]


@pytest.mark.parametrize(("days", "status"), [(0, "duplicate"), (1, "added")])
def test_one_message_for_each_of_several_sessions_is_new_unless_it_comes_again_soon(days, status):
    clock = iter([NOW, later(days=days)])
    notes = [
        {"role": "user", "content": text, "session": name} for text, name in (("Took my pill", "a"), ("Yes", "b"))
    ]
    with opened(now=lambda: next(clock, NOW)) as memory:
        memory.remember(notes, user="ana")
        assert statuses(memory.remember(notes, user="ana")) == [status] * 2


@pytest.mark.parametrize(("days", "status"), [(0, "duplicate"), (3, "added")])
@pytest.mark.parametrize("known_by", [{"id": "m1"}, {"at": later(days=-1)}], ids=["an id", "a time"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_messages_with_ids_or_times_do_not_make_one_message_a_list(days, status, known_by, first):
    clock = iter([NOW, later(days=days)])
    both = [{"role": "user", "content": "Yes"}, {"role": "assistant", "content": "Fine", **known_by}]
    both = both if first else both[::-1]
    with opened(now=lambda: next(clock, NOW)) as memory:
        memory.remember(both, **OWNER)
        again = statuses(memory.remember(both, **OWNER))
        assert again == ([status, "duplicate"] if first else ["duplicate", status])


def checked_in(answers):
    asked = ("Did you sleep well?", "Did you take the pill?", "Any pain?", "Did you walk?")
    return [
        line for pair in zip(asked, answers, strict=True) for line in zip(("assistant", "user"), pair, strict=True)
    ]


answers = st.lists(st.sampled_from(["yes", "no"]), min_size=4, max_size=4)


@given(st.lists(answers, max_size=6))
@example([["no", "yes", "no", "no"], ["yes", "yes", "no", "no"], ["no", "yes", "yes", "no"]])
def test_questions_that_are_asked_each_day_are_kept_each_day_but_for_a_day_that_is_word_for_word_the_last(days):
    talks = [checked_in(one) for one, before in zip(days, [None, *days], strict=False) if one != before]
    with opened(now=ticking(24 * HOUR)) as memory:
        for talk in talks:
            assert statuses(memory.remember(as_messages(talk), **OWNER)) == ["added"] * len(talk)


@pytest.mark.parametrize("seed", [1, 6, 14, 27, 33])
def test_a_list_of_few_different_words_is_not_taken_for_what_was_said_in_another_order(seed):
    draw = Random(seed)
    words = [("tool", draw.choice(["ok", "failed", "skipped", "retried"])) for _ in range(60)]
    with opened(now=ticking(HOUR)) as memory:
        live(memory, words[:40])
        added = statuses(memory.remember(as_messages([("tool", f"run {seed}"), *words[40:]]), **OWNER))
        assert set(added) == {"added"}


def test_two_writers_who_send_the_same_list_at_once_leave_one(tmp_path):
    together = Barrier(2)

    def send(_):
        with opened(path=tmp_path / "two.db") as memory:
            for end in range(2, len(TALK) + 1):
                together.wait()
                memory.remember(as_messages(TALK[:end]), **OWNER)

    with opened(path=tmp_path / "two.db") as memory, ThreadPoolExecutor(2) as pool:
        [*pool.map(send, range(2))]
        assert said(memory) == TALK


def test_the_same_calls_give_the_same_ids():
    def ids():
        with opened(now=ticking()) as memory:
            live(memory, [("user", "yes"), ("user", "no")] * 3)
            return [unit.id for unit in memory.list(limit=None, **OWNER)]

    assert ids() == ids()


@pytest.mark.parametrize("owner", [OWNER, {"user": "ana"}], ids=["a session", "no session"])
def test_a_message_reads_as_many_turns_as_its_list_is_long_and_no_more(owner, monkeypatch):
    asked = []
    with opened(now=ticking(HOUR)) as memory:
        read = Writer._last_turns
        monkeypatch.setattr(
            Writer, "_last_turns", lambda self, unit, limit: asked.append(limit) or read(self, unit, limit)
        )
        for number in range(20):
            memory.remember("yes" if number % 2 else "no", **owner)
        memory.remember(["yes", "no", "maybe"], **owner)
        assert max(asked[:-3]) == 1 if owner == OWNER else max(asked) <= 6
        plan = memory.store._database.connection.execute(
            f"EXPLAIN QUERY PLAN {queries()['last_turns']}",
            {"tenant": "local", "user": "ana", "session": owner.get("session"), "agent": "", "limit": 1},
        ).fetchall()
        assert "units_in_conversation" in plan[0][3]
        assert not any("TEMP B-TREE" in row[3] for row in plan)


def test_only_what_is_new_is_analysed(monkeypatch):
    analysed = []
    with opened(now=ticking()) as memory:
        analyse = memory._analyse
        monkeypatch.setattr(memory, "_analyse", lambda unit: analysed.append(unit.text) or analyse(unit))
        for end in range(2, len(TALK) + 1):
            memory.remember(as_messages(TALK[:end]), **OWNER)
        assert analysed == [text for _, text in TALK]


def test_a_list_that_cannot_be_analysed_leaves_nothing(monkeypatch):
    def refuse(unit):
        raise RecursionError(unit.text)

    with opened() as memory:
        monkeypatch.setattr(memory, "_analyse", refuse)
        with pytest.raises(RecursionError):
            memory.remember(["yes", "no"], **OWNER)
        assert said(memory) == []


@pytest.mark.parametrize(
    ("again", "changed"),
    [
        ({"pinned": True}, {"pinned": True}),
        ({"metadata": {"room": "attic"}}, {"metadata": {"room": "attic"}}),
        ({"ttl": 60}, {"expires_at": later(seconds=61)}),
    ],
)
def test_a_repeated_message_takes_a_new_pin_lifetime_or_metadata(again, changed):
    with opened(now=ticking(), embedder=HashEmbedder(64)) as memory:
        [first] = memory.remember("a kiln", metadata={"room": "hall"}, **OWNER)
        [second] = memory.remember("a kiln", **again, **OWNER)
        assert (second.id, second.status, second.version) == (first.id, "updated", 2)
        unit = memory.get(first.id, user="ana")
        assert unit == memory.history(first.id, user="ana")[0].evolve(
            version=2, recorded_time=later(seconds=1), **changed
        )
        assert memory.search("kiln", user="ana")[0].unit.id == first.id
        assert statuses(memory.remember("a kiln", **again, **OWNER)) == ["duplicate"]
        assert statuses(memory.remember("a kiln", **OWNER)) == ["duplicate"]


# ------------------------------------------------------------------------------------------- with ids, with times


def test_a_message_id_tells_equal_messages_apart_and_repeats_from_each_other():
    first, second = ({"role": "user", "content": "yes", "id": key} for key in ("m1", "m2"))
    with opened() as memory:
        assert statuses(memory.remember([first, second, first], **OWNER)) == ["added", "added", "duplicate"]
        assert statuses(memory.remember([second], **OWNER)) == ["duplicate"]


def test_the_same_message_id_with_other_words_is_another_message():
    with opened() as memory:
        for text in ("yes", "no"):
            assert statuses(memory.remember({"role": "user", "content": text, "id": "m1"}, **OWNER)) == ["added"]


def test_a_message_id_decides_even_when_the_time_differs():
    with opened() as memory:
        message = {"role": "user", "content": "yes", "id": "m1"}
        memory.remember({**message, "at": NOW}, **OWNER)
        assert statuses(memory.remember({**message, "at": later(hours=1)}, **OWNER)) == ["duplicate"]
        assert memory.list(**OWNER)[0].event_time == NOW


@pytest.mark.parametrize("given_by", ["the message", "the call"])
def test_equal_messages_of_different_times_are_two_and_of_one_time_are_one(given_by):
    with opened() as memory:

        def send(moment):
            if given_by == "the call":
                return statuses(memory.remember("the bus is late", at=moment, **OWNER))
            return statuses(memory.remember({"role": "user", "content": "the bus is late", "at": moment}, **OWNER))

        assert [send(NOW), send(later(days=1)), send(NOW)] == [["added"], ["added"], ["duplicate"]]
        assert [unit.event_time for unit in memory.list(order="oldest", **OWNER)] == [NOW, later(days=1)]


def test_a_time_is_a_moment_whatever_its_zone():
    with opened() as memory:
        memory.remember({"role": "user", "content": "yes", "at": NOW}, **OWNER)
        lisbon = NOW.astimezone(timezone(timedelta(hours=1)))
        assert statuses(memory.remember({"role": "user", "content": "yes", "at": lisbon}, **OWNER)) == ["duplicate"]
        assert statuses(memory.remember({"role": "user", "content": "yes", "at": lisbon.isoformat()}, **OWNER)) == [
            "duplicate"
        ]


@pytest.mark.parametrize("given_by", ["the messages", "the call"])
def test_sending_a_list_whose_messages_share_one_time_again_adds_nothing(given_by):
    at, message = ({"at": NOW}, {}) if given_by == "the call" else ({}, {"at": NOW})
    talk = [{"role": "user", "content": text, **message} for text in ("yes", "no", "yes")]
    with opened() as memory:
        memory.remember(talk, **OWNER, **at)
        before = memory.list(limit=None, **OWNER)
        assert set(statuses(memory.remember(talk, **OWNER, **at))) == {"duplicate"}
        assert memory.list(limit=None, **OWNER) == before


identified = st.lists(
    st.tuples(
        authors,
        st.sampled_from(["yes", "a boat"]),
        st.sampled_from(["m1", "m2", "m3"]) | st.sampled_from([NOW, later(hours=1), later(hours=2)]),
    ),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(st.lists(identified, min_size=1, max_size=4))
def test_messages_with_an_id_or_a_time_are_kept_once_in_any_batches_and_order(sends):
    with opened() as memory:
        seen = set()
        for talk in sends:
            batch = [
                {"role": author, "content": text, "id" if isinstance(mark, str) else "at": mark}
                for author, text, mark in talk
            ]
            expected = ["duplicate" if item in seen else "added" for item in talk]
            assert statuses(memory.remember(batch, **OWNER)) == expected
            seen |= set(talk)
        assert len(memory.list(limit=None, **OWNER)) == len(seen)


# ----------------------------------------------------------------------------------------------- given ids, versions


def test_a_given_id_with_new_words_makes_a_version_and_the_index_forgets_the_old_words():
    with opened() as memory:
        memory.remember("the kiln is cold", id="k", user="ana")
        [written] = memory.remember("the oven is hot", id="k", user="ana")
        assert (written.id, written.status, written.version) == ("k", "updated", 2)
        assert [unit.text for unit in memory.history("k", user="ana")] == ["the kiln is cold", "the oven is hot"]
        assert list(memory.search("kiln", user="ana")) == []
        assert [hit.unit.id for hit in memory.search("oven", user="ana")] == ["k"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"session": "s1", "metadata": {"room": ["hall", 1.5, None, True], "deep": {"a": 1}}},
        {"at": NOW, "speaker": "Rosa", "valid_from": NOW, "valid_to": later(days=1), "links": ["a", "b"]},
        {"pinned": True, "author": "assistant", "scope": "global"},
    ],
    ids=["plain", "metadata", "times", "flags"],
)
def test_a_given_id_with_the_same_content_is_a_duplicate(fields):
    clock = iter([NOW, later(hours=1), later(hours=2)])
    with opened(now=lambda: next(clock)) as memory:
        memory.remember("the kiln is cold", id="k", user="ana", **fields)
        [again] = memory.remember("the kiln is cold", id="k", user="ana", **fields)
        assert (again.status, again.version) == ("duplicate", 1)


def test_a_changed_field_is_new_content():
    with opened() as memory:
        memory.remember("the kiln is cold", id="k", user="ana", metadata={"room": "hall"})
        [again] = memory.remember("the kiln is cold", id="k", user="ana", metadata={"room": "attic"})
        assert (again.status, again.version) == ("updated", 2)


versions = st.lists(
    st.tuples(st.sampled_from(["k1", "k2"]), st.sampled_from(["warm", "cold", "broken"])), max_size=10
)


@given(versions)
def test_a_given_id_counts_one_version_for_every_change_of_content(steps):
    with opened() as memory:
        history = {}
        for key, state in steps:
            known = history.setdefault(key, [])
            status = "added" if not known else "duplicate" if known[-1] == state else "updated"
            if status != "duplicate":
                known.append(state)
            [written] = memory.remember({"id": key, "claim": state}, user="ana")
            assert (written.status, written.version) == (status, len(known))
        for key, known in history.items():
            assert [unit.text for unit in memory.history(key, user="ana")] == known


def test_the_position_and_first_time_of_a_unit_survive_its_versions():
    clock = iter(later(hours=n) for n in range(9))
    with opened(now=lambda: next(clock)) as memory:
        memory.remember("first", id="a", **OWNER)
        memory.remember("second", id="b", **OWNER)
        memory.remember("first, mended", id="a", **OWNER)
        mended = memory.update("a", user="ana", text="first, mended twice")
        assert (mended.position, mended.version, mended.event_time) == (0, 3, NOW)
        assert [unit.recorded_time for unit in memory.history("a", user="ana")] == [
            NOW,
            later(hours=2),
            later(hours=3),
        ]


def test_updating_words_changes_the_statement_that_is_searched():
    with opened() as memory:
        memory.remember({"id": "p", "role": "Procedure", "procedure": "drain the kiln"}, user="ana")
        unit = memory.update("p", user="ana", text="polish the oven")
        assert (unit.text, unit.procedure, unit.claim) == ("polish the oven", "polish the oven", "")
        assert list(memory.search("kiln", user="ana")) == []


@pytest.mark.parametrize("kind", ["a turn", "knowledge", "knowledge without acts", "a procedure", "a fact"])
def test_a_unit_that_is_remembered_again_as_it_is_is_a_duplicate(kind):
    content = {
        "a turn": {"role": "user", "content": "the kiln is cold", "name": "Rosa", "at": NOW},
        "knowledge": {"claim": "kilns are hot", "topic": "kiln", "utility_acts": ["define"], "metadata": {"n": 1}},
        "knowledge without acts": {"claim": "kilns are hot", "utility_acts": []},
        "a procedure": {"role": "Procedure", "procedure": "light the kiln", "condition": "in the morning"},
        "a fact": {
            "claim": "a kiln uses gas",
            "subject": "kiln",
            "relation": "uses",
            "object": "gas",
            "confidence": 0.5,
        },
    }[kind]
    with opened() as memory:
        [written] = memory.remember(content, **OWNER)
        unit = memory.get(written.id, user="ana")
        assert statuses(memory.remember(unit, **OWNER)) == ["duplicate"]
        memory.remember(unit, user="ben", session="s1")
        copy = memory.get(written.id, user="ben")
        assert copy == unit.evolve(user="ben", recorded_time=copy.recorded_time)


# ----------------------------------------------------------------------------------------------- all or nothing

GOOD = {"role": "user", "content": "the kiln is warm", "metadata": {"room": "hall"}}
BAD = {
    "blank": "  ",
    "a number": 7,
    "none": None,
    "bytes": b"kiln",
    "a list": [GOOD],
    "unknown role": {"role": "wizard", "content": "x"},
    "no words": {"role": "user", "content": None},
    "NUL": "a\0b",
    "half a character": "a\ud800",
    "naive time": {**GOOD, "at": datetime(2026, 1, 1)},  # noqa: DTZ001 - the missing zone is the point
    "not a time": {**GOOD, "at": "soon"},
    "metadata that is no object": {**GOOD, "metadata": [1]},
    "metadata with NaN": {**GOOD, "metadata": {"x": float("nan")}},
    "a part of a wrong type": {"role": "user", "content": ["x", 5]},
    "tool calls of a wrong type": {**GOOD, "tool_calls": 5},
    "a tool call of a wrong type": {**GOOD, "tool_calls": [5]},
    "blank id": {**GOOD, "id": ""},
    "speaker of a wrong type": {**GOOD, "name": 5},
    "unknown field": {"claim": "x", "colour": "red"},
    "unknown act": {"claim": "x", "utility_acts": ["dance"]},
    "no acts at all": {"claim": "x", "utility_acts": None},
    "no parts at all": {"claim": "x", "parts": None},
    "claim and procedure": {"claim": "x", "procedure": "y"},
    "half a fact": {"claim": "x", "subject": "kiln"},
    "authority beyond 1": {"claim": "x", "authority": 2},
    "claim of a wrong type": {"claim": 5},
    "text of a wrong type": {"claim": "x", "text": 5},
    "topic of a wrong type": {"claim": "x", "topic": 5},
    "pinned of a wrong type": {"claim": "x", "pinned": "yes"},
}


def everything(memory):
    kept = memory.list(limit=None, user="ana", current_only=False)
    found = [(hit.unit, hit.score) for hit in memory.search("kiln", user="ana")]
    return kept, found, memory.stats(user="ana").versions


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_one_bad_message_in_a_list_is_named_and_nothing_of_the_list_is_written(bad):
    with opened() as memory:
        memory.remember("an old kiln", id="old", **OWNER)
        before = everything(memory)
        with pytest.raises(InputError, match="message 1: "):
            memory.remember([GOOD, bad, {**GOOD, "content": "the kiln is hot"}], **OWNER)
        assert everything(memory) == before
        assert statuses(memory.remember([GOOD], **OWNER)) == ["added"]


def test_a_list_whose_last_unit_cannot_be_written_leaves_the_store_as_it_was():
    with opened() as memory:
        memory.remember("an old kiln", id="old", **OWNER)
        before = everything(memory)
        batch = [
            {"id": "old", "claim": "a new kiln"},
            {"id": "next", "claim": "a kiln", "supersedes": "old"},
            {"id": "last", "claim": "a third kiln", "supersedes": "nobody"},
        ]
        with pytest.raises(NotFoundError, match="nobody"):
            memory.remember(batch, user="ana", session="s1")
        assert everything(memory) == before


@given(lines.filter(bool), st.integers(0, 6), st.sampled_from([*BAD.values()][:10]))
def test_a_bad_message_anywhere_spoils_the_whole_list_and_only_that(talk, place, bad):
    batch = as_messages(talk)
    with opened() as memory:
        with pytest.raises(InputError):
            memory.remember([*batch[:place], bad, *batch[place:]], **OWNER)
        assert memory.list(**OWNER) == []
        assert set(statuses(memory.remember(batch, **OWNER))) == {"added"}


def test_a_pin_that_is_neither_true_nor_false_is_refused():
    with opened() as memory:
        with pytest.raises(InputError):
            memory.remember("a kiln", pinned="no", **OWNER)
        assert memory.list(**OWNER) == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"text": " "},
        {"text": 5},
        {"topic": None},
        {"topic": 5},
        {"topic": "a\ud800"},
        {"topic": "a\0b"},
        {"pinned": "no"},
        {"metadata": {"x": float("inf")}},
        {"metadata": None},
        {"ttl": -1},
        {"valid_to": "soon"},
        {"links": 5},
        {"text": "the kiln is new", "links": [""]},
    ],
)
def test_a_bad_update_is_refused_whole(changes):
    with opened() as memory:
        memory.remember("the kiln is cold", id="k", **OWNER)
        before = everything(memory)
        with pytest.raises(InputError):
            memory.update("k", user="ana", **changes)
        assert everything(memory) == before
        assert len(memory.history("k", user="ana")) == 1


@pytest.mark.parametrize("unit_id", ["", " ", None, 5, ["k"], "a\0b", "a\ud800", "x" * 300])
def test_an_impossible_id_is_a_typed_error_in_every_verb(unit_id):
    with opened() as memory:
        memory.remember("the kiln is cold", id="k", **OWNER)
        for verb in (
            lambda: memory.get(unit_id, user="ana"),
            lambda: memory.history(unit_id, user="ana"),
            lambda: memory.why("kiln", unit_id, user="ana"),
            lambda: memory.update(unit_id, user="ana", text="new"),
        ):
            with pytest.raises(HoldfastError):
                verb()


# --------------------------------------------------------------------------------------------------- word for word


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip))
@example("  spaces \t and\r\nlines\n ")
@example("e\u0301 ≠ é, ﬁ, İ, \u202egnorts, 👩‍👩‍👧")
def test_every_word_comes_back_as_it_was_given(text):
    with opened() as memory:
        [written] = memory.remember(text, **OWNER)
        unit = memory.get(written.id, user="ana")
        assert unit.text == unit.claim == text
        assert (unit.kind, unit.role, unit.topic, unit.utility_acts) == ("turn", "Narrative", "", ())


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc", max_size=2), json_values, max_size=3))
def test_metadata_comes_back_as_it_was_given(metadata):
    with opened() as memory:
        [written] = memory.remember("a kiln", metadata=metadata, **OWNER)
        assert memory.get(written.id, user="ana").metadata == metadata
        assert statuses(memory.remember("a kiln", id=written.id, metadata=metadata, **OWNER)) == ["duplicate"]


def test_what_a_caller_does_to_its_own_objects_later_changes_nothing():
    metadata, parts = {"tags": ["old"]}, [{"type": "text", "text": "a kiln"}]
    with opened() as memory:
        [written] = memory.remember({"role": "user", "content": parts, "metadata": metadata}, **OWNER)
        metadata["tags"].append("new")
        parts[0]["text"] = "an oven"
        unit = memory.get(written.id, user="ana")
        assert (unit.metadata, unit.text, unit.parts[0]["text"]) == ({"tags": ["old"]}, "a kiln", "a kiln")


def test_what_a_caller_does_to_a_returned_unit_changes_nothing_in_the_memory():
    with opened() as memory:
        memory.remember("a kiln", id="k", metadata={"tags": ["old"], "room": "hall"}, **OWNER)
        for read in (
            lambda: memory.get("k", user="ana"),
            lambda: memory.list(user="ana")[0],
            lambda: memory.search("kiln", user="ana")[0].unit,
            lambda: memory.history("k", user="ana")[0],
        ):
            try:
                read().metadata["tags"].append("new")
                read().metadata["room"] = "attic"
            except (AttributeError, TypeError):
                pass  # a value that refuses the change is as good
            assert memory.get("k", user="ana").metadata == {"tags": ["old"], "room": "hall"}
        assert memory.update("k", user="ana", text="an oven").metadata == {"tags": ["old"], "room": "hall"}


def test_tool_calls_and_captions_are_kept_as_structure_and_their_words_are_found():
    call = {"id": "c1", "function": {"name": "book_ferry", "arguments": '{"harbour": "Horta"}'}}
    image = {"type": "image", "caption": "a green lighthouse", "url": "data:xyz"}
    with opened() as memory:
        [one] = memory.remember({"role": "assistant", "content": None, "tool_calls": [call]}, **OWNER)
        [two] = memory.remember({"role": "user", "content": [image, {"type": "text", "text": "nice"}]}, **OWNER)
        assert memory.get(one.id, user="ana").parts == ({"type": "tool_call", **call},)
        assert memory.search("lighthouse", user="ana")[0].unit.id == two.id  # the turn beside it may follow
        assert "Horta" in memory.get(one.id, user="ana").text
        assert "xyz" not in memory.get(two.id, user="ana").text


def test_who_wrote_what_is_taken_from_the_message_role():
    roles = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "tool": "tool"}
    roles |= {"function": "tool", "system": "system", "developer": "system", "document": "document"}
    with opened() as memory:
        memory.remember([{"role": role, "content": f"from {role}"} for role in roles], **OWNER)
        found = {unit.text: unit.author for unit in memory.list(limit=None, **OWNER)}
        assert found == {f"from {role}": author for role, author in roles.items()}


def test_a_unit_round_trips_through_json():
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    unit = make_unit(text="a kiln", session="s1", metadata={"n": [1]}, links=("a",), event_time=moment)
    assert type(unit).from_json(unit.to_json()) == unit
