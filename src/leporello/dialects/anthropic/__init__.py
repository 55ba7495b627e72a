"""The Anthropic Messages dialect."""

from leporello.dialects.anthropic.blocks import MARK
from leporello.dialects.anthropic.decode import decode_reply, decode_request
from leporello.dialects.anthropic.encode import DEFAULT_MAX_TOKENS, encode_request
from leporello.dialects.anthropic.reply import Assembler, encode_reply, reply_events

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "MARK",
    "Assembler",
    "decode_reply",
    "decode_request",
    "encode_reply",
    "encode_request",
    "reply_events",
]
