"""Fits the weights of `leporello.ledger.importance` on question banks and public chat data.

    python scripts/fit_importance.py --sessions DIR --banks DIR [--locomo DIR] [--beam DIR] [--check --by project]

A unit counts as needed when it holds the gold text of a question. What is maximised is how early needed units come when
all units are taken in the order of their scores: for each gold text the logarithm of the tokens taken until it is
there, between half of a budget and twice of it. Coordinate search, a small penalty for every weight. `--check`
fits without each group of sessions (`--by project` or `--by session`), runs the whole exam with those weights and
prints what is still known: the honest figure. `--bill` does the same with the sessions of the benchmark `field`: what
they cost with each `--policy` (the default one), and what is still known. Without either the weights are written to
the package.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.field import COMMON
from benchmarks.field import SESSIONS as FIELD
from leporello.bench.bank import WordIndex, load_bank, texts_of
from leporello.bench.baselines import newest
from leporello.bench.bill import BilledSession, RecordedFile, bill_report, bill_session
from leporello.bench.exam import BankExam, without_thinking
from leporello.bench.memory import MemoryExam, load_beam, load_locomo
from leporello.bench.run import BANK, ExamRun, run_one
from leporello.importers import load_session
from leporello.ledger import importance
from leporello.ledger.calls import UNKNOWN_CALL, describe, result_text
from leporello.ledger.facts import result_lines, shown_facts
from leporello.ledger.importance import FEATURES, Source, Vocabulary, features_of
from leporello.ledger.units import placed_sentences
from leporello.messages import Message, ToolCall, calls_of, is_result, result_id, role_of, text_of
from leporello.policy.decision import DEFAULT, POLICIES
from leporello.redact.messages import masked_call
from leporello.tokens import TokenCounter

BUDGETS = {"code": (28_000, 13_500, 8_200), "locomo": (3_000,), "beam": (12_500,)}
"""What a fold has room for in the windows that are examined."""
TAILS = {"code": 1_500, "locomo": 400, "beam": 1_600}
KIND_WEIGHTS = {"code": 3.0, "locomo": 1.0, "beam": 1.0}
WIDTH = 2.0
NEVER = 1e9
LINE_TOKENS, ENTRY_TOKENS = 1, 3
PENALTY = 0.002
START = {"information": 1.0, "length": -0.5}
STEPS = (0.4, 0.2, 0.2, 0.1, 0.1)
TARGET = Path(__file__).parent.parent / "src/leporello/ledger/weights.json"
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Sample:
    """One conversation: a row of features for each unit, what units cost, and which units answer which question."""

    name: str
    group: str
    kind: str
    rows: np.ndarray
    costs: np.ndarray
    messages: np.ndarray
    """Which message a unit is of."""
    entry_costs: np.ndarray
    """What the first unit of its message costs beside its text."""
    answers: list[list[tuple[int, ...]]]
    known: int
    """How many questions the tail answers."""


def folded(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()


def sample_of(name: str, group: str, kind: str, messages: Sequence[Message], golds: Sequence[str]) -> Sample:
    """The units of a conversation as the ledger reads them, those of the tail and repeated ones left out."""
    count = TokenCounter.for_model(None).text
    vocabulary = Vocabulary()
    talk = not any(map(is_result, messages))
    tail = newest(messages, TAILS[kind])
    in_tail = WordIndex(texts_of(tail))
    texts: dict[str, None] = {}
    rows: list[tuple[float, ...]] = []
    costs: list[tuple[int, int, int]] = []
    calls: dict[str, ToolCall] = {}
    for number, message in enumerate(messages[: len(messages) - len(tail)]):
        calls.update((call.id, call) for call in calls_of(message))
        call = calls.get(result_id(message) or "")
        source, units = units_of(message, call)
        if source is None:
            continue
        entry = ENTRY_TOKENS + (count(describe(call).heading) if call else 0)
        for row, (text, _) in zip(features_of(vocabulary, source, units), units, strict=True):
            if text not in texts:
                texts[text] = None
                rows.append(row)
                costs.append((count(text) + LINE_TOKENS, number, entry))
    table = np.array(rows)
    if talk:
        table[:, FEATURES.index("user")] = 0
    asked = [gold for gold in golds if not in_tail.has(gold)]
    answers = [holding(list(map(folded, texts)), gold, loosely=talk) for gold in asked]
    return Sample(name, group, kind, table, *np.array(costs).T, answers, len(golds) - len(asked))


def units_of(message: Message, call: ToolCall | None) -> tuple[Source | None, list[tuple[str, int]]]:
    if is_result(message):
        text = result_text(message)
        if call and shown_facts(message, masked_call(call)):
            return None, []
        about = describe(call) if call else UNKNOWN_CALL
        lines = result_lines(text, about)
        return Source("tool", len(text), len(lines), about.work), lines
    if role_of(message) not in ("user", "assistant"):
        return None, []
    text = text_of(message)
    sentences = placed_sentences(text)
    return Source(role_of(message), len(text), sentences[-1][1] + 1 if sentences else 0), sentences


def holding(texts: Sequence[str], gold: str, *, loosely: bool) -> list[tuple[int, ...]]:
    """The units, or runs of up to six units, that hold a gold text; `loosely`: most of its words are enough."""
    wanted = folded(gold)
    alone = [(index,) for index, text in enumerate(texts) if wanted in text]
    if not alone and loosely:
        alone = [(index,) for index, text in enumerate(texts) if WordIndex([text]).has(gold)]
    if alone:
        return alone
    runs = []
    for start in range(len(texts)):
        for stop in range(start + 2, min(start + 7, len(texts) + 1)):
            if wanted in " ".join(texts[start:stop]):
                runs.append(tuple(range(start, stop)))
                break
    return runs


def earliness(sample: Sample, weights: np.ndarray) -> float:
    """Between 0 and 1: how early the units come that questions need."""
    order = np.argsort(-(sample.rows @ weights), kind="stable")
    opens = np.zeros(len(order), bool)
    opens[np.unique(sample.messages[order], return_index=True)[1]] = True
    taken = np.empty(len(order))
    taken[order] = np.cumsum(sample.costs[order] + np.where(opens, sample.entry_costs[order], 0))
    needed = [min((max(taken[i] for i in run) for run in runs), default=NEVER) for runs in sample.answers]
    values = [
        np.clip(np.log(WIDTH * budget / np.array([*needed, *[1.0] * sample.known])) / np.log(WIDTH**2), 0, 1).mean()
        for budget in BUDGETS[sample.kind]
    ]
    return float(np.mean(values))


def objective(samples: Sequence[Sample], weights: np.ndarray, start: np.ndarray) -> float:
    total = norm = 0.0
    for kind, weight in KIND_WEIGHTS.items():
        values = [earliness(sample, weights) for sample in samples if sample.kind == kind]
        if values:
            total += weight * float(np.mean(values))
            norm += weight
    return total / norm - PENALTY * float(np.abs(weights - start).sum())


def fit(samples: Sequence[Sample]) -> np.ndarray:
    """Coordinate search with ever smaller steps."""
    start = np.array([START.get(name, 0.0) for name in FEATURES])
    weights, best = start.copy(), objective(samples, start, start)
    for step in STEPS:
        for index in range(len(weights)):
            for move in (step, -step):
                changed = False
                while True:
                    tried = weights.copy()
                    tried[index] += move
                    value = objective(samples, tried, start)
                    if value <= best + 1e-5:
                        break
                    weights, best, changed = tried, value, True
                if changed:
                    break
    return weights


def project_of(session: str) -> str:
    """The project a recorded session is about: its file name up to the first hexadecimal id."""
    return re.split(r"-(?=[0-9a-f]{8}|rollout|deepseek)", Path(session).name)[0]


def code_samples(banks: Path, sessions: Path, by: str) -> list[Sample]:
    found = []
    for path in sorted(banks.glob("*.json")):
        bank = load_bank(path)
        messages = without_thinking(load_session(sessions / bank.session).messages)
        group = project_of(bank.session) if by == "project" else bank.session
        found.append(sample_of(bank.session, group, "code", messages, [q.gold for q in bank.questions]))
    return found


def chat_samples(kind: str, exams: Sequence[MemoryExam], only: Collection[str]) -> list[Sample]:
    return [
        sample_of(
            exam.session, f"{kind} {exam.id}", kind, exam.messages, [e for q in exam.questions for e in q.evidence]
        )
        for exam in exams
        if not only or exam.id in only
    ]


def check(samples: Sequence[Sample], banks: Path, sessions: Path, windows: Sequence[int]) -> None:
    """Fit without each group of coding sessions and examine that group with the weights."""
    scores: dict[int, list] = {window: [] for window in windows}
    for group in sorted({sample.group for sample in samples if sample.kind == "code"}):
        fitted = tuple(float(value) for value in fit([sample for sample in samples if sample.group != group]))
        with_weights(fitted)
        for path in sorted(banks.glob("*.json")):
            bank = load_bank(path)
            if not any(sample.group == group and sample.name == bank.session for sample in samples):
                continue
            for window in windows:
                scores[window].append(run_one(ExamRun("compressor", window, "recall"), BankExam(bank, sessions)))
        print(f"{group}: examined with weights fitted without it", flush=True)
    for window, found in scores.items():
        total = BANK.report(found)["total"]
        rates = f"{total['closed']:.1%} / {total['recovered']:.1%}"
        print(f"left out, window {window:,}: {rates}, {total['kept_tokens']:,} tokens kept")


def bill(samples: Sequence[Sample], banks: Path, sessions: Path, policies: Sequence[str]) -> None:
    """The sessions of the benchmark, each with weights that were fitted without its project."""
    billed: dict[str, list[BilledSession]] = {policy: [] for policy in policies}
    for group in sorted({project_of(name) for name in FIELD}):
        with_weights(tuple(float(value) for value in fit([one for one in samples if one.group != group])))
        for name in (one for one in FIELD if project_of(one) == group):
            file = RecordedFile(name, load_session(sessions / name), load_bank(banks / f"{Path(name).stem}.json"))
            for policy, done in billed.items():
                done.append(bill_session(file, replace(COMMON, flags={"compression.policy": policy})))
    for policy, done in billed.items():
        total = bill_report(done)["total"]
        rates = f"{total['closed']:.1%} / {total['recovered']:.1%}"
        print(f"left out, {policy}, {total['calls']:,} calls: {total['units'] / 1e6:.2f}M units, {rates}")


def with_weights(weights: tuple[float, ...]) -> None:
    """Put other weights in the place of those of the package, for this process."""
    table = dict(zip(FEATURES, weights, strict=True))

    def replaced(names: tuple[str, ...] = FEATURES) -> tuple[float, ...]:
        return tuple(table[name] for name in names)

    importance.weights = replaced  # type: ignore[assignment]


def ids(listed: str) -> set[str]:
    return {one.strip() for one in listed.split(",") if one.strip()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--banks", type=Path, required=True)
    parser.add_argument("--locomo", type=Path, help="folder of LoCoMo files")
    parser.add_argument("--beam", type=Path, help="folder of BEAM chats")
    parser.add_argument("--only-locomo", default="", help="ids, with commas")
    parser.add_argument("--only-beam", default="", help="ids, with commas")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--bill", action="store_true")
    parser.add_argument("--policy", choices=POLICIES, action="append")
    parser.add_argument("--by", choices=("project", "session"), default="project")
    parser.add_argument("--window", type=int, action="append")
    options = parser.parse_args()
    samples = code_samples(options.banks, options.sessions, options.by)
    if options.locomo:
        samples += chat_samples("locomo", load_locomo(options.locomo), ids(options.only_locomo))
    if options.beam:
        samples += chat_samples("beam", load_beam(options.beam), ids(options.only_beam))
    if options.check:
        check(samples, options.banks, options.sessions, options.window or [128_000, 64_000, 40_000])
        return
    if options.bill:
        bill(samples, options.banks, options.sessions, options.policy or [DEFAULT])
        return
    weights = {name: round(float(value), 3) for name, value in zip(FEATURES, fit(samples), strict=True)}
    TARGET.write_text(json.dumps({"fitted_by": "scripts/fit_importance.py", "weights": weights}, indent=1) + "\n")
    print(f"{len(weights)} weights written")


if __name__ == "__main__":
    main()
