"""Values ⇄ JSON by their types, exactly: `decode(kind, encode(kind, value)) == value`; and the schema of that JSON.

No library does it: arrays and trees need forms of their own, and what a client reads has to be the value
that an embedded memory returns, to the last bit. It needs none either, so that a client has nothing more to install.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from holdfast import errors
from holdfast.errors import HoldfastError, ServerError
from holdfast.types import (
    JSON,
    AnswerState,
    Compaction,
    Contribution,
    Cut,
    CutRows,
    Erasure,
    FactTable,
    KnownFact,
    Projection,
    QueryProfile,
    RetrievalResult,
    SearchResult,
    StrategyScores,
    Trace,
    Unit,
)
from holdfast.types.contexts import Context
from holdfast.types.known import AboutLine
from holdfast.values import dataclass

AnnotationForm = Any  # an annotation
# A unit has forty fields, and most of them are at their default.
_SPARSE = (Unit,)
# Fields of the moment and of one machine: they do not compare, and an array means nothing to a reader.
_LEFT_OUT = {QueryProfile: ("vector",)}
# What a value tells besides its fields, for readers of the JSON; not read back.
_DERIVED: dict[type, tuple[str, ...]] = {
    Context: ("text", "refused"),
    SearchResult: ("state", "refused", "degraded", "warnings"),
    KnownFact: ("line",),
    AboutLine: ("line",),
    Compaction: ("turns", "summaries", "tokens_saved", "mean_confidence", "method", "declined", "trivial", "changed"),
}
# Units that travel as their ids alone when a caller does not ask for all of them.
_BY_ID: dict[type, tuple[str, ...]] = {Erasure: ("units", "summaries")}
# What only a closer look needs, and is many times the answer: it travels when a caller asks for it.
_ON_REQUEST: dict[type, tuple[str, ...]] = {SearchResult: ("trace",), Context: ("trace",)}
# What stands for a number that JSON has none for.
NOT_FINITE = ["inf", "-inf", "nan"]


class Form(NamedTuple):
    """How values of one type are written, read back, and described."""

    encode: Callable[[Any], JSON]
    decode: Callable[[JSON], Any]
    schema: Callable[[dict[str, JSON]], JSON]


def encode(kind: AnnotationForm, value: object, *, full: bool = True) -> JSON:
    """Return `value` of the type `kind` as JSON.

    A trace travels without its pool. Without `full`, what only a closer look needs is left out: the trace, and of
    what was erased everything but the ids.
    """
    if not full and isinstance(value, SearchResult | Context):
        answer: AnnotationForm = type(value)
        return _brief_form(answer).encode(value)
    if not full and isinstance(value, Erasure):
        ids = {name: [unit.id for unit in getattr(value, name)] for name in _BY_ID[Erasure]}
        return form_of(kind).encode(dataclasses.replace(value, units=(), summaries=())) | ids
    return form_of(kind).encode(value)


def decode(kind: AnnotationForm, value: JSON) -> Any:  # noqa: ANN401 - a value of `kind`
    """Read what `encode` wrote in full; members that are not known are passed over."""
    return form_of(kind).decode(value)


def schema(kind: AnnotationForm, components: dict[str, JSON]) -> JSON:
    """Return the JSON Schema of what `encode` writes; named types are put into `components`."""
    return form_of(kind).schema(components)


# ------------------------------------------------------------------------------------------------ plain types


def _keep(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _plain(**described: JSON) -> Form:
    return Form(_keep, _keep, lambda _: described)


def _write_float(value: float) -> JSON:
    return value if math.isfinite(value) else str(float(value))


def _write_time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


_NUMBER = {"anyOf": [{"type": "number"}, {"enum": NOT_FINITE}]}
_FORMS: dict[AnnotationForm, Form] = {
    Any: _plain(),
    str: _plain(type="string"),
    bool: _plain(type="boolean"),
    int: _plain(type="integer"),
    types.NoneType: _plain(type="null"),
    float: Form(_write_float, float, lambda _: _NUMBER),
    datetime: Form(_write_time, datetime.fromisoformat, lambda _: {"type": "string", "format": "date-time"}),
}


@cache
def form_of(kind: AnnotationForm) -> Form:
    """Return how values of a type travel.

    Raises:
        TypeError: values of this type never travel.
    """
    if kind in _FORMS:
        return _FORMS[kind]
    origin: AnnotationForm = get_origin(kind)
    inner = get_args(kind)
    if origin is Literal:
        return _plain(enum=[*inner])
    if origin in (Union, types.UnionType):
        return _union(inner)
    if origin in (tuple, list, frozenset, Sequence):
        return _array(origin, inner)
    if origin is Mapping:
        return _mapping(form_of(inner[1]))
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return _object(kind)
    raise TypeError(f"{kind} has no form in JSON")


def _union(kinds: tuple[AnnotationForm, ...]) -> Form:
    """Return the form of one of several types; classes are told apart by a member `type`."""
    forms = {kind: form_of(kind) for kind in kinds}

    def describe(components: dict[str, JSON]) -> JSON:
        return {"anyOf": [form.schema(components) for form in forms.values()]}

    some = [kind for kind in kinds if kind is not types.NoneType]
    if len(some) == 1:
        write, read = forms[some[0]].encode, forms[some[0]].decode
        if write is _keep:
            return Form(_keep, _keep, describe)
        return Form(
            lambda value: None if value is None else write(value),
            lambda value: None if value is None else read(value),
            describe,
        )
    if not all(dataclasses.is_dataclass(kind) for kind in some):
        return Form(_keep, _keep, describe)  # texts, numbers and the like are themselves
    named = {kind.__name__.lower(): kind for kind in some}
    return Form(
        lambda value: {"type": type(value).__name__.lower(), **forms[type(value)].encode(value)},
        lambda value: forms[named[value["type"]]].decode(value),
        describe,
    )


def _array(origin: AnnotationForm, inner: tuple[AnnotationForm, ...]) -> Form:
    if origin is tuple and inner[-1] is not ...:
        forms = [form_of(one) for one in inner]
        return Form(
            lambda value: [form.encode(one) for form, one in zip(forms, value, strict=True)],
            lambda value: tuple(form.decode(one) for form, one in zip(forms, value, strict=True)),
            lambda components: {
                "type": "array", "prefixItems": [form.schema(components) for form in forms],
                "minItems": len(forms), "maxItems": len(forms),
            },
        )  # fmt: skip
    each = form_of(inner[0])
    gather = tuple if origin is Sequence else origin
    ordered = sorted if origin is frozenset else _keep
    return Form(
        list if each.encode is _keep and ordered is _keep else lambda value: [*map(each.encode, ordered(value))],
        lambda value: gather(map(each.decode, value)),
        lambda components: {"type": "array", "items": each.schema(components)},
    )


def _mapping(each: Form) -> Form:
    return Form(
        lambda value: {name: each.encode(one) for name, one in value.items()},
        lambda value: {name: each.decode(one) for name, one in value.items()},
        lambda components: {"type": "object", "additionalProperties": each.schema(components)},
    )


def _members(kind: AnnotationForm, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a class that travel, each with its default."""
    if dataclasses.is_dataclass(kind):
        fields: dict[str, Any] = {
            one.name: {} if one.default_factory is not dataclasses.MISSING else one.default
            for one in dataclasses.fields(kind)
        }
    else:
        fields = {name: kind._field_defaults.get(name, dataclasses.MISSING) for name in kind._fields}
    left_out = (*_LEFT_OUT.get(kind, ()), *without)
    return {name: default for name, default in fields.items() if name not in left_out}


