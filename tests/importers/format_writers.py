"""Writes a neutral recording in each agent's own file format, bookkeeping and all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .session_script import Script, Turn


@dataclass(frozen=True, slots=True)
class Writer:
    """One format: the name the importer must find, how to write it, and what the format can't hold."""

    format: str
    write: Callable[[Script], str]
    is_markdown: bool = False
    has_system: bool = False
    has_thinking: bool = True


def _lines(records: Iterator[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def claude_code(script: Script) -> str:
    """Each block on a line of its own; each result right behind its call, before the next call of the same message."""

    def records() -> Iterator[dict[str, Any]]:
        number = 0

        def line(kind: str, message: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
            nonlocal number
            number += 1
            parent = f"u{number - 1}" if number > 1 else None
            head = {"parentUuid": parent, "isSidechain": False, "sessionId": "s-1", "type": kind, "uuid": f"u{number}"}
            return {**head, **({"message": message} if message else {}), **fields, "timestamp": "2026-01-01T00:00:00Z"}

        yield {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}
        for position, turn in enumerate(script.turns):
            if turn.role == "user":
                yield line("user", {"role": "user", "content": turn.text})
                continue
            head = {"id": f"msg_{position}", "role": "assistant", "model": "claude-test"}
            usage = {"input_tokens": 3, "cache_read_input_tokens": 100 * position, "output_tokens": 1}
            if turn.thinking:
                block = {"type": "thinking", "thinking": turn.thinking, "signature": "c2ln"}
                yield line("assistant", {**head, "content": [block], "usage": usage})
            yield line("assistant", {**head, "content": [{"type": "text", "text": turn.text}], "usage": usage})
            for call in turn.calls:
                block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                yield line("assistant", {**head, "content": [block], "usage": usage})
                yield line("progress", None, data={"type": "bash_progress"})
                result = {"type": "tool_result", "tool_use_id": call.id, "content": call.result}
                yield line("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": call.result})
        yield line("system", None, subtype="turn_duration", durationMs=5)

    return _lines(records())


def codex(script: Script) -> str:
    """Items in payloads, all calls of a message before their outputs, usage behind them."""

    def records() -> Iterator[dict[str, Any]]:
        meta = {"id": "c-1", "timestamp": "2026-01-01T00:00:00Z", "instructions": script.system or None}
        yield {"type": "session_meta", "payload": meta}
        yield {"type": "turn_context", "payload": {"model": "gpt-test"}}
        total = 0
        for turn in script.turns:
            for item in _codex_items(turn):
                yield {"timestamp": "t", "type": "response_item", "payload": item}
            if turn.role == "assistant":
                total += 10
                usage = {"input_tokens": 7, "cached_input_tokens": 5, "output_tokens": 3, "total_tokens": 10}
                info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": total}}
                yield {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
                yield {"type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": {}}}
            yield {"type": "event_msg", "payload": {"type": "agent_message", "message": "shown on screen"}}

    return _lines(records())


def _codex_items(turn: Turn) -> Iterator[dict[str, Any]]:
    if turn.role == "user":
        yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": turn.text}]}
        return
    if turn.thinking:
        yield {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": turn.thinking}],
            "encrypted_content": "x",
        }
    yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": turn.text}]}
    for call in turn.calls:
        body = {"name": call.name, "arguments": json.dumps(call.arguments), "call_id": call.id}
        yield {"type": "function_call", **body}
    for call in turn.calls:
        yield {"type": "function_call_output", "call_id": call.id, "output": call.result}


def codex_old(script: Script) -> str:
    """Bare items behind a header, with state lines between."""

    def records() -> Iterator[dict[str, Any]]:
        yield {"id": "o-1", "timestamp": "2025-01-01T00:00:00Z", "instructions": script.system or None, "git": {}}
        for turn in script.turns:
            yield {"record_type": "state"}
            yield from _codex_items(turn)

    return _lines(records())


def pi(script: Script) -> str:
    """Linked message entries."""

    def records() -> Iterator[dict[str, Any]]:
        yield {"type": "session", "version": 3, "id": "p-1", "timestamp": "t", "cwd": "/x"}
        number = 0

        def entry(message: dict[str, Any]) -> dict[str, Any]:
            nonlocal number
            number += 1
            parent = f"e{number - 1}" if number > 1 else None
            return {"type": "message", "id": f"e{number}", "parentId": parent, "message": message}

        for turn in script.turns:
            if turn.role == "user":
                yield entry({"role": "user", "content": [{"type": "text", "text": turn.text}]})
                continue
            content: list[dict[str, Any]] = []
            if turn.thinking:
                content.append({"type": "thinking", "thinking": turn.thinking})
            content.append({"type": "text", "text": turn.text})
            content += [
                {"type": "toolCall", "id": call.id, "name": call.name, "arguments": call.arguments}
                for call in turn.calls
            ]
            usage = {"input": 2, "output": 3, "cacheRead": 5, "cacheWrite": 7, "cost": {"total": 0.25}}
            yield entry({"role": "assistant", "content": content, "model": "m", "usage": usage})
            for call in turn.calls:
                part = {"type": "text", "text": call.result}
                yield entry({"role": "toolResult", "toolCallId": call.id, "toolName": call.name, "content": [part]})

    return _lines(records())


def _chat(script: Script) -> Iterator[dict[str, Any]]:
    """OpenAI's own form."""
    if script.system:
        yield {"role": "system", "content": script.system}
    for turn in script.turns:
        message: dict[str, Any] = {"role": turn.role, "content": turn.text}
        if turn.calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
                for c in turn.calls
            ]
        yield message
        for call in turn.calls:
            yield {"role": "tool", "tool_call_id": call.id, "content": call.result}


def openai_list(script: Script) -> str:
    """A bare list."""
    return json.dumps(list(_chat(script)))


def openai_object(script: Script) -> str:
    """A request body, system prompt apart."""
    messages = [message for message in _chat(script) if message["role"] != "system"]
    return json.dumps({"messages": messages, "system": script.system, "tools": []})


def openai_lines(script: Script) -> str:
    """One message per line."""
    return _lines(_chat(script))


def anthropic(script: Script) -> str:
    """A request body of the Messages API: results inside user messages."""
    messages: list[dict[str, Any]] = []
    for turn in script.turns:
        content: list[dict[str, Any]] = []
        if turn.thinking:
            content.append({"type": "thinking", "thinking": turn.thinking, "signature": "c2ln"})
        content.append({"type": "text", "text": turn.text})
        content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in turn.calls]
        messages.append({"role": turn.role, "content": content})
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": c.result} for c in turn.calls]
        if results:
            messages.append({"role": "user", "content": results})
    return json.dumps(
        {"system": [{"type": "text", "text": script.system}] if script.system else [], "messages": messages}
    )


