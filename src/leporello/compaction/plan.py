"""The plan of a compaction: its token budget, which messages stay as head and tail, and which are folded. Pure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from leporello.compaction.prune import is_shortened, shorten_arguments
from leporello.compaction.view import Item
from leporello.errors import FixedPartTooLarge
from leporello.ledger.calls import describe
from leporello.messages import Message, calls_of, is_instruction, is_result, message_hash, role_of, text_of
from leporello.models import Limits
from leporello.turns import Group, groups, open_group, opening_role

LEAST_TAIL_MESSAGES = 3
ROOMY_TAIL_TOKENS = 16_000
"""A tail of at least this many tokens is shown whole: the fold beside it has room enough (decision 0023)."""
NEAR_SHARE = 0.5
"""What the newest messages may take whole of a smaller tail; older ones are shown slim, and the fold tells the best
lines of what is left out (decision 0067)."""
TALK_SHARE = 0.4
"""Of the last messages that a smaller tail reaches back to, where nothing was called: there is nothing to show slim,
and the fold keeps more of what was said for the same tokens (decision 0039)."""
TAIL_STRETCH = 1.5
"""How far `protect_last_n` may stretch the tail's token budget."""
SLIM_CHARS = 600
"""What is shown of a long text of the assistant in the older part of the tail."""
SLIM_TOKENS = 200
POINTER_TOKENS = 90
"""What a tool result costs once its body is a pointer (an upper bound for planning)."""
MOST_CLEARED = 8
"""Results in a head that is pruned: with more, the cache mark behind the fold would not find what stands before them,
since providers look back twenty blocks."""
PRUNE_ABOVE_CHARS = 200
"""A tool result up to this length is left as it is: a pointer would not be shorter."""

LOOKING = ("read", "search", "list", "git_read", "web", "other")
"""Kinds of calls that bring something and change nothing."""

Measure = Callable[[Message], int]


class Protection(Struct, frozen=True):
    """How many messages of the beginning and the end are left alone while they fit."""

    first: int = 3
    last: int = 20


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What happens to the lines of a view, as indices."""

    items: Sequence[Item]
    head: tuple[int, ...]
    middle: tuple[int, ...]
    tail: tuple[int, ...]
    lifted: int | None = None
    """The newest user message, when it is shown directly after the summary instead of in its place."""
    pointers: frozenset[int] = frozenset()
    """Results in head and tail whose bodies are shown as pointers."""
    clipped: frozenset[int] = frozenset()
    """Long texts of the assistant in the tail that are shown as their beginning and end."""
    open_calls: tuple[int, ...] = ()
    """Tail messages that are work in progress: shown exactly as they are."""

    def pick(self, *indices: int | None) -> list[Item]:
        return [self.items[index] for index in indices if index is not None]

    @property
    def nothing_new(self) -> bool:
        """Whether the middle is empty or folded already."""
        return all(item.fold for item in self.pick(*self.middle))

    @property
    def shown(self) -> frozenset[int]:
        """The numbers of the messages that stay shown beside the folds."""
        return frozenset(item.number for item in self.pick(*self.head, self.lifted, *self.tail) if not item.fold)

    @property
    def shortened(self) -> frozenset[int]:
        """The numbers of the messages that stay as pointers or clipped, now or before: the fold tells of them."""
        stays = ((index, self.items[index]) for index in (*self.head, *self.tail))
        now = self.pointers | self.clipped
        return frozenset(
            item.number for index, item in stays if index in now or is_shortened(item.message, item.number)
        )

    @property
    def role_behind(self) -> str:
        """The role of what stands behind the folds."""
        return opening_role([item.message for item in self.pick(self.lifted, *self.tail)])


class _Tail(Struct, frozen=True):
    start: int
    pointers: frozenset[int]
    clipped: frozenset[int]


def make_plan(items: Sequence[Item], measure: Measure, limits: Limits, protection: Protection) -> CompactionPlan:
    """Head, middle and tail for a view. Long results in the head are pointers, unless there are very many, or nothing
    to fold behind it: then it is as new as the tail."""
    pruned = _make_plan(items, measure, limits, protection, prunes_head=True)
    if pruned.middle and sum(is_result(items[index].message) for index in pruned.head) <= MOST_CLEARED:
        return pruned
    return _make_plan(items, measure, limits, protection, prunes_head=False)


def _make_plan(
    items: Sequence[Item], measure: Measure, limits: Limits, protection: Protection, *, prunes_head: bool
) -> CompactionPlan:
    messages = [item.message for item in items]
    all_groups = groups(messages)
    newest = newest_user(items)
    busy = open_group(messages)
    in_head = (lambda message: pruned_tokens(message, measure)) if prunes_head else measure
    head_stop = _head_stop(items, all_groups, in_head, limits, protection)
    if newest is not None and newest < head_stop < len(items):
        # The newest user message must follow the summary, so a head that would hold it ends before it.
        head_stop = newest
    tail = _tail(items, all_groups, measure, limits, protection, head_stop)
    if busy is not None:
        working = set(range(busy.start, busy.stop))
        tail = _Tail(min(tail.start, busy.start), tail.pointers - working, tail.clipped - working)
    between = range(head_stop, tail.start)
    stays = _instructions_that_stay(items, between)
    lead = next((k for k in range(head_stop) if not is_instruction(messages[k])), head_stop)
    lifted = newest if newest is not None and newest in between else None
    cleared = {index for index in range(head_stop) if prunes_head and can_be_pointer(messages[index])}
    return CompactionPlan(
        items,
        head=_ordered_head(messages, lead, head_stop, stays),
        middle=tuple(index for index in between if index != lifted and index not in stays),
        tail=tuple(range(tail.start, len(items))),
        lifted=lifted,
        pointers=tail.pointers | cleared,
        clipped=tail.clipped,
        open_calls=tuple(range(busy.start, busy.stop)) if busy else (),
    )


def _ordered_head(messages: Sequence[Message], lead: int, stop: int, stays: Sequence[int]) -> tuple[int, ...]:
    """Instructions that are moved to the front stand there in the order in which they were given."""
    early = [index for index in range(lead, stop) if stays and is_instruction(messages[index])]
    return (*range(lead), *early, *stays, *(index for index in range(lead, stop) if index not in early))


def newest_user(items: Sequence[Item]) -> int | None:
    """Where the newest message of the user stands; folds shown in the user role don't count."""
    return next((index for index in range(len(items) - 1, -1, -1) if items[index].role == "user"), None)


