"""Several shards searched as one: a user's own and the global one, with common statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bm25, topk
from holdfast.kernels import hypervectors as hv
from holdfast.store.contract import MISSING_FIELD, DenseQuery, HyperQuery, LexicalEvidence, LexicalQuery, Proposal
from holdfast.store.index import Shard
from holdfast.types import FIELDS, ROLES, Deadline, Role, View

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The integers of C4 over all that an owner, or one agent of it, may see."""

    units: int
    df: tuple[int, ...]
    field_totals: tuple[int, ...]


def statistics(shards: Sequence[Shard], view: View, terms: Sequence[str]) -> Statistics:
    """Count over all `shards` together; filters, sessions and moments leave the statistics as they are."""
    shards = today(shards)
    if view.agent is None:  # kept up to date by the shards
        return Statistics(
            sum(shard.unit_count for shard in shards),
            tuple(sum(shard.df(term) for shard in shards) for term in terms),
            tuple(map(sum, zip(*(shard.field_totals for shard in shards), strict=True))),
        )
    seen = [(shard, shard.seen_by(view.agent)) for shard in shards]
    lengths = [shard.column("lengths")[mask].sum(axis=0, dtype=np.int64) for shard, mask in seen]
    return Statistics(
        sum(int(np.count_nonzero(mask)) for _, mask in seen),
        tuple(sum(shard.df(term, mask) for shard, mask in seen) for term in terms),
        tuple(int(total) for total in sum(lengths)),
    )


def today(shards: Sequence[Shard]) -> list[Shard]:
    """Return the shards that statistics are taken from: those of the present, also for a read of the past (C19)."""
    return [shard for shard in shards if shard.past is None]


Proposer = Callable[[Shard, Bools], tuple[NDArray[np.intp], NDArray[np.float64], bool]]


def propose(
    shards: Sequence[Shard], view: View, query: LexicalQuery, depth: int, deadline: Deadline,
    allowed: frozenset[int] | None,
) -> Proposal:  # fmt: skip
    """Return the lexically best of several shards, scored with their common statistics."""
    counted = statistics(shards, view, query.terms)
    idfs = {term: bm25.idf(counted.units, df) for term, df in zip(query.terms, counted.df, strict=True)}
    averages = [total / max(1, counted.units) for total in counted.field_totals]
    return best_of(
        shards, view, depth, allowed,
        lambda shard, eligible: shard.propose(query, idfs, averages, eligible, depth, deadline),
    )  # fmt: skip


def propose_dense(
    shards: Sequence[Shard], view: View, query: DenseQuery, depth: int, allowed: frozenset[int] | None
) -> Proposal:
    """Return the nearest of several shards."""

    def nearest(shard: Shard, eligible: Bools) -> tuple[NDArray[np.intp], NDArray[np.float64], bool]:
        if shard.dense is None or shard.dense.dims != len(query.vector):
            return np.zeros(0, dtype=np.intp), np.zeros(0), False
        if query.density is not None:
            eligible = eligible & (shard.column("anchor_density") == np.float32(query.density))
        return (*shard.dense.propose(query.vector, eligible, depth, query.tier), False)

    return best_of(shards, view, depth, allowed, nearest)


def alike(
    shard: Shard, view: View, vectors: NDArray[np.float32], depth: int, kind: Literal["turn", "durable"]
) -> list[list[str]]:
    """Return, for each vector, the turns or the durable units of one shard that are nearest; the gate asks (C17)."""
    if shard.dense is None or shard.dense.dims != vectors.shape[1]:
        return [[] for _ in vectors]
    kept = shard.eligible(view, None) & shard.column(kind).astype(np.bool_)
    found = (shard.dense.propose(vector, kept, depth, None)[0] for vector in vectors)
    return [[shard.ids[place] for place in places.tolist()] for places in found]


