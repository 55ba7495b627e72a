"""The figures of replayed sessions, as `leporello replay --json` prints them, and how terminal and page tell them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from leporello.bench.bank import Bank, session_file
from leporello.bench.exam import ExamAnswer, ask, bank_rates, without_thinking
from leporello.bench.replay import DEFAULT_MODEL, ReplayedSession, ReplaySetup, Told, replay_session, steps_of
from leporello.bench.run import make_search
from leporello.bench.states import StateAnswer, StateExam, check, first_lines, state_rates, written_view
from leporello.billing import CacheBill
from leporello.importers import ImportedSession
from leporello.models import model_facts
from leporello.present.text import percent, plural, short_count
from leporello.tokens import TokenCounter
from leporello.usage import money

FALL = 0.7
CLIENT_MODELS = {"codex": "gpt-5-codex"}  # for recordings that name no model
WHOLE = "whole"  # the engine that never compacts
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
        known = (name for name in self._models if model_facts(name).prices)
        return next(known, CLIENT_MODELS.get(self.session.format, DEFAULT_MODEL))

    @property
    def model_assumed(self) -> str:
        """Why `model` is not one of the recording; empty where it is."""
        if not self._models:
            return "the file names none"
        return "" if self.model in self._models else f"the prices of {self._models[0]} are not known"

    @property
    def _models(self) -> list[str]:
        """The recorded ones, by how many calls went to them."""
        used = Counter(call.model for call in self.session.usage if call.model) or Counter(self.session.models)
        return [name for name, _ in used.most_common()]

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
        calls = [call.bill for call in self.session.usage]
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


# -- told to people: the same words in the terminal and on the page

Mark: TypeAlias = Callable[[str, str], str]  # sets off an amount of a sentence, given its CSS classes and its text
CLIENT = "as recorded"
COLUMNS = {
    "cost": "cost",
    "units": "units",
    "hit_rate": "cache hits",
    "compactions": "compactions",
    "cache_breaks": "cache breaks",
    "waits": "waits",
    "mean_context": "mean prompt",
    "kept_tokens": "kept",
    "closed": "still there",
    "recovered": "with one search",
}
UNITS = (
    "Units are uncached input tokens: uncached + 1.25 x written (2 x for an hour) + 0.1 x read, summary calls "
    "included. Waits are compactions that a request waited for."
)
NEVER_COMPACTED = (
    "In brackets: nothing was compacted while the session ran, so all of it was in view; the figure is what one "
    "compaction at the end would leave."
)
_SOURCES = {"given": "as given", "recorded": "as the recording shows", "model": "the model's"}


def recall_means(row: Mapping[str, Any], made_by_rule: bool) -> str:
    source = "made from the recording by rule" if made_by_rule else "of the banks"
    return (
        f"Still there: of {plural(row['questions'], 'question')} {source}, the share that the context answers word for "
        "word after one more compaction at the end, which is not billed. With one search: that, or one search of the "
        "log brings it."
    )


def conditions(one: BilledSession, row: Mapping[str, Any]) -> str:
    window = f"{row['window']:,} tokens ({_SOURCES[row['window_source']]})"
    assumed = f" (assumed: {one.setup.model_assumed})" if one.setup.model_assumed else ""
    return (
        f"{plural(row['calls'], 'call')}, window {window}, system prompt and tools {one.setup.base:,} tokens, prices "
        f"and cache rules of {one.setup.model}{assumed}"
    )


def cell(row: Mapping[str, Any], key: str, idle: bool = False) -> str:
    """One figure of a table; `idle`: in the row of a rule that found nothing to compact."""
    value = row.get(key)
    if value is None:
        return "–"
    if key == "cost":
        return money(value)
    said = short_count(value) if key in ("units", "mean_context", "kept_tokens") else f"{value:,}"
    said = f"{value:.1%}" if isinstance(value, float) else said
    return f"({said})" if idle and key in ("kept_tokens", "closed", "recovered") else said


def is_idle(run: ReplayRun, row: Mapping[str, Any]) -> bool:
    return run.name != WHOLE and not row["compactions"]


def _plain(_css: str, text: str) -> str:
    return text


def simulated(run: ReplayRun, row: Mapping[str, Any], mark: Mark = _plain) -> str:
    """What the sessions cost without compaction, what they cost so, and what was still known."""
    what = "these sessions cost" if len(run.billed) > 1 else "this session costs"
    without = row[WITHOUT_KEY]
    before, now = _amount(without, row), mark("amount ours", _amount(row, without))
    if run.name == WHOLE:
        return f"Without compaction {what} {now}."
    if not row["compactions"]:
        amounts = "either way" if before == _amount(row, without) else f"with {run.label}, {before} without compaction"
        return f"Nothing had to be compacted: {what} {now} {amounts}."
    said = f"{what[0].upper()}{what[1:]} {before} without compaction, with {run.label} {now}"
    if "closed" not in row:
        return f"{said}."
    kept = mark("amount ours", percent(row["closed"]))
    return (
        f"{said}, and {kept} of what the questions ask was still there ({percent(row['recovered'])} with one search)."
    )


def over_window(row: Mapping[str, Any]) -> str:
    """That the way without compaction is only a figure to compare with; empty where it could have been gone."""
    without = row[WITHOUT_KEY]
    if not without["over_window"]:
        return ""
    return (
        f"Without compaction {without['over_window']:,} of {plural(without['calls'], 'request')} would not have fitted "
        "into the window."
    )


def recorded(row: Mapping[str, Any], mark: Mark = _plain) -> str:
    """What the usage in the files comes to, and why that differs; empty where there is none or no price."""
    found = row.get("recorded")
    if found is None or found["cost"] is None:
        return ""
    actual = mark("amount real", money(found["cost"]))
    times = "once" if found["compactions"] == 1 else f"{found['compactions']:,} times"
    made = f"; by the sizes of its prompts the client compacted {times}" if found["compactions"] else ""
    return (
        f"{actual} by the usage in the file, at list prices. {found['hit_rate']:.1%} of the prompts came "
        f"from the cache then, {row[WITHOUT_KEY]['hit_rate']:.1%} in the simulation without compaction{made}."
    )


def _amount(row: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Money, or units where one of the two has no price."""
    if row["cost"] is None or other["cost"] is None:
        return f"{short_count(row['units'])} units"
    return money(row["cost"])
