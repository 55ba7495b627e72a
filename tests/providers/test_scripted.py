"""The scripted provider says what the script says, and its bill follows from the request."""

from __future__ import annotations

import pytest

from leporello.billing import blocks_of
from leporello.errors import ProviderError
from leporello.messages import Message
from leporello.providers.base import ModelReply, ModelRequest, Provider
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed
from leporello.providers.scripted import ScriptedProvider, ScriptEnded, Wait
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

CLAUDE, GPT = "claude-sonnet-4-5", "gpt-4.1"


def request(*texts: str, model: str = CLAUDE, **options: object) -> ModelRequest:
    roles = ("user", "assistant")
    return ModelRequest(model, [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)], **options)  # type: ignore[arg-type]


def test_it_replays_texts_messages_replies_and_errors_in_order() -> None:
    call: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": "{}"}}],
    }
    given = ModelReply({"role": "assistant", "content": "whole"}, CanonicalUsage(5, 6))
    provider: Provider = ScriptedProvider(["one", call, given, ProviderError("gone")])
    assert provider.complete(request("hi")).message["content"] == "one"
    assert provider.complete(request("hi")).finish_reason == "tool_calls"
    assert provider.complete(request("hi")) == given
    with pytest.raises(ProviderError, match="gone"):
        provider.complete(request("hi"))
    with pytest.raises(ScriptEnded, match="call 5"):
        provider.complete(request("hi"))


def test_a_function_sees_the_request_and_may_answer_for_ever() -> None:
    provider = ScriptedProvider(lambda asked: f"{len(asked.messages)} messages")
    assert provider.complete(request("a")).message["content"] == "1 messages"
    assert provider.complete(request("a", "b", "c")).message["content"] == "3 messages"
    assert [len(asked.messages) for asked in provider.requests] == [1, 3]


def test_text_is_streamed_in_pieces() -> None:
    pieces: list[str] = []
    ScriptedProvider(["word " * 20]).complete(request("hi"), pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == "word " * 20


def test_a_wait_beyond_the_timeout_is_a_timeout() -> None:
    slept: list[float] = []
    provider = ScriptedProvider([Wait(2.0, "late"), Wait(9.0, "too late")], sleep=slept.append)
    assert provider.complete(request("hi", timeout=5.0)).message["content"] == "late"
    with pytest.raises(CallFailed) as caught:
        provider.complete(request("hi", timeout=5.0))
    assert (caught.value.verdict.kind, caught.value.verdict.cause) == (ErrorKind.TRANSIENT, "timeout")
    assert slept == [2.0, 5.0]


def test_a_prompt_beyond_the_window_is_refused_with_both_numbers() -> None:
    with pytest.raises(CallFailed) as caught:
        ScriptedProvider(["never said"], window=100).complete(request("word " * 500))
    verdict = caught.value.verdict
    assert verdict.kind is ErrorKind.INPUT_OVERFLOW
    assert verdict.stated_limit == 100
    assert verdict.requested is not None
    assert verdict.requested > 500


def test_an_answer_over_max_tokens_is_cut_and_says_so() -> None:
    reply = ScriptedProvider(["word " * 500]).complete(request("hi", max_tokens=50))
    assert reply.finish_reason == "length"
    assert "word " * 20 in reply.message["content"]
    assert TokenCounter.for_model(CLAUDE).text(reply.message["content"]) <= 50


@pytest.mark.parametrize("model", [CLAUDE, GPT, "gpt-5.6-sol", "deepseek-chat", ""])
def test_the_bill_adds_up_to_the_count_of_the_request(model: str) -> None:
    session = generate(seed=4, messages=60, images=2, huge_outputs=0)
    asked = ModelRequest(model, [{"role": "system", "content": session.system}, *session.messages], session.tools)
    reply = ScriptedProvider(["ok"]).complete(asked)
    assert reply.usage.prompt_tokens == TokenCounter.for_model(model).request(asked.messages, asked.tools)


def test_claude_reads_what_the_marks_of_the_last_request_wrote() -> None:
    now = [0.0]
    provider = ScriptedProvider(lambda _: "ok", clock=lambda: now[0])
    long = "A sentence of the system prompt that fills it. " * 300
    marked = {"role": "system", "content": [{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]}
    plain = {"role": "system", "content": [{"type": "text", "text": long}]}
    first = provider.complete(ModelRequest(CLAUDE, [marked, {"role": "user", "content": "hi"}])).usage
    assert first.cache_read_tokens == 0
    assert first.cache_write_tokens > 2_500
    again = provider.complete(ModelRequest(CLAUDE, [marked, {"role": "user", "content": "and now?"}])).usage
    assert again.cache_read_tokens == first.cache_write_tokens
    unmarked = provider.complete(ModelRequest(CLAUDE, [plain, {"role": "user", "content": "hi"}])).usage
    assert unmarked.cache_read_tokens == 0, "without a mark nothing is looked up"
    now[0] = 1_000.0
    late = provider.complete(ModelRequest(CLAUDE, [marked, {"role": "user", "content": "hi"}])).usage
    assert late.cache_read_tokens == 0, "five minutes are over"


def test_moving_a_mark_does_not_change_the_bytes() -> None:
    counter = TokenCounter.for_model(CLAUDE)
    tool = {"role": "tool", "tool_call_id": "1", "content": "result"}
    bare = ModelRequest(CLAUDE, [{"role": "user", "content": "x"}, tool])
    marked = ModelRequest(
        CLAUDE, [{"role": "user", "content": "x"}, {**tool, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    )
    assert [block.data for block in blocks_of(bare, counter)] == [block.data for block in blocks_of(marked, counter)]
    assert [block.mark for block in blocks_of(marked, counter)] == [None, "1h"]


def test_older_gpt_reads_the_common_prefix_without_marks() -> None:
    provider = ScriptedProvider(lambda _: "ok")
    long = "word " * 3_000
    assert provider.complete(request(long, model=GPT)).usage.cache_read_tokens == 0
    second = provider.complete(request(long, "ok", "next", model=GPT)).usage
    assert second.cache_read_tokens % 128 == 0
    assert second.cache_read_tokens > 2_800
    assert second.cache_write_tokens == 0
