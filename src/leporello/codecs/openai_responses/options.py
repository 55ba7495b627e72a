"""Options under their chat names as fields of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.base import Wire
from leporello.codecs.tools import responses_choice

_ELSEWHERE = frozenset(
    ("tool_choice", "response_format", "reasoning_effort", "verbosity", "stream_options", "stop", "n", "late_system")
)


def request_options(options: Mapping[str, Any]) -> Wire:
    """The extra fields of a request. `stop` has no counterpart there and is left out."""
    wire: Wire = {key: value for key, value in options.items() if key not in _ELSEWHERE}
    if options.get("tool_choice") is not None:
        wire["tool_choice"] = responses_choice(options["tool_choice"])
    if options.get("reasoning_effort") is not None:
        wire["reasoning"] = {**(wire.get("reasoning") or {}), "effort": options["reasoning_effort"]}
    text = dict(wire.get("text") or {})
    if options.get("verbosity") is not None:
        text["verbosity"] = options["verbosity"]
    wanted = options.get("response_format")
    if isinstance(wanted, Mapping):
        schema = wanted.get("json_schema")
        text["format"] = {"type": "json_schema", **schema} if isinstance(schema, Mapping) else dict(wanted)
    if text:
        wire["text"] = text
    return wire
