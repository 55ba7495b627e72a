"""From a client's request to the one that is sent: find the conversation, store what is new, compact when due."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from leporello import caching
from leporello.agent.endpoints import choose_model, summariser_for
from leporello.config import Settings
from leporello.conversation.recovery import Facts, OutputCap, Recovery, Remedy, Step, next_step
from leporello.conversation.rendering import rendered_line
from leporello.conversation.runtime import ConversationRuntime
from leporello.conversation.tool_schemas import FIND_TOOLS
from leporello.dialects.dialect import Dialect, HiddenCall
from leporello.errors import ConfigError, FixedPartTooLarge
from leporello.fingerprint import start
from leporello.gateway.auth import Client
from leporello.gateway.config import Upstream
from leporello.gateway.limits import owner_of
from leporello.gateway.proxy.conversations import CachedConversation, ConversationHint, ProxiedConversations
from leporello.gateway.proxy.recall import (
    MOST_KEPT,
    STATE_KEY,
    RecallAnswers,
    can_offer,
    forced_tools,
    listed_tools,
    with_tools,
)
from leporello.gateway.proxy.request import (
    WireRequest,
    apply_view,
    is_folded,
    output_cap,
    read_request,
    with_output_cap,
    with_recalled,
    without_thinking,
)
from leporello.models import LearnedLimits, Limits, cost, model_facts
from leporello.models.limits import limits_of
from leporello.policy.decision import Occasion, Situation, decide, depth_of
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict
from leporello.recall.tools import TOOL_NAMES, framed, openai_tools
from leporello.store.records import ModelCall
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

MOST_MODELS = 1_000
"""Names of models whose limits are at hand; a client may send any."""
BYTES_PER_TOKEN = 3
"""Fewer than in nearly every text: what is measured by it is rather too large than too small."""
CERTAIN = 1.25
"""A request whose estimate is below its threshold even times this is below it, whatever a provider counts."""


def proxy_summariser(settings: Settings) -> Summariser | None:
    """The summary model of `auxiliary.compression`; None makes summaries without a model."""
    wanted = settings.summary_model.model
    if not wanted:
        return None
    try:
        chosen = choose_model(settings, wanted)
    except ConfigError:
        return None
    return summariser_for(settings, chosen, TokenCounter.for_model(wanted))


class Action(StrEnum):
    """What was done to a request; the client reads it in a header."""

    PASSED = "passed"
    FOLDED = "folded"
    RECOVERED = "recovered"
    """It was refused as too long, folded, and sent again."""
    STATEFUL = "stateful"
    """The provider keeps the conversation, so it passed as it came."""
    UNREAD = "unread"
    """Not a form that can be folded: it passed as it came, and the provider judges it."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What goes to the provider."""

    request: WireRequest
    upstream: Upstream
    body: bytes
    action: Action
    cached: CachedConversation | None = None
    turn: int = 0
    window: int | None = None
    recovery: Recovery = field(default_factory=lambda: Recovery(shared=True))
    recall: bool = False
    """The client wants the recovery tools for its model, and this request can carry them."""
    finds: bool = False
    """Tools that were never used may give way to `find_tools`."""
    offered: bool = False
    """Tools that are answered here stand in the body."""
    decision: str = ""
    """What the policy said about it, and why; empty where nobody asked."""
    owner: str = ""
    """Whom to count it for."""

    @property
    def our_tools(self) -> frozenset[str]:
        """Names of the tools whose calls are answered here."""
        return (TOOL_NAMES if self.recall else frozenset()) | ({FIND_TOOLS} if self.finds else frozenset())

    @property
    def conversation(self) -> str:
        """The conversation's id; empty when there is none."""
        return self.cached.id if self.cached else ""