@cache
def _brief_form(kind: AnnotationForm) -> Form:
    return _object(kind, _ON_REQUEST[kind])


def _object(kind: AnnotationForm, without: tuple[str, ...] = ()) -> Form:
    """Return the form of a class of fields: an object, with what it tells besides."""
    defaults, hints, sparse = _members(kind, without), get_type_hints(kind), kind in _SPARSE
    forms = {name: form_of(hints[name]) for name in defaults}
    derived = _DERIVED.get(kind, ())
    # On the way of every answer: what is written as it is costs nothing here.
    fetch = _getter(*defaults)
    coded = [(name, one.encode) for name, one in forms.items() if one.encode is not _keep]

    def write(value: object) -> JSON:
        row = dict(zip(defaults, fetch(value), strict=True))
        if sparse:
            row = {name: one for name, one in row.items() if one != defaults[name]}
        for name, write_one in coded:
            if name in row:
                row[name] = write_one(row[name])
        return row | {name: _told(getattr(value, name)) for name in derived}

    def read(row: JSON) -> object:
        return kind(**{name: form.decode(row[name]) for name, form in forms.items() if name in row})

    def describe(components: dict[str, JSON]) -> JSON:
        called = kind.__name__.lstrip("_")
        if called not in components:
            made: dict[str, Any] = {"type": "object", "description": _first_line(kind)}
            components[called] = made  # before its members: one of them may be of the same kind
            known = {name for name, default in defaults.items() if sparse and default is not dataclasses.MISSING}
            known.update(_ON_REQUEST.get(kind, ()))
            made["properties"] = {name: form.schema(components) for name, form in forms.items()}
            for name in _BY_ID.get(kind, ()):
                made["properties"][name]["items"] = {"anyOf": [schema(Unit, components), {"type": "string"}]}
            made["properties"] |= {name: form_of(_told_kind(kind, name)).schema(components) for name in derived}
            made["required"] = [*(name for name in defaults if name not in known), *derived]
        return {"$ref": f"#/components/schemas/{called}"}

    return Form(write, read, describe)


