"""Calls through the official clients to a strict server on loopback, in all three dialects."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from leporello.cancel import CancelToken
from leporello.dialects import ANTHROPIC, DIALECTS, OPENAI_CHAT, OPENAI_RESPONSES, STATE, Dialect
from leporello.messages import Message
from leporello.providers.base import ModelRequest
from leporello.providers.clients import ProviderChoice, make_provider
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallCancelled, CallFailed
from leporello.providers.sdk import Clock, RetryPolicy, SdkProvider
from leporello.testing.stub_server import Cut, Fail, Hold, Say, Step, StreamError, StubServer
from leporello.usage import CanonicalUsage
from tests.support.strict_server import strict_server

EVERY_DIALECT = pytest.mark.parametrize("dialect", list(DIALECTS.values()), ids=str)
ASK: list[Message] = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Go"}]
MODELS = {ANTHROPIC: "claude-sonnet-5", OPENAI_CHAT: "gpt-6-sol", OPENAI_RESPONSES: "gpt-6-sol"}
OVERLOADED = Fail(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


@contextmanager
def serving(
    dialect: Dialect, script: Iterable[Step], waits: list[float] | None = None, **settings: Any
) -> Iterator[tuple[SdkProvider, StubServer]]:
    """A provider and the server it talks to; waits are recorded, not waited."""
    with strict_server(script) as server:
        chosen = ProviderChoice(MODELS[dialect], "stub", server.url + "/v1", dialect.name, **settings)
        tools = Clock(sleep=(waits if waits is not None else []).append, jitter=lambda: 1.0, clock=lambda: 0.0)
        yield make_provider(chosen, tools), server


def request(dialect: Dialect, messages: list[Message] | None = None, **fields: Any) -> ModelRequest:
    """A request of a dialect's model."""
    return ModelRequest(MODELS[dialect], messages or ASK, max_tokens=100, **fields)


@EVERY_DIALECT
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_an_answer(dialect: Dialect, streamed: bool) -> None:
    """Text, parallel calls, finish reason and usage arrive, streamed or whole; the server found nothing to refuse."""
    said = Say("Looking around now.", (("ls", '{"path": "."}'), ("read", "{}")), usage=CanonicalUsage(7, 5, 90, 3, 2))
    with serving(dialect, [said]) as (provider, server):
        heard: list[str] = []
        reply = provider.complete(request(dialect), heard.append if streamed else None)
    assert reply.message["content"] == "Looking around now."
    calls = [call["function"] for call in reply.message["tool_calls"]]
    assert [(call["name"], json.loads(call["arguments"])) for call in calls] == [("ls", {"path": "."}), ("read", {})]
    assert reply.finish_reason == "tool_calls"
    assert reply.usage == CanonicalUsage(7, 5, 90, 3, 2)
    assert reply.has_usage
    assert "".join(heard) == ("Looking around now." if streamed else "")
    assert server.requests[0].violations == ()


@EVERY_DIALECT
def test_a_turn_goes_on(dialect: Dialect) -> None:
    """The reply and its results go back as they are, and are accepted."""
    with serving(dialect, [Say(None, (("ls", "{}"), ("ls", "{}"))), Say("Done.")]) as (provider, server):
        first = provider.complete(request(dialect)).message
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in first["tool_calls"]]
        reply = provider.complete(request(dialect, [*ASK, first, *results]))
    assert reply.message["content"] == "Done."
    assert all(seen.violations == () for seen in server.requests)


@EVERY_DIALECT
def test_usage_that_is_missing_is_said_to_be(dialect: Dialect) -> None:
    """Without counts the reply says so, and the caller estimates."""
    with serving(dialect, [Say("Hi", usage=None)]) as (provider, _):
        reply = provider.complete(request(dialect))
    assert not reply.has_usage
    assert reply.message["content"] == "Hi"


