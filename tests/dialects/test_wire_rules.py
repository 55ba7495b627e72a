"""The rules of the servers can say no: one broken request for each of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.wire import anthropic_violations, chat_violations, responses_violations

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def text(words: str = "x", **extra: Any) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words, **extra}


USE = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "out"}
GOOD: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "system": [text()],
    "tools": [{"name": "ls", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": [text()]},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [RESULT, text()]},
    ],
}


def turns(*contents: Any) -> dict[str, Any]:
    """Messages that alternate, the user first."""
    return {"messages": [{"role": ("user", "assistant")[k % 2], "content": item} for k, item in enumerate(contents)]}


ANTHROPIC: list[tuple[str, dict[str, Any], str]] = [
    ("unknown field", {"prompt_cache_key": "k"}, "Extra inputs"),
    ("no tokens", {"max_tokens": 0}, "at least 1"),
    ("no messages", {"messages": []}, "at least one message"),
    ("assistant first", {"messages": [{"role": "assistant", "content": "x"}]}, "first message"),
    ("no alternation", {"messages": [{"role": "user", "content": "x"}] * 2}, "alternate"),
    ("extra key", {"messages": [{"role": "user", "content": "x", "name": "n"}]}, "exactly role and content"),
    ("empty content", turns([]), "non-empty content"),
    ("white space", turns([text("  ")]), "non-whitespace"),
    ("wrong block", turns([USE]), "expected tags"),
    ("unknown key in block", turns([text(detail="x")]), "Extra inputs"),
    ("bad id", turns("x", [{**USE, "id": "a:b"}], [{**RESULT, "tool_use_id": "a:b"}]), "should match pattern"),
    ("id twice", turns("x", [USE], [RESULT], [USE], [RESULT]), "must be unique"),
    ("arguments no object", turns("x", [{**USE, "input": "{}"}], [RESULT]), "valid dictionary"),
    ("no result", turns("x", [USE], [text()]), "without `tool_result`"),
    ("open call", turns("x", [USE]), "without `tool_result`"),
    ("orphan", turns([RESULT]), "unexpected `tool_use_id`"),
    ("two results", turns("x", [USE], [RESULT, RESULT]), "multiple"),
    ("result last", turns("x", [USE], [text(), RESULT]), "must come first"),
    ("unsigned thinking", turns("x", [{"type": "thinking", "thinking": "x"}, text()], "y"), "signature"),
    ("trailing space", turns("x", [text("y ")]), "trailing whitespace"),
    ("five marks", turns([text(**MARK)] * 5), "maximum of 4"),
    ("mark on thinking", turns("x", [{"type": "redacted_thinking", "data": "x", **MARK}, text()], "y"), "thinking"),
    ("mark on nothing", turns("x", [USE], [{**RESULT, "content": "", **MARK}]), "empty text"),
    ("hour after minutes", turns([text(**MARK), text(**LONG)]), "must not come after"),
    ("bad ttl", turns([text(cache_control={"type": "ephemeral", "ttl": "30m"})]), "'5m' or '1h'"),
    ("system image", {"system": [{"type": "image"}]}, "only text"),
    ("tool without schema", {"tools": [{"name": "ls"}]}, "input_schema"),
    ("tools with one name", {"tools": GOOD["tools"] * 2}, "unique"),
    ("late system first", {"messages": [{"role": "system", "content": "x"}]}, "first message"),
]


@pytest.mark.parametrize(("name", "change", "says"), ANTHROPIC, ids=[case[0] for case in ANTHROPIC])
def test_anthropic(name: str, change: dict[str, Any], says: str) -> None:
    """Each rule is broken by one change, and the reason names it."""
    assert anthropic_violations(GOOD) == []
    assert any(says in reason for reason in anthropic_violations({**copy.deepcopy(GOOD), **change}))


CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
ASKED = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "out"}


def called(**change: Any) -> dict[str, Any]:
    """A conversation whose call is changed."""
    return {"messages": [ASKED[0], {**ASKED[1], "tool_calls": [{**CALL, **change}]}, ANSWER]}


CHAT: list[tuple[str, dict[str, Any], str]] = [
    ("unknown field", {"top_k": 1}, "Unrecognized"),
    ("no messages", {"messages": []}, "too short"),
    ("unknown role", {"messages": [{"role": "model", "content": "x"}]}, "Invalid value"),
    ("our key", {"messages": [{"role": "user", "content": "x", "provider_state": {}}]}, "Additional properties"),
    ("mark", {"messages": [{"role": "user", "content": [text(**MARK)]}]}, "Additional properties"),
    ("null content", {"messages": [{"role": "user", "content": None}]}, "got null"),
    ("image in a result", {"messages": [*ASKED, {**ANSWER, "content": [{"type": "image_url"}]}]}, "Invalid value"),
    ("no calls", {"messages": [ASKED[0], {**ASKED[1], "tool_calls": []}]}, "too short"),
    ("long id", called(id="x" * 41), "maximum length 40"),
    ("bad name", called(function={"name": "a b", "arguments": "{}"}), "pattern"),
    ("half arguments", called(function={"name": "ls", "arguments": '{"a'}), "not JSON"),
    ("arguments no object", called(function={"name": "ls", "arguments": "[]"}), "not an object"),
    ("no result", {"messages": [*ASKED, {"role": "user", "content": "y"}]}, "must be followed"),
    ("open call", {"messages": ASKED}, "must be followed"),
    ("orphan", {"messages": [ASKED[0], ANSWER]}, "preceeding message"),
    ("bare tool", {"tools": [{"name": "ls"}]}, "Missing required"),
]


@pytest.mark.parametrize(("name", "change", "says"), CHAT, ids=[case[0] for case in CHAT])
def test_chat(name: str, change: dict[str, Any], says: str) -> None:
    """Each rule is broken by one change, and the reason names it."""
    good = {"model": "m", "messages": [*ASKED, ANSWER]}
    assert chat_violations(good) == []
    assert any(says in reason for reason in chat_violations({**good, **change}))


ITEM = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "out"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}

RESPONSES: list[tuple[str, dict[str, Any], str]] = [
    ("unknown field", {"messages": []}, "Unknown parameter"),
    ("no input", {"input": None}, "Missing required"),
    ("unknown key", {"input": [{"role": "user", "content": "x", "name": "n"}]}, "Unknown parameter"),
    ("wrong part", {"input": [{"role": "user", "content": [text()]}]}, "Invalid value"),
    (
        "input by the assistant",
        {"input": [{"role": "assistant", "content": [{"type": "input_text"}]}]},
        "Invalid value",
    ),
    ("long id", {"input": [{**ITEM, "call_id": "x" * 65}]}, "maximum length 64"),
    ("no output", {"input": [ITEM]}, "No tool output found"),
    ("orphan", {"input": [OUTPUT]}, "No tool call found"),
    ("two outputs", {"input": [ITEM, OUTPUT, OUTPUT]}, "Duplicate output"),
    ("id twice", {"input": [ITEM, OUTPUT, ITEM, OUTPUT]}, "Duplicate call_id"),
    ("dangling reasoning", {"input": [THOUGHT]}, "required following item"),
    ("reasoning without content", {"input": [{**THOUGHT, "encrypted_content": None}, ITEM, OUTPUT]}, "not persisted"),
    ("tool without strict", {"tools": [{"type": "function", "name": "ls", "parameters": {}}]}, "Missing required"),
]


@pytest.mark.parametrize(("name", "change", "says"), RESPONSES, ids=[case[0] for case in RESPONSES])
def test_responses(name: str, change: dict[str, Any], says: str) -> None:
    """Each rule is broken by one change, and the reason names it."""
    good = {"model": "m", "store": False, "input": [{"role": "user", "content": "x"}, THOUGHT, ITEM, OUTPUT]}
    assert responses_violations(good) == []
    assert any(says in reason for reason in responses_violations({**good, **change}))
