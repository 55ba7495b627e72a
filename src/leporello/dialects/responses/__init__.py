"""The dialect of OpenAI's Responses API."""

from leporello.dialects.chat.reply import error_body
from leporello.dialects.dialect import Api, Dialect, FieldNames, ItemRules, RecallRules, StreamRules
from leporello.dialects.responses import reply, request

OPENAI_RESPONSES = Dialect(
    name=request.NAME,
    api=Api("openai", "/v1/responses"),
    fields=FieldNames("input", request.OUTPUT_CAPS, reply="output"),
    encode_request=request.encode_request,
    decode_request=request.decode_request,
    encode_reply=reply.encode_reply,
    decode_reply=request.decode_reply,
    is_reply=lambda body: body.get("object") == "response" or "output" in body,
    reply_events=reply.reply_events,
    assembler=reply.Assembler,
    items=ItemRules(
        request.encode_items, lambda item: isinstance(item.get("type", "message"), str), request.is_stateful
    ),
    stream=StreamRules(reply.is_end, reply.error_event, opening=reply.ANNOUNCED, errors=("error", "response.failed")),
    recall=RecallRules(
        reply.ResponsesMerge, reply.insert_hidden, request.encode_tool, lambda fields: not fields.get("background")
    ),
    error_body=error_body,
)
