"""Several answers of a model merged into one: streamed or whole, wherever a stream is cut, the client gets the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from leporello.dialects.base import EventReader
from leporello.dialects.dialect import ReplyMerge, summed

Part = tuple[str, str]
HIDDEN = frozenset(("lcm_grep",))
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
words = st.text("abü\n ", min_size=1, max_size=40).filter(str.strip)
texts = st.tuples(st.just("text"), words)
thoughts = st.tuples(st.just("think"), words)
own = st.tuples(st.just("read"), words)
ours = st.tuples(st.just("lcm_grep"), words)
inner = st.tuples(st.lists(thoughts | texts, max_size=3), st.lists(ours, min_size=1, max_size=2)).map(
    lambda pair: [*pair[0], *pair[1]]
)
last = st.lists(thoughts | texts, max_size=3).flatmap(
    lambda said: st.lists(own | ours, max_size=3).map(lambda calls: [*said, *calls])
)
answers = st.tuples(st.lists(inner, max_size=3), last).map(lambda pair: [*pair[0], pair[1]])


def merge_of(dialect: Dialect) -> ReplyMerge:
    """The merge for a request whose answer the provider does not keep."""
    return dialect.recall.merge(HIDDEN, {"store": False})


def reply(dialect: Dialect, number: int, parts: Sequence[Part]) -> dict[str, Any]:
    """One answer of the model's server."""
    calls = any(kind in ("read", "lcm_grep") for kind, _ in parts)
    if dialect is ANTHROPIC:
        content = [_block(number, place, part) for place, part in enumerate(parts)]
        usage = {"input_tokens": 10, "output_tokens": 3}
        stop = "tool_use" if calls else "end_turn"
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m"}
        return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    if dialect is OPENAI_RESPONSES:
        output = [_item(place, part) for place, part in enumerate(parts)]
        usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
        return {"id": f"resp_{number}", "created_at": number, "status": "completed", "output": output, "usage": usage}
    message: dict[str, Any] = {"role": "assistant"}
    message["content"] = "".join(text for kind, text in parts if kind == "text") or None
    message["reasoning_content"] = "".join(text for kind, text in parts if kind == "think") or None
    found = [_call(number, place, part) for place, part in enumerate(parts) if part[0] in ("read", "lcm_grep")]
    if found:
        message["tool_calls"] = found
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    return {"id": f"chatcmpl-{number}", "created": number, "model": "m", "choices": [choice], "usage": usage}


