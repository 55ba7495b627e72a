"""The Chat Completions dialect, of OpenAI and of everybody compatible with it."""

from leporello.dialects.chat.decode import OUTPUT_CAPS, decode_reply, decode_request
from leporello.dialects.chat.encode import NAME, encode_items, encode_request, encode_tools
from leporello.dialects.chat.merge import ChatMerge, can_call, insert_hidden
from leporello.dialects.chat.reply import DONE, Assembler, encode_reply, error_body, is_end, reply_events
from leporello.dialects.dialect import Api, Dialect, FieldNames, ItemRules, RecallRules, StreamRules

OPENAI_CHAT = Dialect(
    name=NAME,
    api=Api("openai", "/v1/chat/completions"),
    fields=FieldNames("messages", OUTPUT_CAPS, reply="choices"),
    encode_request=encode_request,
    decode_request=decode_request,
    encode_reply=encode_reply,
    decode_reply=decode_reply,
    is_reply=lambda body: "choices" in body,
    reply_events=reply_events,
    assembler=Assembler,
    items=ItemRules(encode_items),
    stream=StreamRules(is_end, error_body, bare_errors=True, named=False, end_mark=DONE),
    recall=RecallRules(lambda hidden, fields: ChatMerge(hidden), insert_hidden, encode_tools, can_call),
    error_body=error_body,
)

__all__ = ["OPENAI_CHAT"]
