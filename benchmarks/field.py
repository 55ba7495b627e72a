"""The field in one simulator: other projects' compaction beside ours, on the same recorded sessions.

Needs LEPORELLO_DATA (recorded sessions) and LEPORELLO_BANKS (question banks). Model-free: where another project would
have a model write a summary, its own fallback text stands in for it (Hermes), or a stand-in of 4,000 tokens without
content. Their closed-book recall is that of what stays word for word; a model's summary would add to it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.peer_engines import HeadroomEngine, HermesEngine
from benchmarks.table import table
from leporello.bench.bank import load_bank
from leporello.bench.bill import BilledSession, RecordedFile, bill_report, bill_session
from leporello.bench.replay import ReplaySetup
from leporello.importers import load_session
from leporello.policy.decision import POLICIES

SESSIONS = (
    "claude-code/go-cli-44df7d08.jsonl",
    "claude-code/go-cli-6113e919.jsonl",
    "claude-code/go-cli-9d7a9d52.jsonl",
    "claude-code/go-cli-c35cf82b.jsonl",
    "codex/OpenPrintKit-rollout-2025-10-31T19-02-58-c61729d4-da6d-46a4-9a29-ec2c614e5e23.jsonl",
)
COMMON = ReplaySetup(model="claude-sonnet-4-5", window=200_000, base=20_000, pauses=False)
OLD_MARKS = {"prompt_caching.layout": "system_and_3"}
"""What the others use, where they mark at all."""
RUNS: dict[str, ReplaySetup] = {
    "no compaction": replace(COMMON, engine="whole", flags=OLD_MARKS),
    **{f"Leporello, {name}": replace(COMMON, flags={"compression.policy": name}) for name in POLICIES},
    "Leporello, balanced, unused tools hidden": replace(COMMON, tools=14_000),
    "Leporello, lcm, memory": replace(COMMON, engine="lcm", flags={"compression.policy": "memory"}),
    "Hermes 0.19.0, its own code": replace(COMMON, other=HermesEngine, flags=OLD_MARKS),
    "Claude Code's rule": replace(COMMON, engine="claude-code", flags=OLD_MARKS),
    "Codex's rule": replace(COMMON, engine="codex", flags=OLD_MARKS),
    "deepagents' rule (LangChain)": replace(COMMON, engine="deepagents", flags=OLD_MARKS),
    "observation masking, last 10": replace(COMMON, engine="masking", flags=OLD_MARKS),
    "clearing all but 10 results at 50%": replace(COMMON, engine="clear-tools", flags=OLD_MARKS),
    "sliding window": replace(COMMON, engine="sliding-window", flags=OLD_MARKS),
}
SLOW = {"headroom 0.42.0, its own code": replace(COMMON, other=HeadroomEngine, flags=OLD_MARKS)}
"""Takes a quarter of a second for a request: on one session, beside the default."""
SLOW_SESSION = SESSIONS[2]
HEADER = (
    "",
    "units",
    "x bound",
    "of them summaries",
    "compactions",
    "waits",
    "cache breaks",
    "mean prompt",
    "prompts over the window",
    "kept",
    "closed-book",
    "with one search",
)


def _one(name: str, session: str) -> BilledSession:
    path = Path(os.environ["LEPORELLO_DATA"]) / session
    bank = load_bank(Path(os.environ["LEPORELLO_BANKS"]) / f"{path.stem}.json")
    return bill_session(RecordedFile(path.name, load_session(path), bank), {**RUNS, **SLOW}[name])


def run(names: Sequence[str] = tuple(RUNS), sessions: Sequence[str] = SESSIONS) -> str:
    """The table, and one for those that are too slow for all sessions."""
    if not {"LEPORELLO_DATA", "LEPORELLO_BANKS"} <= set(os.environ):
        raise SystemExit("LEPORELLO_DATA and LEPORELLO_BANKS must name the recorded sessions and their banks.")
    slow = ("Leporello, balanced", *SLOW)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return f"{_table(pool, names, sessions)}\n\n{_table(pool, slow, [SLOW_SESSION])}"


def _table(pool: ProcessPoolExecutor, names: Sequence[str], sessions: Sequence[str]) -> str:
    pairs = [(name, session) for name in names for session in sessions]
    billed = list(pool.map(_one, *zip(*pairs, strict=True)))
    width = len(sessions)
    rows = [_row(name, billed[place * width : (place + 1) * width]) for place, name in enumerate(names)]
    calls = sum(len(one.replayed.calls) for one in billed[:width])
    what = f"{width} recorded sessions" if width > 1 else Path(sessions[0]).stem
    return (
        f"{what}, {calls:,} calls, window 200,000, 20,000 tokens of system prompt and tools, prices of Claude Sonnet "
        f"4.5, every call before the cache runs out:\n\n{table(list(HEADER), rows)}"
    )


def _row(name: str, billed: Sequence[BilledSession]) -> list[str]:
    total: dict[str, Any] = bill_report(billed)["total"]
    window = COMMON.window or 0
    over = sum(call.bill.prompt > window for one in billed for call in one.replayed.calls)
    return [
        name,
        f"{total['units'] / 1e6:.2f}M",
        f"{(total['units'] - total['summary_units']) / total['bound_units']:.2f}",
        f"{total['summary_units'] / 1e6:.2f}M",
        f"{total['compactions']:,}",
        f"{total['waits']:,}",
        f"{total['cache_breaks']:,}",
        f"{total['mean_context'] / 1e3:.1f}K",
        f"{over:,}",
        f"{total['kept_tokens'] / 1e3:.1f}K",
        f"{total['closed']:.1%}",
        f"{total['recovered']:.1%}",
    ]
