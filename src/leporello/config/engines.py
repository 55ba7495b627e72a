"""Which top-level sections of config.yaml belong to a context engine and pass through unchecked."""

from __future__ import annotations

from importlib.metadata import entry_points

from leporello.config.catalogue import BUILT_IN_ENGINES
from leporello.config.home import Home

ENGINE_ENTRY_POINTS = "leporello.context_engines"


def is_engine_section(name: str, home: Home) -> bool:
    """Whether a name is that of a built-in engine, of one in the plugin folder, or of an installed distribution."""
    if name in BUILT_IN_ENGINES:
        return name != "compressor"  # the built-in compressor's own section is `compression`, and is checked
    if not name.isidentifier() and not name.replace("-", "_").isidentifier():
        return False
    if (home.plugins_dir / "context_engine" / name).is_dir():
        return True
    return any(point.name == name for point in entry_points(group=ENGINE_ENTRY_POINTS))
