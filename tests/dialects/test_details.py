"""What each dialect does with the odd things: ids, arguments, images, sound, files, errors, late instructions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.caching import anchored, system_and_3
from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, STATE, Target
from leporello.dialects.anthropic.request import IDS as ANTHROPIC_IDS
from leporello.dialects.base import drop_state, state_keys
from leporello.dialects.chat.request import IDS as CHAT_IDS
from leporello.dialects.chat.request import MISTRAL_IDS
from leporello.dialects.pieces import (
    RAW_ARGUMENTS,
    arguments_object,
    arguments_text,
    original_id,
    plan_ids,
    valid_arguments,
)
from leporello.dialects.responses.request import IDS as RESPONSES_IDS
from leporello.messages import Message
from tests.support.strategies import conversations
from tests.support.wire import anthropic_violations, chat_violations, responses_violations

CLAUDE = Target("anthropic", "claude-sonnet-5")
OPENAI = Target("openai", "gpt-6-sol", native=True)
LOCAL = Target("local", "qwen3")
PNG = "data:image/png;base64,aGk="


def call(name: str, arguments: str = "{}", tool: str = "ls") -> dict[str, Any]:
    """One tool call."""
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}


def group(*ids: str, arguments: str = "{}", content: Any = "out") -> list[Message]:
    """A user message, calls with these ids, and their results."""
    results: list[Message] = [{"role": "tool", "tool_call_id": name, "content": content} for name in ids]
    calls = [call(name, arguments) for name in ids]
    return [{"role": "user", "content": "Go"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]


# --- ids --------------------------------------------------------------------------------------------------------


@given(st.text(max_size=80))
def test_anthropic_ids_can_be_undone(name: str) -> None:
    """Any id becomes one the API takes, and comes back; one that fits is not touched."""
    messages = group(name)
    wire = plan_ids(messages, ANTHROPIC_IDS).calls[1][0]
    assert ANTHROPIC_IDS.fits.fullmatch(wire) or wire.startswith("lx-")
    assert original_id(wire) == (name or "ls")


@pytest.mark.parametrize("rule", [ANTHROPIC_IDS, RESPONSES_IDS, MISTRAL_IDS], ids=["anthropic", "responses", "mistral"])
def test_ids_that_come_again_are_told_apart(rule: Any) -> None:
    """`call_0` in every turn, and twice in one, becomes a different id each time; results follow their calls."""
    messages = [*group("call_0", "call_0"), *group("call_0")]
    plan = plan_ids(messages, rule)
    wires = [*plan.calls[1], *plan.calls[5]]
    assert len(set(wires)) == 3
    assert [plan.results[2], plan.results[3], plan.results[6]] == wires


def test_two_calls_with_one_id_are_accepted() -> None:
    """Every server takes a turn in which the model used one id twice."""
    messages = group("same", "same")
    assert anthropic_violations(ANTHROPIC.encode_request(messages, target=CLAUDE)) == []
    assert chat_violations(OPENAI_CHAT.encode_request(messages, target=OPENAI)) == []
    assert responses_violations(OPENAI_RESPONSES.encode_request(messages, target=OPENAI)) == []


def test_lengths_and_alphabets() -> None:
    """OpenAI's 40 and 64 characters and Mistral's nine are kept."""
    long = "x" * 200
    assert len(plan_ids(group(long), CHAT_IDS).calls[1][0]) <= 40
    assert len(plan_ids(group(long), RESPONSES_IDS).calls[1][0]) <= 64
    wire = OPENAI_CHAT.encode_request(group("call_abc-1"), target=Target("mistral", "mistral-large"))
    assert MISTRAL_IDS.fits.fullmatch(wire["messages"][1]["tool_calls"][0]["id"])
    assert wire["messages"][2]["tool_call_id"] == wire["messages"][1]["tool_calls"][0]["id"]


# --- arguments --------------------------------------------------------------------------------------------------


@given(st.text(max_size=60) | st.sampled_from(["", "null", "[1]", "3", '{"a": NaN}', '{"a": 1e999}', '{"a":1', "{}"]))
def test_arguments_that_are_no_object_are_carried(text: str) -> None:
    """Whatever the model wrote goes back as an object, and can be read from it again."""
    value = arguments_object(text)
    json.dumps(value, allow_nan=False)
    assert isinstance(json.loads(valid_arguments(text)), dict)
    if set(value) == {RAW_ARGUMENTS}:
        assert arguments_text(value) == text
    else:
        assert value == (json.loads(text) if text.strip() not in ("", "null") else {})


def test_numbers_are_exact() -> None:
    """Integers beyond 64 bits keep every digit."""
    text = '{"id": 123456789012345678901234567890, "x": 0.1}'
    assert arguments_object(text)["id"] == 123456789012345678901234567890
    assert valid_arguments(text) is text


# --- contents ---------------------------------------------------------------------------------------------------


def test_images_everywhere() -> None:
    """An image of the user and one in a result reach every dialect in its own form."""
    image = {"type": "image_url", "image_url": {"url": PNG, "detail": "high"}}
    messages = [*group("c1", content=[{"type": "text", "text": "shot"}, image]), {"role": "user", "content": [image]}]
    wire = ANTHROPIC.encode_request(messages, target=CLAUDE)
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    assert wire["messages"][2]["content"][0]["content"][1] == block
    assert wire["messages"][2]["content"][1] == block
    items = OPENAI_RESPONSES.encode_request(messages, target=OPENAI)["input"]
    shown = {"type": "input_image", "image_url": PNG, "detail": "high"}
    assert items[2]["output"][1] == shown
    assert items[3]["content"] == [shown]
    chat = OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"]
    assert chat[2]["content"][1]["text"] == "[image: shown in the next message]"
    assert chat[3] == {"role": "user", "content": [{"type": "text", "text": "[From the result of c1:]"}, image]}
    assert chat_violations({"model": "m", "messages": chat}) == []


def test_files_and_sound() -> None:
    """A PDF and a text file become documents; what a model can't take is named, never silently dropped."""
    pdf = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}}
    txt = {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}}
    ref = {"type": "file", "file": {"file_id": "file-9"}}
    sound = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    messages: list[Message] = [{"role": "user", "content": [pdf, txt, ref, sound]}]
    blocks = ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][0]["content"]
    assert [block["type"] for block in blocks] == ["document", "document", "text", "text"]
    assert blocks[1]["source"] == {"type": "text", "media_type": "text/plain", "data": "hi"}
    assert "file-9" in blocks[2]["text"]
    assert "audio" in blocks[3]["text"]
    assert OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"][0] is messages[0]
    parts = OPENAI_RESPONSES.encode_request(messages, target=OPENAI)["input"][0]["content"]
    assert [part["type"] for part in parts] == ["input_file", "input_file", "input_file", "input_audio"]


