"""Posting lists in one packed block: which places hold a term, and how often.

New postings collect in a small tail that is folded into the block when it has grown by a quarter, so that adding
stays linear.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import KeysView, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.store.sqlite.index_file import pack_words, unpack_words
from holdfast.values import dataclass

# Below this the tail is not worth folding; above it, folding at a quarter keeps the total work linear.
_SMALL_TAIL = 4096
_TAIL_SHARE = 0.25
# More terms than one question has; the lists are views of the block.
_MOST_ASKED = 256

Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Postings:
    """The places that hold one term, ascending, and how often."""

    places: Int32s
    counts: Int32s


_EMPTY = Postings(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))


class PostingLists:
    """The posting lists of several kinds of terms, each kind with a vocabulary of its own."""

    def __init__(self, kinds: int) -> None:
        self._vocabulary: list[dict[str, int]] = [{} for _ in range(kinds)]
        self._lists = 0
        self._starts = np.zeros(1, dtype=np.int64)
        self._block = _EMPTY
        self._tail: dict[int, tuple[array[int], array[int]]] = {}
        self._tail_size = 0
        self._asked: dict[str, list[tuple[int, Postings]]] = {}  # what was asked for since the last change

    @property
    def is_ready_to_fold(self) -> bool:
        """Return whether the tail has grown enough."""
        return self._tail_size > max(_SMALL_TAIL, _TAIL_SHARE * len(self._block.places))

    def append(self, kind: int, terms: Sequence[str], place: int) -> None:
        """Add the terms of a place, which is behind all others."""
        if not terms:  # most fields of most units are empty
            return
        self._asked.clear()
        counts, vocabulary = Counter(terms), self._vocabulary[kind]
        for term, count in counts.items():
            number = vocabulary.get(term)
            if number is None:
                number = vocabulary[term] = self._lists
                self._lists += 1
            entry = self._tail.get(number)
            if entry is None:
                entry = self._tail[number] = (array("i"), array("i"))
            entry[0].append(place)
            entry[1].append(count)
        self._tail_size += len(counts)

    def fold(self, alive: NDArray[np.bool_]) -> None:
        """Fold the tail into the block; postings of dead places leave, and the places that are left move up."""
        block_terms = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        held, added, times = array("q"), array("i"), array("i")
        for some, often in self._tail.values():
            held.append(len(some))
            added.extend(some)
            times.extend(often)
        tail_terms = np.repeat(np.array([*self._tail], dtype=np.int64), np.asarray(held))
        terms = np.concatenate([block_terms, tail_terms])
        places = np.concatenate([self._block.places, np.asarray(added, dtype=np.int32)])
        counts = np.concatenate([self._block.counts, np.asarray(times, dtype=np.int32)])
        if not alive.all():
            live = alive[places]
            terms, places, counts = terms[live], places[live], counts[live]
            places = (np.cumsum(alive) - 1).astype(np.int32)[places]
        # Stable: inside a term, block before tail, and both ascend.
        order = np.argsort(terms, kind="stable")
        self._starts = np.zeros(self._lists + 1, dtype=np.int64)
        np.cumsum(np.bincount(terms, minlength=self._lists), out=self._starts[1:])
        self._block = Postings(places[order], counts[order])
        self._tail, self._tail_size, self._asked = {}, 0, {}

    def find_all(self, kinds: int, term: str) -> list[tuple[int, Postings]]:
        """Return what `find` finds of a term in the first `kinds` kinds; one question asks for it several times."""
        if (known := self._asked.get(term)) is None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            lists = ((kind, self.find(kind, term)) for kind in range(kinds))
            known = self._asked[term] = [(kind, found) for kind, found in lists if found is not None]
        return known

    def find(self, kind: int, term: str) -> Postings | None:
        """Return the posting list of a term, dead places included; None when it was never held."""
        number = self._vocabulary[kind].get(term)
        if number is None:
            return None
        found = _EMPTY
        if number < len(self._starts) - 1:
            span = slice(self._starts[number], self._starts[number + 1])
            found = Postings(self._block.places[span], self._block.counts[span])
        if number in self._tail:
            places, counts = self._tail[number]
            found = Postings(
                np.concatenate([found.places, np.array(places, dtype=np.int32)]),
                np.concatenate([found.counts, np.array(counts, dtype=np.int32)]),
            )
        return found

    def terms(self, kind: int) -> KeysView[str]:
        """Return the terms that were ever held."""
        return self._vocabulary[kind].keys()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the folded lists as arrays, without terms that no living place has (law 16)."""
        held = np.diff(self._starts) > 0
        arrays: dict[str, NDArray[Any]] = {
            "starts": self._starts, "units": self._block.places, "counts": self._block.counts,
        }  # fmt: skip
        for kind, vocabulary in enumerate(self._vocabulary):
            known = {word: number for word, number in vocabulary.items() if held[number]}
            arrays[f"words {kind}"] = pack_words([*known])
            arrays[f"numbers {kind}"] = np.array([*known.values()], dtype=np.int64)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], kinds: int) -> PostingLists:
        """Read what `to_arrays` gave."""
        lists = cls(kinds)
        lists._starts = arrays["starts"]
        lists._block = Postings(arrays["units"], arrays["counts"])
        lists._vocabulary = [
            dict(zip(unpack_words(arrays[f"words {kind}"]), arrays[f"numbers {kind}"].tolist(), strict=True))
            for kind in range(kinds)
        ]
        lists._lists = len(lists._starts) - 1
        return lists
