"""The Anthropic Messages dialect."""

from leporello.dialects.anthropic import blocks, reply, request
from leporello.dialects.dialect import Api, Dialect, FieldNames, ItemRules, RecallRules, StreamRules

ANTHROPIC = Dialect(
    name=request.NAME,
    api=Api(
        "anthropic",
        "/v1/messages",
        count_path="/v1/messages/count_tokens",
        models_path="/v1/models?limit=100",
        bearer=False,
        headers={"anthropic-version": "2023-06-01"},
    ),
    fields=FieldNames("messages", request.OUTPUT_CAPS, reply="content"),
    encode_request=request.encode_request,
    decode_request=request.decode_request,
    encode_reply=reply.encode_reply,
    decode_reply=request.decode_reply,
    is_reply=lambda body: body.get("type") == "message",
    reply_events=reply.reply_events,
    assembler=reply.Assembler,
    items=ItemRules(request.encode_items, lay_out=blocks.lay_out, without_thinking=blocks.without_thinking),
    stream=StreamRules(reply.is_end, reply.error_body, opening=("message_start", "ping")),
    recall=RecallRules(
        reply.AnthropicMerge,
        reply.insert_hidden,
        request.encode_tool,
        # The beginning of an answer that the model only completes leaves no room for a call.
        can_call=lambda fields: bool(fields["messages"][-1].get("role") != "assistant"),
        no_choice={"type": "none"},
    ),
    error_body=reply.error_body,
)
