"""Hyperdimensional computing over 4096-bit binary vectors (C5), packed into 64 words of 64 bits.

    bind = XOR          bundle = majority per bit          similarity = 1 - hamming/4096

Unrelated vectors agree in half of their bits, with a deviation of 1/(2·√4096) = 0.0078.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BITS = 4096
WORDS = BITS // 64
Hypervector = NDArray[np.uint64]

# Order inside a bigram is kept by turning its first member by one word before binding: XOR alone commutes.
_BIGRAM_TURN = 1
# Positions repeat after this many tokens, as in the reference.
_POSITIONS = 16


@lru_cache(maxsize=65_536)
def random(key: str) -> Hypervector:
    """Return the vector of a key: 4096 bits of SHAKE-256, so that any two keys are unrelated. Do not change it."""
    vector = np.frombuffer(hashlib.shake_256(key.encode()).digest(BITS // 8), dtype="<u8").astype(np.uint64)
    vector.setflags(write=False)
    return vector


def bind(a: Hypervector, b: Hypervector) -> Hypervector:
    """Return a vector unlike both that gives one back when bound with the other."""
    return a ^ b


def turn(vector: Hypervector, by: int) -> Hypervector:
    """Return the vector shifted cyclically by whole words: unlike the original, and undone by the opposite turn."""
    return np.roll(vector, by, axis=-1)


def bundle(vectors: Sequence[Hypervector] | NDArray[np.uint64], keys: Sequence[str]) -> Hypervector:
    """Return the majority of each bit.

    An even number of vectors can tie. Ties take the bits of `random` of all sorted keys: equal bags stay equal,
    and unrelated bags stay at one half; one fixed tie vector would lift unrelated pairs to .62.
    """
    if len(vectors) == 1:
        return vectors[0]
    bits = np.unpackbits(np.asarray(vectors).view(np.uint8).reshape(len(vectors), -1), axis=1)
    twice = 2 * bits.sum(axis=0, dtype=np.uint32).astype(np.int64)
    majority = twice > len(vectors)
    if len(vectors) % 2 == 0:
        ties = twice == len(vectors)
        breaker = np.unpackbits(random("tie:" + "\x1f".join(sorted(keys))).view(np.uint8))
        majority = np.where(ties, breaker.astype(np.bool_), majority)
    return np.packbits(majority).view(np.uint64)


def bag(items: Sequence[str]) -> Hypervector | None:
    """Return the bundle of some keys, or None when there are none."""
    return bundle([random(item) for item in items], items) if items else None


def ngrams(tokens: Sequence[str], *, positional: bool) -> Hypervector | None:
    """Return the bundle of a text's unigrams (bound to their place when `positional`) and bigrams."""
    if not tokens:
        return None
    words = np.stack([random(token) for token in tokens])
    if positional:
        keys = [f"{i % _POSITIONS}@{token}" for i, token in enumerate(tokens)]
        parts = bind(np.stack([random(f"position:{i % _POSITIONS}") for i in range(len(tokens))]), words)
    else:
        keys, parts = list(tokens), words
    keys += [f"{first}\x1e{second}" for first, second in pairwise(tokens)]
    pairs = bind(turn(words[:-1], _BIGRAM_TURN), words[1:])
    return bundle(np.concatenate((parts, pairs)), keys)


def hamming(matrix: NDArray[np.uint64], query: Hypervector) -> NDArray[np.int64]:
    """Return in how many bits each row differs from the query."""
    distances: NDArray[np.int64] = np.bitwise_count(matrix ^ query).sum(axis=1, dtype=np.int64)
    return distances


def similarity(distance: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 - distance/4096, in [0, 1]; unrelated is one half."""
    return 1.0 - distance / float(BITS)


def shifted(similarity_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far a similarity rises above chance: 0 at one half and below, 1 for equal vectors."""
    return np.maximum(0.0, (similarity_value - 0.5) * 2.0)


def noise_floor(units: int) -> float:
    """Return the shifted similarity that chance does not reach among `units` vectors.

    z = (similarity - ½)·2·√4096 must be at least max(4, √(2 ln N) + .5): the expected largest of N draws, and a bit.
    """
    z = max(4.0, math.sqrt(2.0 * math.log(max(units, 1))) + 0.5)
    return z / math.sqrt(BITS)
