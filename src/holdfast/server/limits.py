"""What one server takes on, what it refuses quickly, and the metrics of both: bodies, rates, work at a time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import time
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from holdfast.errors import HoldfastError, InputError, ServerError, quote_value
from holdfast.types import JSON
from holdfast.values import dataclass

T = TypeVar("T")
# People do not nest deeper; the checks of `Memory` allow metadata of 32 levels, inside of messages of a few.
_MAX_DEPTH = 64
# A key is an id of the caller's; longer ones are texts.
_KEY = re.compile(r"[!-~]{1,256}")
_NESTING = re.compile(rb"[\[{]")
# More than any words and any batch have; many millions of empty lists would keep everybody waiting for a minute.
_MOST_COMMAS = 1_000_000


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How one server listens, and how much it takes on.

    Without tokens it listens on loopback or a socket file alone. `rate` is how many requests a caller may make in a
    second, with as many at once; `work` how many requests are worked on at a time, of long work half as many, and
    `waiting` how many more wait for their turn before others are sent away. `pages` alone are for people, without the
    routes for programs; they show `user` first, and erase only when they may `write`.
    """

    host: str = "127.0.0.1"
    port: int = 8377
    unix: str = ""
    body_bytes: int = 17 * 1_048_576  # the largest document, and what is said about it
    batch: int = 10_000
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
            raise InputError(f"rate = {self.rate} requests a second is none; give --rate above 0")


class Refused(Exception):  # noqa: N818 - not an error of the tree: it carries one
    """A request that is answered with a problem: an error of the tree, the status, and when to come again."""

    def __init__(self, error: HoldfastError, status: int | None = None, headers: Mapping[str, str] = {}) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = type(error).status if status is None else status
        self.headers = dict(headers)


def _come_again(message: str, status: int, seconds: float) -> Refused:
    return Refused(ServerError(message), status, {"Retry-After": str(max(1, math.ceil(seconds)))})


# ----------------------------------------------------------------------------------------------------- bodies


async def read_body(chunks: AsyncIterator[bytes], said: str | None, settings: ServerSettings) -> bytes:
    """Return the body of a request, unless it is too large or comes too slowly; `said` is its Content-Length."""
    if said is not None and said.isdigit() and int(said) > settings.body_bytes:
        raise _too_large(int(said), settings)
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for chunk in chunks:
                body += chunk
                if len(body) > settings.body_bytes:
                    raise _too_large(len(body), settings)
    except TimeoutError as error:
        late = f"the body did not arrive within {settings.body_seconds:g} seconds; send it again"
        raise Refused(InputError(late), 408, {"Connection": "close"}) from error
    return bytes(body)


def _too_large(size: int, settings: ServerSettings) -> Refused:
    message = f"the body has {size:,} bytes or more; the most is {settings.body_bytes:,}: send it in parts"
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
            raise _come_again(f"more than {self._rate:g} requests a second; come again later", 429, missing)
        self._left[caller] = (left - 1.0, now)


# -------------------------------------------------------------------------------------------------------- work


class Work:
    """Threads that call the memory, so that the loop never waits for it; whoever finds too many waiting is sent away.

    Work that has begun is finished: a caller who goes away, or a server that stops, leaves nothing half-written.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"holdfast-{name}")
        self._most = threads + waiting
        self.taken = 0

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Begin a piece of work.

        Raises:
            Refused: too much is under way already.
        """
        if self.taken >= self._most:
            raise _come_again(f"{self.taken} requests are under way, as many as may be; come again later", 503, 1.0)
        self.taken += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(self._count_back)
        return future

    def _count_back(self, future: asyncio.Future[T]) -> None:
        self.taken -= 1
        if not future.cancelled():
            future.exception()  # whoever asked may have gone: nobody else has to hear of it

    def finish(self) -> None:
        """Wait until everything that was begun is done."""
        self._pool.shutdown(wait=True)


# --------------------------------------------------------------------------------------------------------- keys


class IdempotencyKeys:
    """Answers of writes by the key that the caller gave: the same request again gets the same answer.

    Kept in memory and bounded, the oldest go first: a key is for repeating a request whose answer was lost.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._most, self._most_bytes = settings.keys, settings.key_bytes
        self._known: OrderedDict[tuple[str, str], tuple[bytes, asyncio.Task[bytes]]] = OrderedDict()

    async def once(self, owner: str, key: str, request: bytes, work: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the answer to a request with a key, working for it only when it is new.

        Raises:
            Refused: the key cannot be one, or was given with another request.
        """
        if not _KEY.fullmatch(key):
            raise Refused(
                InputError(f"an Idempotency-Key has 1 to 256 printable characters, not {quote_value(key)}"), 400
            )
        asked = hashlib.sha256(request).digest()
        name = (owner, key)
        if name in self._known:
            before, task = self._known[name]
            if before != asked:
                raise Refused(InputError("this Idempotency-Key was given with another request; make a new one"), 422)
        else:
            task = asyncio.ensure_future(work())
            self._known[name] = (asked, task)
            task.add_done_callback(lambda done: self._keep(name, done))
        return await asyncio.shield(task)

    def _keep(self, name: tuple[str, str], task: asyncio.Task[bytes]) -> None:
        """Keep an answer; what failed may be tried again."""
        if task.cancelled() or task.exception() is not None:
            self._known.pop(name, None)
        kept = [(one, task) for one, (_, task) in self._known.items() if task.done() and not task.cancelled()]
        done = [(one, task.result()) for one, task in kept if task.exception() is None]
        size = sum(len(answer) for _, answer in done)
        while done and (len(self._known) > self._most or size > self._most_bytes):
            oldest, answer = done.pop(0)
            size -= len(answer)
            del self._known[oldest]


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
