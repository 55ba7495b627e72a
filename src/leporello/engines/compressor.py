"""The built-in engines: four phases (prune, find the boundaries, summarise, assemble), and the host interface to them.

`BuiltinEngine` compacts what it is given and keeps nothing. `ContextCompressor` is the form for hosts that hand over
plain lists: it keeps a ledger of every message it has seen, so that a second compaction is made from the facts
themselves and not from the first summary. Lists that begin with a fold of another engine's are taken over through that
fold when it is signed with this engine's key; otherwise it is carried on as an earlier summary that nobody vouches for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from leporello.compaction.pipeline import CompactionResult, CompactionTask, Folder, compact, fold_in_one
from leporello.compaction.plan import Protection
from leporello.compaction.view import ByObject, Item, Returned, number_messages
from leporello.engines.base import CompactionEngine, ContextEngine
from leporello.events import CompactionReport
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, Messages
from leporello.models import Limits, model_facts
from leporello.policy.decision import BY_WINDOW, CompactionState, Occasion, Situation, depth_of
from leporello.policy.prices import PriceTable, price_table
from leporello.policy.state import MANUAL, after, answered, attempted, sent
from leporello.redact import redact
from leporello.summaries.base import Summariser
from leporello.summaries.fold import Trust, blocks_of
from leporello.tokens import TokenCounter


class BuiltinEngine(CompactionEngine):
    """Compacts by the policy's word. Built-in engines differ only in how the middle of a view is folded."""

    def __init__(self, name: str, folder: Folder) -> None:
        self.name = name
        self._folder = folder

    def compact(self, task: CompactionTask) -> CompactionResult:
        """The four phases, timed."""
        started = time.perf_counter()
        done = compact(task, self._folder)
        return replace(done, report=replace(done.report, seconds=time.perf_counter() - started))


COMPRESSOR = BuiltinEngine("compressor", fold_in_one)