def _getter(*names: str) -> Callable[[object], tuple[Any, ...]]:
    fetch = attrgetter(*names)
    return fetch if len(names) > 1 else lambda value: (fetch(value),)


def _unit() -> Form:
    """Return the form of a unit: its statement is written where it says something else than its text."""
    plain = _object(Unit)

    def write(unit: Unit) -> JSON:
        row = plain.encode(unit)
        said = getattr(unit, unit.statement_field)
        if said == unit.text:
            row.pop(unit.statement_field, None)
        elif not said:
            row[unit.statement_field] = said
        return row

    def read(row: JSON) -> Unit:
        name = "procedure" if row.get("role") == "Procedure" else "claim"
        unit: Unit = plain.decode({name: row["text"], **row})
        return unit

    return Form(write, read, plain.schema)


def _told(value: object) -> JSON:
    if isinstance(value, float):
        return _write_float(value)
    return list(value) if isinstance(value, tuple) else value


def _told_kind(kind: type, name: str) -> AnnotationForm:
    return get_type_hints(getattr(kind, name).fget)["return"]


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


# ----------------------------------------------------------------------------------------- forms of their own


@dataclass(frozen=True, slots=True)
class _SentResult:
    """What one strategy found: the ids and their raw scores, best first; the other columns are for stages alone."""

    strategy_id: str
    ids: tuple[str, ...]
    raw: tuple[float, ...]
    found: int
    duration_ms: float
    exhausted_budget: bool
    scale: float
    escalated: bool


# Without the candidates: they are hundreds, and no client looked at them.
@dataclass(frozen=True, slots=True)
class _SentTrace:
    """What every stage of one recall decided."""

    query: QueryProfile
    profile: str
    results: tuple[RetrievalResult, ...]
    cuts: tuple[CutRows, ...]
    reference_time: datetime
    refused: str
    projection: Projection | None
    notice: str
    degraded: str
    state: AnswerState


def _write_result(result: RetrievalResult) -> JSON:
    ids, raw = result.claims.ids, tuple(result.claims.raw.tolist())
    sent = _SentResult(
        result.strategy_id, ids, raw, len(ids), result.duration_ms, result.exhausted_budget, result.scale,
        result.escalated,
    )  # fmt: skip
    return form_of(_SentResult).encode(sent)


