"""A request that repeats an earlier one is read from where they part, and nothing about it can be told from that."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.config import Home, load_settings
from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT, OPENAI_RESPONSES, Dialect
from leporello.dialects.dialect import Body
from leporello.fingerprint import fingerprints
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.auth import Client, Key
from leporello.gateway.config import Upstream
from leporello.gateway.proxy.conversations import ProxiedConversations
from leporello.gateway.proxy.request import KnownRequests, WireRequest, read_on, read_request
from leporello.gateway.proxy.rewrite import RequestRewriter, Rewrite
from leporello.store import open_store

ME = Client(Key("me", ""), "me")
START = b"start"
Items = list[dict[str, Any]]

words = st.sampled_from(["port 80", 'a "quoted" word', "naïve ünïcode 語", "\\u0041 \\ud83d\\ude00", "line\nbreak", ""])
numbers = st.sampled_from([0, 1, True, 1.0, None, 1 << 70, [], {"messages": [1]}])


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _chat(kind: int, text: str, odd: Any) -> Items:
    call = {
        "id": f"c{kind}",
        "type": "function",
        "function": {"name": "read", "arguments": orjson.dumps(text).decode()},
    }
    return [
        [_said("user", text)],
        [_said("assistant", text)],
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{kind}", "content": text},
        ],
        [_said("system", text)],
        [{"role": "assistant", "content": text, "reasoning_content": "thought", "odd": odd}],
        [{"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}],
    ][kind]


def _anthropic(kind: int, text: str, odd: Any) -> Items:
    block = {"type": "text", "text": text}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [block]}
    return [
        [_said("user", text)],
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": text, "signature": "s"}, block]}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"odd": odd}}]}],
        [{"role": "user", "content": [result, {**result, "tool_use_id": "t2"}, block]}],
        [{"role": "user", "content": [{**block, "cache_control": {"type": "ephemeral"}}]}],
        [_said("system", text)],
    ][kind]


def _responses(kind: int, text: str, odd: Any) -> Items:
    return [
        [_said("user", text)],
        [{"type": "reasoning", "id": "r", "summary": [], "odd": odd}],
        [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}],
        [{"type": "function_call", "call_id": "f", "name": "read", "arguments": "{}"}],
        [{"type": "function_call_output", "call_id": "f", "output": text}],
        [_said("developer", text)],
    ][kind]


MAKERS: dict[Dialect, Callable[[int, str, Any], Items]] = {
    OPENAI_CHAT: _chat,
    ANTHROPIC: _anthropic,
    OPENAI_RESPONSES: _responses,
}


def test_every_dialect_is_tried() -> None:
    assert set(MAKERS) == set(DIALECTS.values())


@st.composite
def histories(draw: st.DrawFn, dialect: Dialect) -> Items:
    steps = draw(st.lists(st.tuples(st.integers(0, 5), words, numbers), min_size=1, max_size=8))
    return [item for step in steps for item in MAKERS[dialect](*step)]


@st.composite
def around(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields before and behind the list."""
    fields = {
        "model": draw(st.sampled_from(["gpt-4o", "gpt-4o", "claude-sonnet-5", "", None])),
        "system": draw(words),
        "instructions": draw(words),
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"odd": draw(numbers)}}}],
        "metadata": draw(numbers),
        "previous_response_id": draw(st.sampled_from([None, None, None, "r1"])),
    }
    names = draw(st.permutations(sorted(fields)))
    cut = draw(st.integers(0, len(names)))
    return {name: fields[name] for name in names[:cut]}, {name: fields[name] for name in names[cut:]}


def _text(fields: dict[str, Any], *, spaced: bool) -> bytes:
    # The standard library's JSON has white space, escapes, and numbers beyond 64 bits.
    return json.dumps(fields, ensure_ascii=spaced, separators=None if spaced else (",", ":")).encode()


