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
from leporello.tokens import TokenCounter

FALL = 0.7
CLIENT_MODELS = {"codex": "gpt-5-codex"}
"""For recordings that name no model."""
WHOLE = "whole"
"""The engine that never compacts."""
WITHOUT, WITHOUT_KEY = "no compaction", "without_compaction"


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
        """All calls."""
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

    @property
    def warm(self) -> int:
        """Tokens that the first recorded call found in the cache."""
        return self.session.usage[0].usage.cache_read_tokens if self.session.usage else 0

    @property
    def cache_ttl(self) -> str:
        """How long the client let the vendor keep what it wrote; empty where the file doesn't tell."""
        written = sum(call.usage.cache_write_tokens for call in self.session.usage)
        return "1h" if 2 * sum(call.written_1h for call in self.session.usage) > written else ""

    def recorded(self, model: str) -> RecordedBill | None:
        """What it cost by its recorded usage, at the prices of a model; None when the file holds no usage."""
        calls = [
            CacheBill(
                call.usage.cache_read_tokens, call.usage.cache_write_tokens, call.usage.input_tokens, call.written_1h
            )
            for call in self.session.usage
        ]
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

    @property
    def label(self) -> str:
        """Who serves the sessions, for people: `Leporello (balanced)`, `codex`."""
        setup = self.billed[0].setup
        if not setup.is_ours:
            return WITHOUT if self.name == WHOLE else self.name
        policy = str(setup.flags.get("compression.policy", ""))
        engine = "" if setup.engine == "compressor" else setup.engine
        about = ", ".join(filter(None, (engine, policy)))
        return f"Leporello ({about})" if about else "Leporello"


def bill_report(billed: Sequence[BilledSession], without: Sequence[BilledSession] = ()) -> dict[str, Any]:
    """The figures of each session and of all; `without` are the same sessions replayed without compaction."""
    rows = [{"session": one.name, **_together([one], without[place : place + 1])} for place, one in enumerate(billed)]
    return {"sessions": rows, "total": _together(billed, without)}


def _together(billed: Sequence[BilledSession], without: Sequence[BilledSession]) -> dict[str, Any]:
    answers = [answer for one in billed for answer in one.answers]
    states = [answer for one in billed for answer in one.states]
    windows = {(one.setup.window_tokens, one.setup.window_source if one.setup.window else "model") for one in billed}
    window, source = windows.pop() if len(windows) == 1 else (None, None)
    figures = _figures([one.replayed for one in without])
    return {
        "window": window,
        "window_source": source,
        **_figures([one.replayed for one in billed]),
        "over_window": _over_window(billed),
        **(bank_rates(answers) if answers else {}),
        **({"state": state_rates(states)} if states else {}),
        **_recorded(billed),
        **({WITHOUT_KEY: {**figures, "over_window": _over_window(without)}} if without else {}),
    }


def _over_window(billed: Sequence[BilledSession]) -> int:
    """Requests that no server would have taken."""
    return sum(call.bill.prompt > one.setup.window_tokens for one in billed for call in one.replayed.calls)


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
            "calls": (calls := sum(len(one.calls) for one in found)),
            "units": round(bill.units),
            "cost": _sum(one.cost for one in found),
            "read": bill.read,
            "written": bill.write,
            "written_1h": bill.long_write,
            "fresh": bill.uncached,
            "hit_rate": round(bill.read / bill.prompt, 4),
            "compactions": sum(len(one.falls) for one in found),
            "mean_context": round(bill.prompt / calls),
        }
    }


def _sum(costs: Iterable[float | None]) -> float | None:
    """All of them together; None when one of them is not known."""
    given = list(costs)
    known = [cost for cost in given if cost is not None]
    return round(sum(known), 6) if len(known) == len(given) else None
