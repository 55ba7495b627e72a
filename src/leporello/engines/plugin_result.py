"""What a plugin's engine is given, and what it returned: mended, judged and placed in a view.

A list is taken only when providers would accept it and nothing is lost that must never be: instructions, the newest
request word for word, calls that still wait for results. Messages that stand in it unchanged become references to the
log, so that a view of any engine can be undone, expanded and resumed like our own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from leporello.compaction.assemble import repair
from leporello.compaction.pipeline import TOLERATED
from leporello.compaction.view import Item, Origin
from leporello.events import Span
from leporello.ledger.facts import storable
from leporello.messages import (
    Message,
    PartKind,
    decode_json,
    encode_json,
    is_instruction,
    message_hash,
    parts_of,
    role_of,
    text_of,
)
from leporello.redact.messages import masked
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff
from leporello.turns import ViolationKind, iter_groups, open_group, validate


def as_hosted(message: Message) -> Message:
    """A message as the engine's own host has it: content is text that can be stored, reasoning in a field of its own.

    What comes back unchanged is the line it was made from, whatever else that holds.
    """
    content = message.get("content")
    if not isinstance(content, list):
        text = storable(content or "") if content is None or isinstance(content, str) else content
        return message if text == content else {**message, "content": text}
    parts = parts_of(message)
    said = [part.text or f"[{part.kind}]" for part in parts if part.kind is not PartKind.THINKING]
    thought = [part.text for part in parts if part.kind is PartKind.THINKING and part.text]
    plain = {**message, "content": storable("\n".join(said))}
    return {**plain, "reasoning": "\n".join(thought)} if thought else plain


def engine_copy(value: Any) -> Any:
    """A copy of its own for an engine, which may do anything with it."""
    return decode_json(encode_json(value))


class UnfitResult(Exception):
    """What was returned can't be used; the text goes on after the name of the method."""


class EngineInput:
    """What the engine was given: the lines of a view, repaired, as messages of its host."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.lines = repair(items)
        self.messages = [as_hosted(line.message) for line in self.lines]
        self.hashes = hashes_of(self.messages)


class PlacedView(Struct, frozen=True):
    """The returned list as a view; `fold` names what is no longer shown, None when everything still is."""

    shown: tuple[Item, ...]
    fold: Fold | None
    text: str
    """What the engine wrote itself."""


def hashes_of(messages: Sequence[Message]) -> list[str]:
    return [*map(message_hash, messages)]


def own_copy(returned: object) -> list[Message]:
    """The returned value as a list of our own, or an error that says what it is instead."""
    if not isinstance(returned, list):
        raise UnfitResult(f"returned a {type(returned).__name__}, not a list")
    strange = next((index for index, message in enumerate(returned) if not isinstance(message, dict)), None)
    if strange is not None:
        raise UnfitResult(f"returned a list whose item {strange} is a {type(returned[strange]).__name__}")
    try:
        copied: list[Message] = engine_copy(returned)
    except (TypeError, ValueError):
        raise UnfitResult("returned messages that can't be written as JSON") from None
    return copied


def mended(given: EngineInput, returned: list[Message]) -> list[Message]:
    """The list as the engine's own host would mend it: no turn cut in half, no summary that looks like a request.

    A result without its call goes, where the engine was given it: the log has it. What an engine wrote in the user's
    role beside a message of the user takes the other role, or both would be sent as one.
    """
    known = set(given.hashes)
    lines = [(message, key in known) for message, key in zip(returned, hashes_of(returned), strict=True)]
    apart: list[Message] = []
    for index, (message, is_known) in enumerate(lines):
        beside = (*lines[max(0, index - 1) : index], *lines[index + 1 : index + 2])
        joined = index and not is_known and any(role_of(other) == "user" for other, _ in beside)
        apart.append({**message, "role": "assistant"} if joined and role_of(message) == "user" else message)
    stray = [apart[index] for group in iter_groups(apart) for index in group.orphans]
    if not known.issuperset(hashes_of(stray)):
        return apart
    return [item.message for item in repair([Item(0, message) for message in apart])]


def judge(given: EngineInput, returned: Sequence[Message]) -> None:
    """Raise `UnfitResult`, which says why the list can't be used; nothing happens when it can."""
    new = hashes_of(returned)
    _check_valid(given, returned, new)
    instructions = [key for key, message in zip(given.hashes, given.messages, strict=True) if is_instruction(message)]
    if not set(instructions).issubset(new):
        raise UnfitResult("returned a list without the instructions")
    if [key for key, message in zip(new, returned, strict=True) if is_instruction(message)] != instructions:
        raise UnfitResult("returned the instructions in another order, or others with them")
    # Folds and what engines wrote in the user's role don't count: the user never said them.
    said = [
        key
        for key, line in zip(given.hashes, given.lines, strict=True)
        if role_of(line.message) == "user" and line.origin is not Origin.WRITTEN
    ]
    if said:
        if said[-1] not in new:
            raise UnfitResult("returned a list without the newest user message")
        if [key for key, message in zip(new, returned, strict=True) if role_of(message) == "user"][-1] != said[-1]:
            raise UnfitResult("returned a list in which another message stands last in the user's role")
    busy = open_group(given.messages)
    if busy is not None and new[busy.start - len(given.lines) :] != given.hashes[busy.start :]:
        raise UnfitResult("returned a list that changes or loses calls still waiting for results")


