"""Dense vectors and their Matryoshka tiers (C10).

    u_k = v[:k] / sqrt(‖v[:k]‖² + ε²)          ε = 1e-8

`cosines` computes whatever orders or is shown, in float64. What only proposes are small whole numbers (`quantise`,
`quantise_prefix`): their products are exact, so that neither the order of rows, blocks and threads nor the library
that multiplies can change a proposal. simsimd, where it is installed, multiplies them several times faster.

`at_least_top` gives the best k of many scores without losing a tie, `order_rows` the order of all; `decay` is how a
score fades with age (C9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import Floats

try:
    import simsimd

    _fast: Any = simsimd
except ImportError:  # it only saves time, and has no wheel for some machines
    _fast = None

Matrix = NDArray[np.float32]
Whole = NDArray[np.int8]
Products = NDArray[Any]  # floats, or products of whole numbers

# Two ways of adding the same floats differ far below this; a proposer keeps all within it of its cut (law 11).
TIE_MARGIN = 1e-5
# The tiers of C10 below the full vector.
TIERS = (64, 256)
# Whole numbers round a cosine by about .0006; the cut keeps whatever might really lie above it.
ROUNDING = 0.004


# Below this many scores it is as fast to partition them; the maxima of groups only pay when few of many are wanted.
_MANY_SCORES = 1 << 14
_SCORES_FOR_EACH = 4
_LARGEST_GROUP = 64


def at_least_top(scores: Products, k: int, margin: float = TIE_MARGIN) -> NDArray[np.intp]:
    """Return the places of the k highest scores and of all that lie within `margin` of the k-th, in place order."""
    if k <= 0 or scores.size == 0:
        return np.zeros(0, dtype=np.intp)
    if scores.size <= k:
        return np.arange(scores.size)
    size = min(_LARGEST_GROUP, scores.size // (_SCORES_FOR_EACH * k))
    if scores.size < _MANY_SCORES or size < 2:
        return _reach(scores, k, margin)
    # Each of the k best maxima of groups is a score: the k-th best score is not below the least of them.
    groups = scores.size // size
    maxima = scores[: size * groups].reshape(size, groups).max(axis=0)
    near = _reach_bar(scores, np.partition(maxima, groups - k)[groups - k], margin)
    return near[_reach(scores[near], k, margin)]


def _reach(scores: Products, k: int, margin: float) -> NDArray[np.intp]:
    ranked = scores.copy()  # faster than `np.partition` where there are few
    ranked.partition(scores.size - k)
    return _reach_bar(scores, ranked[scores.size - k], margin)


def _reach_bar(scores: Products, bar: Any, margin: float) -> NDArray[np.intp]:  # noqa: ANN401 - a score
    # Whole numbers are compared as they are: a float beside them would make floats of all.
    best: NDArray[np.intp] = (scores >= (bar - margin if margin else bar)).nonzero()[0]
    return best


def order_rows(scores: Floats, ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the rows by score, best first, ties by id."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    ties = np.flatnonzero(ranked[1:] == ranked[:-1])
    if len(ties):
        starts, ends = (np.flatnonzero(np.diff(ties, **side) != 1) for side in ({"prepend": -2}, {"append": -2}))
        for first, last in zip(ties[starts].tolist(), (ties[ends] + 2).tolist(), strict=True):
            order[first:last] = sorted(order[first:last].tolist(), key=ids.__getitem__)
    return order


def decay(rate: float, age: float) -> float:
    """Return exp(-rate·age) ∈ [0, 1]; `age` in seconds, negative ages count as 0."""
    return math.exp(-rate * max(0.0, age))


def decay_all(rates: Floats, ages: Floats) -> Floats:
    """Return `decay` of each: by `math.exp`, and not numpy's, which differs from it in the last bit."""
    powers = -rates * np.maximum(ages, 0.0)
    return np.fromiter(map(math.exp, powers.tolist()), np.float64, len(powers))


EPSILON = 1e-8
_LARGEST = 127
# Sums of products of whole numbers up to 127 stay below 2²⁴, where float32 is exact, up to this many dimensions.
EXACT_DIMS = (1 << 24) // (_LARGEST * _LARGEST)
# How many products are added up at once: their numbers stay in the cache, and OpenBLAS starts threads only above
# twice as many. Those wait for each other where other work is running, and then take ten times as long.
_MULTIPLIED_TOGETHER = 1 << 17

# So many float64 are below what an allocator asks the system for, page by page, each time.
_COMPARED_TOGETHER = 3 << 12


def tier(vectors: Matrix | NDArray[np.float16], dims: int) -> Floats:
    """Return the first `dims` dimensions of each row, normalised; a near-zero prefix gives a near-zero row."""
    cut = np.ascontiguousarray(vectors[..., :dims], dtype=np.float64)
    squares = np.add.reduce(cut * cut, axis=-1, keepdims=True)
    return np.asarray(cut / np.sqrt(squares + EPSILON * EPSILON), dtype=np.float64)


