"""What one server takes on, what it refuses quickly, and the metrics of both: bodies, rates, work at a time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import re
import time
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from holdfast.errors import HoldfastError, InputError, ServerError, quote_value
from holdfast.types import JSON
from holdfast.values import dataclass

T = TypeVar("T")
# Where a request has what keeps its connection.
WELCOME = "holdfast.welcome"
# People do not nest deeper; the checks of `Memory` allow metadata of 32 levels, inside of messages of a few.
_MAX_DEPTH = 64
# A key is an id of the caller's; longer ones are texts.
_KEY = re.compile(r"[!-~]{1,256}")
_NESTING = re.compile(rb"[\[{]")
# More than any words and any batch have; many millions of empty lists would keep everybody waiting for a minute.
_MOST_COMMAS = 1_000_000
# How often a server that ends looks whether all work is done.
_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How one server listens, and how much it takes on.

    Without tokens it listens on loopback or a socket file alone. `rate` is how many requests a caller may make in a
    second, with as many at once; `work` how many requests are worked on at a time, of long work half as many (two at
    least, and one for each caller), and `waiting` how many more wait for their turn before others are sent away.
    A body may hold `units` units: at about a millisecond each, long work is over within a minute or two. Of
    connections that have shown no token (or, without tokens, asked for nothing), `strangers` are kept: the oldest is
    closed for the next. Wrong tokens may be shown `guesses` times a second, by all callers together. `pages` alone
    are for people, without the routes for programs; they show `user` first, and erase only when they may `write`.
    """

    host: str = "127.0.0.1"
    port: int = 8377
    unix: str = ""
    body_bytes: int = 17 * 1_048_576  # the largest document, and what is said about it
    batch: int = 10_000
    units: int = 50_000
    strangers: int = 256
    guesses: float = 10.0
    rate: float = 1_000.0
    work: int = 4
    waiting: int = 64
    keys: int = 1_000
    key_bytes: int = 16 * 1_048_576
    body_seconds: float = 60.0
    pages: Literal["too", "alone"] = "too"
    user: str = ""
    write: bool = False

    def __post_init__(self) -> None:
        """Refuse what would let nobody in."""
        if self.work < 1:
            raise InputError(f"work = {self.work}: a server has to work on 1 request at a time or more; give --work")
        if not 0.0 < self.rate < math.inf:
            raise InputError(f"rate = {self.rate} requests a second is invalid; give --rate above 0")


class Refused(Exception):  # noqa: N818 - not an error of the tree: it carries one
    """A request that is answered with a problem: an error of the tree, the status, and when to retry."""

    def __init__(self, error: HoldfastError, status: int | None = None, headers: Mapping[str, str] = {}) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = type(error).status if status is None else status
        self.headers = dict(headers)


def _retry_later(message: str, status: int, seconds: float) -> Refused:
    return Refused(ServerError(message), status, {"Retry-After": str(max(1, math.ceil(seconds)))})


def welcome(scope: MutableMapping[str, Any]) -> None:
    """Keep the connection of a caller who was let in, however many others there are."""
    keep: Callable[[], None] = scope.get(WELCOME, lambda: None)
    keep()


# ----------------------------------------------------------------------------------------------------- bodies


async def read_body(chunks: AsyncIterator[bytes], said: str | None, most: int, seconds: float) -> bytes:
    """Return the body of a request, unless it is too large or comes too slowly; `said` is its Content-Length."""
    if said is not None and said.isdigit() and int(said) > most:
        raise _too_large(int(said), most)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise _too_large(len(body), most)
    except TimeoutError as error:
        late = f"the body did not arrive within {seconds:g} seconds; send it again"
        raise Refused(InputError(late), 408, {"Connection": "close"}) from error
    return bytes(body)


def _too_large(size: int, most: int) -> Refused:
    message = f"the body has {size:,} bytes or more; the most is {most:,}: send it in parts"
    return Refused(InputError(message), 413, {"Connection": "close"})


def read_json(body: bytes) -> dict[str, JSON]:
    """Return the JSON object of a body: UTF-8, no deeper than anybody needs, and with numbers that are numbers."""
    if not body:
        return {}
    if body.count(b",") > _MOST_COMMAS:
        raise Refused(InputError(f"the body has more than {_MOST_COMMAS:,} commas; send it in parts"), 413)
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_read_float)
    except (ValueError, RecursionError) as error:
        raise Refused(InputError(f"the body is not JSON: {error}; send an object"), 400) from error
    if not isinstance(found, dict):
        raise Refused(InputError(f"the body is a {type(found).__name__}; send a JSON object of arguments"), 400)
    if len(_NESTING.findall(body)) > _MAX_DEPTH and _depth(found) > _MAX_DEPTH:
        raise Refused(InputError(f"the body is nested more than {_MAX_DEPTH} deep; flatten it"), 400)
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(f"{text[:20]}, which is too large,")


