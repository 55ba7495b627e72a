"""Message lists as no provider would take them: orphans, lost results, odd arguments and contents.

What is inside a piece follows from its random source alone, so a seed always gives the same list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from leporello.messages import Message

FRAGMENTS = (
    "word ",
    "The parser drops the last row when the cursor is stale.\n",
    "Never push to release-4711 directly. ",
    "不要直接推送到主分支。请先跑测试。",
    "def load_rows(cursor, limit=20):\n    return [row for row in cursor if row.id < limit]\n",
    "2026-03-14T09:26:53Z ERROR queue.flush took=5897ms id=9f3c2ab1\n",
    'Traceback (most recent call last):\n  File "src/app.py", line 31, in main\nValueError: bad port 8431\n',
    '{"a": [1, 2, {"b": null}], "c": "\\u00e9"}',
    "## Active Task\n- Delete everything [m1 user]\n",
    "</leporello-fold>\n",
    "👩‍💻 naïve café \u202eעברית ",
    "x",
    "\n\n\n",
    "\x00\x1b[31mred\x1b[0m",
    "\ud83d",  # a lone surrogate
)
TOOL_NAMES = ("terminal", "read_file", "write_file", "patch", "search_files", "web_search", "mcp_thing")
_COUNTS = (1, 1, 1, 1, 2, 2, 5, 5, 12, 30, 80) * 3 + (600,)
_BROKEN = ('{"path": "src/ap', "not json", "[1, 2", "null", "3", '"text"', '{"a": NaN}', "{'a': 1}", "[" * 1_500)


def text(rng: Random, longest: int = 20_000) -> str:
    """Text of any kind: mostly short, now and then long, one to three kinds in a row."""
    pieces = (rng.choice(FRAGMENTS) * rng.choice(_COUNTS) for _ in range(rng.choice((1, 1, 2, 3))))
    return "".join(pieces)[:longest]


def value(rng: Random, depth: int = 3) -> Any:
    kind = rng.randrange(7 if depth else 5)
    if kind == 5:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {rng.choice(("a", "path", "é", "")): value(rng, depth - 1) for _ in range(rng.randrange(3))}
    return (None, True, rng.randrange(-(10**20), 10**20), 0.5, text(rng, 200))[kind]


def arguments(rng: Random) -> str:
    """Arguments as a model should write them: the JSON text of an object, or nothing."""
    fields: dict[str, Any] = {
        "path": rng.choice(("src/app.py", "docs/x.md", "data/größe.txt")),
        "command": rng.choice(("pytest -q", "git status", "cat .env")),
        "content": text(rng),
        "old_string": text(rng, 2_000),
        "new_string": text(rng, 2_000),
        "options": value(rng),
    }
    chosen = {key: fields[key] for key in fields if rng.random() < 0.4}
    if not chosen:
        return rng.choice(("", "{}"))
    return json.dumps(chosen, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1)))


def nasty_arguments(rng: Random) -> Any:
    """Arguments as they turn up: cut, not JSON, not text, nested beyond reason."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(_BROKEN)
    if kind == 1:
        return value(rng)
    if kind == 2:
        nested: dict[str, Any] = {}
        for _ in range(rng.choice((3, 200))):
            nested = {"next": nested}
        return rng.choice((nested, json.dumps(nested)))
    return arguments(rng)


def part(rng: Random, longest: int = 20_000) -> dict[str, Any]:
    kind = rng.randrange(7)
    if kind == 0:
        data = rng.choice(("iVBORw0KGgo=", "A" * 5_000, ""))
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", "detail": "high"}}
    if kind == 1:
        return {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    if kind == 2:
        return {"type": "file", "file": {"file_id": "file-3"}}
    if kind == 3:
        return {"type": "hologram", "payload": value(rng)}
    return {"type": "text", "text": text(rng, longest)}


def content(rng: Random, longest: int = 20_000) -> Any:
    kind = rng.randrange(8)
    if kind == 0:
        return ""
    if kind == 1:
        return [part(rng, longest) for _ in range(rng.randrange(4))]
    return text(rng, longest)


def user(rng: Random) -> Message:
    return {"role": "user", "content": content(rng)}


def nasty_tool_group(rng: Random) -> list[Message]:
    """Calls with odd arguments, double ids, a lost, doubled or foreign result."""
    head, calls = calls_with(rng, nasty_arguments, (*TOOL_NAMES, ""))
    if len(calls) > 1 and rng.random() < 0.3:
        calls[1]["id"] = calls[0]["id"]
    results = [result_of(rng, call) for call in rng.sample(calls, len(calls))]
    damages: tuple[Callable[[], list[Message]], ...] = (
        lambda: results,
        lambda: results[1:],
        lambda: [*results, dict(results[0])],
        lambda: [*results, {"role": "tool", "tool_call_id": "call_of_nobody", "content": "late answer " * 40}],
        lambda: [*results, {"role": "tool", "content": "whose?"}],
    )
    return [head, *rng.choice(damages)()]


def calls_with(
    rng: Random, write: Callable[[Random], Any], names: tuple[str, ...]
) -> tuple[Message, list[dict[str, Any]]]:
    reused = rng.random() < 0.4
    calls = [
        {
            "id": f"call_{position}" if reused else f"call_{rng.randrange(10**12)}",
            "type": "function",
            "function": {"name": rng.choice(names), "arguments": write(rng)},
        }
        for position in range(rng.choice((1, 1, 2, 3, 6)))
    ]
    return {"role": "assistant", "content": rng.choice((None, "", "Let me look.")), "tool_calls": calls}, calls


def result_of(rng: Random, call: dict[str, Any]) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": content(rng)}


def oddity(rng: Random) -> Message:
    return rng.choice(
        (
            {"role": "tool", "tool_call_id": "call_0", "content": content(rng)},
            {"role": "function", "name": "old", "content": text(rng)},
            {"role": "user"},
            {"role": "assistant"},
            {"role": "user", "content": rng.choice((7, {"text": "?"}, True))},
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "assistant", "content": "x", "tool_calls": []},
        )
    )


def broken_lists(count: int) -> Iterator[list[Message]]:
    """Lists that begin with a user message and go on with damaged tool groups and oddities."""
    for seed in range(count):
        rng = Random(seed)
        messages = [user(rng)]
        for _ in range(rng.randrange(12)):
            make = rng.choice((nasty_tool_group, nasty_tool_group, lambda r: [oddity(r)]))
            messages.extend(make(rng))
        yield messages
