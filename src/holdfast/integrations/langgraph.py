"""LangGraph: a `BaseStore`. An item is a unit: its indexed words are remembered, its value is kept exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from holdfast.arguments import OwnerOptions
from holdfast.errors import FilterError, InputError, NotFoundError, quote_value
from holdfast.integrations.host_messages import MOST_WORDS, MemorySource, missing_package, open_memory
from holdfast.messages.checks import check_list, check_names
from holdfast.types import JSON, Unit, digest

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise missing_package("langgraph", error) from error

ItemKey = tuple[tuple[str, ...], str]
I = TypeVar("I", bound=Item)  # noqa: E741 - an item
_OPERATORS = {"$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}
# Labels hold no period, so that one ends a label; a slash is the character that comes next.
_END, _BEHIND = ".", "/"


class HoldfastStore(BaseStore):
    """A LangGraph store over a memory; `memory` is an open one, a path or an address, `user` whose it is.

    `fields` names what of a value is indexed unless `put` says so: paths as LangGraph writes them, everything by
    default. A search with a query returns what fits the question, at most `limit` items, and no others. A time to
    live that is refreshed by reading is a new version of its unit each time.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: MemorySource,
        *,
        user: str,
        tenant: str | None = None,
        fields: Iterable[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self.memory = open_memory(memory)
        self.ttl_config = ttl
        self._owner: OwnerOptions = {"user": user, "tenant": tenant}
        self._fields = list(fields)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer every read from the state before the writes; of two writes to one key the last counts."""
        asked = list(ops)
        for op in asked:
            _check(op)
            validate_op_namespace(op)
        results = [self._read(op) for op in asked]
        self._write({(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)})
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See `batch`; the event loop does not wait."""
        return await asyncio.to_thread(self.batch, ops)

    # ------------------------------------------------------------------------------------------------- reading

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        return self._namespaces(op) if isinstance(op, ListNamespacesOp) else None

    def _get(self, op: GetOp) -> Item | None:
        unit = self._find(_name((tuple(op.namespace), op.key)))
        if unit is None:
            return None
        if unit.expires_at is not None and not self._named([unit.id]):  # a list leaves out what has expired
            return None
        if op.refresh_ttl:
            self._refresh([unit])
        return _item(Item, unit)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = {"and": [_within(op.namespace_prefix), *_conditions(op.filter or {}, ())]}
        last = op.offset + op.limit
        if last < 1:
            return []
        if not op.query:
            scored: list[tuple[Unit, float | None]] = [(unit, None) for unit in self._units(wanted, last)]
        else:
            indexed = {"and": [wanted, {"metadata.langgraph.indexed": True}]}
            hits = self.memory.search(op.query, limit=last, filters=indexed, current_only=False, **self._owner)
            # Items with the same words are one hit.
            scored = [(unit, hit.score) for hit in hits for unit in (hit.unit, *self._named(hit.merged_ids))]
        scored = scored[op.offset : last]
        if op.refresh_ttl:
            self._refresh([unit for unit, _ in scored])
        return [_item(SearchItem, unit, score=score) for unit, score in scored]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {tuple(unit.metadata["langgraph"]["namespace"]) for unit in self._units(_within(()), None)}
        fitting = (one for one in found if all(_matches(condition, one) for condition in op.match_conditions or ()))
        return sorted({one[: op.max_depth] for one in fitting})[op.offset : op.offset + op.limit]

    def _find(self, name: str) -> Unit | None:
        try:
            return self.memory.get(name, **self._owner)
        except NotFoundError:
            return None

    def _units(self, filters: JSON, limit: int | None) -> list[Unit]:
        return self.memory.list(filters=filters, limit=limit, order="oldest", current_only=False, **self._owner)

    def _named(self, ids: Iterable[str]) -> list[Unit]:
        return self._units({"id": {"in": [*ids]}}, None) if ids else []

    def _refresh(self, units: Iterable[Unit]) -> None:
        for unit in units:
            if (minutes := unit.metadata["langgraph"].get("ttl")) is not None:
                self.memory.update(unit.id, ttl=_lifetime(minutes), **self._owner)

    # ------------------------------------------------------------------------------------------------- writing

    def _write(self, puts: Mapping[ItemKey, PutOp]) -> None:
        by_lifetime: dict[float | None, list[JSON]] = {}
        for place, op in puts.items():
            if op.value is not None:
                by_lifetime.setdefault(op.ttl, []).append(self._as_unit(place, op))
        for minutes, units in by_lifetime.items():
            lifetime = None if minutes is None else _lifetime(minutes)
            self.memory.remember(units, ttl=lifetime, scope="user", **self._owner)
        gone = [unit.id for place, op in puts.items() if op.value is None and (unit := self._find(_name(place)))]
        if gone:  # together: to erase for good takes longer the larger the store is
            self.memory.forget(ids=gone, **self._owner)

    def _as_unit(self, place: ItemKey, op: PutOp) -> JSON:
        namespace, key = place
        paths = self._fields if op.index is None else op.index or []
        words = "\n".join(text for path in paths for text in _words(op.value, path))[:MOST_WORDS]
        label = ".".join((*namespace, key))
        kept = {
            "namespace": [*namespace],
            "path": _END.join((*namespace, "")),
            "key": key,
            "value": dict(op.value or {}),
            "indexed": bool(words.strip()),
        }
        return {
            "id": _name(place),
            "kind": "knowledge",
            # What is not indexed is found by its key and its filters alone.
            "text": words if kept["indexed"] else f"[{label}]",
            "author": "assistant",  # an agent's notes are not the user's own words
            "origin": "conversation",
            "utility_acts": [],
            "metadata": {"langgraph": kept | ({} if op.ttl is None else {"ttl": op.ttl})},
        }


def _check(op: Op) -> None:
    """Refuse what LangGraph's types rule out: callers of a model's tools have none."""
    for name in ("limit", "offset", "max_depth"):
        number = getattr(op, name, 0)
        if type(number) is not int and (name, number) != ("max_depth", None):
            raise InputError(f"{name} = {quote_value(number)} is no whole number; give one")
    if not isinstance(op, PutOp):
        return
    if not isinstance(op.value, Mapping | None):
        raise InputError(f"value = {quote_value(op.value)} is no dict; give one, or None to delete the item")
    if op.index is not None and op.index is not False:
        check_names("index", check_list("index", op.index))


def _name(place: ItemKey) -> str:
    namespace, key = place
    return f"langgraph-{digest([*namespace], key)}"


def _item(kind: type[I], unit: Unit, **more: Any) -> I:  # noqa: ANN401 - what kinds of items have besides
    kept = unit.metadata["langgraph"]
    return kind(
        namespace=tuple(kept["namespace"]), key=kept["key"], value=kept["value"], created_at=unit.event_time,
        updated_at=unit.recorded_time, **more,
    )  # fmt: skip


def _words(value: JSON, path: str) -> list[str]:
    """Return the words at a path; of a whole value every text as it is, and anything else by its name."""
    if path != "$":
        return [str(text) for text in get_text_at_path(value, path)]
    if isinstance(value, Mapping):
        return [text for name, one in value.items() for text in _named_words(name, one)]
    return [text for one in value for text in _words(one, "$")] if isinstance(value, list | tuple) else [str(value)]


def _named_words(name: str, value: JSON) -> list[str]:
    if value is None:
        return []
    texts = _words(value, "$")
    return texts if isinstance(value, str | Mapping | list | tuple) else [f"{name}: {text}" for text in texts]


def _lifetime(minutes: object) -> timedelta:
    try:
        return timedelta(minutes=minutes)  # type: ignore[arg-type]  # says itself what it does not take
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"ttl = {quote_value(minutes)} is no number of minutes; give one") from error


