"""Which tool result answers which call, where a list may be cut, and what a provider would refuse.

Pairing is by position first and by id second: some providers reuse call ids in every turn, so a result belongs to the
assistant message it directly follows, never to an older call of the same id.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from leporello.errors import InputError
from leporello.messages import ROLES, Messages, calls_of, is_instruction, is_result, parse_json, result_id, role_of


class Group(Struct, frozen=True):
    """Messages that stay together: an assistant message with calls and the results behind it, or one message.

    `answers[k]` is the index of the message that answers the k-th call, or None. `orphans` are results in the group
    that answer no call of it.
    """

    start: int
    stop: int
    answers: tuple[int | None, ...] = ()
    orphans: tuple[int, ...] = ()

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def unanswered(self) -> tuple[int, ...]:
        """Positions (within the message's calls) of calls that have no result."""
        return tuple(k for k, answer in enumerate(self.answers) if answer is None)


class ViolationKind(StrEnum):
    """What a provider would refuse."""

    NOT_A_MESSAGE = "not_a_message"
    UNKNOWN_ROLE = "unknown_role"
    ORPHAN_RESULT = "orphan_result"
    MISSING_RESULT = "missing_result"
    BAD_ARGUMENTS = "bad_arguments"
    NO_USER = "no_user"
    NEIGHBOURS = "neighbours"
    LATE_SYSTEM = "late_system"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing a provider would refuse: where, which rule, and why in words."""

    index: int
    fault: ViolationKind
    reason: str

    def __str__(self) -> str:
        return f"message {self.index}: {self.reason}"


def groups(messages: Messages) -> list[Group]:
    """The whole list as groups, in order, without gaps."""
    return list(iter_groups(messages))


def iter_groups(messages: Messages) -> Iterator[Group]:
    index = 0
    while index < len(messages):
        stop = index + 1
        while stop < len(messages) and is_result(messages[stop]):
            stop += 1
        if is_result(messages[index]):
            yield Group(index, stop, (), tuple(range(index, stop)))
        elif stop > index + 1 or calls_of(messages[index]):
            answers, orphans = _pair(messages, index, stop)
            yield Group(index, stop, answers, orphans)
        else:
            yield Group(index, stop)
        index = stop


def _pair(messages: Messages, start: int, stop: int) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    waiting: dict[str, deque[int]] = defaultdict(deque)
    calls = calls_of(messages[start])
    for position, call in enumerate(calls):
        waiting[call.id or call.name].append(position)
    answers: list[int | None] = [None] * len(calls)
    orphans = []
    for index in range(start + 1, stop):
        queue = waiting.get(result_id(messages[index]))
        if queue:
            answers[queue.popleft()] = index
        else:
            orphans.append(index)
    return tuple(answers), tuple(orphans)


def open_group(messages: Messages) -> Group | None:
    """The last group, when its calls still wait for results: work in progress that nobody may touch."""
    start = len(messages) - 1
    while start > 0 and is_result(messages[start]):
        start -= 1
    if start < 0:
        return None
    last = next(iter_groups(messages[start:]), None)
    if last is None or not last.unanswered:
        return None
    return Group(
        start + last.start,
        start + last.stop,
        tuple(None if answer is None else start + answer for answer in last.answers),
        tuple(start + orphan for orphan in last.orphans),
    )


def closing_role(messages: Messages) -> str:
    """The role a list ends in; instructions and results that answer no call don't count. Empty when none is left."""
    for group in reversed(groups(messages)):
        first = messages[group.start]
        if is_instruction(first) or is_result(first):
            continue
        return "tool" if len(group.answers) > len(group.unanswered) else role_of(first)
    return ""


def opening_role(messages: Messages) -> str:
    """The role a list begins with, in the same way."""
    spoken = (message for message in messages if not is_instruction(message) and not is_result(message))
    return next(map(role_of, spoken), "")


def validate(messages: Messages) -> list[Violation]:
    """Everything a provider would refuse, in order. Open calls at the very end are work in progress, not a fault."""
    found = [violation for index, message in enumerate(messages) for violation in _check_message(index, message)]
    if any(v.fault is ViolationKind.NOT_A_MESSAGE for v in found):
        return found
    for group in iter_groups(messages):
        found.extend(_check_group(messages, group))
    found.extend(_check_order(messages))
    return sorted(found, key=lambda violation: violation.index)


def check_roles(messages: Sequence[object], place: Callable[[int], str]) -> None:
    """Raises `InputError` with the place of the first that is no message, or of no role that anybody knows."""
    for index, message in enumerate(messages):
        for violation in _check_message(index, message):
            if violation.fault in (ViolationKind.NOT_A_MESSAGE, ViolationKind.UNKNOWN_ROLE):
                raise InputError(violation.reason, place(index))


def _check_message(index: int, message: object) -> Iterator[Violation]:
    if not isinstance(message, dict):
        yield Violation(index, ViolationKind.NOT_A_MESSAGE, f"is a {type(message).__name__}, not an object")
        return
    if role_of(message) not in ROLES:
        yield Violation(
            index, ViolationKind.UNKNOWN_ROLE, f"role {message.get('role')!r} is not one of {', '.join(ROLES)}"
        )
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        yield Violation(index, ViolationKind.BAD_ARGUMENTS, f"tool_calls is a {type(calls).__name__}, not a list")
        return
    for item in calls:
        if isinstance(item, dict) and "custom" not in item:
            body = item.get("function")
            arguments = body.get("arguments") if isinstance(body, dict) else None
            if not _is_json_text(arguments):
                yield Violation(
                    index, ViolationKind.BAD_ARGUMENTS, f"arguments of call {item.get('id')!r} are not JSON text"
                )


def _is_json_text(value: object) -> bool:
    # Providers write "" for a call without arguments and take it back.
    return isinstance(value, str) and (value.strip() in ("", "null") or parse_json(value) is not None)


def _check_group(messages: Messages, group: Group) -> Iterator[Violation]:
    for index in group.orphans:
        yield Violation(
            index, ViolationKind.ORPHAN_RESULT, f"result {result_id(messages[index])!r} answers no call before it"
        )
    if group.stop < len(messages):
        calls = calls_of(messages[group.start])
        for position in group.unanswered:
            yield Violation(group.start, ViolationKind.MISSING_RESULT, f"call {calls[position].id!r} has no result")


def _check_order(messages: Messages) -> Iterator[Violation]:
    if messages and not any(role_of(message) == "user" for message in messages):
        yield Violation(len(messages) - 1, ViolationKind.NO_USER, "there is no user message")
    seen_other = False
    for index, message in enumerate(messages):
        if is_instruction(message):
            if seen_other and role_of(message) == "system":
                yield Violation(index, ViolationKind.LATE_SYSTEM, "a system message stands behind other messages")
        else:
            seen_other = True
        if index and role_of(message) == "user" == role_of(messages[index - 1]):
            yield Violation(index, ViolationKind.NEIGHBOURS, "two user messages stand side by side")
