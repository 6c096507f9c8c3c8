"""`compact`, `expand`, `supersede`, `reinstate`, `forget`, `backup` and `show` on the command line."""

import json
import shutil
from pathlib import Path

import pytest

from builders import later
from commands import command_line

TINY_T5 = Path(__file__).parents[1] / "fixtures" / "tiny_t5"
SETTINGS = {
    "HOLDFAST_EMBEDDING__EMBEDDER": "potion", "HOLDFAST_ASSEMBLY__BUDGET": "300", "HOLDFAST_COMPACTION__CLUSTER": "4",
    "HOLDFAST_REFUSAL__ENABLED": "false", "COLUMNS": "200",
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `holdfast` in an empty folder; `answer` is what somebody at the terminal says."""
    command = command_line(tmp_path, monkeypatch, **SETTINGS)

    def asked(*arguments, code=0, answer=None):
        return command(*arguments, code=code, given=answer or "", terminal=answer is not None)

    return asked


@pytest.fixture
def told(run, tmp_path):
    """Keep a session of sixteen turns; return their ids."""
    messages = [
        {"role": "assistant" if i % 2 else "user", "id": f"m{i}", "at": later(minutes=i).isoformat(),
         "content": f"turn {i} tells of the boat in harbour number{i} and of topic{i % 5} at length"}
        for i in range(16)
    ]  # fmt: skip
    (tmp_path / "session.json").write_text(json.dumps(messages))
    return [one["id"] for one in run("remember", "--messages", "session.json", "--session", "s", "--json")]


def units(run):
    return {row["id"]: row for row in run("list", "--all", "--limit", "999", "--json")}


# --------------------------------------------------------------------------------------------- compaction


def test_compact_and_expand(run, told):
    [done] = run("compact", "--session", "s", "--json")
    assert set(done) == {
        "session", "turns", "summaries", "tokens_saved", "mean_confidence", "method", "declined", "trivial",
        "changed", "clusters",
    }  # fmt: skip
    assert (done["session"], done["turns"], done["method"], len(done["summaries"])) == ("s", 12, "extractive", 3)
    assert done["tokens_saved"] > 0
    assert [cluster["outcome"] for cluster in done["clusters"]] == ["summarised"] * 3
    for cluster in done["clusters"]:
        assert {"turns", "summary", "text", "rung", "picks", "align", "cover", "confidence", "notes"} <= set(cluster)
        rows = run("expand", cluster["summary"], "--json")
        assert [row["id"] for row in rows] == cluster["turns"]
        assert {row["covered_by"] for row in rows} == {cluster["summary"]}
    assert [row["id"] for row in rows] == told[8:12]
    shown = run("expand", done["summaries"][0])
    assert "number0" in shown
    assert "number3" in shown
    assert "nothing to compact" in run("compact")
    assert run("compact", "--json") == [
        {**one, "session": "s", "clusters": [], "summaries": [], "turns": 0, "tokens_saved": 0,
         "mean_confidence": None, "method": ""} for one in run("compact", "--json")
    ]  # fmt: skip


def test_compact_draws_what_it_did(run, told):
    drawn = run("compact")
    for word in ("session", "summaries", "saved", "confidence", "extractive", str(len(told) - 4)):
        assert word in drawn


def test_show_says_what_became_of_a_unit(run, told):
    [done] = run("compact", "--json")
    row = run("show", told[0], "--json")
    assert row["covered_by"] == done["summaries"][0]
    assert done["summaries"][0] in run("show", told[0])
    [lineage] = [run("show", done["summaries"][0], "--json")["lineage"]]
    assert lineage["sources"] == told[:4]
    run("supersede", told[13], "--by", told[15])
    assert run("show", told[13], "--json")["superseded_by"] == told[15]
    assert told[15] in run("show", told[13])


def test_the_gate_is_shown_and_explained(run):
    [kept] = run("remember", "I prefer dark mode in every editor", "--session", "s", "--json")
    [left] = run("remember", "ok", "--session", "s", "--json")
    assert (kept["promoted"], left["promoted"]) == (True, False)
    row = run("show", kept["id"], "--json")
    assert row["scope"] == "user"
    assert set(row["gate"]) == {
        "promoted", "reason", "score", "conversational", "technical", "novelty", "repetition", "frequency",
        "saturation", "technical_density", "statement", "specificity", "action", "structure",
    }  # fmt: skip
    assert "durable" in run("show", kept["id"])
    assert "kept in its session" in run("show", left["id"])
    assert run("show", left["id"], "--json")["gate"]["promoted"] is False
    hit, *_ = run("search", "dark mode", "--explain", "--json")["hits"]
    assert hit["unit"]["gate"] == row["gate"]


def test_an_explained_search_says_what_the_gate_decided(run):
    [kept] = run("remember", "I prefer dark mode in every editor", "--session", "s", "--json")
    reason = run("show", kept["id"], "--json")["gate"]["reason"]
    assert f"durable: {reason}" in run("search", "dark mode", "--tree")
    assert reason not in run("search", "dark mode", "--explain")


# -------------------------------------------------------------------------------------------- supersession


def test_supersede_and_reinstate(run, told):
    row = run("supersede", told[0], "--by", told[1], "--json")
    assert (row["id"], row["superseded_by"]) == (told[0], told[1])
    assert told[0] not in {one["id"] for one in run("list", "--json")}
    row = run("reinstate", told[0], "--json")
    assert "superseded_by" not in row
    assert told[0] in {one["id"] for one in run("list", "--json")}
    assert "number0" in run("reinstate", told[0])


def test_circles_are_refused(run, told):
    a, b, c = told[:3]
    run("supersede", a, "--by", b)
    assert "reinstate one of them first" in run("supersede", b, "--by", a, code=2)
    run("supersede", b, "--by", c)
    error = run("supersede", c, "--by", a, "--json", code=2)
    assert f"{a} → {b} → {c}" in json.dumps(error, ensure_ascii=False)
    assert {key: units(run)[key].get("superseded_by") for key in (a, b, c)} == {a: b, b: c, c: None}


# ------------------------------------------------------------------------------------------------ forgetting


def test_a_dry_run_lists_and_erases_nothing(run, told):
    run("compact")
    before = units(run)
    row = run("forget", told[0], "--dry-run", "--json")
    assert set(row) == {
        "units", "summaries", "uncovered", "complete", "pending", "reason", "files", "outside", "rebuilt",
        "documents", "dry_run", "rewritten",
    }  # fmt: skip
    assert (row["units"], len(row["summaries"]), row["dry_run"], row["complete"]) == ([told[0]], 1, True, False)
    assert "would be erased: 1 unit, 1 summary" in run("forget", told[0], "--dry-run")
    assert units(run) == before


def test_forgetting_ends_with_a_proof(run, told, tmp_path):
    run("compact")
    row = run("forget", told[0], "--yes", "--json")
    assert (row["units"], row["complete"], row["pending"], row["outside"]) == ([told[0]], True, False, [])
    assert len(row["rebuilt"]) == 1
    assert all(Path(name).name.startswith("holdfast.db") for name in row["files"])
    assert "complete: nothing of it is left" in run("forget", told[1], "--yes")
    assert not [path for path in tmp_path.glob("holdfast.db*") if b"number0 " in path.read_bytes()]
    assert set(told[2:]) <= set(units(run))


def test_a_person_is_asked_and_may_say_no(run, told):
    assert "nothing was erased" in run("forget", told[0], answer="n\n", code=2)
    assert told[0] in units(run)
    assert "Erase 1 unit for good?" in run("forget", told[0], answer="y\n")
    assert told[0] not in units(run)
    assert "Erase" not in run("forget", told[1], "--yes", answer="")
    assert told[1] not in units(run)


@pytest.mark.parametrize("what", [["--all"], ["--session", "s"], ["{turn}"]])
def test_where_nobody_can_be_asked_nothing_is_erased_without_yes(run, told, what):
    before = units(run)
    named = [one.format(turn=told[0]) for one in what]
    assert "add --yes to erase" in run("forget", *named, code=2)
    assert run("forget", *named, "--json", code=2)["error"]["type"] == "InputError"
    assert units(run) == before
    assert told[0] in run("forget", *named, "--yes", "--json")["units"]


def test_an_answer_in_json_is_not_mixed_with_the_question(run, told):
    assert run("forget", told[0], "--json", answer="y\n")["units"] == [told[0]]


def test_everything_goes_only_with_all(run, told):
    before = units(run)
    filters = ["--filter", '{"session": "s"}']
    error = run("forget", *filters, "--yes", "--json", code=2)
    assert "--all" in json.dumps(error)
    assert "name what to forget in one way" in run("forget", *filters, "--all", "--yes", code=2)
    assert "nothing to forget is named" in run("forget", "--yes", code=2)
    assert units(run) == before
    row = run("forget", "--all", "--yes", "--json")
    assert (len(row["units"]), row["complete"]) == (len(told), True)
    assert units(run) == {}


def test_sessions_and_documents_are_forgotten_by_name(run, told, tmp_path):
    (tmp_path / "notes.md").write_text("One boat.\n\nTwo harbours.")
    run("ingest", "notes.md")
    assert run("forget", "--document", "notes.md", "--yes", "--json")["documents"] == ["notes.md"]
    assert len(run("forget", "--session", "s", "--yes", "--json")["units"]) == len(told)
    assert units(run) == {}


# --------------------------------------------------------------------------------------------------- backups


def test_a_backup_is_a_memory(run, told, tmp_path):
    assert run("backup", "copy.db", "--json") == {"path": "copy.db", "units": len(told)}
    assert len(run("list", "--db", "copy.db", "--limit", "99", "--json")) == len(told)
    assert f"{len(told)} units copied" in run("backup", "second.db")
    before = (tmp_path / "copy.db").read_bytes()
    assert "exists" in run("backup", "copy.db", code=2)
    assert (tmp_path / "copy.db").read_bytes() == before
    assert "does not exist" in run("backup", "nowhere/copy.db", code=2)


def test_a_path_that_cannot_be_one_is_refused(tmp_path):
    from histories import small_memory  # noqa: PLC0415
    from holdfast import HoldfastError  # noqa: PLC0415

    with small_memory(tmp_path / "memory.db") as memory, pytest.raises(HoldfastError):
        memory.backup("copy\x00.db")


# ------------------------------------------------------------------------------------------------- bad input

BAD = {
    "expand a turn": (["expand", "{turn}"], 2, "not a summary"),
    "expand nothing": (["expand", "unknown"], 3, "no unit 'unknown'"),
    "expand what was erased": (["expand", "{erased}"], 3, "erased"),
    "supersede nothing": (["supersede", "unknown", "--by", "{turn}"], 3, "unknown"),
    "supersede by nothing": (["supersede", "{turn}", "--by", "unknown"], 3, "unknown"),
    "supersede itself": (["supersede", "{turn}", "--by", "{turn}"], 3, "cannot replace itself"),
    "reinstate nothing": (["reinstate", "unknown"], 3, "unknown"),
    "forget nothing": (["forget", "unknown", "--yes"], 3, "unknown"),
    "forget a document": (["forget", "--document", "none.md", "--yes"], 3, "no document"),
    "forget by rubbish": (["forget", "--filter", "{{", "--yes"], 2, "not JSON"),
    "another's turn": (["forget", "{turn}", "--user", "ben", "--yes"], 3, "no unit"),
    "no such store": (["compact", "--db", "nowhere.db"], 5, "does not exist"),
}


def test_bad_input_is_one_line_with_a_code(run, told):
    [done] = run("compact", "--json")
    run("forget", told[0], "--yes")
    before = units(run)
    places = {"turn": told[5], "erased": done["summaries"][0]}
    for name, (arguments, code, words) in BAD.items():
        given = [one.format(**places) for one in arguments]
        said = run(*given, code=code)
        assert words in said, name
        assert said.startswith("error: "), name
        assert said.count("\n") == 1, name
        assert words in json.dumps(run(*given, "--json", code=code)), name
    assert units(run) == before


@pytest.mark.parametrize("missing", ["decoder_model_merged.onnx", "tokenizer.json", "everything"])
def test_a_model_folder_that_lacks_something_falls_back_and_says_so(run, told, tmp_path, monkeypatch, missing):
    folder = tmp_path / "model"
    shutil.copytree(TINY_T5, folder)
    gone = [missing] if missing != "everything" else [path.name for path in folder.iterdir()]
    for name in gone + (["decoder_model.onnx", "decoder_with_past_model.onnx"] if "decoder" in missing else []):
        (folder / name).unlink()
    monkeypatch.setenv("HOLDFAST_SUMMARISER__SUMMARISER", "onnx")
    monkeypatch.setenv("HOLDFAST_SUMMARISER__FOLDER", str(folder))
    [done] = run("compact", "--json")
    assert (done["method"], done["turns"]) == ("extractive", 12)
    for cluster in done["clusters"]:
        assert any("extractive instead" in note for note in cluster["notes"])
        assert missing == "everything" or any(missing.split("_")[0] in note for note in cluster["notes"])
    assert set(told) <= set(units(run))


def test_a_summariser_without_its_settings_is_refused(run, told, monkeypatch):
    before = units(run)
    monkeypatch.setenv("HOLDFAST_SUMMARISER__SUMMARISER", "onnx")
    assert "summariser.folder" in run("compact", code=4)
    monkeypatch.setenv("HOLDFAST_SUMMARISER__SUMMARISER", "openai")
    assert "summariser.url" in run("compact", code=4)
    monkeypatch.setenv("HOLDFAST_SUMMARISER__SUMMARISER", "extractive")
    monkeypatch.setenv("HOLDFAST_EMBEDDING__EMBEDDER", "none")
    assert "embedding.embedder" in run("compact", code=6)
    assert units(run) == before
