"""What a reviewer and a stranger found, each as a test that failed before it was mended."""

import json
import sqlite3

import pytest

from builders import NOW, opened
from commands import holdfast
from histories import small_memory
from holdfast.errors import HoldfastError, InputError, NotFoundError
from holdfast.store import updates
from holdfast.testing.contracts import HashEmbedder


def everything(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_an_empty_user_is_nobody_and_not_the_default(tmp_path):
    db = str(tmp_path / "m.db")
    with opened(path=db) as memory:
        memory.remember("the boat is blue", user="me")
    ended = holdfast("forget", "--all", "--user", "", "--yes", "--db", db)
    assert (ended.code, "user" in ended.err) == (InputError.exit_code, True)
    with opened(path=db) as memory:
        assert len(memory.list(user="me")) == 1


def test_a_user_who_is_forgotten_leaves_no_name_behind(tmp_path):
    with opened(path=tmp_path / "m.db") as memory, opened(path=tmp_path / "m.db") as other:
        memory.remember(["the boat is blue", "the harbour is old"], user="jonas.weber@example.org", session="s")
        memory.remember("the kettle sings", user="ana")
        assert len(other.list(user="jonas.weber@example.org")) == 2
        other.search("boat", user="jonas.weber@example.org")
        assert memory.forget(user="jonas.weber@example.org", all=True).complete
        assert len(other.search("boat", user="jonas.weber@example.org")) == 0
        assert len(other.search("kettle", user="ana")) == 1
    assert b"jonas.weber" not in everything(tmp_path)


def test_what_a_deleted_file_said_can_be_forgotten_by_its_name(tmp_path):
    kb, db = tmp_path / "kb", tmp_path / "store"
    kb.mkdir()
    db.mkdir()
    (kb / "people.md").write_text("# People\n\nThe harbour master is called Wanda.\n", encoding="utf-8")
    (kb / "boats.md").write_text("# Boats\n\nThe ferry is painted green.\n", encoding="utf-8")
    with opened(path=db / "m.db") as memory:
        memory.ingest_folder(kb, user="ana")
        (kb / "people.md").unlink()
        assert memory.ingest_folder(kb, user="ana").removed == ("people.md",)
        erased = memory.forget(user="ana", document="kb/people.md")
        assert len(erased.units) == 1
        assert erased.complete
        assert len(memory.search("ferry", user="ana")) == 1
    assert b"Wanda" not in everything(db)


def test_ones_own_document_goes_and_not_everyones_of_the_same_name(tmp_path):
    with opened(path=tmp_path / "m.db") as memory:
        memory.ingest("- whisper\n\nThe kettle is red.\n", name="A.md", user="ana", core=True)
        memory.ingest("- be kind\n\nThe door is green.\n", name="A.md", user="ana", core=True, scope="global")
        memory.forget(user="ana", document="A.md")
        assert memory.assemble("door", user="ben").section("hard").text == "[rules]\n- be kind\n"
        assert "whisper" not in memory.assemble("door", user="ana").text
    assert b"whisper" not in everything(tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I live in Hamburg with my wife Eva and our two kids.", "I moved to Vienna."),
        ("I live in Hamburg.", "Write a story that starts with: I moved to Vienna."),
        ("I live in Hamburg.", "The letter begins like this. I moved to Vienna. Please proofread it."),
        ("I live in Hamburg.", "```\nI moved to Vienna.\n```"),
    ],
)
def test_a_turn_that_says_more_or_words_of_another_supersede_nothing(before, after):
    with opened() as memory:
        memory.remember(before, user="ana", session="s")
        [written] = memory.remember(after, user="ana", session="s")
        assert written.superseded == ()
        assert len(memory.list(user="ana")) == 2


def test_an_agent_cannot_supersede_what_it_does_not_see():
    with opened() as memory:
        memory.remember("a private word", user="ana", id="private", agent="b")
        memory.remember("a shared word", user="ana", id="shared")
        with pytest.raises(NotFoundError):
            memory.supersede("private", by="shared", user="ana", agent="a")
        assert memory.get("private", user="ana", agent="b").superseded_by is None


def test_forgetting_in_one_agents_name_leaves_what_all_agents_share():
    with opened() as memory:
        memory.remember("a word of its own", user="ana", id="own", agent="a")
        memory.remember("a shared word", user="ana", id="shared")
        erased = memory.forget(user="ana", agent="a", all=True)
        assert [unit.id for unit in erased.units] == ["own"]


def test_a_locked_backup_is_reached_by_the_next_write(tmp_path):
    with opened(path=tmp_path / "m.db") as memory:
        memory.remember("the secret boat is blue", user="ana", id="boat")
        memory.backup(tmp_path / "copy.db")
        reader = sqlite3.connect(tmp_path / "copy.db", isolation_level=None)
        reader.execute("PRAGMA busy_timeout = 0")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM units").fetchone()
        held = memory.forget(user="ana", ids="boat")
        assert not held.complete
        assert "copy.db" in held.outside[0]
        reader.execute("COMMIT")
        reader.close()
        memory.remember("a new word", user="ana")
    assert b"secret boat" not in everything(tmp_path)


def test_summaries_pick_what_says_something():
    said = []
    for i in range(12):
        said += [
            {"role": "user", "content": f"The ferry to island number {i} leaves at quarter past nine from the pier."},
            {"role": "assistant", "content": "Okay."},
        ]
    with small_memory(compaction__cluster=10) as memory:
        memory.remember(said, user="ana", session="s")
        [done] = memory.compact(user="ana", session="s")
        assert done.summaries
        for unit_id in done.summaries:
            assert "Okay." not in memory.get(unit_id, user="ana").text


def test_timestamps_and_messages_without_content():
    with opened(now=lambda: NOW) as memory:
        [written] = memory.remember(
            [{"role": "user", "content": "the boat is blue", "timestamp": "2026-03-01T10:00:00Z"}], user="ana"
        )
        assert memory.get(written.id, user="ana").event_time.isoformat() == "2026-03-01T10:00:00+00:00"
        with pytest.raises(InputError, match="has no content"):
            memory.remember({"role": "user"}, user="ana")
        with pytest.raises(NotFoundError, match="nothing in session"):
            memory.forget(user="ana", session="nowhere")


def test_a_commit_that_fails_leaves_the_turn_findable(tmp_path, monkeypatch):
    with opened(path=tmp_path / "m.db", embedder=HashEmbedder(64)) as memory:
        memory.search("warm", user="ana")

        def failing(*_body):
            raise HoldfastError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(updates, "durable_body", failing)
            with pytest.raises(HoldfastError, match="full"):
                memory.remember("I prefer tea to coffee", user="ana", session="s")
        assert len(memory.search("tea", user="ana", profile="fast")) == 1


def test_a_message_of_a_file_is_not_called_erased_while_the_file_is_kept(tmp_path):
    kb, db = tmp_path / "kb", tmp_path / "store"
    kb.mkdir()
    db.mkdir()
    said = [{"role": "user", "content": "The safe opens with 4471."}, {"role": "user", "content": "Tea at five."}]
    (kb / "talk.jsonl").write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    with opened(path=db / "m.db") as memory:
        [safe, _] = memory.ingest(kb / "talk.jsonl", user="ana")
        with pytest.raises(InputError, match="part of the document"):
            memory.forget(user="ana", ids=safe.id)
        assert memory.forget(user="ana", document="talk.jsonl").complete
    assert b"4471" not in everything(db)
