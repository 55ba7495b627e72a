"""`EngineContract`: the suite that every `ContextEngine` has to pass, ours and other people's."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from leporello.engines.base import ContextEngine
from leporello.errors import LeporelloError
from leporello.messages import Message, decode_json, encode_json, is_instruction, message_hash, role_of
from leporello.summaries.fold import is_fold
from leporello.testing.broken_lists import broken_lists
from leporello.testing.sessions import SessionSpec, Style, generate
from leporello.tokens import TokenCounter
from leporello.turns import open_group, validate
from leporello.usage import CanonicalUsage

BROKEN_LISTS = 40


def newest_user(messages: Sequence[Message]) -> Message | None:
    """The newest message of the user; our own folds don't count as one."""
    return next(
        (message for message in reversed(messages) if role_of(message) == "user" and not is_fold(message)), None
    )


@cache
def _encoded(spec: SessionSpec) -> bytes:
    return encode_json(generate(spec).messages)


COUNTERS = ("last_prompt_tokens", "last_completion_tokens", "last_total_tokens", "compression_count")
STATUS_KEYS = ("last_prompt_tokens", "threshold_tokens", "context_length", "usage_percent", "compression_count")
SESSION_START = {"platform": "cli", "model": "m", "conversation_id": "c1", "hermes_home": "/nowhere"}


def usage(prompt: int, completion: int = 10) -> dict[str, Any]:
    """Usage as a host hands it over: three totals and five buckets."""
    return CanonicalUsage(input_tokens=prompt, output_tokens=completion).as_engine_dict()


def _is_json(text: object) -> bool:
    try:
        json.loads(str(text))
    except ValueError:
        return False
    return isinstance(text, str)


