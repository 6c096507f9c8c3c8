"""The command line, run as a user runs it: its output, its exit code."""

import contextlib
import json
import shutil
import sqlite3
from functools import partial

import pytest

from commands import BY_WORDS, command_line
from holdfast import Contribution, Memory, Settings
from holdfast.cli import doctor
from holdfast.models import embedder as shipped


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `holdfast` in an empty folder."""
    return command_line(tmp_path, monkeypatch)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a function that runs `holdfast` in an empty folder, by words alone."""
    return command_line(tmp_path, monkeypatch, **BY_WORDS)


def test_a_memory_through_its_whole_life(run):
    [written] = run("remember", "I moved to Lisbon in March", "--at", "2026-04-02T09:00:00Z", "--json")
    assert written["status"] == "added"
    assert (
        run("remember", "I moved to Lisbon in March", "--at", "2026-04-02T09:00:00Z", "--json")[0]["status"]
        == "duplicate"
    )
    [hit] = run("search", "moved to Lisbon", "--json")["hits"]
    assert hit["unit"]["id"] == written["id"]
    assert run("update", written["id"], "--text", "I moved to Porto in March", "--json")["version"] == 2
    assert [row["text"] for row in run("history", written["id"], "--json")] == [
        "I moved to Lisbon in March",
        "I moved to Porto in March",
    ]
    assert run("search", "Lisbon", "--profile", "fast", "--json")["hits"] == []
    assert run("show", written["id"], "--json")["text"] == "I moved to Porto in March"
    assert [row["id"] for row in run("list", "--json")] == [written["id"]]
    assert run("stats", "--json")["versions"] == 2
    assert "Porto" in run("show", written["id"])
    assert "Porto" in run("list")
    assert "Porto" in run("history", written["id"])
    assert "versions" in run("stats")


def test_stats_say_what_is_promoted_who_writes_summaries_and_which_embedder_is_set(here):
    here("remember", "the red boat leaks")
    found, drawn = here("stats", "--json"), here("stats")
    assert (found["gate_threshold"], found["abstractive_ready"], found["embedder"]) == (0.25, False, "none")
    rows = [" ".join(line.split()) for line in drawn.splitlines()]
    assert {"gate promotes from 0.25", "summaries extractive", "embedder none"} <= {*rows}
    off = here("stats", "--json", HOLDFAST_GATE__POLICY="off", HOLDFAST_EMBEDDING__EMBEDDER="all-minilm-l6-v2")
    assert (off["gate_threshold"], off["embedder"]) == (None, "minilm")


def test_stats_leave_out_what_there_is_not(here):
    here("remember", "the red boat leaks")
    lines = here("stats", HOLDFAST_GATE__POLICY="off").splitlines()
    assert not {"replica", "gate", "vectors"} & {line.split()[0] for line in lines}
    assert all(len(line.split()) > 1 for line in lines)


@pytest.mark.parametrize(
    ("called", "real"), [("kb-fast", "fast"), ("kb-balanced", "balanced"), ("kb-thinkingdb", "thinking")]
)
def test_a_profile_may_be_called_as_the_sources_systems_call_it(here, called, real):
    here("remember", "the red boat leaks")
    found = [here("search", "boat", "--profile", name, "--json") for name in (called, real)]
    assert found[0]["hits"] == found[1]["hits"] != []
    with Memory.open("holdfast.db", settings=Settings.load(environ=BY_WORDS)) as memory:
        assert memory.search("boat", user="me", profile=called).trace.profile == real
    assert "there is no profile 'kb-slow'" in here("search", "boat", "--profile", "kb-slow", code=2)


def test_json_contributions_compose_to_the_score(run):
    for text in ("the red boat leaks", "the red kite flies", "a boat in the harbour"):
        run("remember", text)
    found = run("search", "red boat", "--explain", "--json")
    assert found["hits"]
    for hit in found["hits"]:
        assert Contribution.from_json(hit["contributions"]).compose() == hit["score"]


