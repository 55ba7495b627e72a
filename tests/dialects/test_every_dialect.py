"""Promises that all three dialects keep, on generated conversations, valid and nasty."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.dialects import (
    ANTHROPIC,
    DIALECTS,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    STATE,
    Dialect,
    StreamIncomplete,
    Target,
)
from leporello.messages import Message, role_of
from leporello.turns import validate
from tests.support.checks import cut_points
from tests.support.strategies import conversations, nasty_conversations
from tests.support.wire import VIOLATIONS

TARGETS = {
    ANTHROPIC: Target("anthropic", "claude-sonnet-5"),
    OPENAI_CHAT: Target("openai", "gpt-6-sol", native=True),
    OPENAI_RESPONSES: Target("openai", "gpt-6-sol", native=True),
}
EVERY_DIALECT = pytest.mark.parametrize("dialect", list(DIALECTS.values()), ids=str)
TOOLS = [
    {"type": "function", "function": {"name": "read_file", "description": "Read", "parameters": {"type": "object"}}},
    {"name": "lcm_grep", "description": "Search", "parameters": {"type": "object", "properties": {}}},
    {"name": "bare"},
]


def encode(dialect: Dialect, messages: list[Message], **kwargs: Any) -> dict[str, Any]:
    """The wire request of a dialect."""
    return dialect.encode_request(messages, target=TARGETS[dialect], **kwargs)


def flat(dialect: Dialect, wire: dict[str, Any]) -> list[Any]:
    """A request's content as one list, without cache marks: what a cached prefix is made of."""
    if dialect is OPENAI_CHAT:
        return list(wire["messages"])
    if dialect is OPENAI_RESPONSES:
        return [wire.get("instructions"), *wire["input"]]
    blocks: list[Any] = [wire.get("system")]
    for turn in wire["messages"]:
        blocks.extend((turn["role"], block) for block in turn["content"])
    return blocks


@EVERY_DIALECT
@given(messages=conversations(open_calls=False))
def test_valid_conversations_are_accepted(dialect: Dialect, messages: list[Message]) -> None:
    """What is valid in the chat form is valid on every wire, by the rules of the real server."""
    wire = encode(dialect, messages, tools=TOOLS, max_tokens=100)
    assert VIOLATIONS[dialect](wire) == []


@EVERY_DIALECT
@given(messages=nasty_conversations())
def test_nothing_makes_a_codec_fail(dialect: Dialect, messages: list[Message]) -> None:
    """Whatever history there is, there is a request, it is JSON, and the history is as it was."""
    before = copy.deepcopy(messages)
    wire = encode(dialect, messages)
    json.dumps(wire)
    assert messages == before


@EVERY_DIALECT
@given(messages=nasty_conversations())
def test_whatever_pairs_is_accepted(dialect: Dialect, messages: list[Message]) -> None:
    """Odd contents, ids and arguments never make a request invalid: only pairing and order are the caller's."""
    if validate(messages) or not messages:
        faults = {violation.fault.value for violation in validate(messages)}
        if faults - {"bad_arguments", "neighbours", "late_system"} or not messages:
            return
    if any(role_of(message) == "function" for message in messages):
        return
    problems = VIOLATIONS[dialect](encode(dialect, messages))
    assert [problem for problem in problems if "tool" not in problem] == []


@EVERY_DIALECT
@given(messages=conversations(open_calls=False), data=st.data())
def test_the_prefix_never_changes(dialect: Dialect, messages: list[Message], data: st.DataObject) -> None:
    """A conversation that grew begins with exactly what was sent before (promise 15 on the wire)."""
    cut = data.draw(st.sampled_from([point for point in cut_points(messages) if point] or [len(messages)]))
    if role_of(messages[cut - 1]) not in ("user", "tool"):
        # A request ends with the user or with results; a prefill would be trimmed.
        return
    short, long = (flat(dialect, encode(dialect, part)) for part in (messages[:cut], messages))
    assert long[: len(short)] == short


@EVERY_DIALECT
@pytest.mark.parametrize("words", ["Done.\n", "Done. "])
def test_a_message_that_shows_nothing_changes_no_prefix(dialect: Dialect, words: str) -> None:
    """An answer behind which the user sent nothing visible is written in every request as in the first."""
    sent = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": words}, {"role": "user", "content": ""}]
    grown = [*sent, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "More"}]
    short, long = (flat(dialect, encode(dialect, part)) for part in (sent, grown))
    assert long[: len(short)] == short


