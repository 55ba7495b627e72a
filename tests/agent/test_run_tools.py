"""Several calls in one reply: each result is safe before the next call begins, and all together keep to the budget."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leporello.agent.events import AgentEvent, ToolFinished, ToolStarted
from leporello.messages import is_result, text_of
from leporello.tools.base import OutputLimits
from leporello.tools.budget import OPENING
from leporello.turns import validate

from .conftest import Bench, calls
from .test_agent import stored


def test_after_a_kill_only_the_unfinished_calls_are_unknown(tmp_path: Path) -> None:
    """The process dies in the second of three calls: the first one's result is there when the work is taken up."""
    program = [sys.executable, "-m", "tests.agent.dies_in_a_call", str(tmp_path)]
    died = subprocess.run(program, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    bench = Bench(tmp_path)
    assert sorted(path.name for path in bench.workdir.iterdir()) == ["first", "second"]
    agent = bench.agent(["I go on."])
    assert agent.turn("and?").text == "I go on."
    results = [text_of(message) for message in stored(agent) if is_result(message)]
    assert len(results) == 3
    assert "first is done" in results[0]
    assert all("unknown" in text for text in results[1:])
    assert validate(agent.conversation.messages) == []
    bench.store.close()


def test_a_result_is_stored_before_it_is_announced_and_before_the_next_call(bench: Bench) -> None:
    asked = calls(*((f"c{k}", "terminal", {"command": f"echo {k}"}) for k in range(3)))
    agent = bench.agent([asked, "done"])
    seen: list[tuple[str, str, int]] = []

    def watch(event: AgentEvent) -> None:
        if isinstance(event, ToolStarted | ToolFinished):
            seen.append((type(event).__name__, event.id, sum(is_result(message) for message in stored(agent))))

    agent.turn("go", watch)
    assert seen == [
        ("ToolStarted", "c0", 0),
        ("ToolFinished", "c0", 1),
        ("ToolStarted", "c1", 1),
        ("ToolFinished", "c1", 2),
        ("ToolStarted", "c2", 2),
        ("ToolFinished", "c2", 3),
    ]


@pytest.mark.parametrize("sizes", [[7_900] * 6, [100, 7_900, 7_900, 100, 7_900], [7_900, 7_900, *[300] * 12]])
def test_the_results_of_one_reply_together_keep_to_the_limit(bench: Bench, sizes: list[int]) -> None:
    """Each is below the threshold of one result; what doesn't fit beside the others is saved whole."""
    window = 16_384
    limits = OutputLimits.for_window(window)
    assert max(sizes) < limits.result_chars
    asked = calls(
        *(
            (f"c{k}", "terminal", {"command": f"head -c {size} /dev/zero | tr '\\0' {'abcdefghijklmnop'[k]}"})
            for k, size in enumerate(sizes)
        )
    )
    agent = bench.agent([asked, "done"], window=window)
    finished: list[ToolFinished] = []
    agent.turn("go", lambda event: finished.append(event) if isinstance(event, ToolFinished) else None)
    results = [text_of(message) for message in stored(agent) if is_result(message)]
    assert len(results) == len(sizes)
    assert sum(map(len, results)) <= limits.turn_chars
    for k, (text, event) in enumerate(zip(results, finished, strict=True)):
        whole = "abcdefghijklmnop"[k] * sizes[k]
        assert whole in (Path(event.saved).read_text() if text.startswith(OPENING) else text)
