"""Fielded BM25 (C4). The formula exists once, here; an index may add its parts in any order to propose.

idf(t)  = ln(1 + (N - df + 0.5) / (df + 0.5))
part    = tf·(k1 + 1) / (tf + k1·(1 - b + b·dl/avgdl))
score   = (Σ_f w_f · Σ_t idf(t) · part) · boost
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.kernels import Floats, Ints


def idf(units: int, df: int) -> float:
    """Return the weight of a term that `df` of `units` hold; > 0 for every 0 ≤ df ≤ units."""
    return math.log(1.0 + (units - df + 0.5) / (df + 0.5))


def saturation(tf: Floats, length: Floats, average: float, k1: float, b: float) -> Floats:
    """Return the term-frequency part for each unit, of one term or, row by row, of several.

    0 where tf is 0, and everywhere when the field is empty.
    """
    if average <= 0.0:
        return np.zeros_like(tf)
    norm = k1 * ((1.0 - b) + b * (length / average))
    bottom = tf + norm
    # tf = 0 with k1 = 0 is the one case of 0/0: such a unit does not hold the term, so it adds nothing.
    return np.divide(tf * (k1 + 1.0), bottom, out=np.zeros_like(tf), where=bottom > 0.0)


def scores(
    tf: Ints,
    lengths: Ints,
    idfs: Floats,
    averages: Floats,
    weights: Floats,
    boosts: Floats,
    k1: float,
    b: float,
) -> Floats:
    """Return the exact score of every unit.

    `tf` is units × fields × terms, `lengths` is units × fields. Sums run over terms inside a field and then
    over fields, left to right, so that an explanation can repeat them bit for bit.
    """
    total = np.zeros(tf.shape[0], dtype=np.float64)
    for f in np.flatnonzero(tf.any(axis=(0, 2))):  # a field that no unit matches would add 0.0
        length, field = lengths[:, f].astype(np.float64), np.zeros_like(total)
        parts = saturation(tf[:, f].T.astype(np.float64, order="C"), length, float(averages[f]), k1, b)
        for part in idfs[:, None] * parts:
            field += part
        total = total + weights[f] * field
    return total * boosts


def ceiling(idf_value: float, weight_sum: float, k1: float) -> float:
    """Return what one term can add to any unit at most: the saturation never reaches k1 + 1."""
    return idf_value * weight_sum * (k1 + 1.0)