@EVERY_DIALECT
@pytest.mark.parametrize("clean", [True, False], ids=["clean end", "broken connection"])
def test_a_stream_cut_anywhere(dialect: Dialect, clean: bool) -> None:
    """Half an answer is an error, above all half a call; before the first letter it is tried again."""
    say = Say("Let me write that file for you.", (("write", json.dumps({"text": "x" * 90})),))
    for after in range(1, 11):
        with serving(dialect, [Cut(say, after, clean)], retry=RetryPolicy(tries=1)) as (provider, _):
            heard: list[str] = []
            with pytest.raises(CallFailed) as caught:
                provider.complete(request(dialect), heard.append)
        assert caught.value.verdict.kind is ErrorKind.TRANSIENT
        assert caught.value.partial == "".join(heard)


@EVERY_DIALECT
def test_nothing_is_repeated_behind_the_readers_back(dialect: Dialect) -> None:
    """Once text was shown, a broken stream is reported and not tried again."""
    with serving(dialect, [Cut(Say("A long sentence that breaks off."), 4), Say("Again")]) as (provider, server):
        with pytest.raises(CallFailed) as caught:
            provider.complete(request(dialect), lambda text: None)
        assert len(server.requests) == 1
    assert caught.value.partial
    assert caught.value.verdict.cause == "stream_cut"


@EVERY_DIALECT
def test_what_passes_is_tried_again(dialect: Dialect) -> None:
    """Overload is waited out with growing waits, as long as the tries last; the provider's own wish comes first."""
    waits: list[float] = []
    asked = replace(OVERLOADED, headers={"retry-after": "7"})
    with serving(dialect, [OVERLOADED, asked, OVERLOADED, Say("At last")], waits) as (provider, _):
        assert provider.complete(request(dialect)).message["content"] == "At last"
    assert waits == [0.5, 7.0, 2.0]
    waits.clear()
    with serving(dialect, [OVERLOADED] * 9, waits) as (provider, server):
        with pytest.raises(CallFailed):
            provider.complete(request(dialect))
        assert len(server.requests) == 4
    assert waits == [0.5, 1.0, 2.0]


@EVERY_DIALECT
@pytest.mark.parametrize(
    "step",
    [
        Fail(400, {"error": {"message": "Invalid value"}}),
        Fail(401, {"error": {"message": "Bad key", "code": "invalid_api_key"}}),
        Fail(429, {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}, {"retry-after": "86400"}),
        Fail(429, {"error": {"message": "No money", "code": "insufficient_quota"}}),
        Fail(400, {"error": {"message": "prompt is too long: 219898 tokens > 200000 maximum"}}),
        Fail(413, "<html>413</html>"),
    ],
    ids=["malformed", "auth", "long rate limit", "quota", "overflow", "payload"],
)
def test_what_does_not_pass_is_not(dialect: Dialect, step: Fail) -> None:
    """Nothing that waiting can't mend is repeated."""
    waits: list[float] = []
    with serving(dialect, [step, Say("Never")], waits) as (provider, server):
        with pytest.raises(CallFailed):
            provider.complete(request(dialect))
        assert len(server.requests) == 1
    assert waits == []


@EVERY_DIALECT
def test_an_error_inside_a_stream(dialect: Dialect) -> None:
    """A stream that began with 200 and carries an overflow is that overflow."""
    inner = {
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
        "message": "Too long",
        "param": "input",
    }
    body = {"type": "error", "error": inner}
    script = [StreamError(Say("x" * 40), 1, body)]
    with serving(dialect, script) as (provider, _), pytest.raises(CallFailed) as caught:
        provider.complete(request(dialect), lambda text: None)
    assert caught.value.verdict.kind is ErrorKind.INPUT_OVERFLOW


@EVERY_DIALECT
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_an_error_with_status_200(dialect: Dialect, streamed: bool) -> None:
    """A success that holds an error is an error."""
    body = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192}}
    with serving(dialect, [Fail(200, body)] * 2) as (provider, _), pytest.raises(CallFailed) as caught:
        provider.complete(request(dialect), (lambda text: None) if streamed else None)
    assert caught.value.verdict.stated_limit == 8192


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (1039, "token limit", ErrorKind.INPUT_OVERFLOW),
        (2013, "invalid params, context window exceeds limit", ErrorKind.INPUT_OVERFLOW),
        (1008, "insufficient balance", ErrorKind.QUOTA),
    ],
)
def test_a_refusal_in_a_field_of_its_own(code: int, said: str, kind: ErrorKind, streamed: bool) -> None:
    """MiniMax answers 200 without a choice and says in `base_resp` that nothing came of it."""
    body = {"id": "1", "choices": None, "base_resp": {"status_code": code, "status_msg": said}}
    with serving(OPENAI_CHAT, [Fail(200, body)] * 2) as (provider, _), pytest.raises(CallFailed) as caught:
        provider.complete(request(OPENAI_CHAT), (lambda text: None) if streamed else None)
    assert caught.value.verdict.kind is kind


