"""`PluginEngine`: the host's side of somebody else's `ContextEngine`.

The guest decides and folds; the host keeps ledger, limits and counter, as with its own engines, so that recall, pins,
undo and the fallback work whoever folds. A guest that raises, hangs or returns a list that can't be used costs nothing:
the built-in compressor answers or folds instead, and one message names plugin and method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leporello.compaction.assemble import repair
from leporello.compaction.pipeline import LEAST_SAVING, CompactionResult, NewFold, catch_up, folds_of
from leporello.compaction.view import Item, MessageHashes, MessageSizes, Shown, entry_of, join_neighbours
from leporello.engines.base import ContextEngine
from leporello.engines.compressor import MOST_ATTEMPTS, ContextCompressor
from leporello.engines.guard import PluginGuard, accepted
from leporello.engines.plugin_result import EngineInput, PlacedView, UnfitResult, judge, own_copy, place
from leporello.errors import EngineError, LeporelloError
from leporello.events import CompactionReport, Outcome
from leporello.messages import Message, decode_json, encode_json, is_instruction
from leporello.models import Limits
from leporello.redact import redact
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter

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


class PluginEngine(ContextCompressor):
    """A foreign engine in a conversation of ours."""

    def __init__(
        self,
        guest: HostedEngine,
        context_length: int = 128_000,
        *,
        limits: Limits | None = None,
        counter: TokenCounter | None = None,
        summariser: Summariser | None = None,
    ) -> None:
        self.guest = guest
        super().__init__(context_length, limits=limits, counter=counter, summariser=summariser)

    @property
    def name(self) -> str:
        """The name under which the config selects it."""
        return self.guest.name

    # -- usage, trigger, lifecycle

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """A model turn succeeded; the guest hears of it too."""
        super().update_from_response(usage)
        self.guest.ask("update_from_response", None, dict(usage))

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """The guest's answer, within the host's rules: no loops, not right after an undo, never beyond the window."""
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        if self.attempts >= MOST_ATTEMPTS or tokens < self.wait_for:
            return False
        if tokens >= self.limits.hard_tokens:
            return True
        usual = super().should_compress(tokens)
        return bool(self.guest.ask("should_compress", usual, tokens))

    def should_compress_preflight(self, messages: list[Message]) -> bool:
        """The guest's quick look, or the size of the whole request."""
        quick = self.guest.ask("should_compress_preflight", False, _copy(messages))
        return bool(quick) or super().should_compress_preflight(messages)

    def has_content_to_compress(self, messages: list[Message]) -> bool:
        """The guest's answer; the built-in one when it has none."""
        usual = super().has_content_to_compress(messages)
        return bool(self.guest.ask("has_content_to_compress", usual, _copy(messages)))

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """A session begins or goes on."""
        self.guest.ask("on_session_start", None, session_id, optional=kwargs)

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """A real end."""
        self.guest.ask("on_session_end", None, session_id, _copy(messages))

    def on_session_reset(self) -> None:
        """A new conversation in the same place."""
        super().on_session_reset()
        self.guest.ask("on_session_reset", None)

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Another model, for host and guest."""
        super().update_model(model, context_length, base_url, api_key, provider, api_mode)
        self.tell_model(model, base_url=base_url, api_key=api_key, provider=provider, api_mode=api_mode)

    def tell_model(self, model: str, **about: str) -> None:
        """Give the guest the model and the window that are in force."""
        self.guest.ask("update_model", None, model, self.limits.window, optional=dict(about))
        self.threshold_tokens = self.guest.read("threshold_tokens") or self.limits.threshold_tokens

    def get_status(self) -> dict[str, Any]:
        """The host's figures, and whatever else the guest says of itself."""
        said = self.guest.ask("get_status", {})
        return {**(said if isinstance(said, dict) else {}), **super().get_status()}

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

    # -- folding

    def compact(
        self,
        items: Sequence[Item],
        *,
        focus: str = "",
        trigger: str = "manual",
        fold_number: int = 0,
        hashes: MessageHashes | None = None,
    ) -> CompactionResult:
        """One compaction by the guest; by the built-in compressor when the guest can't or what it made is no good."""
        started = time.perf_counter()
        hash_of = hashes or MessageHashes()
        focus = redact(focus)
        task = _Task(self, items, focus, trigger, fold_number or self._next_fold(items), hash_of)
        try:
            done = task.run()
        except EngineError as error:
            why = f"{error}; the built-in compressor folded instead."
            done = super().compact(items, focus=focus, trigger=trigger, fold_number=fold_number, hashes=hash_of)
            if not done.report.committed:
                why = f"{error}; the built-in compressor could not fold either."
            report = replace(done.report, engine="compressor", warnings=(why, *done.report.warnings))
            self.last_report = report
            return replace(done, report=report)
        if trigger != "manual":
            self.attempts += 1
        report = replace(done.report, seconds=time.perf_counter() - started)
        self._learn(report)
        return replace(done, report=report)