def _depth(value: JSON) -> int:
    level, deep = [value], 0
    while level:
        deep += 1
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return deep


# ------------------------------------------------------------------------------------------------------- rates


class Rate:
    """How many requests each caller may make: a bucket that fills `rate` times a second, for a second's worth."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._clock = rate, max(rate, 1.0), clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Count one request.

        Raises:
            Refused: the caller has to wait.
        """
        now = self._clock()
        left, since = self._left.get(caller, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if left < 1.0:
            missing = (1.0 - left) / self._rate
            raise _retry_later(f"more than {self._rate:g} requests a second; retry later", 429, missing)
        self._left[caller] = (left - 1.0, now)


# -------------------------------------------------------------------------------------------------------- work


class Job(Generic[T]):
    """One piece of work: who asked for it, its answer, and how far it is.

    One that `may_end` ends at its next report, or never begins, when nobody waits for its answer any more.
    """

    def __init__(self, caller: str, *, may_end: bool = False) -> None:
        self.caller, self.may_end = caller, may_end
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = self._loop.create_future()
        self.said, self.news = "", self._loop.create_future()
        self.begun = self.left = False
        self._callers = 0

    @contextlib.contextmanager
    def wanted(self) -> Iterator[None]:
        """Wait for the answer inside."""
        self._callers += 1
        try:
            yield
        finally:
            self._callers -= 1
            if self.may_end and not self._callers and not self.answer.done():
                self.left = True
                if not self.begun:
                    self.answer.cancel()

    def report(self, said: str) -> None:
        """Say how far the work is, in its thread.

        Raises:
            ServerError: nobody waits for it any more.
        """
        if self.left:
            raise ServerError("its caller went away; what is done stays, and the rest is left")
        self._loop.call_soon_threadsafe(self._tell, said)

    def _tell(self, said: str) -> None:
        news, self.said, self.news = self.news, said, self._loop.create_future()
        news.set_result(None)


class Work:
    """Threads that call the memory, so that the loop never waits for it; whoever finds too many waiting is sent away.

    Of the callers who wait, the one with the fewest pieces under way comes first; of one caller, what waited longest.
    With `spare`, nobody who has a thread gets the last one: another caller finds it free. When no place is left, the
    caller who holds the most loses the newest. Work that has begun is finished also when a server stops.
    """

    def __init__(self, threads: int, waiting: int, name: str, *, spare: bool = False) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"holdfast-{name}")
        self._threads, self._most, self._spare = threads, threads + waiting, spare and threads > 1
        self._waiting: list[tuple[Job[Any], Callable[[], Any]]] = []
        self._running: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Return how many pieces are under way or wait."""
        return self._running.total() + len(self._waiting)

    def start(self, job: Job[T], call: Callable[[], T]) -> Job[T]:
        """Accept a piece of work; it begins as soon as it is its caller's turn.

        Raises:
            Refused: too much is under way already.
        """
        if self.taken >= self._most:
            self._make_room(job.caller)
        self._waiting.append((job, call))
        job.answer.add_done_callback(self._forget)
        self._begin()
        return job

    def run(self, caller: str, call: Callable[[], T]) -> asyncio.Future[T]:
        """Return the answer of a piece of work that is finished whoever waits for it."""
        return self.start(Job[T](caller), call).answer

    def _make_room(self, caller: str) -> None:
        held = self._running + Counter(job.caller for job, _ in self._waiting)
        full = _retry_later(f"server busy ({self.taken} requests in progress); retry later", 503, 1.0)
        most, pieces = held.most_common(1)[0]
        newest = next((job for job, _ in reversed(self._waiting) if job.caller == most), None)
        if newest is None or pieces <= held[caller] + 1:
            raise full
        newest.answer.set_exception(full)
        self._drop_answered()

    def _begin(self) -> None:
        while self._waiting and (idle := self._threads - self._running.total()):
            place = min(range(len(self._waiting)), key=lambda place: self._running[self._waiting[place][0].caller])
            if self._spare and idle == 1 and self._running[self._waiting[place][0].caller]:
                return
            job, call = self._waiting.pop(place)
            job.begun = True
            self._running[job.caller] += 1
            done = asyncio.get_running_loop().run_in_executor(self._pool, call)
            done.add_done_callback(partial(self._end, job))

    def _end(self, job: Job[Any], done: asyncio.Future[Any]) -> None:
        self._running -= Counter([job.caller])
        if (error := done.exception()) is not None and not job.answer.done():
            job.answer.set_exception(error)
        elif not job.answer.done():
            job.answer.set_result(done.result())
        self._begin()

    def _forget(self, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled():
            answer.exception()  # whoever asked may have gone: nobody else has to hear of it
        self._drop_answered()

    def _drop_answered(self) -> None:
        """Drop what was sent away, or left by its caller, before it began."""
        self._waiting = [one for one in self._waiting if not one[0].answer.done()]

    async def finish(self) -> None:
        """Wait until everything that was accepted is done."""
        while self.taken:
            await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.to_thread(self._pool.shutdown)


# --------------------------------------------------------------------------------------------------------- keys


class IdempotencyKeys:
    """Answers of writes by the key that the caller gave: the same request again gets the same answer.

    Kept in memory and bounded, the oldest go first: a key is for repeating a request whose answer was lost.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._most, self._most_bytes = settings.keys, settings.key_bytes
        self._known: OrderedDict[tuple[str, str], tuple[bytes, Job[bytes]]] = OrderedDict()

    def once(self, owner: str, key: str, request: bytes, begin: Callable[[], Job[bytes]]) -> Job[bytes]:
        """Return the work for a request with a key, beginning it only when it is new.

        Raises:
            Refused: the key cannot be one, or was given with another request.
        """
        if not _KEY.fullmatch(key):
            raise Refused(
                InputError(f"an Idempotency-Key has 1 to 256 printable characters, not {quote_value(key)}"), 400
            )
        asked = hashlib.sha256(request).digest()
        before, job = self._known.get((owner, key), (asked, None))
        if before != asked:
            raise Refused(InputError("this Idempotency-Key was given with another request; make a new one"), 422)
        if job is None or job.left:
            job = begin()
            self._known[owner, key] = (asked, job)
            job.answer.add_done_callback(lambda _: self._keep((owner, key), job))
        return job

    def _keep(self, name: tuple[str, str], done: Job[bytes]) -> None:
        """Keep an answer; what failed may be tried again."""
        if not _is_kept(done) and self._known.get(name, (b"", None))[1] is done:
            del self._known[name]
        answers = [(one, len(job.answer.result())) for one, (_, job) in self._known.items() if _is_kept(job)]
        size = sum(length for _, length in answers)
        while answers and (len(self._known) > self._most or size > self._most_bytes):
            oldest, length = answers.pop(0)
            size -= length
            del self._known[oldest]


