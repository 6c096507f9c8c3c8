"""Indexes that a large owner's vectors are found by (HNSW): one for each embedding space.

They are made by whoever loads or cares for a store; a reading uses those that are there.
"""

from __future__ import annotations

from holdfast.store.sqlite.blocks import CARRYING_MODELS

# Of how many neighbours a graph is made, and how carefully: pgvector's usual numbers.
_NEIGHBOURS, _CARE = 16, 64
# Of 150,000 vectors of 384 dimensions, the 384 that a graph of so many leads to hold .99 of the ten nearest and .81
# of the 64 nearest; a graph of 64 dimensions .94 and .65, one of all of them, in the same time, .96 and .70.
_INDEXED = 128
# pgvector's HNSW takes a halfvec of at most so many dimensions.
MOST_DIMS = 4000


def indexed_tier(space: str, dims: int) -> int | None:
    """Return how many of its first dimensions a space is indexed by; None for all of them.

    Those of a model that was trained so carry most (C10): a graph of them is half as large, and made in half the
    time. What it leads to is compared by all.
    """
    return _INDEXED if space.startswith(CARRYING_MODELS) and dims > _INDEXED else None


def index_name(space: int) -> str:
    """Return what the index over the vectors of a space is called."""
    return f"vectors_space_{space}"


def indexed_vector(dims: int, tier: int | None = None) -> str:
    """Return the expression that is indexed: it must stand in a statement as it stands in the index."""
    if tier is None:
        return f"vector::halfvec({dims})"
    return f"subvector(vector, 1, {tier})::halfvec({tier})"


def vector_index_statements(space: int, dims: int, space_name: str = "") -> list[str]:
    """Return the statements that make the index of one space; each may run again."""
    if dims > MOST_DIMS:
        return []
    what = indexed_vector(dims, indexed_tier(space_name, dims))
    how = f"WITH (m = {_NEIGHBOURS}, ef_construction = {_CARE}) WHERE space = {space}"
    where = f"{index_name(space)} ON vectors USING hnsw"
    return [f"CREATE INDEX IF NOT EXISTS {where} (({what}) halfvec_cosine_ops) {how}"]
