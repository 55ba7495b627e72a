"""`CanonicalUsage`: three wire shapes and their oddities give the same five buckets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import anthropic.types
import openai.types
import openai.types.responses
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.usage import CanonicalUsage

parse = CanonicalUsage.parse


def buckets(usage: CanonicalUsage) -> tuple[int, int, int, int, int]:
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


ANTHROPIC = {
    "input_tokens": 12,
    "output_tokens": 340,
    "cache_read_input_tokens": 90_000,
    "cache_creation_input_tokens": 1_500,
}
CHAT = {
    "prompt_tokens": 91_512,
    "completion_tokens": 340,
    "total_tokens": 91_852,
    "prompt_tokens_details": {"cached_tokens": 90_000, "cache_write_tokens": 1_500},
    "completion_tokens_details": {"reasoning_tokens": 100},
}
RESPONSES = {
    "input_tokens": 91_512,
    "output_tokens": 340,
    "total_tokens": 91_852,
    "input_tokens_details": {"cached_tokens": 90_000, "cache_write_tokens": 1_500},
    "output_tokens_details": {"reasoning_tokens": 100},
}


@pytest.mark.parametrize(("shape", "reasoning"), [(ANTHROPIC, 0), (CHAT, 100), (RESPONSES, 100)])
def test_one_call_reads_the_same_in_every_shape(shape: dict[str, Any], reasoning: int) -> None:
    """Anthropic's input excludes the cache, the other totals include it; after reading they agree."""
    usage = parse(shape)
    assert buckets(usage) == (12, 340, 90_000, 1_500, reasoning)
    assert usage.prompt_tokens == 91_512
    assert usage.total_tokens == 91_852


def test_sdk_objects_are_read() -> None:
    """The objects that the vendors' own libraries return."""
    message = anthropic.types.Usage.model_validate(ANTHROPIC)
    assert buckets(parse(message)) == (12, 340, 90_000, 1_500, 0)
    chat = openai.types.CompletionUsage.model_validate(CHAT)
    assert buckets(parse(chat)) == (12, 340, 90_000, 1_500, 100)
    response = openai.types.responses.ResponseUsage.model_validate(RESPONSES)
    assert buckets(parse(response)) == (12, 340, 90_000, 1_500, 100)


def test_objects_without_a_dict_are_read() -> None:
    """Namespaces, slots and properties, nested too."""

    class Slotted:
        __slots__ = ("completion_tokens", "prompt_tokens", "prompt_tokens_details")

    usage = Slotted()
    usage.prompt_tokens = 100
    usage.completion_tokens = 7
    usage.prompt_tokens_details = SimpleNamespace(cached_tokens=60)
    assert buckets(parse(usage)) == (40, 7, 60, 0, 0)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (None, (0, 0, 0, 0, 0)),
        ({}, (0, 0, 0, 0, 0)),
        (5, (0, 0, 0, 0, 0)),
        # Anthropic
        ({"input_tokens": 10, "output_tokens": 5}, (10, 5, 0, 0, 0)),
        ({**ANTHROPIC, "cache_read_input_tokens": None}, (12, 340, 0, 1_500, 0)),
        ({"input_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}, (3, 0, 0, 0, 0)),
        (
            {
                "input_tokens": 3,
                "output_tokens": 1,
                "cache_read_input_tokens": 2,
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6},
            },
            (3, 1, 2, 10, 0),
        ),
        ({**ANTHROPIC, "output_tokens_details": {"thinking_tokens": 40}}, (12, 340, 90_000, 1_500, 40)),
        # Responses
        ({"input_tokens": 50, "output_tokens": 5, "total_tokens": 55}, (50, 5, 0, 0, 0)),
        ({**RESPONSES, "input_tokens_details": None}, (91_512, 340, 0, 0, 100)),
        (
            {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 20, "cache_creation_tokens": 9}},
            (21, 0, 20, 9, 0),
        ),
        # Chat Completions
        ({"prompt_tokens": 50, "completion_tokens": 5}, (50, 5, 0, 0, 0)),
        ({"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": None}, (50, 5, 0, 0, 0)),
        ({"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": None}}, (50, 0, 0, 0, 0)),
        ({"prompt_tokens": 50, "completion_tokens": 5, "prompt_cache_hit_tokens": 30}, (20, 5, 30, 0, 0)),
        ({"prompt_tokens": 50, "completion_tokens": 5, "cached_tokens": 30}, (20, 5, 30, 0, 0)),
        ({"prompt_tokens": None, "input_tokens": 7, "output_tokens": 2}, (7, 2, 0, 0, 0)),
        # A router that adds Anthropic's fields to OpenAI's totals
        (
            {
                "prompt_tokens": 91_512,
                "completion_tokens": 340,
                "cache_read_input_tokens": 90_000,
                "cache_creation_input_tokens": 1_500,
            },
            (12, 340, 90_000, 1_500, 0),
        ),
        # More cached than there is prompt
        (
            {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}},
            (0, 5, 80, 0, 0),
        ),
        # Reasoning only
        ({"prompt_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 90}}, (50, 90, 0, 0, 90)),
        # xAI: the completion leaves reasoning out
        (
            {
                "prompt_tokens": 50,
                "completion_tokens": 5,
                "total_tokens": 145,
                "completion_tokens_details": {"reasoning_tokens": 90},
            },
            (50, 95, 0, 0, 90),
        ),
        # Nonsense
        ({"prompt_tokens": -50, "completion_tokens": "many"}, (0, 0, 0, 0, 0)),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, (0, 0, 0, 0, 0)),
        ({"prompt_tokens": True, "completion_tokens": 5.0}, (0, 5, 0, 0, 0)),
        ({"prompt_tokens": 5, "prompt_tokens_details": "none"}, (5, 0, 0, 0, 0)),
    ],
)
def test_missing_null_zero_and_odd_counts(shape: Any, expected: tuple[int, ...]) -> None:
    """Every variant that providers and routers are known to send."""
    assert buckets(parse(shape)) == expected