def test_explain_draws_one_line_and_the_tree_on_request(run):
    [written] = run("remember", "the red boats are leaking", "--json")
    drawn = run("search", "leaking boats", "--explain")
    assert "words .35 (leaking, boats) · meaning .53" in drawn
    assert len(drawn.splitlines()) == 3
    tree = run("search", "leaking boats", "--tree")
    assert tree.startswith(drawn)
    assert "term boat" in tree
    assert "relevance" in tree
    assert "█" in tree
    verdict = run("why", "leaking boats", written["id"])
    assert "matched leaking, boats" in verdict
    assert "words .35" in verdict
    assert "term boat" not in verdict
    assert "term boat" in run("why", "leaking boats", written["id"], "--tree")


def test_why_says_what_is_missing(run):
    [written] = run("remember", "the oven is broken", "--json")
    run("remember", "the boat leaks")
    verdict = run("why", "boat", written["id"], "--profile", "fast", "--json")
    assert verdict["returned"] is False
    assert verdict["standings"][0]["missing"] == ["boat"]
    assert "missing boat" in run("why", "boat", written["id"], "--profile", "fast")


def test_messages_come_from_a_file_by_session(run, tmp_path):
    lines = [
        {"session": "s1", "role": "user", "content": "one", "id": "1"},
        {"session": "s1", "role": "assistant", "content": "two", "id": "2"},
        {"session": "s2", "role": "user", "content": "three", "id": "3"},
    ]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "talk.json").write_text(json.dumps(lines))
    assert [row["status"] for row in run("remember", "--messages", "talk.jsonl", "--json")] == ["added"] * 3
    assert [row["status"] for row in run("remember", "--messages", "talk.json", "--json")] == ["duplicate"] * 3
    assert [row["text"] for row in run("list", "-s", "s1", "--oldest", "--json")] == ["one", "two"]


def test_standard_input_is_read(run):
    run("remember", "-", given="words from a pipe")
    assert run("search", "pipe", "--json")["hits"][0]["unit"]["text"] == "words from a pipe"


def test_filters_and_metadata(run):
    run("remember", "lamp in the hall", "-m", '{"room": "hall"}')
    run("remember", "lamp in the attic", "-m", '{"room": "attic"}')
    [hit] = run("search", "lamp", "-f", '{"room": "attic"}', "--json")["hits"]
    assert hit["unit"]["metadata"] == {"room": "attic"}


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["remember", "  "], 2, "blank"),
        (["remember"], 2, "one of the two"),
        (["remember", "x", "--at", "noon"], 2, "'noon'"),
        (["remember", "x", "-m", "{oops"], 2, "not JSON"),
        (["remember", "--messages", "nowhere.json"], 2, "nowhere.json"),
        (["search", "x", "--profile", "psychic"], 2, "choose one of"),
        (["search", "x", "-f", '{"a": {"like": 1}}'], 2, "not an operator"),
        (["show", "nobody"], 3, "no unit 'nobody'"),
        (["history", "nobody"], 3, "no unit 'nobody'"),
        (["stats", "--db", "no/where.db"], 5, "does not exist"),
        (["search", "x", "--db", "mistyped.db"], 5, "mistyped.db does not exist"),
    ],
)
def test_errors_are_one_line_with_a_stable_exit_code(run, arguments, code, expected):
    run("remember", "something to look in")
    said = run(*arguments, code=code)
    assert said.startswith("error: ")
    assert expected in said
    assert run(*arguments, "--json", code=code)["error"]["exit_code"] == code


