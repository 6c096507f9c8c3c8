"""Stores of an earlier schema: what they hold keeps its ids, its documents and its conversations."""

import contextlib
import re
import sqlite3
import zlib
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from builders import NOW, opened
from holdfast.errors import StoreError
from holdfast.store.sqlite import migrate
from holdfast.store.sqlite.migrate import migrations
from holdfast.testing.contracts import HashEmbedder

OWNER = {"user": "ana", "session": "s1"}
TALK = ["yes", "no", "yes"]


def made_older(path, schema):
    """Turn a store back into one of an earlier schema: what later migrations added is taken out again."""
    with sqlite3.connect(path) as connection:
        for index in ("units_of_document", "units_in_conversation"):
            connection.execute(f"DROP INDEX {index}")
        made_wider(connection)
        connection.execute("DROP TABLE version_vectors")
        connection.execute("ALTER TABLE units DROP COLUMN document")
        connection.execute("ALTER TABLE documents DROP COLUMN given_to")
        connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()


def made_wider(connection):
    """Give vectors and those of versions back their 32-bit floats and the names of their spaces."""
    connection.create_function("widened", 1, lambda data: np.frombuffer(data, "<f2").astype("<f4").tobytes())
    connection.create_function("crc32", 1, zlib.crc32)
    scripts = dict(migrations())
    for table, number in (("vectors", 2), ("version_vectors", 6)):
        connection.execute(f"ALTER TABLE {table} RENAME TO half_{table}")
        start = scripts[number].index(f"CREATE TABLE {table}")
        connection.execute(scripts[number][start : scripts[number].index(";", start)])
        connection.execute(
            f"INSERT INTO {table} (unit_key, space, version, vector, checksum) "
            f"SELECT unit_key, name, version, widened(vector), crc32(widened(vector)) FROM half_{table} "
            f"JOIN spaces ON key = space"
        )
        connection.execute(f"DROP TABLE half_{table}")
    connection.execute("DROP TABLE spaces")
    connection.execute("DROP TABLE funnels")
    connection.execute("DROP TRIGGER erase_analysis")
    connection.execute("DROP TABLE analyses")


def named_as_before(document, said):
    """Return the id that the pieces of documents had."""
    return f"{document}#{said}"


@pytest.fixture
def older(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.documents.parser.piece_id", named_as_before)
    path, core = tmp_path / "a.db", tmp_path / "AGENTS.md"
    core.write_text("- be kind\n\nThe kettle is on the shelf.\n", encoding="utf-8")
    lines = '{"role": "user", "content": "The gate was shut."}\n'
    units = '[{"id": "faq#1", "claim": "The gate is green."}]'
    with opened(path=path) as memory:
        memory.remember(TALK, **OWNER)
        memory.remember("my own note", id="C#1", user="ana")
        memory.ingest("The first is of harbours.\n", name="C", user="ana")
        memory.ingest("The second is of mountains.\n", name="C#guide", user="ana")
        memory.ingest(units, name="facts.json", user="ana")
        memory.ingest(lines, name="talk.jsonl", user="ana")
        memory.ingest(core, user="ana", core=True)
    made_older(path, 4)
    return path


def ids(memory):
    return {unit.text: unit.id for unit in memory.list(user="ana", limit=None)}


def test_ids_stay_and_a_conversation_goes_on(older):
    with opened(path=older, now=NOW + timedelta(days=1)) as memory:
        kept = ids(memory)
        done = memory.remember([*TALK, "maybe"], **OWNER)
        assert [one.status for one in done] == ["duplicate"] * 3 + ["added"]
        assert {**kept, "maybe": done[-1].id} == ids(memory)
        assert [one.status for one in memory.remember("yes", **OWNER)] == ["added"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("C", "The first is of harbours."),
        ("C#guide", "The second is of mountains."),
        ("facts.json", "The gate is green."),
        ("talk.jsonl", "The gate was shut."),
        ("AGENTS.md", "The kettle is on the shelf."),
    ],
)
def test_each_unit_is_part_of_its_document(older, name, text):
    with opened(path=older) as memory:
        before = set(ids(memory))
        memory.forget(document=name, user="ana")
        assert before - set(ids(memory)) == {text}


