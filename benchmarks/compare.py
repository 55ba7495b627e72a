"""`compress()` without a model beside hermes-agent's compressor and an earlier release, in one run.

Recorded sessions joined to several sizes (LEPORELLO_DATA), and a generated one whose facts are known. Processor time;
the engines take turns, so that other work on the machine slows all alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import HERMES, environment
from benchmarks.recorded import joined
from benchmarks.table import seconds, table
from leporello.messages import Message
from leporello.testing.sessions import FactKind, GeneratedSession, generate
from leporello.tokens import TokenCounter
from leporello.turns import validate
from tests.support.checks import context_text, plain

MESSAGES, TOKENS = 3_000, 1_000_000
SIZES = {100_000: 5, 450_000: 5, 1_000_000: 5, 4_000_000: 1}
"""Tokens of joined recorded sessions, and how often they are compacted."""
WINDOW = 200_000
REPEATS = 5
WARM_UP = 400
"""Messages of another session that is compacted first and not measured: patterns and vocabularies are loaded in it."""
FIRST = 3
"""How often the first compaction of a new process is measured."""
MOST_EARLIER = 10_000
"""Messages of the longest session that an earlier release is asked to compact: it takes a minute there."""
DRIVER = Path(__file__).with_name("compaction_driver.py")
OURS, PEER, SHIPPED, EARLIER = "Leporello", HERMES.replace("==", " "), "as shipped", "earlier"


@dataclass(slots=True)
class Measured:
    """What the runs of one engine on one session took, in processor seconds."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    appended: list[float] = field(default_factory=list)
    """Of each run: all messages, one after another."""
    appends: list[float] = field(default_factory=list)
    """Of each message."""
    first: list[float] = field(default_factory=list)
    """Of a process that did nothing before."""
    result: list[Message] = field(default_factory=list)

    def take(self, answer: dict[str, Any]) -> None:
        self.cold.append(answer["cold"])
        self.result = answer["result"]
        if "warm" in answer:
            self.warm.append(answer["warm"])
            self.appended.append(sum(answer["appends"]))
            self.appends += answer["appends"]


def run(earlier: Path | None = None) -> str:
    """The tables. `earlier`: the sources of an earlier release, to stand beside this one."""
    session = generate(seed=1, messages=MESSAGES, tokens=TOKENS, images=0)
    lists: dict[str, tuple[list[Message], int]] = {}
    if "LEPORELLO_DATA" in os.environ:
        lists |= {f"recorded, {_short(size)}": (joined(size), repeats) for size, repeats in SIZES.items()}
    lists["generated, 1M"] = (list(session.messages), REPEATS)
    measured = {name: _interleaved(messages, repeats, earlier) for name, (messages, repeats) in lists.items()}
    counts = {name: len(messages) for name, (messages, _) in lists.items()}
    return "\n".join(
        [
            f"Window {WINDOW:,}, no summary model; processor time, medians of {REPEATS} runs that take turns "
            "(one at 4M), with the fastest and the slowest; the earlier release ran once:",
            "",
            _times(measured, counts),
            "",
            "The same list as the first that a new process compacts, which compiles its patterns and loads its "
            "vocabulary meanwhile; the modules are loaded:",
            "",
            _firsts(measured),
            "",
            "Appending one message (ledger and count), and what the sum of all appends and a compaction takes:",
            "",
            _appends(measured),
            "",
            "What is left of the generated session:",
            "",
            _left(measured["generated, 1M"], session),
        ]
    )


def _interleaved(messages: Sequence[Message], repeats: int, earlier: Path | None) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = folder / "warm-up.json", folder / "session.json"
        other = generate(seed=2, messages=WARM_UP, tokens=WARM_UP * 300, images=0).messages
        for file, part in zip(files, (other, messages), strict=True):
            file.write_text(json.dumps(list(part)), encoding="utf-8")
        python = Path(sys.executable)
        ways = {OURS: (python, "leporello", None), PEER: (environment(HERMES), "hermes", None)}
        ways[SHIPPED] = (environment(HERMES), "hermes-shipped", None)
        if earlier is not None and len(messages) < MOST_EARLIER:
            ways[EARLIER] = (python, "leporello", earlier)
        drivers = {name: stack.enter_context(_driver(*way, folder)) for name, way in ways.items()}
        for turn in range(-1, repeats):
            for name, driver in drivers.items():
                if turn > 0 and name in (SHIPPED, EARLIER):
                    continue  # They are slow, and nothing is held to their figures.
                driver.stdin.write(f"{files[turn >= 0]}\n")
                driver.stdin.flush()
                answer = json.loads(driver.stdout.readline())
                if turn >= 0:
                    found.setdefault(name, Measured()).take(answer)
        for _ in range(min(repeats, FIRST)):
            for name in (OURS, PEER):
                with _driver(*ways[name], folder) as fresh:
                    found[name].first.append(json.loads(fresh.communicate(f"{files[1]}\n")[0])["cold"])
    return found


