"""Conversations written as one document: aider's Markdown, opencode's export and page, Gemini CLI's sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from leporello.errors import InputError
from leporello.importers.builder import AssistantDraft, TranscriptBuilder, cache_aware_usage, result_of
from leporello.importers.linked_logs import RecordedLine, ThreadReader
from leporello.importers.source import Format, ImportedSession, Record, SourceFile, as_text, mapping, objects, sequence
from leporello.lazy_regex import lazy_regex
from leporello.messages import role_of
from leporello.usage import CanonicalUsage

# -- aider: one heading per chat, `####` before what the user typed, `>` before its output

_END = "  "
_START = lazy_regex(r"^# aider chat started at (.*\S)\s*$", re.MULTILINE)


def _read_aider(source: SourceFile) -> list[ImportedSession]:
    """One session per chat in which the user said anything; the others hold aider's greeting and no more."""
    starts = list(_START.finditer(source.text))
    ends = [start.start() for start in starts[1:]] + [len(source.text)]
    sessions = [
        _aider_chat(start[1], source.text[start.end() : end].strip("\n").split("\n"))
        for start, end in zip(starts, ends, strict=True)
    ]
    return [session for session in sessions if any(role_of(message) == "user" for message in session.messages)]


def _aider_chat(started: str, lines: list[str]) -> ImportedSession:
    builder = TranscriptBuilder("aider")
    builder.id = builder.started = started
    builder.at(started)
    answer: list[str] = []
    for kind, piece in groupby([*_aider_lines(lines), ("end", "")], itemgetter(0)):
        told = [words for _, words in piece]
        if kind in ("", "assistant"):
            answer.extend(told)
            continue
        if any(answer):
            builder.assistant().text("\n".join(answer).strip("\n"))
        answer = []
        words = "\n".join(told)
        if kind == "user":
            builder.message("user", words)
        elif words.strip():
            builder.exchange("aider_console", {}, words)
    return builder.build()


def _aider_lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Whose words each line holds (`user`, `console`, `assistant`, or `` for an empty line between), marks taken off.

    aider ends each thing it writes with two spaces. Output of several lines is marked on its first line only and ends
    at the two spaces; a mark without them inside a code fence belongs to the code.
    """
    in_fence = in_output = False
    for line in lines:
        is_end = line.endswith(_END)
        if in_output:
            in_output = not is_end
            yield "console", line.removesuffix(_END)
        elif line.startswith("#### ") and is_end:
            in_fence = False
            yield "user", line[5:].removesuffix(_END)
        elif line.startswith("> ") and (is_end or not in_fence):
            in_output = not is_end
            yield "console", line[2:].removesuffix(_END)
        else:
            if line.startswith("```"):
                in_fence = not in_fence
            yield "assistant" if line or in_fence else "", line


AIDER = Format(
    "aider", lambda source: source.text[:1] not in ("{", "[") and bool(_START.search(source.text)), _read_aider
)


# -- opencode: `opencode export` (JSON) and the `/export` page (Markdown)

_HEADING = lazy_regex(r"^## (User|Assistant)(?: \((.*)\))?$")
_TOOL = lazy_regex(r"^\*\*Tool: (.+)\*\*$")


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
            _opencode_assistant(builder, about, parts)
        else:
            words = [part.text("text") for part in parts if part.kind == "text"]
            builder.message("user", "\n".join(words))
    return builder.build()


def _opencode_assistant(builder: TranscriptBuilder, about: Record, parts: list[Record]) -> None:
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
            _opencode_answer(builder.assistant(), body)
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


def _opencode_answer(draft: AssistantDraft, body: list[str]) -> None:
    for kind, name, lines in _opencode_pieces(body):
        words = "\n".join(lines).strip()
        if kind == "tool":
            _opencode_tool(draft, name, lines)
        elif kind == "thinking":
            draft.reasoning(words)
        else:
            draft.text(words)


def _opencode_pieces(body: list[str]) -> Iterator[tuple[str, str, list[str]]]:
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


def _opencode_tool(draft: AssistantDraft, name: str, lines: list[str]) -> None:
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


# -- Gemini CLI (one JSON document, or JSON lines with later corrections) and Qwen Code's JSON lines

_NOTICES = frozenset(("info", "error", "warning", "about", "help", "quit"))


def _is_gemini(source: SourceFile) -> bool:
    """Gemini's header fields, or lines whose message has `parts`."""
    value = source.value
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return any(message.kind == "gemini" for message in objects(value["messages"])) or "projectHash" in value
    records = source.records[:100]
    return any("projectHash" in record or isinstance(_parts(record), list) for record in records)


