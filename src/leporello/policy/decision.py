"""When to compact and how deep: the one place that decides it. Pure.

Hard rules come first: what was switched off, attempts in vain, the window, the threshold. Below them price decides by
rent or buy: every request reads what a compaction would have taken out of it; when those reads have cost as much since
the last compaction as writing the compacted view would, it is made. That needs no forecast, and costs at most twice
what the best moment would have. A cold cache makes it free: the request is written anew anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from msgspec import Struct

from leporello.models import Limits
from leporello.policy.prices import PriceTable, UnitPrices

ECONOMY, BALANCED, MEMORY = "economy", "balanced", "memory"
POLICIES = (ECONOMY, BALANCED, MEMORY)
DEFAULT = BALANCED
MOST_KEPT = {ECONOMY: 8_000, BALANCED: 13_900, MEMORY: 31_000}
"""Foldable tokens: points on the line of recall against bill (decisions 0024 and 0053)."""
LARGE_SHARE = 0.5
"""Of what the window suggests: `memory` keeps at least that, which is more than its tokens in a very large one."""
BY_WINDOW = "window"
"""No policy: as much as the window suggests, for hosts that count no money."""


def depth_of(limits: Limits, fixed: int = 0, policy: str = DEFAULT) -> int:
    """Foldable tokens that a compaction aims to leave: a share of what instructions and tools leave of the window."""
    room = max(0, limits.hard_tokens - fixed)
    most = limits.aim_tokens * room // max(1, limits.hard_tokens)
    kept = MOST_KEPT.get(policy, most)
    if policy == MEMORY:
        kept = max(kept, int(most * LARGE_SHARE))
    return max(1, min(most, kept))


MOST_ATTEMPTS = 3
"""Automatic attempts without an answer of the model in between; then it waits, so that it can't loop."""
LEAST_SAVING = 0.10
"""A compaction that saves less of the foldable tokens is not worth breaking the prompt cache for."""
COLD_SAVING = 0.25
"""The same before a request that is written anew anyway: what is not folded yet is worth more than a few tokens."""
HYGIENE_SHARE = 0.85
"""Of the window: a conversation this full is compacted before a message that was sent to it is taken in."""
HYGIENE_LEAST_MESSAGES = 4
LEAST_REWRITING = 0.5
"""What writing a token of the new view is taken to cost at least, in plain tokens: without a prompt cache it costs no
more than reading the old one, and the conversation would be compacted before every request."""
SUMMARY_TOKENS = 2_000
"""What a model writes for a summary, for the price of it."""
DISABLED = "compression.enabled is false"


class Occasion(StrEnum):
    """Who asks, and when."""

    TURN = "turn"
    """An answer came and the turn is over."""
    PREFLIGHT = "preflight"
    """A request is about to be sent."""
    HARD_LIMIT = "hard limit"
    """A request is about to be sent, and the compaction that was due did not make it fit, or there was none."""
    HYGIENE = "hygiene"
    """A message waits to be taken in."""
    OVERFLOW = "overflow"
    """The provider refused the request as too long, or an answer filled the window."""
    MANUAL = "manual"


class Action(StrEnum):
    """What to do now. Blocked: it would be due, or nobody looked, but it is not allowed."""

    WAIT = "wait"
    PREPARE = "prepare"
    """It is due, and the next request fits without it: make it beside the conversation, or now where nobody can."""
    COMPACT = "compact"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class CompactionState:
    """What earlier requests and compactions left behind for the next decision."""

    attempts: int = 0
    """Automatic ones since the model's last answer."""
    wait_for: int = 0
    """Tokens below which no automatic attempt is made, whatever the threshold says."""
    kept: int = 0
    """Foldable tokens that the last compaction left, when those were more than it aimed at."""
    written: int = 0
    """Tokens that the last compaction wrote anew; 0: there was none."""
    rent: float = 0.0
    """What carrying the foldable excess has cost in reads since the last compaction."""
    sent_at: float = 0.0
    """When the last request went out; 0: none did. Long ago after a switch to another model."""
    dropped: int = 0
    """Tokens by which requests are shorter than the whole log would be."""
    saved: float = 0.0
    """What compactions saved so far, less what they cost; may be negative."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a decision is made from."""

    occasion: Occasion
    limits: Limits
    tokens: int
    """Of the whole request: instructions, tools and messages."""
    messages: int = 0
    state: CompactionState = field(default_factory=CompactionState)
    enabled: bool = True
    """`compression.enabled`."""
    engine_wants: bool | None = None
    """What an engine with a judgement of its own says; None for those that go by the policy."""
    fixed: int = 0
    """Tokens that no compaction can take away: instructions and tools."""
    depth: int = 0
    """Foldable tokens that a compaction aims to leave; 0: the limits' own aim."""
    prices: PriceTable | None = None
    """None: price decides nothing, only sizes do."""
    summary_model: bool = False
    """Whether a model writes the summaries, which costs a call."""
    now: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For the log: the same decision can be made from it again."""
        return asdict(replace(self, limits=replace(self.limits, sources={})))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Situation:
        """From `as_dict`, as it was stored."""
        prices = data["prices"]
        if prices is not None:
            steps = tuple((above, UnitPrices(**step)) for above, step in prices["steps"])
            prices = PriceTable(**{**prices, "base": UnitPrices(**prices["base"]), "steps": steps})
        return cls(
            **{
                **data,
                "occasion": Occasion(data["occasion"]),
                "limits": Limits(**data["limits"]),
                "state": CompactionState(**data["state"]),
                "prices": prices,
            }
        )


class Forecast(Struct, frozen=True):
    """What a compaction would change, in tokens and in units of plain input tokens."""

    foldable: int
    after: int
    """Foldable tokens that it would leave."""
    cost: float = 0.0
    """Of making it now: writing the new view instead of reading the old one, and a summary call."""
    reads: float = 0.0
    """What a request costs more without it."""
    cold: bool = False
    """Whether the next request is written anew anyway."""

    @property
    def gain(self) -> int:
        return self.foldable - self.after

    def gains(self, share: float) -> bool:
        """Whether it saves at least this share of the foldable tokens."""
        return self.foldable > 0 and self.gain >= share * self.foldable


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, how deep, and why in words."""

    action: Action
    reason: str
    final: bool = True
    """Whether an engine with a judgement of its own is not asked."""
    depth: int = 0
    forecast: Forecast | None = None

    @property
    def compacts(self) -> bool:
        """Whether a compaction is due."""
        return self.action in (Action.COMPACT, Action.PREPARE)

    @property
    def deferrable(self) -> bool:
        """Whether the next request fits without it, so that it can be made beside the conversation."""
        return self.action is Action.PREPARE


