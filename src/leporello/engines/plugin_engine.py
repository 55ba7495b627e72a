"""`PluginEngine`: somebody else's `ContextEngine` as an engine of a conversation.

The guest decides and compacts; the conversation keeps ledger, limits and state, as with the built-in engines, so that
recall, pins, undo and the fallback work whoever compacts. A guest that raises, hangs or returns a list that can't be
used costs nothing: the policy decides or the built-in compressor compacts instead, and one message names plugin and
method. A list is taken only when providers would accept it and nothing is lost that must never be: instructions, the
newest request word for word, calls that still wait for results. Messages that stand in it unchanged become references
to the log, so that a view of any engine can be undone, expanded and resumed like our own.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from leporello.compaction.assemble import repair
from leporello.compaction.pipeline import (
    TOLERATED,
    CompactionResult,
    CompactionTask,
    NewFold,
    catch_up,
    folds_of,
    listed,
    report,
    request_tokens,
)
from leporello.compaction.view import Item, Origin, join_neighbours
from leporello.engines.base import CompactionEngine, ContextEngine
from leporello.engines.compressor import COMPRESSOR
from leporello.engines.guard import PluginGuard, accepted
from leporello.errors import EngineError, LeporelloError
from leporello.events import Outcome, Span
from leporello.messages import Message, decode_json, encode_json, is_instruction, message_hash, role_of, text_of
from leporello.models import Limits
from leporello.policy import LEAST_SAVING, MANUAL, Decision, Situation, decide, saves_enough
from leporello.redact.messages import masked
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff
from leporello.turns import ViolationKind, open_group, validate

ORDINARY = ("manual", "preflight", "threshold", "automatic")
"""Triggers that can wait; all others mean that a provider refused the request."""
TOOL_SECONDS = 50.0
LONGEST_NAME = 64


@dataclass(slots=True)
class HostedEngine:
    """A foreign engine and the guard through which it is called. One serves one conversation."""

    engine: ContextEngine
    guard: PluginGuard
    name: str
    on_close: Callable[[], None] = field(default=lambda: None)

    def call(self, method: str, *args: Any, optional: dict[str, Any] | None = None, seconds: float = 0) -> Any:
        """Call a method; an `EngineError` names it when it fails."""
        return self.guard.call(f"{method}()", self._method(method, args, optional), seconds=seconds)

    def ask(self, method: str, otherwise: Any, *args: Any, optional: dict[str, Any] | None = None) -> Any:
        """Call a method; when it fails, the host's own answer counts and the trouble is told once."""
        return self.guard.ask(f"{method}()", self._method(method, args, optional), otherwise)

    def read(self, attribute: str) -> int:
        """A counter that engines keep; 0 when it is something strange."""
        value = self.guard.ask(attribute, lambda: getattr(self.engine, attribute, 0), 0)
        return int(value) if isinstance(value, int | float) else 0

    def _method(self, method: str, args: tuple[Any, ...], optional: dict[str, Any] | None) -> Callable[[], Any]:
        def run() -> Any:
            function = getattr(self.engine, method)
            return function(*args, **accepted(function, optional or {}))

        return run

    def close(self) -> None:
        """The conversation is over."""
        self.guard.close()
        self.on_close()