def _within(prefix: Iterable[str]) -> JSON:
    """Return the filter of a namespace and all that are in it."""
    path = _END.join((*prefix, ""))
    return {"metadata.langgraph.path": {"gte": path, "lt": path[:-1] + _BEHIND} if path else {"ne": None}}


def _conditions(wanted: Mapping[str, Any], inside: tuple[str, ...]) -> list[JSON]:
    """Return the filters that LangGraph's `filter` on a value is."""
    found: list[JSON] = []
    if not isinstance(wanted, Mapping):
        raise FilterError(f"{quote_value(wanted)} is no filter; give a dict of keys and values")
    for name, value in wanted.items():
        if not isinstance(name, str) or not name or "." in name:
            raise FilterError(
                f"a filter on the key {quote_value(name)} cannot be answered; keys are text without periods"
            )
        place = (*inside, name)
        path = ".".join(("metadata", "langgraph", "value", *place))
        if not isinstance(value, Mapping):
            found.append({path: value})
        elif any(str(operator).startswith("$") for operator in value):
            found += [{path: {_operator(name, operator): operand}} for operator, operand in value.items()]
        else:
            found += _conditions(value, place)
    return found


def _operator(name: str, operator: str) -> str:
    if operator not in _OPERATORS:
        raise FilterError(
            f"{quote_value(operator)} on {quote_value(name)} is not an operator; use one of {', '.join(_OPERATORS)}"
        )
    return _OPERATORS[operator]


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
