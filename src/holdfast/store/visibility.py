"""What a view may see, as SQL over the rows of a unit, and as the reason why one is hidden."""

from __future__ import annotations

from holdfast.store.filters import SqliteFilter, matches
from holdfast.types import JSON, Unit, View, iso


def agent_matches(view: View, unit: Unit) -> bool:
    """Return whether the named agent may see the unit; a unit without an agent is shared."""
    return view.agent is None or unit.agent in (view.agent, None)


# At a moment of the past: not superseded since before, and not within a time that a reinstatement has ended.
_NOT_SUPERSEDED_THEN = """(superseded_by IS NULL OR superseded_at > :as_of)
    AND NOT EXISTS (SELECT 1 FROM absences WHERE unit_key = key AND since <= :as_of AND until > :as_of)"""


def visible_sql(view: View, *, searching: bool = False) -> tuple[str, dict[str, JSON]]:
    """Compile a view: the same rules as the index's mask and as `hidden_reason`.

    A covered turn is hidden from searches alone, and only where the view says so: it is still listed.
    """
    values: dict[str, JSON] = {"tenant": view.tenant, "user": view.user, "now": iso(view.as_of or view.now)}
    agent = ""
    if view.agent is not None:
        values["agent"] = view.agent
        agent = " AND coalesce(json_extract({}.body, '$.agent'), :agent) = :agent"
    # A user's own unit hides a global one of the same id.
    same = f"own.tenant = :tenant AND own.user = :user AND own.id = units.id{agent.format('own')}"
    own = f"SELECT 1 FROM units AS own WHERE {same}"  # noqa: S608 - bound names only
    clauses = [
        f"tenant = :tenant AND (user = :user OR (user = '' AND NOT EXISTS ({own}))){agent.format('units')}",
        "(json_extract(body, '$.pinned') OR coalesce(json_extract(body, '$.expires_at'), '~') > :now)",
    ]
    if view.only_session:
        values["session"] = view.session
        clauses.append("session = :session")
    if view.as_of is not None:
        # What was rewritten since is answered from its earlier version, not from here.
        values["as_of"] = iso(view.as_of)
        clauses.append("json_extract(body, '$.recorded_time') <= :as_of")
    if view.current_only:
        values["reference"] = iso(view.reference_time)
        clauses.append("superseded_by IS NULL" if view.as_of is None else _NOT_SUPERSEDED_THEN)
        clauses.append("coalesce(json_extract(body, '$.valid_from'), '') <= :reference")
        clauses.append("coalesce(json_extract(body, '$.valid_to'), '~') > :reference")
    if searching and view.hide_covered:
        clauses.append("covered_by IS NULL" if view.as_of is None else "(covered_by IS NULL OR covered_at > :as_of)")
    if view.filters is not None:
        compiled = SqliteFilter()
        clauses.append(compiled.compile(view.filters))
        values |= compiled.values
    return " AND ".join(clauses), values


def state_as_of(lifetimes: tuple[str | None, str | None, str | None]) -> tuple[str | None, str | None]:
    """Return what superseded and what covered a unit at some moment: what does now, unless that came later."""
    by, covered_by, absent = lifetimes
    return by if by is not None else absent, covered_by


def hidden_reason(view: View, unit: Unit, superseded_by: str | None, covered_by: str | None = None) -> str | None:
    """Return why the view hides a unit of its owner, or None: `visible_sql`, one unit at a time and in words."""
    expired = not unit.pinned and unit.expires_at is not None and unit.expires_at <= (view.as_of or view.now)
    elsewhere = view.only_session and unit.session != view.session
    early = view.current_only and unit.valid_from is not None and unit.valid_from > view.reference_time
    late = view.current_only and unit.valid_to is not None and unit.valid_to <= view.reference_time
    reasons = {
        f"it was recorded at {unit.recorded_time}": view.as_of is not None and unit.recorded_time > view.as_of,
        f"it expired at {unit.expires_at}": expired,
        f"it belongs to session {unit.session}, and only_session asks for {view.session}": elsewhere,
        f"it was superseded by {superseded_by}": view.current_only and superseded_by is not None,
        f"it is valid only from {unit.valid_from}": early,
        f"it was valid until {unit.valid_to}": late,
        f"the summary {covered_by} covers it": view.hide_covered and covered_by is not None,
        "the filters leave it out": view.filters is not None and not matches(view.filters, unit),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
