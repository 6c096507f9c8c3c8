"""Contexts through `Memory`: budgets, counters, messages, the tail, access counts, and the same bytes everywhere."""

import dataclasses
import os
import subprocess
import sys
from datetime import timedelta

import pytest

from builders import NOW, WORDS_ONLY, column, later, make_view, opened
from holdfast import Memory, Settings, sample
from holdfast.errors import BudgetError, InputError, SettingsError
from holdfast.settings import AssemblySettings
from holdfast.store.contract import Access
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.quotes import recent_heading

RULES = "# Deploying\n\n- never on a Friday\n- ask Tomas first\n\nYou must keep answers short.\n\nThe boat is blue.\n"
FOUND_ALONE = {"assembly.fill": 0.0}  # a small memory would come along whole
TALK = [
    {"role": "user", "content": "where is the boat?"},
    {"role": "assistant", "content": "in the harbour"},
    {"role": "user", "content": "and the kiln?"},
    {"role": "assistant", "content": "in the shed"},
    {"role": "user", "content": "thanks"},
    {"role": "assistant", "content": "you are welcome"},
]


@pytest.fixture
def memory():
    with opened(embedder=HashEmbedder(64)) as opened_memory:
        yield opened_memory


@pytest.fixture
def talk(memory):
    memory.ingest(RULES, name="AGENTS.md", user="ana", core=True)
    memory.remember(TALK, user="ana", session="s1")
    memory.remember("the old boat leaked", user="ana", id="old", at=later(days=-9))
    return memory


def ids(context, name):
    return [item.id for item in context.section(name).items]


def texts(context, name):
    return [item.text for item in context.section(name).items]


# ------------------------------------------------------------------------------------------------- budgets


@pytest.mark.parametrize("call", [{"budget": 0}, {"budget": -7}, {"window": 0}, {"window": -4000}, {"window": 3}])
def test_a_budget_without_room_is_refused(talk, call):
    with pytest.raises(BudgetError, match="at least 1"):
        talk.assemble("boat", user="ana", **call)


@pytest.mark.parametrize(
    "call", [{"budget": 1.5}, {"budget": "100"}, {"budget": True}, {"budget": float("nan")}, {"window": 8e3}]
)
def test_a_budget_that_is_no_whole_number_is_refused(talk, call):
    with pytest.raises(InputError, match="whole number"):
        talk.assemble("boat", user="ana", **call)


@pytest.mark.parametrize("budget", [0, -1])
def test_why_refuses_a_budget_without_room(talk, budget):
    with pytest.raises(BudgetError):
        talk.why("boat", "old", user="ana", budget=budget)


def test_less_than_the_hard_rules_is_an_error_that_says_how_much_and_which(talk):
    whole = talk.assemble("boat", user="ana")
    needed = whole.section("hard").tokens
    with pytest.raises(BudgetError, match=rf"need {needed} tokens.*AGENTS\.md#"):
        talk.assemble("boat", user="ana", budget=needed - 1)
    bare = talk.assemble("boat", user="ana", budget=needed)
    assert bare.text == whole.section("hard").text


def test_less_than_the_last_turns_degrades_and_says_so(talk):
    hard = talk.assemble("boat", user="ana").section("hard")
    budget = hard.tokens + 30
    context = talk.assemble("boat", user="ana", session="s1", budget=budget)
    assert context.degraded
    assert context.text.startswith(hard.text)
    assert context.tokens <= budget
    last = talk.list(user="ana", session="s1", order="oldest")[-4:]
    kept = ids(context, "tail")
    assert kept == [unit.id for unit in last][4 - len(kept) :]
    assert len(kept) < 4
    assert all(unit.id in context.degraded for unit in last if unit.id not in kept)
    assert ids(context, "soft") == ids(context, "projection") == []
    with pytest.raises(BudgetError, match="strict"):
        talk.assemble("boat", user="ana", session="s1", budget=budget, strict=True)


