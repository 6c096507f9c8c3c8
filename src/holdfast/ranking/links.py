"""Found links (C12): a unit takes over relevance from a better one that names it, or names the same rare thing.

rel' = (1 - w)·rel + w·rel(parent), for the parent that lifts it most; nothing is ever lowered. An answer often
stands in two units, and only the first of them speaks of what the question asks: it names the second.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.ranking.fuse import adjusted
from holdfast.settings import StageSettings
from holdfast.types import Adjustment, Candidate, Mention, Unit


def linked(
    candidates: Sequence[Candidate], mentions: Sequence[Mention], settings: StageSettings, full_marks: float
) -> tuple[Candidate, ...]:
    """Return the candidates after every target took over from its best parent, best first, ties by id."""
    by_id = {unit_id: one for one in candidates for unit_id in (one.unit.id, *one.merged_ids)}
    lifted: dict[str, Candidate] = {}
    for mention in mentions:
        parent, target = by_id.get(mention.parent), by_id.get(mention.target)
        if parent is None or target is None or parent.rel <= target.rel:
            continue
        weight = settings.mentions if mention.called else _shared(parent.unit, target.unit, settings)
        change = Adjustment("mentions", weight, parent.rel, _because(mention))
        rel = adjusted(target.rel, change)
        if rel > lifted.get(target.unit.id, target).rel:
            lifted[target.unit.id] = Candidate(
                target.unit, rel * full_marks, rel, target.claims, target.merged_ids, (*target.adjustments, change)
            )
    found = [lifted.get(one.unit.id, one) for one in candidates]
    return tuple(sorted(found, key=lambda one: (-one.fused, one.unit.id)))


def _shared(parent: Unit, target: Unit, settings: StageSettings) -> float:
    """Return the weight of a shared name.

    The longer a unit, the more names it drops in passing, and the less one of them says: as with smoothing, it takes
    over weight / (1 + (characters / length)²). Turns of one session lean on their neighbours instead.
    """
    if target.kind == "turn" and target.session is not None and target.session == parent.session:
        return 0.0
    return settings.shared_names / (1.0 + (len(target.text) / settings.shared_length) ** 2)


def _because(mention: Mention) -> str:
    way = "which names it" if mention.called else "which names the same"
    return f"rel of {mention.parent}, {way}: {mention.name}"
