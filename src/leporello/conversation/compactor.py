"""The compactions of an open conversation: when (the policy says), and what is sent along.

The state between them is a value (`sizes.CompactionMemory`). How a compaction of the stored view is carried out stands
in `compact`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from leporello.compaction.pipeline import CompactionResult, CompactionTask
from leporello.compaction.plan import Protection
from leporello.compaction.view import ByObject
from leporello.config import Settings
from leporello.conversation.compact import HELD, CompactionHooks, CompactionJob, fold_stored
from leporello.conversation.log import ConversationLog
from leporello.conversation.rendering import view_items
from leporello.conversation.sizes import ATTEMPTS_KEY, METER_KEY, CompactionMemory, FixedPart, PromptSizes
from leporello.errors import FixedPartTooLarge, StoreBusy
from leporello.events import CompactionEvent, CompactionReport, Outcome
from leporello.models import Limits
from leporello.plugins.host import EngineSlot, view_facts
from leporello.policy.decision import (
    Decision,
    Occasion,
    Situation,
    brief,
    depth_of,
    due_at,
    fits,
    forecast,
    outlook,
    refused_window,
)
from leporello.policy.state import (
    COLD,
    MANUAL,
    after,
    attempted,
    cache_broken,
    sent,
    undone,
)
from leporello.redact import redact
from leporello.store.records import ModelCall, View
from leporello.summaries.base import LateSummary, Stoppable
from leporello.summaries.model import ModelSummariser
from leporello.tokens.meter import PromptSize

LATE_TRIGGER = "late summary"
PATIENCE = 60.0
"""Seconds beyond its deadline that a model may take for a summary where nobody waits for it."""
MOST_WAITS = 40
WAIT_SECONDS = 0.25


class Compactor:
    """Compacts one conversation."""

    def __init__(
        self,
        log: ConversationLog,
        sizes: PromptSizes,
        plugins: EngineSlot,
        hooks: CompactionHooks,
        settings: Settings,
        memory: CompactionMemory,
    ) -> None:
        self._log = log
        self._sizes = sizes
        self._plugins = plugins
        self._hooks = hooks
        self._settings = settings
        self._memory = memory
        self.told: tuple[str, ...] = ()
        """What was decided last, and what was saved so far."""

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
        return self._plugins.engine.decide(self.situation(occasion, self.reading.tokens if tokens is None else tokens))

    def situation(self, occasion: Occasion, tokens: int) -> Situation:
        """Everything that a decision about a request of so many tokens is made from."""
        return Situation(
            occasion,
            self._limits,
            tokens,
            messages=len(self._log.view.lines),
            state=self._memory.state,
            enabled=self._settings.compression.enabled,
            fixed=self._fixed_tokens,
            depth=self.depth,
            prices=self._memory.prices,
            summary_model=self._hooks.summariser is not None,
            now=self._log.store.database.now() / 1_000,
        )

    def outlook(self) -> list[str]:
        """What would be done before the next request, why, and what was saved so far; for people."""
        situation = self.situation(Occasion.PREFLIGHT, self.reading.tokens)
        return outlook(situation, self._plugins.engine.decide(situation))

    def brief(self, tokens: int) -> list[str]:
        """The same about a request of so many tokens, for a status line."""
        situation = self.situation(Occasion.PREFLIGHT, tokens)
        return brief(situation, self._plugins.engine.decide(situation))

    @property
    def due_at(self) -> int:
        """At how many tokens the next compaction is made, whatever it costs."""
        return due_at(self._limits, self._memory.state, self._fixed_tokens, self.depth)

    @property
    def warm(self) -> bool:
        """Whether the model still has the last request in its cache."""
        sent_at, seconds = self._memory.state.sent_at, self._memory.prices.warm_seconds
        return sent_at > COLD and (seconds is None or self._log.store.database.now() / 1_000 - sent_at < seconds)

    @property
    def depth(self) -> int:
        """Foldable tokens that a compaction aims to leave."""
        return depth_of(self._sizes.limits, self._fixed_tokens, self._settings.compression.policy)

    @property
    def _fixed_tokens(self) -> int:
        return self._sizes.fixed.tokens + sum(map(self._sizes.counter.message, self._log.instructions))

    def break_cache(self) -> None:
        """A tool comes back while the cache is warm: that is paid for, and a compaction costs nothing beside it.

        It is made here, while the call that asked for the tool is answered, so that no request waits for it.
        """
        self._memory.state = cache_broken(self.situation(Occasion.PREFLIGHT, self.reading.tokens))
        self._memory.keep()
        self.when_due(Occasion.PREFLIGHT, "find tools")

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
        self._memory.state = sent(self.situation(Occasion.PREFLIGHT, reading.tokens))
        return reading

    def when_due(self, occasion: Occasion, trigger: str) -> PromptSize:
        """Compact, or leave it to whoever does it beside the conversation when it can wait; the size after that."""
        reading = self.reading
        situation = self.situation(occasion, reading.tokens)
        decision = self._plugins.engine.decide(situation)
        self.told = tuple(outlook(situation, decision))
        if not decision.compacts or (decision.deferrable and self._put_off(reading.tokens)):
            return reading
        cold = decision.forecast is not None and decision.forecast.cold
        self._compact(trigger, situation=situation, with_model=not cold)
        return self.reading

    def _put_off(self, tokens: int) -> bool:
        """Hand the compaction to whoever makes it beside the conversation; once, until there is much more to fold."""
        if self._hooks.later is None:
            return False
        fixed = self._sizes.fixed
        job = CompactionJob(
            self._log.id,
            self._log.view.generation,
            self._sizes.model,
            self._sizes.window,
            fixed.system_tokens,
            fixed.tool_tokens,
            bool(fixed.recall),
            tokens=tokens,
        )
        if not job.again(self._memory.put_off):
            return True
        # Whoever makes it goes on from this process's state.
        self._memory.keep()
        if not self._hooks.later(job):
            return False
        self._memory.put_off = job
        return True

    def _refuse(self, tokens: int) -> None:
        fixed = self._sizes.fixed
        instructions = self._fixed_tokens - fixed.tokens
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
        """Compact now, by hand: never refused for earlier attempts, never counted as one.

        One that somebody else is making is waited for; without a focus of its own it is what was asked for.
        """
        before = self._log.view.generation
        if self._wait_for_others() and self._log.view.generation > before and not focus:
            return self._log.store.views.attempts(self._log.id, 1)[0].report
        return self._compact(MANUAL, focus, situation=self.situation(Occasion.MANUAL, self.reading.tokens))

    def _wait_for_others(self) -> bool:
        """Wait while another compaction is under way, as long as one may take; whether there was one."""
        longest = self._settings.compression.deadline + MOST_WAITS * WAIT_SECONDS
        waited = 0.0
        while waited < longest and self._log.store.leases.holder(self._log.id) is not None:
            time.sleep(WAIT_SECONDS)
            waited += WAIT_SECONDS
        if waited:
            self._log.refresh()
        return waited > 0

    def shrink(self, trigger: str) -> CompactionReport:
        """Compact because the request is too long, whatever the threshold says; the report says when it is blocked.

        What somebody else makes of the same view is as good, and is waited for.
        """
        before, report = self._log.view.generation, self._shrink(trigger)
        if report.details.get(HELD):
            self._wait_for_others()
        if report.details.get(HELD) and self._log.view.generation > before:
            return self._log.store.views.attempts(self._log.id, 1)[0].report
        return report

    def _shrink(self, trigger: str) -> CompactionReport:
        refused = self.reading.tokens
        situation = self.situation(Occasion.OVERFLOW, refused)
        decision = self._plugins.engine.decide(situation)
        if not decision.compacts:
            return CompactionReport(Outcome.BLOCKED, decision.reason, self._plugins.engine.name, trigger=trigger)
        self._sizes.forget_count()
        window = refused_window(self._sizes.limits, refused)
        if window is None:
            return self._compact(trigger, situation=situation)
        known = self._sizes.window
        self._use_window(window)
        try:
            return self._compact(trigger, situation=situation)
        finally:
            self._use_window(known)
            self._memory.keep()

    def _use_window(self, window: int | None) -> None:
        self._sizes.use_window(window)
        self._memory.limits_changed()

    def do(self, job: CompactionJob) -> CompactionReport | None:
        """Do what was put off; None when somebody compacted since."""
        self._log.refresh()
        if self._log.view.generation != job.generation:
            return None
        self._sizes.fixed = FixedPart(job.system_tokens, job.tool_tokens, job.recall)
        writer, base, deadline = self._hooks.summariser, self._log.view, self._settings.compression.deadline
        situation = self.situation(Occasion.PREFLIGHT, job.tokens)
        if not isinstance(writer, ModelSummariser):
            return self._compact(job.trigger, situation=situation)
        # Nobody waits for it: a model may take longer than the deadline.
        late = LateSummary(replace(writer, deadline=deadline + PATIENCE), deadline)
        self._hooks.summariser = late
        try:
            report = self._compact(job.trigger, situation=situation)
            fresh = report.committed and self._log.view.generation == base.generation + 1
            return (self._swap(late, base) if fresh and late.missed else None) or report
        finally:
            self._hooks.summariser = writer

    def _swap(self, late: LateSummary, base: View) -> CompactionReport | None:
        """The model's summary in place of the one that stood in for it, while no request shows that one.

        Later it would break the cache for the same tokens a second time, so it is given up as soon as anything is said.
        """
        log, made = self._log, self._log.view

        def unseen() -> bool:
            log.refresh()
            return (log.view.generation, log.view.last) == (made.generation, made.last)

        if not late.comes(PATIENCE, unseen) or not unseen():
            return None
        task = replace(self._task(base, LATE_TRIGGER, ""), fold_number=made.folds + 1)
        report, view = fold_stored(
            log.store,
            log.id,
            log.ledger,
            lambda _: self._plugins.engine.compact(task),
            engine=self._plugins.engine.name,
            trigger=LATE_TRIGGER,
            state=lambda generation: {METER_KEY: self._memory.measured(generation)},
            instead=base,
        )
        return self._closed(report, made, view) if report.committed else None

    def undo(self) -> View:
        """Show again what was shown before the last compaction, with all that came since."""
        self._log.view = self._log.store.views.undo(self._log.id)
        self._sizes.forget_count()
        self._memory.state = undone(self._memory.state, self._sizes.limits)
        return self._log.view

    def _make_fit(self) -> None:
        """Compact once more, without a model. Another process that is compacting is waited for."""
        for _ in range(MOST_WAITS):
            situation = self.situation(Occasion.HARD_LIMIT, self.reading.tokens)
            report = self._compact("hard limit", situation=situation, with_model=False)
            if not report.details.get(HELD):
                return
            if not fits(self._sizes.limits, self.reading.tokens):
                time.sleep(WAIT_SECONDS)
                self._log.refresh()
            if fits(self._sizes.limits, self.reading.tokens):
                return
        raise StoreBusy(f"Another process has been folding {self._log.id} for a while; try again.")

    def _compact(
        self, trigger: str, focus: str = "", *, situation: Situation, with_model: bool = True
    ) -> CompactionReport:
        """One compaction of the stored view. `situation`: what the decision was made from.

        By itself it compacts only the view that the decision was about: whoever was quicker has done it.
        """
        focus = redact(focus)
        log, store = self._log, self._log.store
        decided = None if trigger == MANUAL else log.view.generation
        if trigger != MANUAL:
            store.state.add(log.id, ATTEMPTS_KEY)
        for told in self._hooks.before:
            told(trigger)
        self._log.refresh()
        before = log.view
        facts = view_facts(before)
        self._plugins.fire("pre_compaction", trigger=trigger, focus=focus, tokens=self.reading.tokens, **facts)

        def compact(view: View) -> CompactionResult:
            self._memory.state = attempted(self._memory.state, trigger)
            task = self._task(view, trigger, focus)
            done = self._plugins.engine.compact(task if with_model else replace(task, summariser=None))
            cost = forecast(situation, self._memory.prices).cost
            self._memory.state = after(self._memory.state, done.report, self._limits, situation.tokens, cost)
            return replace(done, report=_with_inputs(done.report, situation))

        report, view = fold_stored(
            store,
            log.id,
            log.ledger,
            compact,
            engine=self._plugins.engine.name,
            trigger=trigger,
            state=lambda generation: {METER_KEY: self._memory.measured(generation)},
            decided=decided,
        )
        return self._closed(report, before, view)

    def _closed(self, report: CompactionReport, before: View, view: View) -> CompactionReport:
        """A compaction is over: what it cost is stored, its view is shown, and everybody is told."""
        log, store = self._log, self._log.store
        if report.usage.total_tokens:
            store.usage.add(log.id, ModelCall(report.usage, report.summariser, "summary", report.cost))
        if report.outcome is Outcome.COMMITTED:
            self._sizes.forget_count()
            log.ledger_kept()
        log.view = view
        if not report.committed and log.view.generation != before.generation:
            # Somebody else was quicker, or took a fold back: their word counts, not what this attempt learned.
            self._memory.take_over()
        if not report.committed:
            self._memory.keep()
        else:
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
            depth=self.depth,
            live=self._hooks.live,
        )

    def _tell(self, event: CompactionEvent) -> None:
        self._plugins.fire("post_compaction", **event.as_dict(), session_id=self._log.view.session)
        for listener in self._hooks.listeners:
            listener(event)


def _with_inputs(report: CompactionReport, situation: Situation) -> CompactionReport:
    """With the inputs of its decision, from which it can be made again."""
    return replace(report, details={**report.details, "situation": situation.as_dict()})
