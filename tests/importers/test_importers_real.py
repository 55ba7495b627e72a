"""Real recordings: counts agree with the raw files, and no word of the user or of a tool is lost.

The raw files are read here a second time, by other means than the importers', as plainly as each format allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leporello.errors import InputError
from leporello.importers import ImportedSession, load_session, load_sessions
from leporello.importers.builder import NO_RESULT
from leporello.messages import Message, calls_of, is_result, role_of
from leporello.turns import ViolationKind, validate
from leporello.usage import CanonicalUsage

HARMLESS = {ViolationKind.NEIGHBOURS, ViolationKind.LATE_SYSTEM}


def files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        pytest.skip(f"no {pattern} among the recorded sessions")
    return found


def records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").rstrip("\n").split("\n"):
        yield json.loads(line)


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)


def squeezed(texts: Iterator[str] | list[str]) -> str:
    return " ".join(" ".join(texts).split())


def of_role(session: ImportedSession, *roles: str) -> list[Message]:
    return [message for message in session.messages if role_of(message) in roles]


def assert_said(session: ImportedSession, roles: tuple[str, ...], texts: list[str]) -> None:
    """Every text stands in a message of one of these roles."""
    haystack = squeezed(text for message in of_role(session, *roles) for text in leaves(message["content"]))
    missing = [text[:80] for text in texts if squeezed([text]) not in haystack]
    assert missing == []


def assert_sound(session: ImportedSession) -> None:
    assert [str(v) for v in validate(session.messages) if v.fault not in HARMLESS] == []


def test_claude_code(real_sessions: Path) -> None:
    """One message per call id; calls and results counted; user words, answers and outputs all there."""
    for path in files(real_sessions, "claude-code/*.jsonl"):
        session = load_session(path)
        assert_sound(session)
        lines = [record for record in records(path) if record.get("type") in ("user", "assistant")]
        lines = [record for record in lines if not record.get("isCompactSummary")]
        blocks = [
            (record, block)
            for record in lines
            for block in record["message"]["content"]
            if isinstance(record["message"]["content"], list)
        ]
        ids = {record["message"]["id"] for record in lines if record["type"] == "assistant"}
        calls = [block for _, block in blocks if block["type"] == "tool_use"]
        results = [block for _, block in blocks if block["type"] == "tool_result"]
        made = [call for message in session.messages for call in calls_of(message)]
        given = [message for message in session.messages if is_result(message) and message["content"] != NO_RESULT]
        assert len(of_role(session, "assistant")) == len(ids)
        assert [call.id for call in made] == [block["id"] for block in calls]
        assert len(given) == len(results)
        assert [json.loads(call.arguments) for call in made] == [block["input"] for block in calls]
        assert_said(session, ("tool",), [text for block in results for text in leaves(block["content"])])
        spoken = [r["message"]["content"] for r in lines if isinstance(r["message"]["content"], str)]
        spoken += [b["text"] for r, b in blocks if r["type"] == "user" and b["type"] == "text"]
        assert_said(session, ("user",), spoken)
        answers = [b["text"] for r, b in blocks if r["type"] == "assistant" and b["type"] == "text"]
        assert_said(session, ("assistant",), answers)
        metered = {
            r["message"]["id"] for r in lines if r["type"] == "assistant" and "synth" not in r["message"]["model"]
        }
        assert len(session.usage) == len(metered)
        assert session.skipped_lines == 0


def test_codex_new(real_sessions: Path) -> None:
    """Calls, outputs and words of the items; one usage per message; the recorded totals add up."""
    for path in files(real_sessions, "codex/*.jsonl"):
        session = load_session(path)
        assert_sound(session)
        raw = list(records(path))
        items = [record.get("payload", record) for record in raw if record.get("type") != "event_msg"]
        calls = [item for item in items if item.get("type") == "function_call"]
        outputs = [item for item in items if item.get("type") == "function_call_output"]
        made = [call for message in session.messages for call in calls_of(message)]
        assert [(call.id, call.name) for call in made] == [(item["call_id"], item["name"]) for item in calls]
        assert len(of_role(session, "tool")) == len(outputs)
        assert_said(session, ("tool",), [item["output"] for item in outputs])
        spoken = [item for item in items if item.get("type") == "message"]
        for role in ("user", "assistant"):
            words = [part["text"] for item in spoken if item["role"] == role for part in item["content"]]
            assert_said(session, (role,), words)
        totals = [r["payload"]["info"] for r in raw if r.get("payload", {}).get("type") == "token_count"]
        totals = [info["total_token_usage"] for info in totals if info]
        if totals:
            used = sum((call.usage for call in session.usage), CanonicalUsage())
            assert used.prompt_tokens == totals[-1]["input_tokens"]
            assert used.cache_read_tokens == totals[-1]["cached_input_tokens"]


def test_pi(real_sessions: Path) -> None:
    """Messages, calls, results, usage and cost."""
    for path in files(real_sessions, "pi/*.jsonl"):
        session = load_session(path)
        assert_sound(session)
        raw = [record["message"] for record in records(path) if record["type"] == "message"]
        results = [message for message in raw if message["role"] == "toolResult"]
        answers = [message for message in raw if message["role"] == "assistant" and message["content"]]
        calls = [part for message in answers for part in message["content"] if part["type"] == "toolCall"]
        made = [call for message in session.messages for call in calls_of(message)]
        assert [(call.id, json.loads(call.arguments)) for call in made] == [(c["id"], c["arguments"]) for c in calls]
        assert len(of_role(session, "assistant")) == len(answers)
        given = [message for message in of_role(session, "tool") if message["content"] != NO_RESULT]
        assert len(given) == len(results)
        assert_said(session, ("tool",), [t for m in results for t in (p.get("text", "") for p in m["content"])])
        assert_said(session, ("user",), [p.get("text", "") for m in raw if m["role"] == "user" for p in m["content"]])
        spent = sum(call.cost or 0 for call in session.usage)
        assert spent == pytest.approx(sum(message["usage"]["cost"]["total"] for message in answers))


def test_mini_swe_agent(real_sessions: Path) -> None:
    """The messages as recorded, the submission aside; usage of every answer."""
    for path in files(real_sessions, "openai-chat/*.traj.json"):
        session = load_session(path)
        assert_sound(session)
        raw = [message for message in json.loads(path.read_text("utf-8"))["messages"] if message["role"] != "exit"]
        assert [role_of(message) for message in session.messages] == [message["role"] for message in raw]
        assert [message["content"] or "" for message in session.messages] == [m["content"] or "" for m in raw]
        asked = [
            message["extra"]["response"]["usage"]["prompt_tokens"] for message in raw if message["role"] == "assistant"
        ]
        assert [call.usage.prompt_tokens for call in session.usage] == asked


def test_tau_bench(real_sessions: Path) -> None:
    """Every run is a session with all its messages."""
    for path in files(real_sessions, "openai-chat/tau*.json"):
        runs = json.loads(path.read_text("utf-8"))
        sessions = load_sessions(path)
        assert len(sessions) == len(runs)
        for run, session in zip(runs, sessions, strict=True):
            assert_sound(session)
            raw = run.get("traj") or run["messages"]
            raw = [
                m for m in raw if m.get("requestor") != "user" and not (m["role"] == "user" and m["content"] is None)
            ]
            assert [role_of(message) for message in session.messages] == [message["role"] for message in raw]
            assert [message["content"] or "" for message in session.messages] == [m["content"] or "" for m in raw]


def test_gemini_and_swe_agent(real_sessions: Path) -> None:
    """Words, calls and outputs of the smaller formats."""
    for path in files(real_sessions, "gemini-cli/*.json"):
        session = load_session(path)
        assert_sound(session)
        raw = json.loads(path.read_text("utf-8"))["messages"]
        answers = [message for message in raw if message["type"] == "gemini"]
        assert_said(session, ("user",), [message["content"] for message in raw if message["type"] == "user"])
        assert_said(session, ("assistant",), [message["content"] for message in answers])
        calls = [call for message in answers for call in message.get("toolCalls", [])]
        assert [c.id for message in session.messages for c in calls_of(message)] == [call["id"] for call in calls]
        outputs = [part["functionResponse"]["response"] for call in calls for part in call.get("result", [])]
        assert_said(session, ("tool",), [output["output"] for output in outputs if "output" in output])
    for path in files(real_sessions, "swe-agent/*.traj"):
        session = load_session(path)
        assert_sound(session)
        history = json.loads(path.read_text("utf-8"))["history"]
        assert [role_of(message) for message in session.messages] == [message["role"] for message in history]
        assert [message["content"] for message in session.messages] == [message["content"] for message in history]


def test_markdown_recordings(real_sessions: Path) -> None:
    """aider: all that was typed. opencode: every tool with its output."""
    for path in files(real_sessions, "aider/*.md"):
        sessions = load_sessions(path)
        typed = [line[5:].rstrip() for line in path.read_text("utf-8").split("\n") if line.startswith("#### ")]
        said = squeezed(text for session in sessions for m in session.messages for text in leaves(m["content"]))
        assert [line for line in typed if squeezed([line]) not in said] == []
        for session in sessions:
            assert_sound(session)
    for path in files(real_sessions, "opencode/*.md"):
        session = load_session(path)
        assert_sound(session)
        page = path.read_text("utf-8")
        assert len(of_role(session, "tool")) == page.count("\n**Tool: ")


def test_fixtures_of_many_agents(real_sessions: Path) -> None:
    """Tiny samples, several with drifted schemas: each is read soundly or refused with a reason."""
    refused = []
    for path in files(real_sessions, "fixtures/*"):
        try:
            sessions = load_sessions(path)
        except InputError as error:
            refused.append(str(error))
            continue
        for session in sessions:
            faults = [v for v in validate(session.messages) if v.fault not in HARMLESS | {ViolationKind.NO_USER}]
            assert faults == [], path.name
    # What is refused holds no talk: two summaries, one state file, one single stored message.
    assert all(any(word in reason for word in ("summary", "state", "storage")) for reason in refused)