def test_what_a_document_said_before_is_part_of_it(tmp_path):
    path, folder = tmp_path / "a.db", tmp_path / "folder"
    folder.mkdir()
    (folder / "gone.md").write_text("The ferry is slow.\n", encoding="utf-8")
    with opened(path=path) as memory:
        memory.ingest('[{"id": "faq#1", "claim": "The gate is green."}]', name="facts.json", user="ana")
        memory.ingest('[{"id": "faq#2", "claim": "The gate is red."}]', name="facts.json", user="ana")
        memory.ingest_folder(folder, user="ana")
        (folder / "gone.md").unlink()
        memory.ingest_folder(folder, user="ana")
    made_older(path, 4)
    with opened(path=path) as memory:
        assert {unit.text for unit in memory.forget(document="facts.json", user="ana").units} == {
            "The gate is green.",
            "The gate is red.",
        }
        assert [unit.text for unit in memory.forget(document="folder/gone.md", user="ana").units] == [
            "The ferry is slow."
        ]


@pytest.mark.parametrize("name", ["issue#12", "C#2", "facts.json#2"])
@pytest.mark.parametrize("ttl", [None, 3600])
def test_a_unit_that_somebody_remembered_is_part_of_no_document(tmp_path, name, ttl):
    path = tmp_path / "a.db"
    with opened(path=path) as memory:
        memory.ingest("The first is of harbours.\n", name="C", user="ana")
        memory.ingest('[{"id": "faq#1", "claim": "The gate is green."}]', name="facts.json", user="ana")
        memory.remember({"id": name, "claim": "The parser hangs."}, user="ana", ttl=ttl)
    made_older(path, 4)
    with opened(path=path) as memory:
        assert memory.remember({"id": name, "claim": "It hangs on tabs."}, user="ana")[0].status == "updated"
        assert memory.forget(ids=name, user="ana").documents == ()


def test_files_are_followed_again_when_they_are_ingested_again(older, tmp_path):
    core = tmp_path / "AGENTS.md"
    core.write_text("- be kinder\n", encoding="utf-8")
    with opened(path=older) as memory:
        context = memory.assemble("zeppelin", user="ana")
        assert "- be kind\n" in context.text
        assert "ingest the file again" in context.warnings[0]
        memory.ingest(core, user="ana", core=True)
        assert "- be kinder\n" in memory.assemble("zeppelin", user="ana").text


def test_a_new_store_and_an_older_one_end_with_the_same_schema(older, tmp_path):
    def schema(path):
        connection = sqlite3.connect(path)
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        version = migrate.schema_version(connection)
        connection.close()
        return found, version

    opened(path=older).close()
    opened(path=tmp_path / "new.db").close()
    assert schema(older) == schema(tmp_path / "new.db")
    assert schema(older)[1] == migrations()[-1][0]


LINES = [
    f"the {thing} stands in the {place}" for thing in ("lamp", "oar", "net") for place in ("hall", "shed", "yard")
]


def of_wide_vectors(path, *, damaged=0):
    """Make a store whose vectors are 32-bit floats, of a present and of an earlier version."""
    with opened(path=path, embedder=HashEmbedder(64)) as memory:
        memory.remember([{"id": f"u{i}", "text": line} for i, line in enumerate(LINES)], user="ana")
        memory.update("u0", text="the lamp fell", user="ana")
        memory.search("lamp", user="ana")
    with sqlite3.connect(path) as connection:
        made_wider(connection)
        connection.execute("PRAGMA user_version = 6")
        connection.execute("UPDATE vectors SET checksum = checksum + 1 WHERE unit_key <= ?", (damaged,))
        wide = connection.execute("SELECT length(vector), typeof(space) FROM vectors").fetchone()
    connection.close()
    assert wide == (64 * 4, "text")


def found_in(memory):
    return [
        [(hit.unit.id, hit.score) for hit in memory.search(question, user="ana", **moment)]
        for question in ("a lamp in the hall", "who mends nets?")
        for moment in ({}, {"as_of": NOW})
    ]


def test_wide_vectors_become_half_as_long_and_find_what_they_found(tmp_path):
    older, fresh = tmp_path / "older.db", tmp_path / "fresh.db"
    of_wide_vectors(older)
    with opened(path=fresh, embedder=HashEmbedder(64)) as memory:
        memory.remember([{"id": f"u{i}", "text": line} for i, line in enumerate(LINES)], user="ana")
        memory.update("u0", text="the lamp fell", user="ana")
        expected = found_in(memory)
    with opened(path=older, embedder=HashEmbedder(64)) as memory:
        assert memory.stats(user="ana", whole=True).waiting == 0
        assert found_in(memory) == expected
        assert memory.store.verify() == []
    with sqlite3.connect(older) as connection:
        lengths = {
            row
            for table in ("vectors", "version_vectors")
            for row in connection.execute(f"SELECT length(vector), typeof(space) FROM {table}")
        }
    connection.close()
    assert lengths == {(64 * 2, "integer")}


