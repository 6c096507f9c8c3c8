"""Bad input gets one clear typed error that names the value and the remedy, and nothing is half-written."""

import contextlib
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from holdfast import (
    DamagedStoreError,
    FilterError,
    ForeignStoreError,
    InputError,
    Memory,
    NewerStoreError,
    NotFoundError,
    Settings,
    StoreError,
    UnknownProfileError,
)
from holdfast.store.sqlite.migrate import APPLICATION_ID

GOOD = {"role": "user", "content": "a good message"}
DEEP: dict = {}
_level = DEEP
for _ in range(50):
    _level["in"] = _level = {}

REFUSED = {
    "empty text": ("", {}, "blank"),
    "blank text": (" \n\t ", {}, "blank"),
    "blank in a list": ([GOOD, {"role": "user", "content": " "}], {}, "message 1"),
    "empty list": ([], {}, "empty"),
    "a number": (42, {}, "42"),
    "bytes": (b"abc", {}, "cannot be remembered"),
    "NUL": ("before\x00after", {}, "NUL character at 6"),
    "lone surrogate": ("ab\ud800", {}, "U+D800 at 2"),
    "10 MB": ("x" * 10_000_000, {}, "10,000,000 bytes"),
    "unknown message role": ([GOOD, {"role": "wizard", "content": "hi"}], {}, "'wizard'"),
    "content of a wrong type": ({"role": "user", "content": 7}, {}, "7"),
    "unknown unit field": ({"claim": "x", "colour": "red"}, {}, "'colour'"),
    "claim and procedure": ({"claim": "x", "procedure": "y"}, {}, "not both"),
    "claim with role Procedure": ({"role": "Procedure", "claim": "x"}, {}, "procedure"),
    "unknown role": ({"claim": "x", "role": "Poem"}, {}, "'Poem'"),
    "half a fact": ({"claim": "x", "subject": "tea"}, {}, "subject, relation and object"),
    "confidence beyond 1": (
        {"claim": "x", "subject": "a", "relation": "uses", "object": "b", "confidence": 1.5}, {}, "1.5",
    ),
    "unknown scope": ("hi", {"scope": "galaxy"}, "'galaxy'"),
    "session scope without session": ("hi", {"scope": "session"}, "needs a session"),
    "missing user": ("hi", {"user": None}, "user is missing"),
    "blank user": ("hi", {"user": "  "}, "user is missing or blank"),
    "long user": ("hi", {"user": "u" * 300}, "300 characters"),
    "user with NUL": ("hi", {"user": "a\x00b"}, "NUL"),
    "naive date": ("hi", {"at": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001
    "naive text date": ("hi", {"at": "2026-01-01T10:00:00"}, "no time zone"),
    "not a date": ("hi", {"at": "yesterday"}, "'yesterday'"),
    "absurd date": ("hi", {"at": "0044-03-15T12:00:00Z"}, "outside 1900"),
    "a year as a number": ("hi", {"at": 2026}, "neither seconds nor milliseconds since 1970"),
    "a day as a number": ("hi", {"at": 20_260_403}, "neither seconds nor milliseconds since 1970"),
    "microseconds": ("hi", {"at": 1_700_000_000_000_000}, "neither seconds nor milliseconds since 1970"),
    "naive date in a message": ([GOOD, {**GOOD, "at": "2026-01-01T10:00"}], {}, "message 1"),
    "a session that is no text": ({**GOOD, "conversation_id": 42}, {}, "conversation_id 42 is not text"),
    "a date of no kind": ({**GOOD, "created_at": "8 May, 2023"}, {}, "created_at = '8 May, 2023' is not a time"),
    "a field and a key of metadata": (
        {**GOOD, "mood": "calm", "metadata": {"mood": "cross"}}, {}, "'mood' is both a field and a key of metadata",
    ),
    "metadata not an object": ("hi", {"metadata": ["x"]}, "not a JSON object"),
    "metadata with a set": ("hi", {"metadata": {"x": {1, 2}}}, "not JSON"),
    "metadata with NaN": ("hi", {"metadata": {"x": float("nan")}}, "nan"),
    "metadata with a number key": ("hi", {"metadata": {1: "x"}}, "keys are text"),
    "metadata with a surrogate": ("hi", {"metadata": {"x": "\udfff"}}, "surrogate"),
    "metadata too deep": ("hi", {"metadata": DEEP}, "nested"),
    "metadata too large": ("hi", {"metadata": {"x": "y" * 70_000}}, "ingest.max_metadata_bytes"),
    "an integer beyond 64 bits": ("hi", {"metadata": {"x": 2**70}}, "not JSON"),
    "negative ttl": ("hi", {"ttl": -5}, "-5"),
    "NaN ttl": ("hi", {"ttl": float("nan")}, "nan"),
    "zero ttl": ("hi", {"ttl": timedelta(0)}, "positive"),
    "one id for a list": ([GOOD, GOOD], {"id": "x"}, "own id"),
    "blank id": ("hi", {"id": " "}, "id is missing or blank"),
    "unknown author": ("hi", {"author": "ghost"}, "'ghost'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_remembered_is_refused_whole(case):
    content, arguments, expected = REFUSED[case]
    with Memory.open(":memory:") as memory:
        with pytest.raises(InputError) as caught:
            memory.remember(content, **{"user": "ana", **arguments})
        assert expected in str(caught.value)
        assert len(str(caught.value)) < 400
        assert memory.stats(user="ana", whole=True).store_units == 0


def test_superseding_what_is_not_there_writes_nothing():
    with Memory.open(":memory:") as memory:
        with pytest.raises(NotFoundError, match="nobody"):
            memory.remember([GOOD, {"claim": "x", "supersedes": "nobody"}], user="ana")
        assert memory.stats(user="ana", whole=True).store_units == 0


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ({"query": "  "}, InputError, "blank"),
        ({"query": ""}, InputError, "blank"),
        ({"query": 7}, InputError, "7"),
        ({"query": [{"role": "assistant", "content": "x"}]}, InputError, "no user message"),
        ({"query": "x", "profile": "psychic"}, UnknownProfileError, "'psychic'; choose one of balanced, fast"),
        ({"query": "x", "user": None}, InputError, "user is missing"),
        ({"query": "x", "limit": 0}, InputError, "limit = 0"),
        ({"query": "x", "limit": True}, InputError, "limit = True"),
        ({"query": "x", "only_session": True}, InputError, "needs a session"),
        ({"query": "x", "reference_time": "2026-01-01T10:00"}, InputError, "no time zone"),
        ({"query": "x", "filters": []}, FilterError, "[]"),
        ({"query": "x", "filters": {"city": {"like": "L%"}}}, FilterError, "'like'"),
        ({"query": "x", "filters": {"and": {"city": "x"}}}, FilterError, "list of filters"),
        ({"query": "x", "filters": {"city": {"in": "Lisbon"}}}, FilterError, "takes a list"),
        ({"query": "x", "filters": {"event_time": {"gt": "noon"}}}, FilterError, "not a time"),
        ({"query": "x", "filters": {"a": {"gt": None}}}, FilterError, "numbers or text"),
        ({"query": "x", "filters": {"a": object()}}, FilterError, "cannot be compared"),
        ({"query": "x", "filters": {'a"b': 1}}, FilterError, "not a path"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(arguments, error, expected):
    with Memory.open(":memory:") as memory:
        memory.remember("x marks the spot", user="ana")
        with pytest.raises(error) as caught:
            memory.search(**{"user": "ana", **arguments})
        assert expected in str(caught.value)


def test_updating_nothing_or_nobody_is_refused():
    with Memory.open(":memory:") as memory:
        [written] = memory.remember("hello", user="ana")
        with pytest.raises(InputError, match="nothing to change"):
            memory.update(written.id, user="ana")
        with pytest.raises(NotFoundError, match="'nobody'"):
            memory.update("nobody", user="ana", text="x")
        with pytest.raises(NotFoundError):
            memory.update(written.id, user="ben", text="x")
        assert len(memory.history(written.id, user="ana")) == 1


# ------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    with Memory.open(folder / "good.db") as memory:
        turns = [f"the {n}th pebble lies on the long beach of the north" for n in range(300)]
        memory.remember(turns, user="ana", session="s")
    return folder


@pytest.fixture
def store(good, tmp_path):
    """Copy a store of many units, with all that lies beside it."""
    shutil.copytree(good, tmp_path, dirs_exist_ok=True)
    return tmp_path / "good.db"


def test_a_foreign_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ana, this is not a database. " * 10)
    before = path.read_bytes()
    with pytest.raises(ForeignStoreError, match=r"letter\.txt is not a Holdfast store"):
        Memory.open(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(ForeignStoreError, match="another program"):
        Memory.open(path)
    assert path.read_bytes() == before


def test_a_newer_store_is_refused(store):
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA user_version = 999")
    connection.commit()
    connection.close()
    with pytest.raises(NewerStoreError, match=r"schema 999.*upgrade"):
        Memory.open(store)


def test_a_truncated_store_is_reported(store):
    size = store.stat().st_size
    os.truncate(store, size // 2)
    with pytest.raises(DamagedStoreError), Memory.open(store) as memory:
        memory.search("pebble", user="ana")


def test_a_store_cut_inside_its_header_is_reported(store):
    os.truncate(store, 50)
    with pytest.raises(DamagedStoreError, match="50 bytes"):
        Memory.open(store)


def test_no_flipped_bit_gives_a_wrong_answer(store):
    """Every byte of a stored text is under a checksum: flip one, and reading it is an error, not a lie."""
    data = bytearray(store.read_bytes())
    place = data.index(b"the 7th pebble")
    data[place + 4] ^= 1
    store.write_bytes(data)
    with Memory.open(store) as memory:
        with pytest.raises(DamagedStoreError, match="checksum"):
            memory.search("pebble", user="ana")
        assert any("checksum" in problem.what for problem in memory.store.verify())


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("said", ["next", ["the kiln is hot", "next"]], ids=["a message", "a list"])
def test_no_message_is_compared_with_damaged_words(tmp_path, corrected, said):
    place = tmp_path / "m.db"
    with Memory.open(place) as memory:
        [kept] = memory.remember("the kiln is hot", user="ana", session="s")
        if corrected:
            memory.update(kept.id, user="ana", text="the kiln is cold")
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(f"UPDATE {'versions' if corrected else 'units'} SET body = replace(body, 'text', 'texu')")
        connection.commit()
    with Memory.open(place) as memory, pytest.raises(DamagedStoreError, match="checksum"):
        memory.remember(said, user="ana", session="s")


def test_random_damage_never_gives_a_wrong_answer(store, tmp_path):
    chance = random.Random(7)
    with Memory.open(store) as memory:
        texts = {unit.id: unit.text for unit in memory.list(user="ana", limit=None)}
    data = store.read_bytes()
    for attempt in range(60):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 3, 20))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path = tmp_path / f"damaged-{attempt}.db"
        path.write_bytes(damaged)
        with contextlib.suppress(StoreError), Memory.open(path) as memory:
            hits = memory.search("pebble beach", user="ana")
            assert all(texts.get(hit.unit.id) == hit.unit.text for hit in hits)


def test_a_missing_folder_and_a_folder_as_file_are_refused(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        Memory.open(tmp_path / "no" / "where.db")
    with pytest.raises(StoreError, match="is a folder"):
        Memory.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    assert "ReadOnlyStoreError" in as_ordinary_user(folder / "new.db")


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write anywhere")
def test_a_read_only_store_is_refused(store):
    store.chmod(0o444)
    store.parent.chmod(0o555)
    assert "ReadOnlyStoreError" in as_ordinary_user(store)


def as_ordinary_user(path):
    """Open a store as a user without special rights; return the name of the error."""
    program = (
        "import sys\nfrom holdfast import Memory, StoreError\n"
        "try:\n    Memory.open(sys.argv[1]).remember('x', user='ana')\n"
        "except StoreError as error:\n    print(type(error).__name__, error)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    if os.geteuid() == 0:
        for folder in path.parents:
            if folder.stat().st_uid == 0 and not folder.stat().st_mode & stat.S_IXOTH:
                folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    return done.stdout or done.stderr


def test_a_locked_store_says_busy(store):
    holder = sqlite3.connect(store)
    holder.execute("BEGIN IMMEDIATE")
    settings = Settings.load({"store.busy_timeout_ms": 1}, environ={})
    try:
        with Memory.open(store, settings=settings) as memory, pytest.raises(StoreError, match="busy_timeout_ms"):
            memory.remember("x", user="ana")
    finally:
        holder.close()


def test_a_new_store_is_private_and_marked_as_ours(tmp_path):
    path = tmp_path / "new.db"
    previous = os.umask(0)
    try:
        Memory.open(path).close()
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID


@pytest.mark.parametrize("path", ["a\0b", 5, "", "x" * 300], ids=["nul", "number", "empty", "long"])
def test_a_store_cannot_lie_at_an_impossible_path(path):
    with pytest.raises(InputError):
        Memory.open(path)
