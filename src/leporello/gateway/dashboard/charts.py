"""Insights and settings as charts and tables. Places are percent across and pixels down, so text is never stretched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from leporello.config import Settings
from leporello.gateway.auth import User
from leporello.models.limits import limits_of
from leporello.present.text import count, percent, short_count
from leporello.redact.messages import masked_value
from leporello.store import Store
from leporello.store.records import Insights, InsightsQuery, UsageTotals
from leporello.usage import CanonicalUsage, money

HEIGHT = 112  # pixels between the lowest and the highest figure
TOP = 10
MOST_BARS = 60
_MOST_LABELS = 5

Point = tuple[str, UsageTotals]  # a name on the axis and what was used there


@dataclass(frozen=True, slots=True)
class Rect:
    name: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    rects: tuple[Rect, ...]
    title: str


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """All that is drawn, and the table that says the same."""

    id: str
    title: str
    summary: str
    ticks: tuple[tuple[float, str], ...]
    labels: tuple[tuple[float, str, str], ...]
    """Place, which end of the text stands there, text."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bars: tuple[Bar, ...] = ()
    dots: tuple[Dot, ...] = ()
    """Joined by lines."""
    legend: tuple[tuple[str, str], ...] = ()
    bottom: int = TOP + HEIGHT
    height: int = TOP + HEIGHT + 20


_TOKENS: tuple[tuple[str, str, Callable[[UsageTotals], int]], ...] = (
    ("read", "read from the cache", lambda totals: totals.usage.cache_read_tokens),
    ("write", "written to the cache", lambda totals: totals.usage.cache_write_tokens),
    ("fresh", "neither", lambda totals: totals.usage.input_tokens),
    ("output", "output", lambda totals: totals.usage.output_tokens),
)


def usage_charts(points: Sequence[Point], what: str) -> list[Chart]:
    """Tokens, cost and cache hits of the same stretch of time; `what` names the axis."""
    shown = grouped(points)
    return [_tokens_chart(shown, what), _cost_chart(shown, what), _cache_chart(shown, what)]


def grouped(points: Sequence[Point]) -> list[Point]:
    """Few enough points to be drawn: neighbours are added up."""
    size = -(-len(points) // MOST_BARS) or 1
    made: list[Point] = []
    for start in range(0, len(points), size):
        some = points[start : start + size]
        name = some[0][0] if len(some) == 1 else f"{some[0][0]} to {some[-1][0]}"
        made.append((name, added(totals for _, totals in some)))
    return made


def added(several: Iterable[UsageTotals]) -> UsageTotals:
    listed = list(several)
    return UsageTotals(
        sum((totals.usage for totals in listed), CanonicalUsage()),
        sum(totals.calls for totals in listed),
        sum(totals.cost for totals in listed),
        sum(totals.unpriced_calls for totals in listed),
    )


def _tokens_chart(points: Sequence[Point], what: str) -> Chart:
    top = nice_top(max((totals.usage.total_tokens for _, totals in points), default=0))
    bars = []
    for place, (name, totals) in enumerate(points):
        values = [(kind, pick(totals)) for kind, _, pick in _TOKENS]
        words = ", ".join(f"{count(pick(totals))} {label}" for _, label, pick in _TOKENS if pick(totals))
        bars.append(_bar(place, len(points), values, top, f"{what} {name}: {words or 'no calls'}"))
    used = added(totals for _, totals in points).usage
    return Chart(
        "tokens",
        "Tokens",
        f"{short_count(used.prompt_tokens)} prompt, {short_count(used.output_tokens)} output",
        _ticks(top, short_count),
        _labels(points),
        (what, "calls", *(label for _, label, _ in _TOKENS)),
        tuple((name, count(totals.calls), *(count(pick(totals)) for _, _, pick in _TOKENS)) for name, totals in points),
        bars=tuple(bars),
        legend=tuple((kind, label) for kind, label, _ in _TOKENS),
    )


_NO_PRICE = "unknown: no call has a known price"


def _cost_chart(points: Sequence[Point], what: str) -> Chart:
    top = nice_top(max((totals.cost for _, totals in points), default=0.0))
    whole = added(totals for _, totals in points)
    unknown = f", {count(whole.unpriced_calls)} calls of unknown price" if whole.unpriced_calls else ""
    bars = (
        _bar(place, len(points), [("cost", totals.cost)], top, f"{what} {name}: {money(totals.cost)}")
        for place, (name, totals) in enumerate(points)
    )
    return Chart(
        "cost",
        "Cost",
        _NO_PRICE if 0 < whole.calls <= whole.unpriced_calls else f"{money(whole.cost)}{unknown}",
        _ticks(top, money),
        _labels(points),
        (what, "cost", "calls without a price"),
        tuple((name, money(totals.cost), count(totals.unpriced_calls)) for name, totals in points),
        bars=tuple(bars),
    )


def _cache_chart(points: Sequence[Point], what: str) -> Chart:
    dots = (
        Dot(
            round((place + 0.5) * 100 / len(points), 2),
            round(TOP + HEIGHT * (1 - totals.cache_hit_rate), 1),
            f"{what} {name}: {percent(totals.cache_hit_rate)}",
        )
        for place, (name, totals) in enumerate(points)
        if totals.usage.prompt_tokens
    )
    return Chart(
        "cache",
        "Cache hits",
        f"{percent(added(totals for _, totals in points).cache_hit_rate)} of prompt tokens",
        _ticks(1.0, percent),
        _labels(points),
        (what, "hits", "prompt tokens"),
        tuple((name, percent(totals.cache_hit_rate), count(totals.usage.prompt_tokens)) for name, totals in points),
        dots=tuple(dots),
    )


def nice_top(value: float) -> float:
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if size * step >= value * 0.9999)


