"""JSON for clients, whatever a message holds: orjson is quick, and refuses half characters and huge numbers."""

from __future__ import annotations

import json
from typing import Any

import orjson


def told(value: Any) -> bytes:
    """A value as JSON; what only the standard library can write is written by it."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:
        return json.dumps(value, default=str).encode("ascii")
