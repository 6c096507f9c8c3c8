"""Histories that the tests of upkeep share: sessions with words of their own, and what files hold of them."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from builders import NOW, later, opened
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.terms import terms

EMBEDDER = HashEmbedder(64)
# Small enough that a short session has something to compact; nothing refused, and time to spare.
SMALL = {"assembly.budget": 300, "compaction.cluster": 4, "refusal.enabled": False}
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
# What a text may hold besides plain words: escapes of JSON, other scripts, marks, halves of pairs, controls.
ODD = (
    '"quoted" back\\slash', "two\nlines\r\n\ttab", "Привет из Одессы", "漢字とかな交じり文", "e\u0301\u0301 Grüße",
    "👩‍👩‍👧 family", "\u202eright to left\u202c", "line\u2028sep\x0bvertical", "{'json': [1]}", "İstanbul ﬁne",
)  # fmt: skip


def small(**changes):
    """Return the settings of a small memory; `group__key` changes a setting."""
    given = {name.replace("__", "."): value for name, value in changes.items()}
    return Settings.load(SMALL | given, environ={}).without_timeouts()


def small_memory(path=":memory:", *, embedder=EMBEDDER, now=NOW, **changes):
    """Open a small memory with an embedder that needs no model."""
    return opened(small(**changes), now=now, embedder=embedder, path=path)


def made_up(chance, syllables=4):
    """Return a word that nobody else says."""
    return "".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(syllables)) + "x"


def say(memory, number, text, *, session="s", user="ana", **fields):
    """Keep one turn; users and assistants take turns, a minute apart. Return its id."""
    role = "assistant" if number % 2 else "user"
    message = {"role": role, "content": text, "at": later(minutes=number)}
    [written] = memory.remember(message, user=user, session=session, **fields)
    return written.id


def talk(memory, count, *, session="s", user="ana", start=0, **fields):
    """Keep a session about boats, each turn with a word of its own; return the ids in order."""
    return [
        say(memory, i, f"turn {i} tells of the boat in harbour number{i} and of topic{i % 5} at length",
            session=session, user=user, **fields)
        for i in range(start, start + count)
    ]  # fmt: skip


def tail_of(memory, session="s", user="ana", budget=None, **more):
    """Return the ids of the tail of a context."""
    context = memory.assemble("boat", user=user, session=session, budget=budget, track_access=False, **more)
    return [item.id for item in context.section("tail").items]


@dataclass
class Said:
    """All that one unit ever said: texts of every version, other words, and vectors."""

    texts: list = field(default_factory=list)
    others: list = field(default_factory=list)

    def words(self):
        return {word for text in (*self.texts, *self.others) for word in terms(text)}

    def vectors(self):
        return [EMBEDDER.embed_query(text).tobytes() for text in self.texts]


class Tale:
    """A memory that is told random things, and remembers what it was told."""

    def __init__(self, memory, seed):
        self.memory = memory
        self.chance = random.Random(seed)
        self.said = {}
        self.count = 0

    def text(self, words):
        pieces = [made_up(self.chance) for _ in range(words)]
        if self.chance.random() < 0.3:
            pieces.insert(self.chance.randrange(len(pieces)), self.chance.choice(ODD))
        return " ".join(pieces)

    def turns(self, session, lengths):
        """Keep a session in one call; return the ids in order."""
        messages = []
        for words in lengths:
            note = {"note": made_up(self.chance), "deep": {"list": [made_up(self.chance)]}}
            role = "assistant" if self.count % 2 else "user"
            messages.append(
                {"role": role, "content": self.text(words), "at": later(minutes=self.count), "metadata": note}
            )
            self.count += 1
        written = self.memory.remember(messages, user="ana", session=session)
        for done, message in zip(written, messages, strict=True):
            note = message["metadata"]
            self.said[done.id] = Said([message["content"]], [note["note"], note["deep"]["list"][0]])
        return [done.id for done in written]

    def update(self, key, words):
        text = self.text(words)
        self.memory.update(key, user="ana", text=text)
        self.said[key].texts.append(text)


def bytes_of(folder):
    """Return the raw bytes of every file below a folder."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def encodings(text):
    """Return how a file may hold a text: as it is, or as JSON with or without escapes."""
    found = {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}
    return {one.encode("utf-8", "surrogatepass") for one in found}


def needles(gone, kept):
    """Return what no file may hold once `gone` is erased and `kept` is not: texts, pieces of them, words, vectors."""
    survivors = " ".join(text for one in kept for text in (*one.texts, *one.others))
    known = {word for one in kept for word in one.words()}
    found = {}
    for one in gone:
        for text in (*one.texts, *one.others):
            for piece in (text, *text.split()):
                if len(piece) > 5 and piece not in survivors:
                    found |= dict.fromkeys(encodings(piece), piece)
        for word in one.words() - known:
            if len(word) > 5:
                found |= dict.fromkeys(encodings(word), word)
        for vector in one.vectors():
            # A vector of a few words may be another's too; that of many is its own.
            for at in (0, 128):
                if sum(map(bool, vector[at : at + 128])) > 40:
                    found[vector[at : at + 128]] = f"vector of {one.texts[0][:30]}"
    ours = b"".join(vector for one in kept for vector in one.vectors())
    return {data: name for data, name in found.items() if data not in ours}


# Whatever is looked for is at least so long.
_OPENING = 6
# An odd number whose products spread over all bits; the first of them choose a place in a table.
_SPREAD, _PLACES = np.uint64(0x9E3779B97F4A7C15), 20


def _places(data):
    """Return a place in a table for each run of six bytes; equal runs have one place."""
    if len(data) < _OPENING:
        return np.zeros(0, dtype=np.uint64)
    whole = np.frombuffer(data, np.uint8).astype(np.uint64)
    runs = sum(whole[at : len(whole) - _OPENING + at + 1] << np.uint64(8 * at) for at in range(_OPENING))
    return (runs * _SPREAD) >> np.uint64(64 - _PLACES)


def inside(data, pieces):
    """Return the pieces that data holds: of thousands, only those are searched for whose beginning may be in it."""
    assert all(len(piece) >= _OPENING for piece in pieces)
    table = np.zeros(1 << _PLACES, dtype=bool)
    table[_places(data)] = True
    begun = table[_places(b"".join(piece[:_OPENING] for piece in pieces))[::_OPENING]]
    return [piece for piece, may_be in zip(pieces, begun.tolist(), strict=True) if may_be and piece in data]


def residue(folder, wanted):
    """Return which files still hold what."""
    pieces = [*wanted]
    return {(name, wanted[piece]) for name, data in bytes_of(folder).items() for piece in inside(data, pieces)}


def everything(memory):
    """Return all units of ana, current or not, by id."""
    return {unit.id: unit for unit in memory.list(user="ana", limit=None, current_only=False)}


def check_whole(memory):
    """Each summary in force stands for all of its sources, and each covered turn has its summary."""
    units = everything(memory)
    for unit in units.values():
        if unit.kind == "summary" and unit.superseded_by is None:
            assert {units[key].covered_by for key in unit.lineage.sources} == {unit.id}
        if unit.covered_by is not None:
            assert units[unit.covered_by].kind == "summary"
            assert units[unit.covered_by].superseded_by is None
            assert unit.id in units[unit.covered_by].lineage.sources