def test_unknown_parts() -> None:
    """A compatible endpoint gets them as they are, the vendors' own get them as text: nothing is lost."""
    part = {"type": "video_url", "video_url": {"url": "https://example.com/v.mp4"}}
    messages: list[Message] = [{"role": "user", "content": [part]}]
    assert OPENAI_CHAT.encode_request(messages, target=LOCAL)["messages"][0]["content"] == [part]
    said = OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"][0]["content"][0]
    assert json.loads(said["text"]) == part
    block = ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][0]["content"][0]
    assert json.loads(block["text"]) == part


def test_a_failed_result_says_so_where_it_can() -> None:
    """`is_error` is Anthropic's; other dialects never see the key."""
    messages = group("c1")
    messages[-1]["is_error"] = True
    assert ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][2]["content"][0]["is_error"] is True
    assert "is_error" not in json.dumps(OPENAI_CHAT.encode_request(messages, target=OPENAI))
    decoded = ANTHROPIC.decode_request(ANTHROPIC.encode_request(messages, target=CLAUDE))
    assert decoded.messages[-1]["is_error"] is True


def test_refusals() -> None:
    """A refusal is text to the others, and itself where it came from."""
    messages: list[Message] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "refusal": "I can't help with that."},
        {"role": "user", "content": "y"},
    ]
    blocks = ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][1]["content"]
    assert blocks == [{"type": "text", "text": "I can't help with that."}]
    assert OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"][1] is messages[1]
    wire = {"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [
        {"type": "refusal", "refusal": "No."}]}]}  # fmt: skip
    reply = OPENAI_RESPONSES.decode_reply(wire, OPENAI).message
    assert reply["refusal"] == "No."
    again = OPENAI_RESPONSES.encode_request([messages[0], reply, messages[2]], target=OPENAI)["input"][1]
    assert again["content"] == [{"type": "refusal", "refusal": "No."}]


