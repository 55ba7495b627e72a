"""opencode: `opencode export` (JSON) and the `/export` page (Markdown)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.errors import InputError
from leporello.importers.builder import AssistantDraft, TranscriptBuilder, cache_aware_usage
from leporello.importers.source import Format, ImportedSession, Record, SourceFile, as_text, mapping

_HEADING = re.compile(r"^## (User|Assistant)(?: \((.*)\))?$")
_TOOL = re.compile(r"^\*\*Tool: (.+)\*\*$")


def _is_opencode(source: SourceFile) -> bool:
    """The export's `info` and `parts`, the page's session line, or one stored message."""
    value = mapping(source.value)
    if value:
        return any("parts" in m and "info" in m for m in value.objects("messages")) or _is_stored_message(value)
    return "\n**Session ID:** ses_" in source.text[:2_000]


def _is_stored_message(value: Record) -> bool:
    return {"sessionID", "role", "time"} <= set(value) and "messages" not in value


def _read_opencode(source: SourceFile) -> list[ImportedSession]:
    value = mapping(source.value)
    if _is_stored_message(value):
        raise InputError(
            "is one stored message of opencode, not a session; write the session with `opencode export`",
            str(source.path),
        )
    return [_from_export(value) if value else _from_page(source.text)]


def _from_export(value: Record) -> ImportedSession:
    builder = TranscriptBuilder("opencode")
    info = value.inner("info")
    builder.id, builder.title = info.id("id"), info.text("title")
    for message in value.objects("messages"):
        about, parts = message.inner("info"), message.objects("parts")
        if about.get("role") == "assistant":
            _assistant(builder, about, parts)
        else:
            words = [part.text("text") for part in parts if part.kind == "text"]
            builder.message("user", "\n".join(words))
    return builder.build()


def _assistant(builder: TranscriptBuilder, about: Record, parts: list[Record]) -> None:
    draft = builder.assistant()
    for part in parts:
        kind = part.kind
        if kind == "step-start" and draft.is_answered:
            draft = builder.assistant()
        elif kind == "text":
            draft.text(part.text("text"))
        elif kind == "reasoning":
            draft.reasoning(part.text("text"))
        elif kind == "tool":
            state = part.inner("state")
            call_id = draft.call(part.id("callID"), part.text("tool"), state.get("input"))
            output = state.get("output") if state.get("output") is not None else state.get("error")
            if output is not None:
                builder.result(call_id, as_text(output))
    tokens = about.inner("tokens")
    if tokens:
        cache = tokens.inner("cache")
        counts = {**tokens, "read": cache.get("read"), "write": cache.get("write")}
        usage = cache_aware_usage(counts, ("input", "output", "read", "write"), reasoning=tokens.get("reasoning"))
        draft.meter(usage, about.text("modelID"), about.number("cost"))


def _from_page(page: str) -> ImportedSession:
    builder = TranscriptBuilder("opencode")
    lines = page.split("\n")
    builder.title = lines[0].removeprefix("# ").strip()
    builder.id = next((line.split(":** ")[1] for line in lines if line.startswith("**Session ID:**")), "")
    for role, body in _sections(lines):
        if role == "User":
            builder.message("user", "\n".join(body).strip())
        else:
            _answer(builder.assistant(), body)
    return builder.build()


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each heading with the lines below it; headings inside code fences of tool output are none."""
    role, body = "", list[str]()
    fence = ""
    for number, line in enumerate(lines):
        heading = None if fence else _HEADING.match(line)
        if heading and number and lines[number - 1] == "":
            if role:
                yield role, _without_rule(body)
            role, body = heading[1], []
            continue
        fence = _next_fence(fence, line)
        body.append(line)
    if role:
        yield role, _without_rule(body)


def _next_fence(fence: str, line: str) -> str:
    if fence:
        return "" if line.rstrip() == fence else fence
    return line[: len(line) - len(line.lstrip("`"))] if line.startswith("```") else ""


def _without_rule(body: list[str]) -> list[str]:
    """Sections are parted by a rule."""
    while body and body[-1].strip() in ("", "---"):
        body = body[:-1]
    return body


def _answer(draft: AssistantDraft, body: list[str]) -> None:
    for kind, name, lines in _pieces(body):
        words = "\n".join(lines).strip()
        if kind == "tool":
            _tool(draft, name, lines)
        elif kind == "thinking":
            draft.reasoning(words)
        else:
            draft.text(words)


def _pieces(body: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    kind, name, lines = "text", "", list[str]()
    fence = ""
    for line in body:
        tool = None if fence else _TOOL.match(line)
        if tool or (not fence and line == "_Thinking:_"):
            yield kind, name, lines
            kind, name, lines = ("tool", tool[1], []) if tool else ("thinking", "", [])
            continue
        fence = _next_fence(fence, line)
        lines.append(line)
    yield kind, name, lines


def _tool(draft: AssistantDraft, name: str, lines: list[str]) -> None:
    """`**Input:**` and `**Output:**` (or `**Error:**`), each a fenced block."""
    blocks: dict[str, list[str]] = {}
    label = ""
    for line in lines:
        if line in ("**Input:**", "**Output:**", "**Error:**") and line not in blocks:
            label = line
            blocks[label] = []
        elif label:
            blocks[label].append(line)
    call_id = draft.call("", name, _unfenced(blocks.get("**Input:**", [])))
    output = blocks.get("**Output:**", blocks.get("**Error:**"))
    if output is not None:
        draft.builder.result(call_id, _unfenced(output))


def _unfenced(lines: list[str]) -> str:
    inner = "\n".join(lines).strip("\n").split("\n")
    if inner and inner[0].startswith("```"):
        inner = inner[1:-1] if inner[-1].startswith("```") else inner[1:]
    return "\n".join(inner)


OPENCODE = Format("opencode", _is_opencode, _read_opencode)