_PLAINLY = {
    Action.WAIT: "No compaction now",
    Action.PREPARE: "A compaction is due and is made while no request waits",
    Action.COMPACT: "Compacts before the next request",
    Action.BLOCKED: "No compaction",
}
_BRIEF = {
    Action.PREPARE: "preparing a compaction",
    Action.COMPACT: "compacts next",
    Action.BLOCKED: "no compaction",
}


def decide(situation: Situation) -> Decision:
    """Whether to compact now, and how deep."""
    return replace(_decide(situation), depth=situation.depth or situation.limits.aim_tokens)


def _decide(situation: Situation) -> Decision:
    tokens, limits, state = situation.tokens, situation.limits, situation.state
    if situation.occasion is Occasion.MANUAL:
        return Decision(Action.COMPACT, "It was asked for.")
    if not situation.enabled:
        return Decision(Action.BLOCKED, DISABLED)
    if situation.occasion is Occasion.HARD_LIMIT:
        # Whatever was tried before: nothing is refused that a compaction would cure.
        if fits(limits, tokens):
            return Decision(Action.WAIT, f"{tokens:,} tokens fit into the window of {limits.window:,}")
        return Decision(Action.COMPACT, f"{tokens:,} tokens exceed the window of {limits.window:,}")
    if state.attempts >= MOST_ATTEMPTS:
        return Decision(Action.BLOCKED, f"{MOST_ATTEMPTS} automatic attempts were made without an answer in between")
    if situation.occasion is Occasion.OVERFLOW:
        return Decision(Action.COMPACT, f"The provider refused {tokens:,} tokens as too long")
    if situation.occasion is Occasion.HYGIENE:
        return _hygiene(situation)
    return _by_size(situation)


def _hygiene(situation: Situation) -> Decision:
    tokens, window = situation.tokens, situation.limits.window
    if situation.messages < HYGIENE_LEAST_MESSAGES:
        return Decision(Action.WAIT, f"{situation.messages} messages are fewer than {HYGIENE_LEAST_MESSAGES}")
    if tokens < HYGIENE_SHARE * window:
        return Decision(Action.WAIT, f"{tokens:,} tokens are less than {HYGIENE_SHARE:.0%} of {window:,}")
    return Decision(Action.COMPACT, f"{tokens:,} tokens are {HYGIENE_SHARE:.0%} of {window:,} or more")


def _by_size(situation: Situation) -> Decision:
    tokens, limits, wait_for = situation.tokens, situation.limits, situation.state.wait_for
    if tokens < wait_for:
        return Decision(
            Action.WAIT,
            f"{tokens:,} tokens; after an undo, or an attempt that brought little, it waits for {wait_for:,}",
        )
    pressing = tokens >= limits.hard_tokens
    if situation.engine_wants is not None and not pressing:
        action = Action.COMPACT if situation.engine_wants else Action.WAIT
        # Never put off: it may keep things in its own instance, so it compacts where it is.
        return Decision(action, f"The engine's own judgement at {tokens:,} tokens")
    mark = due_at(limits, situation.state, situation.fixed, situation.depth)
    if tokens >= mark > 0 and (pressing or _can_help(situation)):
        action = Action.COMPACT if pressing else Action.PREPARE
        return Decision(action, f"{tokens:,} tokens reach the threshold of {mark:,}", final=pressing)
    if situation.prices is None:
        return Decision(Action.WAIT, f"{tokens:,} tokens are below the threshold of {mark:,}", final=False)
    return _by_price(situation, forecast(situation, situation.prices), situation.prices, mark)


