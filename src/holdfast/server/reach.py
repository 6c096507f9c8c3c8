"""How far a token reaches: one user's token changes nothing that is everyone's, and hears of nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.arguments import make_view
from holdfast.errors import AccessError
from holdfast.memory import Memory
from holdfast.server.access import Caller
from holdfast.store.contract import look
from holdfast.types import Document, Unit
from holdfast.why import NAMING_OTHERS

# Whose a document is holds at any moment.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def answer_for(caller: Caller) -> None:
    """Let answers of this thread name other users to those alone who may know of them."""
    NAMING_OTHERS.set(caller.user is None)


def refuse_shared(memory: Memory, verb: str, arguments: Mapping[str, Any]) -> None:
    """Hold the token of one user to that user's own units: what is everyone's is for a token of the tenant.

    Raises:
        AccessError: the verb would change what is everyone's.
    """
    touched: list[Unit | Document] = []  # what is new is the user's own, and supersedes that user's alone
    if verb == "forget":
        touched += memory.forget(**{**arguments, "dry_run": True}).units
        touched += _meant(memory, arguments)
    elif verb in ("update", "supersede", "reinstate"):
        owner: dict[str, Any] = {name: arguments.get(name) for name in ("user", "agent", "tenant")}
        touched += [memory.get(arguments[name], **owner) for name in ("id", "by") if name in arguments]
    if any(one.user is None for one in touched):
        raise AccessError("this token is one user's, and that is everyone's; use a token of the tenant")


def _meant(memory: Memory, arguments: Mapping[str, Any]) -> list[Document]:
    """Return the document that a user's `forget` names, which may have no units: one's own comes first."""
    if (name := arguments.get("document")) is None:
        return []
    view = make_view(memory.settings, _ANY_TIME, user=arguments["user"], tenant=arguments.get("tenant"))
    kept = look(memory.store, view, lambda reading: reading.documents(name=name, bodies=False))
    return [one for one in kept if one.user is not None] or kept
