"""What the policy costs in a turn: the decisions after an answer and before a request, and the account of it."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

from benchmarks.table import table
from leporello.models import model_facts
from leporello.models.limits import Limits
from leporello.policy.decision import Occasion, Situation, decide, depth_of, outlook
from leporello.policy.prices import price_table
from leporello.policy.state import sent

TURNS = 2_000
ROUNDS = 15


def run() -> str:
    """Processor time of a turn, median and worst of several rounds."""
    rows = []
    for model in ("claude-sonnet-4-5", "gpt-5.4", "qwen3-coder"):
        times = [_round(model) for _ in range(ROUNDS)]
        rows.append([model, f"{statistics.median(times) * 1e6:.1f}", f"{max(times) * 1e6:.1f}"])
    return table(["prices of", f"microseconds a turn, median of {ROUNDS} x {TURNS:,}", "largest"], rows)


def _round(model: str) -> float:
    limits = Limits.for_window(200_000)
    situation = Situation(
        Occasion.PREFLIGHT,
        limits,
        tokens=40_000,
        fixed=20_000,
        depth=depth_of(limits, 20_000),
        prices=price_table(model_facts(model)),
    )
    begun = time.process_time()
    for turn in range(TURNS):
        situation = replace(situation, tokens=40_000 + turn % 40_000, now=situation.now + 10.0)
        decide(replace(situation, occasion=Occasion.TURN))
        outlook(situation, decide(situation))
        situation = replace(situation, state=replace(sent(situation), rent=0.0))
    return (time.process_time() - begun) / TURNS
