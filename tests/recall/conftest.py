"""A small coding session with facts of every kind, written here so that each test can say what must be found."""

from __future__ import annotations

from typing import Any

import pytest


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    return message


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def listing(name: str, lines: int) -> str:
    return "\n".join(
        f"{number:6}\t{name} = compute_{name}({number})  # step {number}" for number in range(1, lines + 1)
    )


def session() -> list[dict[str, Any]]:
    """Twenty messages among a lot of noise."""
    messages = [
        user("Please write the importer. Never touch the files under vendor/ without asking me."),
        assistant("I start with the parser.", call("c1", "read_file", '{"path": "src/parser.py"}')),
        result("c1", listing("parser", 120)),
        assistant("Now the tests.", call("c2", "terminal", '{"command": "pytest tests/test_parser.py -q"}')),
        result("c2", "....F\nE   ValueError: line 7 has no separator\n1 failed, 4 passed in 0.31s"),
        assistant(
            "I chose a streaming reader because the files do not fit into memory.",
            call("c3", "terminal", '{"command": "git commit -am \\"Add the streaming parser\\""}'),
        ),
        result("c3", "[main 9ab3f1e] Add the streaming parser\n 2 files changed, 41 insertions(+), 3 deletions(-)"),
        user("Good. The staging server listens on 10.1.2.3:8443, use that."),
        assistant("Where is the port set?", call("c4", "search_files", '{"pattern": "DEFAULT_PORT"}')),
        result("c4", "src/net/server.py:88:DEFAULT_PORT = 8080\nsrc/net/client.py:12:from .server import DEFAULT_PORT"),
        assistant("Let me see who is connected.", call("c5", "terminal", '{"command": "ss -tn | wc -l"}')),
        result("c5", "17"),
        user("配置文件里的端口也要改成8443"),
        assistant("改好了，端口现在是8443。"),
    ]
    for number in range(6):
        id = f"n{number}"
        messages.append(assistant("", call(id, "read_file", f'{{"path": "src/noise_{number}.py"}}')))
        messages.append(result(id, listing(f"noise_{number}", 200)))
    return messages


@pytest.fixture
def messages() -> list[dict[str, Any]]:
    return session()
