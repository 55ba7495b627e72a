"""A stored conversation as an agent leads it, without the agent: what is sent before each answer of a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leporello.conversation import Conversation
from leporello.conversation.rendering import Request
from leporello.messages import Message, role_of
from leporello.providers.base import ModelReply
from leporello.usage import CanonicalUsage


def talk(
    conversation: Conversation,
    messages: Sequence[Message],
    *,
    system: str = "You are a careful engineer.",
    tools: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Request]:
    """Each request; the assistant message of the script that follows is recorded as its answer."""
    for message in messages:
        if role_of(message) == "assistant":
            request = conversation.request(tools, system)
            yield request
            conversation.record(ModelReply(message, CanonicalUsage(input_tokens=request.tokens, output_tokens=9)))
        else:
            conversation.append(message)