def test_hard_rules_above_their_share_warn_or_degrade(talk):
    hard = talk.assemble("boat", user="ana").section("hard").tokens
    budget = hard * 3  # a share of .3 is less than a third
    context = talk.assemble("boat", user="ana", budget=budget)
    assert "hard_share" in context.warnings[0]
    assert not context.degraded
    with opened(Settings.reference(), embedder=HashEmbedder(64)) as memory:
        memory.ingest(RULES, name="AGENTS.md", user="ana", core=True)
        hard = memory.assemble("boat", user="ana").section("hard").tokens
        context = memory.assemble("boat", user="ana", budget=hard * 3)
        assert "hard_share" in context.degraded
        assert context.text == context.section("hard").text


@pytest.mark.parametrize(
    "shares", [(0.5, 0.3, 0.3), (1.0, 0.1, 0.0), (1.1, 0.0, 0.0), (0.3, -0.1, 0.2), (float("nan"), 0.1, 0.1)]
)
def test_shares_above_one_are_refused(shares):
    with pytest.raises(SettingsError):
        AssemblySettings(hard_share=shares[0], soft_share=shares[1], tail_share=shares[2])


def test_a_window_becomes_a_quarter_under_the_ceiling(talk):
    assert talk.assemble("boat", user="ana", window=4_000).budget == 1_000
    assert talk.assemble("boat", user="ana", window=1_000_000).budget == 32_000
    assert talk.assemble("boat", user="ana").budget == 8_000
    assert talk.assemble("boat", user="ana", budget=10**12, window=4_000).budget == 10**12


@pytest.mark.parametrize("flag", ["strict", "track_access"])
def test_a_flag_is_true_or_false(talk, flag):
    with pytest.raises(InputError, match=flag):
        talk.assemble("boat", user="ana", **{flag: "yes"})


def test_an_empty_memory_gives_an_empty_context(memory):
    context = memory.assemble("boat", user="ana", session="s1")
    assert (context.text, context.tokens, context.items) == ("", 0, ())


# ------------------------------------------------------------------------------------------------ counters


def failing(text):
    raise RuntimeError("no tokenizer")


@pytest.mark.parametrize(
    "counter", [failing, lambda _: None, lambda _: -1, lambda _: 1.0, lambda _: True, lambda _: "3", 7, lambda: 1]
)
def test_a_counter_that_fails_or_talks_nonsense_is_an_error(talk, counter):
    with pytest.raises(InputError, match="token counter"):
        talk.assemble("boat", user="ana", counter=counter)


def test_a_counter_given_at_open_counts_for_rules_contexts_and_why():
    with Memory.open(":memory:", settings=words_only(), now=lambda: NOW, counter=len) as memory:
        memory.ingest("- be kind\n", name="A.md", user="ana", core=True)
        context = memory.assemble("boat", user="ana")
        assert context.tokens == len(context.text)
        with pytest.raises(BudgetError):
            memory.ingest(f"- {'word ' * 500}\n", name="B.md", user="ana", core=True)


def test_a_bad_counter_given_at_open_is_an_error_as_soon_as_there_are_rules():
    with Memory.open(":memory:", settings=words_only(), now=lambda: NOW, counter=failing) as memory:
        with pytest.raises(InputError, match="no tokenizer"):
            memory.ingest("- be kind\n", name="A.md", user="ana", core=True)
        assert memory.list(user="ana") == []


def words_only():
    return Settings.load({"embedding.embedder": WORDS_ONLY.embedder}, environ={})


def test_a_counter_that_prices_an_empty_text_can_break_any_budget(memory):
    with pytest.raises(BudgetError, match="even an empty text"):
        memory.assemble("boat", user="ana", budget=6, counter=lambda _: 7)


# ------------------------------------------------------------------------------------------------ messages


