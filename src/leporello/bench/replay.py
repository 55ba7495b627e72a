"""Replays a recorded session call by call and bills it: each recorded answer is one call of the model.

The request of a call is what the host would have sent at that point, rendered and marked as in production; the recorded
answer and its results follow. Time is the recording's own, so that caches run out as they would have. No model is
asked and nothing waits. A host keeps the conversation and sends it: Leporello's own `Conversation`, or a plain list
under any engine.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from leporello.bench.bank import RunningCount, json_tokens
from leporello.bench.baselines import BASELINES, RULES, STAND_IN
from leporello.bench.exam import compress_list, without_thinking
from leporello.billing import READ_RATE, WRITE_RATE, CacheBill, CacheSim, Prompt, PromptReader
from leporello.caching import LAYOUTS, cache_use
from leporello.compaction.pipeline import CompactionResult, CompactionTask
from leporello.compaction.view import join
from leporello.config import Home, Settings, load_settings
from leporello.config.settings import CachingSettings
from leporello.conversation import Conversation, Request
from leporello.conversation.compact import CompactionJob
from leporello.conversation.tool_schemas import FIND_TOOLS
from leporello.engines.base import CompactionEngine, ContextEngine
from leporello.events import CompactionEvent
from leporello.importers import ImportedSession
from leporello.messages import Message, calls_of, parse_json, role_of
from leporello.models import Limits, ModelFacts, model_facts
from leporello.policy.decision import Decision, Situation
from leporello.providers.base import ModelReply
from leporello.recall.paging import json_text
from leporello.store import Store, StoreOptions, open_store
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

Policy: TypeAlias = Callable[[Situation], Decision]
"""When to compact: the signature of `leporello.policy.decision.decide`."""
EngineFactory: TypeAlias = Callable[[int], ContextEngine]


NO_BILL = CacheBill()


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """The messages of one request, bare and with cache marks, and its tools."""

    messages: Sequence[Message]
    marked: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Compacted:
    """One compaction: from how many tokens to how many, and whether a request waited for it."""

    before: int
    after: int
    waited: bool
    summary: CacheBill = NO_BILL
    """What the call that wrote the summary was billed."""
    summary_output: int = 0


class PolicyEngine(CompactionEngine):
    """An engine that compacts as another one does, when a given policy says so."""

    def __init__(self, engine: CompactionEngine, policy: Policy) -> None:
        self.name = engine.name
        self._engine = engine
        self._policy = policy

    def compact(self, task: CompactionTask) -> CompactionResult:
        return self._engine.compact(task)

    def adjusted(self, limits: Limits) -> Limits:
        return self._engine.adjusted(limits)

    def decide(self, situation: Situation) -> Decision:
        return self._policy(situation)


class ConversationHost:
    """A real `Conversation` in a store, as in production: what can wait is compacted while nobody waits for it."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        model: str,
        window: int | None,
        system: str,
        policy: Policy | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.conversation = Conversation.open(None, model=model, window=window, store=store, settings=settings)
        self.compactions: list[Compacted] = []
        self._system = system
        self._tools = tools
        self._marks = cache_use(model).marks
        self._waiting = False
        self._folded = 0
        self._job: CompactionJob | None = None
        runtime = self.conversation.runtime
        runtime.hooks.listeners.append(self._listen)
        runtime.hooks.later = self._put_off
        if policy is not None:
            runtime.plugins.engine = PolicyEngine(runtime.plugins.engine, policy)

    def append(self, messages: Sequence[Message]) -> None:
        self.conversation.append(*messages)

    def request(self) -> SentPrompt:
        """The next request; a compaction in it is one that the request waits for."""
        self._waiting = True
        request, folded = self._request(), self.conversation.runtime.log.compactions
        if self._tools and folded != self._folded:
            # As agents do it: another set of tools goes out in the same request as a compaction.
            request = self._request()
        self._folded = folded
        self._waiting = False
        return SentPrompt(request.messages, request.marked() if self._marks else request.messages, request.tools)

    def _request(self) -> Request:
        schemas = self.conversation.runtime.tools
        if self._tools:
            schemas.renew(self._tools)
        return self.conversation.request(schemas.shown(self._tools), self._system)

    def search(self, answer: Message) -> Message | None:
        """Of all tools that the answer calls and the request has not."""
        hidden = self.conversation.runtime.tools.hidden(self._tools)
        wanted = [call.name for call in calls_of(answer) if call.name in hidden]
        if not wanted:
            return None
        function = {"name": FIND_TOOLS, "arguments": json_text({"query": ", ".join(wanted)})}
        id = f"find_{self.conversation.runtime.log.view.last}"
        return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}

    def found(self, search: Message) -> Message:
        """As agents do it: the tools stand in the next request."""
        (call,) = calls_of(search)
        query = parse_json(call.arguments)["query"]
        answer = self.conversation.runtime.tools.find(query, self._tools)
        return {"role": "tool", "tool_call_id": call.id, "content": answer}

    def record(self, answer: Message, usage: CanonicalUsage) -> None:
        """Stored, with its usage; then what was put off is done, before anything else comes in."""
        self.conversation.record(ModelReply(answer, usage))
        if self._job is not None:
            job, self._job = self._job, None
            self.conversation.runtime.compactor.do(job)

    def final(self) -> list[Message]:
        told = len(self.compactions)
        self.conversation.compact()
        del self.compactions[told:]
        return self.conversation.messages

    def close(self) -> None:
        self.conversation.close()

    def _put_off(self, job: CompactionJob) -> bool:
        self._job = job
        return True

    def _listen(self, event: CompactionEvent) -> None:
        report = event.report
        if report.committed:
            summary = CacheBill(uncached=report.usage.prompt_tokens)
            self.compactions.append(
                Compacted(report.tokens_before, report.tokens_after, self._waiting, summary, report.usage.output_tokens)
            )