@st.composite
def pairs(draw: st.DrawFn, dialect: Dialect) -> tuple[bytes, bytes]:
    """A body, and one that came after it: longer, shorter, edited, reordered, damaged."""
    before, behind = draw(around())
    items = draw(histories(dialect))
    spaced, key = draw(st.booleans()), dialect.fields.conversation
    old = _text({**before, key: items, **behind}, spaced=spaced)
    edit = draw(st.sampled_from(EDITS))
    if edit is _flip_byte or edit is _repeat_field:
        later = [*items, *draw(histories(dialect))]
        return old, edit(draw, _text({**before, key: later, **behind}, spaced=spaced), key)
    changed = edit(draw, dialect, items)
    if draw(st.integers(0, 3)) == 0:
        before, behind = draw(around())
    return old, _text({**before, key: changed, **behind}, spaced=spaced)


def _longer(draw: st.DrawFn, dialect: Dialect, items: Items) -> Items:
    return [*items, *draw(histories(dialect))]


def _shorter(draw: st.DrawFn, dialect: Dialect, items: Items) -> Items:
    return [*items[: draw(st.integers(0, len(items)))], *draw(histories(dialect))]


def _edited(draw: st.DrawFn, dialect: Dialect, items: Items) -> Items:
    place = draw(st.integers(0, len(items) - 1))
    return [*items[:place], *draw(histories(dialect)), *items[place + 1 :]]


def _other_order(draw: st.DrawFn, dialect: Dialect, items: Items) -> Items:
    return [dict(reversed(item.items())) if draw(st.booleans()) else item for item in items]


def _odd_item(draw: st.DrawFn, dialect: Dialect, items: Items) -> Items:
    return [*items, draw(st.sampled_from([7, None, "text", {}, {"type": "item_reference", "id": "i"}]))]


def _flip_byte(draw: st.DrawFn, data: bytes, key: str) -> bytes:
    place = draw(st.integers(0, len(data) - 1))
    return data[:place] + bytes([draw(st.integers(0, 255))]) + data[place + 1 :]


def _repeat_field(draw: st.DrawFn, data: bytes, key: str) -> bytes:
    """A name a second time, the list's own too, plainly or with an escape."""
    name = draw(st.sampled_from([key, "model", "metadata"]))
    written = draw(st.sampled_from([name, f"\\u{ord(name[0]):04x}{name[1:]}"]))
    value = draw(st.sampled_from(['[{"role":"user","content":"x"}]', '"gpt-4o"', "7"]))
    return data[:-1] + f',"{written}":{value}}}'.encode()


EDITS: list[Callable[..., Any]] = [_longer, _shorter, _edited, _other_order, _odd_item, _flip_byte, _repeat_field]


def said(request: WireRequest) -> bytes:
    """What a request says, with 1, 1.0 and true told apart."""
    fields = sorted(request.fields.items())
    return repr([fields, request.messages, request.spans, request.system, request.tools, request.stateful]).encode()


def whole(dialect: Dialect, data: bytes) -> WireRequest | None:
    try:
        return read_request(dialect, data)
    except RequestRefused:
        return None


def assert_alike(found: WireRequest, data: bytes) -> None:
    expected = read_request(found.dialect, data)
    assert said(found) == said(expected)
    assert found.split(data) == Body.read(data, found.dialect.fields.conversation) == expected.split(data)
    assert list(found.fingerprints(START)) == fingerprints(START, expected.messages)


@pytest.mark.parametrize("dialect", MAKERS, ids=str)
@given(data=st.data())
@settings(max_examples=300)
def test_a_request_read_on_says_what_it_says_read_whole(dialect: Dialect, data: st.DataObject) -> None:
    first, second = data.draw(pairs(dialect))
    known = whole(dialect, first)
    if known is None or not known.messages:
        return
    known = replace(known, chain=(START, known.fingerprints(START)))
    found = read_on(known, second)
    if found is not None:
        assert_alike(found, second)
        again = read_on(found, second)
        if again is not None:
            assert_alike(again, second)


