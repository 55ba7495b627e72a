"""How large the next request of a conversation is, for which model and within which limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.config import Settings
from leporello.messages import Message
from leporello.models import Limits
from leporello.models.limits import limits_of
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptMeter, PromptSize

METER_KEY = "tokens.meter"
"""In the state of a conversation: what a process measured, so that the next one goes on from there."""


@dataclass(frozen=True, slots=True)
class FixedPart:
    """What stands before the messages in every request."""

    system_tokens: int = 0
    tool_tokens: int = 0
    recall: bool | None = None
    """Whether the model can call the recovery tools: a fold names the calls only then. None: nothing was sent yet."""

    @property
    def tokens(self) -> int:
        return self.system_tokens + self.tool_tokens


class PromptSizes:
    """Model, limits, and the measure of the next request."""

    def __init__(self, settings: Settings, model: str, window: int | None) -> None:
        self._settings = settings
        self.last_prompt_tokens = 0
        """As the provider counted the last request; 0: none went out from here."""
        self.fixed = FixedPart()
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._system = ""
        self._raw: float | None = None
        """The raw count of tools and system prompt, for those who measure without having them."""
        self._set_model(model, window)

    def _set_model(self, model: str, window: int | None) -> None:
        self.model = model
        self.counter = TokenCounter.for_model(model or None)
        self._meter = PromptMeter(self.counter)
        self.use_window(window)

    def use_model(self, model: str, window: int | None) -> None:
        """Another model: its window and its way of counting."""
        self._set_model(model, window)
        self._count(recall=self.fixed.recall)

    def use_window(self, window: int | None) -> None:
        """Another window of the same model; None: what is known about it."""
        self.window = window
        self.limits: Limits = limits_of(self._settings, self.model or None, served_window=window)

    def measure_fixed(self, tools: Sequence[Mapping[str, Any]], system: str) -> None:
        """Count what stands before the messages."""
        self._tools, self._system = tools, system
        names = {tool.get("name") or tool.get("function", {}).get("name") for tool in tools}
        self._count(recall="lcm_expand" in names)

    def _count(self, *, recall: bool | None) -> None:
        self._raw = self.counter.raw_fixed(self._tools, self._system)
        self.fixed = FixedPart(
            self.counter.text(self._system) if self._system else 0, self.counter.tools(self._tools), recall
        )

    def read(self, messages: Sequence[Message]) -> PromptSize:
        """The size of a request with these messages, and the tools and system prompt last measured."""
        return self._meter.read(messages, self._tools, self._system)

    def read_stored(self, messages: Sequence[Message]) -> PromptSize:
        """The same for whoever does not have the tools and the system prompt, but what another process counted."""
        raw = self._raw
        if raw is None:
            raw = self.counter.family.framing.request + self.fixed.tokens / self.counter.calibration.factor
        return self._meter.read_beside(messages, raw)

    def sent(self, messages: Sequence[Message]) -> None:
        """A request with these messages goes out: the provider's next count is about it."""
        self._meter.sent(messages, self._tools, self._system)

    def observe(self, prompt_tokens: int) -> None:
        self.last_prompt_tokens = prompt_tokens
        self._meter.observe(prompt_tokens)

    def forget_count(self) -> None:
        """The messages are others now: the provider's count no longer applies."""
        self._meter.reset()

    def export(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "meter": self._meter.export(),
            "fixed": [self.fixed.system_tokens, self.fixed.tool_tokens],
            "fixed_raw": self._raw,
            "recall": self.fixed.recall,
            "window": self.limits.window,
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on where an earlier process stopped: its next decision would have been the same."""
        self._meter.restore(kept.get("meter") or {})
        system, tools = kept.get("fixed") or (0, 0)
        self.fixed = FixedPart(system, tools, kept.get("recall"))
        if self._raw is None:
            self._raw = kept.get("fixed_raw")
