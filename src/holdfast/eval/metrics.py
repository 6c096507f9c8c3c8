"""Rankings and gold → numbers of one question; many of those → means, categories, halves and intervals.

recall@k = |gold ∩ top k| / |gold|        hit@k = 1 when any gold is there        recall_all@k = 1 when all of it is
ndcg@k   = Σ (2^grade - 1) / log2(rank + 1), divided by the same sum over the best possible order
mrr      = 1 / rank of the first gold
currency = 1 when, of what changed, the newest message stands above every older one; current_first: it stands first

Pure, and seeded: the same questions, the same digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.eval.data import GoldQuestion, Prompt
from holdfast.values import dataclass

CUTS = (1, 5, 10, 20)
NDCG_CUTS = (5, 10)

MetricValues = dict[str, float]


def ranking_metrics(ranked: Sequence[str], gold: Mapping[str, int], prefix: str = "") -> MetricValues:
    """Return every ranking metric of one question; `gold` maps ids to grades above 0 and is not empty."""
    ranks = gold_ranks(ranked, gold)
    values: MetricValues = {}
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


def currency_metrics(ranked: Sequence[str], question: GoldQuestion) -> MetricValues:
    """Return whether what holds stands above what held before, and first; or above what only looks like a change."""
    if not question.current or not (question.earlier or question.decoys):
        return {}
    values = {"current_first": float(bool(ranked) and ranked[0] in question.current)}
    if not question.earlier:
        return {f"lookalike_{name}": value for name, value in values.items()}
    return {"currency": float(_is_above(ranked, question.current, question.earlier)), **values}


def context_metrics(prompt: Prompt, question: GoldQuestion, name: str) -> MetricValues:
    """Return what a prompt costs, and whether it holds the newest turn of what changed whole, and so that it tells.

    `current_in` holds wherever that stands: older turns beside it have their dates. `currency` holds if it is not
    called earlier, and every older one is absent, stands behind it, or is.
    """
    values = {f"tokens@{name}": float(prompt.tokens)}
    if question.current and question.earlier:
        values[f"current_in@{name}"] = float(not question.current.isdisjoint(prompt.whole))
        telling = [item for item in prompt.order if item not in prompt.earlier]
        told = question.current & prompt.whole
        values[f"currency@{name}"] = float(_is_above(telling, told, question.current | question.earlier))
    return values


def _is_above(ranked: Sequence[str], one: Collection[str], others: Collection[str]) -> bool:
    """Return whether one of the first is there and stands before all of the others."""
    return next((item in one for item in ranked if item in one or item in others), False)


def packed_metrics(
    ranked: Sequence[tuple[str, int]], gold: Mapping[str, int], budgets: Mapping[int, str]
) -> MetricValues:
    """Return whether all gold fits each budget when messages are taken in their order, skipping what does not fit.

    Bare messages and their costs: a plain stand-in for a rendered prompt, for systems that only rank.
    """
    values: MetricValues = {}
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
) -> MetricValues:
    """Return what of a question's gold reached a prompt: `whole` are messages rendered whole, `text` is all of it.

    An excerpt counts apart, and only where the data promises that a literal answer stands in the gold.
    """
    kept = sum(item in whole for item in gold)
    values = {f"survival@{name}": float(kept == len(gold)), f"survived_share@{name}": kept / len(gold)}
    if answers:
        shown = text.casefold()
        values[f"answer_shown@{name}"] = float(any(answer.casefold() in shown for answer in answers))
    return values


def growth_metrics(kept: Sequence[frozenset[str]], gold: Mapping[str, int]) -> MetricValues:
    """Return how often gold that was whole in a prompt is not in the next larger one; `kept` is by growing budget.

    The mean over questions of the first is the share of (question, step) pairs, of the second that of questions.
    """
    losses = [any(item in small and item not in large for item in gold) for small, large in pairwise(kept)]
    if not losses:
        return {}
    return {"lost_by_growing": sum(losses) / len(losses), "ever_lost_by_growing": float(any(losses))}


# ------------------------------------------------------------------------------------------ many questions

# A fixed seed and enough resamples that the ends of an interval hold still in the third digit.
RESAMPLES = 2_000
_SEED = 20_261_115
_CONFIDENCE = 0.95

# The category of a question that belongs to another conversation.
STRANGER = "asked of the wrong memory"
# That of a message that a system would not take: it is counted among what was skipped, and the run goes on.
REFUSED = "message refused by the memory"

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One question asked of one system: what was measured, and which haystack it belongs to."""

    haystack: str
    question: str
    category: str
    metrics: Mapping[str, float]
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SystemRun:
    """One set and one system, measured: every question, and what is reported of them."""

    set: str
    system: str
    records: tuple[Measurement, ...]
    summary: dict[str, Any]


