"""`holdfast assemble`, `ingest` and `why --budget`, run as a user runs them."""

import json
import re

import pytest

from commands import BY_WORDS, command_line
from holdfast import Contribution


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `holdfast` in an empty folder, by words alone; of a failure it gives the error."""
    command = command_line(tmp_path, monkeypatch, **BY_WORDS)

    def may_fail(*arguments, code=0, given=""):
        found = command(*arguments, code=code, given=given)
        return found["error"] if code and "--json" in arguments else found

    return may_fail


@pytest.fixture
def kept(run, tmp_path):
    """Keep a core document, a session of three turns and a note; return the note's id."""
    (tmp_path / "AGENTS.md").write_text("- never on a Friday\n\nThe boat is blue.\n", encoding="utf-8")
    run("ingest", "AGENTS.md", "--core")
    for text in ("where is the boat?", "and the kiln?", "thanks"):
        run("remember", text, "-s", "s1")
    return run("remember", "the old boat leaked", "--json")[0]["id"]


def section(context, name):
    return next(one for one in context["sections"] if one["name"] == name)["items"]


def test_a_context_in_json_and_drawn(run, kept):
    context = run("assemble", "old boat leaked", "-s", "s1", "-b", "500", "--json")
    assert context["text"].startswith("[rules]\n- never on a Friday\n")
    assert context["tokens"] <= context["budget"] == 500
    assert context["degraded"] == ""
    assert len(section(context, "tail")) == 3
    assert kept in [item["id"] for item in section(context, "projection")]
    assert "projection" not in context
    drawn = run("assemble", "old boat leaked", "-s", "s1", "-b", "500")
    for line in context["text"].splitlines():
        assert line[:60] in drawn


def test_explain_shows_trees_that_compose(run, kept):
    context = run("assemble", "old boat leaked", "--explain", "--json")
    scores = {item["id"]: item["score"] for item in section(context, "projection")}
    assert kept in scores
    for row in context["projection"]:
        assert Contribution.from_json(row["contributions"]).compose() == scores[row["id"]]
    assert "pass 2" not in (drawn := run("assemble", "old boat leaked", "--explain"))
    assert re.search(rf"^0\.\d{{4}}  {kept}  found\n   standing 0", drawn, re.MULTILINE)
    assert "S_final" in run("assemble", "old boat leaked", "--tree")


def test_messages_come_from_standard_input(run, kept):
    shown = [{"role": "user", "content": "thanks"}, {"role": "user", "content": "old boat leaked"}]
    context = run("assemble", "--messages", "-", "-s", "s1", "--json", given=json.dumps(shown))
    assert kept in [item["id"] for item in section(context, "projection")]
    line = '{"role": "user", "content": "a kettle\u2028sings", "id": "k"}'
    [written] = run("remember", "--messages", "-", "--json", given=f"{line}\n\n")
    assert run("show", written["id"], "--json")["text"] == "a kettle\u2028sings"


def test_a_window_and_nothing_at_all(run, kept):
    assert run("assemble", "boat", "--window", "4000", "--json")["budget"] == 1000
    assert run("assemble", "boat", "--json")["budget"] == 8000


