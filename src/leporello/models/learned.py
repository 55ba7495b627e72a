"""Windows that a provider stated in an error, remembered per provider, endpoint and model.

Only stated numbers come in here, never guesses. Reading is forgiving but not silent: what can't be used is left out
and named in `problems`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1
STALE_SECONDS = 30 * 86_400
SMALLEST, LARGEST = 256, 100_000_000


@dataclass(slots=True)
class LearnedLimits:
    """A small mutable book; times are seconds since the epoch and come from the caller."""

    entries: dict[str, tuple[int, float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def window(self, model: str, provider: str = "", base_url: str = "", *, now: float) -> int | None:
        """The remembered window, unless it is too old to be believed."""
        entry = self.entries.get(_key(model, provider, base_url))
        if entry is None or now - entry[1] > STALE_SECONDS:
            return None
        return entry[0]

    def learn(self, window: int, model: str, provider: str = "", base_url: str = "", *, now: float) -> bool:
        """Remember a stated window; False when the number can't be one. A newer statement replaces an older."""
        if isinstance(window, bool) or not SMALLEST <= window <= LARGEST:
            return False
        self.entries[_key(model, provider, base_url)] = (int(window), float(now))
        return True

    def forget(self, model: str, provider: str = "", base_url: str = "") -> bool:
        """Drop what was learned, for example when the user changed the endpoint."""
        return self.entries.pop(_key(model, provider, base_url), None) is not None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"v": VERSION, "windows": {key: [window, when] for key, (window, when) in self.entries.items()}}

    @classmethod
    def from_dict(cls, data: Any, *, now: float) -> LearnedLimits:
        """From `as_dict`; entries that are malformed, from the future or stale are left out and named."""
        book = cls()
        windows = data.get("windows") if isinstance(data, Mapping) and data.get("v") == VERSION else None
        if not isinstance(windows, Mapping):
            book.problems.append("learned limits: not a file of this version; it was ignored")
            return book
        for key, value in windows.items():
            problem = _problem(value, now)
            if problem:
                book.problems.append(f"learned limit for {key!r}: {problem}; it was ignored")
            else:
                book.entries[str(key)] = (int(value[0]), float(value[1]))
        return book

    @classmethod
    def load(cls, path: Path, *, now: float) -> LearnedLimits:
        """From a file; a missing file is an empty book, a broken one too, but that is named."""
        try:
            data = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            return cls(problems=[f"learned limits in {path}: {error}; they were ignored"])
        return cls.from_dict(data, now=now)

    def save(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{id(self)}")
        try:
            with open(temporary, "wb") as file:
                file.write(orjson.dumps(self.as_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _key(model: str, provider: str, base_url: str) -> str:
    return " ".join((provider.strip().lower() or "-", base_url.strip().rstrip("/") or "-", model.strip()))


def _problem(value: Any, now: float) -> str:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return "is not a pair of window and time"
    window, when = value
    if isinstance(window, bool) or not isinstance(window, int) or not SMALLEST <= window <= LARGEST:
        return f"{window!r} is not a window"
    if isinstance(when, bool) or not isinstance(when, int | float) or when > now + 86_400:
        return f"{when!r} is not a time in the past"
    if now - when > STALE_SECONDS:
        return "is older than 30 days"
    return ""
