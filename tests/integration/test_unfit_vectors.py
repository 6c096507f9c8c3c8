"""A vector that cannot be compared harms nobody: imports leave it out, questions pass over it, `reembed` mends it."""

import base64
import json
import sqlite3
import zlib
from hashlib import sha256

import numpy as np
import pytest

from builders import opened
from holdfast import Settings
from holdfast.cli import doctor
from holdfast.testing.contracts import HashEmbedder
from postgres_server import name_of

EMBEDDER = HashEmbedder(64)
GOOD = EMBEDDER.embed_query("a good one").astype("<f2").tobytes()
UNFIT = {
    "short": GOOD[:2],
    "odd": GOOD[:-1],
    "long": GOOD * 3,
    "empty": b"",
    "nan": np.full(64, np.nan, dtype="<f2").tobytes(),
    "infinite": np.full(64, np.inf, dtype="<f2").tobytes(),
}
EVERYONE = "everyone meets for lunch at noon"


def begin(memory, *, lunch=True):
    if lunch:
        memory.remember({"id": "lunch", "text": EVERYONE}, user="ana", scope="global")
    memory.remember({"id": "tea", "text": "ana likes tea"}, user="ana", session="s")
    memory.remember({"id": "lamp", "text": "bob has a blue lamp"}, user="bob", session="s")


def export_with(tmp_path, vector):
    """Return an export of everyone's unit alone, with a vector of somebody's choice."""
    with opened(embedder=EMBEDDER) as memory:
        begin(memory)
        memory.export(tmp_path / "whole.jsonl", all=True, vectors=True)
    heading, *rows = map(json.loads, (tmp_path / "whole.jsonl").read_text(encoding="utf-8").splitlines())
    [unit] = [row for row in rows if row.get("unit", {}).get("id") == "lunch"]
    unit["vectors"] = [base64.b64encode(vector).decode()]
    body = "".join(f"{json.dumps(row)}\n" for row in (heading, unit)).encode()
    end = {"documents": 0, "units": 1, "versions": 1, "sha256": sha256(body).hexdigest()}
    return body + json.dumps({"end": end}).encode()


def check_all_answers(memory):
    """Every user is answered by words and by meaning, with scores that are numbers and compose."""
    for user, text in (("ana", "ana likes tea"), ("bob", "bob has a blue lamp"), ("nobody", EVERYONE)):
        found = memory.search(text, user=user, explain=True, limit=10)
        assert text in [hit.unit.text for hit in found]
        assert all(hit.score == hit.score and hit.contributions.compose() == hit.score for hit in found)
        assert memory.assemble(text, user=user, session="s", budget=300).text
        memory.remember(f"{user} says that {text} again", user=user, session="s")
        memory.compact(user=user, session="s")
        memory.why(text, "lunch", user=user)


def check_import(path, tmp_path, vector):
    with opened(path=path, embedder=EMBEDDER) as memory:
        begin(memory, lunch=False)
        report = memory.import_(export_with(tmp_path, vector))
        assert (report.added, report.complete) == (1, True)
        assert ["64 finite numbers" in warning for warning in report.warnings] == [True]
        [cosine] = [hit.cosine for hit in memory.search(EVERYONE, user="bob") if hit.unit.id == "lunch"]
        assert cosine > 0.99
        assert memory.store.verify() == []
    with opened(path=path, embedder=EMBEDDER) as memory:
        check_all_answers(memory)


@pytest.mark.parametrize("kind", UNFIT)
def test_an_import_makes_a_vector_again_that_cannot_be_compared(tmp_path, kind):
    check_import(tmp_path / "store.db", tmp_path, UNFIT[kind])


@pytest.mark.parametrize("kind", ["short", "nan"])
def test_an_import_into_a_database_does_so_too(database, tmp_path, kind):
    check_import(database, tmp_path, UNFIT[kind])


def test_without_an_embedder_the_vectors_of_a_file_are_as_long_as_most(tmp_path):
    with opened(path=tmp_path / "store.db") as memory:
        report = memory.import_(export_with(tmp_path, UNFIT["nan"]))
        assert (report.added, len(report.warnings)) == (1, 1)
        assert memory.stats(user="ana", whole=True).waiting == 1


def check_mending(path, plant):
    """A store of an earlier version may hold such a vector already."""
    with opened(path=path, embedder=EMBEDDER) as memory:
        begin(memory)
        memory.remember({"id": "noon", "text": "the bell rings at noon"}, user="ana", scope="global")
    plant()
    with opened(path=path, embedder=EMBEDDER) as memory:
        [problem] = memory.store.verify()
        assert "vector of unit row" in problem.what
        assert "reembed" in problem.remedy
        check_all_answers(memory)
        assert not any(hit.cosine for hit in memory.search("lunch", user="bob") if hit.unit.id == "lunch")
        assert memory.reembed() == 0
        assert memory.store.verify() == []
        [cosine] = [hit.cosine for hit in memory.search(EVERYONE, user="bob") if hit.unit.id == "lunch"]
        assert cosine > 0.99


@pytest.mark.parametrize("kind", UNFIT)
def test_a_stored_vector_that_cannot_be_compared_is_passed_over_named_and_mended(tmp_path, kind):
    path = tmp_path / "store.db"

    def plant():
        _plant(path, UNFIT[kind])

    check_mending(path, plant)


def test_one_in_a_database_is_passed_over_named_and_mended_too(database, postgres):
    def plant():
        checksum = zlib.crc32(np.ones(1, dtype="<f2").tobytes())
        with postgres.connect(name_of(database)) as connection:
            connection.execute(
                "UPDATE holdfast.vectors SET vector = '[1]', checksum = %s WHERE unit_key = "
                "(SELECT key FROM holdfast.units WHERE id = 'lunch')",
                (checksum,),
            )

    check_mending(database, plant)


def test_a_damaged_vector_is_made_again(tmp_path):
    path = tmp_path / "store.db"
    with opened(path=path, embedder=EMBEDDER) as memory:
        begin(memory)
    _plant(path, GOOD, checksum=1)
    with opened(path=path, embedder=EMBEDDER) as memory:
        assert len(memory.store.verify()) == 1
        assert memory.reembed() == 0
        assert memory.store.verify() == []
        check_all_answers(memory)


def test_a_copy_leaves_a_vector_behind_that_is_none(tmp_path):
    path = tmp_path / "store.db"
    with opened(path=path, embedder=EMBEDDER) as memory:
        begin(memory)
    _plant(path, UNFIT["nan"])
    with opened(path=path, embedder=EMBEDDER) as memory, opened(embedder=EMBEDDER) as other:
        memory.export(tmp_path / "e.jsonl", all=True, vectors=True)
        other.import_(tmp_path / "e.jsonl")
        check_all_answers(other)
        assert other.store.verify() == []


@pytest.mark.slow
def test_doctor_names_a_vector_that_cannot_be_compared(tmp_path):
    path = tmp_path / "store.db"
    with opened(path=path, embedder=EMBEDDER) as memory:
        begin(memory)
    _plant(path, UNFIT["infinite"])
    [check] = [one for one in doctor.examine(str(path), Settings()) if str(path) in one.name]
    assert not check.passed
    assert "is not made of finite numbers: run `holdfast reembed`" in check.detail


def _plant(path, vector, checksum=None):
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE vectors SET vector = ?, checksum = ? WHERE unit_key = (SELECT key FROM units WHERE id = 'lunch')",
            (vector, zlib.crc32(vector) if checksum is None else checksum),
        )
    connection.close()