def _read_result(row: JSON) -> RetrievalResult:
    sent: _SentResult = decode(_SentResult, row)
    claims = StrategyScores.of(sent.ids)
    claims.raw[:] = sent.raw
    return RetrievalResult(
        sent.strategy_id, claims, sent.duration_ms, sent.exhausted_budget, sent.scale, sent.escalated
    )


def _write_trace(trace: Trace) -> JSON:
    names = [one.name for one in dataclasses.fields(_SentTrace)]
    return form_of(_SentTrace).encode(_SentTrace(**{name: getattr(trace, name) for name in names}))


def _read_trace(row: JSON) -> Trace:
    sent: _SentTrace = decode(_SentTrace, row)
    return Trace(
        sent.query, sent.profile, sent.results, None, sent.cuts,
        sent.reference_time, sent.refused, sent.projection, sent.notice, sent.degraded, sent.state,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _SentCut:
    """What one cut removed: ids, the bar that each had to reach (or one bar for all), and what each had."""

    cut: Cut
    ids: tuple[str, ...]
    merged: Mapping[str, tuple[str, ...]]
    needed: Any
    had: tuple[float, ...]


def _write_cut(rows: CutRows) -> JSON:
    needed = rows.needed.tolist() if isinstance(rows.needed, np.ndarray) else float(rows.needed)
    merged = {one: rows.merged[one] for one in rows.ids if rows.merged.get(one)}
    return form_of(_SentCut).encode(_SentCut(rows.cut, rows.ids, merged, needed, tuple(rows.had.tolist())))


def _read_cut(row: JSON) -> CutRows:
    sent: _SentCut = decode(_SentCut, row)
    needed = np.array(sent.needed) if isinstance(sent.needed, list) else sent.needed
    return CutRows(sent.cut, sent.ids, sent.merged, needed, np.array(sent.had))


def _describe_tree(components: dict[str, JSON]) -> JSON:
    ref = {"$ref": "#/components/schemas/Contribution"}
    components["Contribution"] = {
        "type": "object",
        "description": _first_line(Contribution),
        "properties": {
            "name": {"type": "string"},
            "value": {"type": "number"},
            "op": {"enum": ["sum", "product", "ratio", "minimum", "given"]},
            "parts": {"type": "array", "items": ref},
        },
        "required": ["name", "value"],
    }
    return ref


def _read_facts(rows: JSON) -> FactTable:
    return FactTable(decode(KnownFact, row) for row in rows)


_FORMS |= {
    Unit: _unit(),
    Contribution: Form(Contribution.to_json, Contribution.from_json, _describe_tree),
    RetrievalResult: Form(_write_result, _read_result, lambda components: schema(_SentResult, components)),
    CutRows: Form(_write_cut, _read_cut, lambda components: schema(_SentCut, components)),
    Trace: Form(_write_trace, _read_trace, lambda components: schema(_SentTrace, components)),
    FactTable: Form(
        lambda facts: [encode(KnownFact, one) for one in facts],
        _read_facts,
        lambda components: {"type": "array", "items": schema(KnownFact, components)},
    ),
}


# -------------------------------------------------------------------------------------------------- problems


def problem_of(error: HoldfastError, status: int | None = None) -> dict[str, JSON]:
    """Return an error as a problem document (RFC 9457); `error` names its class in the tree of errors."""
    name = type(error).__name__
    words = "".join(f"-{one.lower()}" if one.isupper() else one for one in name.removesuffix("Error")).lstrip("-")
    return {
        "type": f"/problems/{words}",
        "title": _first_line(type(error)),
        "status": type(error).status if status is None else status,
        "detail": str(error),
        "error": name,
    }


def error_of(problem: Mapping[str, JSON]) -> HoldfastError:
    """Return the error that a problem document tells of: the same class, the same message."""
    name, detail = str(problem.get("error")), str(problem.get("detail") or problem.get("title") or "no reason given")
    return getattr(errors, name)(detail) if name in errors.__all__ else ServerError(detail)