def _check_valid(given: EngineInput, returned: Sequence[Message], new: Sequence[str]) -> None:
    if not returned:
        raise UnfitResult("returned an empty list")
    known = set(given.hashes)
    together = {*pairwise(given.hashes)}
    users = [key for key, message in zip(given.hashes, given.messages, strict=True) if role_of(message) == "user"]
    newest = users[-1] if users else ""
    before = {violation.fault for violation in validate(given.messages)} & TOLERATED
    for violation in validate(list(returned)):
        pair = (*new[max(0, violation.index - 1) : violation.index + 1],)
        # Where the user said both they are sent as one. The newest stands alone, unless it did not before.
        may_join = known.issuperset(pair) and (newest not in pair or pair in together)
        if violation.fault is ViolationKind.NEIGHBOURS and may_join:
            continue
        if violation.fault not in before:
            raise UnfitResult(f"returned a list that a provider would refuse ({violation})")


def place(given: EngineInput, returned: Sequence[Message], fold_number: int) -> PlacedView:
    """The returned list as lines: those that were shown before, and the engine's own messages."""
    known = _known_lines(given, hashes_of(returned))
    # What it wrote itself is a summary, or a message cut by it: neither brings a secret into the view.
    new = [masked(message) for message, line in zip(returned, known, strict=True) if line is None]
    stays = {line.number for line in known if line is not None and line.origin is not Origin.WRITTEN}
    hidden = sorted({item.number for item in given.items if item.origin is Origin.LOG and item.number not in stays})
    fold: Fold | None = None
    if hidden:
        span = Span(hidden[0], hidden[-1])
        fold = Fold(fold_number, span, Handoff(), tuple(sorted(number for number in stays if number in span)))
    shown: list[Item] = []
    written = iter(new)
    for line in known:
        number = shown[-1].number if shown else 0
        name = fold.id if fold else ""
        shown.append(line or Item(number, next(written), origin=Origin.WRITTEN, engine_fold=name))
    return PlacedView(tuple(shown), fold, "\n\n".join(filter(None, map(text_of, new))))


def _known_lines(given: EngineInput, new: Sequence[str]) -> list[Item | None]:
    """For each returned message the line it repeats; both ends first, where repeats are most likely."""
    found: list[Item | None] = [None] * len(new)
    old = given.hashes
    most = min(len(old), len(new))
    end = _same(most, lambda k: old[-1 - k] == new[-1 - k])
    start = _same(most - end, lambda k: old[k] == new[k])
    found[:start] = given.lines[:start]
    found[len(new) - end :] = given.lines[len(old) - end :]
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for index in range(start, len(old) - end):
        waiting[old[index]].append(index)
    for index in range(start, len(new) - end):
        if waiting[new[index]]:
            found[index] = given.lines[waiting[new[index]].popleft()]
    return found


def _same(most: int, equal: Callable[[int], bool]) -> int:
    return next((k for k in range(most) if not equal(k)), most)