def summarise(records: Sequence[Measurement], order: Sequence[str]) -> dict[str, Any]:
    """Return all that is reported of one set and system; `order` names its haystacks as the data has them.

    `n` counts the questions on which recall was measured, of messages or of sessions; `skipped` counts the others by
    category. A metric that few questions have says so in `counts`.
    """
    judged = [record for record in records if _is_judged(record)]
    skipped = Counter(record.category for record in records if not _is_judged(record) and record.category != STRANGER)
    by_category: dict[str, dict[str, Any]] = {}
    for category in sorted({record.category for record in judged}):
        own = [record for record in judged if record.category == category]
        by_category[category] = {"n": len(own), "metrics": means(own), "ci": intervals(own)}
    place = {name: number for number, name in enumerate(order)}
    halves = {
        half: means([record for record in records if place[record.haystack] % 2 == parity])
        for parity, half in enumerate(("even", "odd"))
    }
    found = means(records)
    macro = {
        name: math.fsum(row["metrics"][name] for row in by_category.values()) / len(by_category)
        for name in found
        if by_category and all(name in row["metrics"] for row in by_category.values())
    }
    counts = {name: sum(name in record.metrics for record in records) for name in found}
    return {
        "n": len(judged),
        "metrics": found,
        "ci": {name: list(ends) for name, ends in intervals(records).items()},
        "by_category": by_category,
        "macro": macro,
        "halves": halves if len(place) > 1 else {},
        "counts": counts,
        "skipped": dict(sorted(skipped.items())),
    }


def _is_judged(record: Measurement) -> bool:
    return "mrr" in record.metrics or "session_mrr" in record.metrics


def _list_names(records: Iterable[Measurement]) -> list[str]:
    """Return the metrics that any record has, in the order in which they first appear."""
    return list(dict.fromkeys(name for record in records for name in record.metrics))


def means(records: Sequence[Measurement]) -> dict[str, float]:
    """Return the mean of each metric over the records that have it."""
    result = {}
    for name in _list_names(records):
        values = [record.metrics[name] for record in records if name in record.metrics]
        result[name] = math.fsum(values) / len(values)
    return result


def intervals(records: Sequence[Measurement]) -> dict[str, Interval]:
    """Return 95 % percentile intervals by bootstrap over haystacks.

    Where one haystack has the metric, its questions are drawn; one question has no spread, and so no interval.
    """
    draws: dict[int, NDArray[np.float64]] = {}
    result = {}
    for name in _list_names(records):
        clusters = _clusters(records, name)
        if len(clusters) > 1:
            if len(clusters) not in draws:
                draws[len(clusters)] = _draws(len(clusters))
            sums, counts = np.array(list(clusters.values()), np.float64).T
            result[name] = _percentiles(draws[len(clusters)], sums, counts)
    return result


def _clusters(records: Sequence[Measurement], name: str) -> dict[str, list[float]]:
    """Return sum and count of one metric for each thing that is drawn whole: a haystack, or a question."""
    own = [record for record in records if name in record.metrics]
    if len({record.haystack for record in own}) < 2:
        return {record.question: [record.metrics[name], 1.0] for record in own}
    clusters = {record.haystack: [0.0, 0.0] for record in records}
    for record in own:
        clusters[record.haystack][0] += record.metrics[name]
        clusters[record.haystack][1] += 1.0
    return clusters


