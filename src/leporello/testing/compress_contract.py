"""What `ContextEngine.compress` promises: a valid list that is not larger, keeps the newest request and open work, and
leaves its input alone. Part of `EngineContract`."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from leporello.engines.base import ContextEngine
from leporello.errors import LeporelloError
from leporello.messages import Message, decode_json, encode_json, is_instruction, message_hash, role_of
from leporello.summaries.fold import is_fold
from leporello.testing import pieces
from leporello.testing.sessions import SessionSpec, Style, generate
from leporello.tokens import TokenCounter
from leporello.turns import open_group, validate

BROKEN_LISTS = 40


def newest_user(messages: Sequence[Message]) -> Message | None:
    """The newest message of the user; our own folds don't count as one."""
    return next(
        (message for message in reversed(messages) if role_of(message) == "user" and not is_fold(message)), None
    )


def broken_lists(count: int) -> Iterator[list[Message]]:
    """Lists with orphans, lost results, odd arguments and contents."""
    for seed in range(count):
        rng = Random(seed)
        messages = [pieces.user(rng)]
        for _ in range(rng.randrange(12)):
            make = rng.choice((pieces.nasty_tool_group, pieces.nasty_tool_group, lambda r: [pieces.oddity(r)]))
            messages.extend(make(rng))
        yield messages


@cache
def _encoded(spec: SessionSpec) -> bytes:
    return encode_json(generate(spec).messages)


class CompressContract:
    """The `compress` half of `EngineContract`."""

    context_length: int

    def engine(self) -> ContextEngine:
        """A fresh engine in a session that has just begun."""
        raise NotImplementedError

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
            yield decode_json(_encoded(spec))
        yield [{"role": "system", "content": "Be careful."}, *decode_json(_encoded(spec))]

    def compressed(self, messages: list[Message]) -> list[Message]:
        """What a fresh engine makes of a list."""
        return self.engine().compress(messages, current_tokens=self.tokens(messages))

    def tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a list, counted plainly."""
        return TokenCounter.for_model(None).messages(messages)

    def test_the_result_is_a_list_that_providers_accept(self) -> None:
        for messages in self.sessions():
            result = self.compressed(messages)
            assert isinstance(result, list), f"compress returned a {type(result).__name__}"
            assert validate(result) == [], f"a provider would refuse it: {validate(result)[0]}"

    def test_a_session_beyond_the_window_gets_smaller_and_fits(self) -> None:
        for messages in self.sessions():
            after = self.tokens(self.compressed(messages))
            assert after < self.tokens(messages), "the result is not smaller"
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
            assert newest_user(result) == newest_user(messages)

    def test_every_attempt_counts_once(self) -> None:
        engine = self.engine()
        messages = next(self.sessions())
        result = engine.compress(messages, current_tokens=self.tokens(messages))
        assert result != messages
        assert engine.compression_count == 1, "compression_count must say how often the session was compressed"

    def test_a_growing_session_stays_valid_and_bounded(self) -> None:
        engine = self.engine()
        session = generate(seed=31, messages=900, tokens=self.context_length * 6)
        window: list[Message] = []
        for start in range(0, len(session.messages), 150):
            window = [*window, *session.messages[start : start + 150]]
            if open_group(window) is None:
                window = engine.compress(window, current_tokens=self.tokens(window))
                assert validate(window) == [], f"after several rounds: {validate(window)[0]}"
        assert self.tokens(window) < self.context_length, "the session outgrew the window"
        assert engine.compression_count >= 3

    def test_focus_and_newer_keywords_are_taken(self) -> None:
        messages = next(self.sessions())
        engine = self.engine()
        known = inspect.signature(engine.compress).parameters
        extra = {key: value for key, value in (("force", True), ("memory_context", "")) if key in known}
        result = engine.compress(messages, current_tokens=None, focus_topic="the invoice cache", **extra)
        assert validate(result) == []

    def test_broken_lists_end_in_a_list_or_a_clear_error(self) -> None:
        for messages in broken_lists(BROKEN_LISTS):
            before = encode_json(messages)
            try:
                result = self.engine().compress(messages, current_tokens=self.context_length)
            except LeporelloError:
                result = messages
            assert isinstance(result, list)
            assert encode_json(messages) == before, "a broken list was changed"
            assert self.tokens(result) <= self.tokens(messages), "a broken list became larger"
