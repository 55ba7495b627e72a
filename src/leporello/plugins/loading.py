"""Which plugins are there, what plugin.yaml says of them, and their code: from trusted folders, each a package."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import inspect
import itertools
import os
import stat
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from leporello.config import Home
from leporello.config.settings import ENGINE_ENTRY_POINTS
from leporello.engines.base import ContextEngine
from leporello.engines.guard import PluginGuard
from leporello.errors import PluginError
from leporello.lazy_regex import lazy_regex
from leporello.plugins.context import PluginContext, Registered
from leporello.plugins.hermes import HostFacts, stand_ins

FILE = "plugin.yaml"
LONGEST = 200
ENGINES_FOLDER = "context_engine"
GENERAL_ENTRY_POINTS = "leporello.plugins"
PACKAGE_PLUGINS = Path(__file__).parent
FLAG = "plugins.allow_unsafe_folders"
PREFIX = "_leporello_plugin_"
HOST_PACKAGES = "hermes_"
"""Installed packages that begin so are written for Hermes: imported by a plugin, they see the stand-ins too."""
_ODD = lazy_regex(r"[^0-9a-zA-Z_]")
_numbers = itertools.count(1)
_lock = threading.Lock()


class Manifest(Struct, frozen=True):
    """Name, description and version; empty where nothing is said."""

    name: str = ""
    description: str = ""
    version: str = ""
    trouble: str = ""
    """Why the file could not be read."""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a plugin folder; a missing or damaged one never keeps a plugin from working."""
    # Loaded for plugins that are there.
    import yaml  # noqa: PLC0415

    path = folder / FILE
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return Manifest()
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return Manifest(trouble=f"{FILE} can't be read: {' '.join(str(error).split())}")
    if not isinstance(loaded, dict):
        return Manifest(trouble=f"{FILE} must hold name, description and version")
    return Manifest(*(_text(loaded.get(key)) for key in ("name", "description", "version")))


def _text(value: object) -> str:
    text = " ".join(str(value).split()) if value is not None else ""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


class PluginKind(StrEnum):
    ENGINE = "engine"
    GENERAL = "general"


class FoundPlugin(Struct, frozen=True):
    name: str
    kind: PluginKind
    manifest: Manifest
    folder: Path | None = None
    root: Path | None = None
    """The folder below which its folders must be trustworthy."""
    entry_point: EntryPoint | None = None

    @property
    def where(self) -> str:
        if self.folder is not None:
            return str(self.folder)
        dist = self.entry_point.dist if self.entry_point else None
        return f"package {dist.name}" if dist else "an installed package"


def find_engines(home: Home) -> list[FoundPlugin]:
    """Every engine plugin, in the order in which a name is looked up; the first of a name counts."""
    places = ((home.plugins_dir, home.path), (PACKAGE_PLUGINS, PACKAGE_PLUGINS))
    folders = [(folder, root) for place, root in places for folder in _folders(place / ENGINES_FOLDER)]
    return _found(folders, PluginKind.ENGINE, ENGINE_ENTRY_POINTS)


def find_general(home: Home) -> list[FoundPlugin]:
    folders = [(folder, home.path) for folder in _folders(home.plugins_dir) if folder.name != ENGINES_FOLDER]
    return _found(folders, PluginKind.GENERAL, GENERAL_ENTRY_POINTS)


def _folders(place: Path) -> list[Path]:
    if not place.is_dir():
        return []
    return sorted(path for path in place.iterdir() if path.is_dir() and path.name[:1] not in "._")


def _found(folders: Sequence[tuple[Path, Path]], kind: PluginKind, group: str) -> list[FoundPlugin]:
    found: dict[str, FoundPlugin] = {}
    for folder, root in folders:
        found.setdefault(folder.name, FoundPlugin(folder.name, kind, read_manifest(folder), folder, root))
    for point in entry_points(group=group):
        found.setdefault(point.name, _installed(point, kind))
    return list(found.values())


def _installed(point: EntryPoint, kind: PluginKind) -> FoundPlugin:
    version = point.dist.version if point.dist else ""
    about = point.dist.metadata["Summary"] if point.dist and "Summary" in point.dist.metadata else ""
    return FoundPlugin(point.name, kind, Manifest(point.name, about, version), entry_point=point)


def distrust(folder: Path, root: Path) -> str:
    """Why code of a folder below `root` can't be trusted; empty when it can."""
    if os.name != "posix":
        return ""
    above = [parent for parent in folder.parents if parent.is_relative_to(root) and parent != root]
    # The folders from the root down, then everything in the plugin; links are followed to what they name.
    for path in (root, *reversed(above), folder, *folder.rglob("*")):
        why = _writable_by_others(path)
        if why:
            return f"{path} {why}; mend that, or set {FLAG}: true if you mean it"
    return ""


def _writable_by_others(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return f"can't be looked at ({error.strerror})"
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    # A sticky folder lets nobody replace what is not theirs, but anybody add to it; a plugin is such an addition.
    return "can be written by anybody" if found.st_mode & stat.S_IWOTH else ""


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
        own = {**builtins.__dict__}
        own["__import__"] = _importer(stand_ins, own)
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


def _importer(stand_ins: Mapping[str, ModuleType], own_builtins: dict[str, Any]) -> Callable[..., ModuleType]:
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
        top = name.partition(".")[0]
        if level == 0 and top.startswith(HOST_PACKAGES) and top not in sys.modules:
            # Many a plugin folder only imports an installed package, which then is the plugin.
            _finder.known.setdefault(top, own_builtins)
        return builtins.__import__(name, globals, locals, fromlist, level)

    return plugin_import


class PluginCode:
    """A plugin that is there, and its code once it is loaded. `register` runs the plugin's code: call it in a guard."""

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

    def register(self, guard: PluginGuard) -> Registered:
        """What the plugin registers, freshly: a new engine each time."""
        made = self._registered(guard)
        if made.engine is not None and self._is_in_use(made.engine):
            # A module that makes its engine once and hands it to everybody: its code is run again for a new one.
            self._loaded = None
            made = self._registered(guard)
            if made.engine is not None and self._is_in_use(made.engine):
                raise PluginError("it gives every conversation the same engine object; make a new one in register()")
        if made.engine is not None:
            self._remember(made.engine)
        return made

    def _registered(self, guard: PluginGuard) -> Registered:
        code = self._code()
        name, sections = self.found.name, self._facts.config
        context = PluginContext(name, guard, sections.get(name) or sections.get(f"plugins.{name}"))
        register = None if isinstance(code, type) else getattr(code, "register", code)
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