def find_common(
    before: Sequence[Measurement], after: Sequence[Measurement], name: str
) -> tuple[list[Measurement], list[Measurement]]:
    """Return the records of the questions on which both runs have a metric, in one order."""
    old = {(record.haystack, record.question): record for record in before if name in record.metrics}
    new = [record for record in after if name in record.metrics and (record.haystack, record.question) in old]
    return [old[(record.haystack, record.question)] for record in new], new


def paired_interval(
    before: Sequence[Measurement], after: Sequence[Measurement], name: str
) -> tuple[float, Interval] | None:
    """Return the mean difference of one metric on the questions that both runs have, with its interval.

    One question in common, or none, says nothing about spread: there is no interval, and so no answer.
    """
    deltas = [
        Measurement(new.haystack, new.question, new.category, {name: new.metrics[name] - old.metrics[name]})
        for old, new in zip(*find_common(before, after, name), strict=True)
    ]
    ends = intervals(deltas).get(name)
    return (means(deltas)[name], ends) if ends is not None else None


def _draws(size: int) -> NDArray[np.float64]:
    """Return how often each cluster is drawn in each resample."""
    generator = np.random.Generator(np.random.PCG64(_SEED))
    return generator.multinomial(size, np.full(size, 1.0 / size), size=RESAMPLES).astype(np.float64)


def _percentiles(draws: NDArray[np.float64], sums: NDArray[np.float64], counts: NDArray[np.float64]) -> Interval:
    weights = draws @ counts
    drawn = weights > 0
    values = (draws @ sums)[drawn] / weights[drawn]
    tail = (1.0 - _CONFIDENCE) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return (float(low), float(high))


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of one set and system in two runs: the means, and the interval of the difference.

    Both are over the `questions` that both runs have. Where a run has lost its single questions, the means are those
    of the manifests, and there is no interval.
    """

    set: str
    system: str
    metric: str
    before: float
    after: float
    questions: int
    ci: Interval | None

    @property
    def clear(self) -> bool:
        """Return whether the interval of the difference leaves out 0."""
        return self.ci is not None and (self.ci[0] > 0.0 or self.ci[1] < 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return {**asdict(self), "difference": self.after - self.before, "clear": self.clear}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs differ in, and what to know about it."""

    differences: Sequence[Difference] = ()
    remarks: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        return {"compared": [each.to_json() for each in self.differences], "remarks": list(self.remarks)}


def cross_validate(variants: Mapping[str, Sequence[Measurement]], metric: str) -> dict[str, Any]:
    """Choose among variants measured on the same questions, leaving one haystack out.

    For every haystack the variant is chosen that is best on all the others, the one named first of equals. The figure
    is the mean over what those choices did on the haystacks they had not seen.

    Returns the mean on held-out haystacks and its interval, the variants chosen and how often, and the best variant
    on everything with its (flattering) mean.

    Raises:
        InputError: there is no second haystack, or no question has the metric.
    """
    values = {name: _group_by_haystack(records, metric) for name, records in variants.items()}
    haystacks = list(next(iter(values.values()), {}))
    if len(haystacks) < 2:
        raise InputError(f"{metric} was measured on {len(haystacks)} haystacks; leaving one out needs two or more")

    def mean(name: str, without: str | None = None) -> float:
        own = [value for haystack in haystacks if haystack != without for value in values[name][haystack]]
        return math.fsum(own) / len(own)

    held_out: list[Measurement] = []
    chosen: Counter[str] = Counter()
    for haystack in haystacks:
        best = max(variants, key=lambda name: mean(name, without=haystack))
        chosen[best] += 1
        held_out += [record for record in variants[best] if record.haystack == haystack and metric in record.metrics]
    overall = max(variants, key=mean)
    return {
        "metric": metric,
        "cross_validated": means(held_out)[metric],
        "ci": list(intervals(held_out)[metric]),
        "chosen": dict(chosen.most_common()),
        "best": overall,
        "in_sample": mean(overall),
    }


def _group_by_haystack(records: Sequence[Measurement], metric: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for record in records:
        if metric in record.metrics:
            values.setdefault(record.haystack, []).append(record.metrics[metric])
    return values
