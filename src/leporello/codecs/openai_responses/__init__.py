"""The dialect of OpenAI's Responses API."""

from leporello.codecs.openai_responses.decode import decode_reply, decode_request
from leporello.codecs.openai_responses.encode import encode_request
from leporello.codecs.openai_responses.reply import encode_reply, reply_events
from leporello.codecs.openai_responses.stream import Assembler

__all__ = ["Assembler", "decode_reply", "decode_request", "encode_reply", "encode_request", "reply_events"]
