"""Dense vectors and their Matryoshka tiers (C10).

    u_k = v[:k] / sqrt(‖v[:k]‖² + ε²)          ε = 1e-8

`cosines` computes whatever orders or is shown, in float64. `quantise` and `approximate` only propose: rows become
small whole numbers, and a float32 product of those is exact (384 · 127² < 2²⁴), so that the order of rows, blocks
and threads cannot change a proposal.

`at_least_top` gives the best k of many scores without losing a tie, `order_rows` the order of all; `decay` is how a
score fades with age (C9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Scores = Floats | Matrix

# Two ways of adding the same floats differ far below this; a proposer keeps all within it of its cut (law 11).
TIE_MARGIN = 1e-5


def at_least_top(scores: Scores, k: int, margin: float = TIE_MARGIN) -> NDArray[np.intp]:
    """Return the places of the k highest scores and of all that lie within `margin` of the k-th, in place order."""
    if k <= 0 or scores.size == 0:
        return np.zeros(0, dtype=np.intp)
    if scores.size <= k:
        return np.arange(scores.size)
    ranked = scores.copy()
    ranked.partition(scores.size - k)
    best: NDArray[np.intp] = (scores >= ranked[scores.size - k] - margin).nonzero()[0]
    return best


def order_rows(scores: Floats, ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the rows by score, best first, ties by id."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    if (ranked[1:] == ranked[:-1]).any():
        values = (-scores).tolist()
        order = np.array(sorted(range(len(ids)), key=lambda row: (values[row], ids[row])), dtype=np.intp)
    return order


def decay(rate: float, age: float) -> float:
    """Return exp(-rate·age) ∈ [0, 1]; `age` in seconds, negative ages count as 0."""
    return math.exp(-rate * max(0.0, age))


EPSILON = 1e-8
_LARGEST = 127
# Sums of products of whole numbers up to 127 stay below 2²⁴, where float32 is exact, up to this many dimensions.
EXACT_DIMS = (1 << 24) // (_LARGEST * _LARGEST)


def tier(vectors: Matrix, dims: int) -> Floats:
    """Return the first `dims` dimensions of each row, normalised; a near-zero prefix gives a near-zero row."""
    cut = np.ascontiguousarray(vectors[..., :dims], dtype=np.float64)
    squares = np.add.reduce(cut * cut, axis=-1, keepdims=True)
    return np.asarray(cut / np.sqrt(squares + EPSILON * EPSILON), dtype=np.float64)


def cosines(vectors: Matrix, query: Matrix, dims: int) -> Floats:
    """Return the exact cosine of each row with the query at one tier, in [-1, 1].

    Products are summed row by row in an order that depends on the number of dimensions alone.
    """
    return row_cosines(tier(vectors, dims), tier(query, dims))


def row_cosines(rows: Floats, others: Floats) -> Floats:
    """Return the cosine of each row with its other, or with the only one; both are of `tier`."""
    products = np.ascontiguousarray(rows * others)
    sums: Floats = np.add.reduce(products, axis=1)
    return np.clip(sums, -1.0, 1.0)


def quantise(vectors: Matrix) -> NDArray[np.int8]:
    """Return rows as whole numbers of [-127, 127]: only their direction is kept, and nearly so."""
    rows = tier(vectors, vectors.shape[-1])
    peaks = np.max(np.abs(rows), axis=-1, keepdims=True, initial=0.0)
    return np.rint(rows * (_LARGEST / np.where(peaks > 0.0, peaks, 1.0))).astype(np.int8)


def inverse_lengths(rows: NDArray[np.int8], dims: int) -> NDArray[np.float32]:
    """Return 1/‖row‖ at one tier, and 0 for a prefix of zeros: it has no direction and matches nothing."""
    squares = np.add.reduce(rows[:, :dims].astype(np.int64) ** 2, axis=1)
    return np.where(squares > 0, 1.0 / np.sqrt(np.maximum(squares, 1)), 0.0).astype(np.float32)


def approximate(
    rows: NDArray[np.int8] | Matrix, lengths: NDArray[np.float32], query: NDArray[np.int8], dims: int
) -> NDArray[np.float32]:
    """Return the approximate cosine of quantised rows with a quantised query, times the query's own length."""
    whole, factor = rows[:, :dims], query[:dims]
    if dims <= EXACT_DIMS:
        # Not `@`: the threads of a BLAS wait for each other, which takes milliseconds where other work is running.
        products = np.einsum("ij,j->i", whole.astype(np.float32, copy=False), factor.astype(np.float32))
        return np.asarray(products * lengths, dtype=np.float32)
    wide: NDArray[np.float64] = whole.astype(np.float64) @ factor.astype(np.float64)
    return (wide * lengths).astype(np.float32)
