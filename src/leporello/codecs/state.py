"""Opaque state of a provider, kept inside the assistant message it belongs to.

Reasoning items, signed thinking blocks and the like must go back to the model that wrote them exactly as they came, and
nobody else may see them. They live under one key of the assistant message:

    {"role": "assistant", "content": "...", "provider_state": {
        "dialect": "anthropic", "provider": "anthropic", "family": "anthropic",
        "shape": [412, 58], ...what the dialect's codec needs to rebuild the turn...}}

`shape` holds the sizes of the message's texts and arguments at the time. When something shortened the message since,
the state no longer fits it, and is dropped whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from leporello.codecs.base import Dialect, Target
from leporello.messages import Message, calls_of, encode_json, hash_bytes, parts_of, role_of

STATE = "provider_state"
"""The key of an assistant message under which opaque state lives."""


def new_state(message: Message, dialect: Dialect, target: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The state to store in a message that was just decoded."""
    return {
        "dialect": dialect.value,
        "provider": target.provider,
        "family": target.family,
        "shape": _shape(message),
        **fields,
    }


def state_for(message: Mapping[str, Any], dialect: Dialect, target: Target) -> Mapping[str, Any] | None:
    """The message's state when this receiver wrote it and the message is still as it was; else None."""
    state = message.get(STATE)
    if not isinstance(state, Mapping) or role_of(message) != "assistant":
        return None
    wanted = (dialect.value, target.provider, target.family)
    if (state.get("dialect"), state.get("provider"), state.get("family")) != wanted:
        return None
    return state if state.get("shape") == _shape(message) else None


def _shape(message: Mapping[str, Any]) -> list[int]:
    texts = [len(part.text) for part in parts_of(message)]
    return texts + [len(call.arguments) for call in calls_of(message)]


def state_key(message: Mapping[str, Any]) -> str:
    """A name for a message's state, by which a refused one can be remembered."""
    return hash_bytes(encode_json(message.get(STATE)))


def state_keys(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of all states in a list."""
    return {state_key(message) for message in messages if STATE in message}


def drop_state(messages: Iterable[Message], keys: Collection[str]) -> list[Message]:
    """The messages without the states of these names: a signed block goes back verbatim or is gone whole."""
    return [
        {key: value for key, value in message.items() if key != STATE}
        if STATE in message and state_key(message) in keys
        else message
        for message in messages
    ]
