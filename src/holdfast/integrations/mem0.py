"""mem0's `Memory` and `AsyncMemory`: its verbs, arguments and results, over a memory of Holdfast.

    from holdfast.integrations.mem0 import Memory

Words are kept as they are said: `infer`, `prompt` and `memory_type` are accepted and change nothing, and no model is
asked. `timestamp` and `reference_date` work. Ids may stand before the other arguments or in `filters`. A memory
belongs to one user: without a `user_id`, a verb reaches what was added without one.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote, unquote

from holdfast.arguments import Filters
from holdfast.errors import FilterError, InputError, NotFoundError, quote_value
from holdfast.integrations.host_messages import open_memory
from holdfast.memory import Memory as Holdfast
from holdfast.types import Hit, Unit, iso

log = logging.getLogger("holdfast")
P = ParamSpec("P")
R = TypeVar("R")
Result = dict[str, Any]
# Whose memories are that have an agent or a run, and no user.
NOBODY = "nobody"
_LIMIT = 20
_THRESHOLD = 0.1
_IDS = ("user_id", "agent_id", "run_id")
# mem0's names for fields of a unit; anything else is metadata.
_FIELDS = {
    "agent_id": "agent", "run_id": "session", "actor_id": "speaker", "role": "author", "created_at": "event_time",
    "updated_at": "recorded_time",
}  # fmt: skip
_JUNCTIONS = ("AND", "OR", "NOT")
_COMPARISONS = ("eq", "ne", "in", "gt", "gte", "lt", "lte", "contains")
_UNSET: Any = object()


class Memory:
    """mem0's memory. `memory` is an open one of Holdfast, a path or an address; the usual one by default.

    `config` is accepted for mem0's sake; of it, `holdfast.path` and `holdfast.token` are read (see `from_config`).
    """

    def __init__(self, config: object = None, *, memory: Holdfast | str | Path | None = None) -> None:
        if memory is None:
            path, token = _read_config(config)
            self.memory = Holdfast.open(path, token=token)
        else:
            self.memory = open_memory(memory)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the memory that `{"holdfast": {"path": …, "token": …}}` names; mem0's own parts are left unread."""
        return cls(config_dict)

    def add(
        self, messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *, user_id: str | None = None,
        agent_id: str | None = None, run_id: str | None = None, metadata: Mapping[str, Any] | None = None,
        timestamp: object = None, expiration_date: object = None, infer: bool = True, memory_type: str | None = None,
        prompt: str | None = None, llm: object = None,
    ) -> Result:  # fmt: skip
        """Keep messages word for word; return what was done with each, as `ADD`, or `NONE` when it was known.

        `timestamp` is when it was said: seconds since 1970, a datetime, or text. After the day
        `expiration_date` it is hidden.
        """
        del infer, memory_type, prompt, llm  # there is no model to ask
        ids = _check_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        said = [messages] if isinstance(messages, str | Mapping) else [*_check("messages", messages, Sequence)]
        said = [one for one in said if not isinstance(one, Mapping) or one.get("role") != "system"]
        if not said:
            return {"results": []}
        done = self.memory.remember(
            said, user=ids["user_id"] or NOBODY, agent=ids["agent_id"], session=ids["run_id"], scope="user",
            metadata=metadata or None, at=_moment(timestamp), valid_to=_end_of(expiration_date),
        )  # fmt: skip
        owner = ids["user_id"] or NOBODY
        units = [self.memory.get(one.id, user=owner) for one in done]
        return {
            "results": [
                {
                    "id": _public_id(owner, unit), "memory": unit.text,
                    "event": "NONE" if one.status == "duplicate" else "ADD", "actor_id": unit.speaker or None,
                    "role": unit.author,
                }
                for one, unit in zip(done, units, strict=True)
            ]
        }  # fmt: skip

    def search(
        self, query: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        top_k: int | None = None, limit: int | None = None, filters: Filters | None = None,
        threshold: float | None = _THRESHOLD, rerank: bool = False, explain: bool = False,
        reference_date: object = None, show_expired: bool = False,
    ) -> Result:  # fmt: skip
        """Return the memories that answer, best first, and in `state` what they are worth.

        `score_details`, when asked for, is the tree that the score is composed of. `reference_date` is the moment at
        which the question is asked: "last week" and what is still valid depend on it.
        """
        del rerank  # what is fused is ranked already
        owner, wanted = _read_filters(filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        hits = self.memory.search(
            query, user=owner, limit=_first(top_k, limit), filters=wanted, explain=explain,
            reference_time=_moment(reference_date), current_only=not show_expired,
        )  # fmt: skip
        bar = _check("threshold", threshold or 0.0, (int, float))
        found = [_found(owner, hit, explain=explain) for hit in hits if hit.score >= bar]
        return {"results": found, "state": hits.state if found else "nothing"}

    def get(self, memory_id: str) -> Result | None:
        """Return one memory; None when there is no such one."""
        owner, name = _private_id(memory_id)
        try:
            return _memory(owner, self.memory.get(name, user=owner))
        except NotFoundError:
            return None

    def get_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        filters: Filters | None = None, top_k: int | None = None, limit: int | None = None,
        show_expired: bool = False,
    ) -> Result:  # fmt: skip
        """Return memories, newest first; `show_expired` adds what has expired, and what was replaced since."""
        owner, wanted = _read_filters(filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        most = _first(top_k, limit)
        units = self.memory.list(user=owner, filters=wanted, limit=most, current_only=not show_expired)
        return {"results": [_memory(owner, unit) for unit in units]}

    def update(
        self, memory_id: str, text: str | None = None, metadata: Mapping[str, Any] | None = None,
        expiration_date: object = _UNSET, data: str | None = None,
    ) -> Result:  # fmt: skip
        """Change the words of one memory, some of its metadata, or until when it is shown."""
        owner, name = _private_id(memory_id)
        changes: dict[str, Any] = {}
        if (words := text if text is not None else data) is not None:
            changes["text"] = words
        if metadata is not None:
            changes["metadata"] = {**self._known(memory_id).metadata, **_check("metadata", metadata, Mapping)}
        if expiration_date is not _UNSET:
            changes["valid_to"] = _end_of(expiration_date)
        if not changes:
            raise InputError("nothing to change; give text, metadata or expiration_date")
        self._known(memory_id)
        self.memory.update(name, user=owner, **changes)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> Result:
        """Erase one memory for good.

        Raises:
            InputError: there is no such memory.
        """
        self._known(memory_id)
        owner, name = _private_id(memory_id)
        self.memory.forget(ids=name, user=owner)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Result:  # fmt: skip
        """Erase all memories of a user, or those that an agent or a run has among them.

        Raises:
            InputError: nobody is named.
        """
        owner, wanted = _read_filters(None, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        units = self.memory.list(user=owner, filters=wanted, limit=None, current_only=False)
        own = [unit.id for unit in units if unit.user == owner]
        if own:
            self.memory.forget(ids=own, user=owner)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Result]:
        """Return every change of one memory, oldest first."""
        owner, name = _private_id(memory_id)
        try:
            versions = self.memory.history(name, user=owner)
        except NotFoundError:
            return []
        before = [None, *(unit.text for unit in versions)]
        return [
            {
                "id": f"{memory_id}@{unit.version}", "memory_id": memory_id, "old_memory": old,
                "new_memory": unit.text, "event": "ADD" if old is None else "UPDATE",
                "created_at": iso(unit.event_time),
                "updated_at": iso(unit.recorded_time), "is_deleted": False, "actor_id": unit.speaker or None,
                "role": unit.author,
            }
            for old, unit in zip(before, versions, strict=False)
        ]  # fmt: skip

    def reset(self) -> None:
        """Erase all memories of all users."""
        for one in self.memory.users(limit=None):
            self.memory.forget(all=True, user=one.name)

    def close(self) -> None:
        """Release the store."""
        self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _known(self, memory_id: str) -> Unit:
        owner, name = _private_id(memory_id)
        try:
            return self.memory.get(name, user=owner)
        except NotFoundError as error:
            raise InputError(
                f"Memory with id {quote_value(memory_id)} not found; give one as search returns it"
            ) from error


def _offload(
    verb: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Any]:
    @functools.wraps(verb)
    async def run(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(verb, self._memory, *args, **kwargs)

    return run


class AsyncMemory:
    """mem0's memory for an event loop: the verbs of `Memory`, awaited."""

    def __init__(self, config: object = None, *, memory: Holdfast | str | Path | None = None) -> None:
        self._memory = Memory(config, memory=memory)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """See `Memory.from_config`."""
        return cls(config_dict)

    add = _offload(Memory.add)
    search = _offload(Memory.search)
    get = _offload(Memory.get)
    get_all = _offload(Memory.get_all)
    update = _offload(Memory.update)
    delete = _offload(Memory.delete)
    delete_all = _offload(Memory.delete_all)
    history = _offload(Memory.history)
    reset = _offload(Memory.reset)

    def close(self) -> None:
        """Release the store."""
        self._memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


# ------------------------------------------------------------------------------------------------------------ results


def _public_id(owner: str, unit: Unit) -> str:
    """Return the id that a caller gets: mem0 finds a memory by it alone, and here it has to say whose it is."""
    return f"{quote(owner, safe='')}/{unit.id}"


def _private_id(memory_id: object) -> tuple[str, str]:
    owner, slash, name = memory_id.partition("/") if isinstance(memory_id, str) else ("", "", "")
    if not (slash and owner and name):
        raise InputError(f"{quote_value(memory_id)} is not the id of a memory; give one as add or search returns it")
    return unquote(owner), name


def _memory(owner: str, unit: Unit) -> Result:
    named = {"user_id": owner if owner != NOBODY else None, "agent_id": unit.agent, "run_id": unit.session}
    named |= {"actor_id": unit.speaker or None, "role": unit.author}
    if unit.valid_to is not None:
        named["expiration_date"] = (unit.valid_to - timedelta(days=1)).date().isoformat()
    return {
        "id": _public_id(owner, unit),
        "memory": unit.text,
        "hash": hashlib.md5(unit.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": dict(unit.metadata) or None,
        "created_at": iso(unit.event_time),
        "updated_at": iso(unit.recorded_time),
        **{name: value for name, value in named.items() if value is not None},
    }


def _found(owner: str, hit: Hit, *, explain: bool) -> Result:
    found = {**_memory(owner, hit.unit), "score": hit.score}
    if explain and hit.contributions is not None:
        found["score_details"] = hit.contributions.to_json()
    return found


# ---------------------------------------------------------------------------------------------------------- arguments


def _read_config(config: object) -> tuple[str | Path | None, str | None]:
    if config is None:
        return None, None
    given = config if isinstance(config, Mapping) else {}
    own = given.get("holdfast") or {}
    if not isinstance(config, Mapping) or not isinstance(own, Mapping):
        raise InputError(
            f'config = {quote_value(config)} is not understood; give {{"holdfast": {{"path": "memory.db"}}}}'
        )
    if others := sorted(set(given) - {"holdfast"}):
        log.info("mem0's configuration of %s is not used: Holdfast has its own", ", ".join(others))
    return own.get("path"), own.get("token")


def _check(name: str, value: Any, kind: Any) -> Any:  # noqa: ANN401 - whatever a caller gives
    """Return an argument of a kind: mem0's callers have no types."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{name} = {quote_value(value)} is not understood; give it as mem0 takes it")
    return value


def _check_ids(ids: Mapping[str, object]) -> dict[str, str | None]:
    """Return the ids as text; one is needed."""
    checked = {name: None if value is None else str(value).strip() for name, value in ids.items()}
    if not any(checked.values()):
        raise InputError("at least one of user_id, agent_id and run_id is needed; a memory always belongs to someone")
    for name, value in checked.items():
        if value is not None and not value:
            raise InputError(f"{name} = {quote_value(ids[name])} is blank; name somebody, or leave it out")
    return checked


def _read_filters(filters: Filters | None, ids: Mapping[str, object]) -> tuple[str, Filters | None]:
    """Return whose memory is asked, and the filter in Holdfast's words."""
    named, conditions = {name: value for name, value in ids.items() if value is not None}, []
    for one in _flat(_check("filters", filters or {}, Mapping)):
        [(key, value)] = one.items()
        if key in _IDS and not isinstance(value, Mapping) and value != "*":
            if named.setdefault(key, value) != value:
                raise InputError(f"{key} is both {quote_value(named[key])} and {quote_value(value)}; keep one")
        else:
            conditions.append(_condition(key, value))
    checked = _check_ids({name: named.get(name) for name in _IDS})
    conditions += [{_FIELDS[name]: checked[name]} for name in ("agent_id", "run_id") if checked[name] is not None]
    return checked["user_id"] or NOBODY, {"and": conditions} if conditions else None


def _flat(filters: Filters) -> list[dict[str, Any]]:
    """Return what has to hold together, one by one: also what `AND` joins."""
    found: list[dict[str, Any]] = []
    for key, value in filters.items():
        found += [each for part in _listed(key, value) for each in _flat(part)] if key == "AND" else [{key: value}]
    return found


def _listed(key: str, value: object) -> list[Filters]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(one, Mapping) for one in value):
        raise FilterError(f"{key} takes a list of filters, not {quote_value(value)}")
    return list(value)


def _condition(key: str, value: object) -> dict[str, Any]:
    if key in _JUNCTIONS:
        parts = [
            {"and": [_condition(*pair) for one in _flat(part) for pair in one.items()]}
            for part in _listed(key, value)
        ]
        return {"or": parts} if key == "OR" else {"not": {"or": parts}}
    if key == "user_id":
        raise FilterError("user_id names whose memory it is: give one, outside of OR and NOT, without an operator")
    name = _FIELDS.get(key, f"metadata.{key}")
    if value == "*":
        return {name: {"ne": None}}
    tests = value if isinstance(value, Mapping) else {"eq": value}
    return {"and": [_comparison(name, operator, operand) for operator, operand in tests.items()]}


def _comparison(name: str, operator: str, operand: object) -> dict[str, Any]:
    if operator == "nin":
        return {"not": {name: {"in": operand}}}
    if operator not in _COMPARISONS:
        raise FilterError(
            f"{quote_value(operator)} is not an operator here; use one of "
            f"{', '.join((*_COMPARISONS, 'nin', *_JUNCTIONS))}"
        )
    return {name: {operator: operand}}


def _first(top_k: int | None, limit: int | None) -> int:
    return top_k if top_k is not None else limit if limit is not None else _LIMIT


def _moment(value: object) -> Any:  # noqa: ANN401 - whatever `at` takes; it says what it does not
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{quote_value(value)} is no time in seconds since 1970; give one") from error


def _end_of(day: object) -> datetime | None:
    """Return the moment at which a memory with that expiration date is hidden: the end of the day, in UTC."""
    if day is None:
        return None
    try:
        read = day if isinstance(day, date) else date.fromisoformat(str(day))
        return datetime.fromisoformat(f"{read.isoformat()[:10]}T00:00:00+00:00") + timedelta(days=1)
    except (ValueError, OverflowError) as error:  # there is no day behind the last one
        raise InputError(f"expiration_date = {quote_value(day)} is not a day; give one as 2026-12-31") from error