any_count = st.none() | st.booleans() | st.integers(-5, 10**7) | st.floats() | st.text(max_size=3)
details = st.none() | st.text(max_size=3) | st.dictionaries(
    st.sampled_from(["cached_tokens", "cache_write_tokens", "cache_creation_tokens", "reasoning_tokens"]), any_count
)  # fmt: skip
shapes = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(ANTHROPIC, any_count),
        **dict.fromkeys(["prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens"], any_count),
        "prompt_tokens_details": details,
        "completion_tokens_details": details,
        "input_tokens_details": details,
        "output_tokens_details": details,
    },
)


@given(shapes)
def test_nothing_a_provider_sends_breaks_the_counters(shape: dict[str, Any]) -> None:
    """Five whole numbers, none negative, and the totals follow from them."""
    usage = parse(shape)
    assert all(isinstance(value, int) and value >= 0 for value in buckets(usage))
    assert usage.prompt_tokens == usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.output_tokens
    assert usage.reasoning_tokens <= usage.output_tokens


@given(total=st.integers(0, 10**7), read=st.integers(0, 10**7), write=st.integers(0, 10**7))
def test_inclusive_totals_are_kept_when_they_can_be(total: int, read: int, write: int) -> None:
    """Subtracting the cache never loses a prompt token, and never goes below zero."""
    usage = parse(
        {"prompt_tokens": total, "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": write}}
    )
    assert usage.prompt_tokens == max(total, read + write)
    assert usage.input_tokens >= 0


counts = st.integers(0, 10**6)
usages = st.builds(CanonicalUsage, counts, counts, counts, counts, counts)


@given(usages, usages)
def test_counters_add_up(one: CanonicalUsage, other: CanonicalUsage) -> None:
    """Session rows are sums, bucket by bucket."""
    assert buckets(one + other) == tuple(a + b for a, b in zip(buckets(one), buckets(other), strict=True))
    assert (one + other).total_tokens == one.total_tokens + other.total_tokens


@given(usages)
def test_engines_get_three_totals_and_five_buckets(usage: CanonicalUsage) -> None:
    """What `update_from_response` receives always has all eight names."""
    given_to_engine = usage.as_engine_dict()
    assert given_to_engine["prompt_tokens"] == usage.prompt_tokens
    assert given_to_engine["completion_tokens"] == usage.output_tokens
    assert given_to_engine["total_tokens"] == usage.total_tokens
    assert set(given_to_engine) == {
        "prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "cache_read_tokens",
        "cache_write_tokens", "reasoning_tokens",
    }  # fmt: skip