def test_settings_show_where_each_value_came_from(run, tmp_path):
    (tmp_path / "mine.toml").write_text("[lexical]\nb = 0.4\n[lexical.weights]\ntopic = 2.0\n")
    rows = {
        row["key"]: row for row in run("--settings", "mine.toml", "settings", "--json", HOLDFAST_LEXICAL__K1="1.5")
    }
    assert (rows["lexical.b"]["value"], rows["lexical.b"]["origin"]) == (0.4, "file mine.toml")
    assert (rows["lexical.k1"]["value"], rows["lexical.k1"]["origin"]) == (1.5, "environment HOLDFAST_LEXICAL__K1")
    assert rows["lexical.weights.topic"]["value"] == 2.0
    assert rows["lexical.weights.claim"]["origin"] == "default recipe"
    assert all(row["doc"] for row in rows.values())
    assert "lexical.b = 0.4  from file mine.toml" in run("settings", HOLDFAST_SETTINGS="mine.toml")


def test_a_settings_file_of_the_working_folder_is_passed_over_with_a_word(run, tmp_path):
    (tmp_path / "holdfast.toml").write_text('[embedding]\nembedder = "openai"\nurl = "http://127.0.0.1:9"\n')
    said = run("remember", "the boat leaks", HOLDFAST_EMBEDDING__API_KEY="sk-mine")
    assert said.count("note: holdfast.toml of this folder is not read") == 1
    assert "--settings holdfast.toml" in said
    assert run("search", "boat", "--json")["hits"]
    assert "note:" not in run("--settings", "holdfast.toml", "settings")


def test_a_wrong_setting_stops_every_command(run):
    assert "there is no setting 'lexical.k9'" in run("stats", code=4, HOLDFAST_LEXICAL__K9="1")
    assert "lexical.b = 7.0 is outside" in run("stats", code=4, HOLDFAST_LEXICAL__B="7")


def test_doctor_proves_a_live_write_and_a_crash_safe_reopen(run):
    run("remember", "something", "--db", "mine.db")
    checks = run("doctor", "--db", "mine.db", "--json")
    assert len(checks) == 7
    assert all(check["passed"] for check in checks)
    assert run("doctor").count("✓") == 6


def test_doctor_names_the_embedder_in_force_and_a_store_of_another(run):
    run("remember", "something", "--db", "mine.db")
    said = " ".join(run("doctor", "--db", "mine.db", HOLDFAST_EMBEDDING__EMBEDDER="potion").split())
    assert "the embedder potion: makes vectors of potion-base-8M/256/" in said
    assert "its vectors are of holdfast-minilm-memory/384/" in said
    assert "run `holdfast reembed`" in said
    assert "its vectors are of" not in run("doctor", "--db", "mine.db")  # and nothing has changed
    missing = run("doctor", code=1, HOLDFAST_EMBEDDING__EMBEDDER="nomic-768")
    assert "✗ the embedder nomic-768: the embedder nomic-768 needs embedding.folder" in missing


def test_doctor_names_a_model_of_which_one_byte_has_changed(tmp_path, monkeypatch):
    for name in (*shipped.SHIPPED, shipped.READER):
        shutil.copytree(shipped.shipped_folder(name), tmp_path / name)
    monkeypatch.setattr(doctor, "verify_shipped", partial(shipped.verify_shipped, tmp_path))
    assert doctor._check("the shipped models", doctor._models).passed
    model = tmp_path / "minilm" / "model.onnx"
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    model.write_bytes(data)
    check = doctor._check("the shipped models", doctor._models)
    assert not check.passed
    assert str(model) in check.detail
    assert "install" in check.detail


