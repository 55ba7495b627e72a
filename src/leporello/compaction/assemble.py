"""Assembling the new view: head, fold, tail; roles that alternate; calls and results that match. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from leporello.compaction.plan import SLIM_CHARS, CompactionPlan
from leporello.compaction.prune import (
    clipped,
    pointer,
    repair_arguments,
    result_bodies,
    shorten_arguments,
    without_images,
)
from leporello.compaction.view import OPENING, Item, Origin
from leporello.messages import Message, ToolCall, calls_of, is_instruction, role_of, text_of
from leporello.turns import closing_role, groups, iter_groups

STUB = "[no result was recorded for this call]"


def settle(plan: CompactionPlan) -> tuple[CompactionPlan, str]:
    """The plan with a head that leaves a role for the fold, and that role.

    The fold shares its role with no neighbour. Where neither role fits, the head gives its last group to the fold; the
    tail is not changed for it. Earlier folds that the tail reached back to go into the new one: it is the only one.
    """
    while True:
        plan = _with_earlier_folds(plan)
        spoken = [index for index in plan.head if not is_instruction(plan.items[index].message)]
        messages = [item.message for item in plan.pick(*spoken)]
        role = choose_role(closing_role(messages), plan.role_behind)
        if role or not spoken:
            return plan, role or "assistant"
        given = set(spoken[groups(messages)[-1].start :])
        plan = replace(
            plan,
            head=tuple(index for index in plan.head if index not in given),
            middle=tuple(sorted({*plan.middle, *given})),
        )


def _with_earlier_folds(plan: CompactionPlan) -> CompactionPlan:
    """Only folds that the tail begins with: nothing that was said goes with them."""
    folds = tuple(takewhile(lambda index: plan.items[index].fold, plan.tail))
    if not folds or plan.nothing_new:
        return plan
    return replace(plan, middle=tuple(sorted((*plan.middle, *folds))), tail=plan.tail[len(folds) :])


def choose_role(before: str, after: str) -> str:
    """A role that neither neighbour has; empty when there is none. Nothing before means that a user must come first."""
    if before not in ("", "assistant") and after != "assistant":
        return "assistant"
    return "user" if "user" not in (before, after) else ""


def assemble(plan: CompactionPlan, folds: Sequence[Item], tail_chars: int) -> list[Item]:
    """The new view, the folds between head and tail; without folds only old tool bodies become pointers.

    `tail_chars` bounds a single message of the tail; the newest user message has no bound.
    """
    head = _head(plan) if folds else plan.pick(*plan.head)
    lifted = plan.pick(plan.lifted)
    return apart(repair([*head, *folds, *lifted, *_tail(plan, tail_chars)]))


def standing_text(plan: CompactionPlan, tail_chars: int) -> str:
    """What is read in the new view beside the folds."""
    stays = (*_head(plan), *plan.pick(plan.lifted), *_tail(plan, tail_chars))
    return "\n".join(text_of(item.message) for item in stays if not item.is_summary)


def _head(plan: CompactionPlan) -> list[Item]:
    """The head with its results as pointers, and the arguments of their calls without bulk."""
    items = plan.pick(*plan.head)
    callers = _callers([item.message for item in items])
    return [
        item.showing(
            pointer(item.message, callers.get(k), item.number)
            if index in plan.pointers
            else shorten_arguments(item.message)
        )
        for k, (index, item) in enumerate(zip(plan.head, items, strict=True))
    ]


def _tail(plan: CompactionPlan, tail_chars: int) -> list[Item]:
    items = plan.items
    messages = [items[index].message for index in plan.tail]
    repeated = result_bodies(messages)
    callers = _callers(messages)
    unanswered = groups(messages)[-1].start if messages else 0
    newest = max((k for k, index in enumerate(plan.tail) if items[index].role == "user"), default=-1)
    shown = []
    for k, index in enumerate(plan.tail):
        item = items[index]
        message = item.message
        if index in plan.open_calls or k == newest or item.is_summary or is_instruction(item.message):
            shown.append(item)
            continue
        if k in repeated:
            later = items[plan.tail[repeated[k]]].number
            message = pointer(message, callers.get(k), item.number, same_as=later)
        elif index in plan.pointers:
            message = pointer(message, callers.get(k), item.number)
        elif index in plan.clipped:
            message = clipped(message, SLIM_CHARS, answered=k < unanswered)
        elif len(text_of(message)) + sum(len(call.arguments) for call in calls_of(message)) > tail_chars:
            message = clipped(message, tail_chars, answered=k < unanswered)
        if plan.pointers and index <= max(plan.pointers):
            message = without_images(shorten_arguments(message))
        shown.append(item.showing(message))
    return shown


def _callers(messages: Sequence[Message]) -> dict[int, ToolCall]:
    """For each result: the call it answers."""
    callers: dict[int, ToolCall] = {}
    for group in iter_groups(messages):
        calls = calls_of(messages[group.start])
        for position, answer in enumerate(group.answers):
            if answer is not None:
                callers[answer] = calls[position]
    return callers


def repair(items: Sequence[Item], *, more_follows: bool = False) -> list[Item]:
    """Results without their call go, calls without a result get a stub, arguments become JSON; open calls stay.

    Calls are open at the end of the list, unless more follows that is not in it.
    """
    messages = [item.message for item in items]
    kept: list[Item] = []
    for group in iter_groups(messages):
        drop = set(group.orphans)
        for index in range(group.start, group.stop):
            if index not in drop:
                kept.append(items[index].showing(repair_arguments(messages[index])))
        if group.stop < len(messages) or more_follows:
            calls = calls_of(messages[group.start])
            for position in group.unanswered:
                stub: Message = {"role": "tool", "tool_call_id": calls[position].id, "content": STUB}
                if not calls[position].id:
                    # A call without an id is answered by name.
                    stub["name"] = calls[position].name
                kept.append(Item(kept[-1].number, stub, origin=Origin.WRITTEN))
    return kept


def apart(items: Sequence[Item]) -> list[Item]:
    """Folds in the user's role take the other one where a user message is beside them, and never open the list in it.

    Only the role changes: a fold is never joined with its neighbour, or its mark would be lost. What looks like a fold
    and nobody vouches for keeps its role: it is joined with its neighbour like any other message.
    """
    lines = list(items)
    for index, line in enumerate(lines):
        neighbours = (*lines[max(0, index - 1) : index], *lines[index + 1 : index + 2])
        if line.fold_id is not None and _by_user(line) and any(map(_by_user, neighbours)):
            lines[index] = line.showing({**line.message, "role": "assistant"})
    first = next((k for k, line in enumerate(lines) if not is_instruction(line.message)), None)
    if first is not None and role_of(lines[first].message) == "assistant" and _is_summary(lines[first]):
        lines.insert(first, Item(lines[first].number, OPENING, origin=Origin.WRITTEN))
    return lines


def _is_summary(line: Item) -> bool:
    return line.is_summary or line.fold_id is not None


def _by_user(line: Item) -> bool:
    return role_of(line.message) == "user"
