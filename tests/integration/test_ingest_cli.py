"""`holdfast ingest` and `holdfast widen`, run as a user runs them: output, JSON, exit codes."""

import pytest

from commands import BY_WORDS, command_line


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `holdfast` in an empty folder, by words alone."""
    return command_line(tmp_path, monkeypatch, **BY_WORDS)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    (root / "oven.md").write_text("# Oven\n\nThe oven is lit at four.\n\n> It cools by noon.\n", encoding="utf-8")
    (root / "flour.txt").write_text("Flour is kept in bins.\n", encoding="utf-8")
    (root / "draft.md").write_text("A draft about yeast.\n", encoding="utf-8")
    return root


def test_a_folder_is_taken_in_and_its_units_are_widened(run, folder):
    report = run("ingest", "notes", "--exclude", "draft*", "--json")
    assert report == {
        "added": ["flour.txt", "oven.md"], "changed": [], "unchanged": [], "removed": [], "failed": [], "skipped": [],
        "units": 3,
    }  # fmt: skip
    [hit] = run("search", "oven lit", "--profile", "fast", "--json")["hits"][:1]
    wide = run("widen", hit["unit"]["id"], "--json")
    place = wide["text"][wide["unit_start"] - wide["start"] : wide["unit_end"] - wide["start"]]
    assert place == "The oven is lit at four."
    assert (wide["document"], wide["path"]) == ("notes/oven.md", ["Oven"])
    assert wide["unit"]["id"] == hit["unit"]["id"]
    drawn = run("widen", hit["unit"]["id"])
    assert "notes/oven.md › Oven" in drawn
    assert "It cools by noon." in drawn
    (folder / "oven.md").unlink()
    again = run("ingest", "notes", "--include", "*.md", "--include", "*.txt")
    assert "1 added, 1 unchanged, 1 removed; 2 units" in again


def test_files_that_fail_are_named_and_the_exit_code_says_so(run, folder):
    (folder / "bad.md").write_bytes(b"caf\xe9\n")
    report = run("ingest", "notes", "--json", code=2)
    assert len(report["added"]) == 3
    [failed] = report["failed"]
    assert failed["name"] == "bad.md"
    assert "save the file as UTF-8" in failed["reason"]
    assert "failed: bad.md" in run("ingest", "notes", code=2)
    assert run("stats", "--json")["units"] == 4


def test_what_is_skipped_is_counted_and_named(run, folder):
    for name in ("a.tex", "b.log"):
        (folder / name).write_text("A line.\n", encoding="utf-8")
    drawn = " ".join(run("ingest", "notes").split())
    assert "3 added; 4 units" in drawn
    assert "skipped 2: a.tex, b.log: of a kind that is not read" in drawn
    assert [one["name"] for one in run("ingest", "notes", "--json")["skipped"]] == ["a.tex", "b.log"]


def test_several_paths_are_taken_in_by_one_command_and_each_is_reported(run, folder, tmp_path):
    (tmp_path / "list.md").write_text("Bring the flour.\n", encoding="utf-8")
    one, other, failed = run("ingest", "list.md", "notes", "nowhere.md", "--json", code=2)
    assert (one["path"], [item["status"] for item in one["done"]]) == ("list.md", ["added"])
    assert (other["path"], other["done"]["added"]) == ("notes", ["draft.md", "flour.txt", "oven.md"])
    assert (failed["path"], failed["error"]["type"]) == ("nowhere.md", "InputError")
    drawn = run("ingest", "list.md", "notes")
    assert "list.md:" in drawn
    assert "3 unchanged; 4 units" in drawn
    assert run("stats", "--json")["units"] == 5


def test_files_of_one_name_are_two_documents(run, tmp_path):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "README.md").write_text(f"The {place} gate is open.\n", encoding="utf-8")
        run("ingest", f"{place}/README.md")
    assert run("stats", "--json")["units"] == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("notes", "--core"), "a folder has many"),
        (("notes", "--name", "n"), "a folder has many"),
        (("notes/oven.md", "--include", "*.md"), "this is one document"),
        (("notes/oven.md", "notes/flour.txt", "--name", "n"), "each has the name of its file"),
        (("notes/oven.md", "notes", "--core"), "a folder has many"),
        (("nowhere",), "cannot be read"),
        (("notes", "--scope", "galaxy"), "galaxy"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_exit_code_2(run, folder, arguments, reason):
    assert reason in " ".join(run("ingest", *arguments, code=2).split())
    assert run("stats", "--json")["units"] == 0


def test_an_unknown_unit_and_a_turn_are_refused_with_exit_code_3(run):
    [written] = run("remember", "the kettle is on the shelf", "--json")
    assert "only a document's unit can be widened" in " ".join(run("widen", written["id"], code=3).split())
    error = run("widen", "nobody", "--json", code=3)["error"]
    assert (error["type"], error["exit_code"]) == ("NotFoundError", 3)


def test_a_changed_fact_is_told_on_the_command_line(run):
    [old] = run("remember", "I live in Lisbon.", "--at", "2026-04-02T09:00:00Z", "--json")
    [new] = run("remember", "I moved from Lisbon to Porto.", "--at", "2026-05-02T09:00:00Z", "--json")
    assert new["superseded"] == [old["id"]]
    shown = run("show", old["id"], "--json")
    assert shown["superseded_by"] == new["id"]
    assert shown["superseded_why"] == "lives_in: Lisbon → Porto (said: moved)"
    assert "lives_in: Lisbon → Porto" in " ".join(run("show", old["id"]).split())
    found = run("search", "Lisbon", "--all", "--explain", "--json")
    [hit] = [hit for hit in found["hits"] if hit["unit"]["id"] == old["id"]]
    assert hit["unit"]["superseded_why"] == "lives_in: Lisbon → Porto (said: moved)"
    assert "superseded_by" not in run("reinstate", old["id"], "--json")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("x likes y", "no `->`"),
        ("x likes y -> x meets z", "z follows from nothing"),
        ("x likes y -> y likes x : 2", "outside (0, 1]"),
    ],
)
def test_a_bad_rule_in_the_settings_is_refused_with_exit_code_4(run, rule, reason):
    run("remember", "the kettle is on the shelf")
    said = run("search", "kettle", "--profile", "thinking", code=4, HOLDFAST_SYMBOLIC__RULES=rule)
    assert reason in " ".join(said.split())
