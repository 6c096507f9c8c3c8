"""Random histories of a memory: concrete calls of its verbs, so that two memories can be told and asked the same."""

import contextlib
import dataclasses
import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np

from builders import NOW
from histories import ODD
from holdfast import HoldfastError
from holdfast.types import DECISIONS

USERS, AGENTS, SESSIONS = ("ana", "ana", "ana", "ben", "eve"), ("cook", "clerk"), 3
PEOPLE = ("Mara", "Tomas", "Ines", "Oskar")
TOWNS = ("Porto", "Lisbon", "Odessa", "Kestrel Quay", "Lower Mill")
THINGS = ("boat", "kettle", "ferry", "greyhound", "lamp", "harbour", "mill", "letter")
MOODS = ("good", "bad")
PROFILES = ("fast", "balanced", "thinking", "hybrid")
STATEMENTS = (
    "I live in {town}", "I moved from {town} to {other} in March", "{who} works at {town}",
    "my {thing} is called {who}", "I prefer the {thing} to the {second}", "{who} moved to {town} last week",
    "the {thing} depends on the {second}", "My favourite town is {town}, not {other}",
    "we met {who} at {town} on 2026-03-{day:02d}", "the {thing} leaves {town} at {day} o'clock",
    "always answer in English, please", "never mention the {thing} to {who}", "if the {thing} is late, call {who}",
    "To mend the {thing}, first dry the {second}, then call {who}.", "{who} said: {thing} {thing} {second} {n}",
    "is the {thing} of {who} in {town}?", "ok", "turn {n} tells of the {thing} in {town} number{n} at length",
)  # fmt: skip
QUESTIONS = (
    "Where does {who} live?", "Where do I live?", "{thing} in {town}", "When did we meet {who}?", "{thing}",
    "What is my {thing} called?", "What does the {thing} depend on?", "how to mend the {thing}", "{who} and {other}",
    "what happened last week", "number{n}", "rules for the {thing}", "{thing} {second} {who} {town}", "nothing known",
    "what was said on 2026-03-{day:02d}?",
)  # fmt: skip
FILTERS = (
    {"mood": "good"}, {"n": {"gte": 3}}, {"author": "assistant"}, {"or": [{"mood": "bad"}, {"n": {"lt": 2}}]},
    {"not": {"kind": "turn"}}, {"text": {"contains": "boat"}}, {"deep.list": {"contains": "x"}}, {"mood": None},
    {"session": {"in": ["s0", "s1"]}}, {"mood": "a\x00b"}, {"text": {"contains": "\x00"}}, {"n": 3.0}, {"n": 2**70},
    {"event_time": {"gte": "2026-05-04"}}, {"n": {"ne": 1}, "pinned": False},
)  # fmt: skip
DOCUMENT = """# Handbook of the {thing}

- Never call {who} before {day}.
- Always lock the {second}.

## {town}

The {thing} of {who} lies in {town}. It depends on the {second}.

| part | place |
|---|---|
| {thing} | {town} |

> Mind the {second}.
"""
# Before the calls are mixed.
BEGINNING = ("long_talk", "talk", "talk", "ingest", "note")
# How often each verb is called, beside the others.
WRITING = {
    "say": 10, "talk": 5, "note": 6, "again": 2, "update": 5, "change": 3, "supersede": 3, "reinstate": 2,
    "overrule": 2, "forget": 3, "forget_some": 1, "forget_all": 0.3, "ingest": 3, "compact": 2, "reembed": 0.5,
}  # fmt: skip
ASKING = {
    "search": 14, "assemble": 5, "why": 5, "facts": 2, "list": 4, "get": 2, "history": 2, "lists": 2, "stats": 1,
    "expand": 1, "widen": 1, "export": 1,
}  # fmt: skip


