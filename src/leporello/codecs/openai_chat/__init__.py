"""The Chat Completions dialect, of OpenAI and of everybody compatible with it."""

from leporello.codecs.openai_chat.decode import decode_reply, decode_request
from leporello.codecs.openai_chat.encode import encode_request
from leporello.codecs.openai_chat.reply import encode_reply, reply_events
from leporello.codecs.openai_chat.stream import Assembler

__all__ = ["Assembler", "decode_reply", "decode_request", "encode_reply", "encode_request", "reply_events"]
