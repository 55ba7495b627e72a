"""What every importer gives back: one recorded session as OpenAI-format messages, with what had to be mended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from leporello.messages import Message, is_instruction, text_of
from leporello.usage import CanonicalUsage


@dataclass(frozen=True, slots=True)
class CallUsage:
    """What one call to the model used. `index` is the assistant message (in `messages`) that the call produced."""

    index: int
    usage: CanonicalUsage
    model: str = ""
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """One recorded session.

    `messages` are in the order a request would carry them; a recorded system prompt is the first of them. Nothing of
    the recording is silently changed: `skipped_lines` counts input that could not be read at all, `notes` says what
    was left out or mended, and how often.
    """

    messages: list[Message]
    format: str
    id: str = ""
    kind: str = "main"
    """`main`, or what stands beside it in the same file: `sub-agent`, or `branch` (turns the user went back on)."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    usage: tuple[CallUsage, ...] = ()
    times: tuple[float | None, ...] = ()
    """For each message when it was recorded, in seconds since the epoch; None where the file does not say."""
    models: tuple[str, ...] = ()
    skipped_lines: int = 0
    notes: tuple[str, ...] = ()
    title: str = ""
    started: str = ""
    """When the recording began, as the file writes it; empty when it does not say."""

    @property
    def system(self) -> str:
        """The recorded system prompt; empty when the format does not record it."""
        leading = []
        for message in self.messages:
            if not is_instruction(message):
                break
            leading.append(text_of(message))
        return "\n\n".join(leading)

    @property
    def total_usage(self) -> CanonicalUsage:
        """The sum over all recorded calls."""
        return sum((call.usage for call in self.usage), CanonicalUsage())
