"""`Conversation`: the facade an agent author meets. The log grows in the store; the model sees the folded view."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from leporello import caching
from leporello.config import Settings, load_settings
from leporello.conversation.artifacts import Pinboard, StoredArtifacts, outputs_folder, waiting_call
from leporello.conversation.compact import HELD, CompactionJob, fold_stored
from leporello.conversation.engine import view_facts
from leporello.conversation.rendering import Request, decode
from leporello.conversation.state import ATTEMPTS_KEY, ConversationState
from leporello.deprecation import renamed_parameter
from leporello.engines.compressor import MOST_ATTEMPTS
from leporello.engines.plugin_engine import PluginEngine
from leporello.errors import FixedPartTooLarge, InputError, StoreBusy
from leporello.events import CompactionEvent, CompactionReport, Outcome
from leporello.messages import Message, decode_json, is_instruction, text_of
from leporello.models import cost, model_facts
from leporello.plugins.host import PluginHost
from leporello.providers.base import ModelReply
from leporello.recall.base import DEFAULT_TOKENS, RecallQuery, Window
from leporello.recall.tools import RecallTools
from leporello.redact import redact
from leporello.store import Store, find_or_create, open_store
from leporello.store.records import Metadata, ModelCall, UsageTotals, View
from leporello.summaries.base import Stoppable, Summariser
from leporello.tools.base import OutputLimits
from leporello.tools.budget import OutputBudget

MOST_WAITS = 40
WAIT_SECONDS = 0.25


class Conversation(ConversationState):
    """One conversation in a store. Not for use from several threads at once; several processes may share the store."""

    @classmethod
    @renamed_parameter("narrator", "summariser")
    def open(
        cls,
        id: str | None = None,
        *,
        model: str = "",
        window: int | None = None,
        store: Store | str | None = None,
        settings: Settings | None = None,
        summariser: Summariser | None = None,
        metadata: Metadata | None = None,
        plugins: PluginHost | None = None,
    ) -> Conversation:
        """Open a conversation by any id of its chain, or begin one. SQLite in LEPORELLO_HOME unless told otherwise."""
        settings = settings or load_settings()
        opened = store if store is not None and not isinstance(store, str) else open_store(store or settings.store_url)
        about = metadata or Metadata(model=model)
        if id is None:
            record = opened.conversations.create(None, about)
        else:
            record = find_or_create(opened.conversations, id, about)
        return cls(
            opened,
            record,
            settings,
            model=model,
            window=window,
            summariser=summariser,
            plugins=plugins,
            owns_store=opened is not store,
        )

    # -- one turn

    def tool_result(self, call_id: str, output: str) -> str:
        """Store the result of a tool call and return its id; one that is too long is kept whole and shown in part.

        All results of one turn together have a limit too. What comes from reading a saved output is not saved again.
        """
        folder = outputs_folder(self.settings.home, self.id)
        limits = OutputLimits.for_window(self.limits.window)
        budget = OutputBudget(folder, limits, (), StoredArtifacts(self.store, self.id))
        waiting = waiting_call(self._view.messages, call_id)
        result = waiting.result(output, folder)
        shown = budget.one(waiting.call, None, result, used=waiting.used, waiting=waiting.others)
        return self.append(shown.message())[0]

    def request(
        self,
        tools: Sequence[Mapping[str, Any]] = (),
        system: str | Message = "",
        *,
        max_tokens: int | None = None,
        provider: str = "",
    ) -> Request:
        """The next request: folded when due, valid, ready for breakpoints. Raises when the fixed part can't fit."""
        first: Message | None = {"role": "system", "content": system} if isinstance(system, str) else system
        words = text_of(first) if first else ""
        self.measure_fixed(tools, words)
        reading = self.meter.read(self.messages, tools, words)
        due = self.settings.compression.enabled and self.engine.should_compress(reading.tokens)
        if due and not self._put_off(reading.tokens):
            self._fold("preflight")
            reading = self.meter.read(self.messages, tools, words)
        if reading.tokens > self.limits.window and self.settings.compression.enabled:
            self._make_fit()
            reading = self.meter.read(self.messages, tools, words)
        if reading.tokens > self.limits.window:
            self._refuse(reading.tokens)
        messages = self.messages
        self.meter.sent(messages, tools, words)
        caching_settings = self.settings.prompt_caching
        return Request(
            conversation=self.id,
            model=self.model,
            messages=(first, *messages) if words and first else tuple(messages),
            tools=tuple(dict(tool) for tool in tools),
            max_tokens=max_tokens,
            provider=provider,
            layout=caching_settings.layout,
            ttl=caching_settings.cache_ttl,
            tokens=reading.tokens,
            room=self.limits.window - reading.tokens,
            options=caching.cache_options(caching.cache_use(self.model, provider), self.id),
        )

    def _refuse(self, tokens: int) -> None:
        instructions = sum(self.counter.message(m) for m in self._view.messages if is_instruction(m))
        fixed = self.engine.system_tokens + self.engine.tool_tokens + instructions
        raise FixedPartTooLarge(
            self.limits.window,
            {
                "system": self.engine.system_tokens + instructions,
                "tools": self.engine.tool_tokens,
                "messages that stay": tokens - fixed,
            },
        )

    def record(self, reply: Any, *, provider: str = "") -> str:
        """Store an answer and its usage; folds when the turn is over and it is due. Returns the message's id.

        Takes what the official clients return, the JSON of it, or a `ModelReply`.
        """
        answer = reply if isinstance(reply, ModelReply) else decode(reply, provider, self.model)
        numbers = self.append(answer.message)
        facts = model_facts(self.model or answer.model or None)
        self.store.usage.add(
            self.id, ModelCall(answer.usage, self.model or answer.model, "chat", cost(answer.usage, facts))
        )
        if answer.has_usage:
            self.meter.observe(answer.usage.prompt_tokens)
            self.engine.update_from_response(answer.usage.as_engine_dict())
        self._answered()
        self._keep_measure()
        # Output counts only as far as it stays in the conversation: thinking that is not sent back never does.
        over = not answer.message.get("tool_calls") and self.settings.compression.enabled
        tokens = self.reading.tokens
        if over and self.engine.should_compress(tokens) and not self._put_off(tokens):
            self._fold("threshold")
        return numbers[0]

    # -- folding

    def compact(self, focus: str = "") -> CompactionReport:
        """Fold now, by hand: never refused for earlier attempts, never counted as one."""
        return self._fold("manual", focus)

    def _put_off(self, tokens: int) -> bool:
        """Leave a folding to whoever does it beside the conversation, as long as the next request fits without it.

        A plugin's engine may keep things in its own instance, so it folds where it is.
        """
        if self.later is None or isinstance(self.engine, PluginEngine) or tokens >= self.limits.hard_tokens:
            return False
        return self.later(
            CompactionJob(
                self.id,
                self._view.generation,
                self.model,
                self._window,
                self.engine.system_tokens,
                self.engine.tool_tokens,
                self.engine.recall,
            )
        )

    def fold_as_ordered(self, order: CompactionJob) -> CompactionReport | None:
        """Do what was put off; None when somebody folded since."""
        self.refresh()
        if self._view.generation != order.generation:
            return None
        self.engine.system_tokens, self.engine.tool_tokens = order.system_tokens, order.tool_tokens
        self.engine.recall = self._can_recall = order.recall
        return self._fold(order.trigger)

    def _fold(self, trigger: str, focus: str = "") -> CompactionReport:
        focus = redact(focus)
        if trigger != "manual":
            self.store.state.add(self.id, ATTEMPTS_KEY)
        for told in self.before_folding:
            told(trigger)
        self.refresh()
        before = self._view
        self._slot.fire(
            "pre_compaction", trigger=trigger, focus=focus, tokens=self.reading.tokens, **view_facts(before)
        )
        with self._stoppable():
            report = fold_stored(self.store, self.id, self.engine, focus=focus, trigger=trigger)
        if report.usage.total_tokens:
            self.store.usage.add(self.id, ModelCall(report.usage, report.summariser, "summary", report.cost))
        if report.outcome is Outcome.COMMITTED:
            self.meter.reset()
        self._view = self.store.views.view(self.id)
        if not report.committed and self._view.generation != before.generation:
            # Somebody else was quicker, or took a fold back: their word counts, not what this attempt learned.
            self._take_over()
        self._keep_measure()
        if report.committed:
            self._begin_session(boundary_reason="compression", old_session_id=before.session)
        event = CompactionEvent(self.id, self._view.generation, report, self.compressions)
        self._slot.fire("post_compaction", **event.as_dict(), session_id=self._view.session)
        for listener in self.listeners:
            listener(event)
        return report

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        narrator = self.engine.summariser
        if narrator is not None and self.cancel is not None:
            self.engine.summariser = Stoppable(narrator, self.cancel)
        try:
            yield
        finally:
            self.engine.summariser = narrator

    def _make_fit(self) -> None:
        """Fold once more, without a model and whatever was tried before: nothing is refused that a fold would cure.

        Another process that is folding is waited for.
        """
        for _ in range(MOST_WAITS):
            narrator, self.engine.summariser = self.engine.summariser, None
            try:
                report = self._fold("hard limit")
            finally:
                self.engine.summariser = narrator
            if not report.details.get(HELD):
                return
            time.sleep(WAIT_SECONDS)
            self.refresh()
            if self.reading.tokens <= self.limits.window:
                return
        raise StoreBusy(f"Another process has been folding {self.id} for a while; try again.")

    def shrink(self, why: str) -> CompactionReport:
        """Fold because a provider refused the request as too long, whatever the threshold says."""
        if self.engine.attempts >= MOST_ATTEMPTS:
            reason = f"{MOST_ATTEMPTS} automatic attempts were made without an answer in between"
            return CompactionReport(Outcome.BLOCKED, reason, self.engine.name, trigger=why)
        refused = self.reading.tokens
        self.meter.reset()
        if refused >= self.limits.window:
            return self._fold(why)
        # The real window is smaller than the known one, and nobody said how small: fold as if this request had filled
        # it. That is a guess, so it serves this once; only what a provider states is kept.
        known = self._window
        self.use_window(refused)
        try:
            return self._fold(why)
        finally:
            self._window = known
            self.engine = self._make_engine(self.engine.ledger)
            self._keep_measure()

    @property
    def compressions(self) -> int:
        """How many times this conversation was folded."""
        return self._view.compactions

    def undo(self) -> View:
        """Show again what was shown before the last compaction, with all that came since."""
        self._view = self.store.views.undo(self.id)
        self.meter.reset()
        self.engine.wait_for = self.limits.hard_tokens
        return self._view

    # -- reading back

    def search(self, query: str, max_tokens: int = DEFAULT_TOKENS) -> list[Window]:
        """Windows of the whole conversation that answer a query or question, folded parts included, best first."""
        return self.archive.search(RecallQuery(query, max_tokens))

    def expand(self, id: str, page: int = 1, max_tokens: int = DEFAULT_TOKENS) -> dict[str, Any]:
        """The raw messages behind `m12`, `m10-m20` or `f3`, one page of them."""
        return self._recall("lcm_expand", {"id": id, "page": page, "max_tokens": max_tokens})

    def describe(self, id: str) -> dict[str, Any]:
        """What a message, a span or a fold is about."""
        return self._recall("lcm_describe", {"id": id})

    @property
    def pins(self) -> Pinboard:
        """Messages the user wants kept word for word."""
        return Pinboard(self.store, self.id, self.counter, self.limits.pin_tokens)

    @property
    def recall_tools(self) -> RecallTools:
        """The tools a model uses for the same."""
        return RecallTools(self.archive, self.counter.text)

    def _recall(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = decode_json(self.recall_tools.handle(name, arguments).encode())
        if "error" in answer:
            raise InputError(str(answer["error"]))
        return answer

    @property
    def usage(self) -> UsageTotals:
        """Everything this conversation used so far."""
        return self.store.usage.totals(self.id)

    def close(self) -> None:
        """Release the engine, and the store if this conversation opened it."""
        self._slot.close()
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
