"""`PluginHost`: which plugins the settings name, what they registered, and a new engine for each conversation.

    host = PluginHost(load_settings())
    host.listing()          every plugin that is there, its state and why it is not loaded
    host.guest("tiny")      a new engine; a `PluginError` says why there is none
    host.tools, .commands, .hooks, .summarisers, .troubles

Nothing that the settings don't name is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from leporello.config import Settings
from leporello.engines import BUILTIN
from leporello.engines.base import ContextEngine
from leporello.engines.guard import PluginGuard
from leporello.engines.plugin_engine import HostedEngine
from leporello.errors import EngineError, LeporelloError, PluginError
from leporello.plugins.context import PluginExtras, Registered, engine_name
from leporello.plugins.hermes import HostFacts
from leporello.plugins.loading import FoundPlugin, PluginCode, PluginKind, find_engines, find_general
from leporello.summaries.model import SummaryModel

DEFAULT_ENGINE = "compressor"
LOADING_SECONDS = 60.0
"""Importing a plugin may load large libraries, once."""


class PluginStatus(StrEnum):
    IN_USE = "in use"
    ENABLED = "enabled"
    AVAILABLE = "available"
    BROKEN = "broken"
    MISSING = "missing"


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


@dataclass(frozen=True, slots=True)
class EngineOffer:
    """An engine for one conversation, and what its plugin registered beside it."""

    guest: HostedEngine
    extras: PluginExtras


class PluginHost:
    """The plugins of one program. Makes engines for many conversations."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.troubles: list[str] = []
        self.extras = PluginExtras()
        self._facts = HostFacts(settings.home.path, dict(settings.free_sections))
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

    def guest(self, name: str) -> EngineOffer | None:
        """A new engine by the name under which the settings select it; None when no plugin has that name.

        A `PluginError` says why a plugin that is there can't be used.
        """
        code = self._engine_code(name)
        if code is None:
            return None
        guard = PluginGuard(f"engine {name}", self.settings.compression.deadline)
        try:
            registered = self._register(code, guard)
            self._check(name, code, registered)
        except (EngineError, PluginError) as error:
            guard.close()
            self._why[name] = str(error)
            raise PluginError(f"the engine {name!r} ({code.found.where}) can't be used: {error}") from None
        assert registered.engine is not None
        general = code.found.kind is PluginKind.GENERAL
        extras = PluginExtras() if general else registered.extras
        return EngineOffer(HostedEngine(registered.engine, guard, name), extras)

    def bare_engine(self, name: str) -> ContextEngine | None:
        """A new engine without a guard around it, for an examination; runs the plugin's code in this very thread."""
        code = self._engine_code(name)
        if code is None:
            return None
        code.check_trust()
        registered = code.register(PluginGuard(f"engine {name}"))
        self._check(name, code, registered)
        return registered.engine

    def _check(self, name: str, code: PluginCode, registered: Registered) -> None:
        if registered.engine is None:
            raise PluginError("it has neither a register(ctx) that registers an engine nor a ContextEngine class")
        called = engine_name(registered.engine)
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

    def _built_in(self) -> Iterator[PluginRow]:
        shadowed = {found.name for found in find_engines(self.settings.home) if found.folder is not None}
        for name, description in BUILTIN.items():
            used = self.settings.get("context.engine") == name and (name == DEFAULT_ENGINE or name not in shadowed)
            status = PluginStatus.IN_USE if used else PluginStatus.AVAILABLE
            yield PluginRow(name, "built in", status, description=description)

    def _engines(self) -> Iterator[PluginRow]:
        chosen = self.settings.get("context.engine")
        for found in find_engines(self.settings.home):
            line = _listed(found, PluginStatus.AVAILABLE)
            if found.name == DEFAULT_ENGINE:
                line = replace(line, why="compressor always means the built-in one")
            elif found.name == chosen:
                why = self._why.get(chosen, "")
                line = replace(line, status=PluginStatus.BROKEN if why else PluginStatus.IN_USE, why=why)
            yield line
        for name, code in self._offered.items():
            status = PluginStatus.IN_USE if name == chosen else PluginStatus.AVAILABLE
            yield PluginRow(name, PluginKind.ENGINE.value, status, where=f"plugin {code.found.name}")
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