@pytest.mark.parametrize(
    "query",
    [
        [],
        [{"role": "assistant", "content": "boat"}],
        [{"content": "boat"}],
        [{"role": "user"}],
        [{"role": "user", "content": None}],
        [{"role": 5, "content": "boat"}],
        [{"role": "user", "content": "  "}],
        "",
        " \n",
    ],
)
def test_messages_without_a_question_are_refused(talk, query):
    with pytest.raises(InputError):
        talk.assemble(query, user="ana", session="s1")


def test_what_the_host_shows_is_neither_tail_nor_recalled(talk):
    shown = [*TALK[2:], {"role": "user", "content": "where is the boat?"}]
    context = talk.assemble(shown, user="ana", session="s1")
    assert texts(context, "tail") == ["in the harbour"]
    assert not {message["content"] for message in shown} & {item.text for item in context.items}
    assert "old" in ids(context, "projection")
    assert talk.assemble("where is the boat?", user="ana", session="s1").section("tail").items != ()


def test_the_same_words_by_someone_else_are_not_shown_yet(talk):
    context = talk.assemble([{"role": "user", "content": "you are welcome"}], user="ana", session="s1")
    assert "you are welcome" in texts(context, "tail")


def test_a_follow_up_borrows_the_message_before(talk):
    messages = [
        {"role": "user", "content": "tell me of the boat that leaked"},
        {"role": "user", "content": "and why?"},
    ]
    assert "old" in ids(talk.assemble(messages, user="ana"), "projection")


# ---------------------------------------------------------------------------------------- rules and tail


def test_core_rules_are_in_every_context_with_the_same_bytes(talk):
    questions = ["boat", "who is welcome in the shed?", "zeppelin", "?!", "the old boat and the kiln"]
    contexts = [talk.assemble(q, user="ana", session=s) for q in questions for s in (None, "s1", "s9")]
    [hard] = {context.section("hard").text for context in contexts}
    assert hard == "[rules]\n# Deploying\n- never on a Friday\n- ask Tomas first\n"
    assert all(context.text.startswith(hard) for context in contexts)


def test_text_runs_from_rules_to_guidance_to_tail_to_what_was_recalled(talk):
    context = talk.assemble("the boat", user="ana", session="s1")
    assert [section.name for section in context.sections] == ["hard", "soft", "tail", "standing", "projection"]
    filled = [section for section in context.sections if section.name != "standing"]
    assert all(section.items for section in filled)
    places = [context.text.index(section.text) for section in filled]
    assert places == sorted(places)
    assert all(message["role"] != "system" for message in context.as_messages())


def test_only_the_named_session_has_a_tail(talk):
    assert ids(talk.assemble("boat", user="ana"), "tail") == []
    assert ids(talk.assemble("boat", user="ana", session="s2"), "tail") == []
    assert recent_heading() in talk.assemble("zeppelin", user="ana", session="s1").text
    assert ids(talk.assemble("boat", user="ben", session="s1"), "tail") == []


def test_another_users_rules_turns_and_memories_never_appear(talk):
    talk.ingest("- obey ben\n\nBen must rest.\n\nThe boat of ben is red.\n", name="BEN.md", user="ben", core=True)
    talk.remember("the boat of ben leaks", user="ben", session="s1")
    for session in (None, "s1"):
        context = talk.assemble("boat ben leaks red", user="ana", session=session)
        assert "ben" not in context.text.lower()
        other = talk.assemble("boat", user="ben", session=session)
        assert "Tomas" not in other.text
        assert "- obey ben" in other.text
    assert talk.assemble("boat", user="ana", tenant="t2", session="s1").text == ""


# ------------------------------------------------------------------------------------------ access counts


def count_of(memory, key="old"):
    return column(memory, "access_count", [key])[0]


