"""`AsyncMemory`: the verbs of `Memory`, awaited; nothing is half-written, whoever stops waiting."""

import asyncio
import contextvars
import inspect
import threading

import pytest

from builders import opened
from holdfast import AsyncMemory, ClosedStoreError, InputError, Memory, NotFoundError, Settings
from holdfast.client import asynchronous
from holdfast.testing.contracts import HashEmbedder

PLAIN = Settings.load({"embedding.embedder": "none"}, environ={})


class Gated(HashEmbedder):
    """Embeds when it is let; `begun` says that somebody waits."""

    def __init__(self):
        super().__init__(64)
        self.begun, self.go = threading.Semaphore(0), threading.Event()

    def embed_documents(self, texts):
        self.begun.release()
        self.go.wait()
        return super().embed_documents(texts)


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_it_has_every_verb_of_a_memory_with_the_same_arguments():
    assert public(Memory) - public(AsyncMemory) == {"store"}
    for name in public(Memory) - {"store", "settings", "close"}:
        ours, theirs = getattr(AsyncMemory, name), getattr(Memory, name)
        assert inspect.signature(ours) == inspect.signature(theirs), name
        assert ours.__doc__ == theirs.__doc__
        assert inspect.iscoroutinefunction(ours) or name == "open"


def test_it_is_opened_by_awaiting_it_or_by_entering_it(tmp_path):
    async def main():
        memory = await AsyncMemory.open(tmp_path / "m.db", settings=PLAIN)
        async with memory:
            await memory.remember("the kettle is copper", user="ana", id="kettle")
            assert memory.settings is PLAIN
        async with AsyncMemory.open(tmp_path / "m.db", settings=PLAIN) as memory:
            assert (await memory.get("kettle", user="ana")).text == "the kettle is copper"
        with pytest.raises(InputError, match="cannot be a path"):
            await AsyncMemory.open(" ")

    asyncio.run(main())


def test_a_verb_raises_what_the_memory_raises():
    async def main():
        async with AsyncMemory(opened()) as memory:
            with pytest.raises(NotFoundError, match="there is no unit 'nobody'"):
                await memory.get("nobody", user="ana")
            with pytest.raises(TypeError, match=r"Memory\.search\(\) got an unexpected keyword argument 'usr'"):
                await memory.search("kettle", usr="ana")
        with pytest.raises(ClosedStoreError, match="this memory is closed; open it again"):
            await memory.search("kettle", user="ana")

    asyncio.run(main())


def test_a_cancelled_write_that_began_is_done_whole_and_closing_waits_for_it(tmp_path):
    embedder, path = Gated(), tmp_path / "m.db"

    async def main():
        memory = AsyncMemory(opened(path=path, embedder=embedder))
        write = asyncio.create_task(memory.remember(["one kettle", "two kettles"], user="ana"))
        await asyncio.to_thread(embedder.begun.acquire)
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        assert not closing.done()
        embedder.go.set()
        await closing

    asyncio.run(main())
    with opened(path=path, embedder=HashEmbedder(64)) as memory:
        assert {unit.text for unit in memory.list(user="ana")} == {"one kettle", "two kettles"}
        assert memory.stats(user="ana", whole=True).waiting == 0
        assert memory.store.verify() == []


def test_a_write_that_is_cancelled_before_it_began_does_nothing(monkeypatch):
    monkeypatch.setattr(asynchronous, "_THREADS", 1)
    embedder = Gated()

    async def main():
        async with AsyncMemory(opened(embedder=embedder)) as memory:
            first = asyncio.create_task(memory.remember("the kettle is copper", user="ana"))
            await asyncio.to_thread(embedder.begun.acquire)
            second = asyncio.create_task(memory.remember("the lamp is blue", user="ana"))
            await asyncio.sleep(0)  # it waits for the one thread
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            embedder.go.set()
            assert (await first)[0].status == "added"
            assert [unit.text for unit in await memory.list(user="ana")] == ["the kettle is copper"]

    asyncio.run(main())


def test_a_memory_that_nobody_waits_for_any_more_is_closed(monkeypatch, tmp_path):
    begun, go, found = threading.Event(), threading.Event(), []

    class Slow(Memory):
        @classmethod
        def open(cls, path):
            begun.set()
            go.wait()
            found.append(opened(path=path))
            return found[0]

    async def main():
        opening = asyncio.ensure_future(asynchronous.Opening(AsyncMemory, lambda: Slow.open(tmp_path / "m.db")))
        await asyncio.to_thread(begun.wait)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go.set()

    asyncio.run(main())
    with pytest.raises(ClosedStoreError):
        found[0].list(user="ana")


def test_after_a_fork_it_is_refused(monkeypatch):
    async def run():
        async with AsyncMemory(opened()) as memory:
            await memory.list(user="ana")
            with monkeypatch.context() as patch:
                patch.setattr("holdfast.client.asynchronous.os.getpid", lambda: -1)
                with pytest.raises(ClosedStoreError, match="open it again after a fork"):
                    await asyncio.wait_for(memory.list(user="ana"), 60)

    asyncio.run(run())


def test_context_variables_reach_the_verb():
    told = contextvars.ContextVar("told", default="nothing")

    async def main():
        heard = []
        async with AsyncMemory(opened()) as memory:
            told.set("who asks")
            await memory.assemble("kettle", user="ana", counter=lambda text: heard.append(told.get()) or len(text))
        assert set(heard) == {"who asks"}

    asyncio.run(main())


def test_many_calls_at_a_time_answer_as_one_after_the_other():
    async def main():
        async with AsyncMemory(opened(embedder=HashEmbedder(64))) as memory:
            await asyncio.gather(*(memory.remember(f"kettle {i}", user="ana", id=f"k{i}") for i in range(40)))
            at_once = await asyncio.gather(*(memory.search(f"kettle {i}", user="ana") for i in range(40)))
            alone = [memory.memory.search(f"kettle {i}", user="ana") for i in range(40)]
            assert [[hit.score for hit in found] for found in at_once] == [[h.score for h in one] for one in alone]

    asyncio.run(main())
