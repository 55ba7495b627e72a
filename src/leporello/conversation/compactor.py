"""The compactions of an open conversation: when (the policy says), what is sent along, and the state between them.

The state is a value, and what was measured is stored with the conversation, so that another process decides the same.
How a compaction of the stored view is carried out stands in `compact`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leporello.cancel import CancelToken
from leporello.compaction.pipeline import CompactionResult, CompactionTask
from leporello.compaction.plan import Protection
from leporello.compaction.view import ByObject
from leporello.config import Settings
from leporello.conversation.compact import HELD, CompactionJob, fold_stored
from leporello.conversation.engine import EngineSlot, view_facts
from leporello.conversation.log import ConversationLog
from leporello.conversation.rendering import view_items
from leporello.conversation.sizes import METER_KEY, FixedPart, PromptSizes
from leporello.errors import FixedPartTooLarge, StoreBusy
from leporello.events import CompactionEvent, CompactionReport, Listener, Outcome
from leporello.messages import is_instruction
from leporello.models import Limits
from leporello.policy import (
    MANUAL,
    CompactionState,
    Decision,
    Occasion,
    Situation,
    after,
    answered,
    attempted,
    fits,
    refused_window,
    undone,
)
from leporello.redact import redact
from leporello.store.records import ModelCall, View
from leporello.summaries.base import Stoppable, Summariser
from leporello.tokens.meter import PromptSize

ATTEMPTS_KEY = "compaction.attempts"
MOST_WAITS = 40
WAIT_SECONDS = 0.25


@dataclass(slots=True)
class CompactionHooks:
    """What a host hangs into the compactions of a conversation."""

    summariser: Summariser | None = None
    """Writes the summaries; None: they are made without a model."""
    listeners: list[Listener] = field(default_factory=list)
    """Told what came of a compaction."""
    before: list[Callable[[str], None]] = field(default_factory=list)
    """Told that a compaction begins, and why."""
    cancel: CancelToken | None = None
    """Stops a compaction that is under way; nothing is changed then, and `Cancelled` is raised."""
    later: Callable[[CompactionJob], bool] | None = None
    """Takes compactions that are due but can wait, to be done beside the conversation; False when it can't."""


