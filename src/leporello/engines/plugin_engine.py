"""`PluginEngine`: somebody else's `ContextEngine` as an engine of a conversation.

The plugin decides and compacts; the conversation keeps ledger, limits and state, as with the built-in engines, so that
recall, pins, undo and the fallback work whoever compacts. A plugin that raises, hangs or returns a list that can't be
used costs nothing: the policy decides or the built-in compressor compacts instead, and one message names plugin and
method.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import Struct, field

from leporello.compaction.pipeline import (
    CompactionResult,
    CompactionTask,
    NewFold,
    catch_up,
    folds_of,
    listed,
    report,
    request_tokens,
)
from leporello.compaction.view import Origin, join_neighbours
from leporello.engines.base import CompactionEngine
from leporello.engines.compressor import COMPRESSOR
from leporello.engines.guard import PluginGuard, accepted
from leporello.engines.plugin_result import (
    EngineInput,
    PlacedView,
    UnfitResult,
    as_hosted,
    engine_copy,
    hashes_of,
    judge,
    mended,
    own_copy,
    place,
)
from leporello.errors import EngineError, LeporelloError
from leporello.events import Outcome
from leporello.messages import (
    Message,
    decode_json,
    encode_json,
    is_instruction,
)
from leporello.models import Limits
from leporello.policy.decision import LEAST_SAVING, Decision, Situation, decide, saves_enough
from leporello.policy.state import MANUAL

ORDINARY = ("manual", "preflight", "threshold", "automatic")
"""Triggers that can wait; all others mean that a provider refused the request."""
TOOL_SECONDS = 50.0
LONGEST_NAME = 64
CARRY_OVER = "carry_over_new_session_context"
SWITCH = ("boundary_reason", "old_session_id")
"""What a host says when a compression changed the session id. An engine that reads neither would begin anew."""


def session_manners(engine: Any) -> tuple[bool, bool]:
    """Whether an engine carries over what it keeps to a new session id, and whether it goes on under one at all."""
    carries_over = callable(getattr(engine, CARRY_OVER, None))
    return carries_over, carries_over or _reads_switch(getattr(type(engine), "on_session_start", None))


def _reads_switch(on_session_start: Any) -> bool:
    """Whether the method looks at what is said about a switch, or hands it to somebody who may."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(on_session_start)))
    except (TypeError, OSError, SyntaxError):
        return True
    looked_at = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Subscript)}
    looked_at |= {id(side) for node in ast.walk(tree) if isinstance(node, ast.Compare) for side in node.comparators}
    to_base = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "super()" in ast.unparse(node.func)]
    looked_at |= {id(keyword.value) for node in to_base for keyword in node.keywords}
    extra = inspect.getfullargspec(on_session_start).varkw
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    named |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    handed_on = any(
        isinstance(node, ast.Name) and node.id == extra and id(node) not in looked_at for node in ast.walk(tree)
    )
    return handed_on or not named.isdisjoint(SWITCH)


