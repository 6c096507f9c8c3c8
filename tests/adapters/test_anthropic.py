"""Anthropic's memory tool: files that a model reads and writes, below `/memories` and nowhere else."""

import pytest

from builders import opened
from holdfast import InputError, MissingExtraError, NotFoundError
from holdfast.integrations import anthropic
from holdfast.integrations.anthropic import MemoryFiles

A = "/memories/a.md"


@pytest.fixture
def files():
    with opened() as memory:
        yield MemoryFiles(memory, user="ana")


def test_a_file_is_created_viewed_changed_and_deleted(files):
    notes = "/memories/notes.txt"
    assert files.create(notes, "one\ntwo\nthree\n") == "File created successfully at: /memories/notes.txt"
    assert files.view(notes).splitlines() == [
        "Here's the content of /memories/notes.txt with line numbers:",
        "     1\tone",
        "     2\ttwo",
        "     3\tthree",
        "     4\t",
    ]
    assert "     2\t2" in files.str_replace(notes, "two", "2")
    assert files.insert(notes, 1, "one and a half\n") == "The file /memories/notes.txt has been edited."
    assert files.view(notes, [2, 3]).endswith("     2\tone and a half\n     3\t2")
    assert files.rename(notes, "/memories/old/notes.txt").startswith("Successfully renamed")
    assert files.view("/memories").splitlines()[1:] == [
        "27B\t/memories",
        "27B\t/memories/old/",
        "27B\t/memories/old/notes.txt",
    ]
    assert files.delete("/memories/old") == "Successfully deleted /memories/old"
    assert files.view("/memories").splitlines()[1:] == ["0B\t/memories"]


@pytest.mark.parametrize("content", ["", " ", "\n", "a", "a\n", "a\r\nb", "\ta\n\n\n", "é漢🍜\n", "long " * 300_000])
def test_a_file_holds_exactly_what_was_written(files, content):
    files.create("/memories/f", content)
    assert files._file("/memories/f")[1] == content
    if content:
        files.str_replace("/memories/f", content, content + "x")
        assert files._file("/memories/f")[1] == content + "x"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "memories/a", "", "/", "/memoriesx", "/memories/../a", "/memories/a/../../b", "/memories/..",
        "/memories/%2e%2e/a", "/memories/%2E%2E%2Fa", "/memories/..\\a", "/memories/a\\..\\..\\b", "/memories/a\x00b",
        "/memories/a\nb", "/MEMORIES/a", None, 17,
    ],
)  # fmt: skip
def test_a_path_outside_of_memories_is_refused_by_every_verb(files, path):
    files.create("/memories/a", "text")
    for call in (
        lambda: files.view(path),
        lambda: files.create(path, "x"),
        lambda: files.str_replace(path, "a", "b"),
        lambda: files.insert(path, 0, "x"),
        lambda: files.delete(path),
        lambda: files.rename(path, "/memories/b"),
        lambda: files.rename("/memories/a", path),
    ):
        with pytest.raises(InputError):
            call()
    assert files.view("/memories").splitlines()[1:] == ["4B\t/memories", "4B\t/memories/a"]


def test_slashes_and_points_that_lead_nowhere_name_the_same_file(files):
    files.create("/memories//a/./b", "text")
    assert files.view("/memories/a/b") == files.view("/memories/a/b/").replace("b/ with", "b with")


