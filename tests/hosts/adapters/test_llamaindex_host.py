"""LlamaIndex: its memory with a block of ours. What falls out of the queue comes back when it is asked for."""

import asyncio

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory

from holdfast.integrations.llamaindex import HoldfastMemoryBlock


def build(block, **settings):
    """Return a memory of few tokens, counted by words: the real tokenizer would be fetched."""
    given = {"token_limit": 60, "token_flush_size": 10, "chat_history_token_ratio": 0.5, **settings}
    return Memory.from_defaults(session_id="s1", memory_blocks=[block], tokenizer_fn=str.split, **given)


async def tell(chat, *sayings):
    for words in sayings:
        await chat.aput(ChatMessage(role="user", content=words))
        await chat.aput(ChatMessage(role="assistant", content="I see, and I will keep that in mind."))


def text_of(messages):
    return "\n".join(str(one.content) for one in messages)


SAYINGS = ("My boat is called Petrel.", *(f"On day {day} I went to the market and bought bread." for day in range(9)))


def test_what_falls_out_of_the_queue_comes_back_when_it_is_asked_for(memory):
    async def work():
        chat = build(HoldfastMemoryBlock(memory=memory, user="ana"))
        await tell(chat, *SAYINGS)
        return text_of(await chat.aget_all(status=None)), text_of(await chat.aget(input="What is my boat called?"))

    _, seen = asyncio.run(work())
    assert "user: My boat is called Petrel." in seen
    assert "<Memories>" in seen
    kept = [unit.text for unit in memory.list(user="ana", session="s1", limit=None, order="oldest")]
    assert kept[:2] == ["My boat is called Petrel.", "I see, and I will keep that in mind."]
    assert kept.count("I see, and I will keep that in mind.") > 2


def test_another_session_finds_it_too_and_another_user_does_not(memory):
    async def work():
        await tell(build(HoldfastMemoryBlock(memory=memory, user="ana")), *SAYINGS)
        found = []
        for user in ("ana", "bob"):
            chat = Memory.from_defaults(
                session_id="s2", token_limit=500, tokenizer_fn=str.split,
                memory_blocks=[HoldfastMemoryBlock(memory=memory, user=user)],
            )  # fmt: skip
            found.append(text_of(await chat.aget(input="What is my boat called?")))
        return found

    ana, bob = asyncio.run(work())
    assert "Petrel" in ana
    assert "Petrel" not in bob


def test_a_block_shrinks_when_there_is_no_room(memory):
    memory.remember([f"Fact {number} about the boat: it has a mast of wood." for number in range(30)], user="ana")
    block = HoldfastMemoryBlock(memory=memory, user="ana", budget=800, priority=1)

    async def work():
        whole = await block.aget([ChatMessage(role="user", content="What about the boat?")], session_id="s1")
        less = await block.atruncate(whole, 200)
        return whole, less, await block.atruncate(whole, 10_000), await block.atruncate("something else", 5)

    whole, less, nothing, unknown = asyncio.run(work())
    assert 0 < len(less) < len(whole)
    assert (nothing, unknown) == (None, None)


def test_nothing_is_asked_and_pictures_are_kept(memory):
    block = HoldfastMemoryBlock(memory=memory, user="ana")
    picture = ChatMessage(
        role="user", blocks=[TextBlock(text="my boat"), ImageBlock(url="https://example.org/boat.png")]
    )

    async def work():
        await block.aput([picture, ChatMessage(role="assistant", content="")], session_id="s1")
        return [await block.aget(asked) for asked in (None, [], [ChatMessage(role="assistant", content="hi")])]

    assert asyncio.run(work()) == ["", "", ""]
    [empty, kept] = memory.list(user="ana", session="s1")
    assert kept.text == "my boat"
    assert ChatMessage.model_validate(kept.parts[0]).blocks == picture.blocks
    assert empty.text == "[llama-index message without words]"


def test_a_chat_engine_talks_with_it(memory):
    memory.remember("My boat is called Petrel.", user="ana")
    chat = build(HoldfastMemoryBlock(memory=memory, user="ana"), token_limit=2_000)
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=chat)
    assert "Petrel" in str(engine.chat("What is my boat called?"))
