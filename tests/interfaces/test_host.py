"""What a host gets around its turns: its own messages whatever happens, each turn kept once, and its memory."""

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import client, served

from builders import opened
from holdfast import BudgetError, EmbedderError, InputError
from holdfast.errors import NotFoundError
from holdfast.server import host
from holdfast.server.access import Tokens
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import VERBS
from holdfast.wire import encode

BOAT = "My boat is called Petrel."
ASKED = "What is the name of my boat?"


def said(*texts, role="user"):
    return [{"role": role, "content": text} for text in texts]


def exchange(number, size=40):
    return [
        {"role": "user", "content": f"question {number} " + "about ropes " * size},
        {"role": "assistant", "content": f"answer {number} " + "on knots " * size},
    ]


def call_of(name, call_id="c1"):
    function = {"name": name, "arguments": json.dumps({"query": "boat"})}
    return {"id": call_id, "type": "function", "function": function}


@pytest.fixture
def memory():
    with opened(embedder=HashEmbedder()) as memory:
        yield memory


@pytest.fixture
def boat(memory):
    host.commit(memory, [*said(BOAT), *said("Noted.", role="assistant")], key="t1", session="a")
    return memory


def turns(memory, session=None):
    units = memory.list(user=memory.settings.store.user, session=session, order="oldest", limit=None)
    return [(unit.author, unit.text) for unit in units]


# -------------------------------------------------------------------------------------------------- declare

RULES = "# Tone\n\n- Always say moin.\n\nThe office is in Kiel.\n"


def shown(memory, agent=None):
    return host.assemble(memory, said("Where is the office?"), agent=agent).addition


def test_rules_of_a_workspace_hold_until_their_text_is_empty(memory):
    assert host.declare(memory, name="SOUL.md", text="").status == "absent"
    assert host.declare(memory, name="SOUL.md", text=RULES).status == "declared"
    assert {"- Always say moin.", "document: The office is in Kiel."} <= set(shown(memory).splitlines())
    assert host.declare(memory, name="SOUL.md", text=RULES.replace("moin", "ahoy")).status == "declared"
    assert "moin" not in shown(memory)
    assert host.declare(memory, name="SOUL.md", text=" \n").status == "ended"
    assert (shown(memory), turns(memory)) == ("", [])


def test_rules_of_an_agent_are_its_own(memory):
    host.declare(memory, name="SOUL.md", text=RULES, agent="main")
    host.declare(memory, name="SOUL.md", text="- Never say moin.", agent="other")
    host.declare(memory, name="AGENTS.md", text="- Be brief.")
    assert "Never" not in shown(memory, "main")
    assert {"- Always say moin.", "- Be brief."} <= set(shown(memory, "main").splitlines())
    assert "Kiel" in shown(memory, "main")
    assert shown(memory, "other").splitlines()[-2:] == ["- Never say moin.", "- Be brief."]
    assert shown(memory, "third").splitlines()[-1:] == ["- Be brief."]
    with pytest.raises(InputError, match="slash"):
        host.declare(memory, name="SOUL.md", text=RULES, agent="main/other")


def test_rules_that_only_name_a_file_are_that_text_and_no_path(memory, tmp_path):
    (tmp_path / "SOUL.md").write_text("- A secret.")
    host.declare(memory, name="SOUL.md", text=f"- {tmp_path / 'SOUL.md'}")
    host.declare(memory, name=str(tmp_path / "SOUL.md"), text="- Be brief.")
    assert "secret" not in shown(memory)


def test_each_agents_rules_have_the_whole_share(memory):
    settings = memory.settings.assembly
    large = "- " + "never mind the weather " * int(settings.budget * settings.hard_share * 0.15)
    for agent in ("main", "other"):
        assert host.declare(memory, name="AGENTS.md", text=large, agent=agent).status == "declared"
    host.declare(memory, name="AGENTS.md", text="- Be brief.")
    for agent in ("main", None):
        with pytest.raises(BudgetError, match="the hard rules need"):
            host.declare(memory, name="SOUL.md", text=large, agent=agent)


