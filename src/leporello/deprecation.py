"""Old public names and parameters go on working for one release, with a warning that names the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def renamed_parameter(old: str, new: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function whose keyword `old` is called `new` now. Raises TypeError when a caller gives both."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{function.__qualname__}() takes {new}= or its old name {old}=, not both")
                warn_renamed(f"{function.__qualname__}({old}=)", f"{new}=", stacklevel=3)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def warn_renamed(old: str, new: str, *, stacklevel: int) -> None:
    """Warn the caller `stacklevel` frames up that a name is going away."""
    text = f"{old} is now called {new}; the old name goes away in the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