def test_what_is_not_there_or_there_already_is_said(files):
    files.create("/memories/a", "x\nx\n")
    for call, message in (
        (lambda: files.view("/memories/b"), "The path /memories/b does not exist"),
        (lambda: files.delete("/memories/b"), "The path /memories/b does not exist"),
        (lambda: files.rename("/memories/b", "/memories/c"), "The path /memories/b does not exist"),
        (lambda: files.str_replace("/memories/b", "x", "y"), "does not exist"),
    ):
        with pytest.raises(NotFoundError, match=message):
            call()
    for call, message in (
        (lambda: files.create("/memories/a", "y"), "File /memories/a already exists"),
        (lambda: files.create("/memories/a/b", "y"), "/memories/a is a file"),
        (lambda: files.create("/memories", "y"), "is a directory"),
        (lambda: files.str_replace("/memories/a", "z", "y"), "did not appear verbatim"),
        (lambda: files.str_replace("/memories/a", "", "y"), "did not appear verbatim"),
        (lambda: files.str_replace("/memories/a", "x", "y"), "in lines: 1, 2"),
        (lambda: files.str_replace("/memories", "x", "y"), "is not a file"),
        (lambda: files.insert("/memories/a", 3, "y"), r"range \[0, 2\]"),
        (lambda: files.insert("/memories/a", -1, "y"), r"range \[0, 2\]"),
        (lambda: files.delete("/memories"), "Cannot delete"),
        (lambda: files.rename("/memories", "/memories/b"), "Cannot rename"),
        (lambda: files.rename("/memories/a", "/memories/a"), "already exists"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_a_directory_is_moved_whole_and_not_into_itself(files):
    for name in ("a", "b/c", "b/d/e"):
        files.create(f"/memories/dir/{name}", name)
    with pytest.raises(InputError, match="into itself"):
        files.rename("/memories/dir", "/memories/dir/b/f")
    files.rename("/memories/dir", "/memories/new")
    assert "/memories/dir" not in files.view("/memories")
    assert files.view("/memories/new/b/d/e").endswith("\tb/d/e")


def test_two_levels_are_shown_in_order_and_hidden_files_are_not(files):
    for name in ("b.txt", "a/x/deep/deeper.txt", "a.txt", "a/.hidden", ".secret/key", "a/y.txt"):
        files.create(f"/memories/{name}", "x" * 1536)
    assert files.view("/memories").splitlines() == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:",
        "6K\t/memories",
        "3K\t/memories/a/",
        "1.5K\t/memories/a/x/",
        "1.5K\t/memories/a/y.txt",
        "1.5K\t/memories/a.txt",
        "1.5K\t/memories/b.txt",
    ]


def test_a_call_of_the_model_is_run_as_it_comes(files):
    assert "created" in files.run({"command": "create", "path": "/memories/a", "file_text": "text"})
    assert files.run({"command": "view", "path": "/memories/a", "view_range": None}).endswith("\ttext")
    for call in (
        {"command": "copy", "path": "/memories/a"},
        {"command": "view"},
        {},
        {"command": "view", "where": "/"},
    ):
        with pytest.raises(InputError):
            files.run(call)


def test_files_of_users_are_apart_and_the_memory_finds_them(files):
    files.create("/memories/boat.md", "The boat is called Petrel.")
    other = MemoryFiles(files.memory, user="bob")
    assert other.view("/memories").splitlines()[1:] == ["0B\t/memories"]
    [hit] = files.memory.search("what is the boat called?", user="ana")
    assert hit.unit.text == "The boat is called Petrel."
    files.clear()
    assert not files.memory.search("what is the boat called?", user="ana").hits


def test_every_change_of_a_file_is_a_version(files):
    files.create("/memories/a", "one")
    files.str_replace("/memories/a", "one", "two")
    files.rename("/memories/a", "/memories/b")
    unit, _ = files._file("/memories/b")
    assert [version.text for version in files.memory.history(unit.id, user="ana")] == ["one", "two", "two"]


def test_without_the_sdk_its_tool_says_what_to_install(files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "anthropic.lib.tools", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[anthropic\]'"):
        anthropic.memory_tool(files.memory, user="ana")


@pytest.mark.parametrize(
    "command",
    [
        None, [], "view", {"command": ["view"]}, {"command": "view", "path": A, "view_range": 5},
        {"command": "view", "path": A, "view_range": ["1", "2"]},
        {"command": "view", "path": A, "view_range": [1, 2, 3]},
        {"command": "str_replace", "path": A, "old_str": 5}, {"command": "insert", "path": A, "insert_line": "1"},
        {"command": "create", "path": 5, "file_text": "x"}, {"command": "__init__"}, {5: 6, "command": "view"},
    ],
)  # fmt: skip
def test_whatever_a_model_sends_is_done_or_an_input_error_that_it_can_read(files, command):
    files.create(A, "one\ntwo\n")
    with pytest.raises(InputError):
        files.run(command)
    assert files.view(A).endswith("     1\tone\n     2\ttwo\n     3\t")