def _bar(place: int, places: int, values: Sequence[tuple[str, float]], top: float, title: str) -> Bar:
    slot = 100 / max(1, places)
    width = min(slot * 0.76, 7.0)
    rects = []
    foot = float(TOP + HEIGHT)
    for name, value in values:
        height = HEIGHT * value / top
        if value > 0:
            height = max(height, 0.8)
            rects.append(Rect(name, round(foot - height, 2), round(height, 2)))
            foot -= height
    return Bar(round(place * slot + (slot - width) / 2, 3), round(width, 3), tuple(rects), title)


def _ticks(top: float, write: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    return tuple((TOP + HEIGHT * (1 - share), write(top * share)) for share in (0.0, 0.5, 1.0))


def _labels(points: Sequence[Point]) -> tuple[tuple[float, str, str], ...]:
    step = -(-len(points) // _MOST_LABELS) or 1
    found = []
    for place in range(0, len(points), step):
        x = (place + 0.5) * 100 / len(points)
        found.append((round(x, 2), "end" if x > 94 else "middle", points[place][0].partition(" to ")[0]))
    return tuple(found)


RANGES = (7, 30, 90)
MOST_DAYS = 366
_FOR_EVERYBODY = ("context.", "compression.", "prompt_caching.", "recall.")
"""Settings that say how conversations are folded; all others tell about the machine."""


@dataclass(frozen=True, slots=True)
class InsightsPage:
    days: int
    found: Insights
    charts: list[Chart]
    saved: float
    """The share of tokens that folding took away."""


def report(store: Store, user: User, days: int, now: float) -> InsightsPage:
    """What was used in the last days. Counts of messages and tools are as new as the search index."""
    today = datetime.fromtimestamp(now, UTC).date()
    first = today - timedelta(days=days - 1)
    since = datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()
    found = store.usage.insights(InsightsQuery(since=since, owner=user.owner, catch_up=False))
    dates = [first + timedelta(days=day) for day in range(days)]
    points = [(date.strftime("%d %b"), found.by_day.get(date.isoformat(), UsageTotals())) for date in dates]
    folds = found.compactions
    saved = 1 - folds.tokens_after / folds.tokens_before if folds.tokens_before else 0.0
    return InsightsPage(days, found, usage_charts(points, "day"), saved)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: its value without secrets, and where it comes from."""

    name: str
    value: str
    origin: str
    where: str


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """Settings by section, and what follows from them for a model."""

    model: str
    limits: list[tuple[str, int, str]]
    sections: dict[str, list[SettingRow]]
    keys: Sequence[tuple[str, str]] = ()
    """Providers, and where their keys are."""
    home: str = ""
    store: str = ""


def settings_page(settings: Settings, store: Store, user: User, model: str) -> SettingsPage:
    """Every value and its source; users who are not operators see only how conversations are folded."""
    model = model or settings.model.default or ""
    limits = limits_of(settings, model or None).explain()
    if not user.operator:
        open_to_all = [name for name in settings if name.startswith(_FOR_EVERYBODY)]
        return SettingsPage(model, limits, _sections(_row(settings, name, "") for name in open_to_all))
    rows = [_row(settings, name, settings.source(name).where) for name in settings]
    for name, section in settings.free_sections.items():
        rows.append(SettingRow(name, _plain(masked_value(name, dict(section))), "file", ""))
    sources = [(provider, settings.api_key_source(provider)) for provider in settings.provider_names]
    return SettingsPage(
        model,
        limits,
        _sections(rows),
        [(provider, str(source) if source else "not set") for provider, source in sources],
        str(settings.home.path),
        str(masked_value("store.url", store.url)),
    )


def _row(settings: Settings, name: str, where: str) -> SettingRow:
    value = _plain(masked_value(name, settings.get(name)))
    return SettingRow(name, value, settings.source(name).origin.value, where)


def _sections(rows: Iterable[SettingRow]) -> dict[str, list[SettingRow]]:
    sections: dict[str, list[SettingRow]] = {}
    for row in rows:
        sections.setdefault(row.name.partition(".")[0], []).append(row)
    return sections


def _plain(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