class HostedEngine(Struct):
    """A foreign engine and the guard through which it is called. One serves one conversation."""

    engine: Any
    """A `ContextEngine`, or what stands in for one in another process."""
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

    def __init__(self, hosted: HostedEngine) -> None:
        self.name = hosted.name
        self.hosted = hosted
        known = getattr(hosted.engine, "manners", None)
        self._carries_over, self._follows = known if isinstance(known, tuple) else session_manners(hosted.engine)
        self._threshold = 0
        self._lasting_id = ""
        self._has_kept = False
        """Whether it may have something from an earlier run of the program."""

    # -- usage, trigger, lifecycle

    def adjusted(self, limits: Limits) -> Limits:
        """With the plugin's threshold, as far as it leaves room for the answer."""
        threshold = min(self._threshold or limits.threshold_tokens, limits.hard_tokens)
        return replace(limits, threshold_tokens=threshold)

    def decide(self, situation: Situation) -> Decision:
        """The plugin's answer, within the host's rules: no loops, not right after an undo, never beyond the window."""
        situation = replace(situation, prices=None)
        usual = decide(situation)
        if usual.final:
            return usual
        wants = bool(self.hosted.ask("should_compress", usual.compacts, situation.tokens))
        return decide(replace(situation, engine_wants=wants))

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.hosted.ask("update_from_response", None, dict(usage))

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Tell the plugin; at a compression switch it takes over what it keeps under the old id.

        An engine that would not do so goes by the conversation's id, which stays.
        """
        older = kwargs.get("old_session_id")
        if not self._follows:
            self._lasting_id = str(kwargs.get("conversation_id") or session_id)
            if older:
                return
        self.hosted.ask("on_session_start", None, self._lasting_id or session_id, optional=kwargs)
        # With nothing to carry over some engines leave a transaction open, and hang at the next call.
        self._has_kept = self._has_kept or (not older and session_id != kwargs.get("conversation_id"))
        if older and self._carries_over and (self._has_kept or self.hosted.read("compression_count")):
            self.hosted.ask(CARRY_OVER, None, older, session_id)

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        self.hosted.ask(
            "on_session_end", None, self._lasting_id or session_id, engine_copy([*map(as_hosted, messages)])
        )

    def on_session_reset(self) -> None:
        self.hosted.ask("on_session_reset", None)

    def update_model(self, model: str, context_length: int) -> None:
        """Give the plugin the model and the window that are in force, and take its threshold."""
        self.hosted.ask("update_model", None, model, context_length)
        self._threshold = self.hosted.read("threshold_tokens")

    # -- tools

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The plugin's tools, as far as a model can be offered them."""
        listed = self.hosted.ask("get_tool_schemas", [])
        fit = [_schema(schema) for schema in listed] if isinstance(listed, list) else [None]
        if None in fit:
            self.hosted.guard.note(f"{self.hosted.guard.who}: get_tool_schemas() names a tool that can't be offered.")
        return [schema for schema in fit if schema is not None]

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of its tools; the answer is text, `{"error": ...}` when the plugin failed."""
        try:
            shown = {**kwargs, "messages": [*map(as_hosted, kwargs.get("messages") or ())]}
            answer = self.hosted.call(
                "handle_tool_call", name, dict(args), optional=engine_copy(shown), seconds=TOOL_SECONDS
            )
            return answer if isinstance(answer, str) else encode_json(answer).decode()
        except (LeporelloError, TypeError) as error:
            return encode_json({"error": str(error)}).decode()

    # -- compaction

    def compact(self, task: CompactionTask) -> CompactionResult:
        """One compaction by the plugin; by the built-in compressor when it can't or what it made is no good."""
        started = time.perf_counter()
        try:
            done = _PluginCompaction(self.hosted, replace(task, engine=self.name)).run()
        except EngineError as error:
            done = COMPRESSOR.compact(replace(task, engine=COMPRESSOR.name))
            instead = "folded instead" if done.report.committed else "could not fold either"
            why = f"{error}; the built-in compressor {instead}."
            return replace(done, report=replace(done.report, warnings=(why, *done.report.warnings)))
        return replace(done, report=replace(done.report, seconds=time.perf_counter() - started))


class _PluginCompaction(Struct, frozen=True):
    hosted: HostedEngine
    task: CompactionTask

    def run(self) -> CompactionResult:
        task = self.task
        given = EngineInput(task.items)
        before = request_tokens(task, [line.message for line in given.lines])
        who = f"{self.hosted.guard.who}: compress()"
        try:
            returned = mended(given, self._ask(given.messages, before))
            if hashes_of(returned) == given.hashes:
                return self._unchanged(given, before)
            judge(given, returned)
        except UnfitResult as error:
            raise EngineError(f"{who} {error}") from None
        placed = place(given, returned, task.fold_number)
        catch_up(task.ledger, task.items)
        return self._measured(placed, before, who)

    def _ask(self, messages: list[Message], tokens: int) -> list[Message]:
        """What the plugin makes of its own copy of the messages."""
        written = encode_json(messages)
        copy: list[Message] = decode_json(written)
        optional = {
            "current_tokens": tokens,
            "focus_topic": self.task.focus or None,
            "force": self.task.trigger == MANUAL,
            "memory_context": "",
        }
        returned = own_copy(self.hosted.call("compress", copy, optional=optional))
        if encode_json(copy) != written:
            raise UnfitResult("changed the list it was given")
        return returned

    def _unchanged(self, given: EngineInput, before: int) -> CompactionResult:
        """The plugin sees nothing to do. Where the request would not fit, that is no answer."""
        if before >= self.task.limits.hard_tokens or self.task.trigger not in ORDINARY:
            raise UnfitResult("returned the list unchanged although it is too long")
        reason = f"The engine {self.hosted.name} left the list as it is."
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
        again = self.hosted.read("threshold_tokens") or task.limits.aim_tokens
        done = replace(
            report(task, Outcome.COMMITTED, before),
            summariser=f"engine:{self.hosted.name}",
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
        told = f"The view that the engine {self.hosted.name} made does not hold {len(lost)} pinned messages"
        return (f"{told} ({listed(lost)}).",) if lost else ()


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
