"""What is searched, derived from units as they are written: entries, postings, statistics, names, facts.

It is written in the transaction of the units themselves, so that the two never differ.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.store.contract import Derivation
from holdfast.store.postgres.connections import Bits
from holdfast.store.postgres.postgres_database import PostgresDatabase
from holdfast.store.rows import GLOBAL, Fresh, author_code, microseconds, unit_of
from holdfast.types import ROLES, Analysis, Unit

# Postings are ordered by BM25's part for a field of this many words: the order holds, whatever is written later.
_USUAL_LENGTH = 24.0
_K1, _B = 1.2, 0.75
# A turn has about 15 terms: with so many bits it seems to hold one in nine of those that it does not.
_BITS = 128
# So many are read or written together.
TOGETHER = 500

Counts = Counter[tuple[str, str, str, str]]  # of (user, agent, kind, name)
_UNITS, _FIELD, _TERM, _SPEAKER = "u", "f", "t", "s"
_CALLED, _MENTIONED = "c", "m"


def update_index_rows(database: PostgresDatabase, derivation: Derivation, keys: Sequence[int], fresh: Fresh) -> None:
    """Bring what is derived from some units of the bound tenant up to date; `fresh` spares analysing them again."""
    for start in range(0, len(keys), TOGETHER):
        some = keys[start : start + TOGETHER]
        states = database.run("derived_state", {"keys": json.dumps(some)}).fetchall()
        stale = [key for key, checksum, content in states if content != checksum]
        gone = {*some}.difference(key for key, _, _ in states)
        known = [key for key, checksum, content in states if content not in (None, checksum)]
        counts: Counts = Counter()
        _remove(database, [*gone, *known], counts)
        _add(database, derivation, _read(database, derivation, stale, fresh), counts)
        change_counts(database, counts)
        if states:  # also of words that are the same: their vector may be gone
            database.run("insert_waiting", {"keys": json.dumps([key for key, _, _ in states])})
        if gone:
            database.run("no_longer_waiting", {"keys": json.dumps([*gone])})


Analysed = tuple[int, int, Unit, Analysis]  # key, checksum, and what it says


def _read(database: PostgresDatabase, derivation: Derivation, keys: Sequence[int], fresh: Fresh) -> list[Analysed]:
    found = [(key, *fresh.units[key]) for key in keys if key in fresh.units]
    unread = [key for key in keys if key not in fresh.units]
    rows = database.run("units_by_key", {"keys": json.dumps(unread)}).fetchall() if unread else ()
    return [*found, *((row[0], row[2], unit := unit_of(row), derivation.analyse(unit)) for row in rows)]


def _remove(database: PostgresDatabase, keys: Sequence[int], counts: Counts) -> None:
    if not keys:
        return
    asked = {"keys": json.dumps([*keys])}
    gone: list[tuple[str, str, float, int]] = []
    for key, user, agent, speaker, lengths, terms, impacts in database.run("derived_entries", asked).fetchall():
        gone += [(user, term, impact, key) for term, impact in zip(terms, impacts, strict=True)]
        counts.subtract(_statistics(user, agent, speaker, lengths, terms))
    if gone:
        users, terms, impacts, given = zip(*gone, strict=True)
        database.run(
            "erase_postings", {"users": [*users], "terms": [*terms], "impacts": [*impacts], "given": [*given]}
        )
    for part in ("names", "facts", "symbols", "entries"):
        database.run(f"erase_{part}", asked)


def _statistics(user: str, agent: str, speaker: str, lengths: Sequence[int], terms: Iterable[str]) -> Counts:
    """Return what one unit adds to the statistics of its owner."""
    found: Counts = Counter({(user, agent, _UNITS, ""): 1, (user, agent, _SPEAKER, speaker): 1})
    found.update({(user, agent, _FIELD, str(field)): length for field, length in enumerate(lengths) if length})
    found.update({(user, agent, _TERM, term): 1 for term in {*terms}})
    return found


def change_counts(database: PostgresDatabase, counts: Counts) -> None:
    """Add to the statistics; what nobody has any more is not named any more (law 16)."""
    changed = sorted((place, n) for place, n in counts.items() if n)
    if not changed:
        return
    users, agents, kinds, names = (list(one) for one in zip(*(place for place, _ in changed), strict=True))
    values: dict[str, Any] = {"users": users, "agents": agents, "kinds": kinds, "names": names}
    numbers = {"ns": [n for _, n in changed]}
    if database.run("add_counts", {**values, **numbers}).rowcount < len(changed):
        database.run("first_counts", {**values, **numbers})
    if any(n < 0 for _, n in changed):
        database.run("drop_counts", values)


def _add(database: PostgresDatabase, derivation: Derivation, units: Sequence[Analysed], counts: Counts) -> None:
    if not units:
        return
    entries = [index_row(derivation, one) for one in units]
    for entry in entries:
        counts.update(_statistics(entry["user"], entry["agent"], entry["speaker"], entry["lengths"], entry["terms"]))
    database.run_many("insert_entry", entries)
    database.run("insert_postings", _columns(_POSTING, (row for one in entries for row in postings_of(one))))
    analysed = [(key, unit.user or GLOBAL, analysis) for key, _, unit, analysis in units]
    for statement, names, rows in (
        ("insert_names", _NAME, (row for one in analysed for row in names_of(*one))),
        ("insert_facts", _FACT, (row for one in analysed for row in facts_of(*one))),
        ("insert_symbols", _SYMBOL, (row for one in analysed for row in symbols_of(derivation, *one))),
    ):
        if (given := _columns(names, rows))["users"]:
            database.run(statement, given)


_POSTING = ("users", "terms", "impacts", "keys", "fields", "tfs", "lengths", "roles", "lows", "highs")
_NAME = ("users", "names", "kinds", "keys")
_FACT = ("users", "keys", "subjects", "relations", "objects", "confidences")
_SYMBOL = ("users", "tokens", "symbols", "keys", "sizes")


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    listed = [*rows]
    return {name: [row[place] for row in listed] for place, name in enumerate(names)}


def index_row(derivation: Derivation, one: Analysed) -> dict[str, Any]:
    """Return the entry of a unit."""
    key, checksum, unit, analysis = one
    held = [(term, field, tf) for field, terms in enumerate(analysis.terms) for term, tf in Counter(terms).items()]
    lengths, lineage = [len(terms) for terms in analysis.terms], unit.lineage
    hypervectors, moment = derivation.hypervectors(unit, analysis), microseconds(unit.event_time)
    return {
        "key": key,
        "user": unit.user or GLOBAL,
        "content": checksum,
        "author": unit.author,
        "speaker": unit.speaker,
        "role": unit.role,
        "agent": unit.agent or "",
        "event_us": moment,
        "starts_us": moment if lineage is None else microseconds(lineage.starts),
        "ends_us": moment if lineage is None else microseconds(lineage.ends),
        "decay_rate": None if lineage is None else lineage.decay_rate,
        "length": len(unit.text),
        "said": author_code(unit),
        "stating": analysis.stating,
        "anchor_density": analysis.anchor_density,
        "lengths": lengths,
        "terms": [term for term, _, _ in held],
        "fields": [field for _, field, _ in held],
        "tfs": [tf for _, _, tf in held],
        "impacts": [_impact(tf, lengths[field]) for _, field, tf in held],
        "topic": Bits.of(hypervectors.topic),
        "claim": Bits.of(hypervectors.claim),
        "acts": [*hypervectors.acts],
    }


def _impact(tf: int, length: int) -> float:
    """Return how much a posting weighs among those of its term, as the 32 bits that are stored."""
    return float(np.float32(tf / (tf + _K1 * (1 - _B + _B * length / _USUAL_LENGTH))))


def postings_of(entry: Mapping[str, Any]) -> Iterable[tuple[Any, ...]]:
    """Yield the postings of an entry."""
    user, key, lengths, role = entry["user"], entry["key"], entry["lengths"], ROLES.index(entry["role"])
    low, high = term_bits(entry["terms"])
    for term, field, tf, impact in zip(entry["terms"], entry["fields"], entry["tfs"], entry["impacts"], strict=True):
        yield user, term, impact, key, field, tf, lengths[field], role, low, high


def term_bits(terms: Iterable[str]) -> tuple[int, int]:
    """Return the bits that some terms set, of 128, as two signed numbers of 64: the lower and the higher ones."""
    bits = 0
    for term in terms:
        bits |= 1 << zlib.crc32(term.encode()) % _BITS
    low, high = (half.to_bytes(_BITS // 16) for half in (bits % (1 << _BITS // 2), bits >> _BITS // 2))
    return int.from_bytes(low, signed=True), int.from_bytes(high, signed=True)


def names_of(key: int, user: str, analysis: Analysis) -> Iterable[tuple[str, str, str, int]]:
    """Yield what a unit is called, and what it mentions (C12)."""
    for kind, names in ((_CALLED, analysis.titles), (_MENTIONED, analysis.mentions)):
        for name in dict.fromkeys(names):
            yield user, name, kind, key


def facts_of(key: int, user: str, analysis: Analysis) -> Iterable[tuple[Any, ...]]:
    """Yield what a unit states (C8); of what it says twice, the surer one."""
    surest: dict[tuple[str, str, str], float] = {}
    for fact in analysis.facts:
        place = (fact.subject, fact.relation, fact.object)
        surest[place] = max(fact.confidence, surest.get(place, 0.0))
    for (subject, relation, other), confidence in surest.items():
        yield user, key, subject, relation, other, confidence


def symbols_of(
    derivation: Derivation, key: int, user: str, analysis: Analysis
) -> Iterable[tuple[str, str, str, int, int]]:
    """Yield the words of the symbols that a unit's facts have, and how many each symbol has."""
    for symbol in dict.fromkeys(end for fact in analysis.facts for end in (fact.subject, fact.object)):
        tokens = {*derivation.tokens(symbol)}
        for token in sorted(tokens):
            yield user, token, symbol, key, len(tokens)