class RequestRewriter:
    """Rewrites requests; safe to use from several threads."""

    def __init__(self, conversations: ProxiedConversations, settings: Settings) -> None:
        self.conversations = conversations
        self.settings = settings
        self._known_limits: dict[tuple[str, int | None], Limits] = {}
        self._learned = LearnedLimits.load(settings.home.limits_file, now=time.time())

    def read(self, dialect: Dialect, data: bytes, client: Client, name: str = "") -> WireRequest:
        """Reads a request; of a large one that repeats the client's last only what is new."""
        return self.conversations.requests.read(dialect, data, start(client.owner, name))

    def rewrite(self, request: WireRequest, client: Client, upstream: Upstream, name: str = "") -> Rewrite:
        """The request with all folds that are known and those that are due."""
        if request.stateful:
            return Rewrite(request, upstream, request.data, Action.STATEFUL, owner=owner_of(client))
        if not request.messages or not request.model:
            return Rewrite(request, upstream, request.data, Action.UNREAD, owner=owner_of(client))
        owner = owner_of(client)
        first = start(client.owner, name)
        cached = self.conversations.take(
            ConversationHint(
                first, request.messages, owner, request.model, len(request.data), request.fingerprints(first)
            )
        )
        if cached is None:
            return Rewrite(request, upstream, request.data, Action.PASSED, owner=owner)
        with cached.guard:
            cached.turn += 1
            rewrite = self._unfolded(request, client, upstream, cached)
            if not cached.folded and self._is_small(cached, rewrite):
                return rewrite
            self._compact_due(rewrite)
            told = "; ".join(self._runtime(rewrite).compactor.told)
            return replace(self._with_view(rewrite), decision=told)

    def preview(self, request: WireRequest, client: Client, upstream: Upstream, name: str = "") -> Rewrite:
        """The request with the folds that are known; nothing is stored and nothing is folded."""
        cached = None
        if request.messages and not request.stateful:
            cached = self.conversations.look(request.fingerprints(start(client.owner, name)))
        if cached is None:
            return Rewrite(request, upstream, request.data, Action.PASSED)
        with cached.guard:
            rewrite = self._unfolded(request, client, upstream, cached)
            return self._with_view(rewrite) if cached.folded else rewrite

    def _unfolded(
        self, request: WireRequest, client: Client, upstream: Upstream, cached: CachedConversation
    ) -> Rewrite:
        learned = self._learned.window(request.model, "gateway", upstream.base_url, now=time.time())
        window = min((size for size in (upstream.window, learned) if size), default=None)
        wanted = client.key.recall or (not client.key.hash and self.settings.get("gateway.recall"))
        recall = bool(wanted) and can_offer(request)
        finds = self.settings.get("gateway.find_tools") and can_offer(request, {FIND_TOOLS})
        passed = Rewrite(request, upstream, request.data, Action.PASSED, cached, cached.turn, window)
        return replace(passed, recall=recall, finds=finds, owner=owner_of(client))

    # -- whether something is due

    def _is_small(self, cached: CachedConversation, rewrite: Rewrite) -> bool:
        """Whether nothing is due for certain, so that there is no need to open the conversation."""
        if cached.conversation is None and self._may_be_due(rewrite):
            estimate = round(self.estimate(rewrite.request) * CERTAIN)
            if not self._may_be_due(rewrite, estimate):
                cached.counted = estimate, len(rewrite.request.data)
        return not self._may_be_due(rewrite)

    def _may_be_due(self, rewrite: Rewrite, tokens: int | None = None) -> bool:
        """Whether a compaction is due at so many tokens when nothing was tried before; otherwise it never is.

        Without a number: at more tokens than the request can have: those counted, and one for each byte since.
        """
        if tokens is None:
            assert rewrite.cached is not None
            counted, size = rewrite.cached.counted
            tokens = counted + max(0, len(rewrite.request.data) - size)
        limits = self._limits(rewrite.request.model, rewrite.window)
        enabled = self.settings.compression.enabled
        if decide(Situation(Occasion.PREFLIGHT, limits, tokens, enabled=enabled)).compacts:
            return True
        # Below that price may decide, but never about less than a compaction would leave.
        least = depth_of(limits, 0, self.settings.compression.policy)
        return enabled and tokens > least and tokens - self._fixed(rewrite) > least

    def _fixed(self, rewrite: Rewrite) -> int:
        """Tokens of instructions and tools, counted once for a conversation that is not open."""
        cached, request = rewrite.cached, rewrite.request
        assert cached is not None
        if cached.conversation is not None:
            return cached.conversation.runtime.sizes.fixed.tokens
        if cached.fixed is None:
            counter = TokenCounter.for_model(request.model or None)
            cached.fixed = counter.scale(counter.raw_fixed(request.tools, request.system))
        return cached.fixed

    def estimate(self, request: WireRequest) -> int:
        """Tokens of a request by its text alone: far quicker than opening the conversation."""
        if not request.messages:
            return len(request.data) // BYTES_PER_TOKEN
        counter = TokenCounter.for_model(request.model or None)
        fixed = counter.raw_fixed(request.tools, request.system)
        return counter.scale(fixed + sum(map(counter.raw_message, request.messages)))

    def guess(self, rewrite: Rewrite, said: int, known: CanonicalUsage | None) -> CanonicalUsage:
        """What a call probably used whose usage is not or only partly known; so many bytes of its answer came."""
        output = said // BYTES_PER_TOKEN
        if known is not None and known.prompt_tokens:
            return replace(known, output_tokens=max(known.output_tokens, output))
        request = rewrite.request
        sent = request if rewrite.body == request.data else read_request(request.dialect, rewrite.body)
        return CanonicalUsage(self.estimate(sent), output)

    def _limits(self, model: str, window: int | None) -> Limits:
        known = self._known_limits.get((model, window))
        if known is None:
            if len(self._known_limits) >= MOST_MODELS:
                self._known_limits.clear()
            known = self._known_limits[model, window] = limits_of(self.settings, model, served_window=window)
        return known

    # -- compaction, and the view in the client's own words

    def _runtime(self, rewrite: Rewrite) -> ConversationRuntime:
        assert rewrite.cached is not None
        return self.conversations.open(rewrite.cached, rewrite.request.model, rewrite.window).runtime

    def _compact_due(self, rewrite: Rewrite) -> None:
        runtime = self._runtime(rewrite)
        # That it is too large for its window is an estimate: the provider's own count decides.
        with suppress(FixedPartTooLarge):
            for _ in range(2):
                self._renew_tools(rewrite)
                folded = runtime.log.compactions
                runtime.compactor.prepare(self._tools(rewrite), rewrite.request.system)
                if not rewrite.finds or runtime.log.compactions == folded:
                    return

    def _renew_tools(self, rewrite: Rewrite) -> None:
        """Another set of tools goes out with the first request after a compaction, never before there was one."""
        if rewrite.finds:
            runtime, request = self._runtime(rewrite), rewrite.request
            forced = forced_tools(request.fields)
            runtime.tools.renew(request.tools, keep=forced, hides=is_folded(runtime.log.view.lines))

    def _tools(self, rewrite: Rewrite) -> list[dict[str, Any]]:
        """What the model can call once the conversation is folded."""
        given = rewrite.request.tools
        shown = self._runtime(rewrite).tools.shown(given) if rewrite.finds else [dict(tool) for tool in given]
        return [*shown, *openai_tools()] if rewrite.recall else shown

    def listed_tools(self, rewrite: Rewrite) -> bytes:
        """The same as it is sent."""
        given = rewrite.request.tools
        hidden = self._runtime(rewrite).tools.hidden(given) if rewrite.finds else []
        return listed_tools(rewrite.request, hidden, recall=rewrite.recall)

    def _with_view(self, rewrite: Rewrite) -> Rewrite:
        cached, request = rewrite.cached, rewrite.request
        assert cached is not None
        lines = self._runtime(rewrite).log.view.lines
        if not is_folded(lines):
            return rewrite
        claude = caching.cache_use(request.model, dialect=request.dialect.name).native
        # Folds name the recall tools exactly where the model can call them, whatever held when they were made.
        shown = [rendered_line(line, rewrite.recall) for line in lines]
        body = apply_view(request, shown, ttl=self.settings.prompt_caching.cache_ttl, lay_marks=claude)
        if cached.drops_thinking:
            body = without_thinking(body, request)
        recalled = self._runtime(rewrite).recalled(wanted=self.settings.get("gateway.recall_unasked"))
        if recalled:
            body = with_recalled(body, request, framed(recalled))
        offered = rewrite.recall or (rewrite.finds and bool(self._runtime(rewrite).tools.hidden(request.tools)))
        if offered:
            body = with_tools(body, request, self.listed_tools(rewrite), self._hidden_calls(cached))
        return replace(rewrite, body=body, action=Action.FOLDED, offered=offered)

    # -- recall

    def answers(self, rewrite: Rewrite) -> RecallAnswers:
        """What answers the model's recall calls: this conversation, and no other."""
        by_meaning = self.settings.get("recall.vectors")
        store = self.conversations.store
        find = partial(self._find_tools, rewrite)
        return RecallAnswers(store, rewrite.conversation, rewrite.request.model, find, by_meaning=by_meaning)

    def _find_tools(self, rewrite: Rewrite, query: Any) -> str:
        assert rewrite.cached is not None
        with rewrite.cached.guard:
            return self._runtime(rewrite).tools.find(query, rewrite.request.tools)

    def room(self, rewrite: Rewrite, used: int, added: int) -> int:
        """Tokens that recall may bring when the last request of this conversation took so many.

        Where the server does not count, `used` is 0: then our own measure stands, and the bytes that were added to it.
        """
        assert rewrite.cached is not None
        with rewrite.cached.guard:
            runtime = self._runtime(rewrite)
            taken = used or runtime.compactor.reading.tokens + added // BYTES_PER_TOKEN
            return runtime.sizes.limits.window - runtime.sizes.limits.output_reserve - taken

    def keep_hidden_calls(self, rewrite: Rewrite, hidden: Sequence[HiddenCall]) -> None:
        """Remember what the model asked beside calls of the client's."""
        assert rewrite.cached is not None
        with rewrite.cached.guard:
            kept = [*self._hidden_calls(rewrite.cached), *hidden][-MOST_KEPT:]
            self.conversations.store.state.set(rewrite.cached.id, STATE_KEY, kept)

    def _hidden_calls(self, cached: CachedConversation) -> Sequence[HiddenCall]:
        return self.conversations.store.state.get(cached.id, STATE_KEY) or ()

    # -- what the provider answered

    def recover(self, rewrite: Rewrite, verdict: ErrorVerdict) -> Rewrite | None:
        """Another request to send instead of one that was refused; None when the refusal stands."""
        cached = rewrite.cached
        if cached is None:
            return None
        # Only a compaction touches the conversation; other refusals need not wait for whoever works on it.
        with cached.guard if verdict.foldable else nullcontext():
            step = next_step(rewrite.recovery, verdict, self._facts(rewrite, cached, verdict))
            mended = self._mended(rewrite, cached, step)
        return replace(mended, action=Action.RECOVERED, recovery=step.after) if mended else None

    def _facts(self, rewrite: Rewrite, cached: CachedConversation, verdict: ErrorVerdict) -> Facts:
        request, output = rewrite.request, OutputCap()
        if verdict.kind is ErrorKind.OUTPUT_CAP:
            limit = verdict.stated_limit or self._limits(request.model, rewrite.window).window
            output = output_cap(rewrite.body, request, limit - (verdict.requested or self.estimate(request)))
        rewritten = rewrite.action is not Action.PASSED and request.dialect.items.without_thinking is not None
        return Facts(
            self._runtime(rewrite).sizes.limits.window if verdict.foldable else 0,
            self.settings.compression.enabled,
            output,
            can_drop_thinking=rewritten and not cached.drops_thinking,
        )

    def _mended(self, rewrite: Rewrite, cached: CachedConversation, step: Step) -> Rewrite | None:
        request = rewrite.request
        if step.remedy is Remedy.LOWER_CAP:
            return replace(rewrite, body=with_output_cap(rewrite.body, request, step.cap))
        if step.remedy is Remedy.DROP_THINKING:
            cached.drops_thinking = True
            return replace(rewrite, body=without_thinking(rewrite.body, request))
        if step.remedy is not Remedy.COMPACT:
            return None
        runtime = self._runtime(rewrite)
        if step.stated_window is not None:
            runtime.use_window(step.stated_window)
            address = rewrite.upstream.base_url
            if self._learned.learn(step.stated_window, request.model, "gateway", address, now=time.time()):
                self._learned.save(self.settings.home.limits_file)
        runtime.sizes.measure_fixed(self._tools(rewrite), request.system)
        if not runtime.compactor.shrink(step.trigger).committed:
            return None
        # What goes out now is what the count that comes back is about.
        self._compact_due(rewrite)
        return self._with_view(rewrite)

    def count(self, rewrite: Rewrite, usages: Sequence[CanonicalUsage]) -> None:
        """Write down what an answer used."""
        if rewrite.cached is not None:
            facts = model_facts(rewrite.request.model or None, overrides=self.settings.get("models"))
            for usage in usages:
                call = ModelCall(usage, rewrite.request.model, "chat", cost(usage, facts))
                self.conversations.store.usage.add(rewrite.cached.id, call)

    def settle(self, rewrite: Rewrite, usages: Sequence[CanonicalUsage]) -> None:
        """An answer came and was counted: fold now rather than when the client waits for its next answer.

        There is a usage for each call of the model that the answer took; the first is of the request as it was sent.
        """
        cached, request = rewrite.cached, rewrite.request
        if cached is None:
            return
        with cached.guard:
            if cached.turn != rewrite.turn:
                return
            if usages and rewrite.action is Action.PASSED:
                cached.counted = usages[0].prompt_tokens, len(request.data)
            if cached.conversation is None and not self._may_be_due(rewrite):
                return
            runtime = self._runtime(rewrite)
            if usages:
                runtime.observe(usages[0])
            if runtime.memory.state.attempts:
                runtime.memory.answered()
            runtime.sizes.measure_fixed(self._tools(rewrite), request.system)
            runtime.compactor.when_due(Occasion.TURN, "threshold")
