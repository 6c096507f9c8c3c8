"""Nothing is analysed twice: what is derived from a unit's words is kept with it, and holds for these words alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast.openers
from builders import NOW
from histories import small_memory
from holdfast.store.sqlite.analyses import pack_analysis, unpack_analysis
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import FIELDS, Analysis, Fact

TOLD = [f"Berth {number} of the harbour needs a new rope before {number % 28 + 1} May." for number in range(40)]
QUESTIONS = ("Which berth needs a rope?", "What is due before 3 May?", "berth 17")
WORDS = st.text(st.characters(), min_size=1, max_size=12)
FACTS = st.builds(Fact, WORDS, WORDS, WORDS, st.floats(0, 1))


@pytest.fixture
def analysed(monkeypatch):
    """Return the texts that were analysed since the list was last emptied."""
    seen, analyse = [], holdfast.openers.analyse

    def watch(unit, settings):
        seen.append(unit.text)
        return analyse(unit, settings)

    monkeypatch.setattr(holdfast.openers, "analyse", watch)
    return seen


def opened(path, **settings):
    return small_memory(path, embedder=HashEmbedder(64), now=NOW, **settings)


def written(path):
    """Write a store, and leave it as a kill would: its index is not saved."""
    memory = opened(path)
    memory.remember([{"role": "user", "content": text} for text in TOLD], user="ana", session="s")
    return memory


def answers(memory):
    return [[(hit.unit.id, hit.score) for hit in memory.search(asked, user="ana")] for asked in QUESTIONS]


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT unit_key, analysis FROM analyses ORDER BY unit_key").fetchall()


@given(
    st.tuples(*[st.lists(WORDS, max_size=4).map(tuple)] * len(FIELDS)),
    st.floats(0, 1),
    st.lists(WORDS, max_size=3).map(tuple),
    st.lists(FACTS, max_size=3).map(tuple),
    st.integers(0, 7),
)
def test_an_analysis_comes_back_as_it_was(terms, density, names, facts, stating):
    analysis = Analysis(terms, density, names, names[::-1], facts, stating)
    assert unpack_analysis(pack_analysis(analysis)) == analysis


def test_opening_without_an_index_analyses_nothing_and_answers_the_same(tmp_path, analysed):
    before = written(tmp_path / "a.db")
    said = answers(before)
    analysed.clear()
    with opened(tmp_path / "a.db") as memory:
        assert answers(memory) == said
    assert analysed == []


def test_a_damaged_analysis_is_made_again_and_written_with_the_next_write(tmp_path, analysed):
    path = tmp_path / "a.db"
    with written(path) as before:
        said, kept = answers(before), rows(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE analyses SET analysis = x'5b5d' WHERE unit_key % 2")
    analysed.clear()
    with opened(path) as memory:
        assert answers(memory) == said
        assert sorted(analysed) == sorted(TOLD[::2])
        memory.remember("The pier is closed.", user="ana", session="s")
        assert rows(path)[: len(kept)] == kept


def test_another_way_of_deriving_does_not_read_what_was_kept(tmp_path, analysed):
    path = tmp_path / "a.db"
    written(path).close()
    analysed.clear()
    for expected in (len(TOLD), 0):
        with opened(path, analysis__aliases=("harbor = harbour",)) as memory:
            answers(memory)
            assert len(analysed) == expected
            memory.remember("ok", user="ben")  # what waits is written with it
            analysed.clear()


def test_new_words_have_their_own_analysis(tmp_path, analysed):
    path = tmp_path / "a.db"
    with written(path) as memory:
        unit = memory.list(user="ana", limit=1)[0]
        memory.update(unit.id, user="ana", text="The lighthouse is dark.")
        said = memory.search("lighthouse", user="ana")[0].score
    analysed.clear()
    with opened(path) as memory:
        assert memory.search("lighthouse", user="ana")[0].score == said
    assert analysed == []


def test_a_promoted_turn_keeps_its_analysis(tmp_path, analysed):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.remember("I prefer the harbour at dawn and I hate the noise of the ferry.", user="ana", session="s")
        assert memory.list(user="ana")[0].scope == "user"
    analysed.clear()
    with opened(path) as memory:
        assert memory.search("harbour", user="ana")
    assert analysed == []


def test_what_is_forgotten_leaves_no_analysis(tmp_path):
    path = tmp_path / "a.db"
    with written(path) as memory:
        unit = memory.list(user="ana", limit=1)[0]
        assert memory.forget(ids=unit.id, user="ana").complete
        assert len(rows(path)) == len(TOLD) - 1
        assert memory.forget(user="ana", all=True).complete
        assert rows(path) == []
    assert b"berth" not in Path(path).read_bytes()
