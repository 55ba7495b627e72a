"""Prompt-cache layouts: where marks stand, what the wire makes of them, and what the cache then reads."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello import caching
from leporello.billing import CacheBlock, CacheSim
from leporello.caching import LAYOUTS, MARK, anchored, cache_options, cache_use, marker, system_and_3
from leporello.dialects import ANTHROPIC, OPENAI_CHAT, Target
from leporello.errors import ConfigError
from leporello.fingerprint import message_fingerprint
from leporello.messages import Message, is_instruction
from leporello.models.facts import CacheRules
from tests.support.strategies import any_conversation, conversations
from tests.support.wire import anthropic_violations, chat_violations

CLAUDE = Target("anthropic", "claude-sonnet-5")
RULES = CacheRules(min_prefix=1, lookback=20, breakpoints=4, ttl_seconds=300, long_ttl_seconds=3600)
LAYOUT = pytest.mark.parametrize("layout", list(LAYOUTS), ids=str)


def marks(messages: list[Message]) -> list[int]:
    """Indices of messages that carry a mark."""
    return [index for index, message in enumerate(messages) if MARK in json.dumps(message)]


def test_system_and_3_in_its_internal_form() -> None:
    """String, list, empty content and results are marked as specified; the input is not changed."""
    messages: list[Message] = [
        {"role": "system", "content": "Rules"},
        {"role": "user", "content": "old"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "out"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    before = copy.deepcopy(messages)
    marked = system_and_3(messages)
    mark = {"type": "ephemeral"}
    assert marked[0]["content"] == [{"type": "text", "text": "Rules", MARK: mark}]
    assert marked[1] is messages[1]
    assert marked[2][MARK] == mark
    assert marked[3][MARK] == mark
    assert marked[4]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b", MARK: mark}]
    assert messages == before
    assert system_and_3(messages, native=False)[3] is messages[3]


def test_the_time_to_live() -> None:
    """Five minutes is the default and not written; an hour is; anything else is an error that says what is allowed."""
    assert marker() == {"type": "ephemeral"}
    assert marker("1h") == {"type": "ephemeral", "ttl": "1h"}
    with pytest.raises(ConfigError, match="5m, 1h"):
        system_and_3([{"role": "user", "content": "x"}], "30m")


def test_anchored_stands_where_it_says() -> None:
    """System (an hour), summary, the last message of the answered request, the end."""
    messages: list[Message] = [
        {"role": "system", "content": "Rules"},
        {"role": "user", "content": "head"},
        {"role": "assistant", "content": "summary"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "next"},
        {"role": "user", "content": "recalled"},
    ]
    marked = anchored(messages, summary=2, stable=6)
    assert marks(marked) == [0, 2, 3, 5]
    assert marked[0]["content"][0][MARK] == {"type": "ephemeral", "ttl": "1h"}
    assert marked[3]["content"][0][MARK] == {"type": "ephemeral"}


@LAYOUT
@given(messages=any_conversation(), ttl=st.sampled_from(["5m", "1h"]))
def test_at_most_four_and_nothing_else_changes(layout: str, messages: list[Message], ttl: str) -> None:
    """Never more than four marks, for any list; without them the messages say what they said."""
    before = copy.deepcopy(messages)
    marked = LAYOUTS[layout](messages, ttl)
    assert len(marks(marked)) - len(marks(messages)) <= 4
    assert messages == before
    wire, plain = (ANTHROPIC.encode_request(listed, target=CLAUDE) for listed in (marked, messages))
    assert unmarked(wire) == unmarked(plain)


def unmarked(wire: dict[str, Any]) -> Any:
    """A request's content without marks."""
    return json.loads(json.dumps(wire), object_hook=lambda item: {k: v for k, v in item.items() if k != MARK})


@LAYOUT
@pytest.mark.parametrize("ttl", caching.TTLS)
@given(messages=conversations(open_calls=False))
def test_the_wire_accepts_every_layout(layout: str, ttl: str, messages: list[Message]) -> None:
    """Marks stand on blocks that may carry them, an hour's before five minutes'."""
    wire = ANTHROPIC.encode_request(LAYOUTS[layout](messages, ttl), target=CLAUDE)
    assert anthropic_violations(wire) == []
    if wire.get("system"):
        assert wire["system"][-1][MARK]


@LAYOUT
def test_an_empty_instruction_carries_no_mark(layout: str) -> None:
    """It is not sent: the mark stands on the last one that is."""
    said = {"role": "system", "content": "Be brief."}
    messages = [said, {"role": "developer", "content": ""}, {"role": "user", "content": "hello"}]
    wire = ANTHROPIC.encode_request(LAYOUTS[layout](messages, "5m"), target=CLAUDE)
    assert wire["system"][-1][MARK]


@given(messages=conversations(open_calls=False))
def test_the_router_accepts_every_layout(messages: list[Message]) -> None:
    """Through a chat endpoint marks stand on text parts."""
    target = Target("openrouter", "anthropic/claude-sonnet-5", cache_marks=True, native=True)
    wire = OPENAI_CHAT.encode_request(system_and_3(messages, native=False), target=target)
    assert chat_violations(wire, marks=True) == []