@EVERY_DIALECT
@given(messages=conversations(open_calls=False))
def test_a_request_reads_back(dialect: Dialect, messages: list[Message]) -> None:
    """Decoding a request and encoding it again gives the same request: nothing is lost, nothing drifts."""
    wire = encode(dialect, messages, tools=TOOLS, max_tokens=100)
    decoded = dialect.decode_request(wire, TARGETS[dialect].provider)
    assert len(decoded.origins) == len(decoded.messages)
    again = dialect.encode_request(
        decoded.messages, decoded.tools, target=TARGETS[dialect], max_tokens=decoded.max_tokens, options=decoded.rest
    )
    assert again == wire


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
ENCRYPTED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2lnbmVk"}
CHAT_REPLY = {
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Look.",
                "reasoning_content": "c2lnbmVk",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "ls", "arguments": "{}"},
                        "extra_content": {"google": {"thought_signature": "c2lnbmVk"}},
                    }
                ],
            },
        }
    ]
}
REPLIES = {
    ANTHROPIC: {
        "content": [
            SIGNED,
            {"type": "text", "text": "Look."},
            {"type": "redacted_thinking", "data": "c2lnbmVk"},
            {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}, "caller": {"type": "direct"}},
            {"type": "text", "text": "And more."},
        ],
        "stop_reason": "tool_use",
    },
    OPENAI_CHAT: CHAT_REPLY,
    OPENAI_RESPONSES: {
        "status": "completed",
        "output": [
            ENCRYPTED,
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "Look.", "annotations": []}],
            },
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "c2lnbmVk"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "ls", "arguments": "{}"},
        ],
    },
}


def history(dialect: Dialect) -> list[Message]:
    """A conversation in which the model thought before it called a tool."""
    reply = dialect.decode_reply(REPLIES[dialect], TARGETS[dialect]).message
    call = reply["tool_calls"][0]["id"]
    return [{"role": "user", "content": "Go"}, reply, {"role": "tool", "tool_call_id": call, "content": "a.py"}]


def test_thinking_goes_back_unchanged_and_in_its_place() -> None:
    """Signed blocks, their order among texts and calls, and fields of a call are as they came."""
    wire = encode(ANTHROPIC, history(ANTHROPIC))
    assert wire["messages"][1]["content"] == REPLIES[ANTHROPIC]["content"]
    items = encode(OPENAI_RESPONSES, history(OPENAI_RESPONSES))["input"]
    assert [item["type"] for item in items[1:5]] == ["reasoning", "message", "reasoning", "function_call"]
    assert items[1] == ENCRYPTED
    assert items[2]["phase"] == "commentary"
    assert "id" not in items[2]
    said = encode(OPENAI_CHAT, history(OPENAI_CHAT))["messages"][1]
    assert said["reasoning_content"] == "c2lnbmVk"
    assert said["tool_calls"][0]["extra_content"]


def others(dialect: Dialect) -> Iterator[tuple[Dialect, Target]]:
    """Every receiver but the one that wrote the state."""
    for other in DIALECTS.values():
        if other is not dialect:
            yield other, TARGETS[other]
            yield other, TARGETS[dialect]
    yield dialect, Target("openrouter", TARGETS[dialect].model)
    yield dialect, Target(TARGETS[dialect].provider, "qwen3-coder")


@EVERY_DIALECT
def test_nobody_else_sees_it(dialect: Dialect) -> None:
    """Another provider, family or dialect gets neither the state nor a trace of it, and accepts the request."""
    for other, target in others(dialect):
        wire = other.encode_request(history(dialect), target=target)
        assert "c2lnbmVk" not in json.dumps(wire)
        assert STATE not in json.dumps(wire)
        assert VIOLATIONS[other](wire) == []


@EVERY_DIALECT
def test_state_of_a_changed_message_is_gone_whole(dialect: Dialect) -> None:
    """When something shortened the turn since, its signed blocks are not sent at all."""
    messages = history(dialect)
    messages[1] = {**messages[1], "content": "cut"}
    wire = encode(dialect, messages)
    assert "c2lnbmVk" not in json.dumps(wire)
    assert VIOLATIONS[dialect](wire) == []


