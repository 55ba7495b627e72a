"""Who keeps a replayed conversation and sends it: Leporello's own `Conversation`, or a plain list under any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from leporello.bench.bank import RunningCount
from leporello.bench.exam import compress_list
from leporello.billing import CacheBill
from leporello.caching import LAYOUTS, cache_use
from leporello.compaction.pipeline import CompactionResult, CompactionTask
from leporello.config import Settings
from leporello.config.settings import CachingSettings
from leporello.conversation import Conversation, Request
from leporello.conversation.compact import CompactionJob
from leporello.conversation.tool_schemas import FIND_TOOLS
from leporello.engines.base import CompactionEngine, ContextEngine
from leporello.events import CompactionEvent
from leporello.messages import Message, calls_of, parse_json
from leporello.models import Limits
from leporello.policy.decision import Decision, Situation
from leporello.providers.base import ModelReply
from leporello.recall.paging import json_text
from leporello.store import Store
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
        self._live += messages

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
