"""Indexes that a large owner's vectors are found by (HNSW): one for each leaf and embedding space.

They are made by whoever loads or cares for a store; a reading uses those that are there.
"""

from __future__ import annotations

from holdfast.store.blocks import CARRYING_MODELS, TIERS

# Of how many neighbours a graph is made, and how carefully: pgvector's usual numbers.
_NEIGHBOURS, _CARE = 16, 64
# pgvector's HNSW takes a halfvec of at most so many dimensions.
MOST_DIMS = 4000


def index_name(shard: int, space: int, tier: int | None = None) -> str:
    """Return what the index over the vectors of a leaf is called, or the one over their first dimensions."""
    return f"vectors_{shard}_space_{space}" + ("" if tier is None else f"_first_{tier}")


def indexed_vector(dims: int, tier: int | None = None) -> str:
    """Return the expression that is indexed: it must stand in a statement as it stands in the index."""
    if tier is None:
        return f"vector::halfvec({dims})"
    return f"subvector(vector, 1, {tier})::halfvec({tier})"


def vector_index_statements(shard: int, space: int, dims: int, space_name: str = "") -> list[str]:
    """Return the statements that make the indexes of a leaf for one space; each may run alone, and again.

    A model whose first dimensions carry is found by those: its index is a sixth as large.
    """
    if dims > MOST_DIMS:
        return []
    tier = TIERS[0] if space_name.startswith(CARRYING_MODELS) and dims > TIERS[0] else None
    return [
        f"CREATE INDEX IF NOT EXISTS {index_name(shard, space, one)} ON vectors_{shard} "
        f"USING hnsw (({indexed_vector(dims, one)}) halfvec_cosine_ops) "
        f"WITH (m = {_NEIGHBOURS}, ef_construction = {_CARE}) WHERE space = {space}"
        for one in ([None] if tier is None else [None, tier])
    ]