def _head_stop(
    items: Sequence[Item], all_groups: Sequence[Group], measure: Measure, limits: Limits, protection: Protection
) -> int:
    """Leading instructions, then the first few messages as whole groups within their caps."""
    stop = counted = tokens = 0
    for group in all_groups:
        if items[group.start].is_summary:
            break
        if is_instruction(items[group.start].message) and counted == 0:
            stop = group.stop
            continue
        sizes = [measure(items[index].message) for index in range(group.start, group.stop)]
        tokens += sum(sizes)
        if counted >= protection.first or max(sizes) > limits.head_message_tokens or tokens > limits.head_tokens:
            break
        counted += len(group)
        stop = group.stop
    return stop


def pruned_tokens(message: Message, measure: Measure) -> int:
    """What a message costs in a head where long results are pointers and huge arguments are left out."""
    if can_be_pointer(message):
        return min(measure(message), POINTER_TOKENS)
    return measure(shorten_arguments(message))


def _tail(
    items: Sequence[Item],
    all_groups: Sequence[Group],
    measure: Measure,
    limits: Limits,
    protection: Protection,
    head_stop: int,
) -> _Tail:
    """Walk back from the end: the newest groups whole while they fit, then slim, as far as `protection.last` reaches.

    Slim means that results are pointers and long texts of the assistant are clipped. In a small window that begins
    early: the room is worth more in the fold, which is chosen line by line. Results at the very end are what the model
    waits for: they are cut when they are long, never cleared, or it would only make the same call again. What it looked
    up just before, without having done anything with it, stays whole in all of the tail's tokens. An unverified summary
    is in the tail only as long as there is room for it.
    """
    messages = [item.message for item in items]
    talk = limits.tail_tokens < ROOMY_TAIL_TOKENS and not any(map(is_result, messages))
    last = protection.last * TALK_SHARE if talk else protection.last
    start = len(messages)
    used = 0
    pointers: set[int] = set()
    clipped: set[int] = set()
    in_hand = True
    for group in reversed(all_groups):
        if group.start < head_stop:
            break
        count = len(messages) - start
        wanted = count < last
        unverified = items[group.start].unverified is not None
        awaited = group is all_groups[-1] and not unverified
        most = limits.tail_tokens if awaited else sys.maxsize
        span = range(group.start, group.stop)
        sizes = {index: min(measure(messages[index]), most) for index in span}
        whole = sum(sizes.values())
        in_hand = in_hand and wanted and _only_looks(messages[group.start])
        near = max(_whole_tokens(limits, wanted=wanted), limits.tail_tokens if in_hand else 0)
        if not (pointers or clipped) and used + whole <= near:
            used += whole
            start = group.start
            continue
        bodies = {index for index in span if not awaited and can_be_pointer(messages[index])}
        texts = {index for index in span if not awaited and can_be_clipped(messages[index])}
        slim = whole - sum(max(0, sizes[index] - POINTER_TOKENS) for index in bodies)
        slim -= sum(max(0, sizes[index] - SLIM_TOKENS) for index in texts)
        fits = wanted and used + slim <= limits.tail_tokens * TAIL_STRETCH
        if not fits and (count >= LEAST_TAIL_MESSAGES or unverified):
            break
        used += slim
        pointers |= bodies
        clipped |= texts
        start = group.start
    return _Tail(start, frozenset(pointers), frozenset(clipped))


