"""From a client's request to the one that is sent: find the conversation, store what is new, compact when due."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from leporello import caching
from leporello.agent.endpoints import Chosen, choose_model, summariser_for
from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.recovery import Facts, OutputCap, Recovery, Remedy, Step, next_step
from leporello.conversation.rendering import rendered_line
from leporello.dialects.dialect import HiddenCall
from leporello.errors import ConfigError, FixedPartTooLarge
from leporello.fingerprint import start
from leporello.gateway.auth import Client
from leporello.gateway.config import Upstream
from leporello.gateway.proxy.conversations import CachedConversation, ConversationHint, ProxiedConversations
from leporello.gateway.proxy.overlay import apply_view, is_folded, without_thinking
from leporello.gateway.proxy.recall.tool_offer import MOST_KEPT, STATE_KEY, RecallAnswers, can_offer, with_tools
from leporello.gateway.proxy.request import WireRequest, output_cap, with_output_cap
from leporello.models import LearnedLimits, Limits, cost, model_facts
from leporello.models.limits import limits_of
from leporello.policy import Occasion, Situation, decide
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict
from leporello.recall.tools import openai_tools
from leporello.store.records import ModelCall
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage


def proxy_summariser(settings: Settings) -> Summariser | None:
    """The summary model of `auxiliary.compression`; None makes summaries without a model."""
    wanted = settings.summary_model.model
    if not wanted:
        return None
    try:
        main: Chosen = choose_model(settings, wanted)
    except ConfigError:
        return None
    return summariser_for(settings, main, TokenCounter.for_model(wanted))


MOST_MODELS = 1_000
"""Names of models whose limits are at hand; a client may send any."""
BYTES_PER_TOKEN = 3
"""Fewer than in nearly every text: what is measured by it is rather too large than too small."""
CERTAIN = 1.25
"""A request whose estimate is below its threshold even times this is below it, whatever a provider counts."""


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
    done: Action
    live: CachedConversation | None = None
    turn: int = 0
    window: int | None = None
    recovery: Recovery = field(default_factory=lambda: Recovery(shared=True))
    recall: bool = False
    """The client wants the recovery tools for its model, and this request can carry them."""
    offered: bool = False
    """They stand in the body."""

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """What the model can call once the conversation is folded."""
        return (*self.request.tools, *openai_tools()) if self.recall else self.request.tools

    @property
    def conversation(self) -> str:
        """The conversation's id; empty when there is none."""
        return self.live.id if self.live else ""