# ------------------------------------------------------------------------------------------------- assemble


def test_what_one_session_was_told_reaches_the_next(boat):
    shown = host.assemble(boat, [], prompt=ASKED, budget=40_000, session="b")
    assert "Petrel" in shown.addition
    assert shown.addition_tokens > 0
    assert (shown.messages, shown.start, shown.tokens, shown.reason) == ((), 0, 0, "")


def test_given_messages_are_never_changed(boat):
    given = [*said("Hello."), {"role": "assistant", "content": [{"type": "text", "text": "Hi."}], "usage": {"n": 1}}]
    before = copy.deepcopy(given)
    shown = host.assemble(boat, given, prompt=ASKED, session="b")
    assert given == before
    assert [*shown.messages] == before


def test_what_the_host_shows_is_not_added_again(boat):
    shown = host.assemble(boat, said(BOAT), prompt=ASKED, session="a")
    assert "Petrel" not in shown.addition


def test_without_a_prompt_the_last_message_of_the_user_is_the_question(boat):
    shown = host.assemble(boat, said("Hello.", ASKED), session="b")
    assert "Petrel" in shown.addition
    assert len(shown.messages) == 2


@pytest.mark.parametrize(
    ("messages", "prompt", "reason"),
    [
        ([], "", "no user message"),
        (said("…", role="assistant"), None, "no user message"),
        ([{"role": "wizard", "content": "?"}], "hello", "not a message role"),
        ([{"content": "nobody says it"}], "hello", "no role"),
        (said("x" * 4_000), ASKED * 40, "leave"),
    ],
)
def test_a_turn_goes_on_without_memory(boat, messages, prompt, reason):
    shown = host.assemble(boat, messages, prompt=prompt, budget=1_000, tokens=777, session="b")
    assert [*shown.messages] == messages
    assert shown.tokens == 777
    assert (shown.start, shown.addition, shown.addition_tokens) == (0, "", 0)
    assert reason in shown.reason


def test_an_embedder_that_is_away_costs_no_turn():
    class Broken(HashEmbedder):
        def embed_query(self, text):
            raise EmbedderError("the embedder is away")

    given = said("Hello.")
    with opened(embedder=Broken()) as memory:
        host.commit(memory, said(BOAT), key="t1", session="a")
        shown = host.assemble(memory, given, prompt=ASKED, budget=8_000, tokens=12, session="b")
    assert ([*shown.messages], shown.tokens) == (given, 12)
    assert "the embedder is away" in shown.reason


def test_rules_that_pass_the_budget_cost_the_memory_and_not_the_turn(boat):
    boat.ingest("- " + "rule " * 400, user=boat.settings.store.user, name="rules.md", core=True)
    given = said("Hello.")
    shown = host.assemble(boat, given, prompt=ASKED, budget=800, session="b")
    assert (shown.addition, [*shown.messages]) == ("", given)
    assert "budget" in shown.reason


def test_a_store_that_is_gone_costs_the_memory_and_not_the_turn(boat):
    boat.close()
    given = said("Hello.")
    shown = host.assemble(boat, given, prompt=ASKED, budget=8_000, tokens=12, session="b")
    assert ([*shown.messages], shown.tokens, shown.addition) == (given, 12, "")
    assert "closed" in shown.reason


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"tokens": -1}, {"budget": 2**70}])
def test_numbers_that_are_none_are_refused(boat, wrong):
    with pytest.raises(InputError, match="is not from"):
        host.assemble(boat, [], prompt=ASKED, **wrong)


def test_what_is_no_message_is_refused(boat):
    with pytest.raises(InputError, match="message 1: 'hello' is not a message"):
        host.assemble(boat, [*said("hi"), "hello"])


# ------------------------------------------------------------------------------------------ a history that is cut


