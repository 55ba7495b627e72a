"""The figures of replayed sessions: what `leporello replay --json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from leporello.bench.bank import Bank, session_file
from leporello.bench.exam import ExamAnswer, ask, bank_rates, without_thinking
from leporello.bench.replay import DEFAULT_MODEL, ReplayedSession, ReplaySetup, Told, replay_session, steps_of
from leporello.bench.run import make_search
from leporello.bench.states import StateAnswer, StateExam, check, first_lines, state_rates, written_view
from leporello.billing import CacheBill
from leporello.importers import ImportedSession
from leporello.models import model_facts
from leporello.present.text import money
from leporello.tokens import TokenCounter

FALL = 0.7
CLIENT_MODELS = {"codex": "gpt-5-codex"}
"""For recordings that name no model."""


@dataclass(frozen=True, slots=True)
class BilledSession:
    """One replayed session, what its exam found, and what the recording says that it cost."""

    name: str
    setup: ReplaySetup
    replayed: ReplayedSession
    answers: tuple[ExamAnswer, ...] = ()
    recorded: RecordedBill | None = None
    """None: the file holds no usage."""
    states: tuple[StateAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedBill:
    """What the client that recorded the session really sent, by its own figures."""

    calls: tuple[CacheBill, ...]
    output: int
    cost: float | None

    @property
    def bill(self) -> CacheBill:
        """All calls. Recordings don't tell short and long writes apart."""
        return sum(self.calls, CacheBill())

    @property
    def falls(self) -> list[int]:
        """Calls whose prompt is much smaller than the one before: the client compacted."""
        sizes = [call.prompt for call in self.calls]
        return [index for index in range(1, len(sizes)) if sizes[index] < FALL * sizes[index - 1]]


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A session to be replayed: its name, what was recorded, and what is asked about it."""

    name: str
    session: ImportedSession
    bank: Bank | None = None
    states: tuple[StateExam, ...] = ()
    """What holds at moments of it."""

    @property
    def model(self) -> str:
        """The one that most calls went to, if its prices are known."""
        used = Counter(call.model for call in self.session.usage if call.model) or Counter(self.session.models)
        known = (name for name, _ in used.most_common() if model_facts(name).prices)
        return next(known, CLIENT_MODELS.get(self.session.format, DEFAULT_MODEL))

    def base(self, model: str) -> int:
        """Tokens of the first request that the file doesn't show: system prompt and tools."""
        first = next(steps_of(self.session), None)
        if not self.session.usage or first is None:
            return 0
        shown = TokenCounter.for_model(model).request(first.heard)
        return max(0, self.session.usage[0].usage.prompt_tokens - shown)

    def recorded(self, model: str) -> RecordedBill | None:
        """What it cost by its recorded usage, at the prices of a model; None when the file holds no usage."""
        used = [call.usage for call in self.session.usage]
        calls = [CacheBill(one.cache_read_tokens, one.cache_write_tokens, one.input_tokens) for one in used]
        if not any(call.prompt for call in calls):
            return None
        facts, counter = model_facts(model), TokenCounter.for_model(model)
        # Some clients record the output while it streams: it is counted as in a replay.
        output = [counter.message(self.session.messages[call.index]) for call in self.session.usage]
        cost = _sum(call.cost(facts, size) for call, size in zip(calls, output, strict=True))
        return RecordedBill(tuple(calls), sum(output), cost)


def bill_session(file: RecordedFile, setup: ReplaySetup, told: Told | None = None) -> BilledSession:
    """Replay one session, bill it and examine what is left of it."""
    replayed = replay_session(file.session, setup, told)
    answers: tuple[ExamAnswer, ...] = ()
    if file.bank is not None:
        answers = ask(file.bank, replayed.final, make_search("recall", without_thinking(file.session.messages)))
    states: list[StateAnswer] = []
    for exam in file.states:
        # The session is replayed up to the moment that the bank is about.
        path = session_file(exam.bank.session, exam.sessions, exam.bank.path)
        final = replay_session(first_lines(path, exam.bank.lines), setup).final
        states += check(exam.bank, written_view(final))
    return BilledSession(file.name, setup, replayed, answers, file.recorded(setup.model), tuple(states))


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """All sessions under one setup."""

    name: str
    billed: Sequence[BilledSession]


def sentence(billed: BilledSession) -> str:
    """What the session cost, what it would have cost, and what was still known; empty without recorded usage."""
    row = _row(billed)
    if billed.recorded is None or billed.recorded.cost is None or row["cost"] is None:
        return ""
    said = f"This session cost {money(billed.recorded.cost)}, with Leporello {money(row['cost'])}"
    if not billed.answers:
        return f"{said}."
    return f"{said}, and {row['closed']:.0%} of what mattered was still there ({row['recovered']:.0%} with one search)."


def bill_report(billed: Sequence[BilledSession]) -> dict[str, Any]:
    return {"sessions": [_row(one) for one in billed], "total": _together(billed)}


def _row(billed: BilledSession) -> dict[str, Any]:
    return {"session": billed.name, **_together([billed])}


def _together(billed: Sequence[BilledSession]) -> dict[str, Any]:
    answers = [answer for one in billed for answer in one.answers]
    states = [answer for one in billed for answer in one.states]
    return {
        **_figures([one.replayed for one in billed]),
        **(bank_rates(answers) if answers else {}),
        **({"state": state_rates(states)} if states else {}),
        **_recorded(billed),
    }


def _figures(sessions: Sequence[ReplayedSession]) -> dict[str, Any]:
    calls = [call for session in sessions for call in session.calls]
    made = [compaction for session in sessions for compaction in session.compactions]
    bill = sum((session.bill for session in sessions), CacheBill())
    summaries = sum((session.summaries for session in sessions), CacheBill())
    spent = bill + summaries
    return {
        "calls": len(calls),
        "units": round(spent.units),
        "summary_units": round(summaries.units),
        "cost": _sum([*(call.cost for call in calls), *(session.summary_cost for session in sessions)]),
        "read": spent.read,
        "written": spent.write,
        "written_1h": spent.long_write,
        "fresh": spent.uncached,
        "hit_rate": round(bill.read / bill.prompt, 4) if bill.prompt else 0.0,
        "bound_units": round(sum(call.bound for call in calls)),
        "missed": sum(call.missed for call in calls),
        "compactions": len(made),
        "cache_breaks": sum(call.broke_cache for call in calls),
        "waits": sum(compaction.waited for compaction in made),
        "mean_context": round(bill.prompt / len(calls)) if calls else 0,
        "kept_tokens": round(fmean(session.kept_tokens for session in sessions)) if sessions else 0,
    }


def _recorded(billed: Sequence[BilledSession]) -> dict[str, Any]:
    found = [one.recorded for one in billed if one.recorded is not None]
    if not found or len(found) < len(billed):
        return {}
    bill = sum((one.bill for one in found), CacheBill())
    return {
        "recorded": {
            "calls": sum(len(one.calls) for one in found),
            "units": round(bill.units),
            "cost": _sum(one.cost for one in found),
            "read": bill.read,
            "written": bill.write,
            "fresh": bill.uncached,
        }
    }


def _sum(costs: Iterable[float | None]) -> float | None:
    """All of them together; None when one of them is not known."""
    given = list(costs)
    known = [cost for cost in given if cost is not None]
    return round(sum(known), 6) if len(known) == len(given) else None
