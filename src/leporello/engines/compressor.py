"""`ContextCompressor`: the default engine. Four phases: prune, find the boundaries, summarise, assemble.

The engine keeps a ledger of every message it has seen, so that a second compaction is made from the facts themselves
and not from the first summary. Lists that begin with a fold of another engine's are taken over through that fold when
it is signed with this engine's key; otherwise it is carried on as an earlier summary that nobody vouches for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leporello.compaction.pipeline import CompactionResult, CompactionTask, Folder, compact, fold_in_one
from leporello.compaction.plan import Protection
from leporello.compaction.view import Item, MessageHashes, MessageSizes, Returned, number_messages
from leporello.engines.base import ContextEngine
from leporello.events import CompactionReport, Outcome
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, Messages
from leporello.models import Limits
from leporello.redact import redact
from leporello.summaries.base import Summariser
from leporello.summaries.fold import blocks_of
from leporello.summaries.trust import Trust
from leporello.tokens import TokenCounter

MOST_ATTEMPTS = 3
"""Automatic attempts without a successful model turn in between; then it waits, so that it can't loop."""
GROWTH = 0.25
"""Of the threshold: how much must be new after an automatic attempt that brought nothing."""


class ContextCompressor(ContextEngine):
    """Folds the middle of a conversation into a typed handoff; head and tail stay as they are."""

    def __init__(
        self,
        context_length: int = 128_000,
        *,
        limits: Limits | None = None,
        counter: TokenCounter | None = None,
        summariser: Summariser | None = None,
        recall: bool = False,
        key: bytes | None = None,
    ) -> None:
        super().__init__(context_length)
        self.counter = counter or TokenCounter.for_model(None)
        self.summariser = summariser
        self.recall = recall
        self.trust = Trust(key)
        self.ledger = Ledger()
        self.last_report: CompactionReport | None = None
        self.tool_tokens = 0
        self.system_tokens = 0
        self.attempts = 0
        self.wait_for: int = 0
        """Tokens below which no automatic attempt is made, whatever the threshold says."""
        self._asked = 0
        self._returned: Returned | None = None
        self._take_limits(limits or Limits.for_window(context_length))

    @property
    def name(self) -> str:
        """The name under which the config selects it."""
        return "compressor"

    def _take_limits(self, limits: Limits) -> None:
        self.limits = limits
        self.context_length = limits.window
        self.threshold_tokens = limits.threshold_tokens
        self.protect_last_n = limits.protect_last_n

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """A model turn succeeded: take its figures; attempts count from zero again."""
        self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
        self.last_total_tokens = int(usage.get("total_tokens") or 0)
        self.attempts = 0

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether prompt tokens reach the threshold and an attempt could still help."""
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        self._asked = tokens
        if self.attempts >= MOST_ATTEMPTS:
            return False
        return tokens >= max(self.threshold_tokens, self.wait_for) > 0

    def should_compress_preflight(self, messages: list[Message]) -> bool:
        """Whether the estimate of the whole request reaches the threshold."""
        return self.should_compress(self.estimate(messages))

    def has_content_to_compress(self, messages: list[Message]) -> bool:
        """Whether there is anything between head and tail."""
        return len(messages) > self.protect_first_n + 3

    def estimate(self, messages: Messages) -> int:
        """Tokens of the whole request: system, tools and messages."""
        return self.counter.messages(messages) + self.system_tokens + self.tool_tokens

    def observe(self, message: Message) -> None:
        """Take one new message in, so that counts and ledger exist when a compaction comes."""
        self.counter.message(message)
        self.ledger.add(self.ledger.last + 1, message)

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        """A shorter valid list, or the list as it was; `last_report` says which and why."""
        trigger = "manual" if force else "automatic"
        hashes = MessageHashes()
        done = self.compact(self._numbered(messages, hashes), focus=focus_topic or "", trigger=trigger, hashes=hashes)
        if not done.report.committed:
            return list(messages)
        self._returned = Returned.of(done.shown, self.ledger.last)
        return done.messages

    def compact(
        self,
        items: Sequence[Item],
        *,
        focus: str = "",
        trigger: str = "manual",
        fold_number: int = 0,
        hashes: MessageHashes | None = None,
    ) -> CompactionResult:
        """One compaction of a numbered view, with its report. Manual ones never count as attempts."""
        started = time.perf_counter()
        if trigger != "manual":
            self.attempts += 1
        done = compact(
            CompactionTask(
                items=items,
                limits=self.limits,
                counter=self.counter,
                measure=MessageSizes(self.counter, hashes or MessageHashes()),
                ledger=self.ledger,
                protection=Protection(self.protect_first_n, self.protect_last_n),
                summariser=self.summariser,
                focus=redact(focus),
                fold_number=fold_number or self._next_fold(items),
                engine=self.name,
                trigger=trigger,
                system_tokens=self.system_tokens,
                tool_tokens=self.tool_tokens,
                recall=self.recall,
                key=self.trust.key,
            ),
            self._folder(),
        )
        report = replace(done.report, seconds=time.perf_counter() - started)
        self._learn(report)
        self.trust.remember(block for line in done.shown if line.entry.fold for block in blocks_of(line.message))
        return replace(done, report=report)

    def _folder(self) -> Folder:
        """How the middle of a view is folded; engines that differ only in this override it."""
        return fold_in_one

    def _learn(self, report: CompactionReport) -> None:
        self.last_report = report
        if report.committed:
            self.compression_count += 1
            # Above the aim the next automatic attempt waits for the hard limit: another one at once could not help.
            self.wait_for = self.limits.hard_tokens if report.details.get("above_aim") else 0
        elif report.outcome in (Outcome.NO_GAIN, Outcome.NOTHING_TO_DO) and report.trigger != "manual":
            # The same again could not help; with more to fold it may.
            grown = max(report.tokens_before, self._asked) + int(self.threshold_tokens * GROWTH)
            self.wait_for = max(self.wait_for, min(grown, self.limits.hard_tokens))

    def _numbered(self, messages: Messages, hashes: MessageHashes) -> list[Item]:
        """The list with ids: what this engine returned last time keeps its numbers, what follows goes on counting.

        A list that is neither is another conversation or was edited: it is numbered afresh, through its folds.
        """
        items = self._returned.match(messages) if self._returned else None
        if items is None:
            items = number_messages(messages, self.trust)
        for item in items:
            strange = item.entry is None and item.fold is None and item.number in self.ledger.hashes
            if strange and not self.ledger.knows(item.number, item.message):
                self.ledger = self.ledger.renumbered()
                self._returned = None
                return number_messages(messages, self.trust)
        return items

    @staticmethod
    def _next_fold(items: Sequence[Item]) -> int:
        return max((item.fold.number for item in items if item.fold), default=0) + 1

    def on_session_reset(self) -> None:
        """A new conversation: nothing of the old one stays."""
        super().on_session_reset()
        self.ledger = Ledger()
        self.trust.forget()
        self.last_report = None
        self._returned = None
        self.attempts = 0
        self.wait_for = 0

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
        self.wait_for = 0
