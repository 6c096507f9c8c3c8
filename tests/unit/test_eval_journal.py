"""The journal: what was written is read, what was cut short is done again, and no folder is emptied by mistake."""

import json

import pytest

from holdfast.errors import InputError
from holdfast.eval.metrics import Measurement
from holdfast.eval.report import Journal, begin, finish

MANIFEST = json.dumps({"holdfast": "0", "runs": []})


def test_a_line_separator_inside_an_id_survives_the_journal(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(("set", "system", "page\u2028one"), [Measurement("page\u2028one", "q\x85", "c", {"x": 1.0})])
    assert list(journal.read()) == [("set", "system", "page\u2028one")]


def test_a_journal_cut_inside_a_character_goes_on(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for name in ("one", "zwölf"):
        journal.write(("set", "system", name), [])
    written = journal.path.read_bytes()
    journal.path.write_bytes(written[: written.index("ö".encode()) + 1])
    assert list(journal.read()) == [("set", "system", "one")]


def test_reading_changes_nothing_and_mending_cuts_the_last_line(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(("set", "system", "one"), [])
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + whole[:-3])
    assert list(journal.read()) == [("set", "system", "one")]
    assert journal.path.read_bytes() == whole + whole[:-3]
    assert list(journal.read(mend=True)) == [("set", "system", "one")]
    assert journal.path.read_bytes() == whole


def test_a_lone_surrogate_survives_the_journal(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(("set", "system", "\ud83d"), [])
    assert list(journal.read()) == [("set", "system", "\ud83d")]


@pytest.mark.parametrize("line", ["[]", "{}", "not json", '{"key": 3, "records": []}', '{"key": [], "records": [1]}'])
def test_a_damaged_line_is_named(tmp_path, line):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(("set", "system", "one"), [])
    with journal.path.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(InputError, match=r"journal\.jsonl is damaged at line 2"):
        journal.read()


def test_a_run_goes_on_where_the_same_one_was_stopped(tmp_path):
    folder = tmp_path / "run"
    assert begin(folder, "a") is False
    Journal(folder / "journal.jsonl").write(("set", "system", "one"), [])
    assert begin(folder, "a") is True
    assert Journal(folder / "journal.jsonl").read()


@pytest.mark.parametrize(("fingerprint", "finished"), [("b", False), ("a", True), ("b", True)])
def test_another_or_a_finished_run_makes_way_and_other_files_stay(tmp_path, fingerprint, finished):
    begin(tmp_path, "a")
    Journal(tmp_path / "journal.jsonl").write(("set", "system", "one"), [])
    (tmp_path / "thesis.txt").write_text("years of work")
    if finished:
        (tmp_path / "manifest.json").write_text(MANIFEST)
    assert begin(tmp_path, fingerprint) is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fingerprint.txt", "thesis.txt"]
    assert begin(tmp_path, fingerprint) is False  # there is nothing to go on with


def test_a_finished_run_of_before_there_were_fingerprints_makes_way(tmp_path):
    (tmp_path / "manifest.json").write_text(MANIFEST)
    assert begin(tmp_path, "a") is False
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize("name", ["manifest.json", "journal.jsonl", "report.md"])
@pytest.mark.parametrize("content", ['{"name": "a web page"}', "\udcff", '{"holdfast": 1, "runs": 3}'])
def test_files_of_others_are_refused_and_stay(tmp_path, name, content):
    written = content.encode("utf-8", "surrogateescape")
    (tmp_path / name).write_bytes(written)
    with pytest.raises(InputError, match=f"{name} was not written by a run"):
        begin(tmp_path, "a")
    assert (tmp_path / name).read_bytes() == written


def test_a_finished_run_keeps_no_fingerprint(tmp_path):
    begin(tmp_path, "a")
    finish(tmp_path)
    finish(tmp_path)
    assert list(tmp_path.iterdir()) == []
