"""The agent: one user message in, model calls and tools until the answer is there, everything stored as it happens.

Every message is durable before the next step begins, so an interrupt or a crash leaves a valid conversation to go on
from: calls without a result get one when it is taken up again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leporello import caching
from leporello.agent.endpoints import Chosen, remember_refused_search, remember_window
from leporello.agent.events import (
    ENDINGS,
    AgentEvent,
    CallFinished,
    Compacted,
    Compacting,
    Notice,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnHooks,
    Watcher,
)
from leporello.agent.repeats import Repeats
from leporello.agent.system_prompt import PromptSources, SystemPrompt, api_messages
from leporello.cancel import CancelToken
from leporello.conversation import Conversation, Request
from leporello.conversation.background import BackgroundCompactions
from leporello.conversation.recovery import Facts, OutputCap, Recovery, Remedy, Step, next_step
from leporello.conversation.tool_schemas import FIND_TOOLS
from leporello.errors import Cancelled, LeporelloError
from leporello.events import CompactionEvent, CompactionReport
from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import describe
from leporello.messages import Message, ToolCall, calls_of, parse_json, role_of, text_of
from leporello.models import cost, model_facts
from leporello.providers.base import ModelReply, ModelRequest
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.store.records import Pulse
from leporello.summaries.base import LivePrefix
from leporello.tokens.meter import PromptSize
from leporello.tools.base import OutputLimits, ToolContext, ToolResult
from leporello.tools.budget import Budgeted, OutputBudget
from leporello.tools.terminal import BackgroundJobs
from leporello.tools.toolbox import NOT_RUN, Toolbox
from leporello.turns import open_group
from leporello.usage import CanonicalUsage

MOST_STEPS = 200  # model calls of one turn; beyond it the turn ends and says so
LOST = "Error: the program stopped before this call had a result; whether it ran is unknown"
CIRCLING = "the turn was stopped because calls were repeated that brought nothing new; this one was not run"
PROMPT_KEY = "agent.system_prompt"
REPEATS_KEY = "agent.repeats"
PAUSE = "pause"  # a provider with tools of its own works in steps: its answer is sent back as it is, and it goes on
WINDOW_FILLED = "context_window_exceeded"
_THOUGHT = lazy_regex(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
"""What some servers leave in the text of an answer: no word of it is for the user."""


class StillTooLong(LeporelloError):
    """The request is refused as too long even after folding."""

    def __init__(self, verdict: ErrorVerdict, foldings: int, why: str) -> None:
        times = f"after {foldings} foldings" if foldings else "and it was not folded"
        super().__init__(
            f"The model refuses the request as too long {times} ({why or verdict.message}). "
            "Start afresh with /new, or fold by hand with /compress."
        )
        self.verdict = verdict


@dataclass(slots=True)
class Agent:
    conversation: Conversation
    chosen: Chosen
    toolbox: Toolbox
    context: ToolContext
    budget: OutputBudget
    prompt: SystemPrompt
    _sources: PromptSources
    max_output: int | None = None
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    """Commands that run in the background; whoever ends the conversation closes them."""
    beside: BackgroundCompactions | None = None
    """Makes compactions that can wait; None where they are made between two calls."""
    watchers: list[Watcher] = field(default_factory=list)
    _watch_turn: Watcher | None = None
    _reported: set[str] = field(default_factory=set)
    _repeats: Repeats = field(default_factory=Repeats)
    _known_compactions: int = 0
    _turn_context: str = ""  # what plugins add to the requests of the running turn

    def __post_init__(self) -> None:
        self._known_compactions = self.conversation.runtime.log.compactions
        self.conversation.runtime.hooks.before.append(lambda trigger: self._emit(Compacting(trigger)))
        self.conversation.runtime.hooks.listeners.append(self._compacted)
        self.conversation.runtime.hooks.live = self._live

    # -- one turn

    def turn(self, text: str | Message, watch: Watcher | None = None, cancel: CancelToken | None = None) -> TurnEnded:
        """Run one user message to its answer."""
        self._begin_turn(watch)
        self._count_repeats(begun=False)
        self.conversation.append({"role": "user", "content": text} if isinstance(text, str) else text)
        return self._answer(cancel or CancelToken())

    def go_on(
        self, watch: Watcher | None = None, cancel: CancelToken | None = None, *, begun: bool = True
    ) -> TurnEnded:
        """Run a turn to its answer whose message is in the log already; `begun`: it was broken off in the middle."""
        self._begin_turn(watch)
        self._count_repeats(begun=begun)
        return self._answer(cancel or CancelToken())

    def _begin_turn(self, watch: Watcher | None) -> None:
        self._watch_turn = watch
        self._report_troubles()
        # Calls that a crash left open; not before a turn begins: another process may still be working on them.
        self.close_open_calls(LOST)

    def refresh(self, pulse: Pulse | None = None) -> None:
        """See what other processes did with the conversation; their folds change the prompt here, too."""
        self.conversation.runtime.log.refresh(pulse)
        self._take_in_compactions()

    def _take_in_compactions(self) -> None:
        """One that was made beside the conversation is told, and changes the prompt in the same request."""
        runtime = self.conversation.runtime
        if self.beside is not None:
            runtime.log.refresh()
        folded = runtime.log.compactions
        if folded == self._known_compactions:
            return
        self._known_compactions = folded
        if self.beside is not None:
            newest = runtime.log.store.views.attempts(self.conversation.id, 1)
            if newest and newest[0].report.committed:
                event = CompactionEvent(self.conversation.id, runtime.log.view.generation, newest[0].report, folded)
                self._emit(Compacted(event))
        kept = runtime.log.store.state.get(self.conversation.id, PROMPT_KEY)
        prompt = SystemPrompt.from_dict(kept) if kept else self.prompt
        self.prompt = prompt.after_compression(self._sources)
        if self.prompt != prompt:
            self._store_prompt()

    def _answer(self, token: CancelToken) -> TurnEnded:
        hooks, log = self.conversation.runtime.hooks, self.conversation.runtime.log
        used = CanonicalUsage()
        calls = 0
        hooks.cancel = token
        self._turn_context = TurnHooks(self.conversation).before_turn()
        try:
            while calls < MOST_STEPS:
                folded = log.compactions
                reply = self._ask(token)
                calls += 1
                used += reply.usage
                wanted = calls_of(reply.message)
                if wanted:
                    if stopped := self._run_tools(wanted, token):
                        return self._end_turn("", stopped, calls, used)
                elif reply.finish_reason != PAUSE:
                    if reply.finish_reason == WINDOW_FILLED:
                        self._make_room(folded)
                    return self._end_turn(*_answer_of(reply), calls, used)
            return self._end_turn("", "steps", calls, used)
        except (KeyboardInterrupt, Cancelled):
            token.cancel()
            self.close_open_calls(f"Error: {NOT_RUN}")
            return self._end_turn("", "interrupted", calls, used)
        finally:
            self._watch_turn = None
            self._turn_context = ""
            hooks.cancel = None

    def _end_turn(self, text: str, reason: str, calls: int, used: CanonicalUsage) -> TurnEnded:
        ended = TurnEnded(text, reason, calls, used)
        TurnHooks(self.conversation).after_turn(text)
        self._emit(ended)
        return ended

    # -- one call to the model

    def _ask(self, token: CancelToken) -> ModelReply:
        reply = self._call(token)
        self.conversation.record(reply, provider=self.chosen.provider_name)
        self._report_troubles()
        model = self.conversation.runtime.sizes.model
        self._emit(CallFinished(model, reply.usage, cost(reply.usage, model_facts(model or None))))
        return reply

    def _call(self, token: CancelToken) -> ModelReply:
        """The model's answer. What the provider refuses is mended as `recovery` says, and sent again."""
        runtime = self.conversation.runtime
        recovery = Recovery()
        max_tokens = self.max_output
        while True:
            try:
                request = self._request(max_tokens, token)
                return self.chosen.provider.complete(request, lambda text: self._emit(TextDelta(text)))
            except CallFailed as error:
                limits = runtime.sizes.limits
                cap = OutputCap(max_tokens, limits.output_reserve)
                vendor = self.chosen.tool_search is not None
                facts = Facts(limits.window, runtime.settings.compression.enabled, cap, vendor_searches=vendor)
                step = next_step(recovery, error.verdict, facts)
                if step.remedy is Remedy.LOWER_CAP:
                    max_tokens = step.cap
                    allowed = f"The model allows at most {step.cap:,} output tokens here"
                    self._emit(Notice(f"{allowed}; asking again with that."))
                elif step.remedy is Remedy.OWN_TOOL_SEARCH:
                    self.chosen = replace(self.chosen, vendor_searches=False)
                    remember_refused_search(runtime.settings, self.chosen)
                    self._emit(Notice("The provider refuses to search tools; find_tools does it here. Remembered."))
                elif step.remedy is Remedy.COMPACT:
                    report = self._compact(step)
                    if not report.committed:
                        raise StillTooLong(error.verdict, recovery.compactions, report.reason) from error
                elif step.remedy is Remedy.EXHAUSTED:
                    raise StillTooLong(error.verdict, recovery.compactions, step.reason) from error
                else:
                    raise
                recovery = step.after

    def _compact(self, step: Step) -> CompactionReport:
        window = step.stated_window
        if window is not None:
            remember_window(self.conversation.runtime.settings, self.chosen, window)
            self.conversation.runtime.use_window(window)
            self._fit_outputs()
            self._emit(Notice(f"The model's window is {window:,} tokens, as it says itself; remembered."))
        self._emit(Notice("The request was too long for the model; folding and sending it again."))
        return self.conversation.runtime.compactor.shrink(step.trigger)

    def _request(self, max_tokens: int | None, token: CancelToken) -> ModelRequest:
        """The view as it is now, with breakpoints where the provider wants them."""
        self._take_in_compactions()
        log = self.conversation.runtime.log
        folded = log.compactions
        made = self._view_request(max_tokens)
        if log.compactions != folded:
            # A fold changes the prompt too: both go out in the same request, so that the prefix breaks only once.
            made = self._view_request(max_tokens)
        served = self.chosen
        use = caching.cache_use(made.model, served.provider_name, served.base_url, served.dialect)
        messages = made.marked(native=use.native) if use.marks else list(made.messages)
        runtime = self.conversation.runtime
        recalled = runtime.recalled(wanted=runtime.settings.get("recall.unasked"))
        # Behind the breakpoints and all that will be sent again: the next request begins with the same bytes.
        messages = api_messages(None, messages, "\n\n".join(filter(None, (recalled, self._turn_context))))
        return ModelRequest(made.model, messages, made.tools, max_tokens, options={**made.options}, cancel=token)

    def _live(self) -> LivePrefix | None:
        """What the model has in its cache, while it is warm, and what came since; None when it is cold."""
        runtime, served = self.conversation.runtime, self.chosen
        if not runtime.compactor.warm:
            return None
        messages = [self.prompt.message(), *self.conversation.messages]
        use = caching.cache_use(served.model, served.provider_name, served.base_url, served.dialect)
        if use.marks:
            layout = caching.LAYOUTS[runtime.settings.prompt_caching.layout]
            messages = layout(messages, runtime.settings.prompt_caching.cache_ttl, native=use.native)
        options = caching.cache_options(use, self.conversation.id)
        return LivePrefix(served.provider, ModelRequest(served.model, messages, self._shown_tools(), options=options))

    def _view_request(self, max_tokens: int | None) -> Request:
        prompt, provider = self.prompt.message(), self.chosen.provider_name
        deferred = self.chosen.tool_search is not None
        self.conversation.runtime.tools.renew(self.toolbox.schemas(), deferred=deferred)
        return self.conversation.request(self._shown_tools(), prompt, max_tokens=max_tokens, provider=provider)

    def _shown_tools(self) -> list[dict[str, Any]]:
        """What stands in the requests; of tools that were never used perhaps only how to find them."""
        return self.conversation.runtime.tools.shown(self.toolbox.schemas(), self.chosen.tool_search)

    def measure(self) -> PromptSize:
        """How large the next request would be as things stand."""
        words = text_of(self.prompt.message())
        self.conversation.runtime.sizes.measure_fixed(self._shown_tools(), words)
        return self.conversation.runtime.compactor.reading

    def _run_tools(self, calls: Sequence[ToolCall], token: CancelToken) -> str:
        """Run the calls of one reply, each result stored before the next call begins; why the turn ends, if it does."""
        context = replace(self.context, cancel=token, emit=lambda text: self._emit(ToolOutput(text)))
        stopped = ""
        used = 0
        for waiting, call in zip(reversed(range(len(calls))), calls, strict=True):
            self._emit(ToolStarted(call.id, call.name, describe(call).heading))
            if call.name == "terminal" and context.sandbox is not None and context.sandbox.why_not:
                self._say_once(f"Commands are not confined ({context.sandbox.why_not}): they can do what you can.")
            began = time.monotonic()
            circling = stopped == "repeats"
            hooks = TurnHooks(self.conversation)
            blocked = ToolResult.error(CIRCLING) if circling else hooks.before_tool(call)
            result = blocked or self._run_tool(call, context)
            seconds = time.monotonic() - began
            hooks.after_tool(call, result, seconds)
            result = self._noting_repeats(call, result, seconds)
            shown = self.budget.one(call, self.toolbox.get(call.name), result, used=used, waiting=waiting)
            used += len(shown.text)
            self._emit(_finished(shown, self.conversation.append(shown.message())[0], seconds))
            if result.details.get("interrupted"):
                stopped = "interrupted"
            elif not stopped and self._repeats.too_many:
                stopped = "repeats"
                self._emit(
                    Notice(f"The model repeats calls that bring nothing new, the last one {describe(call).heading}.")
                )
        return stopped

    def _run_tool(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if call.name != FIND_TOOLS or FIND_TOOLS in self.toolbox:
            return self.toolbox.run(call, context)
        given = parse_json(call.arguments)
        query = given.get("query") if isinstance(given, Mapping) else None
        return ToolResult(self.conversation.runtime.tools.find(query, self.toolbox.schemas()))

    def _noting_repeats(self, call: ToolCall, result: ToolResult, seconds: float) -> ToolResult:
        self._repeats.note(call, result, seconds)
        if not self._repeats.worth_keeping:
            return result
        advice = self._repeats.advice()
        self._keep_repeats()
        return replace(result, status=f"{result.status}\n{advice}".strip()) if advice else result

    def _count_repeats(self, *, begun: bool) -> None:
        """Go on with the count of a turn that was begun by another process; each turn has its own."""
        kept = self.conversation.runtime.log.store.state.get(self.conversation.id, REPEATS_KEY) if begun else None
        same = isinstance(kept, dict) and kept.get("turn") == self._asked
        self._repeats = Repeats.from_dict(kept if same else None)

    def _keep_repeats(self) -> None:
        state = self.conversation.runtime.log.store.state
        state.set(self.conversation.id, REPEATS_KEY, {**self._repeats.as_dict(), "turn": self._asked})

    @property
    def _asked(self) -> int | None:
        """The message that the turn answers."""
        lines = reversed(self.conversation.runtime.log.view.lines)
        return next((line.number for line in lines if line.number and role_of(line.message) == "user"), None)

    def _make_room(self, folded_before: int) -> None:
        """The answer filled the window and broke off: fold, unless recording it did so, and say what to do."""
        runtime = self.conversation.runtime
        if runtime.log.compactions == folded_before and runtime.settings.compression.enabled:
            runtime.compactor.shrink("answer filled the window")
        advice = "Nothing could be folded: try /new."
        if runtime.log.compactions > folded_before:
            advice = "The conversation was folded: say `go on` for the rest."
        self._emit(Notice(f"The answer filled the model's window and ends there. {advice}"))

    def close_open_calls(self, text: str) -> None:
        """Give every call that still waits a result, so that the conversation can go on."""
        messages = self.conversation.runtime.log.view.messages
        group = open_group(messages)
        if group is None:
            return
        ids = [call.id for call in calls_of(messages[group.start])]
        results = ({"role": "tool", "tool_call_id": ids[k], "content": text} for k in group.unanswered)
        self.conversation.append(*results)

    # -- what happens beside it

    def _emit(self, event: AgentEvent) -> None:
        for watch in (*self.watchers, *((self._watch_turn,) if self._watch_turn else ())):
            watch(event)

    def _report_troubles(self) -> None:
        """Say what is wrong with plugins, each thing once."""
        for text in self.conversation.runtime.plugins.troubles:
            self._say_once(text)

    def _say_once(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self._emit(Notice(text))

    def _fit_outputs(self) -> None:
        """Tool output is shown in proportion to the window, which has just changed."""
        limits = OutputLimits.for_window(self.conversation.runtime.sizes.limits.window)
        self.context = replace(self.context, limits=limits)
        self.budget = self.budget.within(limits)

    def _compacted(self, event: CompactionEvent) -> None:
        """A new session of the chain: memory is taken in if it changed, and the prompt says that turns were folded."""
        self._emit(Compacted(event))
        if event.report.committed:
            self._known_compactions = self.conversation.runtime.log.compactions
            self.prompt = self.prompt.after_compression(self._sources)
            self._store_prompt()

    def _store_prompt(self) -> None:
        self.conversation.runtime.log.store.state.set(self.conversation.id, PROMPT_KEY, self.prompt.as_dict())

    def use_model(self, chosen: Chosen) -> None:
        """Go on with another model; what no longer fits is folded before the next call."""
        self.chosen = chosen
        self.conversation.runtime.use_model(chosen.model, chosen.served_window)
        self._fit_outputs()


def _answer_of(reply: ModelReply) -> tuple[str, str]:
    """Text and reason; an answer without a word is said to be none, whatever the provider calls it."""
    text = text_of(reply.message) or str(reply.message.get("refusal") or "")
    said = any(sign.isprintable() and not sign.isspace() for sign in _THOUGHT.sub("", text))
    return text, reply.finish_reason if said or reply.finish_reason in ENDINGS else "empty"


def _finished(entry: Budgeted, id: str, seconds: float) -> ToolFinished:
    result = entry.result
    return ToolFinished(
        entry.call.id,
        entry.call.name,
        ok=not result.is_error,
        characters=len(entry.text),
        saved=str(entry.saved.path) if entry.saved else "",
        seconds=seconds,
        outcome=(result.status or (result.text if result.is_error else "")).partition("\n")[0],
        message=id,
        output=result.text,
    )
