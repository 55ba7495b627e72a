"""Optional packages, loaded when they are first needed: the official clients take a second to import."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from leporello.errors import ProviderError


def load(package: str) -> ModuleType:
    """The package, or an error that says how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ProviderError(
            f"Calling this provider needs the package {package!r}. Install it with: pip install 'leporello[{package}]'"
        ) from error
