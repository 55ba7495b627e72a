"""Writes messages into a session and remembers what was planted where."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from leporello.messages import Message
from leporello.testing.sessions.spec import Fact, FactKind, SessionSpec
from leporello.testing.sessions.vocabulary import letters

CHARS_PER_TOKEN = 3.0
"""Of generated text, by the o200k vocabulary; a target in tokens is steered with it."""

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
        """Whether enough messages are written."""
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
        """Note a fact of the message that is written next."""
        fact = Fact(kind, text, len(self.messages), question, language, plain)
        self.facts.append(fact)
        return fact

    def end(self, fact: Fact, replaced_by: str | None = None) -> None:
        """The message that is written next revokes or replaces a fact."""
        position = self.facts.index(fact)
        self.facts[position] = Fact(
            fact.kind,
            fact.text,
            fact.index,
            fact.question,
            fact.language,
            fact.plain,
            ended_at=len(self.messages),
            replaced_by=replaced_by,
        )

    def user(self, text: str, image: str | None = None) -> None:
        """A user message, with a screenshot when given."""
        if image is None:
            self._add({"role": "user", "content": text})
            return
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image}}]
        self._add({"role": "user", "content": parts})

    def assistant(self, text: str) -> None:
        """Plain words of the assistant."""
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