def test_doctor_names_a_damaged_vector(run, tmp_path):
    run("remember", "the red boat leaks", "--db", "mine.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "mine.db")) as connection:
        [vector] = connection.execute("SELECT vector FROM vectors").fetchone()
    data = bytearray((tmp_path / "mine.db").read_bytes())
    data[data.index(vector[:64])] ^= 1
    (tmp_path / "mine.db").write_bytes(data)
    said = " ".join(run("doctor", "--db", "mine.db", code=1).split())
    assert "vector of unit row 1 fails its checksum" in said
    assert "holdfast reembed" in said


def test_doctor_names_a_damaged_store(here, tmp_path):
    here("remember", "an unmistakable sentence", "--db", "mine.db")
    data = bytearray((tmp_path / "mine.db").read_bytes())
    data[data.index(b"unmistakable")] ^= 1
    (tmp_path / "mine.db").write_bytes(data)
    assert "✗ the store mine.db: unit row 1 fails its checksum" in here("doctor", "--db", "mine.db", code=1)


def test_a_refused_question_prints_the_reason(run):
    run("remember", "I count the tides every hour")
    question = "What is the average complexity of quicksort?"
    said = " ".join(run("search", question).split())
    assert said.startswith("Nothing found. Refused: no candidate covers more than 0.00 of its words or has a cosine")
    assert said.endswith("Words searched for: average, complexity, quicksort")
    found = run("search", question, "--json")
    assert found["hits"] == []
    assert json.dumps(found).count("no candidate covers more than 0.00 of its words") == 1
    assert "Refused" not in run("search", question, "--profile", "fast")


def test_a_near_miss_is_shown_under_a_line_that_says_so(run):
    run("remember", "Karen is our dentist's receptionist, she is very kind.")
    question = "What is my dentist called?"
    said = " ".join(run("search", question).split())
    assert said.startswith(
        "nothing: closest first; nothing that was found seems to answer: the one turn read does not"
    )
    assert "Karen" in said
    found, context = (run(command, question, "--json") for command in ("search", "assemble"))
    assert (found["state"], context["state"]) == ("nothing", "nothing")
    assert found["refused"] == context["refused"]
    assert "nothing: closest first" in " ".join(run("assemble", question).split())
    assert not run("search", "Who is the receptionist of our dentist?").startswith(("nothing", "closest"))


def test_reembed_switches_a_store_to_the_embedder_that_the_settings_name(run):
    for text in ("the red boat leaks", "a kite over the hill"):
        run("remember", text)
    other = {"HOLDFAST_EMBEDDING__EMBEDDER": "potion"}
    done = run("reembed", "--json", **other)
    assert done["waiting"] == 0
    assert "potion" in done["space"]
    assert run("search", "boat", "--json", **other)["warnings"] == []
    found = run("search", "boat", "--json")  # the store had this one before: it does not take it back by itself
    assert found["hits"][0]["unit"]["text"] == "the red boat leaks"
    [said] = found["warnings"]
    assert "potion" in said
    assert "minilm" in said
    assert "holdfast reembed" in said
    assert "embedder unavailable; lexical results only" in run("search", "boat")
    assert "potion" in run("stats")
    drawn = " ".join(run("reembed").split())
    assert "minilm" in drawn
    assert "0 units pending" in drawn
    assert run("search", "boat", "--json")["warnings"] == []
    assert "0 units without" in run("stats")


def test_a_store_of_an_embedder_that_is_new_to_it_is_embedded_anew_at_once(run):
    run("remember", "the red boat leaks")
    found = run("search", "boat", "--json", HOLDFAST_EMBEDDING__EMBEDDER="potion")
    assert (len(found["hits"]), found["warnings"]) == (1, [])
    assert "potion" in run("stats", "--json")["space"]


def test_reembed_says_what_is_missing(run):
    assert "does not exist" in run("reembed", code=5)
    run("remember", "the red boat leaks")
    assert "none" in run("reembed", code=6, HOLDFAST_EMBEDDING__EMBEDDER="none")
    nobody = {"HOLDFAST_EMBEDDING__EMBEDDER": "ollama", "HOLDFAST_EMBEDDING__MODEL": "small"}
    assert "cannot be reached" in run("reembed", code=6, HOLDFAST_EMBEDDING__URL="http://127.0.0.1:9", **nobody)
    assert run("search", "boat", "--json")["hits"]  # and nothing has changed


def test_search_prints_five_hits_unless_asked_for_more(here):
    here("remember", "--messages", "-", given=json.dumps([f"boat number {i}" for i in range(12)]))
    assert [line[:2] for line in here("search", "boat").splitlines()[::2]] == ["1.", "2.", "3.", "4.", "5."]
    assert len(here("search", "boat", "--json")["hits"]) == 5
    assert len(here("search", "boat", "--limit", "12", "--json")["hits"]) == 12
    assert len(here("search", "boat", "--limit", "10", "--profile", "fast", "--json")["hits"]) == 10


def test_a_list_says_when_there_is_more(here):
    here("remember", "--messages", "-", given=json.dumps([f"boat number {i}" for i in range(52)]))
    assert here("list").endswith("the newest 50; there are more: --limit 0 lists all\n")
    assert here("list", "--oldest", "-n", "2").endswith("the oldest 2; there are more: --limit 0 lists all\n")
    assert len(here("list", "--json")) == 50
    assert len(here("list", "--limit", "0", "--json")) == 52
    assert "there are more" not in here("list", "--limit", "52")
    assert "limit = -1" in here("list", "--limit", "-1", code=2)


def test_a_user_without_units_is_named(here):
    here("remember", "the boat leaks", "--user", "household")
    told = "user 'me' has nothing here; there are: household"
    assert told in here("search", "boat")
    assert told in here("assemble", "boat")
    assert told in here("sessions")
    assert "has nothing" not in here("search", "kettle", "--user", "household")


def test_what_there_is_is_listed(here, tmp_path):
    here("remember", "the boat leaks, and badly so", "--session", "harbour", "--at", "2026-04-02", "--agent", "mate")
    here("remember", "a new tarpaulin", "--session", "harbour", "--at", "2026-04-09")
    (tmp_path / "rules.md").write_text("# Rules\n\n- Never sail alone.\n")
    here("ingest", str(tmp_path / "rules.md"), "--core", "--name", "rules.md")
    assert here("users").split()[:3] == ["me", "2", "units"]
    assert "harbour  2 units  2026-04-02 to 2026-04-09  the boat leaks, and badly so" in here("sessions")
    [agent] = here("agents", "--json")
    assert (agent["name"], agent["units"]) == ("mate", 1)
    [document] = here("documents", "--json")
    assert (document["name"], document["units"], document["core"]) == ("rules.md", 0, True)
    assert "no agents" in here("agents", "--user", "nobody")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["search"], "Missing argument"),
        (["remember", "x", "--ttl", "2h"], "Invalid value for '--ttl'"),
        (["search", "x", "--nonsense"], "No such option: --nonsense"),
        (["search", "x", "--settings", "a.toml"], "it goes before the command"),
        (["serach", "x"], "Did you mean 'search'?"),
        (["update", "x"], "give one of --text, --topic, --metadata, --pin, --unpin, --ttl"),
    ],
)
def test_a_wrong_call_is_one_line_or_one_object(here, arguments, expected):
    said = here(*arguments, code=2)
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert expected in said
    error = here(*arguments, "--json", code=2)["error"]
    assert expected in error["message"]
    assert error["exit_code"] == 2


