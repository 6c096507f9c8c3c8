"""Messages as objects: what clients of chat models return is remembered as the dict that it stands for."""

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import opened
from holdfast import InputError
from holdfast.messages.content import plain_message, read_content
from holdfast.settings import IngestSettings
from holdfast.verbs import encode_argument

OWNER = {"user": "ana", "session": "s"}
CALL = {"id": "c1", "type": "function", "function": {"name": "find_train", "arguments": '{"to": "Porto"}'}}


@dataclass
class ChatMessage:
    """Shaped as the classes of clients are, with a method, a private field and fields that a server added."""

    role: str
    content: Any
    tool_calls: Any = None
    refusal: Any = None
    model_extra: Any = None
    _raw: Any = "private"

    def model_dump(self):
        raise AssertionError("nobody asked for it")


def as_object(value):
    """Return JSON with objects in the place of dicts."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: as_object(one) for name, one in value.items()})
    return [as_object(one) for one in value] if isinstance(value, list) else value


words = st.text("abc é\n", min_size=1, max_size=12).filter(str.strip)
parts = st.fixed_dictionaries({"type": st.just("text"), "text": words})
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "assistant", "tool"))},
    optional={
        "content": st.one_of(words, st.lists(parts, min_size=1, max_size=2), st.none()),
        "tool_calls": st.lists(st.just(CALL), min_size=1, max_size=2),
        "name": words,
        "finish": st.one_of(st.integers(0, 9), st.none()),
    },
)


def outcome(message):
    try:
        return read_content([message], IngestSettings())
    except InputError as error:
        return type(error)


@given(messages.filter(lambda message: {"content", "tool_calls"} & message.keys()))
def test_an_object_means_what_its_dict_means(message):
    assert outcome(as_object(message)) == outcome(message)
    assert encode_argument(as_object(message)) == encode_argument(message)


def test_what_a_client_returned_is_remembered_and_known_again_as_a_dict():
    said = ChatMessage("assistant", "The train leaves at nine.", model_extra={"model": "small"})
    with opened() as memory:
        [first] = memory.remember(said, **OWNER)
        assert memory.get(first.id, user="ana").text == "The train leaves at nine."
        assert memory.get(first.id, user="ana").author == "assistant"
        assert memory.get(first.id, user="ana").metadata["model"] == "small"
        again = memory.remember([{"role": "assistant", "content": "The train leaves at nine."}], **OWNER)
        assert [one.status for one in again] == ["duplicate"]


def test_a_message_of_tool_calls_alone_keeps_names_and_arguments():
    said = ChatMessage("assistant", None, tool_calls=[as_object(CALL)])
    with opened() as memory:
        [kept] = memory.remember([said], **OWNER)
        unit = memory.get(kept.id, user="ana")
        assert unit.text == 'find_train {"to": "Porto"}'
        assert json.loads(json.dumps(unit.parts))[0]["function"] == CALL["function"]


def test_a_question_may_be_the_last_of_such_messages():
    with opened() as memory:
        memory.remember("The spare key is with Rui.", user="ana")
        asked = [ChatMessage("assistant", "Hello!"), ChatMessage("user", "Who has the spare key?")]
        assert memory.search(asked, user="ana")[0].text == "The spare key is with Rui."
        assert "with Rui" in memory.assemble(asked, user="ana").text


def test_a_message_that_holds_itself_is_refused_in_one_sentence():
    said = ChatMessage("user", "hi", model_extra={})
    said.model_extra["self"] = said
    with opened() as memory, pytest.raises(InputError):
        memory.remember(said, **OWNER)


@pytest.mark.parametrize("other", [3, object(), ChatMessage, b"bytes", SimpleNamespace(text="hi")])
def test_what_is_no_message_is_left_as_it_is_and_refused(other):
    assert plain_message(other) is other
    with opened() as memory, pytest.raises(InputError, match="cannot be remembered"):
        memory.remember(other, **OWNER)
