"""Wire dialects: OpenAI-format messages to the request of each API, and its answers back.

A dialect is an object (`leporello.dialects.dialect`) with a folder of its own. To add one, write the folder and add
the object to `DIALECTS`. Reasoning and signed thinking ride along in `provider_state` (see `leporello.dialects.base`).
"""

from collections.abc import Collection

from leporello.dialects.anthropic import ANTHROPIC
from leporello.dialects.base import STATE, StreamIncomplete, Target, WireReply
from leporello.dialects.chat import OPENAI_CHAT
from leporello.dialects.dialect import DecodedRequest, Dialect
from leporello.dialects.responses import OPENAI_RESPONSES

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC)}
"""All dialects by name."""


def dialect_of_path(path: str) -> Dialect:
    """The dialect of a path at the gateway; that of our own API is OpenAI's."""
    return next((dialect for dialect in DIALECTS.values() if path.startswith(dialect.api.path)), OPENAI_CHAT)


def dialect_of_headers(names: Collection[str]) -> Dialect:
    told = (dialect for dialect in DIALECTS.values() if dialect.api.headers)
    return next((dialect for dialect in told if all(name in names for name in dialect.api.headers)), OPENAI_CHAT)


__all__ = [
    "ANTHROPIC",
    "DIALECTS",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "STATE",
    "DecodedRequest",
    "Dialect",
    "StreamIncomplete",
    "Target",
    "WireReply",
    "dialect_of_headers",
    "dialect_of_path",
]
