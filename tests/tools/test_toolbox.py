"""Every call gives exactly one result, whatever the model sends and whatever the tool does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.cancel import CancelToken
from leporello.errors import ToolError
from leporello.messages import ToolCall
from leporello.tools import toolbox
from leporello.tools.base import ApprovalRequest, ApprovalVerdict, Tool, ToolContext
from leporello.tools.schema import foreign_tool
from leporello.tools.toolbox import SMALL_SET, Toolbox


def tool(name: str, handler: Any, **changes: Any) -> Tool:
    made = foreign_tool({"name": name, "description": name}, handler)
    return Tool(made.name, made.description, made.parameters, made.check, made.run, **changes)


def call(name: str, arguments: str = "{}", call_id: str = "c") -> ToolCall:
    return ToolCall(call_id, name, arguments, 0)


def test_unknown_tool_names_what_there_is(workshop: Any) -> None:
    text = workshop.error("raed_file", path="x")
    assert "no tool named 'raed_file'" in text
    assert "Did you mean read_file?" in text
    assert "terminal" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"path": "a', "not valid JSON"),
        ("nonsense", "not valid JSON"),
        ("[1]", "not an array"),
        ("5", "not a number"),
        ('"text"', "not valid JSON"),
        ("true", "not true or false"),
        ("{}", "'path' is missing"),
        ("", "'path' is missing"),
        ("null", "'path' is missing"),
    ],
)
def test_arguments_that_are_no_object_are_answered_with_words(workshop: Any, arguments: str, words: str) -> None:
    result = workshop.box.run(call("read_file", arguments), workshop.context)
    assert result.is_error
    assert words in result.text


def test_arguments_encoded_twice_are_understood(workshop: Any) -> None:
    workshop.write("a.txt", "hello")
    result = workshop.box.run(call("read_file", json.dumps(json.dumps({"path": "a.txt"}))), workshop.context)
    assert result.text == "1\thello"


@given(name=st.text(max_size=20), arguments=st.text(max_size=60), call_id=st.text(max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_call_a_model_can_write_raises(workshop: Any, name: str, arguments: str, call_id: str) -> None:
    result = workshop.box.run(ToolCall(call_id, name, arguments, 0), workshop.context)
    assert result.is_error


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "error",
    [ValueError("boom"), ToolError("boom"), OSError(2, "boom"), KeyboardInterrupt("boom"), SystemExit("boom")],
)
def test_a_tool_that_raises_gives_an_error_result(workshop: Any, error: BaseException) -> None:
    def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        raise error

    result = Toolbox([tool("t", handler)]).run(call("t"), workshop.context)
    assert result.is_error
    assert "boom" in result.text


def test_an_exception_without_a_text_still_gives_a_result(workshop: Any) -> None:
    def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        raise Unprintable

    result = Toolbox([tool("t", handler)]).run(call("t"), workshop.context)
    assert result.is_error
    assert "Unprintable" in result.text


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("can't show")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, "(no output)"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (b"\xffab", "\ufffdab"),
        (7, "7"),
        ({1, 2}, "{1, 2}"),
    ],
)
def test_whatever_a_tool_returns_becomes_text(workshop: Any, value: object, text: str) -> None:
    assert Toolbox([tool("t", lambda context, arguments: value)]).run(call("t"), workshop.context).text == text


def test_a_value_that_can_not_be_shown_is_an_error_result(workshop: Any) -> None:
    result = Toolbox([tool("t", lambda context, arguments: Unshowable())]).run(call("t"), workshop.context)
    assert result.is_error


def test_a_tool_over_its_time_is_told_to_stop_and_what_it_has_is_kept(workshop: Any) -> None:
    def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        assert context.cancel.wait(60)
        return "half of it"

    result = Toolbox([tool("slow", handler, timeout=0.05)]).run(call("slow"), workshop.context)
    assert result.is_error
    assert result.text == "half of it"
    assert "did not end within 0.05 seconds" in result.status
    assert result.details["timeout"] is True
    assert not workshop.context.cancel.cancelled


def test_a_tool_that_never_stops_is_left_behind(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolbox, "GRACE_SECONDS", 0.05)
    release = threading.Event()

    def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        release.wait()
        return "late"

    result = Toolbox([tool("stuck", handler, timeout=0.05)]).run(call("stuck"), workshop.context)
    release.set()
    assert result.is_error
    assert "has not come to an end yet" in result.text


def test_cancelling_from_another_thread_ends_the_call_and_all_that_follow(workshop: Any) -> None:
    started = threading.Event()

    def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        started.set()
        context.cancel.wait(60)
        return "partial"

    def cancel() -> None:
        started.wait()
        workshop.context.cancel.cancel()

    threading.Thread(target=cancel).start()
    box = Toolbox([tool("t", handler)])
    first, second = (box.run(wanted, workshop.context) for wanted in (call("t"), call("t", call_id="d")))
    assert first.text == "partial"
    assert "interrupted" in first.status
    assert "before this call was run" in second.text
    assert first.details["interrupted"]
    assert second.details["interrupted"]


def test_results_keep_the_order_of_the_calls_even_with_one_id(workshop: Any) -> None:
    box = Toolbox([tool("t", lambda context, arguments: arguments["n"])])
    calls = [call("t", json.dumps({"n": str(n)}), call_id="same") for n in range(5)]
    assert [box.run(wanted, workshop.context).text for wanted in calls] == list("01234")


class Refusing:
    def __init__(self, answer: ApprovalVerdict | BaseException) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []

    def check(self, request: ApprovalRequest) -> ApprovalVerdict:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_a_refused_call_does_nothing_and_says_why(workshop: Any) -> None:
    approver = Refusing(ApprovalVerdict(False, "the user declined."))
    text = workshop.with_context(approver=approver).error("write_file", path="a.txt", content="x")
    assert "the user declined." in text
    assert not (workshop.workdir / "a.txt").exists()
    assert approver.asked[0].title == "create a.txt"
    assert "+x" in approver.asked[0].detail()


def test_ctrl_c_at_the_question_cancels_the_turn(workshop: Any) -> None:
    shop = workshop.with_context(approver=Refusing(KeyboardInterrupt()), cancel=CancelToken())
    result = shop.run("terminal", command="touch made")
    assert result.details["interrupted"]
    assert shop.context.cancel.cancelled
    assert not (shop.workdir / "made").exists()


def test_nobody_is_asked_for_what_can_not_work(workshop: Any) -> None:
    approver = Refusing(ApprovalVerdict(True))
    shop = workshop.with_context(approver=approver)
    shop.error("patch", path="missing.txt", old_string="a", new_string="b")
    shop.error("write_file", path="/etc/passwd", content="x")
    shop.error("terminal", command="  ")
    shop.error("terminal", command="ls", workdir="/etc")
    assert approver.asked == []


def test_two_tools_of_one_name_are_refused() -> None:
    made = tool("t", lambda context, arguments: "")
    with pytest.raises(ToolError, match="two tools are named 't'"):
        Toolbox([made, made])


def test_the_set_of_tools_goes_by_settings_and_window(workshop: Any) -> None:
    recall = [tool(name, lambda context, arguments: "") for name in ("lcm_grep", "lcm_describe", "lcm_expand")]
    box = Toolbox([*(workshop.box.get(name) for name in workshop.box.names), *recall])
    assert box.select(None, 200_000).names == box.names
    assert box.select(None, 0).names == box.names
    assert box.select(None, 16_000).names == box.names
    assert box.select(None, 15_999).names == SMALL_SET
    assert box.select(("terminal", "patch"), 8_000).names == ("patch", "terminal")
    with pytest.raises(ToolError, match="'paint'"):
        box.select(("paint",), 0)


def test_schemas_are_the_same_bytes_every_time(workshop: Any) -> None:
    """They stand at the front of the cached prefix."""
    assert json.dumps(workshop.box.schemas()) == json.dumps(workshop.box.schemas())


SIGINT_SCRIPT = """
import json, signal, sys
# A shell starts its background jobs deaf to Ctrl-C, and tests may be run as one.
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from leporello.messages import ToolCall
from leporello.tools.approval import ApprovalMode, PolicyApprover
from leporello.tools.base import ToolContext
from leporello.tools.toolbox import builtin_toolbox
from contextlib import closing
from leporello.tools.terminal import BackgroundJobs