def cosines(vectors: Matrix, query: Matrix, dims: int) -> Floats:
    """Return the exact cosine of each row with the query at one tier, in [-1, 1].

    Products are summed row by row in an order that depends on the number of dimensions alone.
    """
    own, step = tier(query, dims), max(1, _COMPARED_TOGETHER // max(1, dims))
    pieces = [vectors[start : start + step] for start in range(0, max(1, len(vectors)), step)]
    found = [row_cosines(tier(piece, dims), own) for piece in pieces]
    return found[0] if len(found) == 1 else np.concatenate(found)


def row_cosines(rows: Floats, others: Floats) -> Floats:
    """Return the cosine of each row with its other, or with the only one; both are of `tier`."""
    products = np.ascontiguousarray(rows * others)
    sums: Floats = np.add.reduce(products, axis=1)
    return np.clip(sums, -1.0, 1.0)


def halve(vectors: Matrix) -> NDArray[np.float16]:
    """Return rows as they are stored: their directions, as 16-bit floats, little endian."""
    return tier(vectors, vectors.shape[-1]).astype(np.dtype("<f2"))


def quantise(vectors: Matrix) -> Whole:
    """Return rows as whole numbers of [-127, 127]: only their direction is kept, and nearly so."""
    rows = tier(vectors, vectors.shape[-1])
    peaks = np.max(np.abs(rows), axis=-1, keepdims=True, initial=0.0)
    return np.rint(rows * (_LARGEST / np.where(peaks > 0.0, peaks, 1.0))).astype(np.int8)


def quantise_prefix(rows: Whole, dims: int) -> Whole:
    """Return the first `dims` dimensions of quantised rows, all of length 127: their products need no scale."""
    lengths = inverse_lengths(rows, dims)
    return np.rint(rows[..., :dims] * (lengths * np.float32(_LARGEST))[..., None]).astype(np.int8)


def inverse_lengths(rows: Whole, dims: int) -> NDArray[np.float32]:
    """Return 1/‖row‖ at one tier, and 0 for a prefix of zeros: it has no direction and matches nothing."""
    cut = rows[..., :dims].astype(np.int32)
    squares = np.add.reduce(cut * cut, axis=-1, dtype=np.int64)
    return np.where(squares > 0, 1.0 / np.sqrt(np.maximum(squares, 1)), 0.0).astype(np.float32)


def multiply(rows: Whole, query: Whole, places: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
    """Return the exact product of each row, or of the rows at some places, ascending, with the query."""
    if places is not None and 2 * len(places) > len(rows):  # faster than picking them
        every = multiply(rows, query)
        return every if len(places) == len(rows) else every[places]
    if _fast is None:
        products: NDArray[np.int32] = multiply_all(rows, query[None, :], places)[0].astype(np.int32)
        return products
    if places is None:
        return _multiply_fast(rows, query)
    step = max(1, _MULTIPLIED_TOGETHER // len(query))
    pieces = [rows.take(places[start : start + step], axis=0) for start in range(0, len(places), step)]
    return np.concatenate([_multiply_fast(piece, query) for piece in pieces] or [np.zeros(0, dtype=np.int32)])


def _multiply_fast(rows: Whole, query: Whole) -> NDArray[np.int32]:
    if not len(rows):
        return np.zeros(0, dtype=np.int32)
    found = _fast.cdist(query[None, :], rows, metric="dot", out_dtype="int32")
    products: NDArray[np.int32] = np.asarray(found)[0]
    return products


def multiply_all(rows: Whole, queries: Whole, places: NDArray[np.intp] | None = None) -> Products:
    """Return queries × rows exact products, as floats."""
    dims = rows.shape[1]
    exact = np.float32 if dims <= EXACT_DIMS else np.float64
    if places is not None and 2 * len(places) > len(rows):
        every = multiply_all(rows, queries)
        return every if len(places) == len(rows) else every[:, places]
    count = len(rows) if places is None else len(places)
    factors, products = queries.astype(exact), np.empty((len(queries), count), dtype=exact)
    step = max(1, _MULTIPLIED_TOGETHER // max(1, dims * len(queries)))
    for start in range(0, count, step):
        some = slice(start, start + step)
        piece = rows[some] if places is None else rows.take(places[some], axis=0)
        products[:, some] = np.matmul(factors, piece.astype(exact).T)
    return products


def approximate(products: Products, lengths: NDArray[np.float32], own: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return approximate cosines: products of quantised rows with queries over the lengths of both."""
    scores = (products.astype(np.float64) * lengths).astype(np.float32)
    scores *= own
    return scores
