"""Weights that are not judged by the data they were chosen on: leave one haystack out.

For every haystack the variant is chosen that is best on all the others; the figure reported is the mean over what
those choices did on the haystacks they had not seen.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.summary import Interval, Record, intervals, means


@dataclass(frozen=True, slots=True)
class CrossValidated:
    """What tuning gave: the honest mean, the variants chosen and how often, and the flattering in-sample best."""

    metric: str
    mean: float
    interval: Interval
    chosen: Mapping[str, int]
    best: str
    best_in_sample: float

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "metric": self.metric, "cross_validated": self.mean, "ci": list(self.interval),
            "chosen": dict(self.chosen), "best": self.best, "in_sample": self.best_in_sample,
        }  # fmt: skip


def grid(choices: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return every combination of values, by a name that shows it."""
    combined = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    return {" ".join(f"{key}={value}" for key, value in keys.items()): keys for keys in combined}


def cross_validate(variants: Mapping[str, Sequence[Record]], metric: str) -> CrossValidated:
    """Choose among variants measured on the same questions; ties go to the variant named first.

    Raises:
        InputError: there is no second haystack, or no question has the metric.
    """
    sums = {name: _by_haystack(records, metric) for name, records in variants.items()}
    haystacks = list(next(iter(sums.values()), {}))
    if len(haystacks) < 2:
        raise InputError(f"{metric} was measured on {len(haystacks)} haystacks; leaving one out needs two or more")
    held_out: list[Record] = []
    chosen: Counter[str] = Counter()
    for haystack in haystacks:
        others = [each for each in haystacks if each != haystack]
        best = max(variants, key=lambda name: _mean(sums[name], others))
        chosen[best] += 1
        held_out += [record for record in variants[best] if record.haystack == haystack and metric in record.metrics]
    overall = max(variants, key=lambda name: _mean(sums[name], haystacks))
    return CrossValidated(
        metric,
        means(held_out)[metric],
        intervals(held_out)[metric],
        dict(chosen.most_common()),
        overall,
        _mean(sums[overall], haystacks),
    )


def _by_haystack(records: Sequence[Record], metric: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for record in records:
        if metric in record.metrics:
            values.setdefault(record.haystack, []).append(record.metrics[metric])
    return values


def _mean(by_haystack: Mapping[str, Sequence[float]], haystacks: Sequence[str]) -> float:
    values = [value for haystack in haystacks for value in by_haystack[haystack]]
    return math.fsum(values) / len(values)
