"""`PluginContext`: what a plugin's `register(ctx)` is given, what it registered, and how that is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, field

from leporello.engines.base import ContextEngine
from leporello.engines.guard import PluginGuard, accepted
from leporello.errors import EngineError, ProviderError
from leporello.messages import encode_json, text_of
from leporello.providers.base import Delta, ModelReply, ModelRequest
from leporello.summaries.model import SummaryModel
from leporello.usage import CanonicalUsage

HOOKS = (
    "session_start",
    "pre_llm_call",
    "pre_tool_call",
    "post_tool_call",
    "post_llm_call",
    "pre_compaction",
    "post_compaction",
    "session_end",
)
_OTHER_NAMES = {
    "pre_compress": "pre_compaction",
    "post_compress": "post_compaction",
    "on_session_start": "session_start",
    "on_session_end": "session_end",
}
DEFAULT_SUMMARISER_WINDOW = 32_000
SECONDS = 50.0  # tools and commands are waited for longer than what stands in the way of a turn


class PluginTool(Struct, frozen=True):
    """A tool of a plugin: its schema, and `handler(args)` that answers with text."""

    guard: PluginGuard
    name: str
    schema: Mapping[str, Any]
    handler: Callable[..., Any]

    def __call__(self, arguments: dict[str, Any]) -> str:
        """The answer as text; an `EngineError` names the plugin."""
        return _text(self.guard.call(f"tool {self.name}", run_to_its_end, self.handler, arguments, seconds=SECONDS))


class PluginCommand(Struct, frozen=True):
    """A slash command of a plugin: `handler(text behind the name)` answers with text."""

    guard: PluginGuard
    name: str
    handler: Callable[[str], Any]
    help: str = ""
    argument: str = ""

    def __call__(self, argument: str) -> str:
        """The answer as text; an `EngineError` names the plugin."""
        answer = self.guard.call(f"/{self.name}", run_to_its_end, self.handler, argument, seconds=SECONDS)
        return _text(answer) if answer is not None else ""


class PluginHook(Struct, frozen=True):
    guard: PluginGuard
    name: str
    callback: Callable[..., Any]

    def __call__(self, facts: dict[str, Any]) -> Any:
        """Its answer; None when it fails."""
        return self.guard.ask(
            f"hook {self.name}", run_to_its_end, None, self.callback, **accepted(self.callback, facts)
        )


class PluginSummariser(Struct):
    """`write(prompt, max_tokens)` answers with a summary: a provider like any other, verified like any other."""

    guard: PluginGuard
    name: str
    """As it appears in reports."""
    write: Callable[[str, int], str]
    context_length: int = DEFAULT_SUMMARISER_WINDOW

    def as_model(self) -> SummaryModel:
        return SummaryModel(self, self.name, self.context_length)

    def complete(self, request: ModelRequest, on_text: Delta | None = None) -> ModelReply:
        """One summary; a failure is a `ProviderError`, so that the next one on the ladder is asked."""
        prompt = "\n\n".join(text_of(message) for message in request.messages)
        try:
            answer = self.guard.call(
                "summariser", run_to_its_end, self.write, prompt, request.max_tokens or self.context_length
            )
        except EngineError as error:
            raise ProviderError(str(error)) from None
        if not isinstance(answer, str):
            raise ProviderError(f"{self.guard.who}: the summariser returned a {type(answer).__name__}, not text")
        return ModelReply({"role": "assistant", "content": answer}, CanonicalUsage(), model=self.name, has_usage=False)


def run_to_its_end(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call it; what is a coroutine is run to its end."""
    answer = function(*args, **kwargs)
    if not inspect.isawaitable(answer):
        return answer
    # Slow to load, and few plugins have coroutines.
    import asyncio  # noqa: PLC0415

    return asyncio.run(_awaited(answer))


async def _awaited(answer: Any) -> Any:
    return await answer


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    try:
        return encode_json(answer).decode()
    except TypeError:
        return repr(answer)


@dataclass(frozen=True, slots=True)
class PluginExtras:
    """What plugins add beside an engine, each callable through its guard."""

    tools: tuple[PluginTool, ...] = ()
    commands: tuple[PluginCommand, ...] = ()
    hooks: tuple[PluginHook, ...] = ()
    summarisers: tuple[PluginSummariser, ...] = ()

    def __add__(self, other: PluginExtras) -> PluginExtras:
        return PluginExtras(
            (*self.tools, *other.tools),
            (*self.commands, *other.commands),
            (*self.hooks, *other.hooks),
            (*self.summarisers, *other.summarisers),
        )


