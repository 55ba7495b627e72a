"""Text that can be sent: a lone surrogate has no bytes, so it travels as the replacement mark."""

from __future__ import annotations

from typing import Any

import orjson


def sendable(value: Any) -> Any:
    """The value, with unsendable text mended; the same object when there is none, which is nearly always."""
    try:
        orjson.dumps(value)
    except TypeError:
        return _mended(value)
    return value


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
