"""Tool names that every provider accepts: recorded histories and plugins bring others (`fs.read`, `git status`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST = 64
_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """The name as it is sent; one that fits is not touched."""
    if _ALLOWED.fullmatch(name):
        return name
    return _OTHER.sub("_", name)[:LONGEST] or "tool"


def own_names(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Sent names back to the tools' own, for those that differ."""
    found = {}
    for tool in tools:
        body = tool.get("function") or tool.get("custom") or tool
        name = str(body.get("name") or "") if isinstance(body, Mapping) else ""
        if name and wire_name(name) != name:
            found[wire_name(name)] = name
    return found
