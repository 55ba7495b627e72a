"""Wire formats: OpenAI-format messages to the request of each dialect, and its answers back.

Each of `anthropic`, `openai_chat` and `openai_responses` has the same functions:

    encode_request(messages, tools, target=..., max_tokens=..., options=...)  -> the request's body
    decode_reply(body, target)                                               -> WireReply
    decode_request(body)                                                     -> DecodedRequest  (a client's request)
    encode_reply(message, target=..., ...), reply_events(reply)              -> an answer, whole or as a stream
    Assembler().feed(event), .reply()                                        -> a stream put together

Reasoning and signed thinking ride along in `provider_state` (see `leporello.dialects.base`).
"""

from leporello.dialects.base import STATE, DecodedRequest, Dialect, StreamIncomplete, Target, WireReply

__all__ = ["STATE", "DecodedRequest", "Dialect", "StreamIncomplete", "Target", "WireReply"]