def _parts(record: Record) -> Any:
    return record.inner("message").get("parts")


def _read_gemini(source: SourceFile) -> list[ImportedSession]:
    """One session; for Qwen's tree the abandoned branches too."""
    if any(isinstance(_parts(record), list) for record in source.records):
        nodes = [RecordedLine(r.id("uuid"), r.id("parentUuid"), r) for r in source.records]
        # Lines form a chain: another line at the same place means that the user went back.
        reader = ThreadReader("qwen-code", _fill_qwen)
        found = reader.branches(nodes, lambda one, other: one.get("uuid") != other.get("uuid"), source.broken_lines)
        return [builder.build() for builder in found]
    document, skipped = mapping(source.value), 0
    if not isinstance(document.get("messages"), list):
        document, skipped = _from_lines(source.records), source.broken_lines
    builder = TranscriptBuilder("gemini-cli", skipped_lines=skipped)
    builder.id = document.id("sessionId")
    builder.started = document.text("startTime")
    for message in document.objects("messages"):
        kind = message.kind
        builder.at(message.get("timestamp"))
        if kind == "user":
            builder.heard(message.get("content"))
        elif kind in ("gemini", "model", "assistant"):
            _gemini_answer(builder, message)
        elif kind in _NOTICES:
            builder.note("a notice on screen, which the model never saw, was left out")
        else:
            builder.note(f"a message of kind {kind!r} was left out")
    return [builder.build()]


def _from_lines(records: list[Record]) -> Record:
    """The document that the lines add up to: a message written again replaces its first version."""
    header = Record()
    messages: dict[str, Record] = {}
    for number, record in enumerate(records):
        if "projectHash" in record and "type" not in record:
            header.update(record)
        elif "type" in record:
            messages[record.id("id") or str(number)] = record
    return Record(header, messages=list(messages.values()))


def _gemini_answer(builder: TranscriptBuilder, message: Record) -> None:
    draft = builder.assistant()
    for thought in message.objects("thoughts"):
        draft.reasoning(": ".join(filter(None, (thought.text("subject"), thought.text("description")))))
    draft.content(message.get("content"))
    calls = message.objects("toolCalls")
    ids = [draft.call(call.id("id"), call.text("name"), call.get("args")) for call in calls]
    for call_id, call in zip(ids, calls, strict=True):
        outputs = [result_of(part) for part in call.objects("result")]
        if outputs or call.get("result") is not None:
            words = "\n".join(as_text(output[1]) for output in outputs) or call.as_text("result")
            builder.result(call_id, words, call.text("name"))
    if isinstance(message.get("tokens"), dict):
        draft.meter(_gemini_usage(message.inner("tokens")), message.text("model"))


def _gemini_usage(tokens: Record) -> CanonicalUsage:
    """Google's input count includes cached tokens; thoughts are billed as output beside the answer."""
    thoughts = tokens.number("thoughts", "thoughtsTokenCount") or 0
    answer = tokens.number("output", "candidatesTokenCount") or 0
    return CanonicalUsage.parse(
        {
            "prompt_tokens": tokens.get("input", tokens.get("promptTokenCount")),
            "completion_tokens": answer + thoughts,
            "prompt_tokens_details": {"cached_tokens": tokens.get("cached", tokens.get("cachedContentTokenCount"))},
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        }
    )


def _fill_qwen(builder: TranscriptBuilder, records: list[Record]) -> None:
    for record in records:
        builder.at(record.get("timestamp"))
        builder.id = builder.id or record.id("sessionId")
        builder.started = builder.started or record.text("timestamp")
        parts = sequence(_parts(record))
        if record.kind == "assistant":
            draft = builder.answer(parts, key=record.id("uuid"))
            if record.inner("usageMetadata"):
                draft.meter(_gemini_usage(record.inner("usageMetadata")), record.text("model"))
        elif record.kind in ("user", "tool_result"):
            builder.heard(parts)
        elif record.get("subtype") == "custom_title":
            builder.title = record.inner("systemPayload").text("customTitle") or builder.title


GEMINI = Format("gemini-cli", _is_gemini, _read_gemini)
