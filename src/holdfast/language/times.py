"""Times as callers and files give them → aware moments, by one rule."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from holdfast.errors import InputError, shown

# Outside these years a time is a mix-up of units or a typing error, not a memory.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A smaller number is a year, a day written as 20260403 or a counter: as seconds it would lie before March 1973.
_LEAST_SECONDS = 1e8
# From here on a number is milliseconds: as seconds it would lie beyond the year 5000.
_LEAST_MILLISECONDS = 1e11
# As milliseconds this is beyond the year 2200; larger are microseconds or no time at all.
_TOO_LARGE = 1e13
_EXAMPLE = "write it as 2026-04-02T09:00:00Z"


def read_time(what: str, given: object) -> datetime:
    """Return an aware UTC time from a datetime, ISO text, or seconds or milliseconds since 1970.

    A day without a time is its first moment in UTC; a time of day without a zone is refused.

    Raises:
        InputError: it is naive, not a time, or outside the years a memory can have.
    """
    moment = _moment(what, given)
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InputError(f"{what} = {shown(str(given))} has no time zone; {_EXAMPLE}")
    if not EARLIEST <= moment < LATEST:
        raise InputError(f"{what} = {moment.isoformat()} is outside {EARLIEST.year}–{LATEST.year}; check its unit")
    return moment.astimezone(UTC)


def _moment(what: str, given: object) -> datetime:
    if isinstance(given, datetime):
        return given
    if isinstance(given, date):
        return _midnight(given)
    if isinstance(given, str):
        return _written(what, given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return _since_epoch(what, given)
    raise InputError(f"{what} = {shown(given)} is not a time; give a datetime, or {_EXAMPLE}")


def _written(what: str, given: str) -> datetime:
    for read in (lambda text: _midnight(date.fromisoformat(text)), datetime.fromisoformat):
        try:
            return read(given)
        except ValueError:
            continue
    raise InputError(f"{what} = {shown(given)} is not a time; {_EXAMPLE}")


def _since_epoch(what: str, given: float) -> datetime:
    if not _LEAST_SECONDS <= given < _TOO_LARGE:
        raise InputError(
            f"{what} = {shown(given)} is neither seconds nor milliseconds since 1970; check its unit, or {_EXAMPLE}"
        )
    seconds = given if given < _LEAST_MILLISECONDS else given / 1000
    return _EPOCH + timedelta(seconds=seconds)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
