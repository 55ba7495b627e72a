"""The Chat Completions dialect, of OpenAI and of everybody compatible with it."""

from leporello.dialects.chat import reply, request
from leporello.dialects.dialect import Api, Dialect, FieldNames, ItemRules, RecallRules, StreamRules

OPENAI_CHAT = Dialect(
    name=request.NAME,
    api=Api("openai", "/v1/chat/completions"),
    fields=FieldNames("messages", request.OUTPUT_CAPS, reply="choices"),
    encode_request=request.encode_request,
    decode_request=request.decode_request,
    encode_reply=reply.encode_reply,
    decode_reply=request.decode_reply,
    is_reply=lambda body: "choices" in body,
    reply_events=reply.reply_events,
    assembler=reply.Assembler,
    items=ItemRules(request.encode_items),
    stream=StreamRules(reply.is_end, reply.error_body, bare_errors=True, named=False, end_mark=reply.DONE),
    recall=RecallRules(reply.ChatMerge, reply.insert_hidden, request.encode_tool, reply.can_call),
    error_body=reply.error_body,
)
