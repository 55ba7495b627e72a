"""The Chat Completions dialect, of OpenAI and of everybody compatible with it."""

from leporello.dialects.chat.decode import decode_reply, decode_request
from leporello.dialects.chat.encode import encode_request
from leporello.dialects.chat.reply import Assembler, encode_reply, reply_events

__all__ = ["Assembler", "decode_reply", "decode_request", "encode_reply", "encode_request", "reply_events"]