def propose_hyper(
    shards: Sequence[Shard], view: View, query: HyperQuery, depth: int, allowed: frozenset[int] | None
) -> Proposal:
    """Return the units of several shards whose words are nearest to the question's; only cached ones are seen."""
    units = statistics(shards, view, ()).units

    def nearest(shard: Shard, eligible: Bools) -> tuple[NDArray[np.intp], NDArray[np.float64], bool]:
        places = np.array(
            [p for p in np.flatnonzero(eligible).tolist() if shard.ids[p] in shard.hyper], dtype=np.intp
        )
        distances = shard.hyper.distances(query, [shard.ids[p] for p in places])
        near = np.where(distances == MISSING_FIELD, 0.0, hv.shifted(hv.similarity(distances)))
        heard = near[:, :2].max(axis=1, initial=0.0) >= hv.noise_floor(units)
        scores = np.where(heard, near @ np.array(query.weights), 0.0)
        best = np.flatnonzero(scores > 0.0)
        best = best[topk.at_least_top(scores[best], depth)]
        return places[best], scores[best], len(places) < int(np.count_nonzero(eligible))

    return best_of(shards, view, depth, allowed, nearest)


def best_of(
    shards: Sequence[Shard], view: View, depth: int, allowed: frozenset[int] | None, look: Proposer
) -> Proposal:
    """Return what `look` finds best in several shards; a user's own unit hides a global one of the same id."""
    ids: list[str] = []
    parts: list[NDArray[np.float64]] = []
    exhausted = False
    for i, shard in enumerate(shards):
        eligible = shard.eligible(view, allowed)
        while True:
            places, scores, ran_out = look(shard, eligible)
            hidden = [p for p in places.tolist() if any(own.shows(shard.ids[p], view) for own in shards[:i])]
            if not hidden:
                break
            eligible[hidden] = False  # look again, so that the next best takes its place
        exhausted |= ran_out
        ids += [shard.ids[p] for p in places.tolist()]
        parts.append(scores)
    best = topk.at_least_top(np.concatenate(parts), depth)
    return Proposal(tuple(ids[i] for i in best), exhausted)


def located(shards: Sequence[Shard], view: View, ids: Sequence[str]) -> list[tuple[Shard, str]]:
    """Return each of `ids` with the shard that shows it, the user's own before the global one."""
    pairs = ((next((s for s in shards if s.shows(unit_id, view)), None), unit_id) for unit_id in dict.fromkeys(ids))
    return [(shard, unit_id) for shard, unit_id in pairs if shard is not None]


def neighbours(
    shards: Sequence[Shard], view: View, ids: Sequence[str], allowed: frozenset[int] | None
) -> dict[str, tuple[str, ...]]:
    """Return the visible units right before and after each of `ids` in its session."""
    found = {}
    eligible = {id(shard): shard.eligible(view, allowed) for shard in shards}
    for shard, unit_id in located(today(shards), view, ids):
        beside = shard.beside(shard.place_of_id[unit_id], eligible[id(shard)])
        if beside:
            found[unit_id] = tuple(shard.ids[place] for place in beside)
    return found


def evidence(shards: Sequence[Shard], view: View, terms: Sequence[str], ids: Sequence[str]) -> LexicalEvidence:
    """Return the exact counts of `ids`, wherever they are, and the statistics of all shards together."""
    found: list[str] = []
    roles: list[Role] = []
    tf: list[NDArray[np.int64]] = [np.zeros((0, len(FIELDS), len(terms)), dtype=np.int64)]
    lengths: list[NDArray[np.int64]] = [np.zeros((0, len(FIELDS)), dtype=np.int64)]
    left = list(dict.fromkeys(ids))
    for shard in shards:
        here = [unit_id for unit_id in left if shard.shows(unit_id, view)]
        left = [unit_id for unit_id in left if not shard.shows(unit_id, view)]
        places = np.array([shard.place_of_id[unit_id] for unit_id in here], dtype=np.intp)
        found += here
        roles += [ROLES[code] for code in shard.column("role")[places].tolist()]
        tf.append(shard.counts(terms, places))
        lengths.append(shard.column("lengths")[places].astype(np.int64))
    counted = statistics(shards, view, terms)
    return LexicalEvidence(
        ids=tuple(found),
        roles=tuple(roles),
        tf=np.concatenate(tf),
        lengths=np.concatenate(lengths),
        unit_count=counted.units,
        df=counted.df,
        field_totals=counted.field_totals,
    )
