"""The dialect of OpenAI's Responses API."""

from leporello.dialects.responses.decode import decode_reply, decode_request
from leporello.dialects.responses.encode import encode_request
from leporello.dialects.responses.reply import Assembler, encode_reply, reply_events

__all__ = ["Assembler", "decode_reply", "decode_request", "encode_reply", "encode_request", "reply_events"]
