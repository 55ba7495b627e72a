"""Opaque state on generated turns: whatever order a provider sends, it gets back, to the field."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leporello.dialects import ANTHROPIC, OPENAI_RESPONSES, STATE, Target
from leporello.messages import Message, calls_of
from tests.support.wire import anthropic_violations, responses_violations

CLAUDE = Target("anthropic", "claude-sonnet-5")
OPENAI = Target("openai", "gpt-6-sol", native=True)
WORDS = st.text("abc äß漢", min_size=1, max_size=12).filter(lambda text: text.strip())
INPUT = st.dictionaries(st.sampled_from("xyz"), WORDS | st.integers(-(10**30), 10**30) | st.floats(-9, 9), max_size=2)
CITED = st.fixed_dictionaries({"citations": st.just([{"type": "char_location", "cited_text": "x"}])}) | st.just({})

BLOCKS = st.one_of(
    st.builds(lambda text, extra: {"type": "text", "text": text, **extra}, WORDS, CITED),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": f"sig-{text}"}, WORDS),
    st.builds(lambda text: {"type": "redacted_thinking", "data": text}, WORDS),
    st.builds(lambda value: {"type": "tool_use", "name": "ls", "input": value}, INPUT),
    st.just({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}),
)


def history(reply: Message) -> list[Message]:
    """The reply in a conversation that goes on."""
    results: list[Message] = [{"role": "tool", "tool_call_id": call.id, "content": "out"} for call in calls_of(reply)]
    return [{"role": "user", "content": "Go"}, reply, *results, {"role": "user", "content": "On"}]


@given(st.lists(BLOCKS, min_size=1, max_size=8))
def test_anthropic_turns(drawn: list[dict[str, Any]]) -> None:
    """Thinking, citations, server tools and calls come back in their order with every field."""
    blocks = [{**block, "id": f"toolu_{k}"} if block["type"] == "tool_use" else block for k, block in enumerate(drawn)]
    reply = ANTHROPIC.decode_reply({"content": blocks, "stop_reason": "end_turn"}, CLAUDE).message
    wire = ANTHROPIC.encode_request(history(reply), target=CLAUDE)
    assert wire["messages"][1]["content"] == blocks
    assert anthropic_violations(wire) == []
    elsewhere = ANTHROPIC.encode_request(history(reply), target=Target("bedrock", "claude-sonnet-5"))
    kinds = {block["type"] for turn in elsewhere["messages"] for block in turn["content"]}
    assert kinds <= {"text", "tool_use", "tool_result"}
    assert anthropic_violations(elsewhere) == []


ITEMS = st.one_of(
    st.builds(
        lambda text: {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
            "phase": "commentary",
        },
        WORDS,
    ),
    st.builds(lambda text: {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": text}, WORDS),
    st.builds(lambda name: {"type": "function_call", "name": name, "arguments": '{"a": 1}'}, st.just("ls")),
    st.just({"type": "custom_tool_call", "name": "patch", "input": "*** raw"}),
)


@given(st.lists(ITEMS, min_size=1, max_size=8))
def test_responses_turns(drawn: list[dict[str, Any]]) -> None:
    """Reasoning, phases, calls and free-text calls come back in their order; trailing reasoning is left out."""
    items = [{**item, "call_id": f"call_{k}"} if "call" in item["type"] else item for k, item in enumerate(drawn)]
    reply = OPENAI_RESPONSES.decode_reply({"status": "completed", "output": items}, OPENAI).message
    wire = OPENAI_RESPONSES.encode_request(history(reply), target=OPENAI)
    expected = list(items)
    while expected and expected[-1]["type"] == "reasoning":
        expected.pop()
    assert wire["input"][1 : 1 + len(expected)] == expected
    assert responses_violations(wire) == []
    if expected:
        assert STATE in reply or all(item["type"] != "reasoning" for item in items)
