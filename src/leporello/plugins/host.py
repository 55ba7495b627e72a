"""`PluginHost`: which plugins the settings name, what they registered, and a new engine for each conversation.

    host = PluginHost(load_settings())
    host.listing()          every plugin that is there, its state and why it is not loaded
    host.make_engine("tiny") a new engine; a `PluginError` says why there is none
    host.tools, .commands, .hooks, .summarisers, .troubles

Nothing that the settings don't name is loaded. `EngineSlot` is the one engine of a conversation: the one the settings
name, or the built-in compressor and a word about why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from leporello.config import Settings
from leporello.engines import BUILTIN, builtin_engine
from leporello.engines.base import CompactionEngine, ContextEngine
from leporello.engines.guard import PluginGuard
from leporello.engines.lcm import LcmSettings, read_settings
from leporello.engines.plugin_engine import HostedEngine, PluginEngine
from leporello.errors import EngineError, LeporelloError, PluginError
from leporello.events import Span
from leporello.messages import Message
from leporello.plugins.context import PluginExtras, Registered, engine_name
from leporello.plugins.hermes import HostFacts
from leporello.plugins.isolation import IsolatedEngine
from leporello.plugins.loading import FoundPlugin, PluginCode, PluginKind, find_engines, find_general
from leporello.store.records import View
from leporello.summaries.model import SummaryModel

DEFAULT_ENGINE = "compressor"
LOADING_SECONDS = 60.0  # importing a plugin may load large libraries, once


class PluginStatus(StrEnum):
    IN_USE = "in use"
    ENABLED = "enabled"
    AVAILABLE = "available"
    BROKEN = "broken"
    MISSING = "missing"


PLUGIN_MARKS = {
    PluginStatus.IN_USE: "*",
    PluginStatus.ENABLED: "+",
    PluginStatus.BROKEN: "!",
    PluginStatus.MISSING: "!",
}
"""How each is marked in a list; the one engine in use stands out."""


@dataclass(frozen=True, slots=True)
class PluginRow:
    """One line of `leporello plugins list`."""

    name: str
    kind: str
    status: PluginStatus
    version: str = ""
    description: str = ""
    where: str = ""
    why: str = ""
    """Why it is not loaded."""


class EngineOffer(Struct, frozen=True):
    """An engine for one conversation, and what its plugin registered beside it."""

    hosted: HostedEngine
    extras: PluginExtras


class PluginHost:
    """The plugins of one program. Makes engines for many conversations."""

    def __init__(self, settings: Settings, plugin_home: Path | None = None) -> None:
        """`plugin_home`: where plugins keep what is theirs, unless it is the home of the settings."""
        self.settings = settings
        self.troubles: list[str] = []
        self.extras = PluginExtras()
        self._facts = HostFacts(plugin_home or settings.home.path, dict(settings.free_sections))
        self._code: dict[str, PluginCode] = {}
        self._why: dict[str, str] = {}
        self._offered: dict[str, PluginCode] = {}
        """Engines that general plugins registered, by engine name; one at most."""
        if settings.plugins.enabled:
            self._load_general(settings.plugins.enabled)

    def use_summary_models(self, models: Sequence[SummaryModel]) -> None:
        """Who answers when a plugin asks for a model."""
        self._facts.summary_models = models

    # -- general plugins

    def _load_general(self, names: Sequence[str]) -> None:
        known = {found.name: found for found in find_general(self.settings.home)}
        for name in names:
            if name not in known:
                place = self.settings.home.plugins_dir / name
                self._fail(name, f"plugins.enabled names {name!r}, but {place} is not there")
                continue
            code = self._code_of(known[name])
            guard = PluginGuard(f"plugin {name}", self.settings.compression.deadline, self._trouble)
            try:
                registered = self._register(code, guard)
            except LeporelloError as error:
                self._fail(name, f"plugin {name} is not loaded: {error}")
                continue
            self.extras += registered.extras
            if registered.engine is None:
                continue
            engine = engine_name(registered.engine)
            if self._offered:
                first = next(iter(self._offered))
                self._trouble(
                    f"plugin {name}: its engine {engine!r} is refused: there is one already ({first!r}). "
                    "Only one plugin may register an engine."
                )
            else:
                self._offered[engine] = code

    def _register(self, code: PluginCode, guard: PluginGuard) -> Registered:
        code.check_trust()
        registered = guard.call("register()", code.register, guard, seconds=LOADING_SECONDS)
        for remark in registered.remarks:
            self._trouble(remark)
        return registered

    # -- engines

    def make_engine(self, name: str) -> EngineOffer | None:
        """A new engine by the name under which the settings select it; None when no plugin has that name.

        A `PluginError` says why a plugin that is there can't be used.
        """
        code = self._engine_code(name)
        if code is None:
            return None
        guard = PluginGuard(f"engine {name}", self.settings.compression.deadline)
        general = code.found.kind is PluginKind.GENERAL
        try:
            if self.settings.plugins.isolation == "process" and not general:
                return self._isolated(name, code, guard)
            registered = self._register(code, guard)
            self._check(name, code, registered.engine)
        except (EngineError, PluginError) as error:
            guard.close()
            self._why[name] = str(error)
            raise PluginError(f"the engine {name!r} ({code.found.where}) can't be used: {error}") from None
        return EngineOffer(
            HostedEngine(registered.engine, guard, name), PluginExtras() if general else registered.extras
        )

    def _isolated(self, name: str, code: PluginCode, guard: PluginGuard) -> EngineOffer:
        code.check_trust()
        engine = guard.call("register()", IsolatedEngine, name, self.settings, self._facts, seconds=LOADING_SECONDS)
        guard.on_hung = engine.stop
        for remark in engine.remarks:
            self._trouble(remark)
        return EngineOffer(HostedEngine(engine, guard, name, on_close=engine.stop), engine.extras(guard))

    def is_plugin(self, name: str) -> bool:
        """Whether that name means an engine of a plugin; `PluginError` when there is no engine of that name at all."""
        code = self._engine_code(name) if name != DEFAULT_ENGINE else None
        if code is None and name not in BUILTIN:
            raise PluginError(self.missing(name))
        return code is not None

    def registered(self, name: str, guard: PluginGuard) -> Registered:
        """What a plugin registers, in this very thread; a `PluginError` when it has no engine of that name."""
        code = self._engine_code(name)
        if code is None:
            raise PluginError(self.missing(name))
        code.check_trust()
        registered = code.register(guard)
        self._check(name, code, registered.engine)
        return registered

    def _check(self, name: str, code: PluginCode, engine: ContextEngine | None) -> None:
        if engine is None:
            raise PluginError("it has neither a register(ctx) that registers an engine nor a ContextEngine class")
        called = engine_name(engine)
        if called != name:
            what = "folder" if code.found.folder is not None and code.found.kind is PluginKind.ENGINE else "settings"
            raise PluginError(f"its engine calls itself {called!r}, but the {what} says {name!r}; they must be equal")

    def _engine_code(self, name: str) -> PluginCode | None:
        found = next((found for found in find_engines(self.settings.home) if found.name == name), None)
        if found is not None and found.folder is not None:
            return self._code_of(found)
        if name in self._offered:
            return self._offered[name]
        return self._code_of(found) if found is not None else None

    def missing(self, name: str) -> str:
        """What to tell the user about an engine that is nowhere."""
        there = ", ".join(sorted(self._engine_names()))
        return f"context.engine names {name!r}, but there is no such engine. There are: {there}."

    def _engine_names(self) -> set[str]:
        return {*BUILTIN, *self._offered, *(found.name for found in find_engines(self.settings.home))}

    # -- what is there

    def listing(self) -> list[PluginRow]:
        return [*self._built_in(), *self._engines(), *self._general()]

    def _used(self) -> tuple[str, bool]:
        """The engine that conversations get, and whether it is a plugin's."""
        chosen = self.settings.get("context.engine")
        if chosen != DEFAULT_ENGINE and chosen not in self._why and self._engine_code(chosen) is not None:
            return chosen, True
        return chosen if chosen in BUILTIN else DEFAULT_ENGINE, False

    def _built_in(self) -> Iterator[PluginRow]:
        for name, description in BUILTIN.items():
            status = PluginStatus.IN_USE if self._used() == (name, False) else PluginStatus.AVAILABLE
            yield PluginRow(name, "built in", status, description=description)

    def _engines(self) -> Iterator[PluginRow]:
        chosen, used = self.settings.get("context.engine"), self._used()
        code = self._engine_code(chosen) if chosen != DEFAULT_ENGINE else None
        for found in find_engines(self.settings.home):
            line = _listed(found, PluginStatus.AVAILABLE)
            if found.name == DEFAULT_ENGINE:
                line = replace(line, why="compressor always means the built-in one")
            elif code is not None and found == code.found:
                why = self._why.get(chosen, "")
                line = replace(line, status=PluginStatus.BROKEN if why else PluginStatus.IN_USE, why=why)
            yield line
        for name, offered in self._offered.items():
            in_use = offered is code and used == (name, True)
            status = PluginStatus.IN_USE if in_use else PluginStatus.AVAILABLE
            yield PluginRow(name, PluginKind.ENGINE.value, status, where=f"plugin {offered.found.name}")
        if chosen not in self._engine_names():
            yield PluginRow(chosen, PluginKind.ENGINE.value, PluginStatus.MISSING, why=self.missing(chosen))

    def _general(self) -> Iterator[PluginRow]:
        seen = set()
        for found in find_general(self.settings.home):
            seen.add(found.name)
            enabled = found.name in self.settings.plugins.enabled
            why = self._why.get(found.name, "") if enabled else "plugins.enabled does not name it"
            status = PluginStatus.AVAILABLE if not enabled else PluginStatus.BROKEN if why else PluginStatus.ENABLED
            yield _listed(found, status, why)
        for name in self.settings.plugins.enabled:
            if name not in seen:
                yield PluginRow(name, PluginKind.GENERAL.value, PluginStatus.MISSING, why=self._why.get(name, ""))

    def _code_of(self, found: FoundPlugin) -> PluginCode:
        key = f"{found.kind}:{found.name}"
        if key not in self._code:
            self._code[key] = PluginCode(found, self._facts, allow_unsafe=self.settings.plugins.allow_unsafe_folders)
        return self._code[key]

    def _fail(self, name: str, text: str) -> None:
        self._why[name] = text
        self._trouble(text)

    def _trouble(self, text: str) -> None:
        if text not in self.troubles:
            self.troubles.append(text)