@EVERY_DIALECT
@pytest.mark.parametrize("after", [None, 3], ids=["before the first byte", "while streaming"])
def test_cancelling_from_another_thread(dialect: Dialect, after: int | None) -> None:
    """The call ends at once, though the server would never have answered."""
    release = threading.Event()
    token = CancelToken()
    with serving(dialect, [Hold(Say("A text that never ends."), release, after)]) as (provider, server):
        threading.Thread(target=_cancel_when_asked, args=(server, token), daemon=True).start()
        with pytest.raises(CallCancelled):
            provider.complete(request(dialect, cancel=token), lambda text: None)
        release.set()


def _cancel_when_asked(server: StubServer, token: CancelToken) -> None:
    while not server.requests:
        token.wait(0.01)
    token.wait(0.05)
    token.cancel()


@EVERY_DIALECT
def test_cancelling_while_it_waits_to_try_again(dialect: Dialect) -> None:
    """A wait between two tries ends with the cancellation."""
    token = CancelToken()
    with serving(dialect, [replace(OVERLOADED, headers={"retry-after": "50"})]) as (provider, server):
        threading.Thread(target=_cancel_when_asked, args=(server, token), daemon=True).start()
        with pytest.raises(CallCancelled):
            provider.complete(request(dialect, cancel=token))


@EVERY_DIALECT
def test_an_answer_has_a_deadline(dialect: Dialect) -> None:
    """A stream that stands still is given up when its time is over; the verdict says timeout."""
    release = threading.Event()
    with serving(dialect, [Hold(Say("Never ends."), release, 3)], retry=RetryPolicy(tries=1)) as (provider, _):
        with pytest.raises(CallFailed) as caught:
            provider.complete(request(dialect, timeout=0.3), lambda text: None)
        release.set()
    assert caught.value.verdict.cause == "timeout"


@EVERY_DIALECT
def test_nobody_there(dialect: Dialect) -> None:
    """No server: a transient failure that names the connection."""
    with strict_server() as server:
        url = server.url
    settings = ProviderChoice(MODELS[dialect], "gone", url + "/v1", dialect.name, retry=RetryPolicy(tries=1))
    with pytest.raises(CallFailed) as caught:
        make_provider(settings).complete(request(dialect))
    assert caught.value.verdict.cause == "connection"


@EVERY_DIALECT
def test_an_exception_of_the_reader_ends_the_call(dialect: Dialect) -> None:
    """What `on_text` raises comes out as it is (Ctrl-C among it)."""

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    with serving(dialect, [Say("Some text")]) as (provider, _), pytest.raises(KeyboardInterrupt):
        provider.complete(request(dialect), stop)


THINKING: Message = {
    "role": "assistant",
    "content": "Hm, yes.",
    STATE: {
        "dialect": "anthropic",
        "provider": "stub",
        "family": "anthropic",
        "shape": [8],
        "layout": [{"block": {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}}, {"text": 0}],
    },
}


def test_thinking_is_carried_back() -> None:
    """A signed block that came goes back verbatim with the next request."""
    with serving(ANTHROPIC, [Say(message=THINKING), Say("Good.")]) as (provider, server):
        first = provider.complete(request(ANTHROPIC)).message
        assert first[STATE]["layout"] == THINKING[STATE]["layout"]
        provider.complete(request(ANTHROPIC, [*ASK, first, {"role": "user", "content": "On"}]))
    block = server.bodies()[1]["messages"][1]["content"][0]
    assert block == {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}


