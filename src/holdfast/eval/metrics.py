"""Rankings and gold → numbers. Pure: every figure of a report is one of these functions' means.

recall@k = |gold ∩ top k| / |gold|        hit@k = 1 when any gold is there        recall_all@k = 1 when all of it is
ndcg@k   = Σ (2^grade - 1) / log2(rank + 1), divided by the same sum over the best possible order
mrr      = 1 / rank of the first gold
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

CUTS = (1, 5, 10, 20)
NDCG_CUTS = (5, 10)

Metrics = dict[str, float]


def ranking_metrics(ranked: Sequence[str], gold: Mapping[str, int], prefix: str = "") -> Metrics:
    """Return every ranking metric of one question; `gold` maps ids to grades above 0 and is not empty."""
    ranks = gold_ranks(ranked, gold)
    values: Metrics = {}
    for cut in CUTS:
        found = sum(rank <= cut for rank in ranks.values())
        values[f"{prefix}recall@{cut}"] = found / len(gold)
        values[f"{prefix}hit@{cut}"] = float(found > 0)
        values[f"{prefix}recall_all@{cut}"] = float(found == len(gold))
    for cut in NDCG_CUTS:
        values[f"{prefix}ndcg@{cut}"] = ndcg(ranks, gold, cut)
    values[f"{prefix}mrr"] = 1.0 / min(ranks.values()) if ranks else 0.0
    return values


def gold_ranks(ranked: Sequence[str], gold: Mapping[str, int]) -> dict[str, int]:
    """Return the rank, from 1, of every gold id that was found; an id ranked twice counts where it stands first."""
    ranks: dict[str, int] = {}
    for rank, item in enumerate(ranked, start=1):
        if item in gold:
            ranks.setdefault(item, rank)
    return ranks


def ndcg(ranks: Mapping[str, int], gold: Mapping[str, int], cut: int) -> float:
    """Return NDCG with exponential gain."""
    gained = sum(_gain(gold[item], rank) for item, rank in sorted(ranks.items(), key=lambda r: r[1]) if rank <= cut)
    best = sum(_gain(grade, rank) for rank, grade in enumerate(sorted(gold.values(), reverse=True)[:cut], start=1))
    return gained / best


def _gain(grade: int, rank: int) -> float:
    return (2.0**grade - 1.0) / math.log2(rank + 1)


def session_ranking(ranked: Sequence[str], session_of: Mapping[str, str]) -> list[str]:
    """Return sessions by their best message: the first of its messages decides where a session stands."""
    return list(dict.fromkeys(session_of[item] for item in ranked))


def packed_metrics(ranked: Sequence[tuple[str, int]], gold: Mapping[str, int], budgets: Mapping[int, str]) -> Metrics:
    """Return whether all gold fits each budget when messages are taken in their order, skipping what does not fit.

    Bare messages and their costs: a plain stand-in for a rendered prompt, for systems that only rank.
    """
    values: Metrics = {}
    for budget, name in budgets.items():
        left, taken = budget, set()
        for item, cost in ranked:
            if cost <= left:
                left -= cost
                taken.add(item)
        values[f"packed@{name}"] = float(all(item in taken for item in gold))
    return values


def survival_metrics(
    whole: frozenset[str], text: str, gold: Mapping[str, int], answers: Sequence[str], name: str
) -> Metrics:
    """Return what of a question's gold reached a prompt: `whole` are messages rendered whole, `text` is all of it.

    An excerpt counts apart, and only where the data promises that a literal answer stands in the gold.
    """
    kept = sum(item in whole for item in gold)
    values = {f"survival@{name}": float(kept == len(gold)), f"survived_share@{name}": kept / len(gold)}
    if answers:
        shown = text.casefold()
        values[f"answer_shown@{name}"] = float(any(answer.casefold() in shown for answer in answers))
    return values


def growth_metrics(kept: Sequence[frozenset[str]], gold: Mapping[str, int]) -> Metrics:
    """Return how often gold that was whole in a prompt is not in the next larger one; `kept` is by growing budget.

    The mean over questions of the first is the share of (question, step) pairs, of the second that of questions.
    """
    losses = [any(item in small and item not in large for item in gold) for small, large in pairwise(kept)]
    if not losses:
        return {}
    return {"lost_by_growing": sum(losses) / len(losses), "ever_lost_by_growing": float(any(losses))}