def test_spoken_answers() -> None:
    """OpenAI gets its own recording by id, everybody else the transcript."""
    said: Message = {"role": "assistant", "content": None, "audio": {"id": "a1", "data": "aGk=", "transcript": "Hello"}}
    messages = [{"role": "user", "content": "x"}, said, {"role": "user", "content": "y"}]
    assert OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"][1]["audio"] == {"id": "a1"}
    assert OPENAI_CHAT.encode_request(messages, target=LOCAL)["messages"][1] == {
        "role": "assistant",
        "content": "Hello",
    }
    assert ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][1]["content"][0]["text"] == "Hello"


# --- instructions and order ---------------------------------------------------------------------------------------


def test_instructions() -> None:
    """Leading ones stand apart; a later one stays in its place, as text of the user's turn or by its own role."""
    messages: list[Message] = [
        {"role": "system", "content": "One"},
        {"role": "developer", "content": "Two"},
        {"role": "user", "content": "x"},
        {"role": "developer", "content": "Three"},
        {"role": "assistant", "content": "y"},
        {"role": "user", "content": "z"},
    ]
    wire = ANTHROPIC.encode_request(messages, target=CLAUDE)
    assert [block["text"] for block in wire["system"]] == ["One", "Two"]
    assert wire["messages"][0]["content"][1]["text"] == "<system-message>\nThree\n</system-message>"
    kept = ANTHROPIC.encode_request(messages, target=CLAUDE, options={"late_system": "system"})
    assert [turn["role"] for turn in kept["messages"]] == ["user", "system", "assistant", "user"]
    assert anthropic_violations(kept) == []
    roles = [message["role"] for message in OPENAI_CHAT.encode_request(messages, target=LOCAL)["messages"]]
    assert roles == ["system", "system", "user", "system", "assistant", "user"]
    assert OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"][1]["role"] == "developer"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "only"}],
        [{"role": "assistant", "content": "first"}, {"role": "user", "content": "x"}],
        [{"role": "user", "content": "  "}, {"role": "assistant", "content": ""}, {"role": "user", "content": "x"}],
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "prefill "}],
    ],
    ids=["nothing", "system only", "assistant first", "empty turns", "prefill"],
)
def test_anthropic_always_has_a_valid_order(messages: list[Message]) -> None:
    """The first turn is the user's, turns alternate, none is empty, a prefill ends in a letter."""
    assert anthropic_violations(ANTHROPIC.encode_request(messages, target=CLAUDE)) == []


def test_parallel_results_stand_together() -> None:
    """All results of a turn and what the user said after them are one user turn, results first."""
    messages = [*group("c1", "c2"), {"role": "user", "content": "and?"}]
    last = ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][2]["content"]
    assert [block["type"] for block in last] == ["tool_result", "tool_result", "text"]


# --- tools, options, state ------------------------------------------------------------------------------------------


def test_tools_in_all_forms() -> None:
    """Chat, bare, Anthropic's and free-text tools reach each dialect; a vendor's own kind passes through."""
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": "a", "parameters": {"type": "object"}, "strict": True}},
        {"name": "b", "description": "B", "parameters": {"properties": {"x": {}}}},
        {"name": "c", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
        {"type": "custom", "custom": {"name": "d"}},
    ]
    ask: list[Message] = [{"role": "user", "content": "x"}]
    wire = ANTHROPIC.encode_request(ask, [*tools, {"type": "web_search_20260318", "name": "web_search"}], target=CLAUDE)
    assert anthropic_violations(wire) == []
    assert wire["tools"][4] == {"type": "web_search_20260318", "name": "web_search"}
    chat = OPENAI_CHAT.encode_request(ask, tools, target=OPENAI)
    assert chat_violations(chat) == []
    assert chat["tools"][0] is tools[0]
    answers = OPENAI_RESPONSES.encode_request(ask, tools, target=OPENAI)
    assert responses_violations(answers) == []
    assert [tool["strict"] for tool in answers["tools"][:3]] == [True, False, False]
    assert answers["tools"][3] == {"type": "custom", "name": "d"}


