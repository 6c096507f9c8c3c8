"""Small values for tests: units, drafts, views and deadlines with everything filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from holdfast.language import analyse
from holdfast.settings import AnalysisSettings
from holdfast.types import Deadline, Draft, Unit, View

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
analyse_default = partial(analyse, settings=AnalysisSettings())


def unit(unit_id: str, text: str, *, minutes: int = 0, **fields: Any) -> Unit:  # noqa: ANN401 - any field of a unit
    """Return a turn of user ana, said `minutes` after noon."""
    moment = NOON + timedelta(minutes=minutes)
    fields.setdefault("procedure" if fields.get("role") == "Procedure" else "claim", text)
    given: dict[str, Any] = {
        "tenant": "local", "user": "ana", "scope": "user", "event_time": moment, "recorded_time": moment,
    }  # fmt: skip
    return Unit(id=unit_id, text=text, **(given | fields))


def draft(unit_id: str, text: str, **fields: Any) -> Draft:  # noqa: ANN401 - any field of a unit
    """Return a unit ready for `Store.put`, under a caller-given id."""
    built = unit(unit_id, text, **fields)
    return Draft(built, analyse_default, id_given=True, time_given=True)


def view(user: str = "ana", **fields: Any) -> View:  # noqa: ANN401 - any field of a view
    """Return what `user` may see an hour after noon."""
    now = NOON + timedelta(hours=1)
    given: dict[str, Any] = {"tenant": "local", "user": user, "now": now, "reference_time": now}
    return View(**(given | fields))


def no_deadline() -> Deadline:
    """Return a deadline that never expires."""
    return Deadline.start(lambda: 0.0, 1.0)


def expired_deadline() -> Deadline:
    """Return a deadline that has expired already."""
    return Deadline(lambda: 1.0, 0.0, 1.0)
