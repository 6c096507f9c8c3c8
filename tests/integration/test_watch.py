"""`holdfast watch`: what changes in a folder is taken in once its writer has finished, and said in one line."""

import sys
from pathlib import Path

import pytest

from builders import opened
from commands import command_line
from holdfast.cli.ingestion import follow
from holdfast.documents.folder import EXCLUDED, INCLUDED, FileChange, Folder, stamps
from holdfast.errors import BusyStoreError, InputError
from papers import word

HOLDFAST = Path(sys.executable).with_name("holdfast")


class Over(Exception):
    """The end of a test's story."""


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    (root / "oven.md").write_text("The oven is lit at four.\n", encoding="utf-8")
    return root


def followed(folder, *steps, take_in=None):
    """Return what is said of a folder in which, between two looks, these steps happen; then two looks more."""
    story = iter([*steps, lambda: None, lambda: None])
    changes = []

    def wait():
        step = next(story, None)
        if step is None:
            raise Over
        step()

    with opened() as memory:
        read = take_in or (lambda: memory.ingest_folder(folder, user="ana"))
        wanted = Folder(folder, "", None, INCLUDED, EXCLUDED)
        with pytest.raises(Over):
            changes.extend(_each(follow(lambda: stamps(wanted), read, wait), changes))
        return changes


def _each(found, changes):
    for change in found:
        changes.append(change)  # kept also when the story ends inside
    return ()


def test_what_is_there_is_taken_in_and_then_what_changes(folder):
    def edit():
        (folder / "oven.md").write_text("The oven is lit at three.\n", encoding="utf-8")
        (folder / "flour.txt").write_text("Flour is kept in bins.\n", encoding="utf-8")

    changes = followed(folder, edit, lambda: None, (folder / "flour.txt").unlink, lambda: None)
    assert changes == [
        FileChange("added", "oven.md"), FileChange("added", "flour.txt"), FileChange("changed", "oven.md"),
        FileChange("removed", "flour.txt"),
    ]  # fmt: skip


def test_a_file_that_is_still_being_written_is_waited_for(folder):
    whole = word()
    paper = folder / "minutes.docx"
    parts = [lambda size=size: paper.write_bytes(whole[:size]) for size in (100, 5_000, len(whole))]
    assert followed(folder, *parts)[1:] == [FileChange("added", "minutes.docx")], "no half of it was tried"


def test_an_editor_that_saves_by_moving_a_new_file_into_place_is_followed(folder):
    def save():
        new = folder / ".oven.md.swp"
        new.write_text("The oven is lit at two.\n", encoding="utf-8")
        new.replace(folder / "oven.md")

    assert followed(folder, save) == [FileChange("added", "oven.md"), FileChange("changed", "oven.md")]


def test_a_file_that_cannot_be_read_is_named_once_and_read_when_it_is_mended(folder):
    paper = folder / "minutes.docx"
    paper.write_bytes(b"no zip")
    changes = followed(
        folder,
        lambda: (folder / "a.txt").write_text("Words of a.\n"),
        lambda: None,
        lambda: paper.write_bytes(word()),
    )
    failed = [change for change in changes if change.what == "failed"]
    assert [(one.name, "save it anew" in one.reason) for one in failed] == [("minutes.docx", True)]
    assert FileChange("added", "minutes.docx") in changes


def test_a_busy_store_is_waited_for(folder):
    tries = []

    def take_in():
        tries.append(1)
        if len(tries) < 3:
            raise BusyStoreError("another process is writing; try again")
        with opened() as memory:
            return memory.ingest_folder(folder, user="ana")

    assert followed(folder, lambda: None, lambda: None, take_in=take_in) == [FileChange("added", "oven.md")]
    assert len(tries) == 3


def test_a_folder_that_is_gone_ends_it_and_takes_nothing_back(folder):
    def vanish():
        (folder / "oven.md").unlink()
        folder.rmdir()

    with opened() as memory:
        wanted = Folder(folder, "", None, INCLUDED, EXCLUDED)
        found = follow(lambda: stamps(wanted), lambda: memory.ingest_folder(folder, user="ana"), vanish)
        assert next(found) == FileChange("added", "oven.md")
        with pytest.raises(InputError, match="is not a folder"):
            next(found)
        assert len(memory.list(user="ana")) == 1


@pytest.mark.parametrize(
    ("arguments", "message"), [(["nowhere"], "is not a folder"), (["notes", "--every", "0"], "too often")]
)
def test_a_wrong_call_is_one_line(tmp_path, folder, arguments, message, monkeypatch):
    said = command_line(tmp_path, monkeypatch)("watch", *arguments, code=InputError.exit_code)
    assert message in said.splitlines()[-1]
    assert said.count("error: ") == 1