class PluginEngine(CompactionEngine):
    """A foreign engine in a conversation of ours."""

    def __init__(self, guest: HostedEngine) -> None:
        self.name = guest.name
        self.guest = guest
        self._threshold = 0

    # -- usage, trigger, lifecycle

    def adjusted(self, limits: Limits) -> Limits:
        """With the guest's threshold, as far as it leaves room for the answer."""
        threshold = min(self._threshold or limits.threshold_tokens, limits.hard_tokens)
        return replace(limits, threshold_tokens=threshold)

    def decide(self, situation: Situation) -> Decision:
        """The guest's answer, within the host's rules: no loops, not right after an undo, never beyond the window."""
        usual = decide(situation)
        if usual.final:
            return usual
        wants = bool(self.guest.ask("should_compress", usual.compacts, situation.tokens))
        return decide(replace(situation, engine_wants=wants))

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.guest.ask("update_from_response", None, dict(usage))

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        self.guest.ask("on_session_start", None, session_id, optional=kwargs)

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        self.guest.ask("on_session_end", None, session_id, _copy(messages))

    def on_session_reset(self) -> None:
        self.guest.ask("on_session_reset", None)

    def update_model(self, model: str, context_length: int) -> None:
        """Give the guest the model and the window that are in force, and take its threshold."""
        self.guest.ask("update_model", None, model, context_length)
        self._threshold = self.guest.read("threshold_tokens")

    # -- tools

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The guest's tools, as far as a model can be offered them."""
        listed = self.guest.ask("get_tool_schemas", [])
        fit = [_schema(schema) for schema in listed] if isinstance(listed, list) else [None]
        if None in fit:
            self.guest.guard.note(f"{self.guest.guard.who}: get_tool_schemas() names a tool that can't be offered.")
        return [schema for schema in fit if schema is not None]

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of its tools; the answer is text, `{"error": ...}` when the guest failed."""
        try:
            answer = self.guest.call("handle_tool_call", name, dict(args), optional=_copy(kwargs), seconds=TOOL_SECONDS)
            return answer if isinstance(answer, str) else encode_json(answer).decode()
        except (LeporelloError, TypeError) as error:
            return encode_json({"error": str(error)}).decode()

    # -- compaction

    def compact(self, task: CompactionTask) -> CompactionResult:
        """One compaction by the guest; by the built-in compressor when the guest can't or what it made is no good."""
        started = time.perf_counter()
        try:
            done = _GuestCompaction(self.guest, replace(task, engine=self.name)).run()
        except EngineError as error:
            done = COMPRESSOR.compact(replace(task, engine=COMPRESSOR.name))
            instead = "folded instead" if done.report.committed else "could not fold either"
            why = f"{error}; the built-in compressor {instead}."
            return replace(done, report=replace(done.report, warnings=(why, *done.report.warnings)))
        return replace(done, report=replace(done.report, seconds=time.perf_counter() - started))


@dataclass(frozen=True, slots=True)
class _GuestCompaction:
    guest: HostedEngine
    task: CompactionTask

    def run(self) -> CompactionResult:
        task = self.task
        given = EngineInput(task.items)
        before = request_tokens(task, given.messages)
        who = f"{self.guest.guard.who}: compress()"
        try:
            returned = self._ask(given.messages, before)
            if _hashes(returned) == given.hashes:
                return self._unchanged(given, before)
            judge(given, returned)
        except UnfitResult as error:
            raise EngineError(f"{who} {error}") from None
        placed = place(given, returned, task.fold_number)
        catch_up(task.ledger, task.items)
        return self._measured(placed, before, who)

    def _ask(self, messages: list[Message], tokens: int) -> list[Message]:
        """What the guest makes of its own copy of the messages."""
        written = encode_json(messages)
        copy: list[Message] = decode_json(written)
        optional = {
            "current_tokens": tokens,
            "focus_topic": self.task.focus or None,
            "force": self.task.trigger == MANUAL,
            "memory_context": "",
        }
        returned = own_copy(self.guest.call("compress", copy, optional=optional))
        if encode_json(copy) != written:
            raise UnfitResult("changed the list it was given")
        return returned

    def _unchanged(self, given: EngineInput, before: int) -> CompactionResult:
        """The guest sees nothing to do. Where the request would not fit, that is no answer."""
        if before >= self.task.limits.hard_tokens or self.task.trigger not in ORDINARY:
            raise UnfitResult("returned the list unchanged although it is too long")
        reason = f"The engine {self.guest.name} left the list as it is."
        return CompactionResult(
            replace(report(self.task, Outcome.NOTHING_TO_DO, before), reason=reason), tuple(given.lines)
        )

    def _measured(self, placed: PlacedView, before: int, who: str) -> CompactionResult:
        task = self.task
        sent = [line.message for line in join_neighbours(placed.shown)]
        after = request_tokens(task, sent)
        fixed = task.system_tokens + task.tool_tokens
        fixed += sum(task.measure(item.message) for item in task.items if is_instruction(item.message))
        if not saves_enough(before - fixed, after - fixed):
            raise EngineError(f"{who} made {after:,} of {before:,} tokens, which saves less than {LEAST_SAVING:.0%}")
        if after > task.limits.window:
            raise EngineError(f"{who} returned {after:,} tokens for a window of {task.limits.window:,}")
        again = self.guest.read("threshold_tokens") or task.limits.aim_tokens
        done = replace(
            report(task, Outcome.COMMITTED, before),
            summariser=f"engine:{self.guest.name}",
            messages_after=len(sent),
            tokens_after=after,
            covered=placed.fold.span if placed.fold else None,
            fold=placed.fold.id if placed.fold else "",
            warnings=self._lost_pins(placed),
            details={
                "foldable_before": before - fixed,
                "foldable_after": after - fixed,
                # It would fold again at once: then the next automatic attempt waits for the hard limit.
                "above_aim": after >= again,
                "fold_tokens": task.counter.text(placed.text),
                "sections": {},
            },
        )
        folds = (NewFold(placed.fold, placed.text, folds_of(task.items)),) if placed.fold else ()
        return CompactionResult(done, placed.shown, placed.fold, folds)

    def _lost_pins(self, placed: PlacedView) -> tuple[str, ...]:
        stays = {line.number for line in placed.shown if line.origin is not Origin.WRITTEN}
        lost = [number for number, pin in self.task.ledger.pins.items() if pin.text.strip() and number not in stays]
        told = f"The view that the engine {self.guest.name} made does not hold {len(lost)} pinned messages"
        return (f"{told} ({listed(lost)}).",) if lost else ()


