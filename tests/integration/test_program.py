"""What only processes can show: the installed program, its pipes, its exit code, Ctrl-C, and a store that they share.

All else about commands is tested in one process (`commands.py`); these six are the price of that.
"""

import json
import signal
import subprocess

from commands import BY_WORDS, MODULE, PROGRAM, command_line, environment, process
from holdfast.errors import StoreError


def test_the_package_runs_as_a_program(tmp_path):
    ended = process(tmp_path, *MODULE, "settings", "--json")
    assert any(row["key"] == "compaction.cluster" for row in json.loads(ended.out))


def test_the_installed_program_prints_what_this_process_prints(tmp_path, monkeypatch):
    run = command_line(tmp_path, monkeypatch, **BY_WORDS)
    run("remember", "where is the boat?", "-s", "s1")
    asked = ("assemble", "boat", "-s", "s1", "-b", "300", "--json")
    ended = process(tmp_path, PROGRAM, *asked, **BY_WORDS)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["text"] == run(*asked)["text"]


def test_what_one_process_wrote_another_finds_by_words_and_by_meaning(tmp_path):
    written = process(tmp_path, PROGRAM, "remember", "-", "--json", given="words from a pipe")
    [unit] = json.loads(written.out)
    found = json.loads(process(tmp_path, PROGRAM, "search", "pipe", "--json").out)
    assert [hit["unit"]["id"] for hit in found["hits"]] == [unit["id"]]
    assert found["warnings"] == []


def test_an_error_is_one_line_and_the_exit_code_of_the_process(tmp_path):
    lost = process(tmp_path, PROGRAM, "stats", **BY_WORDS)
    assert (lost.code, lost.out, lost.err.count("\n")) == (StoreError.exit_code, "", 1)
    assert lost.err.startswith("error: holdfast.db does not exist")
    refused = process(tmp_path, PROGRAM, "search", "boat", "--json", **BY_WORDS)
    error = json.loads(refused.out)["error"]
    assert (error["type"], error["exit_code"], refused.code) == ("StoreError", lost.code, lost.code)


def test_a_reader_who_goes_away_early_sees_no_traceback_and_what_was_written_stays(tmp_path, monkeypatch):
    command = [PROGRAM, "remember", "the boat leaks", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(**BY_WORDS), text=True, **pipes) as running:
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (1, "")
    [unit] = command_line(tmp_path, monkeypatch, **BY_WORDS)("list", "--json")
    assert unit["text"] == "the boat leaks"


def test_watch_says_one_line_for_each_change_and_ends_with_ctrl_c(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "oven.md").write_text("The oven is lit at four.\n", encoding="utf-8")
    with subprocess.Popen(
        [PROGRAM, "watch", "notes", "--every", "0.1", "--json"], cwd=tmp_path, env=environment(**BY_WORDS),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell's background job ignores Ctrl+C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no lock is taken
    ) as running:  # fmt: skip
        assert json.loads(running.stdout.readline()) == {"event": "added", "name": "oven.md"}
        (folder / "flour.txt").write_text("Flour is kept in bins.\n", encoding="utf-8")
        assert json.loads(running.stdout.readline()) == {"event": "added", "name": "flour.txt"}
        running.send_signal(signal.SIGINT)
        rest, said = running.communicate()
    assert json.loads(rest) == {"event": "stopped"}
    assert running.returncode == 0
    assert said.startswith("watching notes")
    assert "Traceback" not in said