def blocks(wire: dict[str, Any]) -> list[CacheBlock]:
    """A request as the cache sees it."""
    found = list(wire.get("system", ()))
    for turn in wire["messages"]:
        found.extend(turn["content"])
    return [
        CacheBlock(
            json.dumps({key: value for key, value in block.items() if key != MARK}).encode(),
            1,
            block[MARK].get("ttl", "5m") if MARK in block else None,
        )
        for block in found
    ]


def turn(number: int, calls: int) -> list[Message]:
    """One step of a conversation: an answer with so many parallel calls and their results, or a plain exchange."""
    if not calls:
        return [{"role": "assistant", "content": f"answer {number}"}, {"role": "user", "content": f"ask {number}"}]
    ids = [f"c{number}_{k}" for k in range(calls)]
    asked = [{"id": name, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for name in ids]
    answers: list[Message] = [{"role": "tool", "tool_call_id": name, "content": f"out {name}"} for name in ids]
    return [{"role": "assistant", "content": None, "tool_calls": asked}, *answers]


@given(steps=st.lists(st.integers(0, 60), min_size=1, max_size=12), ttl=st.sampled_from(["5m", "1h"]))
def test_anchored_never_misses(steps: list[int], ttl: str) -> None:
    """However many calls run in parallel, each request reads everything that the one before it sent."""
    cache = CacheSim(RULES)
    messages: list[Message] = [{"role": "system", "content": "Rules"}, {"role": "user", "content": "Go"}]
    sent = 0
    for number, calls in enumerate(steps):
        row = blocks(ANTHROPIC.encode_request(anchored(messages, ttl), target=CLAUDE))
        assert cache.bill(row, now=float(number)).read >= sent
        sent = len(row)
        messages += turn(number, calls)


def test_system_and_3_misses_after_many_parallel_calls() -> None:
    """The reason for the other layout: with a dozen parallel calls the last three marks look back too short."""

    def read(calls: int, layout: str) -> int:
        cache = CacheSim(RULES)
        messages: list[Message] = [{"role": "system", "content": "Rules"}, {"role": "user", "content": "Go"}]
        messages += turn(0, 3)
        cache.bill(blocks(ANTHROPIC.encode_request(LAYOUTS[layout](messages), target=CLAUDE)), now=0.0)
        messages += turn(1, calls)
        wire = ANTHROPIC.encode_request(LAYOUTS[layout](messages), target=CLAUDE)
        return cache.bill(blocks(wire), now=1.0).read

    assert read(10, "system_and_3") == read(10, "anchored") == 8
    assert read(12, "system_and_3") == 1
    assert read(12, "anchored") == 8


def test_a_mark_moves_to_what_can_carry_it() -> None:
    """Empty content and thinking carry no mark: the nearest block before them does, and two never meet."""
    messages: list[Message] = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": None, "tool_calls": [_call("c1"), _call("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "out"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]
    wire = ANTHROPIC.encode_request(system_and_3(messages), target=CLAUDE)
    assert [MARK in block for block in wire["messages"][1]["content"]] == [False, True]
    # The empty result gives its mark to the result before it, which already has one.
    assert [MARK in block for block in wire["messages"][2]["content"]] == [True, False]
    assert anthropic_violations(wire) == []


def _call(name: str) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "ls", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("model", "provider", "base_url", "dialect", "style"),
    [
        ("claude-sonnet-5", "anthropic", "", "anthropic", "marks"),
        ("claude-sonnet-5", "", "", "", "marks"),
        ("claude-sonnet-5", "my-proxy", "https://llm.example.com", "anthropic", "marks"),
        ("anthropic/claude-opus-5.5", "openrouter", "", "openai_chat", "chat_marks"),
        ("anthropic/claude-opus-5.5", "", "https://openrouter.ai/api/v1", "openai_chat", "chat_marks"),
        ("claude-opus-5", "local", "http://127.0.0.1:8080/v1", "openai_chat", "none"),
        ("gpt-6-sol", "openai", "https://api.openai.com/v1", "openai_responses", "key"),
        ("gpt-6-sol", "openrouter", "https://openrouter.ai/api/v1", "openai_chat", "none"),
        ("gpt-oss-120b", "local", "http://127.0.0.1:8080/v1", "openai_chat", "none"),
        ("deepseek-v4", "deepseek", "", "anthropic", "none"),
        ("qwen3-coder", "anthropic", "", "anthropic", "none"),
    ],
)
def test_when_it_is_on(model: str, provider: str, base_url: str, dialect: str, style: str) -> None:
    """Claude at Anthropic or through OpenRouter gets marks, OpenAI's own models a key, all others nothing."""
    assert cache_use(model, provider, base_url, dialect).style == style


def test_the_key() -> None:
    """A conversation keeps one key that fits the field; the line at start says who and how long."""
    use = cache_use("gpt-6-sol", "openai")
    assert cache_options(use, "build-42") == {"prompt_cache_key": "build-42"}
    assert len(cache_options(use, "x" * 200)["prompt_cache_key"]) == 64
    assert cache_options(cache_use("claude-sonnet-5"), "build-42") == {}


@LAYOUT
@given(messages=conversations())
def test_only_marks_are_added(layout: str, messages: list[Message]) -> None:
    """Removing the marks gives back messages that say the same; instructions keep their place."""
    marked = LAYOUTS[layout](messages)
    assert [is_instruction(message) for message in marked] == [is_instruction(message) for message in messages]
    assert [message_fingerprint(message) for message in marked] == [
        message_fingerprint(message) for message in messages
    ]