def _listed(found: FoundPlugin, status: PluginStatus, why: str = "") -> PluginRow:
    about = found.manifest
    return PluginRow(
        found.name, found.kind.value, status, about.version, about.description, found.where, why or about.trouble
    )


def view_facts(view: View) -> dict[str, Any]:
    """Ids and sizes of a view, for hooks; no text."""
    numbers = [line.number for line in view.lines if line.number is not None]
    return {
        "conversation": view.conversation,
        "session_id": view.session,
        "generation": view.generation,
        "covered": str(Span(min(numbers), max(numbers))) if numbers else None,
        "messages": len(view.lines),
    }


class EngineSlot:
    """The one engine of a conversation. A plugin's instance lives as long as the conversation does."""

    def __init__(self, host: PluginHost, platform: str = "") -> None:
        self.host = host
        self.platform = platform
        self._noted: list[str] = []
        self._name: str = host.settings.get("context.engine")
        self._offer = self._find(self._name)
        self.engine: CompactionEngine
        if self._offer is None:
            self.engine = builtin_engine(self._name, self._lcm_settings())
        else:
            self._offer.hosted.guard.on_trouble = self.note
            self.engine = PluginEngine(self._offer.hosted)

    @property
    def troubles(self) -> list[str]:
        """What is wrong with plugins, oldest first; texts stay until it is mended."""
        return [*self.host.troubles, *self._noted]

    @property
    def extras(self) -> PluginExtras:
        """Tools, commands, hooks and summarisers of the plugins of this conversation."""
        return self.host.extras + (self._offer.extras if self._offer else PluginExtras())

    def note(self, text: str) -> None:
        """Something about plugins that the user should know."""
        if text not in self._noted:
            self._noted.append(text)

    def session_begins(self, view: View, model: str, **switch: str) -> None:
        """A session begins or, at a compression (`switch`), goes on under another id."""
        about = {"platform": self.platform, "model": model, "conversation_id": view.conversation}
        self.engine.on_session_start(view.session, **about, hermes_home=str(self.host.settings.home.path), **switch)
        if not switch:
            self.fire("session_start", **view_facts(view), **about)

    def session_ends(self, view: View, messages: list[Message], reason: str) -> None:
        """A real end: the program ends, the user begins anew, the conversation expired."""
        self.engine.on_session_end(view.session, messages)
        self.fire("session_end", **view_facts(view), reason=reason)

    def hears(self, hook: str) -> bool:
        """Whether any plugin wants to be told."""
        return any(call.name == hook for call in self.extras.hooks)

    def fire(self, hook: str, **facts: Any) -> list[Any]:
        """Tell the plugins; returns what they answer, None for those that fail."""
        return [call(facts) for call in self.extras.hooks if call.name == hook]

    def close(self) -> None:
        if self._offer is not None:
            self._offer.hosted.close()

    def _find(self, name: str) -> EngineOffer | None:
        if name == DEFAULT_ENGINE:
            return None
        try:
            offer = self.host.make_engine(name)
        except PluginError as error:
            self._fall_back([str(error)])
            return None
        if offer is None and name not in BUILTIN:
            self._fall_back([self.host.missing(name)])
        return offer

    def _lcm_settings(self) -> LcmSettings | None:
        """The section `lcm` for the built-in engine; a plugin of that name reads it itself."""
        if self._name != "lcm":
            return None
        settings, warnings = read_settings(self.host.settings.free_sections.get("lcm", {}))
        self._noted += warnings
        return settings

    def _fall_back(self, reasons: Iterable[str]) -> None:
        self._name = self._name if self._name in BUILTIN else DEFAULT_ENGINE
        self._noted += [f"{reason.rstrip('.')}. The built-in {self._name} is used instead." for reason in reasons]