def _is_kept(job: Job[bytes]) -> bool:
    """Return whether work has an answer that is not an error."""
    return job.answer.done() and not job.answer.cancelled() and job.answer.exception() is None


# From a look-up to long work, in seconds.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class ServerMetrics:
    """What has been answered since the start; names of routes only, nothing of what was asked."""

    def __init__(self) -> None:
        self._answered: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._answered[route, status] += 1
        self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a counter of seconds

    def histograms(self) -> dict[str, tuple[int, ...]]:
        """Return, for each route, how many answers took up to each of `BOUNDS` seconds, and how many longer."""
        return {route: tuple(buckets) for route, buckets in sorted(self._buckets.items())}

    def write(self, gauges: dict[str, float]) -> str:
        """Return everything, with values of the moment."""
        lines = ["# TYPE holdfast_requests_total counter"]
        lines += [
            f'holdfast_requests_total{{route="{route}",status="{status}"}} {number}'
            for (route, status), number in sorted(self._answered.items())
        ]
        lines.append("# TYPE holdfast_request_seconds histogram")
        for route, buckets in sorted(self._buckets.items()):
            below = 0
            for bound, number in zip((*BOUNDS, "+Inf"), buckets, strict=True):
                below += number
                lines.append(f'holdfast_request_seconds_bucket{{route="{route}",le="{bound}"}} {below}')
            lines.append(f'holdfast_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'holdfast_request_seconds_count{{route="{route}"}} {below}')
        for name, value in gauges.items():
            lines += [f"# TYPE holdfast_{name} gauge", f"holdfast_{name} {value:g}"]
        return "\n".join(lines) + "\n"
