"""A numpy array that can be appended to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_ROOM = 16


class Column:
    """One value, or one row of `width` values, for each place."""

    def __init__(self, dtype: object, width: int = 0) -> None:
        self._shape = (width,) if width else ()
        self._data: NDArray[Any] = np.zeros((_FIRST_ROOM, *self._shape), dtype=dtype)  # type: ignore[call-overload]
        self._size = 0

    def append(self, value: object) -> None:
        """Add one row."""
        if self._size == len(self._data):
            self._grow(2 * self._size)
        self._data[self._size] = value
        self._size += 1

    def extend(self, rows: NDArray[Any]) -> None:
        """Add many rows."""
        needed = self._size + len(rows)
        if needed > len(self._data):
            self._grow(max(needed, 2 * self._size))
        self._data[self._size : needed] = rows
        self._size = needed

    def _grow(self, room: int) -> None:
        grown = np.zeros((room, *self._shape), dtype=self._data.dtype)
        grown[: self._size] = self._data[: self._size]
        self._data = grown

    @property
    def values(self) -> NDArray[Any]:
        """Return the rows written so far, as a view."""
        written: NDArray[Any] = self._data[: self._size]
        return written

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the rows that `mask` does not name."""
        kept = self._data[: self._size][mask]
        self._data, self._size = (kept if len(kept) else self._data[:_FIRST_ROOM]), len(kept)

    def replace(self, rows: NDArray[Any]) -> None:
        """Hold these rows and nothing else."""
        self._data, self._size = np.array(rows), len(rows)
