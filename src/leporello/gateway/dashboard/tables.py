"""Insights and settings as tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from leporello.config import Settings
from leporello.gateway.dashboard.charts import Chart, Point, usage_charts
from leporello.gateway.dashboard.door import Visitor
from leporello.models.limits import limits_of
from leporello.redact.settings import masked_value
from leporello.store.base import Store
from leporello.store.records import Insights, InsightsQuery, UsageTotals

RANGES = (7, 30, 90)
MOST_ROWS = 30
_FOR_EVERYBODY = ("context.", "compression.", "prompt_caching.", "recall.")
"""Settings that say how conversations are folded; all others tell about the machine."""


@dataclass(frozen=True, slots=True)
class Report:
    """The insights of some days."""

    days: int
    found: Insights
    charts: list[Chart]
    saved: float
    """The share of tokens that folding took away."""


def report(store: Store, visitor: Visitor, days: int, now: float) -> Report:
    """What was used in the last days. Counts of messages and tools are as new as the search index."""
    today = datetime.fromtimestamp(now, UTC).date()
    first = today - timedelta(days=days - 1)
    since = datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()
    found = store.usage.insights(InsightsQuery(since=since, owner=visitor.owner, catch_up=False))
    points: list[Point] = []
    for back in range(days - 1, -1, -1):
        date = today - timedelta(days=back)
        points.append((date.strftime("%d %b"), found.by_day.get(date.isoformat(), UsageTotals())))
    folds = found.compactions
    saved = 1 - folds.tokens_after / folds.tokens_before if folds.tokens_before else 0.0
    return Report(days, found, usage_charts(points, "day"), saved)


@dataclass(frozen=True, slots=True)
class Setting:
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
    sections: dict[str, list[Setting]]
    keys: list[tuple[str, str]]
    """Providers, and where their keys are."""
    home: str
    store: str


def settings_page(settings: Settings, store: Store, visitor: Visitor, model: str) -> SettingsPage:
    """Every value and its source; visitors who are no operators see how conversations are folded, and no more."""
    sections: dict[str, list[Setting]] = {}
    for name in settings:
        if not visitor.operator and not name.startswith(_FOR_EVERYBODY):
            continue
        source = settings.source(name)
        where = source.where if visitor.operator else ""
        shown = Setting(name, _plain(masked_value(name, settings.get(name))), source.origin.value, where)
        sections.setdefault(name.partition(".")[0], []).append(shown)
    if visitor.operator:
        for name, section in settings.free_sections.items():
            shown = Setting(name, _plain(masked_value(name, dict(section))), "file", "")
            sections.setdefault(name.partition(".")[0], []).append(shown)
    name = model or settings.model.default or ""
    keys = [(provider, _key_place(settings, provider)) for provider in settings.provider_names]
    return SettingsPage(
        name,
        limits_of(settings, name or None).explain(),
        sections,
        keys if visitor.operator else [],
        str(settings.home.path) if visitor.operator else "",
        str(masked_value("store.url", store.url)) if visitor.operator else "",
    )


def _key_place(settings: Settings, provider: str) -> str:
    source = settings.api_key_source(provider)
    return str(source) if source else "not set"


def _plain(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
