"""What serves a conversation behind the facade: agents and the gateway reach it as `conversation.runtime`.

It holds the log, the sizes, the engine, and the state of compaction as a value. When to compact is the policy's word;
how a compaction of the stored view is carried out stands here and in `compact`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leporello.cancel import CancelToken
from leporello.compaction.pipeline import CompactionResult, CompactionTask
from leporello.compaction.plan import Protection
from leporello.compaction.view import Item, MessageHashes, MessageSizes
from leporello.config import Settings
from leporello.conversation.artifacts import StoredArchive
from leporello.conversation.compact import HELD, CompactionJob, fold_stored
from leporello.conversation.engine import EngineSlot, view_facts
from leporello.conversation.log import ConversationLog
from leporello.conversation.sizes import METER_KEY, FixedPart, PromptSizes
from leporello.errors import FixedPartTooLarge, StoreBusy
from leporello.events import CompactionEvent, CompactionReport, Listener, Outcome
from leporello.messages import Message, is_instruction, role_of
from leporello.models import Limits
from leporello.plugins.host import PluginHost
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
from leporello.recall.tools import RecallTools
from leporello.redact import redact
from leporello.store import Store
from leporello.store.records import ConversationRecord, ModelCall, View
from leporello.summaries.base import Stoppable, Summariser
from leporello.tokens.meter import PromptSize
from leporello.usage import CanonicalUsage

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


class ConversationRuntime:
    """One conversation at work: for agents, gateways and background jobs, not for authors."""

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
        beside: bool = False,
    ) -> None:
        """`beside`: another process leads the session, so that none begins or ends here."""
        self.settings = settings
        self.log = ConversationLog(store, record.id)
        self.sizes = PromptSizes(settings, model or record.metadata.model, window)
        self.hooks = CompactionHooks(summariser)
        self.plugins = EngineSlot(plugins or PluginHost(settings))
        self.state = CompactionState()
        self.last_prompt_tokens = 0
        """As the provider counted the last request; 0: none went out from here."""
        self.archive = StoredArchive(store, record.id, by_meaning=settings.get("recall.vectors"))
        self._platform = record.metadata.platform
        self._limits_changed()
        kept = self._kept()
        if kept:
            self.sizes.restore(kept)
        self._restore_wait(kept)
        if not beside:
            self._begin_session()

    # -- the model and its limits

    def use_model(self, model: str, window: int | None = None) -> None:
        """Go on with another model. What doesn't fit its window is compacted before it is sent."""
        self.sizes.use_model(model, window)
        self._limits_changed()
        self.log.store.conversations.update(self.log.id, model=model)

    def use_window(self, window: int | None) -> None:
        """The model's window is another one than was thought."""
        self.sizes.use_window(window)
        self._limits_changed()

    def _limits_changed(self) -> None:
        self.plugins.engine.update_model(self.sizes.model, self.sizes.limits.window)
        self.state = self._stored_state()

    @property
    def _limits(self) -> Limits:
        """With the threshold of a plugin's engine, where it has one."""
        return self.plugins.engine.adjusted(self.sizes.limits)

    # -- state that outlives the process

    def _stored_state(self) -> CompactionState:
        state = CompactionState(attempts=int(self.log.store.state.get(self.log.id, ATTEMPTS_KEY) or 0))
        return undone(state, self.sizes.limits) if self.log.view.waits_for_hard_limit else state

    def _kept(self) -> Mapping[str, Any]:
        kept = self.log.store.state.get(self.log.id, METER_KEY)
        return kept if isinstance(kept, dict) and kept.get("model") == self.sizes.model else {}

    def _restore_wait(self, kept: Mapping[str, Any]) -> None:
        if kept and kept.get("waits_at") == self.log.view.generation:
            self.state = replace(self.state, wait_for=int(kept.get("waits_for") or self.sizes.limits.hard_tokens))

    def keep(self) -> None:
        """Store what was measured, so that another process goes on from here."""
        waits = {
            "waits_at": self.log.view.generation if self.state.wait_for else None,
            "waits_for": self.state.wait_for,
        }
        self.log.store.state.set(self.log.id, METER_KEY, self.sizes.export() | waits)

    def suspend(self) -> None:
        """Store ledger and measure: opened again, the conversation decides as if it had stayed open."""
        self.log.keep_ledger()
        self.keep()

    def _take_over(self) -> None:
        """Another process compacted or took a compaction back: go on from its measure, as after a restart."""
        fixed = self.sizes.fixed
        self.state = self._stored_state()
        self.sizes.meter.reset()
        kept = self._kept()
        if kept:
            self.sizes.restore(kept)
        self._restore_wait(kept)
        self.sizes.fixed = fixed

    # -- the session

    def _begin_session(self, **switch: str) -> None:
        about = {"platform": self._platform, "model": self.sizes.model, "conversation_id": self.log.id}
        self.plugins.session_begins(self.log.view, about, switch)

    def leave(self, reason: str = "exit") -> None:
        """A real end for engine and plugins: the program ends, the user begins anew, the conversation expired."""
        self.plugins.session_ends(self.log.view, self.log.messages, reason)

    @property
    def recall_tools(self) -> RecallTools:
        """The tools by which a model reads back what was compacted."""
        return RecallTools(self.archive, self.sizes.counter.text)

    # -- the log

    def append(self, messages: Sequence[Message]) -> list[str]:
        """Store messages durably and return their ids for life."""
        generation = self.log.view.generation
        numbers = self.log.append(messages)
        if self.log.view.generation != generation:
            self._take_over()
        if self.state.attempts and any(role_of(message) == "assistant" for message in messages):
            self.answered()
        return [f"m{number}" for number in numbers]

    def refresh(self) -> bool:
        """See what other processes did; whether it was anything."""
        generation = self.log.view.generation
        changed = self.log.refresh()
        if self.log.view.generation != generation:
            self._take_over()
        return changed

    def observe(self, usage: CanonicalUsage) -> None:
        """The provider counted the last request."""
        self.last_prompt_tokens = usage.prompt_tokens
        self.sizes.meter.observe(usage.prompt_tokens)
        self.plugins.engine.update_from_response(usage.as_engine_dict())

    def answered(self) -> None:
        """The model answered: automatic attempts count from zero again."""
        self.state = answered(self.state)
        self.log.store.state.remove(self.log.id, ATTEMPTS_KEY)

    # -- when to compact

    @property
    def reading(self) -> PromptSize:
        """The size of the next request with the tools and the system prompt last measured."""
        return self.sizes.read(self.log.messages)

    def decide(self, occasion: Occasion, tokens: int | None = None) -> Decision:
        """What the policy says about a request of so many tokens; about the next one as things stand when not given."""
        return self.plugins.engine.decide(
            Situation(
                occasion,
                self._limits,
                self.reading.tokens if tokens is None else tokens,
                messages=len(self.log.view.lines),
                state=self.state,
                enabled=self.settings.compression.enabled,
            )
        )

    def prepare(self, tools: Sequence[Mapping[str, Any]], system: str) -> PromptSize:
        """Compact what is due before a request with these tools goes out; raises when the fixed part can't fit."""
        self.sizes.measure_fixed(tools, system)
        reading = self.compact_when_due(Occasion.PREFLIGHT, "preflight")
        if self.decide(Occasion.HARD_LIMIT, reading.tokens).compacts:
            self._make_fit()
            reading = self.reading
        if not fits(self.sizes.limits, reading.tokens):
            self._refuse(reading.tokens)
        self.sizes.sent(self.log.messages)
        return reading

    def compact_when_due(self, occasion: Occasion, trigger: str) -> PromptSize:
        """Compact, or leave it to whoever does it beside the conversation when it can wait; the size after that."""
        reading = self.reading
        decision = self.decide(occasion, reading.tokens)
        if not decision.compacts or (decision.deferrable and self._put_off()):
            return reading
        self._compact(trigger, tokens=reading.tokens)
        return self.reading

    def _put_off(self) -> bool:
        if self.hooks.later is None:
            return False
        fixed = self.sizes.fixed
        return self.hooks.later(
            CompactionJob(
                self.log.id,
                self.log.view.generation,
                self.sizes.model,
                self.sizes.window,
                fixed.system_tokens,
                fixed.tool_tokens,
                fixed.recall,
            )
        )

    def _refuse(self, tokens: int) -> None:
        counter, fixed = self.sizes.counter, self.sizes.fixed
        instructions = sum(counter.message(m) for m in self.log.view.messages if is_instruction(m))
        raise FixedPartTooLarge(
            self.sizes.limits.window,
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
            return CompactionReport(Outcome.BLOCKED, decision.reason, self.plugins.engine.name, trigger=trigger)
        self.sizes.meter.reset()
        window = refused_window(self.sizes.limits, refused)
        if window is None:
            return self._compact(trigger, tokens=refused)
        known = self.sizes.window
        self.use_window(window)
        try:
            return self._compact(trigger, tokens=refused)
        finally:
            self.use_window(known)
            self.keep()

    def do(self, job: CompactionJob) -> CompactionReport | None:
        """Do what was put off; None when somebody compacted since."""
        self.refresh()
        if self.log.view.generation != job.generation:
            return None
        self.sizes.fixed = FixedPart(job.system_tokens, job.tool_tokens, job.recall)
        return self._compact(job.trigger)

    def undo(self) -> View:
        """Show again what was shown before the last compaction, with all that came since."""
        self.log.view = self.log.store.views.undo(self.log.id)
        self.sizes.meter.reset()
        self.state = undone(self.state, self.sizes.limits)
        return self.log.view

    def _make_fit(self) -> None:
        """Compact once more, without a model. Another process that is compacting is waited for."""
        for _ in range(MOST_WAITS):
            report = self._compact("hard limit", tokens=self.reading.tokens, with_model=False)
            if not report.details.get(HELD):
                return
            time.sleep(WAIT_SECONDS)
            self.refresh()
            if fits(self.sizes.limits, self.reading.tokens):
                return
        raise StoreBusy(f"Another process has been folding {self.log.id} for a while; try again.")

    def _compact(self, trigger: str, focus: str = "", *, tokens: int = 0, with_model: bool = True) -> CompactionReport:
        """One compaction of the stored view. `tokens`: what the decision was made by."""
        focus = redact(focus)
        log, store = self.log, self.log.store
        if trigger != MANUAL:
            store.state.add(log.id, ATTEMPTS_KEY)
        for told in self.hooks.before:
            told(trigger)
        self.refresh()
        before = log.view
        facts = view_facts(before)
        self.plugins.fire("pre_compaction", trigger=trigger, focus=focus, tokens=self.reading.tokens, **facts)

        def compact(items: Sequence[Item], fold_number: int) -> CompactionResult:
            self.state = attempted(self.state, trigger)
            task = self._task(items, fold_number, trigger, focus)
            done = self.plugins.engine.compact(task if with_model else replace(task, summariser=None))
            self.state = after(self.state, done.report, self._limits, tokens)
            return done

        report = fold_stored(store, log.id, log.ledger, compact, engine=self.plugins.engine.name, trigger=trigger)
        if report.usage.total_tokens:
            store.usage.add(log.id, ModelCall(report.usage, report.summariser, "summary", report.cost))
        if report.outcome is Outcome.COMMITTED:
            self.sizes.meter.reset()
        log.view = store.views.view(log.id)
        if not report.committed and log.view.generation != before.generation:
            # Somebody else was quicker, or took a fold back: their word counts, not what this attempt learned.
            self._take_over()
        self.keep()
        if report.committed:
            self._begin_session(boundary_reason="compression", old_session_id=before.session)
        self._tell(CompactionEvent(log.id, log.view.generation, report, log.compactions))
        return report

    def _task(self, items: Sequence[Item], fold_number: int, trigger: str, focus: str) -> CompactionTask:
        sizes, summariser = self.sizes, self.hooks.summariser
        if summariser is not None and self.hooks.cancel is not None:
            summariser = Stoppable(summariser, self.hooks.cancel)
        return CompactionTask(
            items=items,
            limits=sizes.limits,
            counter=sizes.counter,
            measure=MessageSizes(sizes.counter, MessageHashes()),
            ledger=self.log.ledger,
            protection=Protection(last=sizes.limits.protect_last_n),
            summariser=summariser,
            focus=focus,
            fold_number=fold_number,
            engine=self.plugins.engine.name,
            trigger=trigger,
            system_tokens=sizes.fixed.system_tokens,
            tool_tokens=sizes.fixed.tool_tokens,
            recall=sizes.fixed.recall,
        )

    def _tell(self, event: CompactionEvent) -> None:
        self.plugins.fire("post_compaction", **event.as_dict(), session_id=self.log.view.session)
        for listener in self.hooks.listeners:
            listener(event)
