"""Old public names and parameters go on working for one release, with a warning that names the new one."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # as checkers of types know it; what these import takes longer than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

# What the documentation of 0.1.0 imported, where it has another module or name now.
MOVED = {
    "leporello.gateway.platforms": {
        "InProcessPlatform": "leporello.gateway.sessions.platforms:InProcessPlatform",
        "Inbox": "leporello.gateway.sessions.platforms:PlatformInbox",
    },
    "leporello.messages": {"Call": "leporello.messages:ToolCall"},
    "leporello.providers.cache_sim": {
        name: f"leporello.billing:{name}"
        for name in ("CacheBlock", "blocks_of", "CacheBill", "CacheMarksRefused", "CacheSim")
    },
    "leporello.providers.make": {
        "ProviderSettings": "leporello.providers.clients:ProviderChoice",
        "make_provider": "leporello.providers.clients:make_provider",
    },
    "leporello.recall.archives": {"MemoryArchive": "leporello.recall.memory:MemoryArchive"},
    "leporello.recall.stored": {"Scope": "leporello.recall.stored:RecallScope"},
    "leporello.summary": {},
    "leporello.summary.base": {"SummaryTask": "leporello.summaries.base:SummaryTask"},
    "leporello.summary.handoff": {
        "Handoff": "leporello.summaries.handoff:Handoff",
        "Line": "leporello.summaries.handoff:HandoffLine",
        "Origin": "leporello.summaries.handoff:LineOrigin",
        "Section": "leporello.summaries.handoff:Section",
    },
    "leporello.summary.verify": {"verify": "leporello.summaries.verify:verify"},
    "leporello.tools.approval": {"Mode": "leporello.tools.approval:ApprovalMode"},
}


def renamed_parameter(old: str, new: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function whose keyword `old` is called `new` now. Raises TypeError when a caller gives both."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{function.__qualname__}() takes {new}= or its old name {old}=, not both")
                warn_renamed(f"{function.__qualname__}({old}=)", f"{new}=", stacklevel=3)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        import_module("functools").update_wrapper(call, function)
        return call

    return decorate


def renamed_names(module: str) -> Callable[[str], Any]:
    """A `__getattr__` for a module: finds what it held in the last release where MOVED says."""

    def find(name: str) -> Any:
        if name not in MOVED[module]:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, current = MOVED[module][name].partition(":")
        warn_renamed(f"{module}.{name}", f"{home}.{current}", stacklevel=3)
        return getattr(import_module(home), current)

    return find


def moved_attribute(owner: object, name: str, moved: Mapping[str, str], home: str) -> str:
    """Where below `home` an attribute of the last release is now, with a warning; AttributeError for any other name."""
    if name not in moved:
        raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
    warn_renamed(f"{type(owner).__name__}.{name}", f"{home}.{moved[name]}", stacklevel=4)
    return moved[name]


class MovedModules:
    """Asked by `import` when no file is found: makes the modules of MOVED that are gone."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for an old module, None for any other."""
        if name not in MOVED:
            return None
        loader: Any = self  # a loader by what it does
        return ModuleSpec(name, loader, is_package=any(other.startswith(f"{name}.") for other in MOVED))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: an ordinary module will do."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, "__getattr__", renamed_names(module.__name__))  # noqa: B010


def find_moved_modules() -> None:
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def warn_renamed(old: str, new: str, *, stacklevel: int) -> None:
    """Warn the caller `stacklevel` frames up that a name is going away."""
    text = f"{old} is now called {new}; the old name goes away in the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