class Compactor:
    """Compacts one conversation, and keeps the state of it."""

    def __init__(
        self, log: ConversationLog, sizes: PromptSizes, plugins: EngineSlot, hooks: CompactionHooks, settings: Settings
    ) -> None:
        self._log = log
        self._sizes = sizes
        self._plugins = plugins
        self._hooks = hooks
        self._settings = settings
        self.limits_changed()
        self._restore()

    # -- state that outlives the process

    def limits_changed(self) -> None:
        """Another model or window: the engine learns of it, and what an attempt learned no longer holds."""
        self._plugins.engine.update_model(self._sizes.model, self._sizes.limits.window)
        self.state = self._stored_state()

    def _stored_state(self) -> CompactionState:
        state = CompactionState(attempts=int(self._log.store.state.get(self._log.id, ATTEMPTS_KEY) or 0))
        return undone(state, self._sizes.limits) if self._log.view.waits_for_hard_limit else state

    def _restore(self) -> None:
        """Go on from what was stored, if it was measured for this model."""
        kept = self._log.store.state.get(self._log.id, METER_KEY)
        if not isinstance(kept, dict) or kept.get("model") != self._sizes.model:
            return
        self._sizes.restore(kept)
        if kept.get("waits_at") == self._log.view.generation:
            self.state = replace(self.state, wait_for=int(kept.get("waits_for") or self._sizes.limits.hard_tokens))

    def measured(self) -> dict[str, Any]:
        """What another process must know to go on from here."""
        return self._sizes.export() | {
            "waits_at": self._log.view.generation if self.state.wait_for else None,
            "waits_for": self.state.wait_for,
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

    def answered(self) -> None:
        """The model answered: automatic attempts count from zero again."""
        self.count_from_zero()
        self._log.store.state.remove(self._log.id, ATTEMPTS_KEY)

    def count_from_zero(self) -> None:
        """The same, where whoever calls stores it."""
        self.state = answered(self.state)

    # -- when to compact

    @property
    def reading(self) -> PromptSize:
        """The size of the next request with the tools and the system prompt last measured."""
        return self._sizes.read(self._log.sent(self._sizes.fixed.recall))

    @property
    def _limits(self) -> Limits:
        """With the threshold of a plugin's engine, where it has one."""
        return self._plugins.engine.adjusted(self._sizes.limits)

    def decide(self, occasion: Occasion, tokens: int | None = None) -> Decision:
        """What the policy says about a request of so many tokens; about the next one as things stand when not given."""
        return self._plugins.engine.decide(
            Situation(
                occasion,
                self._limits,
                self.reading.tokens if tokens is None else tokens,
                messages=len(self._log.view.lines),
                state=self.state,
                enabled=self._settings.compression.enabled,
            )
        )

    def prepare(self, tools: Sequence[Mapping[str, Any]], system: str) -> PromptSize:
        """Compact what is due before a request with these tools goes out; raises when the fixed part can't fit."""
        self._sizes.measure_fixed(tools, system)
        reading = self.when_due(Occasion.PREFLIGHT, "preflight")
        if self.decide(Occasion.HARD_LIMIT, reading.tokens).compacts:
            self._make_fit()
            reading = self.reading
        if not fits(self._sizes.limits, reading.tokens):
            self._refuse(reading.tokens)
        self._sizes.sent(self._log.sent(self._sizes.fixed.recall))
        return reading

    def when_due(self, occasion: Occasion, trigger: str) -> PromptSize:
        """Compact, or leave it to whoever does it beside the conversation when it can wait; the size after that."""
        reading = self.reading
        decision = self.decide(occasion, reading.tokens)
        if not decision.compacts or (decision.deferrable and self._put_off()):
            return reading
        self._compact(trigger, tokens=reading.tokens)
        return self.reading

    def _put_off(self) -> bool:
        if self._hooks.later is None:
            return False
        fixed = self._sizes.fixed
        return self._hooks.later(
            CompactionJob(
                self._log.id,
                self._log.view.generation,
                self._sizes.model,
                self._sizes.window,
                fixed.system_tokens,
                fixed.tool_tokens,
                bool(fixed.recall),
            )
        )

    def _refuse(self, tokens: int) -> None:
        counter, fixed = self._sizes.counter, self._sizes.fixed
        instructions = sum(counter.message(m) for m in self._log.view.messages if is_instruction(m))
        raise FixedPartTooLarge(
            self._sizes.limits.window,
            {
                "system": fixed.system_tokens + instructions,
                "tools": fixed.tool_tokens,
                "messages that stay": tokens - fixed.tokens - instructions,
            },
        )

    # -- compaction

    def compact(self, focus: str = "") -> CompactionReport:
        """Compact now, by hand: never refused for earlier attempts, never counted as one."""
        return self._compact(MANUAL, focus)

    def shrink(self, trigger: str) -> CompactionReport:
        """Compact because the request is too long, whatever the threshold says; the report says when it is blocked."""
        refused = self.reading.tokens
        decision = self.decide(Occasion.OVERFLOW, refused)
        if not decision.compacts:
            return CompactionReport(Outcome.BLOCKED, decision.reason, self._plugins.engine.name, trigger=trigger)
        self._sizes.forget_count()
        window = refused_window(self._sizes.limits, refused)
        if window is None:
            return self._compact(trigger, tokens=refused)
        known = self._sizes.window
        self._use_window(window)
        try:
            return self._compact(trigger, tokens=refused)
        finally:
            self._use_window(known)
            self.keep()

    def _use_window(self, window: int | None) -> None:
        self._sizes.use_window(window)
        self.limits_changed()

    def do(self, job: CompactionJob) -> CompactionReport | None:
        """Do what was put off; None when somebody compacted since."""
        self._log.refresh()
        if self._log.view.generation != job.generation:
            return None
        self._sizes.fixed = FixedPart(job.system_tokens, job.tool_tokens, job.recall)
        return self._compact(job.trigger)

    def undo(self) -> View:
        """Show again what was shown before the last compaction, with all that came since."""
        self._log.view = self._log.store.views.undo(self._log.id)
        self._sizes.forget_count()
        self.state = undone(self.state, self._sizes.limits)
        return self._log.view

    def _make_fit(self) -> None:
        """Compact once more, without a model. Another process that is compacting is waited for."""
        for _ in range(MOST_WAITS):
            report = self._compact("hard limit", tokens=self.reading.tokens, with_model=False)
            if not report.details.get(HELD):
                return
            time.sleep(WAIT_SECONDS)
            self._log.refresh()
            if fits(self._sizes.limits, self.reading.tokens):
                return
        raise StoreBusy(f"Another process has been folding {self._log.id} for a while; try again.")

    def _compact(self, trigger: str, focus: str = "", *, tokens: int = 0, with_model: bool = True) -> CompactionReport:
        """One compaction of the stored view. `tokens`: what the decision was made by."""
        focus = redact(focus)
        log, store = self._log, self._log.store
        if trigger != MANUAL:
            store.state.add(log.id, ATTEMPTS_KEY)
        for told in self._hooks.before:
            told(trigger)
        self._log.refresh()
        before = log.view
        facts = view_facts(before)
        self._plugins.fire("pre_compaction", trigger=trigger, focus=focus, tokens=self.reading.tokens, **facts)

        def compact(view: View) -> CompactionResult:
            self.state = attempted(self.state, trigger)
            task = self._task(view, trigger, focus)
            done = self._plugins.engine.compact(task if with_model else replace(task, summariser=None))
            self.state = after(self.state, done.report, self._limits, tokens)
            return done

        report = fold_stored(store, log.id, log.ledger, compact, engine=self._plugins.engine.name, trigger=trigger)
        if report.usage.total_tokens:
            store.usage.add(log.id, ModelCall(report.usage, report.summariser, "summary", report.cost))
        if report.outcome is Outcome.COMMITTED:
            self._sizes.forget_count()
        log.view = store.views.view(log.id)
        if not report.committed and log.view.generation != before.generation:
            # Somebody else was quicker, or took a fold back: their word counts, not what this attempt learned.
            self.take_over()
        self.keep()
        if report.committed:
            self._plugins.session_begins(
                log.view, self._sizes.model, boundary_reason="compression", old_session_id=before.session
            )
        self._tell(CompactionEvent(log.id, log.view.generation, report, log.compactions))
        return report

    def _task(self, view: View, trigger: str, focus: str) -> CompactionTask:
        sizes, summariser = self._sizes, self._hooks.summariser
        if summariser is not None and self._hooks.cancel is not None:
            summariser = Stoppable(summariser, self._hooks.cancel)
        return CompactionTask(
            items=view_items(view.lines, sizes.fixed.recall),
            limits=sizes.limits,
            counter=sizes.counter,
            measure=ByObject(sizes.counter.message),
            ledger=self._log.ledger,
            protection=Protection(last=sizes.limits.protect_last_n),
            summariser=summariser,
            focus=focus,
            fold_number=view.folds + 1,
            engine=self._plugins.engine.name,
            trigger=trigger,
            system_tokens=sizes.fixed.system_tokens,
            tool_tokens=sizes.fixed.tool_tokens,
            recall=bool(sizes.fixed.recall),
        )

    def _tell(self, event: CompactionEvent) -> None:
        self._plugins.fire("post_compaction", **event.as_dict(), session_id=self._log.view.session)
        for listener in self._hooks.listeners:
            listener(event)
