"""The agent's turn on a real store with real tools: every fault leaves a valid conversation that can go on."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pytest

from leporello.agent.agent import Agent, StillTooLong
from leporello.agent.commands import parse, run_command
from leporello.agent.endpoints import Chosen
from leporello.agent.events import AgentEvent, Compacted, Notice, ToolFinished, TurnEnded
from leporello.cancel import CancelToken
from leporello.errors import ProviderError
from leporello.messages import is_result, role_of, text_of
from leporello.models import LearnedLimits
from leporello.providers.base import ModelReply, ModelRequest
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.providers.scripted import ScriptedProvider
from leporello.store.records import SearchQuery
from leporello.turns import validate
from leporello.usage import CanonicalUsage

from .conftest import Bench, call, calls


def stored(agent: Agent) -> list[dict]:
    return [entry.message for entry in agent.conversation.runtime.log.store.log.iterate(agent.conversation.id)]


def test_a_turn_runs_tools_and_stores_every_step(bench: Bench) -> None:
    (bench.workdir / "a.txt").write_text("the port is 8443\n")
    agent = bench.agent([call("read_file", path="a.txt"), "It is 8443."])
    events: list[AgentEvent] = []
    ended = agent.turn("Which port?", events.append)
    assert (ended.text, ended.reason, ended.calls) == ("It is 8443.", "stop", 2)
    kept = stored(agent)
    assert [role_of(message) for message in kept] == ["user", "assistant", "tool", "assistant"]
    assert "8443" in text_of(kept[2])
    assert agent.conversation.usage.calls == 2
    assert isinstance(events[-1], TurnEnded)


def test_the_first_request_after_a_restart_is_byte_for_byte_the_same(bench: Bench) -> None:
    one = ScriptedProvider(["hello", "again"], window=64_000)
    agent = bench.agent(one)
    agent.turn("hi")
    two = ScriptedProvider(["again"], window=64_000)
    bench.agent(two).turn("and now?")
    agent.turn("and now?")
    resumed, kept_on = two.requests[0], one.requests[1]
    assert list(resumed.tools) == list(kept_on.tools)
    assert resumed.messages[: len(resumed.messages)] == kept_on.messages[: len(resumed.messages)]


ERRORS = [
    ErrorKind.RATE_LIMIT,
    ErrorKind.AUTH,
    ErrorKind.QUOTA,
    ErrorKind.TRANSIENT,
    ErrorKind.CONTENT_POLICY,
    ErrorKind.MALFORMED,
    ErrorKind.UNKNOWN,
]


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_error_at_any_call_leaves_a_conversation_that_goes_on(bench: Bench, kind: ErrorKind, position: int) -> None:
    (bench.workdir / "a.txt").write_text("x\n")
    script: list[Any] = [call("read_file", path="a.txt"), call("read_file", "c2", path="a.txt"), "done"]
    script.insert(position, CallFailed(ErrorVerdict(kind, message="no")))
    agent = bench.agent(script)
    with pytest.raises(ProviderError):
        agent.turn("go")
    assert validate(agent.conversation.messages) == []
    compactions = [
        a for a in agent.conversation.runtime.log.store.views.attempts("a") if a.report.trigger.startswith("overflow")
    ]
    assert compactions == []
    ended = bench.agent(script[position + 1 :]).turn("again")
    assert ended.text == "done"


def overflow(limit: int | None = None) -> CallFailed:
    return CallFailed(ErrorVerdict(ErrorKind.INPUT_OVERFLOW, stated_limit=limit, message="too long"))


def fill(agent: Agent, steps: int = 60) -> None:
    """History that can be folded."""
    for k in range(steps):
        agent.conversation.append(
            {"role": "user", "content": f"question {k} " + "word " * 120},
            {"role": "assistant", "content": f"answer {k} " + "word " * 120},
        )


def test_overflow_is_folded_and_sent_again_without_the_caller_noticing(bench: Bench) -> None:
    agent = bench.agent([overflow(), "fine"], window=200_000)
    fill(agent, 100)
    events: list[AgentEvent] = []
    assert agent.turn("go", events.append).text == "fine"
    assert any(isinstance(event, Compacted) and event.event.report.committed for event in events)
    assert agent.conversation.runtime.sizes.limits.window == 200_000


def test_only_a_stated_limit_shrinks_the_window_and_it_is_remembered(bench: Bench) -> None:
    agent = bench.agent([overflow(24_000), "fine"], window=200_000)
    fill(agent, 100)
    agent.turn("go")
    assert agent.conversation.runtime.sizes.limits.window == 24_000
    book = LearnedLimits.load(bench.home.limits_file, now=time.time())
    assert [window for window, _ in book.entries.values()] == [24_000]


def test_three_recoveries_then_one_clear_error(bench: Bench) -> None:
    provider = ScriptedProvider(itertools.repeat(overflow()), window=200_000)
    agent = bench.agent(provider, window=200_000)
    fill(agent, 100)
    with pytest.raises(StillTooLong, match="/new"):
        agent.turn("go")
    assert len(provider.requests) <= 4
    assert validate(agent.conversation.messages) == []


def test_an_output_cap_only_lowers_max_tokens(bench: Bench) -> None:
    cap = CallFailed(ErrorVerdict(ErrorKind.OUTPUT_CAP, allowed_output=512, message="max_tokens too large"))
    provider = ScriptedProvider([cap, "ok"], window=64_000)
    agent = bench.agent(provider)
    agent.turn("go")
    assert provider.requests[1].max_tokens == 512
    assert provider.requests[1].messages == provider.requests[0].messages
    assert agent.conversation.runtime.sizes.limits.window == 64_000
    assert agent.conversation.runtime.log.compactions == 0


def test_disabled_compression_is_never_overridden_by_an_overflow(bench: Bench) -> None:
    bench.flags["compression.enabled"] = False
    agent = bench.agent([overflow(), "never"], window=200_000)
    fill(agent, 100)
    with pytest.raises(StillTooLong):
        agent.turn("go")
    assert agent.conversation.runtime.log.compactions == 0


def test_usage_may_be_missing(bench: Bench) -> None:
    bare = ModelReply({"role": "assistant", "content": "ok"}, CanonicalUsage(), has_usage=False)
    agent = bench.agent([bare, bare])
    assert agent.turn("one").text == "ok"
    assert agent.turn("two").text == "ok"


def test_two_calls_with_one_id_get_a_result_each(bench: Bench) -> None:
    (bench.workdir / "a.txt").write_text("A\n")
    (bench.workdir / "b.txt").write_text("B\n")
    asked = calls(("x", "read_file", {"path": "a.txt"}), ("x", "read_file", {"path": "b.txt"}))
    agent = bench.agent([asked, "done"])
    agent.turn("read both")
    results = [text_of(message) for message in stored(agent) if is_result(message)]
    assert "A" in results[0]
    assert "B" in results[1]
    assert validate(agent.conversation.messages) == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (call("terminal", command="exit 3"), "exit code 3"),
        (call("terminal", command="head -c 3000000 /dev/zero"), ""),
        (call("no_such_tool", x=1), "no tool named"),
        (call("read_file"), "path"),
        (call("read_file", path="/etc/passwd"), "Error"),
        (call("terminal", command="yes | head -c 3000000"), "persisted-output"),
    ],
    ids=["fails", "binary", "unknown", "bad arguments", "outside", "huge"],
)
def test_no_tool_can_end_the_loop(bench: Bench, wanted: dict, expected: str) -> None:
    agent = bench.agent([wanted, "done"])
    assert agent.turn("go").text == "done"
    result = next(text_of(message) for message in stored(agent) if is_result(message))
    assert expected in result


def test_a_huge_output_is_saved_whole_before_it_is_cut(bench: Bench) -> None:
    agent = bench.agent([call("terminal", command="seq 1 200000"), "done"])
    events: list[AgentEvent] = []
    agent.turn("go", events.append)
    finished = next(event for event in events if isinstance(event, ToolFinished))
    whole = "".join(f"{k}\n" for k in range(1, 200_001))
    with open(finished.saved) as file:
        assert whole in file.read()
    artifacts = agent.conversation.runtime.log.store.artifacts.all("a")
    assert whole.encode() in agent.conversation.runtime.log.store.artifacts.get("a", artifacts[0].handle)


def test_an_interrupt_in_a_tool_leaves_a_valid_conversation(bench: Bench) -> None:
    token = CancelToken()
    agent = bench.agent([call("terminal", command="sleep 30"), "never"])
    threading.Timer(0.5, token.cancel).start()
    assert agent.turn("go", cancel=token).reason == "interrupted"
    assert validate(agent.conversation.messages) == []
    assert not any("never" in text_of(message) for message in stored(agent))


def test_an_interrupt_in_a_call_leaves_a_valid_conversation(bench: Bench) -> None:
    def stop(_: ModelRequest) -> str:
        raise KeyboardInterrupt

    agent = bench.agent([stop, "later"])
    assert agent.turn("go").reason == "interrupted"
    assert agent.turn("go on").text == "later"
    assert validate(agent.conversation.messages) == []


def test_calls_that_a_crash_left_open_get_a_result_on_resume(bench: Bench) -> None:
    agent = bench.agent([])
    agent.conversation.append({"role": "user", "content": "go"}, call("terminal", command="make"))
    resumed = bench.agent(["fine"])
    assert agent.conversation.runtime.log.store.log.count("a") == 2
    assert resumed.turn("and?").text == "fine"
    assert "unknown" in text_of(stored(resumed)[2])
    assert validate(resumed.conversation.messages) == []


def work(request: ModelRequest) -> Any:
    """A model that reads a file over and over, and answers every fourth time."""
    step = sum(role_of(message) == "assistant" for message in request.messages)
    if step % 4 == 3:
        return f"Part {step} is done."
    return call("read_file", f"r{step}", path="notes.txt")


def test_many_turns_in_a_small_window_keep_every_promise(bench: Bench) -> None:
    """Valid requests, a chain of sessions, rules that survive; every compaction says which one it is."""
    (bench.workdir / "notes.txt").write_text("\n".join(f"note {k} about the port {k * 7}" for k in range(60)))
    provider = ScriptedProvider(work, window=16_384)
    agent = bench.agent(provider, window=16_384)
    notices: list[str] = []
    counted: list[int] = []

    def watch(event: AgentEvent) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)
        elif isinstance(event, Compacted) and event.event.report.committed:
            counted.append(event.event.compactions)

    for turn in range(25):
        agent.turn(f"Do part {turn}. Never touch file_{turn}.py.", watch)
    for request in provider.requests:
        assert validate(request.messages) == []
    assert agent.conversation.runtime.log.compactions >= 3
    assert counted == list(range(1, agent.conversation.runtime.log.compactions + 1))
    assert not any("times" in text for text in notices), "the line about the compaction says it already"
    sessions = agent.conversation.runtime.log.store.sessions.all("a")
    assert len(sessions) == agent.conversation.runtime.log.compactions + 1
    assert all(session.end_reason == "compression" for session in sessions[:-1])
    context = " ".join(text_of(message) for message in agent.conversation.messages)
    assert all(f"Never touch file_{turn}.py." in context for turn in range(25))


def test_a_switch_to_a_smaller_model_folds_before_the_first_call(bench: Bench) -> None:
    agent = bench.agent(["one"], window=128_000)
    fill(agent, 150)
    agent.turn("go")
    small = ScriptedProvider(["two"], window=16_000)
    agent.use_model(Chosen("gpt-4o-mini", small, "openai", served_window=16_000))
    assert agent.turn("go on").text == "two"
    assert agent.conversation.runtime.log.compactions == 1


def test_tool_output_is_cut_for_the_window_that_holds_now(bench: Bench) -> None:
    """What a large window took whole, a small one gets as a preview; nothing is lost."""
    agent = bench.agent([call("terminal", command="seq 1 4000"), "one"], window=128_000)
    agent.turn("go")
    small = ScriptedProvider([call("terminal", command="seq 1 4000"), "two"], window=16_000)
    agent.use_model(Chosen("gpt-4o-mini", small, "openai", served_window=16_000))
    agent.turn("again")
    first, second = (text_of(message) for message in stored(agent) if is_result(message))
    assert "persisted-output" not in first
    assert "persisted-output" in second


def test_a_summary_model_past_its_deadline_gives_way(bench: Bench) -> None:
    bench.flags["compression.deadline"] = 0.2
    release = threading.Event()

    def answer(request: ModelRequest) -> str:
        if "handoff for a different assistant" in text_of(request.messages[0]):
            release.wait(20)
        return "ok"

    agent = bench.agent(answer, window=32_000, summaries=True)
    fill(agent, 60)
    events: list[AgentEvent] = []
    agent.turn("go", events.append)
    release.set()
    reports = [event.event.report for event in events if isinstance(event, Compacted)]
    assert any(report.committed and report.summariser == "model-free" for report in reports)
    assert any("deadline" in warning for report in reports for warning in report.warnings)


def test_secrets_stay_out_of_summaries_indexes_and_events(bench: Bench) -> None:
    canary = "{}_A7b9C2d4E6f8G1h3J5k7L9m2N4p6Q8r1S3t5".format("ghp")
    (bench.workdir / ".env").write_text(f"GITHUB_TOKEN={canary}\n")
    agent = bench.agent(
        [call("terminal", command=f"cat .env; echo {canary}"), "I saw the file.", *["ok"] * 5], window=16_000
    )
    events: list[AgentEvent] = []
    agent.turn(f"Use {canary} to log in, and never print it.", events.append)
    fill(agent, 40)
    agent.turn("go on", events.append)
    assert agent.conversation.runtime.log.compactions >= 1
    folds = agent.conversation.runtime.log.store.views.folds("a")
    assert canary not in str([(fold.text, fold.handoff) for fold in folds])
    assert canary not in str([event.as_dict() for event in events])
    agent.conversation.runtime.log.store.index.catch_up()
    assert canary not in str(
        [hit.text for hit in agent.conversation.runtime.log.store.index.search(SearchQuery("login token", "a"))]
    )


class TestCommands:
    """Commands in the text are not chat messages."""

    def test_a_path_is_not_a_command(self) -> None:
        assert parse("/usr/bin/env") is None
        assert parse("/compress the port") == ("compress", "the port")

    def test_commands_answer_without_a_call_and_are_not_stored(self, bench: Bench) -> None:
        agent = bench.agent([], window=32_000)
        fill(agent, 60)
        before = agent.conversation.runtime.log.store.log.count("a")
        for text in (
            "/compress",
            "/usage",
            "/context",
            "/context --explain",
            "/search answer 3",
            "/expand m3",
            "/undo",
        ):
            assert run_command(agent.conversation, text)
        assert "no command" in str(run_command(agent.conversation, "/nonsense"))
        assert agent.conversation.runtime.log.store.log.count("a") == before

    def test_an_error_is_the_answer(self, bench: Bench) -> None:
        agent = bench.agent([])
        fill(agent, 2)
        assert "m9" in str(run_command(agent.conversation, "/expand m9"))