def _block(number: int, place: int, part: Part) -> dict[str, Any]:
    kind, text = part
    if kind == "text":
        return {"type": "text", "text": text}
    if kind == "think":
        return {"type": "thinking", "thinking": text, "signature": f"sig-{number}-{place}"}
    return {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": kind, "input": {"query": text}}


def _item(place: int, part: Part) -> dict[str, Any]:
    """Items are numbered anew in each answer, as some servers do."""
    kind, text = part
    if kind == "text":
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {"type": "message", "id": f"msg_{place}", "role": "assistant", "content": content, "status": "completed"}
    if kind == "think":
        return {"type": "reasoning", "id": f"rs_{place}", "summary": [], "encrypted_content": text}
    arguments = json.dumps({"query": text})
    return {"type": "function_call", "id": f"fc_{place}", "call_id": f"c{place}", "name": kind, "arguments": arguments}


def _call(number: int, place: int, part: Part) -> dict[str, Any]:
    function = {"name": part[0], "arguments": json.dumps({"query": part[1]})}
    return {"id": f"call_{number}_{place}", "type": "function", "function": function}


def stream(dialect: Dialect, whole: dict[str, Any]) -> bytes:
    """The same answer as a stream."""
    data = b""
    for event in dialect.reply_events(whole):
        name = b"" if dialect is OPENAI_CHAT else f"event: {event['type']}\n".encode()
        data += name + b"data: " + json.dumps(event).encode() + b"\n\n"
    return data + (b"data: [DONE]\n\n" if dialect is OPENAI_CHAT else b"")


def merged(dialect: Dialect, replies: Sequence[dict[str, Any]], cut: int | None = None) -> bytes:
    """What a client reads; each stream is cut in two at the same place."""
    merge = merge_of(dialect)
    data = b""
    for whole in replies:
        reader, raw = EventReader(), stream(dialect, whole)
        for piece in (raw[:cut], raw[cut:]) if cut is not None else (raw,):
            data += b"".join(map(merge.feed, reader.feed(piece)))
        merge.turn()
    return data + merge.ending()


def read(dialect: Dialect, data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer a client puts together, and its events."""
    assembler = dialect.assembler()
    events = [json.loads(event.data) for event in EventReader().feed(data) if event.data != b"[DONE]"]
    for event in events:
        assembler.feed(event)
    return assembler.reply(), events


@EVERY_DIALECT
@given(rounds=answers)
def test_streamed_or_whole(dialect: Dialect, rounds: list[list[Part]]) -> None:
    """Both ways say the same; nothing of ours is left, nothing of the client's is lost, what was used is added."""
    replies = [reply(dialect, number, parts) for number, parts in enumerate(rounds)]
    merge = merge_of(dialect)
    for whole in replies:
        merge.take(whole)
        merge.turn()
    expected = merge.whole()
    data = merged(dialect, replies)
    found, events = read(dialect, data)
    assert b"lcm_grep" not in data
    assert "lcm_grep" not in json.dumps(expected)
    assert data.count(b'"read"') >= sum(kind == "read" for kind, _ in rounds[-1])
    assert found["usage"] == expected["usage"] == summed(whole["usage"] for whole in replies)
    CHECKS[dialect](expected, found, events)


def _same_chat(expected: dict[str, Any], found: dict[str, Any], events: list[dict[str, Any]]) -> None:
    said, streamed = expected["choices"][0], found["choices"][0]
    assert streamed["finish_reason"] == said["finish_reason"]
    plain = {key: value for key, value in said["message"].items() if value is not None}
    assert {key: value for key, value in streamed["message"].items() if value is not None} == plain
    assert {event["id"] for event in events} == {expected["id"]}
    assert sum("role" in choice["delta"] for event in events for choice in event["choices"]) == 1
    assert [choice["finish_reason"] for event in events for choice in event["choices"]][:-1].count(None) == (
        sum(bool(event["choices"]) for event in events) - 1
    )


def _same_claude(expected: dict[str, Any], found: dict[str, Any], events: list[dict[str, Any]]) -> None:
    blocks = [{key: value for key, value in block.items() if key != "input_json"} for block in found["content"]]
    assert blocks == expected["content"]
    assert (found["id"], found["stop_reason"]) == (expected["id"], expected["stop_reason"])
    opened = [event["index"] for event in events if event["type"] == "content_block_start"]
    assert opened == list(range(len(blocks)))
    assert [event["type"] for event in events].count("message_start") == 1
    assert [event["type"] for event in events][-2:] == ["message_delta", "message_stop"]


def _same_responses(expected: dict[str, Any], found: dict[str, Any], events: list[dict[str, Any]]) -> None:
    assert found["output"] == expected["output"]
    done = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["item"] for event in done] == expected["output"]
    assert [event["output_index"] for event in done] == list(range(len(done)))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    ids = [item["id"] for item in expected["output"]]
    assert len(set(ids)) == len(ids)


CHECKS: dict[Dialect, Callable[[Any, Any, Any], None]] = {
    OPENAI_CHAT: _same_chat,
    OPENAI_RESPONSES: _same_responses,
    ANTHROPIC: _same_claude,
}


@EVERY_DIALECT
def test_cut_at_every_byte(dialect: Dialect) -> None:
    """Wherever the streams of two rounds are cut, the client reads the same bytes."""
    first: list[Part] = [("think", "hm"), ("text", "Grüße"), ("lcm_grep", "port")]
    second: list[Part] = [("think", "ah"), ("text", "Es ist 世界."), ("read", "a"), ("lcm_grep", "b"), ("read", "c")]
    replies = [reply(dialect, number, parts) for number, parts in enumerate((first, second))]
    expected = merged(dialect, replies)
    longest = max(len(stream(dialect, whole)) for whole in replies)
    for cut in range(1, longest):
        assert merged(dialect, replies, cut) == expected


@EVERY_DIALECT
def test_nothing_to_merge(dialect: Dialect) -> None:
    """An answer without calls of ours reaches the client as it came: the same events, in the same order."""
    whole = reply(dialect, 0, [("think", "hm"), ("text", "Hello, you."), ("read", "a")])
    raw = stream(dialect, whole)
    given = [json.loads(event.data) for event in EventReader().feed(raw) if event.data != b"[DONE]"]
    assert read(dialect, merged(dialect, [whole]))[1] == given
