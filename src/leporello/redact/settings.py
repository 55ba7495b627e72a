"""Settings as they may be shown: the value without passwords in addresses, and without keys in plugins' sections."""

from __future__ import annotations

from typing import Any

from leporello.redact import redact


def masked_value(name: str, value: Any) -> Any:
    """The value of a setting with all secrets masked; its name tells what its text is."""
    if isinstance(value, dict):
        return {key: masked_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(masked_value(name, inner) for inner in value)
    if not isinstance(value, str):
        return value
    opening = f'{name}: "'
    return redact(f'{opening}{value}"')[len(opening) : -1]
