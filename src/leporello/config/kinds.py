"""Kinds of setting values. Each says what is allowed, checks a value, and reads one from the text of a variable."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingKind:
    """What a setting may hold."""

    allowed: str
    """The allowed values in words, as an error and the documentation show them."""
    check: Callable[[Any], Any]
    """The value in its final type; `ValueError` when it is not allowed."""
    from_text: Callable[[str], Any] = str
    """The raw value that a variable's or flag's text stands for; still to be checked."""


def flag() -> SettingKind:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

    def check(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise ValueError

    return SettingKind("true or false", check, lambda text: words.get(text.strip().lower(), text))


def number(
    least: float | None = None, most: float | None = None, *, whole: bool = False, unit: str = ""
) -> SettingKind:
    """A number within bounds, both included; `whole` ones have no fraction."""
    allowed = ("a whole number" if whole else "a number") + (f" of {unit}" if unit else "")
    if least is not None and most is not None:
        allowed += f" from {least:g} to {most:g}"
    elif least is not None:
        allowed += f", at least {least:g}"
    low, high = -math.inf if least is None else least, math.inf if most is None else most

    def check(value: Any) -> float | int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError
        if not low <= value <= high or (whole and value != int(value)):
            raise ValueError
        return int(value) if whole else float(value)

    def from_text(text: str) -> Any:
        cleaned = text.strip().replace("_", "")
        for read in (int, float):
            with contextlib.suppress(ValueError):
                return read(cleaned)
        return text

    return SettingKind(allowed, check, from_text)


def words(allowed: str) -> SettingKind:
    """Text that is not empty."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise ValueError

    return SettingKind(allowed, check)


def url() -> SettingKind:
    """The base URL of an API."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value.strip().lower().startswith(("http://", "https://")):
            return value.strip().rstrip("/")
        raise ValueError

    return SettingKind("a URL that begins with http:// or https://", check)


def one_of(*choices: str) -> SettingKind:
    def check(value: Any) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise ValueError

    listed = " or ".join(choices) if len(choices) < 3 else "one of " + ", ".join(choices)
    return SettingKind(listed, check, str.strip)


def names(allowed: str) -> SettingKind:
    """A list of words; in a variable they are separated by commas."""

    def check(value: Any) -> tuple[str, ...]:
        if isinstance(value, list | tuple) and all(isinstance(item, str) and item.strip() for item in value):
            return tuple(item.strip() for item in value)
        raise ValueError

    return SettingKind(allowed, check, lambda text: [item.strip() for item in text.split(",") if item.strip()])


def either(word: str | None, other: SettingKind) -> SettingKind:
    """A special word (`auto`), or null when `word` is None, or else a value of another kind."""

    def from_text(text: str) -> Any:
        cleaned = text.strip().lower()
        if word is None and cleaned in ("", "null", "none", "~"):
            return None
        return word if cleaned == word else other.from_text(text)

    def check(value: Any) -> Any:
        return value if value == word else other.check(value)

    return SettingKind(f"{word or 'null'} or {other.allowed}", check, from_text)


def named_tables(*fields: str) -> SettingKind:
    """A mapping from names to small mappings with known fields, such as one entry per model.

    What the fields may hold is checked by whoever uses them.
    """

    def check(value: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(value, dict):
            raise ValueError
        for name, entry in value.items():
            if not isinstance(entry, dict):
                raise ValueError(f"{name} is not a mapping")
            unknown = [str(key) for key in entry if key not in fields]
            if unknown:
                raise ValueError(f"{name} has no field {unknown[0]!r}")
        return {str(name): dict(entry) for name, entry in value.items()}

    def from_text(text: str) -> Any:
        with contextlib.suppress(ValueError):
            return json.loads(text)
        return text

    return SettingKind(f"a mapping from names to mappings with some of {', '.join(fields)}", check, from_text)
