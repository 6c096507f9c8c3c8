"""The error tree: one root, the same in every interface.

::

    HoldfastError                    exit  status
    ├── InputError                     2   422   a value the caller gave cannot be used
    │   ├── BudgetError                2   422   what must be in every context does not fit the budget
    │   ├── FilterError                2   422   a filter is not understood
    │   └── UnknownProfileError        2   422   no such profile or strategy
    ├── NotFoundError                  3   404   no such unit among those the owner keys may see
    ├── SettingsError                  4   500   a setting is unknown or outside its domain
    ├── EmbedderError                  6   503   an embedder cannot be loaded, reached or trusted
    │   ├── EmbeddingSpaceError        6   503   the store's vectors were made by another embedder
    │   └── MissingExtraError          6   503   an optional part is not installed; the message has the install line
    ├── ReaderError                    7   503   the reader cannot be loaded or run
    ├── SummariserError                7   503   a summariser cannot be loaded, reached or trusted
    ├── AccessError                    8   403   a token is missing, wrong or revoked, or does not reach that far
    ├── ServerError                    9   503   a server cannot be reached, or takes no more work for now
    └── StoreError                     5   500   the store cannot do what was asked
        ├── ForeignStoreError          5   500   the file is not a Holdfast store
        ├── NewerStoreError            5   500   the store was written by a newer Holdfast
        ├── DamagedStoreError          5   500   bytes of the store are not what was written
        ├── ReadOnlyStoreError         5   503   the place cannot be written
        ├── BusyStoreError             5   503   another process holds the write lock for too long
        ├── QuotaError                 5   507   a tenant would keep more than it may
        └── ClosedStoreError           5   503   used after close, or across a fork

A message says what happened, with which value, and what to do next. `exit` is what a command ends with, `status` what
a server answers with; a missing or wrong token is 401.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

__all__ = [
    "AccessError",
    "BudgetError",
    "BusyStoreError",
    "ClosedStoreError",
    "DamagedStoreError",
    "EmbedderError",
    "EmbeddingSpaceError",
    "FilterError",
    "ForeignStoreError",
    "HoldfastError",
    "InputError",
    "MissingExtraError",
    "NewerStoreError",
    "NotFoundError",
    "QuotaError",
    "ReadOnlyStoreError",
    "ReaderError",
    "ServerError",
    "SettingsError",
    "StoreError",
    "SummariserError",
    "UnknownProfileError",
]

# Long values are cut in messages: a 10 MB text must not become a 10 MB message.
_SHOWN_VALUE = 60


def quote_value(value: object) -> str:
    """Return `value` as it should appear inside an error message: quoted and short."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN_VALUE else f"{text[: _SHOWN_VALUE - 1]}…"


def say_install(extra: str) -> str:
    """Return how an extra is installed, for messages: Holdfast is on no package index."""
    return f"in a copy of the repository, run: pip install '.[{extra}]'"


@contextmanager
def failing_as(kind: type[HoldfastError], who: str) -> Iterator[None]:
    """Let whatever foreign code raises count as its failure: `kind`, with the original as the cause.

    An embedder, a summariser or a counter of the caller's may raise anything. The only place that catches anything:
    what a caller's code does wrong must not leave half of ours done, and a bug of ours must not be hidden.
    """
    try:
        yield
    except kind:
        raise
    except Exception as error:
        raise kind(f"{who} failed with {type(error).__name__}: {error}") from error


class HoldfastError(Exception):
    """The root of every error Holdfast raises on purpose."""

    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 500


class InputError(HoldfastError, ValueError):
    """A value the caller gave cannot be used."""

    exit_code = 2
    status = 422


class BudgetError(InputError):
    """What must be in every context does not fit the budget."""


class FilterError(InputError):
    """A filter is not understood."""


class UnknownProfileError(InputError):
    """No profile or strategy of that name is installed."""


class NotFoundError(HoldfastError, LookupError):
    """No such unit among those the owner keys may see."""

    exit_code = 3
    status = 404


class SettingsError(HoldfastError, ValueError):
    """A setting is unknown, or its value is outside its domain."""

    exit_code = 4


class EmbedderError(HoldfastError):
    """An embedder cannot be loaded, reached or trusted."""

    exit_code = 6
    status = 503


class EmbeddingSpaceError(EmbedderError):
    """The store's vectors were made by another embedder, and the two cannot be compared."""


class MissingExtraError(EmbedderError):
    """An optional part of Holdfast is not installed."""


class ReaderError(HoldfastError):
    """The reader cannot be loaded or run."""

    exit_code = 7
    status = 503


class SummariserError(HoldfastError):
    """A summariser cannot be loaded, reached or trusted."""

    exit_code = 7
    status = 503


class AccessError(HoldfastError):
    """A token is missing, wrong or revoked, or does not reach that far."""

    exit_code = 8
    status = 403


class ServerError(HoldfastError):
    """A server cannot be reached, or takes no more work for now."""

    exit_code = 9
    status = 503


class StoreError(HoldfastError):
    """The store cannot do what was asked."""

    exit_code = 5


class ForeignStoreError(StoreError):
    """The file exists and is not a Holdfast store."""


class NewerStoreError(StoreError):
    """The store was written by a newer Holdfast."""


class DamagedStoreError(StoreError):
    """Bytes of the store are not what was written."""


class ReadOnlyStoreError(StoreError):
    """The place cannot be written."""

    status = 503


class BusyStoreError(StoreError):
    """Another process holds the write lock for too long."""

    status = 503


class QuotaError(StoreError):
    """A tenant would keep more than it may."""

    status = 507


class ClosedStoreError(StoreError):
    """The store was used after it was closed, or across a fork."""

    status = 503
