"""What starting costs: processor time of short commands, and how long `leporello chat` takes to its prompt.

Modules are compiled before, as an installation does it. Commands and the bare interpreter take turns, so that other
work on the machine slows both alike.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pexpect

from benchmarks.table import seconds, table

RUNS = 9
SOURCES = Path(__file__).resolve().parent.parent / "src"
START = "import sys; from leporello.cli import main; sys.exit(main(sys.argv[1:]))"
COMMANDS: dict[str, tuple[Sequence[str], float]] = {
    "python -c pass": (["-c", "pass"], 0),
    "import leporello": (["-c", "import leporello"], 0.025),
    "leporello --help": (["-c", START, "--help"], 0.06),
    "leporello run hello, scripted": (["-c", START, "run", "--model", "scripted:demo", "hello"], 0.5),
    "leporello sessions list": (["-c", START, "sessions", "list"], 0.12),
}
"""What is run, and what it should take at most."""


def run(earlier: Path | None = None) -> str:
    """Median and spread of cold starts, beside a bare interpreter. `earlier`: the sources of an earlier release."""
    with tempfile.TemporaryDirectory() as home:
        ours = _measured(SOURCES, f"{home}/now")
        before = _measured(earlier, f"{home}/earlier") if earlier else {}
        program = str(Path(sys.executable).with_name("leporello"))
        prompts = [_to_prompt(program, home) for _ in range(RUNS)]
    rows = [
        [name, *_spread(times), seconds(statistics.median(before[name])) if before else "-", _aim(name)]
        for name, times in ours.items()
    ]
    rows.append(["leporello chat, to its prompt (by the clock)", *_spread(prompts), "-", "-"])
    return table(["command, processor time", f"median of {RUNS}", "least", "most", "0.1.0", "aim"], rows)


def _aim(name: str) -> str:
    return seconds(COMMANDS[name][1]) if COMMANDS[name][1] else "-"


def _measured(sources: Path, home: str) -> dict[str, list[float]]:
    """The times of each command; the first round, which makes what is missing, does not count."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", sources], check=True)
    variables = {**os.environ, "PYTHONPATH": str(sources), "LEPORELLO_HOME": home}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(RUNS + 1):
        for name, (command, _) in COMMANDS.items():
            took = _processor([sys.executable, *command], variables)
            if turn:
                times[name].append(took)
    return times


def _spread(times: list[float]) -> list[str]:
    return [seconds(statistics.median(times)), seconds(min(times)), seconds(max(times))]


def _processor(command: Sequence[str], variables: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _to_prompt(program: str, home: str) -> float:
    """A pseudo-terminal that answers the question for the cursor's place, as terminals do."""
    begun = time.perf_counter()
    child = pexpect.spawn(program, ["--home", home, "chat", "--model", "scripted:demo"], encoding="utf-8", timeout=60)
    try:
        while child.expect(["›", r"\x1b\[6n"]):
            child.send("\x1b[1;1R")
        return time.perf_counter() - begun
    finally:
        child.close(force=True)
