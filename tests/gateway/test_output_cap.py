"""A cap on the answer that is too large for what the window has left: a shorter answer is asked for, nothing folded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.conversation.recovery import LEAST_OUTPUT
from leporello.dialects import ANTHROPIC, OPENAI_RESPONSES, Dialect
from leporello.gateway.proxy.request import output_cap, read_request, with_output_cap
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import ErrorVerdict
from leporello.testing.stub_server import Fail, Say

from .house import House, opened
from .recalls import DIALECTS, PATHS

CAP = 8_000
SUM = (
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, "
    "8000 in the completion). Please reduce the length of the messages or completion."
)


def refusal(message: str) -> Fail:
    inner = {"type": "invalid_request_error", "message": message, "param": "max_tokens", "code": None}
    return Fail(400, {"type": "error", "error": inner})


def body(dialect: Dialect, **more: Any) -> dict[str, Any]:
    key = "input" if dialect is OPENAI_RESPONSES else "messages"
    name = dialect.fields.output_caps[-1]
    return {"model": "m", name: CAP, key: [{"role": "user", "content": "Tell me everything."}], **more}


def post(house: House, dialect: Dialect, **more: Any) -> httpx2.Response:
    return httpx2.post(house.url + PATHS[dialect], json=body(dialect, **more), timeout=60)


def caps(house: House, dialect: Dialect) -> list[Any]:
    return [seen.body.get(dialect.fields.output_caps[-1]) for seen in house.model_calls]


def untouched(house: House, dialect: Dialect) -> None:
    """Everything but the cap is as the client wrote it, and nothing was folded or learned."""
    name = dialect.fields.output_caps[-1]
    plain = [{key: value for key, value in seen.body.items() if key != name} for seen in house.model_calls]
    assert plain == [plain[0]] * len(plain)
    assert [record.generation for record in house.store.conversations.page().conversations] == [0]
    assert not house.gateway.settings.home.limits_file.exists()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_left_is_asked_for(tmp_path: Path, dialect: Dialect) -> None:
    """The error says how much is left: exactly that is asked for."""
    with opened(tmp_path, [refusal(SUM), Say("All of it.")]) as house:
        reply = post(house, dialect)
        assert (reply.status_code, reply.headers["x-leporello"]) == (200, "recovered")
        assert caps(house, dialect) == [CAP, 7_192]
        untouched(house, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_without_numbers(tmp_path: Path, dialect: Dialect) -> None:
    """Nobody says how much is left: half is tried, and half of that, before the error is handed on."""
    vague = refusal("max_tokens is too large")
    with opened(tmp_path, [vague, vague, Say("Most of it."), *[vague] * 4]) as house:
        assert post(house, dialect).headers["x-leporello"] == "recovered"
        assert caps(house, dialect) == [CAP, CAP // 2, CAP // 4]
        untouched(house, dialect)
        reply = post(house, dialect)
        assert reply.status_code == 400
        assert reply.json() == vague.body
        assert caps(house, dialect)[3:] == [CAP, CAP // 2, CAP // 4, CAP // 8]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_window_without_the_rest(tmp_path: Path, dialect: Dialect) -> None:
    """The error states the window only: what the request leaves of it is asked for."""
    stated = refusal(
        "This model's maximum context length is 4096 tokens. However, you requested 8000 output tokens and your prompt "
        "contains at least 3 input tokens, for a total of at least 8003 tokens."
    )
    with opened(tmp_path, [stated, Say("Much of it.")]) as house:
        assert post(house, dialect).status_code == 200
        first, second = caps(house, dialect)
        assert (first, 4_000 < second < 4_096) == (CAP, True)
        untouched(house, dialect)


def test_the_models_own_cap_stands(tmp_path: Path) -> None:
    """More than the model ever writes is the client's mistake, and its library is told by the provider."""
    own = refusal("max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for m")
    with opened(tmp_path, [own]) as house:
        reply = post(house, ANTHROPIC)
        assert (reply.status_code, reply.json()) == (400, own.body)
        assert len(house.model_calls) == 1


def test_thinking_needs_its_room(tmp_path: Path) -> None:
    """A cap below the budget for thinking would be refused for that: the first error is handed on."""
    vague = refusal("max_tokens is too large")
    with opened(tmp_path, [vague]) as house:
        reply = post(house, ANTHROPIC, thinking={"type": "enabled", "budget_tokens": 6_000})
        assert (reply.status_code, reply.json()) == (400, vague.body)


@given(st.sampled_from(DIALECTS), st.integers(-(10**6), 10**6), st.integers(0, 10**6))
def test_never_more_than_was_asked(dialect: Dialect, allowed: int, wanted: int) -> None:
    """Whatever is allowed, the new cap is lower than the refused one and worth an answer; else there is none."""
    name = dialect.fields.output_caps[0]
    data = b'{"model":"m","%s":%d,"messages":[],"input":[]}' % (name.encode(), wanted)
    request = read_request(dialect, data)
    verdict = ErrorVerdict(ErrorKind.OUTPUT_CAP, stated_limit=10**6)
    lower = output_cap(data, request, allowed).lowered(verdict)
    if lower is None:
        assert wanted // 2 < LEAST_OUTPUT
        assert not LEAST_OUTPUT <= allowed < wanted
        return
    cap = read_request(dialect, with_output_cap(data, request, lower)).fields[name]
    assert cap == lower
    assert LEAST_OUTPUT <= cap < wanted