class EngineHost:
    """A plain list under an engine: it is asked after each answer and before each request, as hosts do it."""

    def __init__(self, engine: ContextEngine, counter: TokenCounter, caching: CachingSettings, system: str) -> None:
        self.compactions: list[Compacted] = []
        self._engine = engine
        self._counter = counter
        self._caching = caching
        self._marks = cache_use(counter.model).marks
        self._system: list[Message] = [{"role": "system", "content": system}] if system else []
        self._live: list[Message] = []
        self._sizes = RunningCount(counter.message)
        self._framing = counter.request(())
        engine.on_session_start("replay", conversation_id="replay", platform="replay")

    def append(self, messages: Sequence[Message]) -> None:
        """Neighbouring words of the user go out as one message, as Leporello sends them: else no two bills compare."""
        for message in messages:
            last = self._live[-1] if self._live else {}
            if role_of(message) == role_of(last) == "user" and last is not STAND_IN:
                self._live[-1] = join(last, message)
            else:
                self._live.append(message)

    def request(self) -> SentPrompt:
        size = self._size()
        if self._engine.should_compress(size):
            shown = compress_list(self._engine, self._live, size)
            if list(map(id, shown)) != list(map(id, self._live)):
                self._live = shown
                self.compactions.append(Compacted(size, self._size(), True, *self._summary(size)))
        messages = [*self._system, *self._live]
        layout = LAYOUTS[self._caching.layout]
        return SentPrompt(messages, layout(messages, self._caching.cache_ttl) if self._marks else messages)

    def record(self, answer: Message, usage: CanonicalUsage) -> None:
        self._live.append(answer)
        self._engine.update_from_response(usage.as_engine_dict())

    def search(self, answer: Message) -> None:
        """It hides no tools."""

    def found(self, search: Message) -> Message:
        """Never asked."""
        raise NotImplementedError

    def final(self) -> list[Message]:
        return compress_list(self._engine, self._live, self._size(), force=True)

    def close(self) -> None:
        self._engine.on_session_end("replay", self._live)

    def _summary(self, size: int) -> tuple[CacheBill, int]:
        """What the call for the summary was billed: engines of the bench tell what theirs would have sent."""
        output = getattr(self._engine, "summary_output", 0)
        if getattr(self._engine, "summary_reads_prefix", False):
            return CacheBill(read=size), output
        asked = self._counter.text(getattr(self._engine, "summary_text", ""))
        return CacheBill(uncached=asked or (size if output else 0)), output

    def _size(self) -> int:
        return self._sizes.of((*self._system, *self._live)) + self._framing


ReplayHost: TypeAlias = ConversationHost | EngineHost
"""What a replay drives: messages come in, a request goes out, the model answers; `final` is for the exam."""


DEFAULT_MODEL = "claude-sonnet-4-5"
PLAIN_ENGINES: dict[str, EngineFactory] = {**BASELINES, **RULES}  # driven as plain hosts do it
SECONDS_PER_CALL = 10.0  # between two calls of a recording without times
MOST_TOOLS = 18  # what a coding agent offers, more or less; of them a session calls two to eleven
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


def unanswered(session: ImportedSession) -> list[Message]:
    """What stands behind the last answer: no request carried it, and the next one would have."""
    reversed_tail = takewhile(lambda message: role_of(message) != "assistant", reversed(session.messages))
    return without_thinking(list(reversed_tail)[::-1])


@dataclass(slots=True)
class ReplayClock:
    """The time of the recording, for everything that asks for the time."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    engine: str = "compressor"
    model: str = DEFAULT_MODEL
    model_assumed: str = ""
    """Why it is not the recording's own nor given: `the file names none`; empty where it is."""
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
        host.append(unanswered(session))
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
