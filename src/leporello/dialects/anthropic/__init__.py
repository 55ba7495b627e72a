"""The Anthropic Messages dialect."""

from leporello.dialects.anthropic.decode import OUTPUT_CAPS, decode_reply, decode_request
from leporello.dialects.anthropic.encode import DEFAULT_MAX_TOKENS, NAME, encode_request, encode_tools
from leporello.dialects.anthropic.items import encode_items, lay_out, without_thinking
from leporello.dialects.anthropic.merge import AnthropicMerge, can_call, insert_hidden
from leporello.dialects.anthropic.reply import Assembler, encode_reply, error_body, is_end, reply_events
from leporello.dialects.dialect import Api, Dialect, FieldNames, ItemRules, RecallRules, StreamRules

ANTHROPIC = Dialect(
    name=NAME,
    api=Api(
        "anthropic",
        "/v1/messages",
        count_path="/v1/messages/count_tokens",
        models_path="/v1/models?limit=100",
        versioned_base=False,
        bearer=False,
        headers={"anthropic-version": "2023-06-01"},
    ),
    fields=FieldNames("messages", OUTPUT_CAPS, reply="content"),
    encode_request=encode_request,
    decode_request=decode_request,
    encode_reply=encode_reply,
    decode_reply=decode_reply,
    is_reply=lambda body: body.get("type") == "message",
    reply_events=reply_events,
    assembler=Assembler,
    items=ItemRules(encode_items, lay_out=lay_out, without_thinking=without_thinking),
    stream=StreamRules(is_end, error_body, opening=("message_start", "ping")),
    recall=RecallRules(
        lambda hidden, fields: AnthropicMerge(hidden), insert_hidden, encode_tools, can_call, no_choice={"type": "none"}
    ),
    error_body=error_body,
)

__all__ = ["ANTHROPIC", "DEFAULT_MAX_TOKENS"]
