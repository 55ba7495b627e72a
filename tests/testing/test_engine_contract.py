"""The engine contract accepts a simple honest engine and catches engines that break one promise each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leporello.engines.base import ContextEngine
from leporello.messages import Message, is_instruction, role_of
from leporello.testing import EngineContract
from leporello.tokens import TokenCounter
from leporello.turns import groups, open_group


class Plain(ContextEngine):
    """Keeps instructions, the newest user message and what fits of the end; forgets the rest."""

    name = "plain"

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)
        self.last_completion_tokens = usage.get("completion_tokens", 0)
        self.last_total_tokens = usage.get("total_tokens", 0)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return (self.last_prompt_tokens if prompt_tokens is None else prompt_tokens) >= self.threshold_tokens > 0

    def compress(
        self, messages: list[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        counter = TokenCounter.for_model(None)
        budget = self.context_length // 4
        if counter.messages(messages) <= budget:
            return list(messages)
        self.compression_count += 1
        head = [message for message in messages if is_instruction(message)]
        newest = next(message for message in reversed(messages) if role_of(message) == "user")
        start = len(messages)
        for group in reversed(groups(messages)):
            budget -= counter.messages(messages[group.start : group.stop])
            if budget < 0 and start < len(messages):
                break
            start = group.start
        tail = [message for message in messages[start:] if message is not newest and not is_instruction(message)]
        while open_group(messages) is None and tail and role_of(tail[0]) == "user":
            tail = tail[1:]
        return [*head, newest, *tail]


class PlainContract(EngineContract):
    """The contract on the honest engine."""

    name = "plain"
    engine_class: type[ContextEngine] = Plain

    def make_engine(self, context_length: int) -> ContextEngine:
        return self.engine_class(context_length=context_length)


class TestPlain(PlainContract):
    """The honest engine passes all of it."""


class ForgetsUsage(Plain):
    def update_from_response(self, usage: dict[str, Any]) -> None:
        pass


class CountsCompletion(Plain):
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return (prompt_tokens or self.last_total_tokens) >= self.threshold_tokens


class FiresTooEarly(Plain):
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return super().should_compress((prompt_tokens or 0) + 1)


class SharedCounters(Plain):
    def update_from_response(self, usage: dict[str, Any]) -> None:
        type(self).last_prompt_tokens = usage.get("prompt_tokens", 0)


class KeepsThreshold(Plain):
    def update_model(self, model: str, context_length: int, *_: str, **__: str) -> None:
        self.context_length = context_length


class CutsAnywhere(Plain):
    def compress(self, messages: list[Message], *_: Any, **__: Any) -> list[Message]:
        self.compression_count += 1
        return messages[:2] + messages[-10:] if len(messages) > 12 else list(messages)


class Appends(Plain):
    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        result = super().compress(messages, *args, **kwargs)
        messages.append({"role": "assistant", "content": "compressed"})
        return result


class ShortensInPlace(Plain):
    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        for message in messages:
            if role_of(message) == "tool":
                message["content"] = "cleared"
        return super().compress(messages, *args, **kwargs)


class LosesTheRequest(Plain):
    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        result = super().compress(messages, *args, **kwargs)
        return [{**m, "content": "(summarised)"} if role_of(m) == "user" else m for m in result]


class DropsOpenCalls(Plain):
    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        group = open_group(messages)
        return super().compress(messages[: group.start] if group else messages, *args, **kwargs)


class DoesNothing(Plain):
    def compress(self, messages: list[Message], *_: Any, **__: Any) -> list[Message]:
        return list(messages)


class NeverCounts(Plain):
    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        result = super().compress(messages, *args, **kwargs)
        self.compression_count = 0
        return result


class KeepsCountAtReset(Plain):
    def on_session_reset(self) -> None:
        pass


class ThinStatus(Plain):
    def get_status(self) -> dict[str, Any]:
        return {"context_length": self.context_length}


class RaisesOnUnknownTool(Plain):
    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        return json.dumps({"ok": True})


@pytest.mark.parametrize(
    ("engine", "test"),
    [
        (ForgetsUsage, "test_usage_lands_in_the_counters"),
        (CountsCompletion, "test_completion_tokens_never_trigger"),
        (FiresTooEarly, "test_fires_at_the_threshold_and_not_below"),
        (SharedCounters, "test_two_instances_share_nothing"),
        (KeepsThreshold, "test_a_smaller_model_lowers_the_threshold"),
        (CutsAnywhere, "test_the_result_is_a_list_that_providers_accept"),
        (Appends, "test_the_input_list_is_left_alone"),
        (ShortensInPlace, "test_the_input_list_is_left_alone"),
        (LosesTheRequest, "test_the_newest_user_message_stands_byte_for_byte"),
        (DropsOpenCalls, "test_open_calls_are_not_touched"),
        (DoesNothing, "test_a_session_beyond_the_window_gets_smaller_and_fits"),
        (NeverCounts, "test_every_attempt_counts_once"),
        (KeepsCountAtReset, "test_reset_zeroes_the_counters"),
        (ThinStatus, "test_status_agrees_with_the_attributes"),
        (RaisesOnUnknownTool, "test_tool_answers_are_json_even_for_nonsense"),
    ],
)
def test_a_broken_engine_is_caught(engine: type[ContextEngine], test: str) -> None:
    contract = PlainContract()
    contract.engine_class = engine
    with pytest.raises(AssertionError):
        getattr(contract, test)()