@pytest.mark.parametrize("dialect", MAKERS, ids=str)
def test_only_what_is_new_is_read(dialect: Dialect) -> None:
    """The messages of the known beginning are the same objects, time after time, whatever stands around the list."""
    items = [item for turn in range(30) for item in MAKERS[dialect](turn % 5, f"turn {turn}", None)]
    known = None
    for count in range(20, len(items)):
        body = {"model": "m", "system": "Be brief.", dialect.fields.conversation: items[:count], "stream": True}
        data = orjson.dumps(body)
        request = read_on(known, data) if known else read_request(dialect, data)
        assert request is not None
        assert_alike(request, data)
        if known:
            shared = sum(one is other for one, other in zip(known.messages, request.messages, strict=False))
            assert shared >= len(known.messages) - 3
        known = request


def test_what_follows_the_list_may_change_what_stands_in_it() -> None:
    """Another model has another state of the same words; a list that comes twice counts as it came last."""
    items = [*_chat(0, "ask", None), *_chat(4, "answer", None), *_chat(0, "ask on", None), *_chat(1, "done", None)]
    known = read_request(OPENAI_CHAT, orjson.dumps({"messages": items, "model": "qwen3-coder"}))
    other = orjson.dumps({"messages": items, "model": "deepseek-chat"})
    twice = (
        orjson.dumps({"messages": items, "model": "qwen3-coder"})[:-1]
        + b',"messages":'
        + orjson.dumps(items[:2])
        + b"}"
    )
    for data in (other, twice):
        assert said(read_request(OPENAI_CHAT, data)) != said(known)
        found = read_on(known, data)
        assert found is None or said(found) == said(read_request(OPENAI_CHAT, data))


def test_requests_are_known_again_by_client_and_forgotten_when_there_are_many() -> None:
    known = KnownRequests(most_bytes=1_500_000)
    body = partial(_large, "one")
    first = known.read(OPENAI_CHAT, body(3), b"me")
    assert known.read(OPENAI_CHAT, body(5), b"me").messages[0] is first.messages[0]
    assert known.read(OPENAI_CHAT, body(5), b"you").messages[0] is not first.messages[0], "of another client"
    for number in range(4):
        known.read(OPENAI_CHAT, _large(f"other {number}", 3), b"me")
    assert known.read(OPENAI_CHAT, body(7), b"me").messages[0] is not first.messages[0], "no memory without end"


def _large(name: str, turns: int) -> bytes:
    items = [_said("user", f"{name} says, " * 15_000), *(_said("assistant", f"{turn}") for turn in range(turns))]
    return orjson.dumps({"model": "gpt-4o", "messages": items})


@pytest.mark.parametrize("dialect", MAKERS, ids=str)
@given(data=st.data())
@settings(max_examples=5)
def test_the_rewrite_is_the_same_with_and_without_memory(
    dialect: Dialect, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two gateways get the same requests, folded on the way; one remembers, one does not."""
    key = dialect.fields.conversation
    opening = _said("user", "Keep port 8080. " + "word " * 27_000)
    bodies = []
    for first, second in data.draw(st.lists(pairs(dialect), min_size=1, max_size=2)):
        for body in (first, second):
            fields = _loaded(body)
            listed = fields.get(key)
            bodies.append(
                orjson.dumps(
                    {**fields, "model": "gpt-4o", key: [opening, *(listed if isinstance(listed, list) else [])]}
                )
            )
    remembering, forgetful = (_gateway(tmp_path_factory.mktemp(name)) for name in ("one", "two"))
    upstream = Upstream("u", "http://127.0.0.1", window=24_000)
    for body in bodies:
        ours = remembering.rewrite(remembering.read(dialect, body, ME), ME, upstream)
        theirs = forgetful.rewrite(read_request(dialect, body), ME, upstream)
        assert _sent(ours) == _sent(theirs)


def _loaded(body: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _gateway(folder: Path) -> RequestRewriter:
    home = Home(folder)
    chosen = load_settings({}, environ={}, home=home)
    return RequestRewriter(ProxiedConversations(open_store(home.store_url), chosen), chosen)


def _sent(rewrite: Rewrite) -> tuple[Any, ...]:
    return rewrite.body, rewrite.action, rewrite.turn, rewrite.decision, said(rewrite.request)
