"""What a compaction leaves behind in an open conversation: the count of the prompt, its own usage, attempts."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.errors import FixedPartTooLarge
from leporello.events import CompactionEvent, Outcome
from leporello.messages import Message
from leporello.policy.decision import Occasion
from leporello.providers.base import ModelReply
from leporello.providers.scripted import ScriptedProvider
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

SESSION = generate(SessionSpec(seed=161, messages=60, tokens=12_000, images=0)).messages
SUMMARY = "## Goal\n- Keep it running\n\n## Active State\n- Tests ran\n"


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def answered(conversation: Conversation, tokens: int) -> None:
    """A request that the provider counts at so many tokens."""
    conversation.request(system="s")
    conversation.record(ModelReply({"role": "assistant", "content": "Yes?"}, CanonicalUsage(tokens, 9)))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/talk.db"


def test_the_providers_count_stays_until_the_list_is_another_one(url: str) -> None:
    with Conversation.open("a", window=64_000, store=url) as conversation:
        conversation.append(user("Hello."))
        answered(conversation, 5_000)
        before = conversation.runtime.compactor.reading
        assert before.real == 5_000
        assert not conversation.compact().committed
        assert conversation.runtime.compactor.reading == before
        conversation.append(*SESSION)
        assert conversation.runtime.compactor.reading.real == 5_000
        assert conversation.compact().committed
        assert conversation.runtime.compactor.reading.real == 0


@pytest.mark.parametrize("answers", [True, False])
def test_the_tokens_of_a_summary_are_booked_as_such(url: str, answers: bool) -> None:
    provider = ScriptedProvider(lambda _: SUMMARY if answers else "")
    summariser = ModelSummariser([SummaryModel(provider, "gpt-4.1", 128_000)], TokenCounter.for_model("gpt-4.1"))
    with Conversation.open("a", window=8_000, store=url, summariser=summariser) as conversation:
        conversation.append(*SESSION)
        report = conversation.compact()
        assert report.committed
        store = conversation.runtime.log.store
        booked = store.usage.insights().by_purpose
        # An answer that was of no use was paid for as well.
        assert booked["summary"].usage == report.usage == provider.replies[0].usage
        assert conversation.usage.calls == 1
        assert set(booked) == {"summary"}


def test_without_a_model_nothing_is_booked(url: str) -> None:
    with Conversation.open("a", window=8_000, store=url) as conversation:
        conversation.append(*SESSION)
        assert conversation.compact().committed
        assert conversation.usage.calls == 0


def test_automatic_attempts_are_counted_in_the_store_and_manual_ones_are_not(url: str) -> None:
    with Conversation.open("a", window=8_000, store=url) as conversation:
        conversation.append(*SESSION)
        conversation.compact()
        assert conversation.runtime.log.store.state.get("a", "compaction.attempts") is None
        conversation.runtime.compactor.shrink("overflow 1")
        assert conversation.runtime.log.store.state.get("a", "compaction.attempts") == 1
        with Conversation.open("a", window=8_000, store=url) as other:
            assert other.runtime.memory.state.attempts == 1
        conversation.append({"role": "assistant", "content": "Yes?"})
        assert conversation.runtime.log.store.state.get("a", "compaction.attempts") is None


def test_an_undo_by_another_process_is_taken_over(url: str) -> None:
    """It shows everything again and waits for the hard limit, as the one who took it back would."""
    with (
        Conversation.open("a", window=24_000, store=url) as one,
        Conversation.open("a", window=24_000, store=url) as two,
    ):
        one.append(*SESSION)
        assert one.compact().committed
        two.runtime.log.refresh()
        two.undo()
        one.runtime.log.refresh()
        limits = one.runtime.sizes.limits
        assert one.messages == two.messages
        assert one.runtime.memory.state.wait_for == limits.hard_tokens
        assert not one.runtime.compactor.decide(Occasion.TURN, limits.hard_tokens - 1).compacts


def test_listeners_hear_of_every_attempt_and_those_before_of_its_beginning(url: str) -> None:
    begun: list[str] = []
    events: list[CompactionEvent] = []
    with Conversation.open("a", window=8_000, store=url) as conversation:
        conversation.runtime.hooks.before.append(begun.append)
        conversation.runtime.hooks.listeners.append(events.append)
        conversation.append(user("Hello."))
        conversation.compact()
        conversation.append({"role": "assistant", "content": "Yes?"}, *SESSION)
        conversation.request()
        assert begun == ["manual", "preflight"]
        assert [event.report.outcome for event in events] == [Outcome.NOTHING_TO_DO, Outcome.COMMITTED]
        assert [(event.generation, event.compactions) for event in events] == [(0, 0), (1, 1)]


def test_a_refused_request_is_compacted_for_its_own_size_and_the_window_stays(url: str) -> None:
    """What was refused is taken to have filled the window; only what a provider states is kept."""
    with Conversation.open("a", window=64_000, store=url) as conversation:
        conversation.append(*SESSION)
        refused = conversation.runtime.compactor.reading.tokens
        report = conversation.runtime.compactor.shrink("overflow 1")
        assert report.committed
        assert report.trigger == "overflow 1"
        assert report.tokens_after < refused / 2
        assert conversation.runtime.sizes.limits.window == 64_000


def test_a_refused_request_beyond_the_known_window_is_compacted_for_that_window(url: str) -> None:
    with Conversation.open("a", window=8_000, store=url) as conversation:
        conversation.append(*SESSION)
        assert conversation.runtime.compactor.reading.tokens > 8_000
        report = conversation.runtime.compactor.shrink("overflow 2")
        assert (report.committed, report.trigger) == (True, "overflow 2")
        assert report.tokens_after <= 8_000


def test_what_can_not_fit_is_told_by_its_parts(url: str) -> None:
    with Conversation.open("a", window=4_000, store=url) as conversation:
        conversation.append({"role": "system", "content": "rule " * 500}, user("word " * 2_000))
        with pytest.raises(FixedPartTooLarge) as caught:
            conversation.request(system="word " * 2_000)
        parts = caught.value.parts
        assert parts["system"] > 2_500
        assert parts["tools"] == 0
        assert 2_000 <= parts["messages that stay"] < 2_100


def test_an_attempt_in_vain_is_not_made_again_at_once(url: str) -> None:
    """What it learned stays: there must be more to fold first."""
    with Conversation.open("a", window=8_000, store=url) as conversation:
        conversation.append(user("word " * 5_000))
        for _ in range(2):
            conversation.runtime.compactor.when_due(Occasion.PREFLIGHT, "preflight")
            (attempt,) = conversation.runtime.log.store.views.attempts("a")
            assert attempt.report.outcome in (Outcome.NO_GAIN, Outcome.NOTHING_TO_DO)
        assert conversation.runtime.memory.state.wait_for > 5_000
        assert conversation.runtime.memory.state.attempts == 1
