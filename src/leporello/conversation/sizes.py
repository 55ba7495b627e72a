"""How large the next request of a conversation is, for which model and within which limits; what is remembered of it.

What was measured and decided is stored with the conversation, so that another process goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from leporello.config import Settings
from leporello.conversation.compact import CompactionJob
from leporello.conversation.log import ConversationLog
from leporello.dialects.pieces import DEFERRED
from leporello.messages import Message
from leporello.models import Limits, model_facts
from leporello.models.limits import limits_of
from leporello.plugins.host import EngineSlot
from leporello.policy.decision import CompactionState
from leporello.policy.prices import PriceTable, price_table
from leporello.policy.state import COLD, answered, kept_state, undone, with_kept
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptMeter, PromptSize

METER_KEY = "tokens.meter"
"""In the state of a conversation: what a process measured, so that the next one goes on from there."""
ATTEMPTS_KEY = "compaction.attempts"
POLICY_KEY = "policy"
"""In what was measured: the state that the next decision starts from."""


class FixedPart(Struct, frozen=True):
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
        self.ephemeral = 0
        """Tokens of the request under way that no later one will have."""
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
        """Count what stands before the messages; not tools that the provider loads when they are looked for."""
        self._tools, self._system = [tool for tool in tools if not tool.get(DEFERRED)], system
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
        self._meter.observe(max(0, prompt_tokens - self.ephemeral))

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


class CompactionMemory:
    """What requests and compactions leave behind for the next decision, kept with the conversation."""

    def __init__(self, log: ConversationLog, sizes: PromptSizes, plugins: EngineSlot, settings: Settings) -> None:
        self._log = log
        self._sizes = sizes
        self._plugins = plugins
        self._settings = settings
        self.state = CompactionState()
        self.put_off: CompactionJob | None = None
        """What was left to others last."""
        self.prices = self._price_table()
        self.limits_changed()
        self._restore()

    def limits_changed(self) -> None:
        """Another model or window: the engine learns of it, and what an attempt learned no longer holds."""
        self._plugins.engine.update_model(self._sizes.model, self._sizes.limits.window)
        was, table = self.state, self.prices
        self.prices = self._price_table()
        saved = self.prices.converted(was.saved, table)
        self.state = replace(self._stored_state(), sent_at=was.sent_at, dropped=was.dropped, saved=saved)

    def model_changed(self) -> None:
        """Another model has nothing of this conversation in its cache."""
        self.limits_changed()
        if self.state.sent_at:
            self.state = replace(self.state, sent_at=COLD)

    def _price_table(self) -> PriceTable:
        facts = model_facts(self._sizes.model or None, overrides=self._settings.get("models"))
        return price_table(facts, self._settings.prompt_caching.cache_ttl)

    def _stored_state(self) -> CompactionState:
        state = CompactionState(attempts=int(self._log.store.state.get(self._log.id, ATTEMPTS_KEY) or 0))
        return undone(state, self._sizes.limits) if self._log.view.waits_for_hard_limit else state

    def _restore(self) -> None:
        """Go on from what was stored, if it was measured for this model."""
        kept = self._log.store.state.get(self._log.id, METER_KEY)
        if not isinstance(kept, dict) or kept.get("model") != self._sizes.model:
            return
        self._sizes.restore(kept)
        here = self._log.view.generation
        if kept.get("waits_at") == here:
            self.state = replace(self.state, wait_for=int(kept.get("waits_for") or self._sizes.limits.hard_tokens))
        self.state = with_kept(self.state, kept.get(POLICY_KEY), here)

    def measured(self, generation: int | None = None) -> dict[str, Any]:
        """What another process must know to go on from here, or from another generation of the view."""
        shown = self._log.view.generation
        generation = shown if generation is None else generation
        exported = self._sizes.export()
        if generation != shown:
            # The provider's count of the old view says nothing of the new one.
            exported["meter"] = {name: exported["meter"].get(name) for name in ("v", "hidden", "counter")}
        return exported | {
            "waits_at": generation if self.state.wait_for else None,
            "waits_for": self.state.wait_for,
            POLICY_KEY: kept_state(self.state, generation),
        }

    def keep(self) -> None:
        self._log.store.state.set(self._log.id, METER_KEY, self.measured())

    def take_over(self) -> None:
        """Another process compacted or took a compaction back: go on from its measure, as after a restart."""
        fixed = self._sizes.fixed
        self.state = self._stored_state()
        self._sizes.forget_count()
        self._restore()
        self._sizes.fixed = fixed

    @property
    def attempted(self) -> bool:
        """Whether attempts may have been counted since the last answer: here, or by whoever does what was put off."""
        return bool(self.state.attempts or self.put_off)

    def answered(self) -> None:
        """The model answered: automatic attempts count from zero again."""
        self.count_from_zero()
        self._log.store.state.remove(self._log.id, ATTEMPTS_KEY)

    def count_from_zero(self) -> None:
        """The same, where whoever calls stores it."""
        self.state = answered(self.state)
