"""Per-question numbers → means, categories, halves and intervals. Seeded: the same records, the same digits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
class Record:
    """One question asked of one system: what was measured, and which haystack it belongs to."""

    haystack: str
    question: str
    category: str
    metrics: Mapping[str, float]
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {
            "haystack": self.haystack, "question": self.question, "category": self.category,
            "metrics": dict(self.metrics), "detail": dict(self.detail),
        }  # fmt: skip

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Record:
        """Read what `to_json` wrote."""
        return cls(row["haystack"], row["question"], row["category"], row["metrics"], row["detail"])


@dataclass(frozen=True, slots=True)
class Summary:
    """All that is reported of one set and one system."""

    n: int
    metrics: dict[str, float]
    ci: dict[str, Interval]
    by_category: dict[str, dict[str, Any]]
    macro: dict[str, float]
    halves: dict[str, dict[str, float]]
    counts: dict[str, int]
    skipped: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON."""
        return {
            "n": self.n, "metrics": self.metrics, "ci": {name: list(ends) for name, ends in self.ci.items()},
            "by_category": self.by_category, "macro": self.macro, "halves": self.halves, "counts": self.counts,
            "skipped": self.skipped,
        }  # fmt: skip


def summarise(records: Sequence[Record], order: Sequence[str]) -> Summary:
    """Summarise the records of one run; `order` names the haystacks as the data has them, for the two halves.

    `n` counts the questions on which recall was measured, of messages or of sessions; `skipped` counts the others by
    category. A metric that few questions have says so in `counts`.
    """
    judged = [record for record in records if _is_judged(record)]
    skipped = Counter(record.category for record in records if not _is_judged(record) and record.category != STRANGER)
    categories = sorted({record.category for record in judged})
    by_category: dict[str, dict[str, Any]] = {}
    for category in categories:
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
    return Summary(
        len(judged), found, intervals(records), by_category, macro, halves if len(place) > 1 else {}, counts,
        dict(sorted(skipped.items())),
    )  # fmt: skip


def _is_judged(record: Record) -> bool:
    return "mrr" in record.metrics or "session_mrr" in record.metrics


def names(records: Iterable[Record]) -> list[str]:
    """Return the metrics that any record has, in the order in which they first appear."""
    return list(dict.fromkeys(name for record in records for name in record.metrics))


def means(records: Sequence[Record]) -> dict[str, float]:
    """Return the mean of each metric over the records that have it."""
    result = {}
    for name in names(records):
        values = [record.metrics[name] for record in records if name in record.metrics]
        result[name] = math.fsum(values) / len(values)
    return result


def intervals(records: Sequence[Record]) -> dict[str, Interval]:
    """Return 95 % percentile intervals by bootstrap over haystacks.

    Where one haystack has the metric, its questions are drawn; one question has no spread, and so no interval.
    """
    draws: dict[int, NDArray[np.float64]] = {}
    result = {}
    for name in names(records):
        clusters = _clusters(records, name)
        if len(clusters) > 1:
            if len(clusters) not in draws:
                draws[len(clusters)] = _draws(len(clusters))
            sums, counts = np.array(list(clusters.values()), np.float64).T
            result[name] = _percentiles(draws[len(clusters)], sums, counts)
    return result


def _clusters(records: Sequence[Record], name: str) -> dict[str, list[float]]:
    """Return sum and count of one metric for each thing that is drawn whole: a haystack, or a question."""
    own = [record for record in records if name in record.metrics]
    if len({record.haystack for record in own}) < 2:
        return {record.question: [record.metrics[name], 1.0] for record in own}
    clusters = {record.haystack: [0.0, 0.0] for record in records}
    for record in own:
        clusters[record.haystack][0] += record.metrics[name]
        clusters[record.haystack][1] += 1.0
    return clusters


def in_common(before: Sequence[Record], after: Sequence[Record], name: str) -> tuple[list[Record], list[Record]]:
    """Return the records of the questions on which both runs have a metric, in one order."""
    old = {(record.haystack, record.question): record for record in before if name in record.metrics}
    new = [record for record in after if name in record.metrics and (record.haystack, record.question) in old]
    return [old[(record.haystack, record.question)] for record in new], new


def paired_interval(before: Sequence[Record], after: Sequence[Record], name: str) -> tuple[float, Interval] | None:
    """Return the mean difference of one metric on the questions that both runs have, with its interval.

    One question in common, or none, says nothing about spread: there is no interval, and so no answer.
    """
    deltas = [
        Record(new.haystack, new.question, new.category, {name: new.metrics[name] - old.metrics[name]})
        for old, new in zip(*in_common(before, after, name), strict=True)
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
