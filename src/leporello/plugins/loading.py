"""The code of one plugin: trusted folders only, loaded as a package of its own.

With the modules its host would offer.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import inspect
import itertools
import os
import re
import stat
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from leporello.engines.base import ContextEngine
from leporello.errors import PluginError
from leporello.plugins.context import PluginContext, Registered
from leporello.plugins.discovery import FoundPlugin
from leporello.plugins.shim import HostFacts, stand_ins

FLAG = "plugins.allow_unsafe_folders"


def distrust(folder: Path, root: Path) -> str:
    """Why code of a folder below `root` can't be trusted; empty when it can."""
    if os.name != "posix":
        return ""
    for path in _paths(folder, root):
        why = _writable_by_others(path)
        if why:
            return f"{path} {why}; mend that, or set {FLAG}: true if you mean it"
    return ""


def _paths(folder: Path, root: Path) -> Iterator[Path]:
    """The folders from the root down, then everything in the plugin; links are followed to what they name."""
    yield root
    yield from reversed([parent for parent in folder.parents if parent.is_relative_to(root) and parent != root])
    yield folder
    yield from folder.rglob("*")


def _writable_by_others(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return f"can't be looked at ({error.strerror})"
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    # A sticky folder lets nobody replace what is not theirs, but anybody add to it; a plugin is such an addition.
    return "can be written by anybody" if found.st_mode & stat.S_IWOTH else ""


PREFIX = "_leporello_plugin_"
_ODD = re.compile(r"[^0-9a-zA-Z_]")

_numbers = itertools.count(1)
_lock = threading.Lock()


class _Loader(importlib.machinery.SourceFileLoader):
    """Gives each module of a plugin the built-ins of that plugin before its code runs."""

    def __init__(self, fullname: str, path: str, own_builtins: dict[str, Any]) -> None:
        super().__init__(fullname, path)
        self._builtins = own_builtins

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        super().exec_module(module)

    def set_data(self, path: str, data: bytes | Any, *, _mode: int = 0o666) -> None:
        """No compiled files in other people's folders."""


class _Finder:
    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top not in self.known:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self.known[top])
        return spec


_finder = _Finder()


def load_folder(folder: Path, stand_ins: Mapping[str, ModuleType]) -> ModuleType:
    """The package in a folder, freshly loaded; runs its code. `stand_ins` are modules only it can import."""
    source = folder / "__init__.py"
    if not source.is_file():
        raise PluginError(f"{folder} has no __init__.py")
    with _lock:
        name = f"{PREFIX}{next(_numbers)}_{_ODD.sub('_', folder.name)}"
        own = {**builtins.__dict__, "__import__": _importer(stand_ins)}
        _finder.known[name] = own
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
    loader = _Loader(name, str(source), own)
    spec = importlib.util.spec_from_file_location(name, source, loader=loader, submodule_search_locations=[str(folder)])
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        forget(name)
        raise
    return module


def forget(name: str) -> None:
    """Take a loaded package out of the interpreter's tables; instances that are alive keep working."""
    for known in [known for known in sys.modules if known == name or known.startswith(name + ".")]:
        del sys.modules[known]
    _finder.known.pop(name, None)


def _importer(stand_ins: Mapping[str, ModuleType]) -> Callable[..., ModuleType]:
    def plugin_import(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name in stand_ins:
            # `import a.b` binds `a`; `from a.b import c` wants `a.b`.
            return stand_ins[name] if fromlist else stand_ins[name.partition(".")[0]]
        return builtins.__import__(name, globals, locals, fromlist, level)

    return plugin_import


class PluginCode:
    """A plugin that is there, and its code once it is loaded. Methods run the plugin's code: call them in a guard."""

    def __init__(self, found: FoundPlugin, facts: HostFacts, *, allow_unsafe: bool = False) -> None:
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