def _whole_tokens(limits: Limits, *, wanted: bool) -> float:
    """What messages of the tail may take whole; `wanted` are those that are kept if at all possible."""
    if limits.tail_tokens < ROOMY_TAIL_TOKENS:
        return limits.tail_tokens * NEAR_SHARE if wanted else 0
    return limits.tail_tokens * TAIL_STRETCH if wanted else limits.tail_tokens


def _only_looks(message: Message) -> bool:
    """Whether a message calls for things to read, and changes nothing."""
    works = [describe(call).work for call in calls_of(message)]
    return bool(works) and all(work in LOOKING for work in works)


def can_be_clipped(message: Message) -> bool:
    """Whether a text of the assistant is long enough that its beginning and end are much shorter."""
    return role_of(message) == "assistant" and len(text_of(message)) > 2 * SLIM_CHARS


def can_be_pointer(message: Message) -> bool:
    """Whether showing the body of this result as a pointer would save anything."""
    content = message.get("content")
    if not is_result(message):
        return False
    return not isinstance(content, str) or len(text_of(message)) > PRUNE_ABOVE_CHARS


def _instructions_that_stay(items: Sequence[Item], between: range) -> tuple[int, ...]:
    """System and developer messages inside the span are never summarised: each text stays once, the newest of it."""
    newest: dict[str, int] = {}
    for index in between:
        message = items[index].message
        if not is_instruction(message):
            continue
        newest[message_hash(message)] = index
    return tuple(sorted(newest.values()))


USUAL_SHARE = 0.5
"""What head, summary and tail take of the window together, seldom more."""


def fixed_parts(items: Sequence[Item], measure: Measure, system: int, tools: int) -> dict[str, int]:
    """Tokens that no compaction can take away, by what they are for."""
    instructions = {message_hash(item.message): item.message for item in items if is_instruction(item.message)}
    parts = {"system": system + sum(map(measure, instructions.values())), "tools": tools}
    newest = newest_user(items)
    parts["newest user message"] = measure(items[newest].message) if newest is not None else 0
    busy = open_group([item.message for item in items])
    if busy is not None:
        parts["open calls"] = sum(measure(items[index].message) for index in range(busy.start, busy.stop))
    return parts


def too_large(window: int, parts: Mapping[str, int]) -> FixedPartTooLarge | None:
    """The error when the fixed part alone exceeds the window."""
    return FixedPartTooLarge(window, parts) if sum(parts.values()) > window else None


def fitted(limits: Limits, parts: Mapping[str, int], depth: int) -> Limits:
    """The limits for what the fixed part leaves of the window, with every budget in proportion to what is kept."""
    left = max(0, limits.hard_tokens - sum(parts.values()))
    return scaled(limits, min(1.0, left / (limits.window * USUAL_SHARE), depth / limits.aim_tokens))


def scaled(limits: Limits, share: float) -> Limits:
    if share >= 1:
        return limits

    def less(tokens: int) -> int:
        return max(1, int(tokens * share))

    return replace(
        limits,
        window=less(limits.window),
        tail_tokens=less(limits.tail_tokens),
        summary_floor=less(limits.summary_floor),
        summary_ceiling=less(limits.summary_ceiling),
        head_message_tokens=less(limits.head_message_tokens),
        head_tokens=less(limits.head_tokens),
        aim_tokens=less(limits.aim_tokens),
    )
