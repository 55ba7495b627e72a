"""The summary of a span, written by a summary model: the transcript it is given, the call, and chunks merged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import Struct

from leporello.errors import Cancelled, ProviderError, SummaryError
from leporello.ledger.calls import describe, one_line, result_text
from leporello.ledger.units import clip
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.models import cost, model_facts
from leporello.policy.prices import price_table
from leporello.providers.base import ModelRequest, Provider
from leporello.redact import redact
from leporello.summaries.base import LivePrefix, Summary, SummaryTask
from leporello.summaries.fold import prompt
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section, parse, render
from leporello.summaries.verify import verify
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

CountText = Callable[[str], int]
RESULT_CHARS = 1_600
TEXT_CHARS = 6_000
CALL_CHARS = 240


def turn_text(number: int, message: Message) -> str:
    """One message as a paragraph that begins with its id and role."""
    if is_result(message):
        return f"[m{number} tool] {clip(result_text(message), RESULT_CHARS)}"
    parts = [f"[m{number} {role_of(message)}] {clip(text_of(message), TEXT_CHARS)}"]
    for call in calls_of(message):
        parts.append(f"  calls {call.name}: {one_line(describe(call).target, CALL_CHARS)}")
    return "\n".join(parts)


def chunks(turns: Iterable[tuple[int, Message]], budget: int, count: CountText) -> list[str]:
    """The turns as texts of at most `budget` tokens each; a turn that is larger by itself is clipped to fit."""
    out: list[list[str]] = [[]]
    used = 0
    for number, message in turns:
        text = turn_text(number, message)
        size = count(text) + 1
        while size > budget and len(text) > 200:
            text = clip(text, max(200, int(len(text) * budget / size * 0.9)))
            size = count(text) + 1
        if used + size > budget and out[-1]:
            out.append([])
            used = 0
        out[-1].append(text)
        used += size
    return ["\n".join(piece) for piece in out if piece]


def thin(pieces: Sequence[str], most: int) -> list[str]:
    """At most so many pieces: the newest whole, older ones evenly spaced. The index covers what is skipped."""
    if len(pieces) <= most:
        return list(pieces)
    newest = max(1, most // 3)
    older = pieces[:-newest]
    step = len(older) / (most - newest)
    return [older[int(k * step)] for k in range(most - newest)] + list(pieces[-newest:])


SHORT_REST = 60.0
LONG_REST = 600.0
MOST_CHUNKS = 24
SIDE_BY_SIDE = 4
LEAST_SECTIONS = 2
PROMPT_ROOM = 300
WINDOW_SHARE = 0.96
"""Counts of a model whose vocabulary is not at hand are estimates; a little room is left for that."""


class SummaryModel(Struct, frozen=True):
    """A model that can write summaries: who to ask, under which name, and how much it can read."""

    provider: Provider
    model: str
    window: int


@dataclass(slots=True)
class ModelSummariser:
    ladder: Sequence[SummaryModel]
    counter: TokenCounter
    deadline: float = 20.0
    clock: Callable[[], float] = time.monotonic
    _resting: dict[str, float] = field(default_factory=dict)

    def summarise(self, task: SummaryTask) -> Summary:
        """A verified narrative from the first model that gives one; otherwise none, with what went wrong."""
        if not task.messages:
            return Summary(None)
        warnings: list[str] = []
        spent = CanonicalUsage()
        price: float | None = None
        end = time.monotonic() + self.deadline
        for candidate in self.ladder:
            until = self._resting.get(candidate.model, 0.0)
            if until > self.clock():
                warnings.append(f"{candidate.model} rests for {until - self.clock():.0f} s after a failure.")
                continue
            left = max(0.01, end - time.monotonic())
            # The summary model counts in its own way; what fits must fit by its count.
            writer = _Writer(candidate, task, TokenCounter.for_model(candidate.model), left)
            try:
                handoff, verification = verify(_usable(writer.write(), task.budget, self.counter), task)
                if verification.lines_dropped == verification.lines_checked:
                    raise SummaryError(f"none of its {verification.lines_checked} lines is in the turns.")
            except Cancelled:
                raise
            except (ProviderError, SummaryError, FutureTimeout) as error:
                self._resting[candidate.model] = self.clock() + _rest(error)
                warnings.append(f"{candidate.model} gave no summary: {_why(error)}")
                handoff = None
            # Answers are paid for, whether or not a summary came of them.
            usage = writer.used()
            spent += usage
            added = cost(usage, model_facts(candidate.model))
            price = price if added is None or not usage.total_tokens else (price or 0.0) + added
            if handoff is None:
                continue
            return Summary(handoff, f"model:{candidate.model}", spent, price, verification, tuple(warnings))
        if warnings:
            warnings.append("The summary was made without a model.")
        return Summary(None, warnings=tuple(warnings), usage=spent, cost=price)


def _rest(error: Exception) -> float:
    return LONG_REST if getattr(error, "lasting", False) else SHORT_REST


def _why(error: Exception) -> str:
    if isinstance(error, FutureTimeout):
        return "it took longer than compression.deadline."
    return redact(str(error)) or type(error).__name__


class _Writer(Struct, frozen=True):
    candidate: SummaryModel
    task: SummaryTask
    counter: TokenCounter
    deadline: float
    _answered: list[CanonicalUsage] = msgspec.field(default_factory=list)

    def used(self) -> CanonicalUsage:
        return sum(list(self._answered), CanonicalUsage())

    def write(self) -> str:
        pool = ThreadPoolExecutor(max_workers=SIDE_BY_SIDE)
        try:
            return self._write(pool, time.monotonic() + self.deadline)
        finally:
            # A call that hangs must not hold the turn up: its thread ends when the provider's own timeout does.
            pool.shutdown(wait=False, cancel_futures=True)

    def _write(self, pool: ThreadPoolExecutor, until: float) -> str:
        orders = self._orders()
        usable = self._usable_window()
        room = usable - self.counter.text(orders) - self.task.budget - PROMPT_ROOM
        if room < PROMPT_ROOM:
            raise SummaryError(f"its window of {self.candidate.window:,} tokens leaves no room for the turns.")
        previous = self._previous(room // 2)
        pieces = chunks(self.task.messages, room - self.counter.text(previous), self.counter.text)
        pieces = thin(pieces, MOST_CHUNKS)
        # Small models follow what stands last: after thousands of tokens of turns they are told again what to do.
        closing = prompt("closing")
        told = self._from_cache(orders, sum(map(self.counter.text, pieces)), until)
        if told:
            return told
        asked = [f"{orders}\n\n{previous}<turns>\n{piece}\n</turns>\n\n{closing}" for piece in pieces]
        texts = self._ask_all(pool, asked, until)
        while len(texts) > 1:
            groups = _fit_groups(texts, room, self.counter)
            if len(groups) == len(texts):
                # Two parts don't fit side by side: keep the newest and what is short enough.
                texts = [texts[-1]]
                break
            merged = [f"{orders}\n\n{prompt('merge')}\n\n" + "\n\n".join(group) + f"\n\n{closing}" for group in groups]
            texts = self._ask_all(pool, merged, until)
        return texts[0]

    def _usable_window(self) -> int:
        """What a request may hold, below the first price step where there is one."""
        steps = [step.above for step in model_facts(self.candidate.model).steps]
        return int(min([self.candidate.window, *steps]) * WINDOW_SHARE)

    def _from_cache(self, orders: str, plain_tokens: int, until: float) -> str:
        """The answer of a call that begins with the live conversation; empty where that is dearer or brings nothing."""
        live = self.task.live() if self.task.live else None
        if not isinstance(live, LivePrefix) or live.provider is not self.candidate.provider:
            return ""
        if live.request.model != self.candidate.model:
            return ""
        asked = f"{orders}\n\n{prompt('live')}\n\n{prompt('closing')}"
        tokens = self.counter.request(live.request.messages, live.request.tools)
        prices = price_table(model_facts(self.candidate.model)).at(tokens)
        fits = tokens + self.counter.text(asked) + self.task.budget <= self._usable_window()
        if not fits or tokens * prices.read >= plain_tokens * prices.plain:
            return ""
        messages = [*live.request.messages, {"role": "user", "content": asked}]
        # Half of the time: what is asked in vain here is asked in the usual way after it.
        left = max(0.1, (until - time.monotonic()) / 2)
        request = replace(
            live.request, messages=messages, max_tokens=self.task.budget, timeout=left, cancel=self.task.cancel
        )
        reply = self.candidate.provider.complete(request)
        self._answered.append(reply.usage)
        return "" if calls_of(reply.message) else text_of(reply.message).strip()

    def _orders(self) -> str:
        parts = [prompt("summarise"), f"Use at most {self.task.budget:,} tokens."]
        if self.task.focus:
            parts.append(prompt("focus").replace("{focus}", self.task.focus))
        return "\n\n".join(parts)

    def _previous(self, room: int) -> str:
        if self.task.previous is None:
            return ""
        template = Handoff({s: lines for s, lines in self.task.previous.sections.items() if s is not Section.INDEX})
        text = render(_trimmed(template, room, self.counter))
        return f"{prompt('update')}\n\n<handoff>\n{text}\n</handoff>\n\n"

    def _ask_all(self, pool: ThreadPoolExecutor, prompts: Sequence[str], until: float) -> list[str]:
        futures = [pool.submit(self._ask, text, until) for text in prompts]
        return [future.result(timeout=max(0.01, until - time.monotonic())) for future in futures]

    def _ask(self, text: str, until: float) -> str:
        messages: list[Message] = [{"role": "user", "content": text}]
        left = max(0.1, until - time.monotonic())
        reply = self.candidate.provider.complete(
            ModelRequest(
                self.candidate.model, messages, max_tokens=self.task.budget, timeout=left, cancel=self.task.cancel
            )
        )
        self._answered.append(reply.usage)
        answer = text_of(reply.message).strip()
        if not answer:
            raise SummaryError("the answer was empty.")
        return answer


def _fit_groups(texts: Sequence[str], room: int, counter: TokenCounter) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    used = 0
    for text in texts:
        size = counter.text(text)
        if used + size > room and groups[-1]:
            groups.append([])
            used = 0
        groups[-1].append(text)
        used += size
    return groups


def _usable(text: str, budget: int, counter: TokenCounter) -> Handoff:
    """The handoff in a model's answer; an answer that is something else is an error."""
    handoff = parse(redact(text), LineOrigin.MODEL)
    if len(handoff.sections) < LEAST_SECTIONS:
        raise SummaryError("the answer was not a handoff (it had none of the sections).")
    return _trimmed(handoff, budget, counter)


def _trimmed(handoff: Handoff, budget: int, counter: TokenCounter) -> Handoff:
    """As much of a handoff as fits: every section gets its share, long ones lose their last lines first."""
    size = counter.text(render(handoff))
    while size > budget and any(handoff.sections.values()):
        longest = max(handoff.sections, key=lambda s: sum(len(line.text) for line in handoff[s]))
        lines = handoff[longest]
        keep: tuple[HandoffLine, ...] = lines[: max(0, int(len(lines) * max(0.3, budget / size)) - 1)]
        handoff = handoff.replace(longest, keep)
        size = counter.text(render(handoff))
    return handoff
