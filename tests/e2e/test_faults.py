"""Faults of servers and connections, met by the whole agent: the turn goes on or ends with a clear error, and the
conversation stays valid and can go on either way."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leporello.agent.endpoints import choose_model
from leporello.agent.events import CallFinished, Compacted, Notice, TextDelta
from leporello.config import load_settings
from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from leporello.errors import ProviderError
from leporello.messages import is_result, role_of, text_of
from leporello.models import LearnedLimits
from leporello.testing.stub_server import Cut, Fail, Hold, Say, Seen, Step
from leporello.tools.base import OutputLimits
from leporello.turns import validate

from .office import KINDS, Kind, Office, counted, kept, opened, say

EVERY = pytest.mark.parametrize("kind", KINDS[:3], ids=str)
CLAUDE = KINDS[2]
WRITE = ("terminal", json.dumps({"command": "echo once >> ran.txt && echo " + "x" * 300}))


def fill(office: Office, turns: int = 60) -> None:
    """History that can be folded."""
    agent = office.agent()
    for k in range(turns):
        agent.conversation.append(
            {"role": "user", "content": f"question {k} " + "word " * 100},
            {"role": "assistant", "content": f"answer {k} " + "word " * 100},
        )


def sound(office: Office) -> None:
    """What holds after every fault: valid requests only, and a valid conversation."""
    assert all(seen.violations == () for seen in office.server.requests)
    assert validate(kept(office)) == []


@EVERY
@pytest.mark.parametrize("clean", [True, False], ids=["clean end", "broken connection"])
def test_a_call_cut_inside_its_arguments_never_runs_half(tmp_path: Path, kind: Kind, clean: bool) -> None:
    """The call is asked for again, and its tool runs once, with whole arguments."""
    half = Say(None, (WRITE,))
    with opened(
        tmp_path, kind, [Cut(half, 4, clean), say(None, ("terminal", json.loads(WRITE[1]))), say("Done.")]
    ) as office:
        assert office.agent().turn("Write it.").text == "Done."
        assert (office.workdir / "ran.txt").read_text() == "once\n"
        assert len(office.server.requests) == 3
        assert office.server.requests[0].raw == office.server.requests[1].raw
        assert len(kept(office)) == 4
        sound(office)


@EVERY
def test_a_stream_that_breaks_after_its_first_words_is_reported(tmp_path: Path, kind: Kind) -> None:
    """The reader saw the beginning, so it is not repeated behind their back; the next turn goes on."""
    long = Say("This sentence is long enough to be sent in several pieces, and it breaks off.", (WRITE,))
    with opened(tmp_path, kind, [Cut(long, 5), say("All is well.")]) as office:
        agent = office.agent()
        with pytest.raises(ProviderError, match="broke off"):
            agent.turn("Write it.")
        assert any(isinstance(event, TextDelta) for event in office.events)
        assert not (office.workdir / "ran.txt").exists()
        assert agent.turn("And now?").text == "All is well."
        assert [role_of(message) for message in kept(office)] == ["user", "user", "assistant"]
        assert all(seen.violations == () for seen in office.server.requests)


@EVERY
@pytest.mark.parametrize("after", [None, 2], ids=["before the first byte", "in the middle"])
def test_a_server_that_stalls_is_asked_again(tmp_path: Path, kind: Kind, after: int | None) -> None:
    release = threading.Event()
    script: list[Step] = [Hold(Say(None, (WRITE,)), release, after), say("Late, but here.")]
    with opened(tmp_path, kind, script, timeout=0.5) as office:
        assert office.agent().turn("Go.").text == "Late, but here."
        release.set()
        assert not (office.workdir / "ran.txt").exists()
        sound(office)


@EVERY
@pytest.mark.parametrize(
    "refusal",
    [
        Fail(429, {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}, {"retry-after": "0.05"}),
        Fail(500, {"error": {"message": "Something broke", "type": "server_error"}}),
        Fail(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        Fail(502, "<html>Bad gateway</html>"),
    ],
    ids=["429", "500", "529", "502"],
)
def test_what_passes_by_itself_is_waited_out(tmp_path: Path, kind: Kind, refusal: Fail) -> None:
    """At the first call and in the middle of a turn; the tool does not run twice."""
    with opened(tmp_path, kind, [refusal, Say(None, (WRITE,)), refusal, refusal, say("Done.")]) as office:
        assert office.agent().turn("Write it.").text == "Done."
        assert (office.workdir / "ran.txt").read_text() == "once\n"
        assert office.folds == 0
        sound(office)


@EVERY
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": "Bad key", "type": "authentication_error", "code": "invalid_api_key"}}),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
        (400, {"error": {"message": "Unsupported value: 'x'", "type": "invalid_request_error"}}),
    ],
    ids=["auth", "quota", "malformed"],
)
def test_what_does_not_pass_ends_the_turn(tmp_path: Path, kind: Kind, status: int, body: Any) -> None:
    """One clear error, no fold, no second try; afterwards the conversation goes on."""
    with opened(tmp_path, kind, [Say(None, (WRITE,)), Fail(status, body), say("Good again.")]) as office:
        agent = office.agent()
        with pytest.raises(ProviderError):
            agent.turn("Write it.")
        assert office.folds == 0
        assert len(office.server.requests) == 2
        assert office.agent().turn("Try again.").text == "Good again."
        assert (office.workdir / "ran.txt").read_text() == "once\n"
        sound(office)


OVERFLOWS = {
    OPENAI_CHAT: (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 12000 tokens. However, your messages resulted in "
                "19000 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    OPENAI_RESPONSES: (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (19000 tokens) exceeds the available context size (12000 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 19000,
                "n_ctx": 12000,
            }
        },
    ),
    ANTHROPIC: (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 19000 tokens > 12000 maximum",
            },
        },
    ),
}


@EVERY
def test_an_overflow_is_folded_and_its_limit_holds_from_then_on(tmp_path: Path, kind: Kind) -> None:
    """The user gets the answer; the stated window is kept on disk and holds for the next start."""
    status, body = OVERFLOWS[kind.dialect]
    with opened(tmp_path, kind, [Fail(status, body), say("Here.")], window=200_000) as office:
        fill(office)
        agent = office.agent()
        assert agent.turn("Go on.").text == "Here."
        assert agent.conversation.runtime.sizes.limits.window == 12_000
        assert agent.context.limits == OutputLimits.for_window(12_000)
        assert office.folds == 1
        first, second = office.server.requests
        assert len(second.raw) < len(first.raw) / 2
        assert any(isinstance(event, Notice) and "12,000" in event.text for event in office.events)
        base_url = office.server.url + kind.path
        book = LearnedLimits.load(office.home.limits_file, now=time.time())
        assert book.window(kind.model, kind.provider, base_url, now=time.time()) == 12_000
        flags = {
            "model.default": kind.model,
            "model.provider": kind.provider,
            "model.base_url": base_url,
        }
        again = choose_model(load_settings(flags, home=office.home))
        assert again.served_window == 12_000
        sound(office)


@EVERY
def test_an_overflow_without_a_number_shrinks_nothing_but_the_request(tmp_path: Path, kind: Kind) -> None:
    vague = Fail(413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}})
    with opened(tmp_path, kind, [vague, say("Here.")], window=200_000) as office:
        fill(office)
        agent = office.agent()
        assert agent.turn("Go on.").text == "Here."
        assert agent.conversation.runtime.sizes.limits.window == 200_000
        assert not office.home.limits_file.exists()
        assert office.folds == 1
        sound(office)


def _without_usage() -> Iterator[Step]:
    for turn in itertools.count():
        yield Say(None, (("terminal", json.dumps({"command": f"seq {turn} {turn + 250}"})),), usage=None)
        yield Say(f"Turn {turn} done.", usage=None)


@EVERY
def test_a_server_that_counts_nothing_is_counted_for(tmp_path: Path, kind: Kind) -> None:
    """Folds come by estimate, in time, and the record says that nothing was counted."""
    with opened(tmp_path, kind, _without_usage(), window=8_192) as office:
        agent = office.agent()
        for turn in range(30):
            assert agent.turn(f"Count from {turn}.").text == f"Turn {turn} done."
        assert office.folds >= 2
        assert agent.conversation.usage.usage.total_tokens == 0
        assert max(counted(seen).prompt_tokens for seen in office.server.requests) < 8_192
        sound(office)


def test_a_paused_answer_is_sent_back_and_goes_on(tmp_path: Path) -> None:
    """Anthropic's own tools work in steps; to the user it is one turn."""

    def pausing(seen: Seen) -> Step:
        return Say("Searching the web.", finish="pause", usage=counted(seen))

    with opened(tmp_path, CLAUDE, [pausing, pausing, say("Found it.")]) as office:
        ended = office.agent().turn("Look it up.")
        assert (ended.text, ended.reason, ended.calls) == ("Found it.", "stop", 3)
        last = office.server.requests[-1].body["messages"]
        assert [message["role"] for message in last] == ["user", "assistant"]
        sound(office)