def _copy(value: Any) -> Any:
    # The guest may do anything with it.
    return decode_json(encode_json(value))


def _schema(schema: object) -> dict[str, Any] | None:
    """A tool as a host can offer it, in its short form; None when a provider would refuse it."""
    inner = schema.get("function", schema) if isinstance(schema, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return None
    name = inner["name"]
    usable = 0 < len(name) <= LONGEST_NAME and name.replace("-", "_").isidentifier()
    parameters = inner.get("parameters") or {"type": "object", "properties": {}}
    if not usable or not isinstance(parameters, dict):
        return None
    return {"name": name, "description": str(inner.get("description") or ""), "parameters": parameters}


# -- what a guest returned: is the list fit to be sent, and what is new in it


class UnfitResult(Exception):
    """What was returned can't be used; the text goes on after the name of the method."""


class EngineInput:
    """What the engine was given: the lines of a view, repaired."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.lines = repair(items)
        self.messages = [line.message for line in self.lines]
        self.hashes = _hashes(self.messages)


@dataclass(frozen=True, slots=True)
class PlacedView:
    """The returned list as a view; `fold` names what is no longer shown, None when everything still is."""

    shown: tuple[Item, ...]
    fold: Fold | None
    text: str
    """What the engine wrote itself."""


def _hashes(messages: Sequence[Message]) -> list[str]:
    return [*map(message_hash, messages)]


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
    """Raise `UnfitResult`, which says why the list can't be used; nothing happens when it can."""
    new = _hashes(returned)
    _check_valid(given, returned, new)
    instructions = {key for key, message in zip(given.hashes, given.messages, strict=True) if is_instruction(message)}
    if not instructions.issubset(new):
        raise UnfitResult("returned a list without the instructions")
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
    side_by_side = set(pairwise(given.hashes))
    before = {violation.fault for violation in validate(given.messages)} & TOLERATED
    for violation in validate(list(returned)):
        pair = (*new[max(0, violation.index - 1) : violation.index + 1],)
        if violation.fault is ViolationKind.NEIGHBOURS and pair in side_by_side:
            # The user said two things in a row: they are shown as one, as they were before.
            continue
        if violation.fault not in before:
            raise UnfitResult(f"returned a list that a provider would refuse ({violation})")


def place(given: EngineInput, returned: Sequence[Message], fold_number: int) -> PlacedView:
    """The returned list as lines: those that were shown before, and the engine's own messages."""
    known = _known_lines(given, _hashes(returned))
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
