"""Replays a recorded session call by call and bills it: each recorded answer is one call of the model.

The request of a call is what the host would have sent at that point, rendered and marked as in production; the recorded
answer and its results follow. Time is the recording's own, so that caches run out as they would have. No model is
asked and nothing waits.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.bench.bank import json_tokens
from leporello.bench.baselines import BASELINES, RULES
from leporello.bench.exam import without_thinking
from leporello.bench.hosts import Compacted, ConversationHost, EngineFactory, EngineHost, Policy, ReplayHost
from leporello.billing import READ_RATE, WRITE_RATE, CacheBill, CacheSim, Prompt, PromptReader
from leporello.config import Home, Settings, load_settings
from leporello.importers import ImportedSession
from leporello.messages import Message, calls_of, role_of
from leporello.models import ModelFacts, model_facts
from leporello.store import StoreOptions, open_store
from leporello.tokens import TokenCounter

DEFAULT_MODEL = "claude-sonnet-4-5"
PLAIN_ENGINES: dict[str, EngineFactory] = {**BASELINES, **RULES}
"""Driven as plain hosts do it."""
SECONDS_PER_CALL = 10.0
"""Between two calls of a recording without times."""
MOST_TOOLS = 18
"""What a coding agent offers, more or less; of them a session calls two to eleven."""
_FILLER = " part"


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One call: what came in before it, when it was sent, and what the model answered."""

    heard: tuple[Message, ...]
    time: float
    answer: Message


def steps_of(session: ImportedSession, *, pauses: bool = True) -> Iterator[RecordedStep]:
    """The calls of a session, in order; what stands behind the last answer was never sent."""
    heard: list[Message] = []
    now, latest = 0.0, None
    for index, recorded in enumerate(session.messages):
        when = session.times[index] if pauses and index < len(session.times) else None
        for message in without_thinking([recorded]):
            if role_of(message) != "assistant":
                heard.append(message)
                latest = when if when is not None else latest
                continue
            sent = latest if latest is not None else when
            now = now + SECONDS_PER_CALL if sent is None else max(now, sent)
            yield RecordedStep(tuple(heard), now, message)
            heard, latest = [], when


@dataclass(slots=True)
class ReplayClock:
    """The time of the recording, for everything that asks for the time."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """Under which conditions sessions are replayed."""

    engine: str = "compressor"
    model: str = DEFAULT_MODEL
    window: int | None = None
    """None: the model's."""
    window_source: str = "given"
    """Who says so: `given` or `recorded`."""
    base: int = 0
    """Tokens of a fixed part (system prompt and tools) in front of everything."""
    warm: int = 0
    """Of them, tokens that the first call found in the cache: other sessions had left them there."""
    tools: int = 0
    """Of them, tokens of tool schemas; 0: nothing is known about the tools, and all of it stays."""
    pauses: bool = True
    """Whether time passes as recorded; otherwise every call comes soon after the one before."""
    flags: Mapping[str, object] = field(default_factory=dict)
    """Settings by dotted key, as `--set` takes them."""
    home: Path | None = None
    """Where other settings come from; None: they have their defaults."""
    policy: Policy | None = None
    """When to compact, instead of the engine's own rule."""
    other: EngineFactory | None = None
    """Makes an engine for a window that is driven as plain hosts do it, instead of one by name."""

    @property
    def window_tokens(self) -> int:
        return self.window or model_facts(self.model).window

    @property
    def is_ours(self) -> bool:
        """Whether Leporello itself serves the session, not a rule to compare it with."""
        return self.other is None and self.engine not in PLAIN_ENGINES

    @contextmanager
    def host(self, clock: ReplayClock, called: Sequence[str] = ()) -> Iterator[ReplayHost]:
        """Who serves one session, in which tools of these names are called."""
        counter = TokenCounter.for_model(self.model)
        tools = stand_in_tools(called, self.tools, counter)
        system = fixed_text(self.base - counter.tools(tools), counter)
        with tempfile.TemporaryDirectory(prefix="leporello-replay-") as folder, ExitStack() as stack:
            settings = self._settings(Path(folder))
            make = self.other or PLAIN_ENGINES.get(self.engine)
            if make is not None:
                engine = make(self.window_tokens)
                yield stack.enter_context(closing(EngineHost(engine, counter, settings.prompt_caching, system)))
                return
            # Nothing of it outlives the replay: a power cut may take it.
            options = StoreOptions(synchronous="NORMAL", clock=clock)
            store = stack.enter_context(open_store(f"sqlite:///{folder}/replay.db", options))
            host = ConversationHost(store, settings, self.model, self.window, system, self.policy, tools)
            yield stack.enter_context(closing(host))

    def _settings(self, folder: Path) -> Settings:
        engine = {"context.engine": self.engine} if self.is_ours else {}
        flags = {**self.flags, **engine, "model.default": self.model}
        return load_settings(flags, None if self.home else {}, Home(self.home or folder))