def test_an_answer_that_fills_the_window_makes_room_and_says_so(tmp_path: Path) -> None:
    """The user hears why the answer ends, and `go on` works."""

    def filled(seen: Seen) -> Step:
        return Say("So far, and then", finish="context_window_exceeded", usage=counted(seen))

    with opened(tmp_path, CLAUDE, [filled, say("the rest.")], window=64_000) as office:
        fill(office)
        agent = office.agent()
        ended = agent.turn("Tell me everything.")
        assert (ended.text, ended.reason) == ("So far, and then", "context_window_exceeded")
        assert office.folds == 1
        assert any(isinstance(event, Notice) and "go on" in event.text for event in office.events)
        assert agent.turn("go on").text == "the rest."
        assert len(office.server.requests[1].raw) < len(office.server.requests[0].raw)
        sound(office)


@EVERY
def test_every_call_and_every_fold_is_an_event(tmp_path: Path, kind: Kind) -> None:
    """Nothing is silent: one event for each answered call, one for each attempt to fold."""
    with opened(tmp_path, kind, [say("One."), say("Two.")], window=8_192) as office:
        fill(office, 40)
        agent = office.agent()
        agent.turn("First.")
        agent.turn("Second.")
        calls = [event for event in office.events if isinstance(event, CallFinished)]
        attempts = [event.event.report for event in office.events if isinstance(event, Compacted)]
        assert len(calls) == 2
        assert len(attempts) == len(office.store.views.attempts("talk")) > 0
        assert text_of(kept(office)[-1]) == "Two."
        assert not any(is_result(message) for message in kept(office))