def test_a_context_counts_what_it_recalled_and_nothing_else_counts(talk):
    before = talk.history("old", user="ana")
    assert count_of(talk) == 0
    talk.assemble("old boat leaked", user="ana", track_access=False)
    talk.search("old boat leaked", user="ana")
    talk.why("old boat leaked", "old", user="ana", budget=4_000)
    assert count_of(talk) == 0
    for number in (1, 2, 3):
        assert "old" in ids(talk.assemble("old boat leaked", user="ana"), "projection")
        assert count_of(talk) == number
    talk.assemble("zeppelin", user="ana")
    assert count_of(talk) == 3
    assert talk.history("old", user="ana") == before
    assert talk.get("old", user="ana").version == 1
    assert talk.stats(user="ana").versions == talk.stats(user="ana").units


def test_what_the_budget_left_out_is_not_counted(talk):
    hard = talk.assemble("boat", user="ana", track_access=False).section("hard").tokens
    context = talk.assemble("old boat leaked", user="ana", budget=hard + 1)
    assert ids(context, "projection") == []
    assert count_of(talk) == 0


def test_frozen_counts_freeze_the_context(talk):
    first = talk.assemble("boat", user="ana", track_access=False)
    for _ in range(5):
        assert talk.assemble("boat", user="ana", track_access=False) == first


def test_counts_raise_what_was_recalled_before():
    settings = Settings.load({"projection.floor": 0.0, "projection.share_frequency": 1.0}, environ={})
    with opened(settings, embedder=HashEmbedder(64)) as memory:
        for key in ("a", "b", "c"):
            memory.remember(f"the boat leaks, says {key}", user="ana", id=key)
        assert ids(memory.assemble("boat leaks", user="ana", track_access=False), "projection") == ["a", "b", "c"]
        memory.store.apply([Access(make_view(), ("c",))])
        # The first hit stays first: what was injected before does not count in a search.
        assert ids(memory.assemble("boat leaks", user="ana", track_access=False), "projection") == ["a", "c", "b"]


@pytest.mark.parametrize("budget", [80, 100, 150, 250, 1000])
def test_the_first_hit_is_in_the_context_whenever_it_fits(memory, budget):
    best = "We are rebooked on flight ZV 722 in November, which leaves at nine. " + "The old one is gone. " * 4
    memory.remember(best, user="ana", id="best", at=later(days=-3))
    for number in range(12):
        memory.remember(f"November {number} was rainy", user="ana", at=later(days=-9, minutes=number))
    question = "Which flight are we rebooked on in November?"
    assert memory.search(question, user="ana")[0].unit.id == "best"
    context = memory.assemble(question, user="ana", budget=budget)
    assert ids(context, "projection")[0] == "best"
    assert context.section("projection").items[0].kind == "whole"


def test_a_first_hit_that_a_deeper_look_would_cut_is_there_too():
    narrow = {"projection.first": 1, "projection.second": 1, "projection.growth": 0, "temporal.picks": 1}
    settings = Settings.load({**narrow, "score.beta": 0.9, "refusal.enabled": False, **FOUND_ALONE}, environ={})
    with opened(settings, embedder=HashEmbedder(64)) as memory:
        memory.remember("the boat leaks and leaks", user="ana", id="nearest", at=later(days=-900))
        memory.remember("a boat came by", user="ana", id="latest", at=NOW)
        assert memory.search("the boat leaks", user="ana")[0].unit.id == "latest"
        context = memory.assemble("the boat leaks", user="ana", track_access=False)
        assert ids(context, "projection") == ["latest", "nearest"]
        assert [one.via for one in context.trace.projection.items] == ["first hit", "pass 2"]
        off = dataclasses.replace(settings, assembly=dataclasses.replace(settings.assembly, first_hit=False))
    with opened(off, embedder=HashEmbedder(64)) as memory:
        memory.remember("the boat leaks and leaks", user="ana", id="nearest", at=later(days=-900))
        memory.remember("a boat came by", user="ana", id="latest", at=NOW)
        assert ids(memory.assemble("the boat leaks", user="ana"), "projection") == ["nearest"]