def test_refused_thinking_is_dropped_whole_and_for_good() -> None:
    """When a signature no longer fits, the call is repeated without the block, and later calls leave it out."""
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": (
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    )}}  # fmt: skip
    history = [*ASK, THINKING, {"role": "user", "content": "On"}]
    with serving(ANTHROPIC, [Fail(400, refusal), Say("One"), Say("Two")]) as (provider, server):
        provider.complete(request(ANTHROPIC, history))
        provider.complete(request(ANTHROPIC, history))
    kinds = [[block["type"] for block in body["messages"][1]["content"]] for body in server.bodies()]
    assert kinds == [["thinking", "text"], ["text"], ["text"]]


def test_missing_thinking_turns_it_off() -> None:
    """A turn that began without thinking goes on without it."""
    refusal = {"type": "error", "error": {"message": "Expected `thinking` or `redacted_thinking`, but found `text`."}}
    wanted = {"thinking": {"type": "adaptive"}}
    with serving(ANTHROPIC, [Fail(400, refusal), Say("One")]) as (provider, server):
        provider.complete(request(ANTHROPIC, options=wanted))
    assert ["thinking" in body for body in server.bodies()] == [True, False]


def test_what_a_compatible_endpoint_does_not_know_is_left_out() -> None:
    """`stream_options` and `max_tokens` are given up once the endpoint has refused them."""
    first = Fail(400, {"error": {"message": "Unknown field: stream_options"}})
    second = Fail(400, {"error": {"message": (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )}})  # fmt: skip
    with serving(OPENAI_CHAT, [first, second, Say("Hi"), Say("Hi")]) as (provider, server):
        provider.complete(request(OPENAI_CHAT), lambda text: None)
        provider.complete(request(OPENAI_CHAT), lambda text: None)
    assert ["stream_options" in body for body in server.bodies()] == [True, False, False, False]
    assert ["max_completion_tokens" in body for body in server.bodies()] == [False, False, True, True]


@EVERY_DIALECT
def test_an_empty_stream_is_asked_again_whole(dialect: Dialect) -> None:
    """Some servers answer an overflow with an empty stream: without streaming they say what is wrong."""
    overflow = Fail(400, {"error": {"message": "Requested tokens (516) exceed context window of 512"}})
    script = [Cut(Say("x"), 0, clean=True), overflow]
    with serving(dialect, script) as (provider, server), pytest.raises(CallFailed) as caught:
        provider.complete(request(dialect), lambda text: None)
    assert caught.value.verdict.stated_limit == 512
    assert [bool(body.get("stream")) for body in server.bodies()] == [True, False]


@EVERY_DIALECT
def test_keys_go_where_they_belong(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that was given is sent; one that lies in the environment is not."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "canary-key")
    with serving(dialect, [Say("a")], api_key="mine") as (provider, server):
        provider.complete(request(dialect))
    with serving(dialect, [Say("a")]) as (keyless, other):
        keyless.complete(request(dialect))
    assert "mine" in json.dumps(dict(server.requests[0].headers))
    assert "canary-key" not in json.dumps([dict(seen.headers) for seen in (*server.requests, *other.requests)])
    assert "mine" not in repr(provider.endpoint)


@EVERY_DIALECT
def test_text_without_bytes_is_mended(dialect: Dialect) -> None:
    """A lone surrogate travels as the replacement mark instead of breaking the call."""
    with serving(dialect, [Say("ok")]) as (provider, server):
        provider.complete(request(dialect, [{"role": "user", "content": "half \ud83d emoji"}]))
    assert b"half ? emoji" in server.requests[0].raw or "half \ufffd emoji" in server.requests[0].raw.decode()


@EVERY_DIALECT
def test_tool_names_that_no_provider_takes(dialect: Dialect) -> None:
    """A tool may have any name here: it travels under one that fits, and its calls come back under its own."""
    tools = [{"name": "fs.read file", "parameters": {"type": "object", "properties": {}}}]
    with serving(dialect, [Say(None, (("fs_read_file", "{}"),)), Say("Done.")]) as (provider, server):
        first = provider.complete(request(dialect, tools=tools)).message
        assert first["tool_calls"][0]["function"]["name"] == "fs.read file"
        result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "x"}
        provider.complete(request(dialect, [*ASK, first, result], tools=tools))
    assert all(seen.violations == () for seen in server.requests)
