"""Every pattern that the modules of the package hold, and whether it is ever searched for."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

import leporello
from leporello.lazy_regex import LazyRegex

SOURCE = Path(leporello.__file__).parent
AT_START = {"match", "fullmatch"}


@dataclass(frozen=True)
class Found:
    """One compiled pattern and the name it has."""

    name: str
    pattern: re.Pattern[Any]
    how: frozenset[str]
    """The ways it is used: `search` stands for every one that may start anywhere."""


def modules() -> list[str]:
    """The modules that compile a pattern (the others may need an extra that is not installed)."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py")))
    return [_module(path) for path, text in texts if "import re\n" in text or "import lazy_regex\n" in text]


def patterns() -> list[Found]:
    """Each pattern once, however many modules share it; the widest use counts."""
    used = _uses()
    found: dict[re.Pattern[Any], Found] = {}
    for module in modules():
        for name, value in vars(importlib.import_module(module)).items():
            for pattern in _within(value, 0):
                known = found.get(pattern)
                alone = isinstance(value, re.Pattern | LazyRegex)
                here = used[module if name.startswith("_") else "", name] if alone else set()
                how = (here or {"search"}) | (known.how if known else set())
                found[pattern] = Found(known.name if known else f"{module}.{name}", pattern, frozenset(how))
    return list(found.values())


def _within(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, LazyRegex):
        yield value.compiled()
    elif depth > 4:
        return
    elif isinstance(value, dict):
        for part in value.values():
            yield from _within(part, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _within(part, depth + 1)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _within(getattr(value, name), depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for entry in fields(value):
            yield from _within(getattr(value, entry.name), depth + 1)


def _uses() -> dict[tuple[str, str], set[str]]:
    """How each name is used: `match`, `fullmatch`, or anything else, which counts as a search.

    A name with an underscore counts in its module, any other in the whole package.
    """
    used: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        anchored = {
            id(node.func.value): node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in AT_START
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                name = node.id if isinstance(node, ast.Name) else node.attr
                home = _module(path) if name.startswith("_") else ""
                used[home, name].add(anchored.get(id(node), "search"))
    return used


def _module(path: Path) -> str:
    return ".".join(("leporello", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