def test_a_history_that_fits_is_not_cut(memory):
    history = [one for number in range(5) for one in exchange(number)]
    assert host.assemble(memory, history, prompt=ASKED, budget=60_000, trim=True).start == 0


sizes = st.lists(st.integers(1, 120), min_size=1, max_size=30)


@given(sizes, st.integers(200, 6_000), st.booleans())
def test_a_cut_history_begins_with_a_turn_and_fits_its_budget(sizes, budget, separate):
    history = [one for number, size in enumerate(sizes) for one in exchange(number, size)]
    with opened() as memory:
        shown = host.assemble(memory, history, prompt=ASKED if separate else None, budget=budget, trim=True)
    assert [*shown.messages] == history[shown.start :]
    if shown.start == len(history):
        assert separate
    else:
        assert history[shown.start]["role"] == "user"
    alone = shown.start >= len(history) - 2  # the last turn is never cut
    assert alone or shown.tokens + shown.addition_tokens <= budget


def test_the_start_of_a_growing_history_moves_seldom(memory):
    history, starts = [], []
    for number in range(80):
        starts.append(host.assemble(memory, history, prompt=f"question {number}", budget=8_000, trim=True).start)
        history += exchange(number)
    assert starts == sorted(starts)
    assert starts[-1] > 0
    assert len(set(starts)) < len(starts) / 4


def test_cutting_what_was_cut_changes_nothing(memory):
    history = [one for number in range(60) for one in exchange(number)]
    once = host.assemble(memory, history, prompt=ASKED, budget=8_000, trim=True)
    again = host.assemble(memory, once.messages, prompt=ASKED, budget=8_000, trim=True)
    assert (once.start > 0, again.start, again.messages) == (True, 0, once.messages)


@pytest.mark.parametrize("size", [40, 200])
def test_what_is_cut_is_recalled(memory, size):
    # However long the turns right before those that are shown: they are no last turns, which would come first.
    history = [*said(BOAT), *said("Noted.", role="assistant"), *(one for n in range(30) for one in exchange(n, size))]
    host.commit(memory, history, key="all", session="a")
    shown = host.assemble(memory, history, prompt=ASKED, budget=8_000, trim=True, session="a")
    assert shown.start > 0
    assert "Petrel" in shown.addition
    assert shown.reason == ""


def test_a_memory_that_fails_cuts_no_more_than_it_must(memory):
    history = [one for number in range(60) for one in exchange(number)]
    shown = host.assemble(memory, history, prompt=ASKED, budget=8_000, trim=True)
    memory.close()
    failed = host.assemble(memory, history, prompt=ASKED, budget=8_000, trim=True)
    assert 0 < failed.start < shown.start
    assert failed.tokens <= 8_000
    assert failed.reason


def test_a_host_that_counts_more_gets_less(memory):
    history = [one for number in range(20) for one in exchange(number)]
    own = host.assemble(memory, history, prompt=ASKED, budget=16_000, trim=True)
    more = host.assemble(memory, history, prompt=ASKED, budget=16_000, trim=True, tokens=own.tokens * 3)
    assert (own.start, more.start > 0, more.tokens <= 16_000) == (0, True, True)


# --------------------------------------------------------------------------------------------------- commit


def test_a_turn_is_kept_once_by_its_key(memory):
    turn = [*said(BOAT), *said("Noted.", role="assistant")]
    first = host.commit(memory, turn, key="t1", session="a")
    assert (first.status, first.written) == ("committed", 2)
    again = host.commit(memory, turn, key="t1", session="a")
    assert (again.status, again.written) == ("duplicate", 0)
    # The same words in another turn were said again.
    assert host.commit(memory, turn, key="t2", session="a").written == 2
    assert len(turns(memory, "a")) == 4


def test_a_turn_that_grows_is_kept_once(memory):
    turn = [*said(BOAT), *said("One moment.", role="assistant"), *said("Noted.", role="assistant")]
    written = [host.commit(memory, turn[:size], key="t1", session="a").written for size in (1, 2, 3, 3)]
    assert written == [1, 1, 1, 0]
    assert [text for _, text in turns(memory, "a")] == [one["content"] for one in turn]


