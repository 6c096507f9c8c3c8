"""The reader: one model that reads a question with several turns together, in the order of time (C9).

Its input is one sequence: the question, then turn by turn a marker, who speaks and what they say; the longest turns
are cut. It says of each turn how well it answers what is asked, whether a later one put it out of date and whether it
is of another time; and of all of them that none answers. It also reads a turn alone with the question, as a pair.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ReaderError
from holdfast.text.words import words
from holdfast.values import dataclass

Ids = list[int]
T = TypeVar("T")
# A run of the model: one of its two outputs, the tokens, their types, and the places that it is wanted of.
Run = Callable[[str, Ids, Ids, Ids], NDArray[np.float32]]

# Entries of the vocabulary, of which the last three were unused: a sequence begins, a part ends, a turn is read
# alone, turns are read together, a turn begins.
_BEGIN, _END, _ALONE, _TOGETHER, _TURN = 101, 102, 5, 10, 11
# As it was trained: a sequence, one of a pair, the question and a speaker's name have at most so many tokens.
_LONGEST, _LONGEST_PAIR, _LONGEST_QUESTION, _LONGEST_SPEAKER = 512, 256, 64, 16
# What the five numbers say that the model gives for each marker; that nothing answers it says at the beginning.
_RANK, _ANSWERS, _EARLIER, _NOTHING, _OTHER_TIME = range(5)
# A context asks what a search has asked before, and `why` asks both; what is said of a few turns takes little room.
_KEPT, _PAIRS_KEPT = 64, 2048
# On two cores, twelve pairs take 32 ms so, 35 two at a time and 54 one by one.
_AT_ONCE = 3
# Adding and normalising in one step takes ten times as long as in two, a sixth of a run.
_SLOWER = ("SkipLayerNormFusion",)
# Of a longer turn only the beginning is looked through.
_MOST_TOKENS = 4096


class Turn(NamedTuple):
    """What the reader sees of a turn."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the reader says of turns that it read together.

    Of each turn: `rank`, how well it answers what is asked, among these (a logit); `answers`, how likely it answers
    at all; `earlier`, how likely a later one of these put it out of date; `other_time`, how likely it is of another
    time than asked. Of all: `nothing`, how far "nothing here answers" stands above them (its logit less the logarithm
    of the sum of e^rank).
    """

    rank: NDArray[np.float64]
    answers: NDArray[np.float64]
    earlier: NDArray[np.float64]
    other_time: NDArray[np.float64]
    nothing: float

    @classmethod
    def of(cls, numbers: NDArray[np.float32]) -> Judgement:
        """Read it off the model's numbers, those of the beginning first, then those of each turn."""
        start, turns = numbers[0].astype(np.float64), numbers[1:].astype(np.float64)
        rank, chances = turns[:, _RANK], 1.0 / (1.0 + np.exp(-turns))
        nothing = float(start[_NOTHING] - np.logaddexp.reduce(rank))
        return cls(rank, chances[:, _ANSWERS], chances[:, _EARLIER], chances[:, _OTHER_TIME], nothing)

    def take(self, places: Sequence[int] | NDArray[np.intp]) -> Judgement:
        """Return it with the turns in another order."""
        chances = self.answers[places], self.earlier[places], self.other_time[places]
        return Judgement(self.rank[places], *chances, self.nothing)


class Reader:
    """A loaded model. What it says depends on the question and the turns alone; it is kept for the last few of them.

    What is kept are numbers under a checksum of the input, and none of its words (law 16). Every sequence is a run of
    its own: the scales of int8 are those of a batch (law 11).
    """

    def __init__(self, encode: Callable[[str], Ids], run: Run) -> None:
        self._encode, self._run = encode, run
        # A long turn is cut to where it shares other words than these with the question.
        self._plain = {token for word in words("query", "plain") for token in encode(word)}
        self._judged: OrderedDict[bytes, Judgement] = OrderedDict()
        self._paired: OrderedDict[bytes, float] = OrderedDict()

    def judge(self, question: str, turns: Sequence[Turn]) -> Judgement:
        """Read the turns together, which come in the order of time."""
        said = [(self._encode(f"{turn.speaker}:"), self._encode(turn.text)) for turn in turns]
        ids, types, markers = join(self._encode(question), said, self._plain)
        numbers = partial(self._run, "joint", ids, types, [0, *markers])
        return _look_up(self._judged, _KEPT, ids, lambda: Judgement.of(numbers()))

    def pair(self, question: str, turn: Turn) -> float:
        """Read one turn alone: return the logit that it answers the question."""
        ids, types = join_pair(
            self._encode(question), self._encode(f"{turn.speaker}:"), self._encode(turn.text), self._plain
        )
        return _look_up(self._paired, _PAIRS_KEPT, ids, lambda: float(self._run("answer", ids, types, [0])[0, 0]))

    def read_alone(self, question: str, turns: Sequence[Turn]) -> list[float]:
        """Read turns one by one, some at the same time: `pair` of each, bit for bit."""
        if len(turns) < _AT_ONCE:
            return [self.pair(question, turn) for turn in turns]
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="holdfast-read") as pool:
            return [*pool.map(partial(self.pair, question), turns)]


def _look_up(known: OrderedDict[bytes, T], most: int, ids: Ids, run: Callable[[], T]) -> T:
    """Return what is known of the tokens; else run the model, and keep what it says in place of the oldest."""
    key = hashlib.sha256(np.array(ids).tobytes()).digest()
    found = known.get(key)
    if found is None:
        found = known[key] = run()
        while len(known) > most:
            known.popitem(last=False)
    return found


def join_pair(question: Ids, speaker: Ids, text: Ids, plain: set[int]) -> tuple[Ids, Ids]:
    """Return the tokens of a question and of one turn, and their types."""
    question, speaker = question[:_LONGEST_QUESTION], speaker[:_LONGEST_SPEAKER]
    first = [_BEGIN, _ALONE, *question, _END]
    room = _LONGEST_PAIR - len(first) - len(speaker) - 1
    second = [*speaker, *best_window(text, question, room, plain), _END]
    return first + second, [0] * len(first) + [1] * len(second)


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

    session = open_session(folder / MODEL, ReaderError, threads, without=_SLOWER)
    tokenizer = open_tokenizer(vocabulary / TOKENIZER, _MOST_TOKENS, "read.hits", ReaderError)

    def run(output: str, ids: Ids, types: Ids, markers: Ids) -> NDArray[np.float32]:
        given = {"input_ids": ids, "token_type_ids": types, "markers": markers}
        try:
            [found] = session.run([output], {name: np.array([values], np.int64) for name, values in given.items()})
        except RUNTIME_ERRORS as error:
            raise ReaderError(f"the reader fails on {len(ids)} tokens: {reason(error)}") from error
        numbers: NDArray[np.float32] = found[0]
        return numbers

    return Reader(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, run)
