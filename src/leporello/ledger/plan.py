"""The agent's own list of steps, as its tools keep it: sent whole each time, or made and changed step by step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from leporello.lazy_regex import lazy_regex
from leporello.messages import ToolCall

PLAN_TOOL = r"todo|plan|^task_?(?:create|update|list)$"
"""Names of tools that keep a list of steps."""
_WHOLE = lazy_regex(r"todo|^update_plan$", re.IGNORECASE)
_MAKES = lazy_regex(r"^task_?create$", re.IGNORECASE)
_CHANGES = lazy_regex(r"^task_?update$", re.IGNORECASE)
_TEXT_KEYS = ("content", "step", "text", "title", "subject")
_ID_KEYS = ("taskId", "task_id", "id")
_DONE = frozenset(("completed", "done", "cancelled", "deleted"))
_UNDER_WAY = frozenset(("in_progress", "in progress", "active", "doing"))
MOST_STEPS, ID_DIGITS = 200, 9


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step in the agent's words; `number` is the message that last spoke of it."""

    text: str
    status: str
    number: int
    id: str = ""

    @property
    def is_open(self) -> bool:
        return self.status not in _DONE

    @property
    def under_way(self) -> bool:
        return self.status in _UNDER_WAY


def plan_after(steps: tuple[PlanStep, ...], number: int, call: ToolCall) -> tuple[PlanStep, ...]:
    """The steps after a call; those of before when it keeps no list."""
    if _WHOLE.search(call.name):
        arguments = call.parsed()
        listed = next((value for value in arguments.values() if isinstance(value, list)), None)
        if listed is None or not all(isinstance(item, Mapping) for item in listed):
            return steps
        sent = [_step(item, number) for item in listed]
        if arguments.get("merge") is True:
            return _merged(steps, sent)
        return tuple(step for step in sent if step.text)[:MOST_STEPS]
    if _MAKES.search(call.name):
        # Such tools count their steps from 1, and never use a number again.
        made = _step(call.parsed(), number)
        newest = max((int(step.id) for step in steps if step.id.isdecimal() and len(step.id) <= ID_DIGITS), default=0)
        return (*steps, replace(made, id=str(newest + 1)))[-MOST_STEPS:] if made.text else steps
    if _CHANGES.search(call.name):
        return _merged(steps, [_step(call.parsed(), number)])
    return steps


def _merged(steps: tuple[PlanStep, ...], sent: Iterable[PlanStep]) -> tuple[PlanStep, ...]:
    """The steps, with what is told of those that have an id, and new ones behind them."""
    known = {step.id: step for step in reversed(steps) if step.id}  # of two with one id the first is meant
    for told in sent:
        if told.id in known:
            known[told.id] = _changed(known[told.id], told)
        elif told.id and told.text:
            known[told.id] = told
    before = tuple(known.pop(step.id, step) for step in steps)
    return (*before, *known.values())[-MOST_STEPS:]


def _step(item: Mapping[str, Any], number: int) -> PlanStep:
    return PlanStep(_text(item, _TEXT_KEYS), _text(item, ("status",)).casefold(), number, _text(item, _ID_KEYS))


def _text(item: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(item[key]) for key in keys if isinstance(item.get(key), str | int) and item[key] != ""), "")


def _changed(step: PlanStep, told: PlanStep) -> PlanStep:
    return PlanStep(told.text or step.text, told.status or step.status, told.number, step.id)
