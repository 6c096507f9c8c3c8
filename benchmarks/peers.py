"""The lexical engines that Holdfast is measured beside, each set up the way its own documentation advises."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np

from holdfast.language.lexical import STOP_WORDS

# `search` with the hybrid profile returns at most this many.
TOP = 20


class Bm25s:
    """bm25s with its numpy backend, on Holdfast's own stems: no word is analysed twice, and both index the same."""

    def __init__(self, documents: Sequence[Sequence[str]], k1: float, b: float) -> None:
        self._index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        self._index.index([list(terms) for terms in documents], show_progress=False)
        self._top = min(TOP, len(documents))

    def search(self, terms: Sequence[str]) -> list[int]:
        """Return the places of the best documents."""
        found, _ = self._index.retrieve([list(terms)], k=self._top, show_progress=False, backend_selection="numpy")
        return [int(place) for place in found[0]]

    def search_selecting(self, terms: Sequence[str]) -> list[int]:
        """Return the same from bm25s's scores, choosing the best among the documents that have one.

        `retrieve` lets numpy choose among all, and numpy is slow when most scores are equal, as the zeros are.
        This is what its scoring could do with another selection: the hardest opponent, though nobody ships it.
        """
        scores = self._index.get_scores(list(terms))
        places = np.flatnonzero(scores)
        top = min(self._top, len(places))
        best = places[np.argpartition(scores[places], len(places) - top)[len(places) - top :]]
        return [int(place) for place in best[np.argsort(-scores[best], kind="stable")]]


class Fts5:
    """SQLite's full-text index with the porter tokenizer, contentless, in a file; the best by its own bm25()."""

    def __init__(self, texts: Sequence[str], path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute("CREATE VIRTUAL TABLE turns USING fts5(text, content='', tokenize='porter')")
        with self._connection:
            self._connection.executemany("INSERT INTO turns (rowid, text) VALUES (?, ?)", enumerate(texts))

    def search(self, match: str) -> list[int]:
        """Return the row ids of the best documents."""
        query = "SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?"
        return [rowid for (rowid,) in self._connection.execute(query, (match, TOP))]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def match_any(question: str) -> str:
    """Return a MATCH expression for any word of the question; function words would make it several times slower."""
    words = dict.fromkeys(question.lower().rstrip("?").split())
    return " OR ".join(f'"{word}"' for word in words if word not in STOP_WORDS)
