"""`PluginContext`: what a plugin's `register(ctx)` is given, what it registered, and how that is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leporello.engines.base import ContextEngine

HOOKS = ("pre_compaction", "post_compaction", "session_start", "session_end")
_OTHER_NAMES = {
    "pre_compress": "pre_compaction",
    "post_compress": "post_compaction",
    "on_session_start": "session_start",
    "on_session_end": "session_end",
}
DEFAULT_SUMMARISER_WINDOW = 32_000


@dataclass(frozen=True, slots=True)
class PluginTool:
    """A tool of a plugin: its schema, and `handler(args)` that answers with text."""

    name: str
    schema: Mapping[str, Any]
    handler: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A slash command of a plugin: `handler(text behind the name)` answers with text."""

    name: str
    handler: Callable[[str], Any]
    help: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True)
class PluginSummariser:
    """`write(prompt, max_tokens)` answers with a summary; the host verifies it like any other."""

    name: str
    write: Callable[[str, int], str]
    context_length: int = DEFAULT_SUMMARISER_WINDOW


@dataclass(slots=True)
class Registered:
    """Everything one call of `register` brought."""

    engine: ContextEngine | None = None
    tools: list[PluginTool] = field(default_factory=list)
    commands: list[PluginCommand] = field(default_factory=list)
    hooks: list[tuple[str, Callable[..., Any]]] = field(default_factory=list)
    summarisers: list[PluginSummariser] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What was refused or is not offered here."""


class PluginContext:
    """Collects what a plugin registers. Methods take what other hosts pass as well and leave it aside."""

    def __init__(self, plugin: str, config: Mapping[str, Any] | None = None) -> None:
        self.plugin = plugin
        self.config = dict(config or {})
        """The plugin's own section of the settings: `<engine>` or `plugins.<name>`, as it was written."""
        self.registered = Registered()

    def register_context_engine(self, engine: object) -> None:
        """Offer an engine; it is used where `context.engine` names it. One only."""
        if self.registered.engine is not None:
            self._remark(f"register_context_engine() was called twice; {_name(engine)} is left out")
        elif not isinstance(engine, ContextEngine):
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
        self.registered.tools.append(PluginTool(called, {**inner, "name": called}, handler))

    def register_command(
        self, name: str, handler: Callable[[str], Any], description: str = "", args_hint: str = "", **_: Any
    ) -> None:
        """Offer a slash command: `handler(text behind the name)`."""
        clean = str(name).strip().lstrip("/").lower().replace(" ", "-").replace("_", "-")
        if not clean.replace("-", "").isalpha() or not callable(handler):
            self._remark(f"register_command() can't take the name {str(name)[:40]!r}")
            return
        self.registered.commands.append(PluginCommand(clean, handler, str(description), str(args_hint)))

    def register_hook(self, name: str, callback: Callable[..., Any], **_: Any) -> None:
        """Be told of compactions and sessions; what a hook returns or raises changes nothing."""
        known = _OTHER_NAMES.get(name, name)
        if known not in HOOKS:
            self._remark(f"there is no hook {str(name)[:40]!r} here (there are {', '.join(HOOKS)})")
        elif callable(callback):
            self.registered.hooks.append((known, callback))

    def register_summariser(
        self, name: str, write: Callable[[str, int], str], context_length: int = DEFAULT_SUMMARISER_WINDOW, **_: Any
    ) -> None:
        """Write summaries: `write(prompt, max_tokens)`. Asked first, before any summary model."""
        if callable(write):
            self.registered.summarisers.append(PluginSummariser(str(name), write, int(context_length)))

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Registrations of other hosts are accepted and have no effect, so that the rest of a plugin works."""
        if not name.startswith("register_"):
            raise AttributeError(name)

        def not_offered(*_: Any, **__: Any) -> None:
            self._remark(f"{name}() has no effect here")

        return not_offered

    def _remark(self, text: str) -> None:
        self.registered.remarks.append(f"plugin {self.plugin}: {text}.")


def _name(engine: object) -> str:
    name = getattr(engine, "name", "")
    return name if isinstance(name, str) and name else type(engine).__name__
