"""A neutral recording: what was said, called and answered, before any agent's file format touches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from leporello.messages import Message, PartKind, calls_of, parts_of, result_id, role_of, text_of


@dataclass(frozen=True, slots=True)
class Called:
    """One tool call and its result."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said; only the assistant thinks and calls."""

    role: str
    text: str
    calls: tuple[Called, ...] = ()
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole recording."""

    turns: tuple[Turn, ...]
    system: str = ""


Line = tuple[str, str, tuple[tuple[str, str], ...], str]
"""Role, text, calls as (name, arguments), and the call a result answers (by position, ids are each format's own)."""


def expected(script: Script) -> list[Line]:
    """The messages an importer must give."""
    lines: list[Line] = [("system", script.system, (), "")] if script.system else []
    for turn in script.turns:
        if turn.role == "user":
            lines.append(("user", turn.text, (), ""))
            continue
        lines.append(("assistant", turn.text, tuple((call.name, _text(call.arguments)) for call in turn.calls), ""))
        lines += [("tool", call.result, (), f"{position}") for position, call in enumerate(turn.calls)]
    return lines


def seen(messages: list[Message]) -> list[Line]:
    """The same view of what an importer gave; ids are replaced by positions."""
    lines: list[Line] = []
    positions: dict[str, str] = {}
    for message in messages:
        calls = calls_of(message)
        if calls:
            positions = {call.id: str(position) for position, call in enumerate(calls)}
        answered = positions.get(result_id(message), "?") if role_of(message) == "tool" else ""
        lines.append((role_of(message), text_of(message), tuple((c.name, _text(c.parsed())) for c in calls), answered))
    return lines


def thinking_of(messages: list[Message]) -> list[str]:
    """All reasoning that was kept."""
    return [part.text for message in messages for part in parts_of(message) if part.kind is PartKind.THINKING]


def _text(arguments: dict[str, Any]) -> str:
    return repr(sorted(arguments.items()))


WORDS = st.sampled_from("alpha beta Größe 变量 naïve path/to/file.py:12 E501 “quoted” 3.14 🦊 --flag <tag> {x}".split())
PLAIN = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
"""Words on one line: survives Markdown."""
WILD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1, max_size=60).filter(
    str.strip
)
"""Anything a JSON file can hold."""


@st.composite
def scripts(draw: st.DrawFn, words: st.SearchStrategy[str] = WILD, thinks: bool = True) -> Script:
    """Sessions that begin with the user; any number of answers and calls."""
    turns: list[Turn] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        turns.append(Turn("user", draw(words)))
        answers = draw(st.integers(1, 3))
        for answer in range(answers):
            calls = []
            # An agent goes on by itself only after results.
            for _ in range(draw(st.integers(0 if answer == answers - 1 else 1, 3))):
                number += 1
                name = draw(st.sampled_from(("bash", "read_file")))
                calls.append(Called(f"toolu_{number:04}", name, {"command": draw(words)}, draw(words)))
            thinking = draw(words) if thinks and draw(st.booleans()) else ""
            turns.append(Turn("assistant", draw(words), tuple(calls), thinking))
    return Script(tuple(turns))
