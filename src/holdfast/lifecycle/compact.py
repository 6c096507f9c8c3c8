"""Compaction (C18): old turns of a session → summaries that stand for them. No turn is lost or altered."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from holdfast.context.candidates import session_turns
from holdfast.context.plan import ContextRequest, base_start, plan_tail
from holdfast.errors import HoldfastError, InputError, NotFoundError, SummariserError, failing_as, quote_value
from holdfast.kernels.clustering import clusters
from holdfast.lifecycle.summarise import summarise
from holdfast.models.embedder import Embedder
from holdfast.models.summariser import Summariser, Writing
from holdfast.settings import AssemblySettings, CompactionSettings
from holdfast.store.contract import Analyse, Coverage, Store, read_once
from holdfast.store.queries import DenseQuery
from holdfast.text.tokens import TokenCounter
from holdfast.types import Cluster, Compaction, Draft, Lineage, Summarised, Unit, View, digest
from holdfast.types.contexts import Rules
from holdfast.types.outcomes import Progress
from holdfast.values import dataclass

log = logging.getLogger("holdfast")

# Which turns of a session are never compacted (law 7).
Protect = Callable[[View], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Compactor:
    """What compaction needs and does not own."""

    store: Store
    settings: CompactionSettings
    analyse: Analyse
    embedder: Embedder
    counter: TokenCounter
    summariser: Summariser | None
    now: datetime


def compact(
    kit: Compactor, view: View, protected: frozenset[str], *, progress: Progress = lambda _done, _of: None
) -> Compaction:
    """Summarise the turns of one session that are outside its tail and not yet covered.

    What one cut leaves uncovered is cut anew, because other neighbours may give a summary. It ends when a cut gives
    none: then another run has nothing to do (law 14).
    """
    kit = _trust_once(kit)
    summed: list[Cluster] = []
    left: list[Cluster] = []
    places: dict[str, int] = {}
    while True:
        turns = eligible(kit.store, view, protected)
        places = places or {turn.id: place for place, turn in enumerate(turns)}
        done = _compact_clusters(kit, view, _cut_clusters(turns, kit.settings.cluster), left, progress)
        left = [cluster for cluster in done if cluster.summary is None]
        summed += (cluster for cluster in done if cluster.summary is not None)
        # One cluster that is left would be cut as it is; turns that change meanwhile are for the next run.
        if len(left) < 2 or len(left) == len(done) or any(cluster.changed for cluster in left):
            clusters = sorted((*summed, *left), key=lambda cluster: places.get(cluster.turns[0], len(places)))
            return Compaction(view.session or "", tuple(clusters))


def compact_sessions(kit: Compactor, view: View, protect: Protect, progress: Progress) -> list[Compaction]:
    """Compact the session of a view, or all that the user has; one counts its clusters, several count themselves."""
    found = read_once(kit.store, view, lambda reading: reading.names("session")) if view.session is None else ()
    names = sorted(one.name for one in found) if view.session is None else [view.session]
    done = []
    for number, name in enumerate(names):
        progress(number, len(names))
        part = progress if len(names) == 1 else lambda _done, _of, number=number: progress(number, len(names))
        one = dataclasses.replace(view, session=name)
        done.append(compact(kit, one, protect(one), progress=part))
    progress(len(names), len(names))
    return done


def compact_when_due(
    store: Store, count: TokenCounter, view: View, due: int, kit: Callable[[], Compactor], protect: Protect
) -> None:
    """Compact the session of a view when so many tokens wait outside its tail; a failure is told, and can wait."""
    try:
        waiting = eligible(store, view, frozenset())
        if sum(count(turn.text) for turn in waiting) < due:  # the tail included: cheap, never too early
            return
        protected = protect(view)
        if sum(count(turn.text) for turn in waiting if turn.id not in protected) >= due:
            compact(kit(), view, protected)
    except HoldfastError as error:  # the words that were to be remembered are
        log.warning("session %s is not compacted now: %s", view.session, error)


def _compact_clusters(
    kit: Compactor, view: View, groups: Sequence[Sequence[Unit]], tried: Sequence[Cluster], progress: Progress
) -> list[Cluster]:
    """Summarise each cluster; one that was tried before as it is comes out as it did."""
    known = {cluster.turns: cluster for cluster in tried}
    done = []
    for number, group in enumerate(groups):
        progress(number, len(groups))
        before = known.get(tuple(turn.id for turn in group))
        done.append(before if before is not None else compact_cluster(kit, view, group))
    progress(len(groups), len(groups))
    return done


class _FailOnceSummariser:
    """A summariser that is not asked again once it has failed: a dead endpoint costs one timeout, not one each."""

    def __init__(self, summariser: Summariser) -> None:
        self._summariser, self._who = summariser, f"the summariser {type(summariser).__qualname__}"
        self._failed = ""

    @property
    def name(self) -> str:
        """See `Summariser.name`."""
        with failing_as(SummariserError, self._who):
            return self._summariser.name

    def summarise(self, turns: Sequence[str], *, max_tokens: int, keep: Sequence[str] = ()) -> Writing:
        """See `Summariser.summarise`."""
        if self._failed:
            raise SummariserError(f"not asked again in this run ({self._failed})")
        try:
            with failing_as(SummariserError, self._who):
                written = self._summariser.summarise(turns, max_tokens=max_tokens, keep=keep)
                return Writing(written.text, written.confidence)
        except SummariserError as error:
            self._failed = str(error)
            raise


def _trust_once(kit: Compactor) -> Compactor:
    return kit if kit.summariser is None else dataclasses.replace(kit, summariser=_FailOnceSummariser(kit.summariser))


def eligible(store: Store, view: View, protected: frozenset[str]) -> list[Unit]:
    """Return the turns of the user's own that may be covered, in their order."""
    return [unit for unit in _session(store, view) if _may_be_covered(unit, view, protected)]


