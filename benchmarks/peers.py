"""What Holdfast is measured beside, each set up the way its own documentation advises, with the vectors given."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
# As many as are asked of every system, Holdfast included.
TOP = 10
FUNCTION_WORDS = frozenset(
    "the to i and a you it that of is in was my for on have me so be with but not are just this at we if what about"
    " from all they when your can would there how an or been he she had which some do us".split()
)


class Peer(Protocol):
    """A system that keeps texts and finds them again. Ids are places, counted from 0."""

    def add(self, start: int, texts: Sequence[str], vectors: Matrix) -> None:
        """Keep some texts, durably."""

    def finish(self) -> None:
        """Do what is left before the first question."""

    def search(self, question: str, vector: Matrix) -> list[int]:
        """Return the places of the best, whoever they belong to: the quickest that it can do."""


class SharedPeer(Peer, Protocol):
    """A peer that keeps many users in one place and can look for what one of them has said."""

    def search_own(self, question: str, vector: Matrix) -> list[int]:
        """Return the places of the best that belong to one user, as Holdfast always does."""


class Chroma:
    """chromadb in a folder: cosine, HNSW, defaults. It finds by vector alone."""

    def __init__(self, folder: Path) -> None:
        import chromadb

        quiet = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder), settings=quiet)
        cosine = {"hnsw": {"space": "cosine"}}
        self._collection = client.create_collection("memory", embedding_function=None, configuration=cosine)

    def add(self, start: int, texts: Sequence[str], vectors: Matrix) -> None:
        ids = [str(start + place) for place in range(len(texts))]
        self._collection.add(
            ids=ids, embeddings=vectors, documents=list(texts), metadatas=[{"user": "ada"} for _ in ids]
        )

    def finish(self) -> None:
        """Nothing is left."""

    def search(self, question: str, vector: Matrix) -> list[int]:  # noqa: ARG002 - no words are looked up
        return self._search(vector)

    def search_own(self, question: str, vector: Matrix) -> list[int]:  # noqa: ARG002 - no words are looked up
        return self._search(vector, where={"user": "ada"})

    def _search(self, vector: Matrix, **where: Any) -> list[int]:
        found = self._collection.query(query_embeddings=[vector], n_results=TOP, **where)
        return [int(each) for each in found["ids"][0]]


class Lance:
    """lancedb in a folder: exact vectors and its own full text, joined by reciprocal ranks."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("LANCE_LOG", "error")  # it warns at every question
        import lancedb
        import pyarrow as pa

        vector = pa.list_(pa.float32(), 384)
        schema = pa.schema([("id", pa.int64()), ("user", pa.string()), ("text", pa.string()), ("vector", vector)])
        self._table: Any = lancedb.connect(str(folder)).create_table("memory", schema=schema)

    def add(self, start: int, texts: Sequence[str], vectors: Matrix) -> None:
        rows = enumerate(zip(texts, vectors, strict=True), start)
        self._table.add([{"id": i, "user": "ada", "text": text, "vector": row} for i, (text, row) in rows])

    def finish(self) -> None:
        """Build the index of words and join the many small parts that adding left, which is no part of adding."""
        self._table.create_fts_index("text", stem=True, remove_stop_words=True, replace=True)
        self._table.optimize()

    def search(self, question: str, vector: Matrix) -> list[int]:
        return self._ids_of(self._ask(question, vector))

    def search_own(self, question: str, vector: Matrix) -> list[int]:
        return self._ids_of(self._ask(question, vector).where("user = 'ada'"))

    def _ask(self, question: str, vector: Matrix) -> Any:
        return self._table.search(query_type="hybrid").vector(vector).text(question.rstrip("?"))

    @staticmethod
    def _ids_of(asked: Any) -> list[int]:
        return [row["id"] for row in asked.limit(TOP).select(["id"]).to_list()]


class Bm25s:
    """bm25s in memory, with its own stems and stop words. It finds by words alone."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, start: int, texts: Sequence[str], vectors: Matrix) -> None:  # noqa: ARG002 - no vectors
        self._texts += texts

    def finish(self) -> None:
        import bm25s

        self._index = bm25s.BM25(method="lucene", backend="numpy")
        self._index.index(self._tokenize(self._texts), show_progress=False)

    def search(self, question: str, vector: Matrix) -> list[int]:  # noqa: ARG002 - no vectors
        words = self._tokenize([question])
        found, _ = self._index.retrieve(words, k=TOP, show_progress=False, backend_selection="numpy")
        return [int(place) for place in found[0]]

    @staticmethod
    def _tokenize(texts: list[str]) -> Any:
        import bm25s
        from Stemmer import Stemmer

        return bm25s.tokenize(texts, stemmer=Stemmer("english"), return_ids=False, show_progress=False)


class Sqlite:
    """A plain table with vectors as blobs and SQLite's full-text index beside it; cosine by numpy over all rows."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE turns (id INTEGER PRIMARY KEY, text TEXT, vector BLOB)")
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='porter')")
        self._vectors: list[Matrix] = []

    def add(self, start: int, texts: Sequence[str], vectors: Matrix) -> None:
        rows = [(start + i, text, row.tobytes()) for i, (text, row) in enumerate(zip(texts, vectors, strict=True))]
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO turns VALUES (?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", [row[:2] for row in rows])
        self._connection.execute("COMMIT")
        self._vectors.append(vectors)

    def finish(self) -> None:
        self._matrix = np.concatenate(self._vectors)

    def search(self, question: str, vector: Matrix) -> list[int]:
        near = np.argpartition(-(self._matrix @ vector), TOP)[:TOP].tolist()
        # Function words would make it several times slower.
        words = dict.fromkeys(word for word in question.lower().rstrip("?").split() if word not in FUNCTION_WORDS)
        match = " OR ".join(f'"{word}"' for word in words) or '"nothing"'
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        return [*near, *(rowid for (rowid,) in self._connection.execute(query, (match, TOP)))]
