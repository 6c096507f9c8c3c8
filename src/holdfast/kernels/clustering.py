"""Clusters of turns, the turns that stand for one, and how much of a cluster a summary keeps (C18).

    c = ceil(max(n, 1) / k)                     cluster(i) = floor(i·c / max(n, 1))
    align = cos(E(s), mean v)                   cover = mean max(0, cos(E(s), v_i))
    conf_space = clamp01((align + cover) / 2)   decay_rate = 1 - conf

A vector without a direction (all zeros, or a value that is no finite number) has cosine 0 with everything.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Floats

VectorRows = NDArray[np.float32] | NDArray[np.float64]

# What a cluster size of 0 or less stands for (C18).
_DEFAULT_SIZE = 20


def clusters(n: int, k: int) -> tuple[range, ...]:
    """Return the places of each cluster when `n` turns in time order are cut into clusters of about `k`."""
    if n <= 0:
        return ()
    count = _ceil(n, k if k > 0 else _DEFAULT_SIZE)
    # floor(i·c/n) = j holds from i = ceil(j·n/c) on.
    return tuple(range(_ceil(j * n, count), _ceil((j + 1) * n, count)) for j in range(count))


def rank_central(vectors: VectorRows) -> tuple[int, ...]:
    """Return the places of all rows, the closest to the plain mean of all first; ties by the earlier place."""
    scores = _cosines(vectors, _mean(vectors))
    return tuple(sorted(range(len(scores)), key=lambda place: (-scores[place], place)))


def pick_count(rows: int, density: float) -> int:
    """Return ceil(density·rows), exact in decimals: .07 of 100 is 7, in floats it is a little more."""
    share = Fraction(str(float(density))) * rows
    return min(rows, max(0, _ceil(share.numerator, share.denominator)))


class Preservation(NamedTuple):
    """How much of its turns a summary keeps, measured in their embedding space."""

    align: float
    cover: float

    @property
    def confidence(self) -> float:
        """Return conf_space ∈ [0, 1]."""
        return _clamp01((self.align + self.cover) / 2.0)


def preservation(summary: VectorRows, vectors: VectorRows) -> Preservation:
    """Return align ∈ [-1, 1] and cover ∈ [0, 1] of a summary's vector with its turns' vectors."""
    if len(vectors) == 0:
        return Preservation(0.0, 0.0)
    align = float(_cosines(_mean(vectors)[np.newaxis, :], summary)[0])
    cover = 0.0
    for cosine in _cosines(vectors, summary):
        cover += max(0.0, float(cosine))
    return Preservation(align, _clamp01(cover / len(vectors)))


def accepted_confidence(conf_space: float, conf_model: float, model_share: float) -> float:
    """Return the confidence of an accepted abstractive summary: (1 - share)·conf_space + share·conf_model."""
    return _clamp01((1.0 - model_share) * conf_space + model_share * conf_model)


def decay_rate(confidence: float) -> float:
    """Return 1 - confidence, in [0, 1]."""
    return _clamp01(1.0 - confidence)


def _ceil(top: int, bottom: int) -> int:
    return -(-top // bottom)


def _clamp01(value: float) -> float:
    return min(1.0, max(0.0, value))


def _mean(vectors: VectorRows) -> Floats:
    rows = np.asarray(vectors, dtype=np.float64)
    if len(rows) == 0:
        return np.zeros(rows.shape[1:], dtype=np.float64)
    # Each row is divided before it is added: large values cannot overflow on the way.
    with np.errstate(invalid="ignore"):
        return np.asarray(np.add.reduce(rows / len(rows), axis=0), dtype=np.float64)


def _directions(vectors: VectorRows | Floats) -> Floats:
    """Return each row at length 1, or at 0 where it has no direction."""
    rows = np.ascontiguousarray(vectors, dtype=np.float64)
    peaks = np.max(np.abs(rows), axis=-1, keepdims=True, initial=0.0)
    known = np.isfinite(peaks) & (peaks > 0.0)
    # Divided by its largest value first, no square can overflow or vanish.
    scaled = np.where(known, rows, 0.0) / np.where(known, peaks, 1.0)
    lengths = np.sqrt(np.add.reduce(scaled * scaled, axis=-1, keepdims=True))
    return np.asarray(scaled / np.where(known, lengths, 1.0), dtype=np.float64)


def _cosines(vectors: VectorRows | Floats, other: VectorRows | Floats) -> Floats:
    products = np.ascontiguousarray(_directions(vectors) * _directions(other))
    sums: Floats = np.add.reduce(products, axis=1)
    return np.clip(sums, -1.0, 1.0)