def fixed_text(tokens: int, counter: TokenCounter) -> str:
    """A system prompt of about so many tokens."""
    if tokens <= 0:
        return ""

    def size(words: int) -> int:
        return counter.message({"role": "system", "content": "Fixed" + _FILLER * words})

    return "Fixed" + _FILLER * (bisect_right(range(tokens), tokens, key=size) - 1)


def stand_in_tools(called: Sequence[str], tokens: int, counter: TokenCounter) -> list[Mapping[str, Any]]:
    """Schemas of about so many tokens in all: of the tools that are called, and of others up to a usual number."""
    if tokens <= 0:
        return []
    names = [*called, *(f"never_called_{number}" for number in range(len(called), MOST_TOOLS))]
    text = fixed_text(tokens // len(names), counter)
    parameters = {"type": "object", "properties": {}}
    return [
        {"type": "function", "function": {"name": name, "description": text, "parameters": parameters}}
        for name in names
    ]


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One call, billed."""

    time: float
    bill: CacheBill
    output: int
    cost: float | None
    bound: float
    """The least that its request can cost after the one before it: what both begin with is read, the rest written."""
    missed: int
    """Tokens that stood in the cache and were not read."""
    broke_cache: bool
    """Whether it read less than the request before had in cache."""
    compactions: int
    """Made since the call before."""


@dataclass(frozen=True, slots=True)
class ReplayedSession:
    """One session under one setup."""

    session: str
    calls: tuple[ReplayedCall, ...]
    compactions: tuple[Compacted, ...]
    final: list[Message] = field(repr=False)
    kept_tokens: int = 0
    summary_cost: float | None = 0.0

    @property
    def bill(self) -> CacheBill:
        """All calls together, without summaries."""
        return sum((call.bill for call in self.calls), CacheBill())

    @property
    def summaries(self) -> CacheBill:
        """The calls that wrote summaries."""
        return sum((made.summary for made in self.compactions), CacheBill())


Told = Callable[[int], None]


def replay_session(session: ImportedSession, setup: ReplaySetup, told: Told | None = None) -> ReplayedSession:
    """Replay one session. `told` hears the number of each call that is done."""
    facts = model_facts(setup.model)
    clock = ReplayClock()
    called = dict.fromkeys(call.name for message in session.messages for call in calls_of(message))
    with setup.host(clock, list(called)) as host:
        billing = _Billing(host, facts, TokenCounter.for_model(setup.model), setup.warm)
        for step in steps_of(session, pauses=setup.pauses):
            clock.now = step.time
            host.append(step.heard)
            billing.call(step.answer, step.time)
            if told is not None:
                told(len(billing.calls))
        compactions = tuple(host.compactions)
        final = host.final()
    spent = [made.summary.cost(facts, made.summary_output) for made in compactions]
    summary_cost = None if None in spent else sum(cost for cost in spent if cost is not None)
    return ReplayedSession(session.id, tuple(billing.calls), compactions, final, json_tokens(final), summary_cost)


class _Billing:
    """Sends requests and bills them, one after the other."""

    def __init__(self, host: ReplayHost, facts: ModelFacts, counter: TokenCounter, warm: int) -> None:
        self.calls: list[ReplayedCall] = []
        self._host = host
        self._facts = facts
        self._counter = counter
        self._reader = PromptReader(counter)
        self._cache = CacheSim(facts.cache)
        self._warm = warm
        self._before: Prompt | None = None
        self._cached = self._made = 0

    def call(self, answer: Message, time: float) -> None:
        """One request, and what the model answers; a tool that is not in the request it looks for first."""
        host, facts = self._host, self._facts
        sent = host.request()
        search = host.search(answer)
        said = answer if search is None else search
        prompt = self._reader.read(sent.messages, sent.tools, sent.marked)
        standing = self._cache.standing(prompt, time)
        bill = self._cache.bill(prompt, time)
        bill = bill.warmed(self._warm) if self._before is None else bill
        output = self._counter.message(said)
        self.calls.append(
            ReplayedCall(
                time,
                bill,
                output,
                bill.cost(facts, output),
                _bound(self._before, prompt, self._warm),
                max(0, standing - bill.read - facts.cache.step * (not facts.cache.breakpoints)),
                bill.read < self._cached,
                len(host.compactions) - self._made,
            )
        )
        self._before, self._cached, self._made = prompt, bill.read + bill.write, len(host.compactions)
        host.record(said, bill.usage(output))
        if search is not None:
            host.append([host.found(search)])
            self.call(answer, time)


def _bound(before: Prompt | None, prompt: Prompt, warm: int) -> float:
    common = _common_blocks(before.prefixes, prompt.prefixes) if before else 0
    shared = prompt.totals[common - 1] if common else 0
    shared = shared if before else min(warm, prompt.totals[-1])
    return READ_RATE * shared + WRITE_RATE * (prompt.totals[-1] - shared)


def _common_blocks(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Hashes of whole beginnings: where two differ, all that follow do."""
    shortest = min(len(one), len(other))
    return bisect_right(range(shortest), False, key=lambda index: one[index] != other[index])
