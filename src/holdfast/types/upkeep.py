"""What keeping a memory true reports: erasures (C19)."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.types.units import Unit


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased, or in a dry run would be.

    `summaries` rested on one of the units and went with them; `uncovered` are turns that such a summary stood for.
    `complete` says that no file of the store (`files`) holds anything of it any more; `pending` that a reader still
    keeps old bytes, and the next write or open goes on; `outside` names backups that are out of reach.
    """

    units: tuple[Unit, ...]
    summaries: tuple[Unit, ...] = ()
    uncovered: tuple[str, ...] = ()
    complete: bool = False
    pending: bool = False
    files: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    dry_run: bool = False
