"""The messages of a request: made anew each time, with recalled text where it breaks no cached prefix."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.agent.system_prompt import SystemPrompt, api_messages
from leporello.messages import Message, encode_json
from leporello.turns import validate

SYSTEM = SystemPrompt("You work.")
USER = {"role": "user", "content": "Fix it"}
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "text"}


def test_system_prompt_first_then_the_conversation() -> None:
    assert api_messages(SYSTEM, [USER]) == [{"role": "system", "content": "You work."}, USER]
    assert api_messages(None, [USER]) == [USER]
    assert api_messages(SYSTEM, [USER], "  \n") == api_messages(SYSTEM, [USER])


def test_recalled_text_stands_behind_the_newest_user_message_which_stays_byte_for_byte() -> None:
    sent = api_messages(SYSTEM, [USER], "the port is 8443")
    first, second = sent[-1]["content"]
    assert first == {"type": "text", "text": "Fix it"}
    assert "the port is 8443" in second["text"]
    assert "no request" in second["text"]


def test_blocks_of_the_newest_message_are_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    sent = api_messages(None, [{"role": "user", "content": [image]}], "x")
    assert sent[-1]["content"][0] == image


def test_behind_a_tool_result_it_is_a_message_of_its_own() -> None:
    sent = api_messages(SYSTEM, [USER, CALLING, RESULT], "x")
    assert sent[1:4] == [USER, CALLING, RESULT]
    assert sent[-1]["role"] == "user"
    assert validate(sent) == []


@pytest.mark.parametrize("messages", [[USER], [USER, CALLING, RESULT], []])
def test_nothing_recalled_is_ever_stored(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    api_messages(SYSTEM, messages, "secret of the moment")
    assert messages == before


TURNS = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1, max_size=5)


@given(turns=TURNS, note=st.sampled_from(["", "Compacted."]))
def test_the_next_request_begins_with_the_same_bytes(turns: list[tuple[str, str]], note: str) -> None:
    """All but the newest message of a request stand unchanged in the one that follows, with recall or without."""
    system = SystemPrompt("You work.", note)
    messages: list[Message] = []
    previous: list[bytes] = []
    for said, recalled in turns:
        messages += [{"role": "user", "content": said}]
        for step in ([], [CALLING, RESULT]):
            messages += step
            sent = [encode_json(message) for message in api_messages(system, messages, recalled)]
            assert sent[: max(0, len(previous) - 1)] == previous[:-1]
            previous = sent
        messages += [{"role": "assistant", "content": "done"}]
