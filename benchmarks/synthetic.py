"""Made-up chat for the speed benchmarks: the same words for everybody, from one seed, with no data set to fetch.

A turn is one to three English sentences, as people write to each other: plans, dates, places, changes of mind,
numbers. So every rule that reads language has something to read. What the sentences are about are made-up words
whose frequencies fall like those of real chat; one is a rare id that no other turn has. A question is 5 to 10 words
of one turn.

Vectors are made up too, where a model would take hours: unit vectors in clusters, and a question near its own turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

# Any number would do; a fixed one makes two runs comparable.
SEED = 20260301
WORDS_PER_QUESTION = (5, 10)
# Chat data hold about 4,000 stems. Zipf's law shifted by ten ranks follows their frequencies: 1.5 % of the content
# words for the most frequent stem, 0.8 % for the tenth, 0.04 % for the 400th.
CONTENT_WORDS = 4000
RANK_SHIFT = 10
# One sentence is a short message, three are a long one.
SENTENCES = (1, 3)
# A sentence is a subject, a verb, a thing and two endings, each drawn by itself: fixed sentences would be near
# duplicates of each other, which chat is not. `#` is a made-up word, `@` a person, `%` a number, `~` a time.
SUBJECTS = (
    "I", "I", "I", "We", "We", "You", "They", "She", "He", "@", "@", "My sister", "Our neighbour", "The team",
    "Somebody", "My boss", "The # company", "Nobody in #", "The kids", "A friend from #",
)  # fmt: skip
VERBS = tuple(
    """
    liked|bought|sold|lost|found|painted|repaired|cancelled|forgot|wanted|needed|mentioned|tried|opened|closed
    moved to|started with|stopped using|talked about|read about|heard of|saw|visited|drove to|cooked|planned|finished
    borrowed|returned|preferred|hated|explained|changed|dropped|installed|deployed|tested|reviewed|signed|paid for
    dreamt of|would love to see|could not find|never understood|always enjoyed|is thinking about|has been learning
    did not like
    """.replace("\n", "|").split("|")
)
THINGS = (
    "the #",
    "a #",
    "my #",
    "her #",
    "the # of @",
    "some # and #",
    "that old #",
    "# and the #",
    "it in #",
    "this",
)
ENDINGS = (
    "", "", "", "~", "~", "with @", "for @", "for % minutes", "in #", "at the #", "because the # was too #",
    "and then the # broke", "before the # was ready", "which cost % euros", "but it felt like a #", "near #",
    "although @ was against it", "so we took the # home", "as @ had said", "instead of the #", "to help with the #",
    "and it was great", "when I was in #", "after % years", "without a #",
)  # fmt: skip
PEOPLE = "Ada Bruno Chiara Dmitri Elif Farid Greta Hugo Ines Jonas Keiko Lena Mateo Nadia Oskar Priya".split()
TIMES = (
    "yesterday", "last Tuesday", "on 3 March", "in June 2023", "two weeks ago", "this morning", "last summer",
    "on Friday evening", "in 2019", "tomorrow",
)  # fmt: skip
# Consonants and vowels in turn can be said aloud, so that the stemmer treats the words like English ones.
ONSETS = tuple("b d f g h k l m n p r s t v w z br dr gr kl pl st tr".split())
VOWELS = tuple("a e i o u ai ea oo".split())
CODAS = ("", "", "l", "m", "n", "r", "s", "t", "nd", "rk", "ing", "ed")  # mostly open: the last two meet the stemmer
SYLLABLES = (2, 3)
# No vowels, so that no made-up word can equal an id; six places hold 480 million of them.
ID_LETTERS = "bcdfghjkmnpqrstvwxyz23456789"
ID_LENGTH = 6
_MARKS = str.maketrans("", "", ",.:?!")

# As many as the shipped model gives.
DIMS = 384
# More than any recall is counted over, at every size: a best ten that reaches into the noise would mean little (with
# five turns to a topic the funnel found .83 of it at 10,000 vectors).
TURNS_PER_TOPIC = 50
# How far a turn lies from its topic and a question from its turn, as a multiple of the length it starts from. They
# give the cosines of real chat: .8 with the turn itself, about .5 with the others of its topic.
TURN_SPREAD = 0.75
QUESTION_SPREAD = 0.75
# Dimensions carry less and less, as those of an embedder with trained prefixes do: a third of the squares after so
# many. The first 64 hold .48 of the squared length (.52 measured on 41,592 real texts), the first 256 .94 (.95).
FADING = 100.0
ANYWHERE = np.eye(1, DIMS, dtype=np.float32)[0]
# Vectors made in one piece: small enough that a million of them never lie in memory twice.
PIECE = 50_000

MESSAGES_PER_SESSION = 20
SPEAKER = "Ada"
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
BETWEEN_SESSIONS = timedelta(hours=3)
BETWEEN_MESSAGES = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its text, the words a question may draw from, and its rare id."""

    text: str
    words: tuple[str, ...]
    rare_id: str