class RequestRewriter:
    """Plans requests; safe to use from several threads."""

    def __init__(self, talks: ProxiedConversations, settings: Settings) -> None:
        self.talks = talks
        self.settings = settings
        self._known_limits: dict[tuple[str, int | None], Limits] = {}
        self._learned = LearnedLimits.load(settings.home.limits_file, now=time.time())

    def plan(self, request: WireRequest, client: Client, upstream: Upstream, name: str = "") -> Rewrite:
        """The request with all folds that are known and those that are due."""
        if request.stateful:
            return Rewrite(request, upstream, request.data, Action.STATEFUL)
        if not request.messages or not request.model:
            return Rewrite(request, upstream, request.data, Action.UNREAD)
        window = self._window(upstream, request.model)
        wanted = ConversationHint(
            start(client.owner, name),
            request.messages,
            client.key.name or client.owner,
            request.model,
            window,
            len(request.data),
        )
        live = self.talks.take(wanted)
        if live is None:
            return Rewrite(request, upstream, request.data, Action.PASSED)
        with live.guard:
            live.turn += 1
            plan = self._begun(request, client, upstream, live)
            if not live.folded and self._is_small(live, plan):
                return plan
            self._prepare(plan)
            return self._planned(plan)

    def _begun(self, request: WireRequest, client: Client, upstream: Upstream, live: CachedConversation) -> Rewrite:
        window = self._window(upstream, request.model)
        wanted = client.key.recall or (not client.key.hash and self.settings.get("gateway.recall"))
        recall = bool(wanted) and can_offer(request)
        return Rewrite(request, upstream, request.data, Action.PASSED, live, live.turn, window, recall=recall)

    def preview(self, request: WireRequest, client: Client, upstream: Upstream, name: str = "") -> Rewrite:
        """The request with the folds that are known; nothing is stored and nothing is folded."""
        live = None
        if request.messages and not request.stateful:
            live = self.talks.look(start(client.owner, name), request.messages)
        if live is None:
            return Rewrite(request, upstream, request.data, Action.PASSED)
        with live.guard:
            plan = self._begun(request, client, upstream, live)
            return self._planned(plan) if live.folded else plan

    def _is_small(self, live: CachedConversation, plan: Rewrite) -> bool:
        """Whether nothing is due for certain, so that there is no need to open the conversation."""
        if live.conversation is None and self._may_be_due(plan, self._most(live, plan.request)):
            estimate = round(self._estimate(plan.request) * CERTAIN)
            if not self._may_be_due(plan, estimate):
                live.counted = estimate, len(plan.request.data)
        return not self._may_be_due(plan, self._most(live, plan.request))

    def _may_be_due(self, plan: Rewrite, tokens: int) -> bool:
        """Whether a compaction is due at so many tokens when nothing was tried before; otherwise it never is."""
        limits = self._limits(plan.request.model, plan.window)
        enabled = self.settings.compression.enabled
        return decide(Situation(Occasion.PREFLIGHT, limits, tokens, enabled=enabled)).compacts

    def _most(self, live: CachedConversation, request: WireRequest) -> int:
        """More tokens than this the request can't have: what was counted, and a token for each byte since."""
        tokens, size = live.counted
        return tokens + max(0, len(request.data) - size)

    def _estimate(self, request: WireRequest) -> int:
        """Tokens of a request by its text alone: far quicker than opening the conversation."""
        counter = TokenCounter.for_model(request.model or None)
        fixed = counter.raw_fixed(request.tools, request.system)
        return counter.scale(fixed + sum(map(counter.raw_message, request.messages)))

    def _limits(self, model: str, window: int | None) -> Limits:
        known = self._known_limits.get((model, window))
        if known is None:
            if len(self._known_limits) >= MOST_MODELS:
                self._known_limits.clear()
            known = self._known_limits[model, window] = limits_of(self.settings, model, served_window=window)
        return known

    def _talk(self, plan: Rewrite) -> Conversation:
        assert plan.live is not None
        return self.talks.open(plan.live, plan.request.model, plan.window)

    def _window(self, upstream: Upstream, model: str) -> int | None:
        learned = self._learned.window(model, "gateway", upstream.base_url, now=time.time())
        return min((size for size in (upstream.window, learned) if size), default=None)

    def _prepare(self, plan: Rewrite) -> None:
        """Compact what is due."""
        # That it is too large for its window is an estimate: the provider's own count decides.
        with suppress(FixedPartTooLarge):
            self._talk(plan).runtime.compactor.prepare(plan.tools, plan.request.system)

    def _planned(self, plan: Rewrite) -> Rewrite:
        live, request = plan.live, plan.request
        assert live is not None
        lines = self._talk(plan).runtime.log.view.lines
        if not is_folded(lines):
            return plan
        caching_settings = self.settings.prompt_caching
        claude = caching.cache_use(request.model, dialect=request.dialect.name).native
        # Folds name the recall tools exactly where the model can call them, whatever held when they were made.
        shown = [rendered_line(line, plan.recall) for line in lines]
        body = apply_view(request, shown, ttl=caching_settings.cache_ttl, lay_marks=claude)
        if live.thoughtless:
            body = without_thinking(body, request.dialect)
        if plan.recall:
            body = with_tools(body, request, self._asides(live))
        return replace(plan, body=body, done=Action.FOLDED, offered=plan.recall)

    # -- recall

    def answers(self, plan: Rewrite) -> RecallAnswers:
        """What answers the model's recall calls: this conversation, and no other."""
        assert plan.live is not None
        by_meaning = self.settings.get("recall.vectors")
        return RecallAnswers(self.talks.store, plan.live.id, plan.request.model, by_meaning=by_meaning)

    def room(self, plan: Rewrite, used: int, added: int) -> int:
        """Tokens that recall may bring when the last request of this conversation took so many.

        Where the server does not count, `used` is 0: then our own measure stands, and the bytes that were added to it.
        """
        assert plan.live is not None
        with plan.live.guard:
            runtime = self._talk(plan).runtime
            taken = used or runtime.compactor.reading.tokens + added // BYTES_PER_TOKEN
            return runtime.sizes.limits.window - runtime.sizes.limits.output_reserve - taken

    def keep_asides(self, plan: Rewrite, asides: Sequence[HiddenCall]) -> None:
        """Remember what the model asked beside calls of the client's."""
        assert plan.live is not None
        with plan.live.guard:
            kept = [*self._asides(plan.live), *asides][-MOST_KEPT:]
            self.talks.store.state.set(plan.live.id, STATE_KEY, kept)

    def _asides(self, live: CachedConversation) -> Sequence[HiddenCall]:
        return self.talks.store.state.get(live.id, STATE_KEY) or ()

    # -- what the provider answered

    def recover(self, plan: Rewrite, verdict: ErrorVerdict) -> Rewrite | None:
        """Another request to send instead of one that was refused; None when the refusal stands."""
        if plan.live is None:
            return None
        # Only a compaction touches the conversation; other refusals need not wait for whoever works on it.
        with plan.live.guard if verdict.foldable else nullcontext():
            step = next_step(plan.recovery, verdict, self._facts(plan, plan.live, verdict))
            mended = self._mended(plan, plan.live, step)
        return replace(mended, done=Action.RECOVERED, recovery=step.after) if mended else None

    def _facts(self, plan: Rewrite, live: CachedConversation, verdict: ErrorVerdict) -> Facts:
        output = OutputCap()
        if verdict.kind is ErrorKind.OUTPUT_CAP:
            limit = verdict.stated_limit or self._limits(plan.request.model, plan.window).window
            room = limit - (verdict.requested or self._estimate(plan.request))
            output = output_cap(plan.body, plan.request, room)
        rewritten = plan.done is not Action.PASSED and plan.request.dialect.items.without_thinking is not None
        return Facts(
            self._talk(plan).runtime.sizes.limits.window if verdict.foldable else 0,
            self.settings.compression.enabled,
            output,
            can_drop_thinking=rewritten and not live.thoughtless,
        )

    def _mended(self, plan: Rewrite, live: CachedConversation, step: Step) -> Rewrite | None:
        if step.remedy is Remedy.LOWER_CAP:
            return replace(plan, body=with_output_cap(plan.body, plan.request, step.cap))
        if step.remedy is Remedy.DROP_THINKING:
            live.thoughtless = True
            return replace(plan, body=without_thinking(plan.body, plan.request.dialect))
        if step.remedy is not Remedy.COMPACT:
            return None
        runtime = self._talk(plan).runtime
        if step.stated_window is not None:
            runtime.use_window(step.stated_window)
            self._remember(plan, step.stated_window)
        runtime.sizes.measure_fixed(plan.tools, plan.request.system)
        if not runtime.compactor.shrink(step.trigger).committed:
            return None
        # What goes out now is what the count that comes back is about.
        self._prepare(plan)
        return self._planned(plan)

    def _remember(self, plan: Rewrite, window: int) -> None:
        if self._learned.learn(window, plan.request.model, "gateway", plan.upstream.base_url, now=time.time()):
            self._learned.save(self.settings.home.limits_file)

    def settle(self, plan: Rewrite, usages: Sequence[CanonicalUsage]) -> None:
        """An answer came: count it, and fold now rather than when the client waits for its next answer.

        There is a usage for each call of the model that the answer took; the first is of the request as it was planned.
        """
        live = plan.live
        if live is None:
            return
        with live.guard:
            facts = model_facts(plan.request.model or None)
            for usage in usages:
                self.talks.store.usage.add(live.id, ModelCall(usage, plan.request.model, "chat", cost(usage, facts)))
            if live.turn != plan.turn:
                return
            if usages and plan.done is Action.PASSED:
                live.counted = usages[0].prompt_tokens, len(plan.request.data)
            if live.conversation is None and not self._may_be_due(plan, self._most(live, plan.request)):
                return
            self._settle(plan, usages[0] if usages else None)

    def _settle(self, plan: Rewrite, usage: CanonicalUsage | None) -> None:
        runtime = self._talk(plan).runtime
        if usage is not None:
            runtime.observe(usage)
        if runtime.compactor.state.attempts:
            runtime.compactor.answered()
        runtime.sizes.measure_fixed(plan.tools, plan.request.system)
        if runtime.compactor.decide(Occasion.TURN).compacts:
            self._prepare(plan)
