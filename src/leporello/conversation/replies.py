"""Answers of the official clients, or the JSON of them, as one `ModelReply`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.dialects import Target, anthropic, chat, responses
from leporello.errors import InputError
from leporello.providers.base import ModelReply
from leporello.usage import CanonicalUsage


def decode(reply: Any, provider: str = "", model: str = "") -> ModelReply:
    """The answer, whichever of the three dialects it is in."""
    body = _as_json(reply)
    name = model or str(body.get("model") or "")
    if "choices" in body:
        wire = chat.decode_reply(body, Target(provider or "openai", name))
    elif body.get("object") == "response" or "output" in body:
        wire = responses.decode_reply(body, Target(provider or "openai", name))
    elif body.get("type") == "message":
        wire = anthropic.decode_reply(body, Target(provider or "anthropic", name))
    elif body.get("role") == "assistant":
        return ModelReply(dict(body), CanonicalUsage(), has_usage=False)
    else:
        raise InputError("the reply is neither a chat completion, a response nor an Anthropic message")
    usage = CanonicalUsage.parse(wire.usage)
    return ModelReply(wire.message, usage, wire.finish_reason, wire.model or name, has_usage=wire.usage is not None)


def _as_json(reply: Any) -> Mapping[str, Any]:
    if isinstance(reply, Mapping):
        return reply
    dump = getattr(reply, "model_dump", None)
    if callable(dump):
        body = dump(mode="json", exclude_unset=True)
        if isinstance(body, Mapping):
            return body
    raise InputError(f"a {type(reply).__name__} is not a reply; give the client's answer object or its JSON")