def test_options_by_their_chat_names() -> None:
    """Choice, stops, format and effort are translated; what has no counterpart is left out."""
    options = {
        "tool_choice": {"type": "function", "function": {"name": "ls"}},
        "parallel_tool_calls": False,
        "stop": "END",
        "user": "u1",
        "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        "prompt_cache_key": "k",
        "temperature": 0.5,
    }
    ask: list[Message] = [{"role": "user", "content": "x"}]
    wire = ANTHROPIC.encode_request(ask, target=CLAUDE, options=options)
    assert wire["tool_choice"] == {"type": "tool", "name": "ls", "disable_parallel_tool_use": True}
    assert wire["stop_sequences"] == ["END"]
    assert wire["metadata"] == {"user_id": "u1"}
    assert wire["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "high"}
    assert wire["temperature"] == 0.5
    assert anthropic_violations(wire) == []
    answers = OPENAI_RESPONSES.encode_request(ask, target=OPENAI, options=options)
    assert answers["tool_choice"] == {"type": "function", "name": "ls"}
    assert answers["reasoning"] == {"effort": "high"}
    assert answers["text"]["format"]["name"] == "n"
    assert answers["prompt_cache_key"] == "k"
    assert responses_violations(answers) == []


def test_free_text_calls() -> None:
    """A call to a free-text tool keeps its kind in the dialects that have it."""
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** raw"}}
    messages: list[Message] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]
    items = OPENAI_RESPONSES.encode_request(messages, target=OPENAI)["input"]
    assert [item["type"] for item in items[1:]] == ["custom_tool_call", "custom_tool_call_output"]
    assert OPENAI_RESPONSES.decode_request({"input": items}).messages == messages
    assert OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"][1] is messages[1]
    block = ANTHROPIC.encode_request(messages, target=CLAUDE)["messages"][1]["content"][0]
    assert block["input"] == {RAW_ARGUMENTS: "*** raw"}


def test_reasoning_without_its_content_is_not_sent() -> None:
    """A reasoning item that only the provider's memory could complete is left out, with nothing dangling."""
    output = [{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Hi", "annotations": []}]}]  # fmt: skip
    reply = OPENAI_RESPONSES.decode_reply({"status": "completed", "output": output}, OPENAI).message
    wire = OPENAI_RESPONSES.encode_request([{"role": "user", "content": "x"}, reply], target=OPENAI)
    assert [item.get("type") for item in wire["input"]] == [None, "message"]
    assert responses_violations(wire) == []


def test_dropping_state_by_name() -> None:
    """Only the named states go; the messages stay."""
    kept: Message = {"role": "assistant", "content": "a", STATE: {"dialect": "anthropic"}}
    gone: Message = {"role": "assistant", "content": "b", STATE: {"dialect": "openai_chat"}}
    left = drop_state([kept, gone], state_keys([gone]))
    assert left == [kept, {"role": "assistant", "content": "b"}]
    assert left[0] is kept


@given(messages=conversations(open_calls=False))
def test_marks_never_reach_dialects_without_them(messages: list[Message]) -> None:
    """The same request with and without marks, to the byte, where marks mean nothing."""
    for codec in (OPENAI_CHAT, OPENAI_RESPONSES):
        plain = codec.encode_request(messages, target=OPENAI)
        for layout in (system_and_3, anchored):
            assert _texts(codec.encode_request(layout(messages), target=OPENAI)) == _texts(plain)


def _texts(wire: dict[str, Any]) -> dict[str, Any]:
    """A request in which a content of one text is that text: marking has to write it as a list."""

    def short(item: dict[str, Any]) -> dict[str, Any]:
        content = item.get("content")
        if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
            return {**item, "content": content[0]["text"]}
        return item

    said = wire.get("messages") or wire["input"]
    if "instructions" in wire:
        said = [{"role": "system", "content": wire["instructions"]}, *said]
    return {"model": wire["model"], "said": [short(item) for item in said]}


@given(messages=conversations(open_calls=False))
def test_chat_messages_that_need_no_change_are_the_same_objects(messages: list[Message]) -> None:
    """Nothing is re-encoded that doesn't have to be."""
    wire = OPENAI_CHAT.encode_request(messages, target=OPENAI)["messages"]
    for message in messages:
        if isinstance(message["content"], str) and message["role"] in ("system", "user", "developer"):
            assert any(sent is message for sent in wire)
