"""What a conversation is at any moment: its view, its ledger, its measure, its engine; kept with what others do.

`Conversation` builds on it what an agent does in a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leporello.cancel import CancelToken
from leporello.config import Settings
from leporello.conversation.artifacts import StoredArchive
from leporello.conversation.compact import CompactionJob
from leporello.conversation.engine import EngineSlot, view_facts
from leporello.conversation.rendering import RenderedView
from leporello.engines.compressor import ContextCompressor
from leporello.events import Listener, Span
from leporello.ledger import ledger as snapshot
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, role_of
from leporello.models import Limits
from leporello.models.limits import limits_of
from leporello.plugins.host import PluginExtras, PluginHost
from leporello.store import Store
from leporello.store.records import ConversationRecord, LedgerSnapshot, View, ViewLine
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptMeter, PromptSize

ATTEMPTS_KEY = "compaction.attempts"
METER_KEY = "tokens.meter"


class ConversationState:
    """A conversation in a store: model, limits, log and measure."""

    def __init__(
        self,
        store: Store,
        record: ConversationRecord,
        settings: Settings,
        *,
        model: str = "",
        window: int | None = None,
        summariser: Summariser | None = None,
        plugins: PluginHost | None = None,
        owns_store: bool = False,
        beside: bool = False,
    ) -> None:
        """`beside`: another process leads the session, so that none begins or ends here."""
        self.store = store
        self.id = record.id
        self.settings = settings
        self.model = model or record.metadata.model
        self.listeners: list[Listener] = []
        self.before_folding: list[Callable[[str], None]] = []
        """Told that a folding begins, and why."""
        self.cancel: CancelToken | None = None
        """Stops a folding that is under way; nothing is changed then, and `Cancelled` is raised."""
        self.later: Callable[[CompactionJob], bool] | None = None
        """Takes foldings that are due but can wait, to be done beside the conversation; False when it can't."""
        self._owns_store = owns_store
        self._window = window
        self._narrator = summariser
        self._can_recall = False
        self._fixed: tuple[Sequence[Mapping[str, Any]], str] = ((), "")
        self._fixed_raw: float | None = None
        """The raw count of tools and system prompt, for those who measure without having them."""
        self._view: View = store.views.view(self.id)
        self._sent = RenderedView()
        self.counter = TokenCounter.for_model(self.model or None)
        self.meter = PromptMeter(self.counter)
        self._slot = EngineSlot(plugins or PluginHost(settings))
        self.engine = self._make_engine(self._load_ledger())
        self._restore_measure()
        self._platform = record.metadata.platform
        if not beside:
            self._begin_session()
        self.archive = StoredArchive(store, self.id, by_meaning=settings.get("recall.vectors"))

    # -- the model and its limits

    @property
    def limits(self) -> Limits:
        """Window, threshold and caps in force."""
        return self.engine.limits

    def use_model(self, model: str, window: int | None = None) -> None:
        """Go on with another model: its window, its way of counting. What doesn't fit is folded before it is sent."""
        self.model = model
        self._window = window
        self.counter = TokenCounter.for_model(model or None)
        self.meter = PromptMeter(self.counter)
        self._fixed_raw = self.counter.raw_fixed(*self._fixed)
        self.engine = self._make_engine(self.engine.ledger)
        self.store.conversations.update(self.id, model=model)

    def use_window(self, window: int) -> None:
        """The model's window is smaller than was thought."""
        self._window = window
        self.engine = self._make_engine(self.engine.ledger)

    def _make_engine(self, ledger: Ledger) -> ContextCompressor:
        limits = limits_of(self.settings, self.model or None, served_window=self._window)
        engine = self._slot.make(limits, self.counter, self._narrator, self.model)
        engine.recall = self._can_recall
        tools, words = self._fixed
        engine.tool_tokens = self.counter.tools(tools)
        engine.system_tokens = self.counter.text(words) if words else 0
        engine.compression_count = self._view.folds
        engine.ledger = ledger
        engine.attempts = int(self.store.state.get(self.id, ATTEMPTS_KEY) or 0)
        if self._view.waits_for_hard_limit:
            engine.wait_for = limits.hard_tokens
        return engine

    # -- plugins

    @property
    def plugins(self) -> PluginHost:
        """The host of the plugins that the settings name."""
        return self._slot.host

    @property
    def extras(self) -> PluginExtras:
        """Tools, commands, hooks and summarisers that plugins bring into this conversation."""
        return self._slot.extras

    @property
    def troubles(self) -> list[str]:
        """What is wrong with plugins, to be shown at the start and in every status until it is mended."""
        return self._slot.troubles

    def note(self, text: str) -> None:
        """Something about plugins that the user should know; shown once, and in every status."""
        self._slot.note(text)

    def _begin_session(self, **switch: str) -> None:
        about = {"platform": self._platform, "model": self.model, "conversation_id": self.id}
        self._slot.session_begins(self.engine, self._view, about, switch)

    def leave(self, reason: str = "exit") -> None:
        """A real end for engine and plugins: the program ends, the user begins anew, the conversation expired."""
        self.engine.on_session_end(self._view.session, self.messages)
        self._slot.fire("session_end", **view_facts(self._view), reason=reason)

    def _restore_measure(self) -> None:
        """Go on measuring where an earlier process stopped: its next decision would have been the same."""
        kept = self.store.state.get(self.id, METER_KEY)
        if not isinstance(kept, dict) or kept.get("model") != self.model:
            return
        self.meter.restore(kept.get("meter") or {})
        self.engine.system_tokens, self.engine.tool_tokens = kept.get("fixed") or (0, 0)
        if self._fixed_raw is None:
            self._fixed_raw = kept.get("fixed_raw")
        self.engine.recall = self._can_recall = bool(kept.get("recall"))
        if kept.get("waits_at") == self._view.generation:
            self.engine.wait_for = int(kept.get("waits_for") or self.limits.hard_tokens)

    def _keep_measure(self) -> None:
        waits_at = self._view.generation if self.engine.wait_for else None
        measure = {
            "model": self.model,
            "meter": self.meter.export(),
            "waits_at": waits_at,
            "waits_for": self.engine.wait_for,
            "fixed": [self.engine.system_tokens, self.engine.tool_tokens],
            "fixed_raw": self._fixed_raw,
            "recall": self._can_recall,
            "window": self.limits.window,
        }
        self.store.state.set(self.id, METER_KEY, measure)

    def suspend(self) -> None:
        """Store ledger and measure: opened again, the conversation decides as if it had stayed open."""
        ledger = self.engine.ledger
        self.store.ledgers.save(self.id, LedgerSnapshot(ledger.last, snapshot.VERSION, snapshot.save(ledger)))
        self._keep_measure()

    def _load_ledger(self) -> Ledger:
        """The newest snapshot, brought up to date with what was appended since."""
        kept = self.store.ledgers.latest(self.id, snapshot.VERSION, self._view.last)
        ledger = snapshot.load(kept.data) if kept else Ledger(renumbers=False)
        for stored in self.store.log.iterate(self.id, ledger.last + 1, self._view.last):
            ledger.add(stored.number, stored.message)
        if kept is None and self._view.compactions and not self.store.read_only:
            # Written by an earlier version, or lost: made once, not at every opening.
            self.store.ledgers.save(self.id, LedgerSnapshot(ledger.last, snapshot.VERSION, snapshot.save(ledger)))
        return ledger

    # -- the log

    @property
    def view(self) -> View:
        """What is shown now, with ids."""
        return self._view

    @property
    def messages(self) -> list[Message]:
        """The view as it is sent: calls and results that match, neighbouring user messages as one."""
        return self._sent.messages(self._view)

    def append(self, *messages: Message) -> list[str]:
        """Store messages durably and return their ids for life."""
        numbers = self.store.log.append(self.id, list(messages))
        self._catch_up(numbers, messages)
        if self.engine.attempts and any(role_of(message) == "assistant" for message in messages):
            self._answered()
        return [f"m{number}" for number in numbers]

    def _answered(self) -> None:
        """A model answered: automatic attempts to fold count from zero again."""
        self.engine.attempts = 0
        self.store.state.remove(self.id, ATTEMPTS_KEY)

    def _catch_up(self, numbers: Sequence[int], messages: Sequence[Message]) -> None:
        expected = self.engine.ledger.last + 1
        if numbers and numbers[0] == expected:
            lines = [ViewLine(message, number) for number, message in zip(numbers, messages, strict=True)]
            self._view = replace(self._view, lines=(*self._view.lines, *lines), last=numbers[-1])
            for number, message in zip(numbers, messages, strict=True):
                self.engine.ledger.add(number, message)
        elif numbers:
            # Another process appended in between: its messages belong to the view and the ledger first.
            self.refresh()

    def refresh(self) -> bool:
        """See what other processes did; whether it was anything. Costs one small query when it was nothing."""
        pulse = self.store.conversations.pulse(self.id)
        known = self._view
        if (pulse.generation, pulse.messages) == (known.generation, known.last):
            return False
        if pulse.generation == known.generation:
            fresh = self.store.log.span(self.id, Span(known.last + 1, pulse.messages))
            lines = [ViewLine(stored.message, stored.number) for stored in fresh]
            self._view = replace(known, lines=(*known.lines, *lines), last=pulse.messages)
        else:
            self._view = self.store.views.view(self.id)
        for stored in self.store.log.iterate(self.id, self.engine.ledger.last + 1, self._view.last):
            self.engine.ledger.add(stored.number, stored.message)
        if pulse.generation != known.generation:
            self._take_over()
        return True

    def _take_over(self) -> None:
        """Another process folded or took a fold back: go on from its measure, as after a restart."""
        self.engine.compression_count = self._view.folds
        self.engine.attempts = int(self.store.state.get(self.id, ATTEMPTS_KEY) or 0)
        self.engine.wait_for = self.limits.hard_tokens if self._view.waits_for_hard_limit else 0
        self.meter.reset()
        fixed = self.engine.system_tokens, self.engine.tool_tokens, self.engine.recall
        self._restore_measure()
        self.engine.system_tokens, self.engine.tool_tokens, self.engine.recall = fixed

    # -- its size

    def measure_fixed(self, tools: Sequence[Mapping[str, Any]], system: str) -> None:
        """Count what stands before the messages in every request."""
        self._fixed = (tools, system)
        self._fixed_raw = self.counter.raw_fixed(tools, system)
        self.engine.tool_tokens = self.counter.tools(tools)
        # A fold names the recovery calls only where the model can make them.
        names = {tool.get("name") or tool.get("function", {}).get("name") for tool in tools}
        self.engine.recall = self._can_recall = "lcm_expand" in names
        self.engine.system_tokens = self.counter.text(system) if system else 0

    @property
    def reading(self) -> PromptSize:
        """The size of the next request with the tools and the system prompt last measured."""
        return self.meter.read(self.messages, *self._fixed)