class Generator:
    """Turns and questions in a fixed order. Two generators with one seed give the same."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = np.random.default_rng(seed)
        self._content = self._made_up_words(CONTENT_WORDS)
        self._ladder = np.cumsum(_zipf(CONTENT_WORDS, RANK_SHIFT))
        self._known = frozenset(self._content)
        self._used: set[str] = set()

    def turns(self, count: int) -> list[Turn]:
        """Return the next `count` turns."""
        return [self._turn() for _ in range(count)]

    def questions(self, turns: list[Turn], count: int) -> list[tuple[str, Turn]]:
        """Return questions made of words of random turns, in the turn's order, each with its turn.

        The rare id stays out: it would decide the search on its own, and people do not ask that way.
        """
        return [(self._question(turns[i]), turns[i]) for i in self._random.integers(len(turns), size=count)]

    def _turn(self) -> Turn:
        low, high = SENTENCES
        text = " ".join(self._sentence() for _ in range(int(self._random.integers(low, high + 1))))
        rare_id = self._rare_id()
        return Turn(f"{text} Reference {rare_id}.", tuple(text.lower().translate(_MARKS).split()), rare_id)

    def _sentence(self) -> str:
        parts = [self._pick(each) for each in (SUBJECTS, VERBS, THINGS, ENDINGS, ENDINGS)]
        return self._fill(" ".join(part.strip() for part in parts if part)) + self._pick((".", ".", ".", "!", "?"))

    def _fill(self, template: str) -> str:
        filled = []
        for letter in template:
            if letter == "#":
                place = int(np.searchsorted(self._ladder, self._random.random() * self._ladder[-1]))
                filled.append(self._content[place])
            elif letter == "@":
                filled.append(self._pick(PEOPLE))
            elif letter == "~":
                filled.append(self._pick(TIMES))
            else:
                filled.append(str(self._random.integers(2, 90)) if letter == "%" else letter)
        return "".join(filled)

    def _question(self, turn: Turn) -> str:
        low, high = WORDS_PER_QUESTION
        while True:
            count = min(int(self._random.integers(low, high + 1)), len(turn.words))
            places = np.sort(self._random.choice(len(turn.words), size=count, replace=False))
            words = [turn.words[place] for place in places]
            # A question of function words alone asks for nothing.
            if not self._known.isdisjoint(words) or self._known.isdisjoint(turn.words):
                return " ".join(words) + "?"

    def _rare_id(self) -> str:
        while True:
            letters = self._random.integers(len(ID_LETTERS), size=ID_LENGTH)
            rare_id = "x" + "".join(ID_LETTERS[i] for i in letters)
            if rare_id not in self._used:
                self._used.add(rare_id)
                return rare_id

    def _made_up_words(self, count: int) -> list[str]:
        taken: set[str] = set()
        words: list[str] = []
        while len(words) < count:
            syllables = int(self._random.integers(SYLLABLES[0], SYLLABLES[1] + 1))
            word = "".join(self._pick(ONSETS) + self._pick(VOWELS) for _ in range(syllables)) + self._pick(CODAS)
            if word not in taken:
                taken.add(word)
                words.append(word)
        return words

    def _pick(self, choices: Sequence[str]) -> str:
        return choices[int(self._random.integers(len(choices)))]


def sessions(turns: list[Turn]) -> list[tuple[str, list[dict[str, object]]]]:
    """Return the turns as sessions of messages, user and assistant in turn, each with its time."""
    result = []
    for number, start in enumerate(range(0, len(turns), MESSAGES_PER_SESSION)):
        began = BEGIN + number * BETWEEN_SESSIONS
        messages = [
            message(turn, i, began + i * BETWEEN_MESSAGES)
            for i, turn in enumerate(turns[start : start + MESSAGES_PER_SESSION])
        ]
        result.append((f"session-{number}", messages))
    return result


def message(turn: Turn, place: int, at: datetime) -> dict[str, object]:
    """Return one turn as a chat message."""
    if place % 2:
        return {"role": "assistant", "content": turn.text, "at": at}
    return {"role": "user", "name": SPEAKER, "content": turn.text, "at": at}


def _zipf(count: int, shift: int) -> NDArray[np.float64]:
    weights = 1.0 / (np.arange(count, dtype=np.float64) + 1.0 + shift)
    return weights / weights.sum()


# --------------------------------------------------------------------------------------------- vectors


class VectorGenerator:
    """Made-up vectors in a fixed order. Two generators with one seed give the same."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = np.random.default_rng(seed)

    def turns(self, count: int) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of `count` turns, piece by piece."""
        topics = _unit_rows(self._noise(max(1, count // TURNS_PER_TOPIC)))
        for start in range(0, count, PIECE):
            rows = min(PIECE, count - start)
            picked = topics[self._random.integers(len(topics), size=rows)]
            yield _unit_rows(picked + TURN_SPREAD * self._noise(rows))

    def questions(self, turns: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a question near each of some turns."""
        return _unit_rows(turns + QUESTION_SPREAD * self._noise(len(turns)))

    def _noise(self, rows: int) -> NDArray[np.float32]:
        return self._random.standard_normal((rows, DIMS), dtype=np.float32) * _SPREADS


_SHARES = np.exp(-np.arange(DIMS) / FADING)
_SPREADS = np.sqrt(_SHARES / _SHARES.sum()).astype(np.float32)


def _unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class StandIn:
    """An embedder that takes no time: it looks up vectors that were made up beforehand."""

    dims = DIMS
    space = f"stand-in/{DIMS}/made-up/1"

    def __init__(self, table: dict[str, NDArray[np.float32]]) -> None:
        self.table = table

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""
        return np.array([self.table.get(text, ANYWHERE) for text in texts], dtype=np.float32).reshape(-1, DIMS)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question; one that was not made up beforehand lies anywhere."""
        return self.table.get(text, ANYWHERE)


def stand_in(turns: Sequence[Turn], asked: Sequence[tuple[str, Turn]]) -> StandIn:
    """Return an embedder for these turns and questions."""
    generator = VectorGenerator()
    table = dict(zip((turn.text for turn in turns), np.concatenate([*generator.turns(len(turns))]), strict=True))
    near = generator.questions(np.array([table[turn.text] for _, turn in asked]))
    return StandIn(table | dict(zip((text for text, _ in asked), near, strict=True)))
