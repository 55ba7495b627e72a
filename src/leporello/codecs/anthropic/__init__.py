"""The Anthropic Messages dialect."""

from leporello.codecs.anthropic.blocks import MARK
from leporello.codecs.anthropic.decode import decode_reply, decode_request
from leporello.codecs.anthropic.encode import DEFAULT_MAX_TOKENS, encode_request
from leporello.codecs.anthropic.reply import encode_reply, reply_events
from leporello.codecs.anthropic.stream import Assembler

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
