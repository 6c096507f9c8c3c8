"""A summary and the turns it stands for (C18): which of them answers a question.

A summary says several turns in fewer words, and one of the turns may say it better. Where a turn reaches its summary,
turns speak for themselves and the summary gives way; where none does, the summary speaks for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.ranking.score import quality
from holdfast.settings import ScoreSettings
from holdfast.types import Candidate, Dropped


def speaking(
    candidates: Sequence[Candidate], settings: ScoreSettings
) -> tuple[tuple[Candidate, ...], tuple[Dropped, ...]]:
    """Return the candidates without summaries that a turn of their own reaches, and without turns that none needs."""
    weights = {
        one.unit.id: one.fused * quality(one.unit, settings) for one in candidates if one.unit.lineage is not None
    }
    if not weights:
        return tuple(candidates), ()
    best: dict[str, float] = {}
    for one in candidates:
        by = one.unit.covered_by
        if by in weights:
            best[by] = max(best.get(by, 0.0), one.fused)
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    for one in candidates:
        by = one.unit.covered_by
        if one.unit.id in best and best[one.unit.id] >= weights[one.unit.id]:
            dropped.append(Dropped(one, "turns", best[one.unit.id], weights[one.unit.id]))
        elif by in weights and best[by] < weights[by]:
            dropped.append(Dropped(one, "summary", weights[by], one.fused))
        else:
            kept.append(one)
    return tuple(kept), tuple(dropped)