def mini_swe(script: Script) -> str:
    """A trajectory with raw responses and the submission at its end."""
    messages = []
    for message in _chat(script):
        if message["role"] == "assistant":
            usage = {"prompt_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
            message["extra"] = {"response": {"model": "m", "usage": usage}, "cost": 0.5}
        messages.append(message)
    messages.append({"role": "exit", "content": "diff", "extra": {}})
    return json.dumps({"info": {"model_stats": {}}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"})


def swe_agent(script: Script) -> str:
    """A history with calls; results name their calls in a list."""
    history = []
    for message in _chat(script):
        if message["role"] == "tool":
            message["tool_call_ids"] = [message.pop("tool_call_id")]
        history.append({**message, "agent": "main"})
    return json.dumps({"trajectory": [], "history": history, "info": {}, "environment": "x"})


def tau(script: Script) -> str:
    """One run of a benchmark."""
    return json.dumps([{"task_id": 4, "trial": 1, "reward": 0.0, "traj": list(_chat(script))}])


def tau2(script: Script) -> str:
    """One simulation, calls without wrapping."""
    messages: list[dict[str, Any]] = []
    for turn in script.turns:
        calls = [{"id": c.id, "name": c.name, "arguments": c.arguments, "requestor": "assistant"} for c in turn.calls]
        messages.append({"role": turn.role, "content": turn.text, "tool_calls": calls or None})
        messages += [
            {"role": "tool", "id": c.id, "content": c.result, "requestor": "assistant", "error": False}
            for c in turn.calls
        ]
    return json.dumps({"simulations": [{"id": "sim", "task_id": "4", "messages": messages}]})


def hermes(script: Script) -> str:
    """One exported session."""
    messages = [message for message in _chat(script) if message["role"] != "system"]
    head = {"session_id": "h-1", "model": "m", "platform": "cli", "session_start": "t", "system_prompt": script.system}
    return json.dumps({**head, "messages": messages, "message_count": len(messages)})


def hermes_lines(script: Script) -> str:
    """An export of several sessions, one per line; here it is one."""
    return json.dumps(json.loads(hermes(script))) + "\n"


def gemini(script: Script) -> str:
    """One document; results stand inside the calls."""
    messages: list[dict[str, Any]] = []
    for number, turn in enumerate(script.turns):
        if turn.role == "user":
            messages.append({"id": f"g{number}", "type": "user", "content": turn.text})
            continue
        calls = [
            {
                "id": call.id,
                "name": call.name,
                "args": call.arguments,
                "result": [
                    {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": call.result}}}
                ],
            }
            for call in turn.calls
        ]
        answer = {
            "id": f"g{number}",
            "type": "gemini",
            "content": turn.text,
            "toolCalls": calls,
            "model": "gemini-test",
        }
        thoughts = [{"subject": "", "description": turn.thinking}] if turn.thinking else []
        tokens = {"input": 9, "output": 2, "cached": 4, "thoughts": 1}
        messages += [
            {**answer, "thoughts": thoughts, "tokens": tokens},
            {"id": "i", "type": "info", "content": "saved"},
        ]
    return json.dumps({"sessionId": "g-1", "projectHash": "0", "startTime": "t", "messages": messages})


def gemini_lines(script: Script) -> str:
    """The newer form: lines, and a message may be written again when it has grown."""
    document = json.loads(gemini(script))
    messages = document.pop("messages")

    def records() -> Iterator[dict[str, Any]]:
        yield document
        for message in messages:
            yield {**message, "content": "" if message["type"] == "gemini" else message["content"]}
            yield {"$set": {"lastUpdated": "t"}}
            yield message

    return _lines(records())


def qwen(script: Script) -> str:
    """Lines with `parts`."""

    def records() -> Iterator[dict[str, Any]]:
        number = 0

        def line(kind: str, role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
            nonlocal number
            number += 1
            ids = {"uuid": f"q{number}", "parentUuid": f"q{number - 1}" if number > 1 else None, "sessionId": "q-1"}
            return {**ids, "type": kind, "message": {"role": role, "parts": parts}}

        for turn in script.turns:
            if turn.role == "user":
                yield line("user", "user", [{"text": turn.text}])
                continue
            parts = [{"text": turn.thinking, "thought": True}] if turn.thinking else []
            parts.append({"text": turn.text})
            calls = [{"functionCall": {"id": c.id, "name": c.name, "args": c.arguments}} for c in turn.calls]
            yield line("assistant", "model", [*parts, *calls])
            for call in turn.calls:
                body = {"id": call.id, "name": call.name, "response": {"output": call.result}}
                yield line("tool_result", "user", [{"functionResponse": body}])

    return _lines(records())


def copilot(script: Script) -> str:
    """Events."""

    def records() -> Iterator[dict[str, Any]]:
        yield {"type": "session.start", "data": {"sessionId": "co-1", "startTime": "t"}}
        for number, turn in enumerate(script.turns):
            if turn.role == "user":
                yield {"type": "user.message", "data": {"content": turn.text, "attachments": []}}
                continue
            requests = [{"toolCallId": c.id, "name": c.name, "arguments": c.arguments} for c in turn.calls]
            data = {"messageId": f"m{number}", "content": turn.text, "toolRequests": requests}
            yield {"type": "assistant.message", "data": {**data, "reasoningText": turn.thinking or None}}
            for call in turn.calls:
                yield {"type": "tool.execution_start", "data": {"toolCallId": call.id, "toolName": call.name}}
            for call in turn.calls:
                result = {"toolCallId": call.id, "success": True, "result": {"content": call.result}}
                yield {"type": "tool.execution_complete", "data": result}

    return _lines(records())


def kimi(script: Script) -> str:
    """Context events; the steps of the loop carry the parts."""

    def records() -> Iterator[dict[str, Any]]:
        yield {"type": "metadata", "protocol_version": "1.4"}
        if script.system:
            yield {"type": "config.update", "systemPrompt": script.system}
        for number, turn in enumerate(script.turns):
            if turn.role == "user":
                content = [{"type": "text", "text": turn.text}]
                yield {"type": "turn.prompt", "input": content}
                yield {"type": "context.append_message", "message": {"role": "user", "content": content}}
                continue
            step = f"step{number}"
            events: list[dict[str, Any]] = []
            if turn.thinking:
                events.append({"type": "content.part", "part": {"type": "think", "think": turn.thinking}})
            events.append({"type": "content.part", "part": {"type": "text", "text": turn.text}})
            for call in turn.calls:
                events.append({"type": "tool.call", "toolCallId": call.id, "name": call.name, "args": call.arguments})
                events.append({"type": "tool.result", "toolCallId": call.id, "result": {"output": call.result}})
            for event in events:
                yield {"type": "context.append_loop_event", "event": {**event, "stepUuid": step}}
            usage = {"inputOther": 5, "output": 2, "inputCacheRead": 3, "inputCacheCreation": 0}
            yield {"type": "context.append_loop_event", "event": {"type": "step.end", "uuid": step, "usage": usage}}

    return _lines(records())


def grok(script: Script) -> str:
    """Messages by type."""

    def records() -> Iterator[dict[str, Any]]:
        if script.system:
            yield {"type": "system", "content": script.system}
        for turn in script.turns:
            if turn.role == "user":
                yield {"type": "user", "content": [{"type": "text", "text": turn.text}]}
                continue
            if turn.thinking:
                yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": turn.thinking}]}
            calls = [{"id": c.id, "name": c.name, "arguments": json.dumps(c.arguments)} for c in turn.calls]
            yield {"type": "assistant", "content": turn.text, "tool_calls": calls, "model_id": "grok-test"}
            for call in turn.calls:
                yield {"type": "tool_result", "tool_call_id": call.id, "content": call.result}

    return _lines(records())


def opencode(script: Script) -> str:
    """`opencode export`."""
    messages = []
    for turn in script.turns:
        parts: list[dict[str, Any]] = [{"type": "step-start"}] if turn.role == "assistant" else []
        if turn.thinking:
            parts.append({"type": "reasoning", "text": turn.thinking})
        parts.append({"type": "text", "text": turn.text})
        parts += [
            {
                "type": "tool",
                "tool": call.name,
                "callID": call.id,
                "state": {"status": "completed", "input": call.arguments, "output": call.result},
            }
            for call in turn.calls
        ]
        tokens = {"input": 4, "output": 2, "reasoning": 0, "cache": {"read": 1, "write": 0}}
        info = {"role": turn.role, "tokens": tokens} if turn.role == "assistant" else {"role": "user"}
        messages.append({"info": info, "parts": parts})
    return json.dumps({"info": {"id": "ses_1", "title": "x"}, "messages": messages})


def opencode_page(script: Script) -> str:
    """The page that `/export` writes."""
    page = ["# A title", "", "**Session ID:** ses_1", "**Created:** today", "", "---", ""]
    for turn in script.turns:
        page += [f"## {'User' if turn.role == 'user' else 'Assistant (Build · model · 1.0s)'}", ""]
        if turn.thinking:
            page += ["_Thinking:_", "", turn.thinking, ""]
        if not turn.thinking:
            page += [turn.text, ""]
        for call in turn.calls:
            page += [f"**Tool: {call.name}**", "", "**Input:**", "```json", json.dumps(call.arguments), "```", ""]
            page += ["**Output:**", "```", call.result, "```", ""]
        page += ["---", ""]
    return "\n".join(page)


def aider(script: Script) -> str:
    """The chat history; it knows no tools."""
    page = ["", "# aider chat started at 2026-01-01 10:00:00", ""]
    for turn in script.turns:
        if turn.role == "user":
            page += ["", *(f"#### {line}  " for line in turn.text.split("\n"))]
        else:
            page += ["", turn.text, ""]
    return "\n".join(page)


WRITERS = {
    "claude-code": Writer("claude-code", claude_code),
    "codex": Writer("codex", codex, has_system=True),
    "codex, old": Writer("codex", codex_old, has_system=True),
    "pi": Writer("pi", pi),
    "openai list": Writer("openai", openai_list, has_system=True, has_thinking=False),
    "openai object": Writer("openai", openai_object, has_system=True, has_thinking=False),
    "openai lines": Writer("openai", openai_lines, has_system=True, has_thinking=False),
    "anthropic body": Writer("openai", anthropic, has_system=True),
    "mini-swe-agent": Writer("mini-swe-agent", mini_swe, has_system=True, has_thinking=False),
    "swe-agent": Writer("swe-agent", swe_agent, has_system=True, has_thinking=False),
    "tau-bench": Writer("tau-bench", tau, has_system=True, has_thinking=False),
    "tau2": Writer("tau-bench", tau2, has_thinking=False),
    "hermes": Writer("hermes", hermes, has_system=True, has_thinking=False),
    "hermes lines": Writer("hermes", hermes_lines, has_system=True, has_thinking=False),
    "gemini-cli": Writer("gemini-cli", gemini),
    "gemini-cli lines": Writer("gemini-cli", gemini_lines),
    "qwen-code": Writer("qwen-code", qwen),
    "copilot-cli": Writer("copilot-cli", copilot),
    "kimi-code": Writer("kimi-code", kimi, has_system=True),
    "grok-cli": Writer("grok-cli", grok, has_system=True),
    "opencode": Writer("opencode", opencode),
}
