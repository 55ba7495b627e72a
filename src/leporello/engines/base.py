"""The two interfaces of an engine: `ContextEngine` for hosts, ours and other people's; `CompactionEngine` inside.

Lifecycle of a `ContextEngine`: constructed -> `on_session_start` -> after each response `update_from_response` -> each
turn `should_compress` -> `compress` when that is true -> `on_session_end` at a real end, never per turn. One instance
serves one conversation. Hosts read its counters as plain attributes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from leporello.compaction.pipeline import CompactionResult, CompactionTask
from leporello.messages import Message
from leporello.models import Limits
from leporello.policy.decision import Decision, Situation, decide

DEFAULT_THRESHOLD_PERCENT = 0.50
DEFAULT_PROTECT_FIRST_N = 3
DEFAULT_PROTECT_LAST_N = 20


class CompactionEngine(ABC):
    """What a conversation needs of an engine. It keeps no ledger, limits or state: they come with each call."""

    name: str
    """Under which the config selects it."""

    @abstractmethod
    def compact(self, task: CompactionTask) -> CompactionResult:
        """One compaction of a numbered view, with its report."""

    def adjusted(self, limits: Limits) -> Limits:
        """The limits with the threshold that this engine goes by."""
        return limits

    def decide(self, situation: Situation) -> Decision:
        """What the policy says, or within its rules the engine's own judgement."""
        return decide(situation)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Tools this engine offers to the model."""
        return []

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of its tools; the answer is JSON text."""
        return unknown_tool(name)

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """The model answered."""

    def update_model(self, model: str, context_length: int) -> None:
        """The model or its window changed."""

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """A session begins or goes on."""

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """A real end."""

    def on_session_reset(self) -> None:
        """The user began a new conversation."""


def unknown_tool(name: str) -> str:
    return json.dumps({"error": f"Unknown context engine tool: {name}"})


class ContextEngine(ABC):
    """Decides when a conversation is compressed, and does it."""

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0
    threshold_percent: float = DEFAULT_THRESHOLD_PERCENT
    protect_first_n: int = DEFAULT_PROTECT_FIRST_N
    protect_last_n: int = DEFAULT_PROTECT_LAST_N

    def __init__(self, context_length: int = 0) -> None:
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name; must equal the name under which the config selects it."""

    @abstractmethod
    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Take the usage of the last call: three totals and the five canonical buckets."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether it is time, judged by real prompt tokens when given, else by the last ones seen."""

    @abstractmethod
    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        """A shorter, valid OpenAI-format list; the input list is left alone."""

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """A session begins or goes on; at a compression switch `boundary_reason="compression"`."""

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """A real end: program exit, reset, expiry."""

    def on_session_reset(self) -> None:
        """A new conversation in the same place: counters go back to zero."""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.compression_count = 0

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """The model changed: take its window and recompute the threshold."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Tools this engine offers to the model."""
        return []

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of its tools; the answer is JSON text."""
        return unknown_tool(name)

    def should_compress_preflight(self, messages: list[Message]) -> bool:
        """A cheap look before the first call of a turn."""
        return False

    def has_content_to_compress(self, messages: list[Message]) -> bool:
        """Whether a compression could do anything at all."""
        return True

    def get_status(self) -> dict[str, Any]:
        """Figures for a status display."""
        used = self.last_prompt_tokens / self.context_length * 100 if self.context_length else 0.0
        return {
            "last_prompt_tokens": self.last_prompt_tokens,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": min(100.0, used),
            "compression_count": self.compression_count,
        }