class InterfaceContract:
    """Everything but `compress`: name, counters, lifecycle, trigger, status, model changes, tools."""

    name: str = ""
    """The name under which the config selects the engine; empty: any non-empty name will do."""

    context_length: int = 48_000
    """The window the engine is tested with."""

    def make_engine(self, context_length: int) -> ContextEngine:
        """A fresh engine for a window of that many tokens."""
        raise NotImplementedError("EngineContract: implement make_engine(context_length)")

    def engine(self) -> ContextEngine:
        """A fresh engine in a session that has just begun."""
        engine = self.make_engine(self.context_length)
        engine.on_session_start("s1", **SESSION_START)
        return engine

    def given(self, messages: list[Message]) -> list[Message]:
        """A list as the engine's host hands it over."""
        return messages

    # --- name and attributes ------------------------------------------------------------------------------------

    def test_is_a_context_engine_with_a_stable_name(self) -> None:
        engine = self.make_engine(self.context_length)
        assert isinstance(engine, ContextEngine), "the engine is not a ContextEngine"
        assert isinstance(engine.name, str)
        assert engine.name, "the engine's name must be a non-empty text"
        assert not self.name or engine.name == self.name, f"the name is {engine.name!r}, selected as {self.name!r}"
        assert engine.name == self.make_engine(self.context_length).name, "the name differs between two instances"

    def test_counters_start_at_zero(self) -> None:
        engine = self.make_engine(self.context_length)
        for counter in COUNTERS:
            assert getattr(engine, counter) == 0, f"{counter} is {getattr(engine, counter)} in a fresh engine"

    def test_window_and_threshold_are_plain_attributes(self) -> None:
        engine = self.engine()
        assert engine.context_length == self.context_length, "context_length is not the window it was made for"
        assert isinstance(engine.threshold_tokens, int)
        assert 0 < engine.threshold_tokens <= engine.context_length, "threshold_tokens lies outside the window"
        assert 0.0 < engine.threshold_percent <= 1.0, "threshold_percent is a share between 0 and 1"
        assert engine.protect_first_n >= 0
        assert engine.protect_last_n >= 0

    def test_two_instances_share_nothing(self) -> None:
        one, other = self.engine(), self.engine()
        one.update_from_response(usage(1_000))
        one.update_model("m", self.context_length // 2)
        assert other.last_prompt_tokens == 0, "usage of one instance shows up in another"
        assert other.context_length == self.context_length, "a model change of one instance reaches another"

    # --- lifecycle ----------------------------------------------------------------------------------------------

    def test_lifecycle_in_the_order_a_host_calls_it(self) -> None:
        engine = self.make_engine(self.context_length)
        messages = self.given(generate(seed=11, messages=20, huge_outputs=0).messages)
        before = encode_json(messages)
        engine.on_session_start("s1", **SESSION_START)
        engine.update_from_response(usage(500))
        assert engine.should_compress() is False, "wants to compress a session of 500 tokens"
        engine.on_session_start("s2", boundary_reason="compression", old_session_id="s1", **SESSION_START)
        engine.on_session_end("s2", messages)
        assert encode_json(messages) == before, "on_session_end changed the messages"

    def test_session_start_takes_keywords_it_does_not_know(self) -> None:
        self.make_engine(self.context_length).on_session_start("s1", some_keyword_of_a_newer_host=1)

    def test_reset_zeroes_the_counters(self) -> None:
        engine = self.engine()
        engine.update_from_response(usage(5_000, 70))
        engine.compression_count = 3
        engine.on_session_reset()
        for counter in COUNTERS:
            assert getattr(engine, counter) == 0, f"{counter} survives a reset"
        assert engine.context_length == self.context_length, "a reset lost the window"

    # --- usage and trigger --------------------------------------------------------------------------------------

    def test_usage_lands_in_the_counters(self) -> None:
        engine = self.engine()
        engine.update_from_response(usage(1_200, 30))
        taken = engine.last_prompt_tokens, engine.last_completion_tokens, engine.last_total_tokens
        assert taken == (1_200, 30, 1_230), f"prompt, completion and total are {taken}, not (1200, 30, 1230)"
        engine.update_from_response(usage(900, 5))
        assert engine.last_prompt_tokens == 900, "usage is the last call's, not a sum"

    def test_usage_with_totals_only_is_enough(self) -> None:
        engine = self.engine()
        engine.update_from_response({"prompt_tokens": 77, "completion_tokens": 3, "total_tokens": 80})
        assert engine.last_prompt_tokens == 77, "prompt_tokens was not taken"

    def test_empty_usage_does_no_harm(self) -> None:
        engine = self.engine()
        engine.update_from_response(usage(0, 0))
        engine.update_from_response({})
        assert engine.should_compress() is False, "fires without any tokens"

    def test_fires_at_the_threshold_and_not_below(self) -> None:
        engine = self.engine()
        assert engine.should_compress(engine.threshold_tokens) is True, "does not fire at the threshold"
        assert engine.should_compress(engine.threshold_tokens - 1) is False, "fires below the threshold"

    def test_judges_by_the_last_prompt_when_no_number_is_given(self) -> None:
        engine = self.engine()
        assert engine.should_compress() is False, "fires before anything is known"
        engine.update_from_response(usage(engine.threshold_tokens))
        assert engine.should_compress() is True, "does not fire when the last prompt was at the threshold"
        assert engine.should_compress(10) is False, "a given number wins over the last usage"

    def test_completion_tokens_never_trigger(self) -> None:
        engine = self.engine()
        engine.update_from_response(usage(engine.threshold_tokens // 4, completion=engine.context_length * 2))
        assert engine.should_compress() is False, "completion tokens were counted"

    def test_cached_tokens_fill_the_window_too(self) -> None:
        engine = self.engine()
        cached = CanonicalUsage(input_tokens=1, cache_read_tokens=engine.threshold_tokens, output_tokens=1)
        engine.update_from_response(cached.as_engine_dict())
        assert engine.should_compress() is True, "cached prompt tokens were left out"

    def test_optional_looks_answer_with_a_bool(self) -> None:
        engine = self.engine()
        messages = self.given(generate(seed=12, messages=30, huge_outputs=0).messages)
        before = encode_json(messages)
        assert isinstance(engine.should_compress_preflight(messages), bool)
        assert isinstance(engine.has_content_to_compress(messages), bool)
        assert engine.should_compress_preflight([]) is False, "an empty session needs no preflight compression"
        assert encode_json(messages) == before, "looking changed the messages"

    # --- model, status, tools -----------------------------------------------------------------------------------

    def test_a_smaller_model_lowers_the_threshold(self) -> None:
        engine = self.engine()
        before = engine.threshold_tokens
        engine.update_model(
            "small", self.context_length // 4, base_url="http://x", api_key="k", provider="p", api_mode="chat"
        )
        assert engine.context_length == self.context_length // 4, "context_length is not the new model's"
        assert 0 < engine.threshold_tokens < before, "the threshold did not follow the window"
        engine.update_model("large", self.context_length)
        assert engine.threshold_tokens == before, "the threshold does not come back with the window"

    def test_status_agrees_with_the_attributes(self) -> None:
        engine = self.engine()
        engine.update_from_response(usage(engine.context_length // 4))
        status = engine.get_status()
        for key in STATUS_KEYS:
            assert key in status, f"get_status() lacks {key}"
        for key in ("last_prompt_tokens", "threshold_tokens", "context_length", "compression_count"):
            assert status[key] == getattr(engine, key), f"get_status()[{key!r}] differs from the attribute"
        assert 24.0 <= status["usage_percent"] <= 26.0, "usage_percent is a percentage of the window"
        json.dumps(status)

    def test_status_of_an_overfull_session_stays_at_a_hundred(self) -> None:
        engine = self.engine()
        engine.update_from_response(usage(engine.context_length * 3))
        assert engine.get_status()["usage_percent"] <= 100.0, "usage_percent is above 100"

    def test_tool_schemas_are_proper_functions(self) -> None:
        schemas = self.engine().get_tool_schemas()
        assert isinstance(schemas, list)
        names = []
        for schema in schemas:
            function = schema.get("function", schema)
            assert function.get("name"), f"a tool without a name: {schema}"
            assert function.get("description"), f"{function.get('name')} has no description"
            assert function.get("parameters", {}).get("type") == "object", f"{function['name']} takes no object"
            names.append(function["name"])
        assert len(set(names)) == len(names), f"a tool name occurs twice: {names}"
        json.dumps(schemas)

    def test_tool_answers_are_json_even_for_nonsense(self) -> None:
        engine = self.engine()
        messages = self.given(generate(seed=13, messages=10, huge_outputs=0).messages)
        names = [schema.get("function", schema)["name"] for schema in engine.get_tool_schemas()]
        for name in ("no_such_tool", *names):
            for arguments in ({}, {"no_such_argument": 1}):
                told = engine.handle_tool_call(name, arguments, messages=messages)
                assert _is_json(told), f"{name} was answered with {str(told)[:60]!r}, which is not JSON"
        unknown = json.loads(engine.handle_tool_call("no_such_tool", {}, messages=messages))
        assert isinstance(unknown, dict), "an unknown tool must be answered with an error"
        assert unknown.get("error"), "an unknown tool must be answered with an error"


class EngineContract(InterfaceContract):
    """The whole contract; subclass it and implement `make_engine`."""

    def sessions(self) -> Iterator[list[Message]]:
        """Sessions of every shape, each beyond the window."""
        tokens = self.context_length * 3 // 2
        for spec in (
            SessionSpec(seed=21, messages=240, tokens=tokens),
            SessionSpec(seed=22, messages=120, tokens=tokens, style=Style.ONE_ASK),
            SessionSpec(seed=23, messages=120, tokens=tokens, style=Style.ALL_TOOL, reuse_call_ids=True),
            SessionSpec(seed=24, messages=160, tokens=tokens, style=Style.CHAT),
            SessionSpec(seed=25, messages=200, tokens=tokens, open_calls=True),
            SessionSpec(seed=26, messages=90, tokens=tokens, huge_outputs=2, images=3),
        ):
            # Fresh objects each time: an engine that changes its input must not spoil the next test.
            yield self.given(decode_json(_encoded(spec)))
        yield self.given([{"role": "system", "content": "Be careful."}, *decode_json(_encoded(spec))])

    def compressed(self, messages: list[Message]) -> list[Message]:
        return self.engine().compress(messages, current_tokens=self.tokens(messages))

    def tokens(self, messages: Sequence[Message]) -> int:
        return TokenCounter.for_model(None).messages(messages)

    def test_the_result_is_a_list_that_providers_accept(self) -> None:
        for messages in self.sessions():
            result = self.compressed(messages)
            assert isinstance(result, list), f"compress returned a {type(result).__name__}"
            assert validate(result) == [], f"a provider would refuse it: {validate(result)[0]}"

    def test_a_session_beyond_the_window_gets_smaller_and_fits(self) -> None:
        for messages in self.sessions():
            after = self.tokens(self.compressed(messages))
            asked = sum(role_of(message) == "user" for message in messages)
            told = f"the result is not smaller ({len(messages)} messages, {asked} of the user)"
            assert after < self.tokens(messages), told
            assert after < self.context_length, f"the result of {after:,} tokens is still beyond the window"

    def test_the_input_list_is_left_alone(self) -> None:
        for messages in self.sessions():
            before, objects = encode_json(messages), [id(message) for message in messages]
            self.compressed(messages)
            assert encode_json(messages) == before, "compress changed a message of its input"
            assert [id(message) for message in messages] == objects, "compress changed the input list"

    def test_the_newest_user_message_stands_byte_for_byte(self) -> None:
        for messages in self.sessions():
            newest = newest_user(messages)
            assert newest is not None
            result = self.compressed(messages)
            assert encode_json(newest) in [encode_json(message) for message in result], "the newest request is gone"

    def test_instructions_at_the_top_stay(self) -> None:
        for messages in self.sessions():
            if is_instruction(messages[0]):
                assert self.compressed(messages)[0] == messages[0], "the system message was changed or moved"

    def test_open_calls_are_not_touched(self) -> None:
        for messages in self.sessions():
            group = open_group(messages)
            if group is not None:
                count = len(messages) - group.start
                assert self.compressed(messages)[-count:] == messages[-count:], "work in progress was changed"

    def test_kept_messages_keep_their_order(self) -> None:
        for messages in self.sessions():
            hashes = [message_hash(message) for message in messages]
            # Messages that occur several times have no one place to be compared with.
            place = {key: hashes.index(key) for key, count in Counter(hashes).items() if count == 1}
            kept = [place[key] for key in map(message_hash, self.compressed(messages)) if key in place]
            newest = newest_user(messages)
            lifted = place.get(message_hash(newest)) if newest is not None else None
            rest = [index for index in kept if index != lifted]
            assert rest == sorted(rest), "messages changed places"

    def test_small_and_empty_lists_never_grow(self) -> None:
        hello: list[Message] = [{"role": "user", "content": "Hello"}]
        for messages in ([], hello, [*hello, {"role": "assistant", "content": "Hi"}]):
            result = self.engine().compress(messages)
            assert self.tokens(result) <= self.tokens(messages), "a small list became larger"
            assert newest_user(result) == newest_user(messages), "the request of a small list is gone"

    def test_every_attempt_counts_once(self) -> None:
        engine = self.engine()
        messages = next(self.sessions())
        result = engine.compress(messages, current_tokens=self.tokens(messages))
        assert result != messages, "a session beyond the window was returned as it is"
        assert engine.compression_count == 1, "compression_count must say how often the session was compressed"

    def test_a_growing_session_stays_valid_and_bounded(self) -> None:
        engine = self.engine()
        messages = self.given(generate(seed=31, messages=900, tokens=self.context_length * 6).messages)
        window: list[Message] = []
        for start in range(0, len(messages), 150):
            window = [*window, *messages[start : start + 150]]
            if open_group(window) is None:
                window = engine.compress(window, current_tokens=self.tokens(window))
                assert validate(window) == [], f"after several rounds: {validate(window)[0]}"
        assert self.tokens(window) < self.context_length, "the session outgrew the window"
        assert engine.compression_count >= 3, f"compression_count is {engine.compression_count} after six rounds"

    def test_focus_and_newer_keywords_are_taken(self) -> None:
        messages = next(self.sessions())
        engine = self.engine()
        known = inspect.signature(engine.compress).parameters
        extra = {key: value for key, value in (("force", True), ("memory_context", "")) if key in known}
        result = engine.compress(messages, current_tokens=None, focus_topic="the invoice cache", **extra)
        assert validate(result) == [], f"a provider would refuse it: {validate(result)[0]}"

    def test_broken_lists_end_in_a_list_or_a_clear_error(self) -> None:
        for messages in map(self.given, broken_lists(BROKEN_LISTS)):
            before = encode_json(messages)
            try:
                result = self.engine().compress(messages, current_tokens=self.context_length)
            except LeporelloError:
                result = messages
            assert isinstance(result, list), f"compress returned a {type(result).__name__}"
            assert encode_json(messages) == before, "a broken list was changed"
            assert self.tokens(result) <= self.tokens(messages), "a broken list became larger"
