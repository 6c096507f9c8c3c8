"""What travels through an interface arrives as it was, to the last bit."""

import dataclasses
import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import opened, without_pool
from holdfast import errors
from holdfast.errors import HoldfastError, InputError, ServerError
from holdfast.messages.content import read_content
from holdfast.settings import IngestSettings
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import (
    AnswerState,
    Contribution,
    CutRows,
    FactTable,
    KnownFact,
    Projection,
    QueryProfile,
    RetrievalResult,
    StrategyScores,
    Trace,
    Unit,
)
from holdfast.types.known import About, AboutLine, Replaced
from holdfast.verbs import VERBS, encode_argument
from holdfast.wire import decode, encode, error_of, problem_of, schema

WORDS = ("", "ferry", "naïve Zoë", "雨 🌧", "</memory>", "\u2028", "a/b", "true")
NUMBERS = (0.0, -0.0, 0.1, 1 / 3, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 2**53 + 1.0)
ZONES = (UTC, timezone(timedelta(hours=5, minutes=45)))


class Maker:
    """Makes values of any type that a verb returns, every field of it filled; the seed says which."""

    def __init__(self, seed, numbers=NUMBERS):
        self.random, self.numbers = random.Random(seed), numbers

    def some(self, kind, most=2):
        return [self.make(kind) for _ in range(self.random.randint(0, most))]

    def make(self, kind):
        special = {
            str: lambda: self.random.choice(WORDS), bool: lambda: self.random.random() < 0.5, Any: self.make_json,
            int: lambda: self.random.randint(-(2**63), 2**63), float: self.make_number, datetime: self.make_moment,
            NoneType: lambda: None, Contribution: self.make_tree, RetrievalResult: self.make_result,
            Trace: self.make_trace, FactTable: lambda: FactTable(self.some(KnownFact)),
        }  # fmt: skip
        if kind in special:
            return special[kind]()
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            return self.make(self.random.choice(inner))
        if origin is Literal:
            return self.random.choice(inner)
        if origin is Mapping:
            return {self.make(str): self.make(inner[1]) for _ in range(self.random.randint(0, 2))}
        if origin is tuple and inner[-1] is not ...:
            return tuple(map(self.make, inner))
        if origin is not None:
            return (tuple if origin is Sequence else origin)(self.some(inner[0]))
        hints = get_type_hints(kind)
        names = [one for one in (getattr(kind, "_fields", None) or kind.__dataclass_fields__) if one != "vector"]
        return kind(**{name: self.make(hints[name]) for name in names})

    def make_json(self):
        plain = [None, True, 0, 2**70, 0.1, "x"]
        return self.random.choice([*plain, [*plain], {"a": {"b": [*plain, {}]}}])

    def make_number(self):
        return self.random.choice([*self.numbers, self.random.random()])

    def make_moment(self):
        moment = datetime(2026, 5, 4, tzinfo=UTC) + timedelta(microseconds=self.random.randint(-(10**16), 10**16))
        return moment.astimezone(self.random.choice(ZONES))

    def make_tree(self, depth=3):
        parts = [self.make_tree(depth - 1) for _ in range(self.random.randint(0, depth))]
        if not parts:
            return Contribution(self.make(str), self.random.random())
        return Contribution.of(self.make(str), self.random.choice(["sum", "product", "minimum"]), *parts)

    def make_result(self):
        claims = StrategyScores.of(self.some(str, 4))
        claims.raw[:] = [self.random.random() for _ in claims.ids]
        return RetrievalResult(self.make(str), claims, 0.1, self.make(bool), self.random.random())

    def make_cut(self):
        ids = tuple(self.some(str))
        had = np.array([self.random.random() for _ in ids])
        merged = dict.fromkeys(ids[:1], tuple(self.some(str)))
        return CutRows(self.random.choice(["gap", "max"]), ids, merged, self.random.choice([0.5, had]), had)

    def make_trace(self):
        named = {
            "query": QueryProfile,
            "profile": str,
            "reference_time": datetime,
            "refused": str,
            "notice": str,
            "state": AnswerState,
        }
        return Trace(
            **{name: self.make(kind) for name, kind in named.items()}, results=tuple(self.some(RetrievalResult)),
            pool=None, cuts=(self.make_cut(), self.make_cut()),
            projection=self.make(Projection | None),
        )  # fmt: skip