def test_without_a_key_messages_are_known_by_their_time(memory):
    turn = [{**one, "timestamp": f"2026-05-01T10:00:0{n}Z"} for n, one in enumerate(said(BOAT, "And it is blue."))]
    assert host.commit(memory, turn, session="a").written == 2
    assert host.commit(memory, turn[1:], session="a").status == "duplicate"


def test_a_turn_is_written_whole_or_not_at_all(memory):
    with pytest.raises(InputError, match="message 1"):
        host.commit(memory, [*said(BOAT), {"role": "user", "content": "a\0b"}], key="t1", session="a")
    assert turns(memory) == []


def test_long_keys_tell_turns_apart(memory):
    for key in ("k" * 254, "k" * 255, "k" * 256):
        assert host.commit(memory, said(BOAT), key=key, session="a").written == 1
        assert host.commit(memory, said(BOAT), key=key, session="a").written == 0
    with pytest.raises(InputError, match="key"):
        host.commit(memory, said(BOAT), key="k" * 257)


def test_heartbeats_empty_messages_and_own_answers_are_not_kept(memory):
    assert host.commit(memory, said("tick"), key="h", heartbeat=True).skipped == 1
    turn = [
        *said(BOAT),
        {"role": "assistant", "content": "", "tool_calls": [call_of(host.SEARCH_TOOL)]},
        {"role": "tool", "tool_call_id": "c1", "content": "[recalled] user: old words"},
        {"role": "tool", "name": host.READ_TOOL, "content": "user: old words"},
        {"role": "assistant", "content": "   "},
        {"role": "assistant", "content": "I look.", "tool_calls": [call_of(host.SEARCH_TOOL), call_of("ls", "c2")]},
        {"role": "tool", "tool_call_id": "c2", "name": "ls", "content": "petrel.txt"},
    ]
    before = copy.deepcopy(turn)
    done = host.commit(memory, turn, key="t1", session="a")
    assert turn == before
    assert (done.written, done.skipped) == (3, 4)
    kept = " ".join(text for _, text in turns(memory, "a"))
    assert "old words" not in kept
    assert host.SEARCH_TOOL not in kept
    assert "petrel.txt" in kept
    assert host.commit(memory, said("  "), key="t2").status == "committed"


def test_messages_of_odd_forms_are_refused_and_never_a_defect(memory):
    for odd in ({"role": "user", "content": 5}, {"role": "user", "content": "x", "tool_calls": 5},
                {"role": "tool", "tool_call_id": [1], "content": {"a": 1}},
                {"role": "user", "tool_calls": [{"id": [1], "function": {"name": [2]}}]}):  # fmt: skip
        try:
            host.commit(memory, [odd], key="t1")
        except InputError:
            continue


# --------------------------------------------------------------------------------------------- the other calls


def test_a_session_is_imported_once(memory):
    history = [*said(BOAT), *said("Noted.", role="assistant")]
    begun = host.bootstrap(memory, messages=history, session="a")
    assert (begun.header, begun.imported) == (host.HEADER, 2)
    assert host.bootstrap(memory, messages=history, session="a").imported == 0
    assert host.bootstrap(memory, session="new").imported == 0
    assert host.session_end(memory, session="a", messages=history, reason="reset").written == 0
    assert host.ingest(memory, said("It is blue."), session="a").written == 1


def test_a_model_finds_memories_and_reads_a_long_one(boat):
    found = host.recall(boat, query=ASKED, session="b")
    assert BOAT in found.text
    assert found.hits[0].unit.text == BOAT
    long = "the log of the voyage " * 800
    [written] = boat.remember(long, user=boat.settings.store.user)
    part = host.recall(boat, query="log of the voyage", max_tokens=400)
    assert f"{host.READ_TOOL} with this id and offset=" in part.text
    assert "of 17,600" in host.recall(boat, id=written.id, offset=17_000, max_tokens=400).text
    with pytest.raises(NotFoundError):
        host.recall(boat, id=written.id, user="somebody")


