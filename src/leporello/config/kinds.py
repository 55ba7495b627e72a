"""Kinds of setting values. Each says what is allowed, checks a value, and reads one from the text of a variable."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from typing import Any, Protocol


class SettingKind(Protocol):
    """What a setting may hold."""

    @property
    def allowed(self) -> str:
        """The allowed values in words, as an error and the documentation show them."""

    def check(self, value: Any) -> Any:
        """The value in its final type; `ValueError` when it is not allowed."""

    def from_text(self, text: str) -> Any:
        """The raw value that a variable's or flag's text stands for; still to be checked."""
        return text


_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    allowed: str = "true or false"

    def check(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise ValueError

    def from_text(self, text: str) -> Any:
        return _FLAGS.get(text.strip().lower(), text)


@dataclass(frozen=True, slots=True)
class Number:
    """A number within bounds, both included; `whole` ones have no fraction."""

    least: float | None = None
    most: float | None = None
    whole: bool = False
    unit: str = ""

    @property
    def allowed(self) -> str:
        noun = "a whole number" if self.whole else "a number"
        noun += f" of {self.unit}" if self.unit else ""
        if self.least is not None and self.most is not None:
            return f"{noun} from {self.least:g} to {self.most:g}"
        if self.least is not None:
            return f"{noun}, at least {self.least:g}"
        return noun if self.most is None else f"{noun}, at most {self.most:g}"

    def check(self, value: Any) -> float | int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError
        if self.whole and value != int(value):
            raise ValueError
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise ValueError
        return int(value) if self.whole else float(value)

    def from_text(self, text: str) -> Any:
        cleaned = text.strip().replace("_", "")
        for read in (int, float):
            with contextlib.suppress(ValueError):
                return read(cleaned)
        return text


@dataclass(frozen=True, slots=True)
class Text(SettingKind):
    """Text that is not empty."""

    allowed: str = "text"

    def check(self, value: Any) -> str:
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise ValueError


@dataclass(frozen=True, slots=True)
class Address(SettingKind):
    """The base URL of an API."""

    allowed: str = "a URL that begins with http:// or https://"

    def check(self, value: Any) -> str:
        if isinstance(value, str) and value.strip().lower().startswith(("http://", "https://")):
            return value.strip().rstrip("/")
        raise ValueError


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return " or ".join(self.words) if len(self.words) < 3 else "one of " + ", ".join(self.words)

    def check(self, value: Any) -> str:
        if isinstance(value, str) and value in self.words:
            return value
        raise ValueError

    def from_text(self, text: str) -> Any:
        return text.strip()


@dataclass(frozen=True, slots=True)
class Names:
    """A list of words; in a variable they are separated by commas."""

    allowed: str = "a list of names"

    def check(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, list | tuple) and all(isinstance(item, str) and item.strip() for item in value):
            return tuple(item.strip() for item in value)
        raise ValueError

    def from_text(self, text: str) -> Any:
        return [item.strip() for item in text.split(",") if item.strip()]


@dataclass(frozen=True, slots=True)
class Either:
    """A special word (`auto`), or null when `word` is None, or else a value of another kind."""

    word: str | None
    other: SettingKind

    @property
    def allowed(self) -> str:
        return f"{self.word or 'null'} or {self.other.allowed}"

    def check(self, value: Any) -> Any:
        return value if value == self.word else self.other.check(value)

    def from_text(self, text: str) -> Any:
        cleaned = text.strip().lower()
        if self.word is None and cleaned in ("", "null", "none", "~"):
            return None
        return self.word if cleaned == self.word else self.other.from_text(text)


@dataclass(frozen=True, slots=True)
class NamedTables:
    """A mapping from names to small mappings with known fields, such as one entry per model.

    What the fields may hold is checked by whoever uses them.
    """

    fields: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return f"a mapping from names to mappings with some of {', '.join(self.fields)}"

    def check(self, value: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(value, dict):
            raise ValueError
        for name, entry in value.items():
            if not isinstance(entry, dict):
                raise ValueError(f"{name} is not a mapping")
            unknown = [str(key) for key in entry if key not in self.fields]
            if unknown:
                raise ValueError(f"{name} has no field {unknown[0]!r}")
        return {str(name): dict(entry) for name, entry in value.items()}

    def from_text(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text