class Registered(Struct):
    """Everything one call of `register` brought."""

    engine: Any = None
    """A `ContextEngine`, or an object with its methods."""
    extras: PluginExtras = PluginExtras()
    remarks: list[str] = field(default_factory=list)
    """What was refused or is not offered here."""


class PluginContext:
    """Collects what a plugin registers. Methods take what other hosts pass as well and leave it aside."""

    def __init__(self, plugin: str, guard: PluginGuard, config: Mapping[str, Any] | None = None) -> None:
        self.plugin = plugin
        self._guard = guard
        self.config = dict(config or {})
        """The plugin's own section of the settings: `<engine>` or `plugins.<name>`, as it was written."""
        self.registered = Registered()

    def register_context_engine(self, engine: object) -> None:
        """Offer an engine; it is used where `context.engine` names it. One only."""
        if self.registered.engine is not None:
            name = engine_name(engine) or type(engine).__name__
            self._remark(f"register_context_engine() was called twice; {name} is left out")
        elif not is_engine(engine):
            self._remark(f"register_context_engine() was given a {type(engine).__name__}, which is no ContextEngine")
        else:
            self.registered.engine = engine

    def register_tool(
        self,
        name: str = "",
        toolset: str = "",
        schema: Mapping[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        **_: Any,
    ) -> None:
        """Offer a tool to the model: `schema` in OpenAI's format or its inner part, `handler(args)`."""
        inner = dict((schema or {}).get("function", schema or {}))
        called = name or str(inner.get("name") or "")
        if not called or not callable(handler):
            self._remark(f"register_tool() needs a name and a handler ({called or 'no name'})")
            return
        self._add(tools=(PluginTool(self._guard, called, {**inner, "name": called}, handler),))

    def register_command(
        self, name: str, handler: Callable[[str], Any], description: str = "", args_hint: str = "", **_: Any
    ) -> None:
        """Offer a slash command: `handler(text behind the name)`."""
        clean = str(name).strip().lstrip("/").lower().replace(" ", "-").replace("_", "-")
        if not clean.replace("-", "").isalpha() or not callable(handler):
            self._remark(f"register_command() can't take the name {str(name)[:40]!r}")
            return
        self._add(commands=(PluginCommand(self._guard, clean, handler, str(description), str(args_hint)),))

    def register_hook(self, name: str, callback: Callable[..., Any], **_: Any) -> None:
        """Be told of sessions, turns, tool calls and compactions; what a hook raises changes nothing."""
        known = _OTHER_NAMES.get(name, name)
        if known not in HOOKS:
            self._remark(f"there is no hook {str(name)[:40]!r} here (there are {', '.join(HOOKS)})")
        elif callable(callback):
            self._add(hooks=(PluginHook(self._guard, known, callback),))

    def register_summariser(
        self, name: str, write: Callable[[str, int], str], context_length: int = DEFAULT_SUMMARISER_WINDOW, **_: Any
    ) -> None:
        """Write summaries: `write(prompt, max_tokens)`. Asked first, before any summary model."""
        if callable(write):
            self._add(summarisers=(PluginSummariser(self._guard, f"plugin:{name}", write, int(context_length)),))

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Registrations of other hosts are accepted and have no effect, so that the rest of a plugin works."""
        if not name.startswith("register_"):
            raise AttributeError(name)

        def not_offered(*_: Any, **__: Any) -> None:
            self._remark(f"{name}() has no effect here")

        return not_offered

    def _add(self, **more: Any) -> None:
        self.registered.extras += PluginExtras(**more)

    def _remark(self, text: str) -> None:
        self.registered.remarks.append(f"plugin {self.plugin}: {text}.")


def is_engine(engine: object) -> bool:
    """Whether it is an engine or behaves like one: some wrap another engine instead of deriving from the class."""
    required = ("update_from_response", "should_compress", "compress")
    return isinstance(engine, ContextEngine) or all(callable(getattr(engine, name, None)) for name in required)


def engine_name(engine: object) -> str:
    """Empty when the engine has none."""
    name = getattr(engine, "name", "")
    return name if isinstance(name, str) else ""