@pytest.mark.parametrize(
    "wrong", [{}, {"query": "a", "id": "b"}, {"query": "a", "limit": 0}, {"query": "a", "max_tokens": 9}]
)
def test_a_search_that_is_none_is_refused(memory, wrong):
    with pytest.raises(InputError):
        host.recall(memory, **wrong)


def test_nothing_found_is_said(memory):
    assert "no memories fit" in host.recall(memory, query=ASKED).text


def test_old_turns_are_summarised_and_stay(memory):
    pairs = [(f"The lamp {n} is green.", f"Lamp {n}.") for n in range(200)]
    told = [one for user, assistant in pairs for one in (*said(user), *said(assistant, role="assistant"))]
    host.commit(memory, told, key="t", session="a")
    done = host.compact(memory, session="a")
    assert done.compacted
    assert (len(done.summaries) > 0, done.turns > 100, done.tokens_saved > 0, done.reason) == (True, True, True, "")
    assert host.compact(memory, session="nobody").reason


# -------------------------------------------------------------------------------------------------- over HTTP


def test_every_route_answers_as_its_function_does(boat):
    with served(boat) as address, client(address) as http:
        for verb in host.HOST_VERBS:
            arguments = {
                "messages": said("Hello."), "key": "t9", "session": "b", "query": ASKED, "prompt": ASKED,
                "budget": 9_000, "name": "AGENTS.md", "text": RULES,
            }  # fmt: skip
            arguments = {name: value for name, value in arguments.items() if name in verb.arguments}
            answer = http.post(verb.path, json=arguments)
            assert answer.status_code == 200, answer.text
            if not verb.writes:
                assert answer.json() == encode(verb.result, verb.called(boat, **arguments))
        again = http.post("/v1/host/commit", json={"messages": said("Hello."), "key": "t9", "session": "b"})
        assert again.json() == {"status": "duplicate", "written": 0, "skipped": 0}
        paths = http.get("/openapi.json").json()["paths"]
        assert {verb.path for verb in host.HOST_VERBS} <= paths.keys()
        assert http.post("/v1/host/assemble", json={"messages": [], "colour": 1}).status_code == 422
        assert http.post("/v1/host/assemble", json={"messages": "all"}).status_code == 422
        assert http.post("/v1/host/compact", json={}).status_code == 422


def test_a_token_opens_its_own_users_sessions_alone(boat, tmp_path):
    tokens = Tokens(tmp_path / "tokens")
    token = tokens.add("bruno", tenant=boat.settings.store.tenant, user="bruno")
    with served(boat, tokens) as address, client(address, token) as http:
        asked = {"messages": [], "prompt": ASKED, "session": "a"}
        assert "Petrel" not in http.post("/v1/host/assemble", json=asked).json()["addition"]
        assert http.post("/v1/host/assemble", json={**asked, "user": "ana"}).status_code == 403
        http.post("/v1/host/commit", json={"messages": said("My boat is called Tern."), "key": "t1", "session": "a"})
        assert "Tern" in http.post("/v1/host/recall", json={"query": ASKED}).json()["text"]
    assert "Tern" not in host.recall(boat, query=ASKED).text


def test_the_header_of_the_openclaw_plugin_is_the_same():
    # It holds the words itself: the host builds its prompt without waiting for a server.
    code = (Path(__file__).parents[2] / "integrations" / "openclaw" / "index.js").read_text(encoding="utf-8")
    block = re.search(r"const HEADER = \[(.*?)\];", code, re.DOTALL)[1]
    lines = re.sub(r'"\s*\+ "', "", block)
    assert "\n".join(re.findall(r'"([^"]*)"', lines)) == host.HEADER


def test_names_of_routes_are_no_verbs_of_a_memory():
    assert not {verb.name for verb in host.HOST_VERBS} & VERBS.keys()