def _can_help(situation: Situation) -> bool:
    """Whether a compaction at the threshold would bring the tenth; in doubt it is tried.

    It would not where instructions and tools fill the room below the threshold, until there is more to fold.
    """
    fixed, depth = situation.fixed, situation.depth
    crowded = fixed + depth >= situation.limits.threshold_tokens * (1 - LEAST_SAVING)
    return not crowded or saves_enough(situation.tokens - fixed, depth)


def _by_price(situation: Situation, coming: Forecast, prices: PriceTable, mark: int) -> Decision:
    rent = situation.state.rent
    if coming.cold and situation.occasion is Occasion.PREFLIGHT and coming.gains(COLD_SAVING):
        saved = prices.money(prices.at(situation.tokens).write * coming.gain)
        reason = f"The prompt cache is cold: sending {coming.gain:,} tokens less saves {saved} at once"
        return Decision(Action.COMPACT, reason, final=False, forecast=coming)
    if not coming.gains(LEAST_SAVING):
        reason = f"it would save {max(0, coming.gain):,} of the {coming.foldable:,} tokens that can be folded"
        return Decision(Action.WAIT, f"{reason}; the threshold is {mark:,}", final=False, forecast=coming)
    told = (
        f"sending {coming.gain:,} tokens along has cost {prices.money(rent)} so far, a compaction costs "
        f"{prices.money(coming.cost)}"
    )
    if not coming.cold and rent >= coming.cost:
        return Decision(Action.PREPARE, f"it is worth its price: {told}", final=False, forecast=coming)
    reason = f"not worth its price yet: {told}; the threshold is {mark:,}"
    return Decision(Action.WAIT, reason, final=False, forecast=coming)


def due_at(limits: Limits, state: CompactionState | None = None, fixed: int = 0, depth: int = 0) -> int:
    """At how many tokens the next compaction is made, whatever it costs.

    The threshold is met once where instructions and what is kept stand above it anyway; from then on it is the hard
    limit, and price decides below that.
    """
    if state is None:
        return limits.threshold_tokens
    stays = fixed + max(state.kept, depth)
    met = state.written and stays >= limits.threshold_tokens * (1 - LEAST_SAVING)
    return max(limits.hard_tokens if met else limits.threshold_tokens, state.wait_for)


def forecast(situation: Situation, prices: PriceTable) -> Forecast:
    """What a compaction would bring and cost as things stand."""
    state, tokens = situation.state, situation.tokens
    foldable = max(0, tokens - situation.fixed)
    depth = situation.depth or situation.limits.aim_tokens
    # What stood in the way of the last one, a long message for example, may still do so.
    after = min(foldable, max(depth, state.kept))
    now, then = prices.at(tokens), prices.at(tokens - foldable + after)
    warm = prices.warm_seconds
    cold = state.sent_at > 0 and warm is not None and situation.now - state.sent_at > warm
    # Before a cold request nobody waits for a model.
    asks_model = situation.summary_model and not cold
    summary = foldable * now.plain + SUMMARY_TOKENS * now.output if asks_model else 0.0
    written = min(state.written, after) or after
    rewriting = 0.0 if cold else max(LEAST_REWRITING * then.plain, then.write - now.read) * written
    reads = max(0.0, now.read * tokens - then.read * (tokens - foldable + after))
    return Forecast(foldable, after, rewriting + summary, reads, cold)


def outlook(situation: Situation, decision: Decision) -> list[str]:
    """The decision for people: what, why, and what compactions saved so far, also when that is negative."""
    state, prices = situation.state, situation.prices
    told = [f"{_PLAINLY[decision.action]}: {decision.reason}"]
    if prices is not None and state.dropped:
        saved = prices.money(abs(state.saved))
        told.append(
            f"compactions have {'saved' if state.saved >= 0 else 'cost'} {saved} so far, their own price included"
        )
    return told


def brief(situation: Situation, decision: Decision) -> list[str]:
    """The same in as few words as a status line has room for."""
    state, prices, coming = situation.state, situation.prices, decision.forecast
    told = []
    if decision.action is not Action.WAIT:
        told.append(_BRIEF[decision.action])
    elif coming is not None and coming.gains(LEAST_SAVING) and coming.cost > 0:
        told.append(f"next fold {min(1.0, state.rent / coming.cost):.0%} paid")
    if prices is not None and state.dropped:
        told.append(f"{'saved' if state.saved >= 0 else 'net cost'} {prices.money(abs(state.saved))}")
    return told


def fits(limits: Limits, tokens: int) -> bool:
    """Whether a request can be sent at all."""
    return tokens <= limits.window


def refused_window(limits: Limits, tokens: int) -> int | None:
    """The window to compact for when a request of so many tokens was refused; None when the known one explains it.

    The real window is smaller than the known one then, and nobody said how small: the refused request is taken to
    have filled it. That is a guess, so it serves once; only what a provider states is kept.
    """
    return tokens if tokens < limits.window else None


def saves_enough(before: int, after: int) -> bool:
    """Whether a compaction from so many foldable tokens to so many is worth it."""
    return after <= before * (1 - LEAST_SAVING)
