"""The code of one plugin: trusted folders only, loaded as a package of its own, with the modules its host would offer."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import itertools
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from leporello.errors import PluginError

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
    """Finds the modules of loaded plugins."""

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