def assistants() -> st.SearchStrategy[Message]:
    """Answers as models give them: text, calls, or both."""
    words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(lambda text: text.strip() == text)
    values = st.dictionaries(st.text(max_size=5), st.none() | st.integers(-9, 9) | words, max_size=3)
    call = st.builds(lambda name, value: (name, json.dumps(value)), st.sampled_from(["ls", "read"]), values)

    def build(text: str | None, calls: list[tuple[str, str]]) -> Message:
        message: Message = {"role": "assistant", "content": text if text or calls else "ok"}
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{k}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for k, (name, arguments) in enumerate(calls)
            ]
        return message

    return st.builds(build, st.none() | words, st.lists(call, max_size=4))


def finish_of(message: Message) -> str:
    """How an answer of this kind ends."""
    return "tool_calls" if message.get("tool_calls") else "stop"


def plain(message: Message) -> Message:
    """A message without item ids, and with its arguments as values."""
    calls = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in message.get("tool_calls", ())
    ]
    return {
        **{key: value for key, value in message.items() if key != STATE},
        **({"tool_calls": calls} if calls else {}),
    }


@EVERY_DIALECT
@given(message=assistants())
def test_an_answer_arrives_as_it_was(dialect: Dialect, message: Message) -> None:
    """Whole or as a stream, an answer decodes to the message that was encoded."""
    target = TARGETS[dialect]
    body = dialect.encode_reply(message, target=target, finish_reason=finish_of(message))
    whole = dialect.decode_reply(body, target)
    assembler = dialect.assembler()
    text = "".join(assembler.feed(json.loads(json.dumps(event))) for event in dialect.reply_events(body))
    streamed = dialect.decode_reply(assembler.reply(), target)
    assert plain(whole.message) == plain(streamed.message) == plain(message)
    assert whole.finish_reason == streamed.finish_reason == finish_of(message)
    assert text == (message["content"] or "")


@EVERY_DIALECT
@given(message=assistants(), data=st.data())
def test_a_cut_stream_is_an_error(dialect: Dialect, message: Message, data: st.DataObject) -> None:
    """Cut anywhere before its end, a stream is never taken for a whole answer, least of all with half a call."""
    target = TARGETS[dialect]
    events = list(dialect.reply_events(dialect.encode_reply(message, target=target, finish_reason=finish_of(message))))
    # The usage chunk of a chat stream comes after the answer's end.
    end = next(k for k, event in enumerate(events) if _is_end(event))
    assembler = dialect.assembler()
    for event in events[: data.draw(st.integers(0, end))]:
        assembler.feed(event)
    with pytest.raises(StreamIncomplete):
        assembler.reply()


def _is_end(event: dict[str, Any]) -> bool:
    choices = event.get("choices")
    if choices is not None:
        return bool(choices and choices[0]["finish_reason"])
    return event["type"] in ("message_stop", "response.completed")


@EVERY_DIALECT
def test_half_a_call_at_the_output_limit_is_no_call(dialect: Dialect) -> None:
    """A call whose arguments the output limit cut is left out; the reason says `length`."""
    target = TARGETS[dialect]
    message = {
        "role": "assistant",
        "content": "Writing.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "w", "arguments": '{"text": "abcdefgh"}'}}
        ],
    }
    body = dialect.encode_reply(message, target=target, finish_reason="length")
    events = [json.loads(json.dumps(event).replace('defgh\\"}', "")) for event in dialect.reply_events(body)]
    events = [event for event in events if not _is_tail(event)]
    assembler = dialect.assembler()
    for event in events:
        assembler.feed(event)
    reply = dialect.decode_reply(assembler.reply(), target)
    assert reply.finish_reason == "length"
    assert "tool_calls" not in reply.message
    assert reply.message["content"] == "Writing."


def _is_tail(event: dict[str, Any]) -> bool:
    """The last piece of the call's arguments."""
    delta = event.get("delta")
    if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        return bool(delta["partial_json"].endswith("}"))
    calls = [call for choice in event.get("choices", ()) for call in choice["delta"].get("tool_calls", ())]
    return any(call.get("function", {}).get("arguments", "").endswith("}") for call in calls)