def test_another_users_reading_of_a_global_unit_does_not_change_my_context(memory):
    for number in range(3):
        memory.remember(f"the boat leaks, part {number}", user="ana", id=f"g{number}", scope="global")
    before = memory.assemble("boat", user="ana", track_access=False)
    for _ in range(3):
        memory.assemble("boat part 2", user="ben")
    after = memory.assemble("boat", user="ana", track_access=False)
    assert {"same": before.text == after.text, "ids": ids(before, "projection")} == {
        "same": True,
        "ids": ids(after, "projection"),
    }


# -------------------------------------------------------------------------------------------- why, and how short


def counted_by_characters():
    # In the order of the ranking: here no item waits because it is long.
    settings = words_only()
    settings = dataclasses.replace(settings, assembly=dataclasses.replace(settings.assembly, item_tokens=0))
    return Memory.open(":memory:", settings=settings, now=lambda: NOW, counter=len)


@pytest.mark.parametrize("length", [1, 2, 10, 77, 300])
@pytest.mark.parametrize("room", [0, 1, 20])
def test_with_exactly_as_many_tokens_more_it_is_in(length, room):
    with counted_by_characters() as memory:
        memory.remember("boat boat", user="ana", id="first", at=NOW)
        memory.remember("boat " + "x" * length, user="ana", id="second", at=later(days=-3))
        enough = memory.assemble("boat", user="ana")
        assert ids(enough, "projection") == ["first", "second"]
        budget = enough.tokens - min(room + 1, enough.section("projection").items[1].tokens)
        why = memory.why("boat", "second", user="ana", budget=budget)
        assert not why.returned
        assert why.tokens_short == enough.tokens - budget
        assert f"{why.tokens_short} short" in why.verdict
        for more, there in ((why.tokens_short - 1, False), (why.tokens_short, True)):
            assert memory.why("boat", "second", user="ana", budget=budget + more).returned == there
            context = memory.assemble("boat", user="ana", budget=budget + more)
            assert ("second" in ids(context, "projection")) == there


@pytest.mark.parametrize("packing", ["skip", "prefix"])
def test_an_oversized_item_is_skipped_or_ends_the_list(packing):
    settings = Settings.load({"embedding.embedder": "none", "assembly.packing": packing}, environ={})
    with Memory.open(":memory:", settings=settings, now=lambda: NOW, counter=len) as memory:
        memory.remember("boat boat", user="ana", id="a", at=NOW)
        memory.remember("boat boat " + "long " * 40, user="ana", id="b", at=later(days=-1))
        memory.remember("boat or not, kiln hedge violin", user="ana", id="c", at=later(days=-2))
        every = memory.assemble("boat", user="ana")
        order = ids(every, "projection")
        assert set(order) == {"a", "b", "c"}
        assert order[0] == "a"
        big = every.tokens - 100
        context = memory.assemble("boat", user="ana", budget=big)
        assert ids(context, "projection") == (
            [one for one in order if one != "b"] if packing == "skip" else order[: order.index("b")]
        )
        why = memory.why("boat", "b", user="ana", budget=big)
        assert why.tokens_short > 0
        assert "b" in ids(memory.assemble("boat", user="ana", budget=big + why.tokens_short), "projection")


def test_why_names_the_section_the_host_and_the_step(talk):
    last = talk.list(user="ana", session="s1")[0].id
    assert "in its tail" in talk.why("boat", last, user="ana", session="s1", budget=4_000).verdict
    assert "in its projection" in talk.why("boat leaked", "old", user="ana", session="s1", budget=4_000).verdict
    shown = [{"role": "assistant", "content": "you are welcome"}, {"role": "user", "content": "boat"}]
    assert "host shows" in talk.why(shown, last, user="ana", session="s1", budget=4_000).verdict
    talk.remember("violin strings", user="ana", id="far")
    why = talk.why("boat leaked", "far", user="ana", budget=4_000)
    assert (why.returned, why.verdict) == (True, "in the context, in its projection, as all of the memory fits")
    why = talk.why("boat leaked", "far", user="ana", budget=200)
    assert (why.returned, why.tokens_short) == (False, None)


