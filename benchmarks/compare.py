"""`compress()` without a model on a session of a million tokens, beside hermes-agent's compressor, in one run."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import HERMES, run_hermes
from benchmarks.table import seconds, table
from leporello import compress
from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message
from leporello.testing.sessions import FactKind, GeneratedSession, generate
from leporello.tokens import TokenCounter
from leporello.turns import validate
from tests.support.checks import context_text, plain

MESSAGES, TOKENS = 3_000, 1_000_000
WINDOW = 200_000
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One way of compressing: how long it took (wall and processor seconds of each run), what it left."""

    name: str
    times: list[tuple[float, float]]
    result: list[Message]

    @property
    def wall(self) -> float:
        """The median wall time."""
        return statistics.median(wall for wall, _ in self.times)

    @property
    def cpu(self) -> float:
        """The median processor time: what is compared, because other work on the machine does not change it."""
        return statistics.median(cpu for _, cpu in self.times)


def run() -> str:
    """The table, and what stands behind it."""
    session = generate(seed=1, messages=MESSAGES, tokens=TOKENS, images=0)
    counter = TokenCounter.for_model(None)
    appended = _append_times(session)
    warm = Measured("Leporello, warm", *_timed(lambda: _warm_engine(session), _compress))
    cold = Measured("Leporello, cold", *_timed(lambda: None, lambda _: list(compress(session.messages, window=WINDOW))))
    peer = _hermes(session)
    rows = [_row(way, warm, session, counter) for way in (warm, cold, *peer)]
    size = f"{len(session.messages):,} messages, {counter.messages(session.messages):,} tokens (o200k)"
    header = ["", "processor", "wall", "x warm", "messages", "tokens", "valid", "rules", "errors", "identifiers"]
    return "\n".join(
        [
            f"{size}, window {WINDOW:,}, no summary model, medians of {REPEATS} runs:",
            "",
            table(header, rows),
            "",
            f"Appending one message (count and ledger): median {seconds(statistics.median(appended))}, "
            f"mean {seconds(statistics.fmean(appended))}. Warm means that this was done as the messages came in; cold "
            "starts from a bare list in a fresh process state.",
        ]
    )


def _append_times(session: GeneratedSession) -> list[float]:
    engine = ContextCompressor(WINDOW)
    times = []
    for message in session.messages:
        begun = time.perf_counter()
        engine.observe(message)
        times.append(time.perf_counter() - begun)
    return times


def _warm_engine(session: GeneratedSession) -> tuple[ContextCompressor, list[Message]]:
    engine = ContextCompressor(WINDOW)
    for message in session.messages:
        engine.observe(message)
    return engine, session.messages


def _compress(made: tuple[ContextCompressor, list[Message]]) -> list[Message]:
    engine, messages = made
    return engine.compress(messages, force=True)


def _timed(
    prepare: Callable[[], Any], work: Callable[[Any], list[Message]]
) -> tuple[list[tuple[float, float]], list[Message]]:
    times = []
    result: list[Message] = []
    for _ in range(REPEATS):
        prepared = prepare()
        wall, cpu = time.perf_counter(), time.process_time()
        result = work(prepared)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times, result


def _hermes(session: GeneratedSession) -> list[Measured]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "session.json"
        file.write_text(json.dumps(session.as_document()), encoding="utf-8")
        home = Path(folder) / "home"
        home.mkdir()
        answer = run_hermes(file, WINDOW, REPEATS, home)
    name = HERMES.replace("==", " ")
    return [
        Measured(f"{name}, summary call fails at once", answer["alone"], answer["result"]),
        Measured(f"{name}, as shipped without a provider", answer["as_shipped"], answer["result"]),
    ]


def _row(way: Measured, base: Measured, session: GeneratedSession, counter: TokenCounter) -> list[str]:
    text = context_text(way.result)
    return [
        way.name,
        seconds(way.cpu),
        seconds(way.wall),
        f"{way.cpu / base.cpu:.1f}",
        f"{len(way.result):,}",
        f"{counter.messages(way.result):,}",
        "yes" if not validate(way.result) else "no",
        *(_kept(session, kind, text) for kind in (FactKind.RULE, FactKind.ERROR, FactKind.IDENTIFIER)),
    ]


def _kept(session: GeneratedSession, kind: FactKind, text: str) -> str:
    """How many planted facts of a kind that still hold are in the compressed context."""
    facts = [fact for fact in session.of(kind) if fact.alive() and fact.plain]
    return f"{sum(plain(fact.text) in text for fact in facts)}/{len(facts)}"