def session_agents(store: Store, view: View) -> set[str | None]:
    """Return who has turns of its own in a session, covered or not: each of them has a tail there."""
    return {unit.agent for unit in _session(store, dataclasses.replace(view, agent=None)) if unit.kind == "turn"}


def _session(store: Store, view: View) -> list[Unit]:
    whole = dataclasses.replace(view, only_session=True, filters=None, hide_covered=False)
    return read_once(store, whole, lambda reading: [*reading.scan(order="oldest", limit=None)])


def _may_be_covered(unit: Unit, view: View, protected: frozenset[str]) -> bool:
    """Return whether a summary may stand for a unit.

    What is everyone's is not one user's to cover, what is pinned stays as it is, and a turn whose life ends by itself
    must not live on in a summary.
    """
    return (
        unit.kind == "turn"
        and unit.user == view.user
        and unit.id not in protected
        and unit.covered_by is None
        and unit.superseded_by is None
        and not unit.pinned
        and unit.expires_at is None
        and unit.valid_to is None
    )


def _cut_clusters(turns: Sequence[Unit], size: int) -> list[list[Unit]]:
    """Return the clusters of C18; turns that only one agent may see are never mixed with others'."""
    by_agent = sorted(turns, key=lambda unit: unit.agent or "")
    groups = [[*group] for _, group in groupby(by_agent, key=lambda unit: unit.agent or "")]
    return [[group[i] for i in cluster] for group in groups for cluster in clusters(len(group), size)]


def compact_cluster(kit: Compactor, view: View, turns: Sequence[Unit]) -> Cluster:
    """Summarise one cluster and let the summary stand for it, in one transaction."""
    ids = tuple(turn.id for turn in turns)
    outcome = summarise(
        turns, _vectors(kit, view, turns), settings=kit.settings, counter=kit.counter, summariser=kit.summariser,
        embed=lambda text: kit.embedder.embed_documents([text])[0],
    )  # fmt: skip
    if not isinstance(outcome, Summarised):
        return Cluster(ids, outcome)
    summary = _summary(kit, view, turns, outcome)
    vectors = kit.embedder.embed_documents([summary.text])  # before anything is written: it may fail
    written = kit.store.apply([Coverage(Draft(summary, kit.analyse, id_given=True, time_given=True), tuple(turns))])[
        0
    ]
    if written is None:  # somebody changed a turn meanwhile: the next run reads it as it now is
        return Cluster(ids, outcome, changed=True)
    kept = summary.evolve(version=written.version)
    kit.store.put_vectors(kit.embedder.space, [kept], vectors)
    return Cluster(ids, outcome, summary.id)