root = Path(sys.argv[1])
approver = PolicyApprover(ApprovalMode.AUTO)
context = ToolContext(root, root / "out", approver, emit=lambda text: print(text, end="", flush=True))
lines = ["echo begun $$; trap '' TERM; sleep 300 & sleep 300", "touch second"]
with closing(BackgroundJobs()) as jobs:
    box = builtin_toolbox(root, jobs)
    calls = [ToolCall("same", "terminal", json.dumps({"command": line}), 0) for line in lines]
    results = [box.run(wanted, context) for wanted in calls]
print(json.dumps([[r.text, r.status, r.is_error, dict(r.details)] for r in results]), flush=True)
"""


def test_sigint_during_a_command_leaves_a_valid_result_and_no_process(tmp_path: Path) -> None:
    """A real Ctrl-C, against a command that ignores the polite signal and has children."""
    process = subprocess.Popen([sys.executable, "-c", SIGINT_SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        group = int(process.stdout.readline().split()[1])
        process.send_signal(signal.SIGINT)
        first, second = json.loads(process.stdout.read())
    assert process.wait() == 0
    assert first[0] == f"begun {group}\n"
    assert "interrupted" in first[1]
    assert first[2]
    assert second[3]["interrupted"]
    assert not (tmp_path / "second").exists()
    with pytest.raises(ProcessLookupError):
        _probe(group)


def _probe(group: int) -> None:
    """Raise ProcessLookupError unless a process of the group runs; the dead that were not fetched don't count."""
    from leporello.tools.processes import group_alive

    os.killpg(group, 0)
    if not group_alive(group):
        raise ProcessLookupError
