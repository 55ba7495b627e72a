"""Safe looks into recorded JSON, where any field may be missing or of another type than its format says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from leporello.messages import encode_json


def mapping(value: Any) -> dict[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; anything else in it is left out."""
    return [item for item in sequence(value) if isinstance(item, dict)]


def text(value: Any) -> str:
    """The value when it is a string, else nothing."""
    return value if isinstance(value, str) else ""


def as_text(value: Any) -> str:
    """Any value as readable text: strings as they are, nothing for null, everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_json(value).decode()


def identifier(value: Any) -> str:
    """An id that may be recorded as text or as a number."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def amount(value: Any) -> float | None:
    """A price, or None when the value is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def kind_of(record: Any) -> str:
    """What a record says it is: its `type`, or nothing when that is no text."""
    return text(mapping(record).get("type"))


_MILLISECONDS = 1e11
"""Seconds since the epoch stay below this for three thousand years."""


def moment(value: Any) -> float | None:
    """A time as seconds since the epoch: from ISO text (UTC unless it says otherwise), seconds or milliseconds."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    seconds = amount(value)
    if seconds is None or not 0 < seconds < _MILLISECONDS * 1_000:
        return None
    return seconds / 1_000 if seconds > _MILLISECONDS else seconds