seeds = st.integers(0, 2**32)


def through_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


def travelled(kind, value):
    return decode(kind, through_json(encode(kind, value)))


def told(value):
    """Return all that a value holds, also what it is not compared by; a vector stays where it was made."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC), value.utcoffset())
    if isinstance(value, Trace):
        names = ("query", "profile", "reference_time", "candidates", "dropped", "refused", "projection", "warnings")
        found = [(one.strategy_id, one.candidates, one.duration_ms, one.exhausted_budget) for one in value.results]
        return [told(getattr(value, name)) for name in names] + found
    if dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value) if one.name != "vector"]
        return (type(value), [told(getattr(value, name)) for name in names])
    if isinstance(value, Mapping):
        return {name: told(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(one) for one in value]
    return value


@pytest.mark.parametrize("name", VERBS)
@given(seed=seeds)
def test_what_a_verb_returns_arrives_as_it_was(name, seed):
    kind = VERBS[name].result
    value = Maker(seed).make(kind)
    assert travelled(kind, value) == value
    assert told(travelled(kind, value)) == told(value)


@given(st.floats())
def test_numbers_arrive_bit_for_bit(number):
    arrived = travelled(float, number)
    assert arrived == number or (math.isnan(arrived) and math.isnan(number))
    assert math.copysign(1, arrived) == math.copysign(1, number) or math.isnan(number)


@pytest.fixture(scope="module")
def answers():
    """Return what every verb says of a small memory, by its name."""
    with opened(embedder=HashEmbedder()) as memory:
        turns = [{"role": "user", "content": f"ferry {n} to Lisbon leaves at {n} o'clock"} for n in range(30)]
        written = memory.remember(turns, user="ana", session="s")
        first, second = written[0].id, written[1].id
        document = memory.ingest("# Ferries\n\nThe ferry lives in Lisbon.\n\nIt is blue.\n", user="ana", name="a.md")
        asked = {"user": "ana", "session": "s", "zone": "Asia/Kathmandu"}
        moment = memory.get(first, user="ana").event_time
        before = (Replaced(second, moment, "I live here"),)
        line = AboutLine("Home", "Where do I live?", first, "There!", moment, "user", 0.75, "Ana", before)
        yield {
            "remember": written,
            "update": memory.update(first, user="ana", metadata={"a": [1, 2.5, {"b": None}]}),
            "ingest": document,
            "widen": memory.widen(document[0].id, user="ana"),
            "search": memory.search("when does the ferry leave?", explain=True, **asked),
            "assemble": memory.assemble("when does the ferry leave?", **asked),
            "why": memory.why("when does the ferry leave?", second, **asked),
            "get": memory.get(first, user="ana"),
            "list": memory.list(user="ana"),
            "facts": memory.facts(user="ana"),
            "about": About((line,), 50, ("a warning",)),
            "history": memory.history(first, user="ana"),
            "stats": memory.stats(user="ana", whole=True),
            "users": memory.users(),
            "export": memory.export(io.BytesIO(), user="ana"),
            "import_": memory.import_(b"User: hello\n\nAssistant: hi\n", user="ben", name="chat.txt"),
            "sessions": memory.sessions(user="ana"),
            "documents": memory.documents(user="ana"),
            "agents": memory.agents(user="ana"),
            "compact": (compacted := memory.compact(user="ana", session="s")),
            "expand": memory.expand(compacted[0].summaries[0], user="ana") if compacted[0].summaries else [],
            "supersede": memory.supersede(first, by=second, user="ana"),
            "reinstate": memory.reinstate(first, user="ana"),
            "overrule": memory.overrule(first, decision="earlier", user="ana"),
            "decisions": memory.decisions(first, user="ana"),
            "reembed": memory.reembed(),
            "forget": memory.forget(ids=[second], user="ana"),
        }


@pytest.mark.parametrize("name", VERBS)
def test_real_answers_arrive_as_they_were(name, answers):
    kind, value = VERBS[name].result, answers[name]
    if name == "forget":
        value = dataclasses.replace(value, units=tuple(value.units))
    value = without_pool(value)
    assert travelled(kind, value) == value
    assert told(travelled(kind, value)) == told(value)


def test_a_brief_answer_leaves_out_what_only_a_closer_look_needs(answers):
    brief = encode(VERBS["search"].result, answers["search"], full=False)
    whole = encode(VERBS["search"].result, answers["search"])
    assert brief == {name: value for name, value in whole.items() if name != "trace"}
    assert brief.keys() == {"hits", "state", "refused", "degraded", "warnings"}
    assert "trace" not in encode(VERBS["assemble"].result, answers["assemble"], full=False)
    erased = encode(VERBS["forget"].result, answers["forget"], full=False)
    assert erased["units"] == [unit.id for unit in answers["forget"].units]


def test_a_trace_travels_without_the_candidates_behind_it(answers):
    for name in ("search", "assemble"):
        kind, value = VERBS[name].result, answers[name]
        assert value.trace.candidates
        assert "pool" not in encode(kind, value)["trace"]
        arrived = travelled(kind, value)
        assert (arrived.trace.pool, arrived.trace.candidates) == (None, ())
    arrived = travelled(VERBS["search"].result, answers["search"])
    assert [hit.contributions for hit in arrived] == [hit.contributions for hit in answers["search"]]


def test_every_answer_has_a_schema_that_names_its_members(answers):
    for name, verb in VERBS.items():
        components = {}
        described = schema(verb.result, components)
        described = described.get("items", described)
        row = encode(verb.result, answers[name])
        row = row[0] if isinstance(row, list) and row else row
        if "$ref" in described and row:
            known = components[described["$ref"].rsplit("/", 1)[1]]
            assert set(row) <= set(known["properties"])
            assert set(known["required"]) <= set(row)


def test_the_schema_says_the_type_of_what_an_answer_tells_besides_its_fields():
    components = {}
    for name in ("search", "assemble", "facts", "compact"):
        schema(VERBS[name].result, components)
    found = components["SearchResult"]["properties"]
    assert found["state"] == components["Context"]["properties"]["state"] == {"enum": ["found", "closest", "nothing"]}
    assert found["refused"] == components["KnownFact"]["properties"]["line"] == {"type": "string"}
    assert components["Compaction"]["properties"]["turns"] == {"type": "integer"}


@given(seeds)
def test_a_unit_that_is_sent_is_read_as_the_unit(seed):
    unit, moment = Maker(seed, numbers=()).make(Unit), Maker(seed).make(datetime)

    def said(content):
        try:
            return read_content(content, IngestSettings())
        except InputError as error:
            return str(error)

    assert said(through_json(encode_argument([unit]))) == said([unit])
    assert datetime.fromisoformat(encode_argument(moment)) == moment


def test_what_cannot_travel_is_refused_by_name():
    with pytest.raises(InputError, match="cannot be sent to a server"):
        encode_argument({"a": [len]})
    with pytest.raises(InputError, match="nan cannot be sent"):
        encode_argument({"ttl": math.nan})
    assert encode_argument(timedelta(days=2, microseconds=3)) == 172800.000003


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_comes_back_as_itself(name):
    error = getattr(errors, name)("no unit 'u1'; check its id")
    problem = through_json(problem_of(error))
    assert (type(error_of(problem)), str(error_of(problem))) == (type(error), str(error))
    assert problem["status"] == error.status
    assert problem["type"].startswith("/problems/")


def test_a_problem_of_nobody_known_is_the_servers():
    assert isinstance(error_of({"error": "Exception", "title": "Bad gateway"}), ServerError)
    assert issubclass(ServerError, HoldfastError)
