"""What a generated session should look like, what was planted in it, and the writer that remembers where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import Any

from leporello.messages import Message
from leporello.testing.sessions.world import letters


class Style(StrEnum):
    CODING = "coding"
    """A user and an assistant with tools: many tasks, interjections, corrections."""
    CHAT = "chat"
    """Talk only: no tool is ever called."""
    ONE_ASK = "one_ask"
    """One user message at the start, everything else is the assistant working alone, with short comments."""
    ALL_TOOL = "all_tool"
    """One user message, then nothing but tool calls and results: no word of text from the assistant."""


class FactKind(StrEnum):
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
        limit = len(self.messages) if count is None else count
        return [fact for fact in self.of(FactKind.RULE, limit) if fact.alive(limit)]


CHARS_PER_TOKEN = 3.0  # of generated text, by the o200k vocabulary; a target in tokens is steered with it

TYPICAL_TOKENS = 380


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One tool call with its result; facts in the result are planted when it is written."""

    name: str
    arguments: dict[str, Any]
    result: str
    facts: tuple[tuple[FactKind, str, str], ...] = ()
    """(kind, text, question) of what the result reveals."""


@dataclass(slots=True)
class Writer:
    """The growing list of messages. It also says how verbose the next output should be to meet a token target."""

    spec: SessionSpec
    rng: Random
    messages: list[Message] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    chars: int = 0

    @property
    def full(self) -> bool:
        return len(self.messages) >= self.spec.messages

    @property
    def verbosity(self) -> float:
        """Factor on the usual output size; follows the token target as the session grows."""
        if self.spec.tokens is None:
            return 1.0
        left_messages = max(1, self.spec.messages - len(self.messages))
        left_tokens = max(0.0, self.spec.tokens - self.chars / CHARS_PER_TOKEN)
        return min(40.0, max(0.05, left_tokens / left_messages / TYPICAL_TOKENS))

    def lines(self, low: int, high: int) -> int:
        """A number of output lines between the bounds, scaled by the verbosity."""
        return max(1, int(self.rng.randrange(low, high) * self.verbosity))

    def plant(self, kind: FactKind, text: str, question: str, *, language: str = "en", plain: bool = True) -> Fact:
        fact = Fact(kind, text, len(self.messages), question, language, plain)
        self.facts.append(fact)
        return fact

    def end(self, fact: Fact, replaced_by: str | None = None) -> None:
        """The message that is written next revokes or replaces a fact."""
        ended = replace(fact, ended_at=len(self.messages), replaced_by=replaced_by)
        self.facts[self.facts.index(fact)] = ended

    def user(self, text: str, image: str | None = None) -> None:
        if image is None:
            self._add({"role": "user", "content": text})
            return
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image}}]
        self._add({"role": "user", "content": parts})

    def assistant(self, text: str) -> None:
        self._add({"role": "assistant", "content": text})

    def turn(self, text: str | None, runs: list[ToolRun]) -> None:
        """An assistant message with parallel calls, then the results; one time in five they come back out of order."""
        calls = self._call(text, runs)
        pairs = list(zip(calls, runs, strict=True))
        if len(pairs) > 1 and self.rng.random() < 0.2:
            self.rng.shuffle(pairs)
        for call, run in pairs:
            for kind, fact, question in run.facts:
                if not any(known.text == fact for known in self.facts):
                    self.plant(kind, fact, question)
            self._add({"role": "tool", "tool_call_id": call["id"], "name": run.name, "content": run.result})

    def open_turn(self, text: str | None, runs: list[ToolRun]) -> None:
        """The same without its results: work in progress."""
        self._call(text, runs)

    def _call(self, text: str | None, runs: list[ToolRun]) -> list[dict[str, Any]]:
        calls = [
            {
                "id": f"call_{position}" if self.spec.reuse_call_ids else f"call_{letters(self.rng, 20)}",
                "type": "function",
                "function": {"name": run.name, "arguments": json.dumps(run.arguments, ensure_ascii=False)},
            }
            for position, run in enumerate(runs)
        ]
        self._add({"role": "assistant", "content": text, "tool_calls": calls})
        return calls

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        content = message.get("content")
        if isinstance(content, str):
            self.chars += len(content)
        elif isinstance(content, list):
            self.chars += sum(len(part.get("text", "")) for part in content)
        for call in message.get("tool_calls", ()):
            self.chars += len(call["function"]["arguments"])
