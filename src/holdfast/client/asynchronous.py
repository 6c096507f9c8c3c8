"""A memory for programs on an event loop: the same verbs, each run in a thread, so that the loop never waits."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from holdfast.errors import ClosedStoreError
from holdfast.memory import Memory
from holdfast.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
# A store answers one question at a time; the others wait, embed, or are on their way to a server meanwhile.
_THREADS = 16


def _offload(
    verb: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    """Return a verb that runs in a thread; it takes, returns and raises the same."""
    name = verb.__name__

    @functools.wraps(verb)
    async def run(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        done: R = await self._run(functools.partial(getattr(self.memory, name), *args, **kwargs))
        return done

    return run


def _begin(open_memory: Callable[P, Memory]) -> Callable[Concatenate[type[AsyncMemory], P], Opening]:
    """Return how a memory is opened in a thread."""

    @functools.wraps(getattr(open_memory, "__func__", open_memory))
    def begin(cls: type[AsyncMemory], /, *args: P.args, **kwargs: P.kwargs) -> Opening:
        return Opening(cls, functools.partial(open_memory, *args, **kwargs))

    return begin


class Opening:
    """A memory that is being opened: `await` it, or enter it with `async with`."""

    def __init__(self, kind: type[AsyncMemory], open_memory: Callable[[], Memory]) -> None:
        self._kind = kind
        self._open_memory = open_memory
        self._opened: AsyncMemory | None = None

    async def _open(self) -> AsyncMemory:
        opening = asyncio.get_running_loop().run_in_executor(None, self._open_memory)
        try:
            self._opened = self._kind(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_discard)
            raise
        return self._opened

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncMemory:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()


def _discard(opening: asyncio.Future[Memory]) -> None:
    """Close a memory that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class AsyncMemory:
    """A `Memory` whose verbs are awaited; open it with `AsyncMemory.open`, or give it a memory of yours.

    A call that is cancelled before its thread began has done nothing; one that began is done whole, whether somebody
    still waits for it or not. What a verb is given to call, such as `progress`, is called in that thread.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast-async")
        self._process, self._closed = os.getpid(), False

    def __str__(self) -> str:
        return str(self.memory)

    open = classmethod(_begin(Memory.open))
    remember = _offload(Memory.remember)
    update = _offload(Memory.update)
    ingest = _offload(Memory.ingest)
    ingest_folder = _offload(Memory.ingest_folder)
    widen = _offload(Memory.widen)
    reembed = _offload(Memory.reembed)
    load = _offload(Memory.load)
    search = _offload(Memory.search)
    assemble = _offload(Memory.assemble)
    why = _offload(Memory.why)
    get = _offload(Memory.get)
    list = _offload(Memory.list)
    facts = _offload(Memory.facts)
    about = _offload(Memory.about)
    history = _offload(Memory.history)
    stats = _offload(Memory.stats)
    users = _offload(Memory.users)
    sessions = _offload(Memory.sessions)
    documents = _offload(Memory.documents)
    agents = _offload(Memory.agents)
    compact = _offload(Memory.compact)
    expand = _offload(Memory.expand)
    supersede = _offload(Memory.supersede)
    reinstate = _offload(Memory.reinstate)
    decisions = _offload(Memory.decisions)
    overrule = _offload(Memory.overrule)
    forget = _offload(Memory.forget)
    backup = _offload(Memory.backup)
    export = _offload(Memory.export)
    import_ = _offload(Memory.import_)

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        return self.memory.settings

    async def close(self) -> None:
        """Wait for what is under way, and release the store."""
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.shutdown()
        self.memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, call: Callable[[], R]) -> R:
        if self._closed:
            raise ClosedStoreError("this memory is closed; open it again")
        if self._process != os.getpid():  # its threads stayed behind, and nothing would ever run
            raise ClosedStoreError("this memory was opened by the parent process; open it again after a fork")
        # A future that has not begun is cancelled with its task; one that has begun is left to end.
        return await asyncio.wrap_future(self._pool.submit(contextvars.copy_context().run, call))
