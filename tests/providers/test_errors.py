"""The golden corpus of real error bodies, and what must hold for every body that is not in it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.providers import error_rules
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, classify
from tests.support.error_samples import ERROR_SAMPLES

BY_ID = {entry["id"]: entry for entry in ERROR_SAMPLES}
REAL = [entry for entry in ERROR_SAMPLES if not entry.get("invented")]
FIELDS = {
    "limit": "stated_limit",
    "input": "requested",
    "output": "requested_output",
    "allowed": "allowed_output",
    "retry_after": "retry_after",
    "cause": "cause",
}


def test_the_corpus_is_large_real_and_sourced() -> None:
    """At least 60 bodies are real, each with the public page it was read from; no id is used twice."""
    assert len(REAL) >= 60
    assert len(BY_ID) == len(ERROR_SAMPLES)
    assert all(entry["source"].startswith("https://") for entry in REAL)
    seen = Counter(entry["kind"] for entry in REAL)
    assert set(seen) >= {kind.value for kind in ErrorKind} - {"unknown"}


def test_overflows_of_many_vendors_and_servers_are_known() -> None:
    """Vendors and servers whose own words for "too long" are in the corpus, with the page each was read from."""
    known = {entry["provider"] for entry in REAL if entry["kind"] == "input_overflow"}
    assert len(known) >= 40
    assert known >= {
        "ollama",
        "cohere",
        "zhipu",
        "dashscope",
        "volcengine",
        "baidu",
        "deepseek",
        "watsonx",
        "snowflake",
    }


@pytest.mark.parametrize("entry", ERROR_SAMPLES, ids=lambda entry: entry["id"])
def test_every_body_of_the_corpus(entry: dict[str, Any]) -> None:
    """Kind and stated numbers are exactly as annotated."""
    verdict = classify(entry["status"], entry["body"], entry.get("headers"))
    expected = entry.get("expect", {})
    assert verdict.kind == entry["kind"]
    assert {name: getattr(verdict, FIELDS[name]) for name in expected} == expected


@pytest.mark.parametrize("entry", ERROR_SAMPLES, ids=lambda entry: entry["id"])
def test_only_foldable_kinds_fold(entry: dict[str, Any]) -> None:
    """Nothing but a proven overflow or a body too large may lead to a compaction."""
    verdict = classify(entry["status"], entry["body"])
    assert verdict.foldable == (entry["kind"] in ("input_overflow", "payload_too_large"))
    if entry["kind"] not in ("input_overflow", "output_cap"):
        assert verdict.stated_limit is None


def test_every_rule_is_shown_by_its_sample() -> None:
    """No line of the table is there without the body it was made for."""
    sized = (*error_rules.OUTPUT_CAPS, *error_rules.SUMS, *error_rules.INPUTS)
    for rule in (*sized, *error_rules.OVERRIDES, *error_rules.PHRASES):
        body = BY_ID[rule.sample]["body"]
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False).replace('\\"', '"')
        assert rule.pattern.search(text), rule.sample
    for code, (kind, sample) in error_rules.CODES.items():
        assert code in json.dumps(BY_ID[sample]["body"]).lower(), sample
        if code != "rate_limit_exceeded":
            assert kind == BY_ID[sample]["kind"]


def _as_bytes(body: Any) -> Any:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _inner(body: Any) -> Any:
    # The official OpenAI client hands on the inner object only.
    return body["error"] if isinstance(body, dict) and isinstance(body.get("error"), dict) else body


def _openrouter(body: Any) -> Any:
    raw = body if isinstance(body, str) else json.dumps(body)
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}


def _router_text(body: Any) -> Any:
    raw = body if isinstance(body, str) else json.dumps(body)
    return {"error": {"message": f"litellm.BadRequestError: SomeException - {raw}. Received Model Group=x"}}


@pytest.mark.parametrize("wrap", [_as_bytes, _inner, _openrouter, _router_text], ids=lambda wrap: wrap.__name__)
@pytest.mark.parametrize("entry", [entry for entry in ERROR_SAMPLES if entry["body"]], ids=lambda entry: entry["id"])
def test_routers_do_not_hide_the_cause(entry: dict[str, Any], wrap: Any) -> None:
    """Bytes, the client's inner object, and bodies inside a router's body are judged like the body itself."""
    verdict = classify(entry["status"], wrap(entry["body"]))
    assert verdict.kind == entry["kind"]
    for name, value in entry.get("expect", {}).items():
        assert getattr(verdict, FIELDS[name]) == value


@given(st.none() | st.integers(100, 599), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "n_ctx", "detail", "raw", "x"]), inner),
    max_leaves=12,
) | st.binary(max_size=60))  # fmt: skip
def test_any_body_is_judged(status: int | None, body: Any) -> None:
    """Whatever arrives, there is a verdict; an overflow is never claimed without words or numbers for it."""
    verdict = classify(status, body)
    assert isinstance(verdict.kind, ErrorKind)
    assert verdict.stated_limit is None or verdict.kind in (ErrorKind.INPUT_OVERFLOW, ErrorKind.OUTPUT_CAP)


def test_deep_nesting_is_survived() -> None:
    """A body nested beyond reason is judged by its status."""
    body: Any = "deep"
    for _ in range(2_000):
        body = {"error": body}
    assert classify(500, body).kind is ErrorKind.TRANSIENT
    assert classify(400, "[" * 5_000).kind is ErrorKind.MALFORMED


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth"), (403, "auth"), (402, "quota"), (404, "malformed"), (408, "transient"), (409, "transient"),
        (413, "payload_too_large"), (422, "malformed"), (429, "rate_limit"), (500, "transient"), (503, "transient"),
        (599, "transient"), (None, "unknown"), (418, "unknown"),
    ],
)  # fmt: skip
def test_a_bare_status(status: int | None, kind: str) -> None:
    """With nothing to read, the status decides."""
    assert classify(status, None).kind == kind


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "Sat, 15 Nov 2025 12:00:30 GMT"}, "", 30.0),
        ({"retry-after": "soon"}, "Please try again in 6m0s.", 360.0),
        ({}, {"error": {"details": [{"retryDelay": "34s"}]}}, 34.0),
        ({}, "Please retry after 12 seconds", 12.0),
        ({}, "nothing said", None),
        ({"retry-after": "-3"}, "", 0.0),
    ],
)  # fmt: skip
def test_how_long_to_wait(headers: dict[str, str], body: Any, expected: float | None) -> None:
    """Headers win over words; dates need the clock."""
    noon = 1763208000.0
    assert classify(429, body, headers, now=noon).retry_after == expected


def test_the_exception_is_kind_and_keeps_keys_to_itself() -> None:
    """The text says what happened and what to do, and no key of the user is repeated in it."""
    body = {"error": {"message": "Incorrect API key provided: sk-proj-abcdefgh12345678.", "code": "invalid_api_key"}}
    error = CallFailed(classify(401, body), "openai", "gpt-6")
    assert "sk-proj" not in str(error)
    assert "Check the key" in str(error)
    assert error.verdict.kind is ErrorKind.AUTH


def test_commas_in_numbers() -> None:
    """`200,000` is a number."""
    verdict = classify(400, "prompt is too long: 219,898 tokens > 200,000 maximum")
    assert (verdict.stated_limit, verdict.requested) == (200_000, 219_898)