def _vectors(kit: Compactor, view: View, turns: Sequence[Unit]) -> NDArray[np.float32]:
    """Return the stored vectors of the turns; one that still waits for its vector is embedded here."""
    ids = [turn.id for turn in turns]
    asked = DenseQuery(kit.embedder.space, np.zeros(0, dtype=np.float32))
    kept = read_once(kit.store, view, lambda reading: reading.evidence(asked, ids))
    fits = kept.vectors.shape[1] == kit.embedder.dims
    known = dict(zip(kept.ids, kept.vectors, strict=True)) if fits else {}
    missing = [turn for turn in turns if turn.id not in known]
    if missing:
        found = kit.embedder.embed_documents([turn.text for turn in missing])
        known |= {turn.id: vector for turn, vector in zip(missing, found, strict=True)}
    return np.array([known[unit_id] for unit_id in ids], dtype=np.float32)


def _summary(kit: Compactor, view: View, turns: Sequence[Unit], made: Summarised) -> Unit:
    first, last = turns[0], turns[-1]
    sources = [(turn.id, turn.version) for turn in turns]
    return Unit(
        # By content: the same turns in the same versions give the same summary, however often it is made.
        id=f"s-{digest(view.tenant, view.user, view.session, first.agent, sources)}",
        text=made.text,
        claim=made.text,
        kind="summary",
        tenant=view.tenant,
        user=view.user,
        session=view.session,
        agent=first.agent,
        scope="session",
        author="system",
        position=last.position,
        event_time=last.event_time,
        recorded_time=kit.now,
        lineage=Lineage(
            sources=tuple(turn.id for turn in turns),
            method=made.method,
            confidence=made.confidence,
            decay_rate=made.decay_rate,
            align=made.align,
            cover=made.cover,
            starts=first.event_time,
            ends=last.event_time,
        ),
    )


def rebuild(
    kit: Compactor, view: View, erased: Sequence[Unit], protected: Callable[[View], frozenset[str]]
) -> list[str]:
    """Summarise again what is left of summaries that went with an erased turn; return the new summaries."""
    made = []
    kit = _trust_once(kit)
    for summary in erased:
        if summary.lineage is None or summary.superseded_by is not None:
            continue
        session = dataclasses.replace(view, session=summary.session, agent=summary.agent)
        sources = summary.lineage.sources
        left = read_once(kit.store, session, lambda reading: reading.units(sources))  # noqa: B023 - asked at once
        turns = [left[unit_id] for unit_id in summary.lineage.sources if unit_id in left]
        kept_back = protected(session)
        free = [turn for turn in turns if _may_be_covered(turn, session, kept_back)]
        if len(free) > 1:
            made.append(compact_cluster(kit, session, free).summary)
    return [unit_id for unit_id in made if unit_id is not None]


def expand(store: Store, view: View, unit_id: str) -> list[Unit]:
    """Return the raw turns that a summary stands for, in their order; those of summaries inside it too.

    Raises:
        NotFoundError: the owner has no such unit, or one of its sources was erased.
        InputError: it is not a summary.
    """
    found: dict[str, Unit] = {}
    opened: set[str] = set()
    waiting = [unit_id]
    while waiting:
        name = waiting.pop(0)
        with store.reading(view) as reading:
            unit = reading.units([name]).get(name)
        if unit is None:
            raise NotFoundError(
                f"there is no unit {quote_value(name)} for user {quote_value(view.user)}; it may have been erased"
            )
        if unit.lineage is None:
            if name == unit_id:
                raise InputError(
                    f"{quote_value(unit_id)} is a {unit.kind}, not a summary; only a summary can be expanded"
                )
            found[name] = unit
        elif name not in opened:
            opened.add(name)
            waiting += unit.lineage.sources
    return sorted(found.values(), key=lambda unit: unit.moment)


def recent_tail(
    store: Store, counter: TokenCounter, settings: AssemblySettings, found: Rules, view: View
) -> frozenset[str]:
    """Return T_recent and T_base of a context of the full budget, whose rules are `found`."""
    turns = session_turns(store, view)
    request = ContextRequest(
        settings.budget, counter, settings, found.hard, found.soft, session_turns=turns, zone=view.zone or UTC
    )
    base = turns[base_start(len(turns), settings.min_turns) :]
    return plan_tail(request).tail_ids | {turn.id for turn in base}


def find_protected(
    store: Store, counter: TokenCounter, settings: AssemblySettings, rules: Callable[[View], Rules], view: View
) -> frozenset[str]:
    """Return T_recent and T_base of a context of the full budget: they are never compacted (law 7).

    Each agent has a tail of its own; `rules` returns those that a view sees.
    """
    views = [dataclasses.replace(view, agent=agent) for agent in session_agents(store, view) | {view.agent, None}]
    return frozenset().union(*(recent_tail(store, counter, settings, rules(each), each) for each in views))