def test_a_vector_that_was_damaged_before_is_still_known_to_be(tmp_path):
    of_wide_vectors(tmp_path / "a.db", damaged=2)
    with opened(path=tmp_path / "a.db", embedder=HashEmbedder(64)) as memory:
        assert len(memory.store.verify()) == 2


def test_a_file_that_a_migration_has_emptied_becomes_smaller(tmp_path):
    path = tmp_path / "a.db"
    with opened(path=path, embedder=HashEmbedder(2048)) as memory:
        memory.remember([f"line {i}" for i in range(60)], user="ana")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        made_wider(connection)
        connection.execute("PRAGMA user_version = 6")
        connection.execute("VACUUM")
    before = path.stat().st_size
    opened(path=path).close()
    assert path.stat().st_size < 0.7 * before


def test_pieces_of_an_earlier_version_stay_until_their_folder_is_ingested_again(tmp_path, monkeypatch):
    folder, page = tmp_path / "notes", "# Quay\n\nThe crane lifts ten tons.\n\nThe quay is lit by gas.\n"
    folder.mkdir()
    (folder / "quay.md").write_text(page, encoding="utf-8")
    (folder / "facts.json").write_text('[{"claim": "The gate is green."}]', encoding="utf-8")
    wanted = {"user": "ana", "include": ("*.md", "*.json")}
    with opened(path=tmp_path / "a.db") as memory:
        with monkeypatch.context() as earlier:
            earlier.setattr("holdfast.documents.parser.piece_id", named_as_before)
            earlier.setattr("holdfast.documents.pieces._join", lambda *_: None)
            assert memory.ingest_folder(folder, **wanted).units == 3
        assert memory.search("crane", user="ana")[0].unit.text == "The crane lifts ten tons."
        again = memory.ingest_folder(folder, **wanted)
        assert (again.changed, again.unchanged) == (("quay.md",), ("facts.json",))
        assert set(ids(memory)) == {
            "The crane lifts ten tons.\n\nThe quay is lit by gas.", "The gate is green.",
        }  # fmt: skip
        assert memory.ingest_folder(folder, **wanted).changed == ()


@pytest.mark.parametrize("schema", [number for number, _ in migrations()])
def test_a_store_of_every_schema_opens_and_has_the_tables_of_a_new_one(tmp_path, schema):
    path, fresh = tmp_path / "older.db", tmp_path / "fresh.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for name in ("halve", "crc32"):  # there is no vector yet
            connection.create_function(name, 1, lambda data: data)
        for number, script in migrations():
            if number <= schema:
                connection.executescript(script)
        connection.execute(f"PRAGMA application_id = {migrate.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {schema}")
    opened(path=fresh).close()
    with opened(path=path) as memory:
        memory.remember(TALK, **OWNER)
        assert len(memory.search("yes", user="ana")) == 2
        assert memory.store.verify() == []
    made = []
    for one in (path, fresh):
        with contextlib.closing(sqlite3.connect(one)) as connection:
            names = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY type, name"
            made.append((migrate.schema_version(connection), connection.execute(names).fetchall()))
    assert made[0] == made[1]


def test_the_guide_names_every_schema():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "upgrading.md").read_text(encoding="utf-8")
    named = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert named == [number for number, _ in migrations()]


def test_a_migration_that_fails_leaves_the_store_as_it_was(older, monkeypatch):
    size = older.stat().st_size
    monkeypatch.setattr(migrate, "migrations", lambda: (*migrations(), (99, "CREATE TABLE units (x);")))
    with pytest.raises(StoreError):
        opened(path=older)
    monkeypatch.undo()
    with contextlib.closing(sqlite3.connect(older)) as connection:
        assert migrate.schema_version(connection) == 4
    assert older.stat().st_size == size
    with opened(path=older) as memory:
        assert [unit.text for unit in memory.list(**OWNER, order="oldest") if unit.session] == TALK
