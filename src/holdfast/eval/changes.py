"""Questions about what changed: which message tells what holds, and which tell what held before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.eval.data import GoldQuestion, Haystack, Message, Notes

# The categories whose gold is what changed, step by step, and the words by which such a question asks for a step
# before the last one.
_CHANGED = ("knowledge-update", "knowledge_update")
_ASKS_BEFORE = re.compile(r"\b(?:previous(?:ly)?|before|initial(?:ly)?|original(?:ly)?|used to)\b", re.IGNORECASE)


def find_current(question: GoldQuestion, messages: Sequence[Message]) -> GoldQuestion:
    """Return a question about what changed with the newest of its gold as what holds; any other as it is."""
    steps = [message.id for message in messages if message.id in question.gold]
    if question.category not in _CHANGED or len(steps) < 2 or _ASKS_BEFORE.search(question.text):
        return question
    return replace(question, current=frozenset(steps[-1:]), earlier=frozenset(steps[:-1]))


def read_lives(people: Sequence[Mapping[str, Any]], notes: Notes) -> Iterator[Haystack]:
    """Read `tests/data/changes`: questions about now by the way a change was told; about then, both and nothing."""
    for life in people:
        messages = tuple(
            Message(turn["id"], turn["session"], turn["text"], datetime.fromisoformat(turn["at"]), turn["role"])
            for turn in life["turns"]
        )
        session_of = {message.id: message.session for message in messages}
        questions = tuple(_read_question(row, session_of, notes) for row in life["questions"])
        yield Haystack(str(life["person"]), messages, questions)


def _read_question(row: Mapping[str, Any], session_of: Mapping[str, str], notes: Notes) -> GoldQuestion:
    gold = {turn: 1 for turn in row["gold"] if turn in session_of}
    for turn in row["gold"]:
        if turn not in gold:
            notes.add("gold that does not exist", f"{row['id']}: {turn}", "left out of its gold")
    return GoldQuestion(
        row["id"],
        row["text"],
        row["kind"] if row["about"] == "now" else row["about"],
        datetime.fromisoformat(row["asked_at"]),
        len(session_of),
        gold,
        frozenset(session_of[turn] for turn in gold),
        answerable=row["about"] != "unknown",
        current=frozenset(turn for turn in (row["current"], *row.get("also", ())) if turn),
        earlier=frozenset(row["earlier"]),
        decoys=frozenset(row.get("decoys", ())),
    )