def test_one_unit_is_not_units(here):
    here("remember", "the boat leaks")
    assert "1 unit copied to" in here("backup", "copy.db")
    assert "1 unit, " in here("stats")
    assert "Erase 1 unit " in here("forget", "--all", given="y\n", terminal=True)


@pytest.mark.parametrize("command", ["ingest", "reembed"])
def test_whoever_interrupts_a_long_command_hears_that_it_can_go_on(here, command, monkeypatch, tmp_path):
    here("remember", "the boat leaks")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, command, interrupted)
    (tmp_path / "a.md").write_text("words")
    arguments = ["ingest", "a.md"] if command == "ingest" else ["reembed"]
    assert "run it again, it goes on" in here(*arguments, code=130)


def test_help_is_short_too(here):
    assert "--limit" in here("search", "-h")
    assert "remember" in here("-h")
    assert "remember" in here()


# What the first hit under each question of the demo has to say.
ANSWERS = (
    ("2 · Search: To which date was the opening of the bakery postponed?", "Saturday 16 May"),
    ("Why is the first one first?", "Saturday 16 May"),
    ("Do they have a pet?", "the cat. Her name is Sardinha"),
    ("Quantos gramas de manteiga leva o folar?", "150 g de manteiga"),
    ("いつ京都へ行きますか。", "十一月に京都へ行きます"),
    ("What did Tomas say about opening hours in June?", "close on Mondays and Tuesdays"),
    ("The word database, said by Mara, since April:", "The new database is /srv/tidepool/data/tides.db"),
    ("Asked again: To which date was the opening of the bakery postponed?", "Saturday 23 May"),
    ("7 · Why not? Which flight are they rebooked on in November?", "ZV 722 on 14 November"),
    ("What do I do when the oven shows E-37?", "hold the reset button for eight seconds"),
)