class Clock:
    """A clock that the history moves; two memories read the same."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


class History:
    """Draws calls, one after the other; what it needs to know of units it asks the first memory."""

    def __init__(self, seed, clock):
        self.chance = random.Random(seed)
        self.clock = clock
        self.count = 0

    def draw(self, memory):
        """Return the next call: a verb of `Memory`, and what it is given."""
        self.count += 1
        self.clock.now += timedelta(seconds=self.chance.choice((1, 30, 600, 7200, 86_400)))
        if self.count <= len(BEGINNING):  # something to ask for
            return getattr(self, f"_{BEGINNING[self.count - 1]}")(memory)
        kinds = WRITING | ASKING
        [kind] = self.chance.choices([*kinds], [*kinds.values()])
        return getattr(self, f"_{kind}")(memory)

    # ----------------------------------------------------------------------------------------- pieces

    def _fill(self, patterns):
        pick = self.chance.choice
        return pick(patterns).format(
            who=pick(PEOPLE), town=pick(TOWNS), other=pick(TOWNS), thing=pick(THINGS), second=pick(THINGS),
            day=self.chance.randint(1, 28), n=self.chance.randint(0, 40),
        )  # fmt: skip

    def _text(self):
        text = self._fill(STATEMENTS)
        if self.chance.random() < 0.1:
            text = f"{text}. {self.chance.choice(ODD)}"
        return text

    def _maybe(self, share, **fields):
        return fields if self.chance.random() < share else {}

    def _owner(self):
        return {"user": self.chance.choice(USERS), **self._maybe(0.15, tenant="north")}

    def _session(self):
        return f"s{self.chance.randrange(SESSIONS)}"

    def _view(self):
        ago = timedelta(minutes=self.chance.choice((1, 60, 1_500, 6_000)))
        return (
            self._owner()
            | self._maybe(0.15, agent=self.chance.choice(AGENTS))
            | self._maybe(0.2, session=self._session())
            | self._maybe(0.15, filters=self.chance.choice(FILTERS))
            | self._maybe(0.12, as_of=self.clock.now - ago)
            | self._maybe(0.07, reference_time=self.clock.now - ago)
            | self._maybe(0.15, current_only=False)
        )

    def _unit(self, memory, owner=None):
        """Return the keys of a unit that there is, or now and then of one that there is not."""
        owner = owner or self._owner()
        units = memory.list(**owner, limit=40, current_only=False)
        own = [unit for unit in units if unit.user is not None]
        if not own or self.chance.random() < 0.05:
            return "nobody", owner
        return self.chance.choice(own).id, owner

    # ---------------------------------------------------------------------------------------- writing

    def _message(self):
        return {
            "role": self.chance.choice(("user", "user", "assistant")), "content": self._text(),
            **self._maybe(0.4, speaker=self.chance.choice(PEOPLE)),
            **self._maybe(0.3, at=self.clock.now - timedelta(minutes=self.chance.randint(0, 9_000))),
            **self._maybe(0.3, metadata={"mood": self.chance.choice(MOODS), "n": self.chance.randint(0, 5)}),
        }  # fmt: skip

    def _say(self, _memory):
        fields = self._maybe(0.2, agent=self.chance.choice(AGENTS)) | self._maybe(0.6, session=self._session())
        return "remember", (self._message(),), self._owner() | fields

    def _talk(self, _memory):
        messages = [self._message() for _ in range(self.chance.randint(2, 9))]
        return "remember", (messages,), self._owner() | {"session": self._session()}

    def _long_talk(self, _memory):
        return "remember", ([self._message() for _ in range(24)],), {"user": "ana", "session": "s0"}

    def _note(self, _memory):
        fields = (
            self._maybe(0.3, ttl=float(self.chance.choice((60, 90_000)))) | self._maybe(0.2, pinned=True)
            | self._maybe(0.3, scope="global") | self._maybe(0.3, valid_to=self.clock.now + timedelta(days=2))
            | self._maybe(0.2, valid_from=self.clock.now + timedelta(hours=2))
            | self._maybe(0.4, id=f"note{self.chance.randrange(20)}")
            | self._maybe(0.4, metadata={"deep": {"list": ["x", 1, None]}, "n": self.chance.randint(0, 5)})
            | self._maybe(0.2, links=[f"note{self.chance.randrange(20)}"])
        )  # fmt: skip
        return "remember", (self._text(),), self._owner() | fields

    def _again(self, memory):
        unit_id, owner = self._unit(memory)
        with contextlib.suppress(HoldfastError):
            return "remember", (memory.get(unit_id, **owner).text,), owner
        return "remember", ("again and again",), owner

    def _update(self, memory):
        unit_id, owner = self._unit(memory)
        return "update", (unit_id,), owner | {"text": self._text()}

    def _change(self, memory):
        unit_id, owner = self._unit(memory)
        change = self.chance.choice(
            (
                {"pinned": True}, {"pinned": False}, {"ttl": None}, {"ttl": 3600.0}, {"metadata": {"mood": "good"}},
                {"valid_to": self.clock.now}, {"topic": self.chance.choice(TOWNS)}, {"links": ["note1", "note2"]},
            )
        )  # fmt: skip
        return "update", (unit_id,), owner | change

    def _supersede(self, memory):
        unit_id, owner = self._unit(memory)
        by, _ = self._unit(memory, owner)
        return "supersede", (unit_id,), owner | {"by": by}

    def _reinstate(self, memory):
        unit_id, owner = self._unit(memory)
        gone = [unit.id for unit in memory.list(**owner, limit=None, current_only=False) if unit.superseded_by]
        return "reinstate", (self.chance.choice(gone) if gone else unit_id,), owner

    def _overrule(self, memory):
        unit_id, owner = self._unit(memory)
        return (
            "overrule",
            (unit_id,),
            owner | {"decision": self.chance.choice(DECISIONS)} | self._maybe(0.4, undo=True),
        )

    def _forget(self, memory):
        unit_id, owner = self._unit(memory)
        return "forget", (), owner | {"ids": unit_id} | self._maybe(0.2, dry_run=True)

    def _forget_some(self, _memory):
        what = self.chance.choice(
            ({"filters": {"mood": "bad"}}, {"document": f"d{self.chance.randrange(3)}.md"},
             {"session": self._session()}, {"filters": {"n": {"gte": 4}}})
        )  # fmt: skip
        return "forget", (), self._owner() | what

    def _forget_all(self, _memory):
        return "forget", (), self._owner() | {"all": True}

    def _ingest(self, _memory):
        fields = self._maybe(0.3, core=True) | self._maybe(0.3, scope="global")
        name = {"name": f"d{self.chance.randrange(3)}.md"}
        return "ingest", (self._fill((DOCUMENT,)),), self._owner() | name | fields

    def _compact(self, _memory):
        return "compact", (), self._owner() | self._maybe(0.5, session=self._session())

    def _reembed(self, _memory):
        return "reembed", (), {}

    # ----------------------------------------------------------------------------------------- asking

    def _search(self, _memory):
        fields = self._maybe(0.3, limit=self.chance.choice((1, 3, 50))) | self._maybe(0.1, group="session")
        asked = {"profile": self.chance.choice(PROFILES), "explain": True} | self._view() | fields
        return "search", (self._fill(QUESTIONS),), asked

    def _assemble(self, _memory):
        fields = self._maybe(0.5, budget=self.chance.choice((60, 200, 1_000))) | self._maybe(0.3, track_access=False)
        return "assemble", (self._fill(QUESTIONS),), {"profile": self.chance.choice(PROFILES)} | self._view() | fields

    def _why(self, memory):
        unit_id, owner = self._unit(memory)
        fields = self._maybe(0.3, budget=300) | {"profile": self.chance.choice(PROFILES)}
        return "why", (self._fill(QUESTIONS), unit_id), self._view() | {"tenant": None} | owner | fields

    def _facts(self, _memory):
        return "facts", (), self._view() | self._maybe(0.3, subject=self.chance.choice((*PEOPLE, "i")))

    def _list(self, _memory):
        view = {name: value for name, value in self._view().items() if name not in ("as_of", "reference_time")}
        fields = {"order": self.chance.choice(("newest", "oldest")), "limit": self.chance.choice((3, 50, None))}
        return "list", (), view | fields

    def _get(self, memory):
        unit_id, owner = self._unit(memory)
        return "get", (unit_id,), owner

    def _history(self, memory):
        unit_id, owner = self._unit(memory)
        return "history", (unit_id,), owner

    def _lists(self, _memory):
        limit = self._maybe(0.3, limit=2)
        return self.chance.choice(("sessions", "documents", "agents", "users")), (), self._owner() | limit

    def _stats(self, _memory):
        return "stats", (), self._owner() | {"whole": True}

    def _expand(self, memory):
        unit_id, owner = self._unit(memory)
        found = memory.list(**owner, filters={"kind": "summary"}, limit=None)
        return "expand", (self.chance.choice(found).id if found else unit_id,), owner

    def _widen(self, memory):
        unit_id, owner = self._unit(memory)
        found = memory.list(**owner, filters={"origin": "document"}, limit=20)
        return "widen", (self.chance.choice(found).id if found else unit_id,), owner

    def _export(self, _memory):
        owner = self._owner()
        return "export", (), owner | self._maybe(0.5, session=self._session()) | self._maybe(0.5, vectors=True)


def do(memory, verb, given, named):
    """Make a call, and return what came of it as a value that can be compared: an answer, or an error."""
    try:
        if verb == "export":
            return exported(memory, **named)
        answer = getattr(memory, verb)(*given, **named)
    except HoldfastError as error:
        return type(error).__name__, str(error)
    if verb == "stats":  # where it lies, and what it takes there
        return dataclasses.replace(answer, store_bytes=None, schema_version=0, location="")
    if verb == "forget":  # which places were searched for what is left
        return answer.units, answer.summaries, answer.uncovered, answer.documents, answer.rebuilt, answer.dry_run
    if verb == "assemble":
        return answer, answer.text
    if verb == "get":
        return answer, answer.access_count
    return answer


def exported(memory, **what):
    """Return the lines of an export."""
    out = io.BytesIO()
    memory.export(out, **what)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def difference(one, two, place=""):
    """Return where two answers differ, or None: scores to `NEARLY`, all else exactly, order included."""
    if isinstance(one, float) and isinstance(two, float):
        same = (math.isnan(one) and math.isnan(two)) or one == two or abs(one - two) <= NEARLY
        return None if same else f"{place}: {one!r} and {two!r}"
    if type(one) is not type(two):
        return f"{place}: {one!r:.200} and {two!r:.200}"
    if isinstance(one, np.ndarray):
        return difference(one.tolist(), two.tolist(), place)
    if dataclasses.is_dataclass(one):
        fields = [field.name for field in dataclasses.fields(one) if field.name not in NOT_COMPARED]
        pairs = [(getattr(one, name), getattr(two, name), f"{place}.{name}") for name in fields]
    elif isinstance(one, Mapping):
        if list(one) != list(two):
            return f"{place}: keys {list(one)!r:.300} and {list(two)!r:.300}"
        pairs = [(one[name], two[name], f"{place}[{name!r}]") for name in one]
    elif isinstance(one, Sequence) and not isinstance(one, str | bytes):
        if len(one) != len(two):
            return f"{place}: {len(one)} and {len(two)} items: {one!r:.300} and {two!r:.300}"
        pairs = [(*both, f"{place}[{number}]") for number, both in enumerate(zip(one, two, strict=True))]
    else:
        return None if one == two else f"{place}: {one!r:.200} and {two!r:.200}"
    return next(filter(None, (difference(*pair) for pair in pairs)), None)


# How often a unit was read is counted apart: `get` tells it, a unit among others has it as of when it was loaded.
NOT_COMPARED = {"access_count"}
# Scores of two stores may differ by so much.
NEARLY = 1e-9