@dataclass(frozen=True, slots=True)
class _Task:
    """One compaction by a guest."""

    host: PluginEngine
    items: Sequence[Item]
    focus: str
    trigger: str
    fold_number: int
    hash_of: MessageHashes

    def run(self) -> CompactionResult:
        host = self.host
        lines = repair([Shown(entry_of(item), item.message) for item in self.items])
        given = EngineInput(self.items, lines, self.hash_of)
        measure = MessageSizes(host.counter, self.hash_of)
        before = self._request(given.messages, measure)
        who = f"{host.guest.guard.who}: compress()"
        try:
            returned = self._ask(given.messages, before)
            if [*map(self.hash_of, returned)] == [*map(self.hash_of, given.messages)]:
                return self._unchanged(given, before)
            judge(given, returned)
        except UnfitResult as error:
            raise EngineError(f"{who} {error}") from None
        placed = place(given, returned, self.fold_number)
        catch_up(host.ledger, self.items)
        return self._measured(placed, before, measure, who)

    def _ask(self, messages: list[Message], tokens: int) -> list[Message]:
        """What the guest makes of its own copy of the messages."""
        written = encode_json(messages)
        copy: list[Message] = decode_json(written)
        optional = {
            "current_tokens": tokens,
            "focus_topic": self.focus or None,
            "force": self.trigger == "manual",
            "memory_context": "",
        }
        returned = own_copy(self.host.guest.call("compress", copy, optional=optional))
        if encode_json(copy) != written:
            raise UnfitResult("changed the list it was given")
        return returned

    def _request(self, messages: Sequence[Message], measure: MessageSizes) -> int:
        return self.host.system_tokens + self.host.tool_tokens + sum(map(measure, messages))

    def _unchanged(self, given: EngineInput, before: int) -> CompactionResult:
        """The guest sees nothing to do. Where the request would not fit, that is no answer."""
        if before >= self.host.limits.hard_tokens or self.trigger not in ORDINARY:
            raise UnfitResult("returned the list unchanged although it is too long")
        reason = f"The engine {self.host.name} left the list as it is."
        return CompactionResult(replace(self._report(Outcome.NOTHING_TO_DO, before), reason=reason), tuple(given.lines))

    def _measured(self, placed: PlacedView, before: int, measure: MessageSizes, who: str) -> CompactionResult:
        host = self.host
        sent = join_neighbours(line.message for line in placed.shown)
        after = self._request(sent, measure)
        fixed = host.system_tokens + host.tool_tokens
        fixed += sum(measure(item.message) for item in self.items if is_instruction(item.message))
        if after - fixed > (before - fixed) * (1 - LEAST_SAVING):
            raise EngineError(f"{who} made {after:,} of {before:,} tokens, which saves less than {LEAST_SAVING:.0%}")
        if after > host.limits.window:
            raise EngineError(f"{who} returned {after:,} tokens for a window of {host.limits.window:,}")
        again = host.guest.read("threshold_tokens") or host.limits.aim_tokens
        report = replace(
            self._report(Outcome.COMMITTED, before),
            summariser=f"engine:{host.name}",
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
                "fold_tokens": host.counter.text(placed.text),
                "sections": {},
            },
        )
        folds = (NewFold(placed.fold, placed.text, folds_of(self.items)),) if placed.fold else ()
        return CompactionResult(report, placed.shown, placed.fold, folds)

    def _lost_pins(self, placed: PlacedView) -> tuple[str, ...]:
        stays = {line.entry.ref for line in placed.shown}
        lost = [number for number, pin in self.host.ledger.pins.items() if pin.text.strip() and number not in stays]
        if not lost:
            return ()
        ids = ", ".join(f"m{number}" for number in lost[:8])
        return (f"The view that the engine {self.host.name} made does not hold {len(lost)} pinned messages ({ids}).",)

    def _report(self, outcome: Outcome, before: int) -> CompactionReport:
        return CompactionReport(
            outcome,
            engine=self.host.name,
            trigger=self.trigger,
            focus=self.focus,
            messages_before=len(self.items),
            messages_after=len(self.items),
            tokens_before=before,
            tokens_after=before,
        )


def _copy(value: Any) -> Any:
    """A copy that a guest may do anything with."""
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
