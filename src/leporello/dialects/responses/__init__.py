"""The dialect of OpenAI's Responses API."""

from leporello.dialects.chat.reply import error_body
from leporello.dialects.dialect import Api, Dialect, FieldNames, ItemRules, RecallRules, StreamRules
from leporello.dialects.responses.decode import OUTPUT_CAPS, decode_reply, decode_request, is_item, is_stateful
from leporello.dialects.responses.encode import NAME, encode_items, encode_request, encode_tools
from leporello.dialects.responses.merge import ResponsesMerge, insert_hidden
from leporello.dialects.responses.reply import (
    ANNOUNCED,
    Assembler,
    encode_reply,
    error_event,
    is_end,
    reply_events,
)

OPENAI_RESPONSES = Dialect(
    name=NAME,
    api=Api("openai", "/v1/responses"),
    fields=FieldNames("input", OUTPUT_CAPS, reply="output"),
    encode_request=encode_request,
    decode_request=decode_request,
    encode_reply=encode_reply,
    decode_reply=decode_reply,
    is_reply=lambda body: body.get("object") == "response" or "output" in body,
    reply_events=reply_events,
    assembler=Assembler,
    items=ItemRules(encode_items, is_item, is_stateful),
    stream=StreamRules(is_end, error_event, opening=ANNOUNCED, errors=("error", "response.failed")),
    recall=RecallRules(
        lambda hidden, fields: ResponsesMerge(hidden, stored=fields.get("store") is not False),
        insert_hidden,
        encode_tools,
        lambda fields: not fields.get("background"),
    ),
    error_body=error_body,
)

__all__ = ["OPENAI_RESPONSES"]
