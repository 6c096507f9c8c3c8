"""The reader: one model that reads a question with several turns together, in the order of time (C9).

Its input is one sequence: the question, then turn by turn a marker, who speaks and what they say; the longest turns
are cut. It says of each turn how well it answers what is asked, and whether it is of another time.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ReaderError
from holdfast.text.words import words
from holdfast.values import dataclass

Ids = list[int]

# Entries of the vocabulary, of which the last two were unused: a sequence begins, a part ends, turns are read
# together, a turn begins.
_BEGIN, _END, _TOGETHER, _TURN = 101, 102, 10, 11
# As it was trained: the whole sequence, the question and a speaker's name have at most so many tokens.
_LONGEST, _LONGEST_QUESTION, _LONGEST_SPEAKER = 512, 64, 16
_RANK, _OTHER_TIME = 0, 4  # of the five numbers that the model gives for each marker
# A context asks what a search has asked before, and `why` asks both; what is said of a few turns takes little room.
_KEPT = 64
# Of a longer turn only the beginning is looked through.
_MOST_TOKENS = 4096


class Turn(NamedTuple):
    """What the reader sees of a turn."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the reader says of turns that it read together.

    `rank` is how well each answers what is asked, among these; `other_time` how likely it is of another time.
    """

    rank: NDArray[np.float64]
    other_time: NDArray[np.float64]

    def take(self, places: Sequence[int] | NDArray[np.intp]) -> Judgement:
        """Return what it says of some of the turns, in that order."""
        return Judgement(self.rank[places], self.other_time[places])


class Reader:
    """A loaded model. What it says depends on the question and the turns alone; it is kept for the last few of them.

    What is kept are numbers under a checksum of the input, and none of its words (law 16).
    """

    def __init__(self, encode: Callable[[str], Ids], run: Callable[[Ids, Ids, Ids], NDArray[np.float32]]) -> None:
        self._encode, self._run = encode, run
        # A long turn is cut to where it shares other words than these with the question.
        self._plain = {token for word in words("query", "plain") for token in encode(word)}
        self._known: OrderedDict[bytes, Judgement] = OrderedDict()

    def judge(self, question: str, turns: Sequence[Turn]) -> Judgement:
        """Read the turns, which come in the order of time."""
        said = [(self._encode(f"{turn.speaker}:"), self._encode(turn.text)) for turn in turns]
        ids, types, markers = join(self._encode(question), said, self._plain)
        key = hashlib.sha256(np.array(ids).tobytes()).digest()
        found = self._known.get(key)
        if found is None:
            numbers = self._run(ids, types, markers).astype(np.float64)
            found = Judgement(numbers[:, _RANK], 1.0 / (1.0 + np.exp(-numbers[:, _OTHER_TIME])))
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found


def join(question: Ids, turns: Sequence[tuple[Ids, Ids]], plain: set[int]) -> tuple[Ids, Ids, Ids]:
    """Return the tokens of a question and of turns (speaker, text), their types, and where each turn begins."""
    question = question[:_LONGEST_QUESTION]
    turns = [(speaker[:_LONGEST_SPEAKER], text) for speaker, text in turns]
    ids, markers = [_BEGIN, _TOGETHER, *question, _END], []
    first = len(ids)
    room = _LONGEST - first - sum(2 + len(speaker) for speaker, _ in turns)
    size = share_room([len(text) for _, text in turns], room)
    for speaker, text in turns:
        markers.append(len(ids))
        ids += [_TURN, *speaker, *best_window(text, question, size, plain), _END]
    return ids, [0] * first + [1] * (len(ids) - first), markers


def share_room(lengths: Sequence[int], room: int) -> int:
    """Return the largest length to which all can be cut so that together they fit."""
    for place, length in enumerate(sorted(lengths)):
        sharing = len(lengths) - place
        if length * sharing > room:
            return max(1, room // sharing)
        room -= length
    return max(lengths, default=0)


def best_window(text: Ids, question: Ids, size: int, plain: set[int]) -> Ids:
    """Return the `size` tokens of a text that share most different words with the question; else its beginning."""
    if len(text) <= size:
        return text
    wanted = set(question) - plain
    shared = [place for place, token in enumerate(text) if token in wanted]
    starts = [0, *(max(0, min(place - size // 3, len(text) - size)) for place in shared)]
    start = max(starts, key=lambda start: len(wanted.intersection(text[start : start + size])))
    return text[start : start + size]


def load_reader(folder: Path, vocabulary: Path, threads: int) -> Reader:
    """Read the model in `folder`, and the tokenizer in `vocabulary`.

    Raises:
        ReaderError: one of them cannot be read.
    """
    from holdfast.models.onnx import (  # noqa: PLC0415 - see `holdfast.models`
        MODEL,
        RUNTIME_ERRORS,
        TOKENIZER,
        open_session,
        open_tokenizer,
        reason,
    )

    session = open_session(folder / MODEL, ReaderError, threads)
    tokenizer = open_tokenizer(vocabulary / TOKENIZER, _MOST_TOKENS, "read.hits", ReaderError)

    def run(ids: Ids, types: Ids, markers: Ids) -> NDArray[np.float32]:
        given = {"input_ids": ids, "token_type_ids": types, "attention_mask": [1] * len(ids), "markers": markers}
        try:
            [found] = session.run(["joint"], {name: np.array([values], np.int64) for name, values in given.items()})
        except RUNTIME_ERRORS as error:
            raise ReaderError(f"the reader fails on {len(ids)} tokens: {reason(error)}") from error
        numbers: NDArray[np.float32] = found[0]
        return numbers

    return Reader(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, run)
