"""The agent: one user message in, model calls and tools until the answer is there, everything stored as it happens.

Every message is durable before the next step begins, so an interrupt or a crash leaves a valid conversation to go on
from: calls without a result get one when it is taken up again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from leporello import caching
from leporello.agent.calling import Caller
from leporello.agent.events import (
    AgentEvent,
    CallFinished,
    Compacted,
    Compacting,
    Notice,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    Watcher,
)
from leporello.agent.system_prompt import PromptSources, SystemPrompt
from leporello.cancel import CancelToken
from leporello.conversation import Conversation, Request
from leporello.errors import Cancelled
from leporello.events import CompactionEvent
from leporello.ledger.calls import describe
from leporello.messages import Message, ToolCall, calls_of, text_of
from leporello.models import cost, model_facts
from leporello.providers.base import ModelReply, ModelRequest, Provider
from leporello.tokens.meter import PromptSize
from leporello.tools.base import OutputLimits, ToolContext
from leporello.tools.budget import Budgeted, OutputBudget
from leporello.tools.terminal import BackgroundJobs
from leporello.tools.toolbox import Toolbox
from leporello.turns import open_group
from leporello.usage import CanonicalUsage

MOST_STEPS = 200
"""Model calls of one turn; beyond it the turn ends and says so."""
INTERRUPTED = "Error: the user interrupted before this call was run; nothing was done"
LOST = "Error: the program stopped before this call had a result; whether it ran is unknown"
PROMPT_KEY = "agent.system_prompt"
PAUSE = "pause"
"""A provider with tools of its own works in steps: its answer is sent back as it is, and it goes on."""
WINDOW_FILLED = "context_window_exceeded"


@dataclass(slots=True)
class Agent:
    """One conversation with a model and tools."""

    talk: Conversation
    provider: Provider
    toolbox: Toolbox
    context: ToolContext
    budget: OutputBudget
    prompt: SystemPrompt
    sources: PromptSources
    learn: Callable[[int], None]
    provider_name: str = ""
    base_url: str = ""
    dialect: str = ""
    max_output: int | None = None
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    """Commands that run in the background; whoever ends the conversation closes them."""
    watchers: list[Watcher] = field(default_factory=list)
    _watch_turn: Watcher | None = None
    _told: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.talk.runtime.hooks.before.append(lambda trigger: self._emit(Compacting(trigger)))
        self.talk.runtime.hooks.listeners.append(self._compacted)

    # -- one turn

    def turn(self, text: str | Message, watch: Watcher | None = None, cancel: CancelToken | None = None) -> TurnEnded:
        """Run one user message to its answer."""
        self._watch_turn = watch
        token = cancel or CancelToken()
        message: Message = {"role": "user", "content": text} if isinstance(text, str) else text
        self.tell_troubles()
        # Calls that a crash left open; not before a turn begins: another process may still be working on them.
        self.close_open_calls(LOST)
        self.talk.append(message)
        return self._answered(token)

    def go_on(self, watch: Watcher | None = None, cancel: CancelToken | None = None) -> TurnEnded:
        """Run a turn to its answer whose message is in the log already, also one that was broken off in the middle."""
        self._watch_turn = watch
        self.tell_troubles()
        self.close_open_calls(LOST)
        return self._answered(cancel or CancelToken())

    def refresh(self) -> None:
        """See what other processes did with the conversation; their folds change the prompt here, too."""
        folded = self.talk.runtime.log.compactions
        if not self.talk.runtime.log.refresh() or self.talk.runtime.log.compactions == folded:
            return
        kept = self.talk.runtime.log.store.state.get(self.talk.id, PROMPT_KEY)
        prompt = SystemPrompt.from_dict(kept) if kept else self.prompt
        self.prompt = prompt.after_compression(self.sources)
        if self.prompt != prompt:
            self.talk.runtime.log.store.state.set(self.talk.id, PROMPT_KEY, self.prompt.as_dict())

    def _answered(self, token: CancelToken) -> TurnEnded:
        used = CanonicalUsage()
        calls = 0
        self.talk.runtime.hooks.cancel = token
        try:
            while calls < MOST_STEPS:
                folded = self.talk.runtime.log.compactions
                reply = self._ask(token)
                calls += 1
                used += reply.usage
                wanted = calls_of(reply.message)
                if wanted:
                    if self._run_tools(wanted, token):
                        return self._ended(TurnEnded("", "interrupted", calls, used))
                elif reply.finish_reason != PAUSE:
                    if reply.finish_reason == WINDOW_FILLED:
                        self._make_room(folded)
                    return self._ended(TurnEnded(text_of(reply.message), reply.finish_reason, calls, used))
            return self._ended(TurnEnded("", "steps", calls, used))
        except (KeyboardInterrupt, Cancelled):
            token.cancel()
            self.close_open_calls(INTERRUPTED)
            return self._ended(TurnEnded("", "interrupted", calls, used))
        finally:
            self._watch_turn = None
            self.talk.runtime.hooks.cancel = None

    def _ask(self, token: CancelToken) -> ModelReply:
        caller = Caller(self.talk, self.provider, self._emit, self._learned)
        reply = caller.call(lambda most: self._request(most, token), self.max_output)
        self.talk.record(reply, provider=self.provider_name)
        self.tell_troubles()
        facts = model_facts(self.talk.runtime.sizes.model or None)
        self._emit(CallFinished(self.talk.runtime.sizes.model, reply.usage, cost(reply.usage, facts)))
        return reply

    def _request(self, max_tokens: int | None, token: CancelToken) -> ModelRequest:
        """The view as it is now, with breakpoints where the provider wants them."""
        folded = self.talk.runtime.log.compactions
        made = self._view_request(max_tokens)
        if self.talk.runtime.log.compactions != folded:
            # A fold changes the prompt too: both go out in the same request, so that the prefix breaks only once.
            made = self._view_request(max_tokens)
        use = caching.cache_use(made.model, self.provider_name, self.base_url, self.dialect)
        messages = made.marked(native=use.native) if use.marks else list(made.messages)
        return ModelRequest(made.model, messages, made.tools, max_tokens, options={**made.options}, cancel=token)

    def measure(self) -> PromptSize:
        """How large the next request would be as things stand."""
        words = text_of(self.prompt.message())
        self.talk.runtime.sizes.measure_fixed(self.toolbox.schemas(), words)
        return self.talk.runtime.compactor.reading

    def _view_request(self, max_tokens: int | None) -> Request:
        return self.talk.request(
            self.toolbox.schemas(), system=self.prompt.message(), max_tokens=max_tokens, provider=self.provider_name
        )

    def _run_tools(self, calls: Sequence[ToolCall], token: CancelToken) -> bool:
        """Run the calls of one reply, each result stored before the next call begins; True when interrupted."""
        context = replace(self.context, cancel=token, emit=lambda text: self._emit(ToolOutput(text)))
        interrupted = False
        used = 0
        for waiting, call in zip(reversed(range(len(calls))), calls, strict=True):
            self._emit(ToolStarted(call.id, call.name, describe(call).heading))
            began = time.monotonic()
            result = self.toolbox.run_all([call], context)[0]
            seconds = time.monotonic() - began
            shown = self.budget.one(call, self.toolbox.get(call.name), result, used=used, waiting=waiting)
            used += len(shown.text)
            self._emit(_finished(shown, self.talk.append(shown.message())[0], seconds))
            interrupted = interrupted or bool(result.details.get("interrupted"))
        return interrupted

    def _make_room(self, folded_before: int) -> None:
        """The answer filled the window and broke off: fold, unless recording it did so, and say what to do."""
        if self.talk.runtime.log.compactions == folded_before and self.talk.runtime.settings.compression.enabled:
            self.talk.runtime.compactor.shrink("answer filled the window")
        made = self.talk.runtime.log.compactions > folded_before
        what = (
            "The conversation was folded: say `go on` for the rest." if made else "Nothing could be folded: try /new."
        )
        self._emit(Notice(f"The answer filled the model's window and ends there. {what}"))

    def close_open_calls(self, text: str) -> None:
        """Give every call that still waits a result, so that the conversation can go on."""
        messages = self.talk.runtime.log.view.messages
        group = open_group(messages)
        if group is None:
            return
        calls = calls_of(messages[group.start])
        self.talk.append(*({"role": "tool", "tool_call_id": calls[k].id, "content": text} for k in group.unanswered))

    # -- what happens beside it

    def _emit(self, event: AgentEvent) -> None:
        for watch in (*self.watchers, *((self._watch_turn,) if self._watch_turn else ())):
            watch(event)

    def tell_troubles(self) -> None:
        """Say what is wrong with plugins, each thing once."""
        for text in self.talk.runtime.plugins.troubles:
            if text not in self._told:
                self._told.add(text)
                self._emit(Notice(text))

    def _ended(self, ended: TurnEnded) -> TurnEnded:
        self._emit(ended)
        return ended

    def _learned(self, window: int) -> None:
        self.learn(window)
        self.talk.runtime.use_window(window)
        self._fit_outputs()

    def _fit_outputs(self) -> None:
        """Tool output is shown in proportion to the window, which has just changed."""
        limits = OutputLimits.for_window(self.talk.runtime.sizes.limits.window)
        self.context = replace(self.context, limits=limits)
        self.budget = self.budget.within(limits)

    def _compacted(self, event: CompactionEvent) -> None:
        """A new session of the chain: memory is taken in if it changed, and the prompt says that turns were folded."""
        self._emit(Compacted(event))
        if not event.report.committed:
            return
        self.prompt = self.prompt.after_compression(self.sources)
        self.talk.runtime.log.store.state.set(self.talk.id, PROMPT_KEY, self.prompt.as_dict())

    def use_model(
        self,
        model: str,
        provider: Provider,
        provider_name: str,
        window: int | None,
        *,
        base_url: str = "",
        dialect: str = "",
    ) -> None:
        """Go on with another model; what no longer fits is folded before the next call."""
        self.provider = provider
        self.provider_name = provider_name
        self.base_url = base_url
        self.dialect = dialect
        self.talk.runtime.use_model(model, window)
        self._fit_outputs()


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