def first_answer(shown, question):
    """Return the text of the first hit after a question."""
    lines = shown[shown.index(question) :].splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("1. "))
    return lines[head + 1]


def test_the_demo_answers_its_questions(run):
    shown = run("demo", COLUMNS="400")
    for question, answer in ANSWERS:
        assert answer in first_answer(shown, question), question
    context = shown[shown.index("8 · A context") : shown.index("9 · Documents")]
    assert "hold the reset button for eight seconds" in context
    unrelated = shown[
        shown.index("What is the average complexity of quicksort?") : shown.index("4 · Other languages")
    ]
    assert "Refused" in unrelated
    for piece in ("159 turns", "0 added", "term postpon", "below the threshold", "bit for bit: True"):
        assert piece in shown
    assert run("demo", COLUMNS="400") == shown


def test_help_and_version(run):
    assert "remember" in run("--help")
    assert run("--version").startswith("holdfast ")


def test_a_memory_is_carried_to_another_file(here, tmp_path):
    here("remember", "the boat leaks", "--session", "harbour", "--at", "2026-04-02")
    here("remember", "buy tar", "--user", "household")
    told = here("export", "me.jsonl")
    assert told.startswith("1 unit, 1 version, 0 documents in ")
    assert "1 added" in here("import", "me.jsonl", "--db", "copy.db")
    assert "1 already stored" in here("import", "me.jsonl", "--db", "copy.db")
    assert [unit["text"] for unit in here("list", "--db", "copy.db", "--json")] == ["the boat leaks"]
    assert here("export", "all.jsonl", "--all", "--json")["units"] == 2
    assert "exists" in here("export", "me.jsonl", code=2)
    assert "has nothing here" in here("export", "none.jsonl", "--user", "nobody", code=3)
    here("export", "me.md", "--format", "markdown")
    assert "> the boat leaks" in (tmp_path / "me.md").read_text()


def test_a_chat_is_brought_in_with_a_report(here, tmp_path):
    lines = ("01.02.24, 10:00 - Ida: the ferry is late", "02.02.24, 10:00 - Ida: <Media omitted>")
    chat = "\n".join((*lines, "13.02.24, 10:05 - Bo: again\n"))
    (tmp_path / "WhatsApp Chat with Ida.txt").write_text(chat)
    planned = here("import", "WhatsApp Chat with Ida.txt", "--dry-run")
    assert "nothing was written: this was a dry run" in planned
    told = here("import", "WhatsApp Chat with Ida.txt", "--zone", "Europe/Lisbon")
    assert "whatsapp: 2 entries read; 1 session; by Ida, Bo; from 2024-02-01 to 2024-02-13" in told
    assert "skipped 1: it is a picture, recording or file that was left out" in told
    assert here("sessions", "--json")[0]["name"] == "Ida"
    (tmp_path / "cut.jsonl").write_text((tmp_path / "WhatsApp Chat with Ida.txt").read_text()[:5])
    assert "is of no known format" in here("import", "cut.jsonl", code=2)
    lines = here("export", "all.jsonl", "--all") and (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[:-1]))
    assert "incomplete file: what could be read is imported" in here("import", "cut.jsonl", "--db", "c.db", code=2)
