"""From a client's request to the one that is sent: find the conversation, store what is new, compact when due."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from leporello import caching
from leporello.agent.session import Chosen, choose_model, summariser_for
from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.state import ATTEMPTS_KEY
from leporello.dialects.merge import HiddenCall
from leporello.dialects.request import Body
from leporello.errors import ConfigError, FixedPartTooLarge
from leporello.fingerprint import start
from leporello.gateway.auth import Client
from leporello.gateway.config import Upstream
from leporello.gateway.proxy.conversations import CachedConversation, ConversationHint, ProxiedConversations
from leporello.gateway.proxy.overlay import apply_view, is_folded, with_footers, without_thinking
from leporello.gateway.proxy.recall.tool_offer import MOST_KEPT, STATE_KEY, RecallAnswers, can_offer, with_tools
from leporello.gateway.proxy.request import WireRequest
from leporello.models import LearnedLimits, cost, model_facts
from leporello.models.limits import limits_of
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


LEAST_OUTPUT = 64


def lowered(data: bytes, request: WireRequest, allowed: int) -> bytes | None:
    """The body with a lower cap; None when no lower one makes sense.

    `allowed` may be an estimate that can't be right, because it would have let the cap pass or leaves nothing: then
    half of the cap is tried.
    """
    body = Body.read(data, request.dialect.fields.conversation)
    if body is None:
        return None
    names = [name for name in request.dialect.fields.output_caps if name in body.fields]
    caps = [orjson.loads(body.fields[name]) for name in names]
    wanted = min((cap for cap in caps if isinstance(cap, int) and not isinstance(cap, bool)), default=0)
    least = max(LEAST_OUTPUT, _thinking(request) + 1)
    cap = allowed if least <= allowed < wanted else wanted // 2
    if cap < least:
        return None
    return body.with_items(body.items, **dict.fromkeys(names, orjson.dumps(cap)))


def _thinking(request: WireRequest) -> int:
    """What the client sets aside for thinking must stay below the cap, or the request is refused for that."""
    thinking = request.fields.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return budget if isinstance(budget, int) else 0


MOST_RECOVERIES = 3
MOST_MODELS = 1_000
"""Names of models whose thresholds are at hand; a client may send any."""
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
    recoveries: int = 0
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
        self._thresholds: dict[tuple[str, int | None], int] = {}
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
            self._fold_when_due(plan)
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
        """Whether the request is below its threshold for certain, so that there is nothing to decide."""
        threshold = self._threshold(plan.request.model, plan.window)
        if live.conversation is None and self._most(live, plan.request) >= threshold:
            estimate = round(self._estimate(plan.request) * CERTAIN)
            if estimate < threshold:
                live.counted = estimate, len(plan.request.data)
        return self._most(live, plan.request) < threshold

    def _most(self, live: CachedConversation, request: WireRequest) -> int:
        """More tokens than this the request can't have: what was counted, and a token for each byte since."""
        tokens, size = live.counted
        return tokens + max(0, len(request.data) - size)

    def _estimate(self, request: WireRequest) -> int:
        """Tokens of a request by its text alone: far quicker than opening the conversation."""
        counter = TokenCounter.for_model(request.model or None)
        fixed = counter.raw_fixed(request.tools, request.system)
        return counter.scale(fixed + sum(map(counter.raw_message, request.messages)))

    def _threshold(self, model: str, window: int | None) -> int:
        """Where folding begins; nothing is ever due when it is switched off."""
        if not self.settings.compression.enabled:
            return sys.maxsize
        known = self._thresholds.get((model, window))
        if known is None:
            if len(self._thresholds) >= MOST_MODELS:
                self._thresholds.clear()
            known = limits_of(self.settings, model, served_window=window).threshold_tokens
            self._thresholds[model, window] = known
        return known

    def _talk(self, plan: Rewrite) -> Conversation:
        assert plan.live is not None
        return self.talks.open(plan.live, plan.request.model, plan.window)

    def _window(self, upstream: Upstream, model: str) -> int | None:
        learned = self._learned.window(model, "gateway", upstream.base_url, now=time.time())
        return min((size for size in (upstream.window, learned) if size), default=None)

    def _fold_when_due(self, plan: Rewrite) -> None:
        # That it is too large for its window is an estimate: the provider's own count decides.
        with suppress(FixedPartTooLarge):
            self._talk(plan).request(plan.tools, plan.request.system)

    def _planned(self, plan: Rewrite) -> Rewrite:
        live, request = plan.live, plan.request
        assert live is not None
        lines = self._talk(plan).view.lines
        if not is_folded(lines):
            return plan
        caching_settings = self.settings.prompt_caching
        claude = caching.cache_use(request.model, dialect=request.dialect.name).native
        shown = with_footers(lines, callable_here=plan.recall)
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
            talk = self._talk(plan)
            taken = used or talk.reading.tokens + added // BYTES_PER_TOKEN
            return talk.limits.window - talk.limits.output_reserve - taken

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
        if plan.live is None or plan.recoveries >= MOST_RECOVERIES:
            return None
        if verdict.kind is ErrorKind.OUTPUT_CAP:
            return self._with_less_output(plan, verdict)
        if verdict.cause in ("stale_thinking", "missing_thinking") and plan.done is not Action.PASSED:
            return self._without_thinking(plan)
        if not verdict.foldable or not self.settings.compression.enabled:
            return None
        live = plan.live
        with live.guard:
            self._learn(plan, verdict)
            talk = self._talk(plan)
            talk.measure_fixed(plan.tools, plan.request.system)
            report = talk.shrink(f"overflow {plan.recoveries + 1}")
            if not report.committed:
                return None
            # What goes out now is what the count that comes back is about.
            self._fold_when_due(plan)
            made = self._planned(replace(plan, recoveries=plan.recoveries + 1))
        return replace(made, done=Action.RECOVERED)

    def _learn(self, plan: Rewrite, verdict: ErrorVerdict) -> None:
        talk, limit = self._talk(plan), verdict.stated_limit
        if limit is None or limit >= talk.limits.window:
            return
        talk.use_window(limit)
        if self._learned.learn(limit, plan.request.model, "gateway", plan.upstream.base_url, now=time.time()):
            self._learned.save(self.settings.home.limits_file)

    def _with_less_output(self, plan: Rewrite, verdict: ErrorVerdict) -> Rewrite | None:
        """Input and answer together are too long: ask for a shorter answer. A cap of the model itself stands."""
        if verdict.stated_limit is None and verdict.allowed_output:
            return None
        limit = verdict.stated_limit or limits_of(self.settings, plan.request.model, served_window=plan.window).window
        allowed = verdict.allowed_output or limit - (verdict.requested or self._estimate(plan.request))
        body = lowered(plan.body, plan.request, allowed)
        return replace(plan, body=body, done=Action.RECOVERED, recoveries=plan.recoveries + 1) if body else None

    def _without_thinking(self, plan: Rewrite) -> Rewrite | None:
        assert plan.live is not None
        if plan.request.dialect.items.without_thinking is None or plan.live.thoughtless:
            return None
        plan.live.thoughtless = True
        body = without_thinking(plan.body, plan.request.dialect)
        return replace(plan, body=body, done=Action.RECOVERED, recoveries=plan.recoveries + 1)

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
            threshold = self._threshold(plan.request.model, plan.window)
            if live.conversation is None and self._most(live, plan.request) < threshold:
                return
            self._settle(plan, usages[0] if usages else None)

    def _settle(self, plan: Rewrite, usage: CanonicalUsage | None) -> None:
        talk = self._talk(plan)
        attempted = talk.engine.attempts
        talk.engine.attempts = 0
        if usage is not None:
            talk.meter.observe(usage.prompt_tokens)
            talk.engine.update_from_response(usage.as_engine_dict())
        if attempted:
            talk.store.state.remove(talk.id, ATTEMPTS_KEY)
        talk.measure_fixed(plan.tools, plan.request.system)
        if self.settings.compression.enabled and talk.engine.should_compress(talk.reading.tokens):
            self._fold_when_due(plan)
