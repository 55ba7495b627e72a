"""The code of one plugin: loaded when first needed, and a new engine from it as often as one is wanted."""

from __future__ import annotations

import inspect
import weakref
from types import ModuleType
from typing import Any

from leporello.engines.base import ContextEngine
from leporello.errors import PluginError
from leporello.plugins.context import PluginContext, Registered
from leporello.plugins.discovery import Found
from leporello.plugins.loading import load_folder
from leporello.plugins.shim import HostFacts, stand_ins
from leporello.plugins.trust import distrust


class PluginCode:
    """A plugin that is there, and its code once it is loaded. Methods run the plugin's code: call them in a guard."""

    def __init__(self, found: Found, facts: HostFacts, *, allow_unsafe: bool = False) -> None:
        self.found = found
        self._facts = facts
        self._allow_unsafe = allow_unsafe
        self._loaded: Any = None
        self._handed_out: list[Any] = []

    def check_trust(self) -> None:
        """Raise when the folder could have been written by somebody else."""
        folder, root = self.found.folder, self.found.root
        why = distrust(folder, root) if folder and root and not self._allow_unsafe else ""
        if why:
            raise PluginError(why)

    def register(self) -> Registered:
        """What the plugin registers, freshly: a new engine each time."""
        made = self._registered()
        if made.engine is not None and self._is_in_use(made.engine):
            # A module that makes its engine once and hands it to everybody: its code is run again for a new one.
            self._loaded = None
            made = self._registered()
            if made.engine is not None and self._is_in_use(made.engine):
                raise PluginError("it gives every conversation the same engine object; make a new one in register()")
        if made.engine is not None:
            self._remember(made.engine)
        return made

    def _registered(self) -> Registered:
        code = self._code()
        name, sections = self.found.name, self._facts.config
        context = PluginContext(name, sections.get(name) or sections.get(f"plugins.{name}"))
        register = getattr(code, "register", None) if not isinstance(code, type) else None
        if register is None and callable(code) and not isinstance(code, type):
            register = code
        if callable(register):
            register(context)
        if context.registered.engine is None:
            engine_class = _engine_class(code, self.found.name)
            if engine_class is not None:
                context.registered.engine = engine_class()
        return context.registered

    def _code(self) -> Any:
        if self._loaded is None:
            if self.found.folder is not None:
                self._loaded = load_folder(self.found.folder, stand_ins(self._facts))
            elif self.found.entry_point is not None:
                self._loaded = self.found.entry_point.load()
        return self._loaded

    def _is_in_use(self, engine: ContextEngine) -> bool:
        return any(known() is engine for known in self._handed_out)

    def _remember(self, engine: ContextEngine) -> None:
        self._handed_out = [known for known in self._handed_out if known() is not None]
        try:
            self._handed_out.append(weakref.ref(engine))
        except TypeError:
            self._handed_out.append(lambda: engine)


def _engine_class(code: object, name: str) -> type[ContextEngine] | None:
    """The engine a module exports: its own class, the one of that name when there are several."""
    if isinstance(code, type):
        return code if issubclass(code, ContextEngine) else None
    if not isinstance(code, ModuleType):
        return None
    classes = {
        value
        for value in vars(code).values()
        if isinstance(value, type)
        and issubclass(value, ContextEngine)
        and not inspect.isabstract(value)
        and (value.__module__ + ".").startswith(code.__name__ + ".")
    }
    named = {value for value in classes if getattr(value, "name", None) == name}
    chosen = named or classes
    if len(chosen) > 1:
        listed = ", ".join(sorted(value.__name__ for value in chosen))
        raise PluginError(f"it exports several engines ({listed}); choose one in register(ctx)")
    return next(iter(chosen), None)
