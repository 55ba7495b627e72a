"""How the figures of a replay are told to people: the same words in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from leporello.bench.bill import WHOLE, WITHOUT_KEY, BilledSession, ReplayRun
from leporello.present.text import money, percent, plural, short_count

Mark: TypeAlias = Callable[[str, str], str]
"""Sets off an amount of a sentence, given its CSS classes and its text."""
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
    "recovered": "with a search",
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
    """How recall is measured."""
    source = "made from the recording by rule" if made_by_rule else "of the banks"
    return (
        f"Still there: of {plural(row['questions'], 'question')} {source}, the share that the context answers word for "
        "word after one more compaction at the end, which is not billed. With a search: that, or one search of the log "
        "brings it."
    )


def conditions(one: BilledSession, row: Mapping[str, Any]) -> str:
    """Under which a session was replayed."""
    window = f"{row['window']:,} tokens ({_SOURCES[row['window_source']]})"
    return (
        f"{plural(row['calls'], 'call')}, window {window}, system prompt and tools {one.setup.base:,} tokens, prices "
        f"and cache rules of {one.setup.model}"
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
