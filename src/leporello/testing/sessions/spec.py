"""What a generated session should look like, what was planted in it, and the writer that remembers where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leporello.messages import Message


class Style(StrEnum):
    """The shape of a session."""

    CODING = "coding"
    """A user and an assistant with tools: many tasks, interjections, corrections."""
    CHAT = "chat"
    """Talk only: no tool is ever called."""
    ONE_ASK = "one_ask"
    """One user message at the start, everything else is the assistant working alone, with short comments."""
    ALL_TOOL = "all_tool"
    """One user message, then nothing but tool calls and results: no word of text from the assistant."""


class FactKind(StrEnum):
    """What was planted."""

    ASK = "ask"
    RULE = "rule"
    DECISION = "decision"
    IDENTIFIER = "identifier"
    ERROR = "error"
    SECRET = "secret"


@dataclass(frozen=True, slots=True)
class Fact:
    """One planted fact. `text` occurs verbatim in message `index` (JSON escapes of tool results aside)."""

    kind: FactKind
    text: str
    index: int
    question: str
    """What a person would ask to get `text` back; shares few words with it."""
    language: str = "en"
    plain: bool = True
    """Rules: worded as a plain order or ban, not as a hint between the lines."""
    ended_at: int | None = None
    """Index of the message that revoked the rule or replaced the decision."""
    replaced_by: str | None = None
    """The new text, when a decision was changed."""

    def alive(self, count: int | None = None) -> bool:
        """Whether it still holds after the first `count` messages (all of them when None)."""
        return self.ended_at is None or (count is not None and self.ended_at >= count)


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Options of the generator. The same spec gives the same session, on every machine."""

    seed: int = 1
    messages: int = 1_000
    """How many messages to write; the session ends at the first complete group at or beyond it."""
    tokens: int | None = None
    """Roughly how many tokens they hold together; None: as they come, about 400 a message."""
    style: Style = Style.CODING
    languages: tuple[str, ...] = ("en", "zh", "de", "es", "ja")
    """Human languages of the user; the first is the main one."""
    rules: int | None = None
    """How many rules the user states; None: a plausible number for the length."""
    huge_outputs: int | None = None
    """How many tool results are logs of 60,000 characters and more; None: about one in 250 messages."""
    images: int | None = None
    """How many screenshots the user pastes; None: about one in 200 messages."""
    secrets: int = 3
    """How many keys and passwords leak into the session."""
    reuse_call_ids: bool = False
    """Number the calls of every turn from `call_0` on, as some providers do."""
    open_calls: bool = False
    """End in the middle of a turn: the last message calls tools that have not answered yet."""


@dataclass(frozen=True, slots=True)
class GeneratedSession:
    """A session with its system prompt, tool schemas and the facts planted in it."""

    spec: SessionSpec
    system: str
    tools: tuple[dict[str, Any], ...]
    messages: list[Message]
    facts: tuple[Fact, ...]

    def of(self, kind: FactKind, count: int | None = None) -> Iterator[Fact]:
        """Facts of one kind that stand within the first `count` messages."""
        limit = len(self.messages) if count is None else count
        return (fact for fact in self.facts if fact.kind is kind and fact.index < limit)

    def live_rules(self, count: int | None = None) -> list[Fact]:
        """Rules that hold after the first `count` messages."""
        limit = len(self.messages) if count is None else count
        return [fact for fact in self.of(FactKind.RULE, limit) if fact.alive(limit)]

    def as_document(self) -> dict[str, Any]:
        """The `{system, messages, tools}` form that `leporello compress` reads."""
        return {"system": self.system, "messages": self.messages, "tools": list(self.tools)}
