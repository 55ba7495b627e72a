"""Options under their chat names as Anthropic's fields; what the API calls by the same name passes through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.codecs.base import Wire
from leporello.codecs.tools import anthropic_choice

_ELSEWHERE = frozenset(
    (
        "tool_choice",
        "parallel_tool_calls",
        "stop",
        "user",
        "response_format",
        "reasoning_effort",
        "prompt_cache_key",
        "stream_options",
        "max_completion_tokens",
    )
)


def request_options(options: Mapping[str, Any]) -> Wire:
    """The extra fields of a request."""
    wire: Wire = {key: value for key, value in options.items() if key not in _ELSEWHERE}
    choice = anthropic_choice(options.get("tool_choice"), options.get("parallel_tool_calls"))
    if choice is not None:
        wire["tool_choice"] = choice
    stop = options.get("stop")
    if stop:
        wire["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    if isinstance(options.get("user"), str):
        wire["metadata"] = {**(wire.get("metadata") or {}), "user_id": options["user"]}
    output = _output_config(options)
    if output:
        wire["output_config"] = {**(wire.get("output_config") or {}), **output}
    return wire


def _output_config(options: Mapping[str, Any]) -> Wire:
    config: Wire = {}
    wanted = options.get("response_format")
    schema = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
    if isinstance(schema, Mapping) and isinstance(schema.get("schema"), Mapping):
        config["format"] = {"type": "json_schema", "schema": schema["schema"]}
    if isinstance(options.get("reasoning_effort"), str):
        config["effort"] = options["reasoning_effort"]
    return config
