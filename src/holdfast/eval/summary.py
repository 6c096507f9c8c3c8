"""Per-question numbers → means, categories, halves and intervals. Seeded: the same records, the same digits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A fixed seed and enough resamples that the ends of an interval hold still in the third digit.
RESAMPLES = 2_000
_SEED = 20_261_115
_CONFIDENCE = 0.95

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

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON."""
        return {
            "n": self.n, "metrics": self.metrics, "ci": {name: list(ends) for name, ends in self.ci.items()},
            "by_category": self.by_category, "macro": self.macro, "halves": self.halves, "counts": self.counts,
        }  # fmt: skip


def summarise(records: Sequence[Record], order: Sequence[str]) -> Summary:
    """Summarise the records of one run; `order` names the haystacks as the data has them, for the two halves.

    `n` counts the questions on which recall was measured; a metric that few questions have says so in `counts`.
    """
    judged = [record for record in records if "mrr" in record.metrics]
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
        len(judged), found, intervals(records), by_category, macro, halves if len(place) > 1 else {}, counts
    )


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
    """Return 95 % percentile intervals by bootstrap over haystacks; over questions where there is one haystack."""
    clusters = sorted({record.haystack for record in records})
    by_question = len(clusters) < 2
    keys = [record.question if by_question else record.haystack for record in records]
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    if len(place) < 2:
        return {}
    draws = _draws(len(place))
    result = {}
    for name in names(records):
        sums, counts = np.zeros(len(place)), np.zeros(len(place))
        for record, key in zip(records, keys, strict=True):
            if name in record.metrics:
                sums[place[key]] += record.metrics[name]
                counts[place[key]] += 1
        result[name] = _percentiles(draws, sums, counts)
    return result


def paired_interval(before: Sequence[Record], after: Sequence[Record], name: str) -> tuple[float, Interval] | None:
    """Return the mean difference of one metric on the questions that both runs have, with its interval."""
    old = {(record.haystack, record.question): record.metrics[name] for record in before if name in record.metrics}
    deltas = [
        Record(r.haystack, r.question, r.category, {name: r.metrics[name] - old[(r.haystack, r.question)]})
        for r in after
        if name in r.metrics and (r.haystack, r.question) in old
    ]
    if not deltas:
        return None
    mean = means(deltas)[name]
    return mean, intervals(deltas).get(name, (mean, mean))


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