def test_why_not_a_unit_that_is_superseded(talk):
    talk.remember("the new boat floats", user="ana", supersedes="old")
    why = talk.why("boat leaked", "old", user="ana", budget=4_000)
    assert not why.returned
    assert "not searched" in why.verdict


# ---------------------------------------------------------------------------------------- links and times


def test_linked_units_come_along_and_rings_of_links_end():
    with opened(Settings.load(FOUND_ALONE, environ={}), embedder=HashEmbedder(64)) as memory:
        check_links(memory)


def check_links(memory):
    memory.remember("the boat leaks badly at the stern", user="ana", id="a", links=["b"])
    memory.remember("quite something else", user="ana", id="b", links=["a", "c"])
    memory.remember("farther away still", user="ana", id="c", links=["b"])
    memory.remember("of another user", user="ben", id="d")
    memory.update("a", user="ana", links=["b", "d", "a", "nowhere"])
    context = memory.assemble("boat leaks badly at the stern", user="ana")
    assert ids(context, "projection") == ["a", "b"]
    [hop] = context.trace.projection.hops
    assert hop.via == "hop from a"


def test_a_link_into_the_tail_shows_nothing_twice(memory):
    memory.remember([{"role": "user", "content": "quite something else"}], user="ana", session="s1")
    [turn] = memory.list(user="ana", session="s1")
    memory.remember("the boat leaks badly", user="ana", id="a", links=[turn.id])
    context = memory.assemble("boat leaks badly", user="ana", session="s1")
    assert ids(context, "tail") == [turn.id]
    assert ids(context, "projection") == ["a"]


def test_the_clock_alone_makes_the_difference():
    moment = [NOW]
    with opened(embedder=HashEmbedder(64), now=lambda: moment[0]) as memory:
        memory.remember("the boat leaks", user="ana", id="a", ttl=60)
        first = memory.assemble("boat", user="ana", track_access=False)
        moment[0] = NOW + timedelta(seconds=61)
        assert ids(memory.assemble("boat", user="ana", track_access=False), "projection") == []
        moment[0] = NOW
        assert memory.assemble("boat", user="ana", track_access=False) == first


# ------------------------------------------------------------------------- the same bytes everywhere (law 11)

PROGRAM = """
import hashlib, sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from holdfast import Memory, Settings, sample
path, threads = sys.argv[1], int(sys.argv[2])
given = {"embedding.embedder": "potion", "embedding.threads": threads}
settings = Settings.load(given, environ={}).without_timeouts()
now = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
with Memory.open(path, settings=settings, now=lambda: now) as memory:
    session = next(iter(sample.sessions()))[0]
    def one(asked):
        budget, question = asked
        context = memory.assemble(
            question["question"], user=sample.USER, session=session, budget=budget, track_access=False
        )
        scores = [(item.id, item.score.hex() if item.score is not None else "") for item in context.items]
        return context.text, scores, context.left_out, context.explain()
    asked = [(budget, question) for budget in (300, 2000) for question in sample.questions()]
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(one, asked))
print(len(found), hashlib.sha256(repr(found).encode()).hexdigest())
"""
# Far above what it takes; it only ends a deadlock.
PATIENCE = 1200


def in_another_process(path, threads):
    keep = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(threads)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=keep,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_processes_and_threads_give_the_same_bytes(tmp_path):
    path = tmp_path / "sample.db"
    settings = Settings.load({"embedding.embedder": "potion"}, environ={})
    with Memory.open(path, settings=settings, now=lambda: NOW) as memory:
        memory.ingest(RULES, name="AGENTS.md", user=sample.USER, core=True)
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
    first, again, two = (in_another_process(path, threads) for threads in (1, 1, 2))
    assert int(first.split()[0]) == 2 * len(sample.questions())
    assert first == again == two
