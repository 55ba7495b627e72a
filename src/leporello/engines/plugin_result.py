"""What a foreign engine returned, judged and recorded: is the list fit to be sent, and what is new in it. Pure.

A list is taken only when providers would accept it and nothing is lost that must never be: instructions, the newest
request word for word, calls that still wait for results. Messages that stand in it unchanged become references to the
log, so that a view of any engine can be undone, expanded and resumed like our own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leporello.compaction.view import Item, MessageHashes, Origin
from leporello.events import Span
from leporello.messages import Message, decode_json, encode_json, is_instruction, role_of, text_of
from leporello.redact.messages import masked
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff
from leporello.turns import ViolationKind, open_group, validate

_TOLERATED = {ViolationKind.UNKNOWN_ROLE, ViolationKind.LATE_SYSTEM, ViolationKind.NO_USER}
"""What the input had already is the caller's affair."""


class UnfitResult(Exception):
    """What was returned can't be used; the text goes on after the name of the method."""


@dataclass(frozen=True, slots=True)
class EngineInput:
    """What the engine was given: the lines of the view, repaired, and the items behind them."""

    items: Sequence[Item]
    lines: Sequence[Item]
    hash_of: MessageHashes

    @property
    def messages(self) -> list[Message]:
        """The plain list."""
        return [line.message for line in self.lines]


@dataclass(frozen=True, slots=True)
class PlacedView:
    """The returned list as a view; `fold` names what is no longer shown, None when everything still is."""

    shown: tuple[Item, ...]
    fold: Fold | None
    text: str
    """What the engine wrote itself."""


def own_copy(returned: object) -> list[Message]:
    """The returned value as a list of our own, or an error that says what it is instead."""
    if not isinstance(returned, list):
        raise UnfitResult(f"returned a {type(returned).__name__}, not a list")
    strange = next((index for index, message in enumerate(returned) if not isinstance(message, dict)), None)
    if strange is not None:
        raise UnfitResult(f"returned a list whose item {strange} is a {type(returned[strange]).__name__}")
    try:
        copied: list[Message] = decode_json(encode_json(returned))
    except (TypeError, ValueError):
        raise UnfitResult("returned messages that can't be written as JSON") from None
    return copied


def judge(given: EngineInput, returned: Sequence[Message]) -> None:
    """Raise `Unfit`, which says why the list can't be used; nothing happens when it can."""
    _check_valid(given, returned)
    kept = {given.hash_of(message) for message in returned}
    if any(is_instruction(message) and given.hash_of(message) not in kept for message in given.messages):
        raise UnfitResult("returned a list without the instructions")
    newest = _newest_user(given)
    if newest is not None:
        last = next((message for message in reversed(returned) if role_of(message) == "user"), None)
        if given.hash_of(newest) not in kept:
            raise UnfitResult("returned a list without the newest user message")
        if last is None or given.hash_of(last) != given.hash_of(newest):
            raise UnfitResult("returned a list in which another message stands last in the user's role")
    busy = open_group(given.messages)
    if busy is not None:
        count = len(given.lines) - busy.start
        if [*map(given.hash_of, returned[-count:])] != [*map(given.hash_of, given.messages[-count:])]:
            raise UnfitResult("returned a list that changes or loses calls still waiting for results")


def _check_valid(given: EngineInput, returned: Sequence[Message]) -> None:
    if not returned:
        raise UnfitResult("returned an empty list")
    hashes = [*map(given.hash_of, given.messages)]
    side_by_side = set(pairwise(hashes))
    before = {violation.fault for violation in validate(given.messages)} & _TOLERATED
    for violation in validate(list(returned)):
        pair = (*map(given.hash_of, returned[max(0, violation.index - 1) : violation.index + 1]),)
        if violation.fault is ViolationKind.NEIGHBOURS and pair in side_by_side:
            # The user said two things in a row: they are shown as one, as they were before.
            continue
        if violation.fault not in before:
            raise UnfitResult(f"returned a list that a provider would refuse ({violation})")


def _newest_user(given: EngineInput) -> Message | None:
    for line in reversed(given.lines):
        # Folds and what engines wrote in the user's role are no references: the user never said them.
        if role_of(line.message) == "user" and line.origin is not Origin.WRITTEN:
            return line.message
    return None


def place(given: EngineInput, returned: Sequence[Message], fold_number: int) -> PlacedView:
    """The returned list as entries: references to what was shown before, and the engine's own messages."""
    known = _references(given, returned)
    # What it wrote itself is a summary, or a message cut by it: neither brings a secret into the view.
    new = [masked(message) for message, line in zip(returned, known, strict=True) if line is None]
    stays = {line.number for line in known if line is not None and line.origin is not Origin.WRITTEN}
    hidden = sorted({item.number for item in given.items if item.origin is Origin.LOG and item.number not in stays})
    fold: Fold | None = None
    if hidden:
        span = Span(hidden[0], hidden[-1])
        behind = tuple(sorted(number for number in stays if number in span))
        fold = Fold(fold_number, span, Handoff(), behind)
    shown: list[Item] = []
    written = iter(new)
    for line in known:
        number = shown[-1].number if shown else 0
        name = fold.id if fold else ""
        shown.append(line or Item(number, next(written), origin=Origin.WRITTEN, engine_fold=name))
    return PlacedView(tuple(shown), fold, "\n\n".join(filter(None, map(text_of, new))))


def _references(given: EngineInput, returned: Sequence[Message]) -> list[Item | None]:
    """For each returned message the line it repeats; both ends first, where repeats are most likely."""
    found: list[Item | None] = [None] * len(returned)
    old = [given.hash_of(message) for message in given.messages]
    new = [given.hash_of(message) for message in returned]
    most = min(len(old), len(new))
    end = _same(most, lambda k: old[-1 - k] == new[-1 - k])
    start = _same(most - end, lambda k: old[k] == new[k])
    for k in range(start):
        found[k] = given.lines[k]
    for k in range(1, end + 1):
        found[-k] = given.lines[-k]
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for index in range(start, len(old) - end):
        waiting[old[index]].append(index)
    for index in range(start, len(new) - end):
        if waiting[new[index]]:
            found[index] = given.lines[waiting[new[index]].popleft()]
    return found


def _same(most: int, equal: Callable[[int], bool]) -> int:
    count = 0
    while count < most and equal(count):
        count += 1
    return count
