"""What every schema of evaluation data is read into, and what a system is that is measured on it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from datetime import datetime
from typing import Literal, Protocol

from holdfast.models.embedder import Embedder
from holdfast.values import dataclass

# For data without dates: any fixed moment serves, as long as it is the same in every run.
UNDATED = datetime.fromisoformat("2024-01-01T00:00:00+00:00")
# The categories whose gold is what changed, step by step, and the words by which such a question asks for a step
# before the last one.
_CHANGED = ("knowledge-update", "knowledge_update")
_ASKS_BEFORE = re.compile(r"\b(?:previous(?:ly)?|before|initial(?:ly)?|original(?:ly)?|used to)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DatasetMessage:
    """One thing to remember: a turn of a chat, or a passage of a corpus."""

    id: str
    session: str
    text: str
    at: datetime
    author: Literal["user", "assistant", "document"] = "user"
    speaker: str = ""
    title: str = ""

    @property
    def spoken(self) -> str:
        """Return the text as a plain index would take it: with the speaker's name, or the title, before it."""
        lead = f"{self.speaker}: " if self.speaker else f"{self.title}\n" if self.title else ""
        return lead + self.text


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """One question and what its answer rests on.

    `gold` holds message ids with their grade (1 where the data knows no grades), `gold_sessions` session ids.
    `visible` is how many of the haystack's messages existed when it was asked. `answers` are literal strings that
    stand in the gold messages; it is empty where the data cannot promise that. Of a question about what changed,
    `current` are the messages that tell what holds, `earlier` those that tell what held before; where something only
    looks like a change, `decoys` do. `said` is what was said before it in the session that it is asked in.
    """

    id: str
    text: str
    category: str
    at: datetime
    visible: int
    gold: Mapping[str, int] = field(default_factory=dict)
    gold_sessions: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    answerable: bool = True
    current: frozenset[str] = frozenset()
    earlier: frozenset[str] = frozenset()
    decoys: frozenset[str] = frozenset()
    said: tuple[DatasetMessage, ...] = ()

    @property
    def has_gold(self) -> bool:
        """Return whether recall can be measured on it."""
        return self.answerable and bool(self.gold or self.gold_sessions)

    @property
    def as_given(self) -> str | list[dict[str, str]]:
        """Return what a program would ask with: the text, after the messages of its session if there are any."""
        said = [{"role": message.author, "content": message.text} for message in self.said]
        return [*said, {"role": "user", "content": self.text}] if said else self.text


@dataclass(frozen=True, slots=True)
class Haystack:
    """Messages in the order in which they were said, and the questions asked of them. One store each."""

    id: str
    messages: tuple[DatasetMessage, ...]
    questions: tuple[GoldQuestion, ...]
    participants: tuple[str, ...] = ()
    level: Literal["message", "session"] = "message"  # the finest thing that the gold names


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in the data that is not as it should be, where it is, and what was done about it."""

    kind: str
    where: str
    handling: str


@dataclass(slots=True)
class Notes:
    """What a reader met on its way. Nothing is dropped without a note."""

    oddities: list[Oddity] = field(default_factory=list)

    def add(self, kind: str, where: object, handling: str) -> None:
        """Write down one oddity."""
        self.oddities.append(Oddity(kind, str(where), handling))


@dataclass(frozen=True, slots=True)
class DataSet:
    """One set, read whole. `chat` says that its haystacks are what people said, not passages."""

    name: str
    schema: str
    chat: bool
    haystacks: tuple[Haystack, ...]
    checksums: Mapping[str, str]
    oddities: tuple[Oddity, ...] = ()

    def count_oddities(self) -> dict[str, int]:
        """Return how often each kind of oddity was met."""
        return dict(sorted(Counter(oddity.kind for oddity in self.oddities).items()))


# ---------------------------------------------------------------------------------- what is measured on them


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a system answered: message ids, best first; `refused` says that it chose to answer nothing.

    `sessions` is for a system that ranks sessions by themselves; else a session stands where its best message does.
    """

    ids: tuple[str, ...]
    refused: bool = False
    sessions: tuple[str, ...] = ()

    @property
    def declined(self) -> bool:
        """Return whether nothing was answered, by a rule or because nothing was found."""
        return self.refused or not (self.ids or self.sessions)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a system would put into a prompt: the text, and the messages that stand in it whole.

    `tokens` is what the text costs by the system's own count. `order` are the messages of which anything stands in
    it, as the text has them, and `earlier` those that it calls out of date.
    """

    text: str
    whole: frozenset[str]
    tokens: int = 0
    order: tuple[str, ...] = ()
    earlier: frozenset[str] = frozenset()


def find_current(question: GoldQuestion, messages: Sequence[DatasetMessage]) -> GoldQuestion:
    """Return a question about what changed with the newest of its gold as what holds; any other as it is."""
    steps = [message.id for message in messages if message.id in question.gold]
    if question.category not in _CHANGED or len(steps) < 2 or _ASKS_BEFORE.search(question.text):
        return question
    return replace(question, current=frozenset(steps[-1:]), earlier=frozenset(steps[:-1]))


class SystemReader(Protocol):
    """A system that has read one haystack. `refused` says of each message that it would not take why."""

    refused: dict[str, str]

    def rank(self, question: GoldQuestion) -> Ranking:
        """Return the messages that answer a question, best first, from those that it may see."""

    def prompts(self, question: GoldQuestion, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Return the prompt for each token budget; empty when the system cannot assemble one."""


class System(Protocol):
    """Something to measure."""

    @property
    def name(self) -> str:
        """Name the system, as reports show it."""

    def read(self, haystack: Haystack, embedder: Embedder) -> AbstractContextManager[SystemReader]:
        """Take in a haystack."""
