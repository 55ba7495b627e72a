"""`PromptMeter`: the number that decides when to compact.

The provider's own count of the last request is exact; only what was added since must be estimated. So the decision
number is *last real prompt tokens + estimate of the new messages*, and falls back to a pure estimate when there is no
real count or the list is no longer the one that was sent. Either way a turn costs only what is new.

    reading = meter.read(messages, tools, system)     # before each call: how large would this request be?
    meter.sent(messages, tools, system)               # this is what goes out now
    meter.observe(usage.prompt_tokens)                # and this is what the provider counted
    meter.reset()                                     # the view was folded: the old count no longer applies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from leporello.messages import Message, hash_bytes, message_hash
from leporello.tokens.counter import TokenCounter

LEAST_GROWTH = 2_000
"""Smaller growth since the first count says more about framing and dropped thinking than about the vocabulary."""

PLAUSIBLE = (0.7, 1.6)
"""A first count outside of these is explained by parts that nobody shows us, not by the vocabulary."""

PROBES = 8
METER_VERSION = 1


@dataclass(frozen=True, slots=True)
class PromptSize:
    """How many tokens the next request has, and how much of that the provider itself counted."""

    tokens: int
    real: int
    """Tokens the provider itself counted; 0 when everything is an estimate."""
    added: int
    """Estimated tokens on top of it."""

    @property
    def measured(self) -> bool:
        """Whether a real count is part of it."""
        return self.real > 0


class _Sent(Struct, frozen=True):
    """One request that went out: enough to recognise its messages again, and its raw estimate."""

    length: int
    raw: float
    """Of the messages."""
    fixed: float
    """Of system and tools."""
    probes: tuple[tuple[int, str], ...]

    @property
    def total(self) -> float:
        return self.raw + self.fixed


class PromptMeter:
    """Measures one conversation with one model. After a change of model, make a new one."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._pending: _Sent | None = None
        self._counted: _Sent | None = None
        self._estimated: _Sent | None = None
        """The request last sent, whether or not a provider counts: what follows it is all that is new."""
        self._real = 0
        self._base: tuple[float, int] | None = None
        """Raw estimate and real count of the first request of this list; growth is judged against it."""
        self._hidden = 0.0  # raw tokens that no estimate explains: what the provider or a proxy adds without showing it

    def read(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), system: str = ""
    ) -> PromptSize:
        return self.read_beside(messages, self.counter.raw_fixed(tools, system))

    def read_beside(self, messages: Sequence[Message], fixed: float) -> PromptSize:
        """The same for a fixed part (system and tools) of which only the raw count is at hand."""
        known = self._counted
        if known is not None and _begins_with(messages, known):
            raw = sum(map(self.counter.raw_message, messages[known.length :])) + max(0.0, fixed - known.fixed)
            added = self.counter.scale(raw)
            return PromptSize(self._real + added, self._real, added)
        estimate = self.counter.scale(self._raw(messages) + fixed + self._hidden)
        return PromptSize(estimate, 0, estimate)

    def sent(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), system: str = "") -> None:
        """Remember what goes out now, so that `observe` knows what was counted."""
        known = self._counted
        if known is not None and not _begins_with(messages, known):
            self.reset()
        fixed = self.counter.raw_fixed(tools, system)
        self._estimated = self._pending = _Sent(len(messages), self._raw(messages), fixed, _probes(messages))

    def observe(self, prompt_tokens: int) -> None:
        """The provider's count of the request last sent. Zero means that it reported none."""
        pending, self._pending = self._pending, None
        if pending is None or prompt_tokens <= 0:
            return
        self._learn(pending, prompt_tokens)
        # A negative rest is thinking that the provider dropped; it must not shrink the estimate of another list.
        self._hidden = round(max(0.0, prompt_tokens / self.counter.calibration.factor - pending.total), 1)
        self._counted, self._real = pending, prompt_tokens

    def reset(self) -> None:
        """The messages were folded or replaced. What was learned about the model and its hidden part stays."""
        self._pending = self._counted = self._estimated = self._base = None
        self._real = 0

    def export(self) -> dict[str, Any]:
        """JSON-ready: after a restart the first reading is the same as without it."""
        state: dict[str, Any] = {"v": METER_VERSION, "hidden": self._hidden, "counter": self.counter.export()}
        if self._counted is not None:
            known = self._counted
            state["counted"] = [known.length, known.raw, known.fixed, [list(probe) for probe in known.probes]]
            state["real"], state["base"] = self._real, list(self._base or ())
        return state

    def restore(self, state: Mapping[str, Any]) -> bool:
        """Take over an exported state; False (and a fresh start) when it can't be read."""
        self.reset()
        self._hidden = 0.0
        try:
            if state["v"] != METER_VERSION or not self.counter.restore(state["counter"]):
                return False
            hidden = float(state["hidden"])
            if "counted" in state:
                length, raw, fixed, probes = state["counted"]
                marks = tuple((int(place), str(key)) for place, key in probes)
                known = _Sent(int(length), float(raw), float(fixed), marks)
                real, base = int(state["real"]), state["base"]
                self._base = (float(base[0]), int(base[1])) if base else None
                self._counted, self._real = known, real
        except (KeyError, TypeError, ValueError, IndexError):
            self.reset()
            return False
        self._hidden = hidden
        return True

    def _raw(self, messages: Sequence[Message]) -> float:
        known = self._estimated or self._counted
        if known is None or not _begins_with(messages, known):
            return sum(map(self.counter.raw_message, messages))
        return sum(map(self.counter.raw_message, messages[known.length :]), known.raw)

    def _learn(self, pending: _Sent, real: int) -> None:
        # Growth since the first count tells about the vocabulary alone; a total may contain parts we never see.
        factor = self.counter.calibration.factor
        if self._base is None:
            self._base = pending.total, real
            estimate = pending.total * factor
            if self.counter.calibration.observations == 0 and PLAUSIBLE[0] <= real / estimate <= PLAUSIBLE[1]:
                self.counter.learn(round(estimate), real)
            return
        growth = (pending.total - self._base[0]) * factor
        if growth >= LEAST_GROWTH and real > self._base[1]:
            self.counter.learn(round(growth), real - self._base[1])


def _probes(messages: Sequence[Message]) -> tuple[tuple[int, str], ...]:
    """A few positions, the last one among them, with their hashes."""
    length = len(messages)
    if not length:
        return ()
    places = sorted({length - 1, *(length * step // PROBES for step in range(PROBES))})
    return tuple((place, _hash(messages[place])) for place in places)


def _begins_with(messages: Sequence[Message], known: _Sent) -> bool:
    if len(messages) < known.length:
        return False
    return all(_hash(messages[place]) == key for place, key in reversed(known.probes))


def _hash(message: Message) -> str:
    try:
        return message_hash(message)
    except (TypeError, ValueError):
        return hash_bytes(repr(sorted(message)).encode("utf-8", "replace"))