def test_messages_come_from_a_file(run, kept, tmp_path):
    shown = [{"role": "user", "content": "thanks"}, {"role": "user", "content": "old boat leaked"}]
    (tmp_path / "shown.json").write_text(json.dumps(shown), encoding="utf-8")
    context = run("assemble", "--messages", "shown.json", "-s", "s1", "--json")
    assert [item["text"] for item in section(context, "tail")] == ["where is the boat?", "and the kiln?"]
    assert kept in [item["id"] for item in section(context, "projection")]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["boat", "-b", "0"], "BudgetError"),
        (["boat", "-b", "-5"], "BudgetError"),
        (["boat", "-b", "1"], "BudgetError"),
        (["boat", "--window", "0"], "BudgetError"),
        ([], "InputError"),
        (["boat", "--messages", "shown.json"], "InputError"),
        (["--messages", "nowhere.json"], "InputError"),
        (["--messages", "list.json"], "InputError"),
        (["--messages", "text.json"], "InputError"),
        (["--messages", "broken.json"], "InputError"),
        (["--messages", "latin.json"], "InputError"),
        (["boat", "--profile", "nonsense"], "UnknownProfileError"),
        (["boat", "--only-session"], "InputError"),
        (["boat", "-f", "{"], "InputError"),
    ],
)
def test_bad_input_is_one_error_with_its_type(run, tmp_path, arguments, kind):
    (tmp_path / "AGENTS.md").write_text("- never on a Friday\n", encoding="utf-8")
    (tmp_path / "shown.json").write_text("[]", encoding="utf-8")
    (tmp_path / "list.json").write_text('[{"role": "assistant", "content": "x"}]', encoding="utf-8")
    (tmp_path / "text.json").write_text('{"role": "user"}', encoding="utf-8")
    (tmp_path / "broken.json").write_text("[", encoding="utf-8")
    (tmp_path / "latin.json").write_bytes(b'["caf\xe9"]')
    run("ingest", "AGENTS.md", "--core")
    assert run("assemble", *arguments, "--json", code=2)["type"] == kind


def test_strict_refuses_what_would_be_degraded(run, kept):
    loose = run("assemble", "boat", "-s", "s1", "-b", "25", "--json")
    assert loose["degraded"]
    assert "degraded" in run("assemble", "boat", "-s", "s1", "-b", "25")
    assert run("assemble", "boat", "-s", "s1", "-b", "25", "--strict", "--json", code=2)["type"] == "BudgetError"


def test_why_with_a_budget_says_how_many_tokens_are_missing(run, kept):
    there = run("why", "old boat leaked", kept, "--budget", "500", "--json")
    assert there["returned"] is True
    assert "in its projection" in there["verdict"]
    absent = run("why", "old boat leaked", kept, "--budget", "12", "--json")
    assert absent["returned"] is False
    assert absent["tokens_short"] > 0
    assert f"{absent['tokens_short']} short" in run("why", "old boat leaked", kept, "--budget", "12")
    assert run("why", "boat", kept, "--budget", "0", "--json", code=2)["type"] == "BudgetError"


def test_an_edit_of_the_file_is_in_the_next_context(run, kept, tmp_path):
    (tmp_path / "AGENTS.md").write_text("- never on a Monday\n\nThe boat is green.\n", encoding="utf-8")
    text = run("assemble", "boat blue green", "--json")["text"]
    assert "- never on a Monday" in text
    assert "green" in text
    assert "blue" not in text


def test_ingest_names_scopes_and_owners(run, tmp_path):
    (tmp_path / "rules.md").write_text("- for all\n\nThe boat is blue.\n", encoding="utf-8")
    [written] = run("ingest", "rules.md", "--core", "--name", "ALL.md", "--scope", "global", "-u", "ana", "--json")
    assert (written["id"], written["status"]) == ("ALL.md#000001", "added")
    assert "- for all" in run("assemble", "boat", "-u", "ben", "--json")["text"]
    run("ingest", "rules.md", "--core", "-u", "ana")
    assert "rules.md" not in run("assemble", "boat", "-u", "ben", "--json")["text"]
    (tmp_path / "note.md").write_text("- a kettle\n", encoding="utf-8")
    run("ingest", "note.md", "-u", "eve")
    assert "[rules]\n- for all\n" in run("assemble", "kettle", "-u", "eve", "--json")["text"]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"", "InputError"), (b"\xff", "InputError"), (b"- " + b"word " * 4000, "BudgetError"), (None, "InputError")],
)
def test_ingest_refuses_what_is_no_document_or_too_much(run, tmp_path, raw, kind):
    if raw is not None:
        (tmp_path / "A.md").write_bytes(raw)
    assert run("ingest", "A.md", "--core", "--json", code=2)["type"] == kind