class ContextCompressor(ContextEngine):
    """Folds the middle of a list into a typed handoff; head and tail stay as they are."""

    _engine: CompactionEngine = COMPRESSOR

    def __init__(
        self,
        context_length: int = 128_000,
        *,
        limits: Limits | None = None,
        counter: TokenCounter | None = None,
        summariser: Summariser | None = None,
        recall: bool = False,
        key: bytes | None = None,
        policy: str = BY_WINDOW,
        prices: PriceTable | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`policy`: how much a compaction keeps. `prices`: by them it decides when; None: by the threshold alone."""
        super().__init__(context_length)
        self.policy = policy
        self.prices = prices
        self._clock = clock
        self.counter = counter or TokenCounter.for_model(None)
        self.summariser = summariser
        self.recall = recall
        self.trust = Trust(key)
        self.ledger = Ledger()
        self.last_report: CompactionReport | None = None
        self.tool_tokens = 0
        self.system_tokens = 0
        self.state = CompactionState()
        self._asked = 0
        self._returned: Returned | None = None
        self._take_limits(limits or Limits.for_window(context_length))

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def shown(self) -> tuple[Item, ...]:
        """The lines of the list that it returned last; none before the first compaction."""
        return self._returned.items if self._returned else ()

    def _take_limits(self, limits: Limits) -> None:
        self.limits = limits
        self.context_length = limits.window
        self.threshold_tokens = limits.threshold_tokens
        self.protect_last_n = limits.protect_last_n

    @property
    def _in_force(self) -> Limits:
        """A host may set a threshold of its own."""
        return replace(self.limits, threshold_tokens=self.threshold_tokens)

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """A model turn succeeded: take its figures; attempts count from zero again."""
        self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
        self.last_total_tokens = int(usage.get("total_tokens") or 0)
        self.state = sent(replace(self._situation(self.last_prompt_tokens), state=answered(self.state)))

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the policy would compact a request of so many tokens now."""
        self._asked = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return self._engine.decide(self._situation(self._asked)).compacts

    def _situation(self, tokens: int) -> Situation:
        return Situation(
            Occasion.PREFLIGHT,
            self._in_force,
            tokens,
            state=self.state,
            fixed=self.system_tokens + self.tool_tokens,
            depth=self._depth,
            prices=self.prices,
            summary_model=self.summariser is not None,
            now=self._clock(),
        )

    @property
    def _depth(self) -> int:
        return depth_of(self.limits, self.system_tokens + self.tool_tokens, self.policy)

    def should_compress_preflight(self, messages: list[Message]) -> bool:
        """Whether the estimate of the whole request reaches the threshold."""
        return self.should_compress(self.estimate(messages))

    def has_content_to_compress(self, messages: list[Message]) -> bool:
        """Whether there is anything between head and tail."""
        return len(messages) > self.protect_first_n + 3

    def estimate(self, messages: Messages) -> int:
        """Tokens of the whole request: system, tools and messages."""
        return self.counter.messages(messages) + self.system_tokens + self.tool_tokens

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        """A shorter valid list, or the list as it was; `last_report` says which and why."""
        trigger = MANUAL if force else "automatic"
        done = self.compact(self._numbered(messages), focus=focus_topic or "", trigger=trigger)
        if not done.report.committed:
            return list(messages)
        self._returned = Returned.of(done.shown, self.ledger.last)
        return done.messages

    def compact(self, items: Sequence[Item], *, focus: str = "", trigger: str = MANUAL) -> CompactionResult:
        """One compaction of a numbered view, with its report. Manual ones never count as attempts."""
        self.state = attempted(self.state, trigger)
        done = self._engine.compact(
            CompactionTask(
                items=items,
                limits=self.limits,
                counter=self.counter,
                measure=ByObject(self.counter.message),
                ledger=self.ledger,
                protection=Protection(self.protect_first_n, self.protect_last_n),
                summariser=self.summariser,
                focus=redact(focus),
                fold_number=self._next_fold(items),
                engine=self.name,
                trigger=trigger,
                system_tokens=self.system_tokens,
                tool_tokens=self.tool_tokens,
                recall=self.recall,
                key=self.trust.key,
                depth=self._depth,
            )
        )
        self.last_report = done.report
        self.compression_count += done.report.committed
        self.state = after(self.state, done.report, self._in_force, self._asked)
        self.trust.remember(block for item in done.shown if item.fold for block in blocks_of(item.fold, item.message))
        return done

    def _numbered(self, messages: Messages) -> list[Item]:
        """The list with ids: what this engine returned last time keeps its numbers, what follows goes on counting.

        A list that is neither is another conversation or was edited: it is numbered afresh, through its folds.
        """
        items = self._returned.match(messages) if self._returned else None
        known = len(self._returned.items) if self._returned and items is not None else 0
        if items is None:
            items = number_messages(messages, self.trust)
        for item in items[known:]:
            strange = item.fold is None and item.number in self.ledger.hashes
            if strange and not self.ledger.knows(item.number, item.message):
                self.ledger = Ledger(like=self.ledger)
                self._returned = None
                return number_messages(messages, self.trust)
        return items

    def _next_fold(self, items: Sequence[Item]) -> int:
        return max((item.fold.number for item in items if item.fold), default=0) + 1

    def on_session_reset(self) -> None:
        """A new conversation: nothing of the old one stays."""
        super().on_session_reset()
        self.ledger = Ledger()
        self.trust.forget()
        self.last_report = None
        self._returned = None
        self.state = CompactionState()

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Another model: its window, its way of counting, a recomputed threshold."""
        self.counter = TokenCounter.for_model(model)
        ratio = self.limits.tail_tokens / self.limits.threshold_tokens
        self._take_limits(
            Limits.for_window(context_length, self.threshold_percent, ratio, protect_last_n=self.protect_last_n)
        )
        if self.prices is not None:
            self.prices = price_table(model_facts(model, provider))
        self.state = replace(self.state, wait_for=0)