@contextmanager
def _driver(python: Path, engine: str, sources: Path | None, home: Path) -> Iterator[Any]:
    # A bare environment: no key, no settings and no path of the person who runs this.
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(home), **({"PYTHONPATH": str(sources)} if sources else {})}
    command = [python, DRIVER, engine, str(WINDOW), str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=bare) as process:
        yield process


def _times(measured: dict[str, dict[str, Measured]], counts: dict[str, int]) -> str:
    rows = []
    for name, ways in measured.items():
        ours, peer, earlier = ways[OURS], ways[PEER], ways.get(EARLIER)
        cold, warm, theirs = (statistics.median(times) for times in (ours.cold, ours.warm, peer.cold))
        rows.append(
            [
                name,
                f"{counts[name]:,}",
                _spread(ours.cold),
                _spread(ours.warm),
                seconds(earlier.cold[0]) if earlier else "-",
                seconds(earlier.warm[0]) if earlier else "-",
                _spread(peer.cold),
                f"{cold / theirs:.1f}",
                f"{theirs / warm:.1f}",
            ]
        )
    header = ["session", "messages", "cold", "warm", "0.1.0 cold", "0.1.0 warm", PEER, "cold / it", "it / warm"]
    return table(header, rows)


def _firsts(measured: dict[str, dict[str, Measured]]) -> str:
    rows = []
    for name, ways in measured.items():
        ours, theirs = ways[OURS].first, ways[PEER].first
        ratio = statistics.median(ours) / statistics.median(theirs)
        rows.append([name, _spread(ours), _spread(theirs), f"{ratio:.1f}"])
    return table(["session", "first", PEER, "first / it"], rows)


def _appends(measured: dict[str, dict[str, Measured]]) -> str:
    rows = []
    for name, ways in measured.items():
        ours, earlier = ways[OURS], ways.get(EARLIER)
        cells = [name, *_quantiles(ours), seconds(statistics.median(ours.appended) + statistics.median(ours.warm))]
        rows.append(cells + (_quantiles(earlier) if earlier else ["-", "-", "-"]))
    header = ["session", "median", "p99", "slowest", "all appends + compaction"]
    return table([*header, "0.1.0 median", "0.1.0 p99", "0.1.0 slowest"], rows)


def _quantiles(way: Measured) -> list[str]:
    times = sorted(way.appends)
    return [seconds(statistics.median(times)), seconds(times[int(len(times) * 0.99)]), seconds(times[-1])]


def _left(ways: dict[str, Measured], session: GeneratedSession) -> str:
    counter = TokenCounter.for_model(None)
    rows = []
    for name, way in ways.items():
        text = context_text(way.result)
        told = f"{PEER}, as shipped without a provider" if name == SHIPPED else "0.1.0" if name == EARLIER else name
        kept = [_kept(session, kind, text) for kind in (FactKind.RULE, FactKind.ERROR, FactKind.IDENTIFIER)]
        size = [f"{len(way.result):,}", f"{counter.messages(way.result):,}"]
        rows.append([told, _spread(way.cold), *size, "yes" if not validate(way.result) else "no", *kept])
    return table(["", "cold", "messages", "tokens", "valid", "rules", "errors", "identifiers"], rows)


def _kept(session: GeneratedSession, kind: FactKind, text: str) -> str:
    """How many planted facts of a kind that still hold are in the compressed context."""
    facts = [fact for fact in session.of(kind) if fact.alive() and fact.plain]
    return f"{sum(plain(fact.text) in text for fact in facts)}/{len(facts)}"


def _spread(times: Sequence[float]) -> str:
    if len(times) == 1:
        return seconds(times[0])
    return f"{seconds(statistics.median(times))} ({seconds(min(times))} to {seconds(max(times))})"


def _short(tokens: int) -> str:
    return f"{tokens // 1_000_000}M" if tokens >= 1_000_000 else f"{tokens // 1_000}K"
