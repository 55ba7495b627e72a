"""`leporello insights`: what was used, when, by which model, platform and tool; what the cache and folding saved."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import click

from leporello.cli.context import CommandContext
from leporello.cli.store_access import bring_index_up_to_date, find, nothing_found, open_for_listing, pass_store_options
from leporello.present.output import GAP, note, print_json, print_table, say, strong, terminal_width
from leporello.present.records import cost_text, insights_json, usage_line
from leporello.present.text import bar, breadth, iso, percent, plural, short
from leporello.store.records import CompactionTotals, ConversationFilter, Insights, InsightsQuery, ToolUse, UsageTotals
from leporello.usage import money

_BAR = 24
_WIDE = 120
_NAME = 40
_SECONDS_PER_DAY = 86_400


@click.command("insights")
@click.option("--days", type=click.IntRange(1, 100_000), default=30, show_default=True, help="How far back.")
@click.option("--platform", metavar="NAME", help="Only of this platform.")
@click.option("--conversation", metavar="ID", help="Only of this conversation.")
@click.option("--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="Rows of each table.")
@pass_store_options
def command(
    context: CommandContext,
    days: int,
    platform: str | None,
    conversation: str | None,
    top: int,
    url: str | None,
    as_json: bool,
) -> None:
    """Show usage and cost by day, model, platform and tool, the cache's hit rate, and what folding did.

    Days are counted in UTC; the current one is the last. A conversation counts in every time in which a message was
    said in it; messages, calls and folds count on their day. Imported recordings count when they were recorded.
    """
    today = int(time.time()) // _SECONDS_PER_DAY
    since = float((today - days + 1) * _SECONDS_PER_DAY)
    with open_for_listing(context, url) as store:
        bring_index_up_to_date(store)
        only = None if conversation is None else find(store, conversation)
        query = InsightsQuery(since=since, conversation=only.id if only else None, platform=platform)
        found = store.usage.insights(query)
        newest = only or next(store.conversations.each(ConversationFilter(platform=platform), 1), None)
        nothing = nothing_found(store, "")
    if as_json:
        print_json({"days": days, **insights_json(found)})
        return
    say(strong(f"Last {plural(days, 'day')} ({_day(since)} to {_day(time.time())}, UTC)"))
    _print(found, top)
    if nothing:
        note(nothing)
    elif not found.conversations and newest is not None and newest.updated_at < since:
        back = today - int(newest.updated_at) // _SECONDS_PER_DAY + 1
        note(f"The newest conversation is of {_day(newest.updated_at)}: --days {back} shows it.")


def _day(seconds: float) -> str:
    return iso(seconds)[:10]


def _print(found: Insights, top: int) -> None:
    say(
        f"{plural(found.messages, 'message')} in {plural(found.conversations, 'conversation')}; "
        f"{plural(found.sessions, 'session')} begun"
    )
    say(usage_line(found.totals))
    _usage_table("day", list(found.by_day.items())[-top:])
    for title, group in (("model", found.by_model), ("platform", found.by_platform)):
        _usage_table(title, _largest(group, top))
    _usage_table("purpose", _largest(found.by_purpose, top))
    _tool_table(found.by_tool, top)
    _print_compactions(found.compactions)


def _largest(group: Mapping[str, UsageTotals], top: int) -> list[tuple[str, UsageTotals]]:
    return sorted(group.items(), key=lambda item: -item[1].usage.total_tokens)[:top]


def _usage_table(title: str, group: Sequence[tuple[str, UsageTotals]]) -> None:
    if not group:
        return
    rows = [
        (
            short(name, _NAME) or "(none)",
            f"{totals.calls:,}",
            f"{totals.usage.prompt_tokens:,}",
            f"{totals.usage.output_tokens:,}",
            percent(totals.cache_hit_rate),
            cost_text(totals),
        )
        for name, totals in group
    ]
    headings = (title, "calls", "prompt", "output", "cached", "cost")
    _barred(rows, headings, [totals.usage.total_tokens for _, totals in group], "prompt + output")


def _barred(rows: Sequence[tuple[str, ...]], headings: tuple[str, ...], values: Sequence[int], measure: str) -> None:
    """A table of numbers with bars at its end, which say what they measure; a narrow terminal gets shorter ones."""
    widths = [max(breadth(line[column]) for line in (headings, *rows)) for column in range(len(headings))]
    columns = (terminal_width() or _WIDE) - sum(widths) - len(GAP) * len(widths)
    numbers = range(1, len(headings))
    say()
    if columns < len(measure):
        print_table(rows, headings, numbers, shrinking=(0,))
        return
    most = max(1, *values)
    drawn = [(*row, bar(value / most, min(columns, _BAR))) for row, value in zip(rows, values, strict=True)]
    print_table(drawn, (*headings, measure), numbers)


def _tool_table(tools: Mapping[str, ToolUse], top: int) -> None:
    if not tools:
        return
    chosen = sorted(tools.items(), key=lambda item: (-item[1].calls, -item[1].results))[:top]
    rows = [
        (short(name, _NAME) or "(unknown)", f"{use.calls:,}", f"{use.results:,}", f"{use.result_characters:,}")
        for name, use in chosen
    ]
    headings = ("tool", "calls", "results", "characters")
    _barred(rows, headings, [use.result_characters for _, use in chosen], "characters of results")


def _print_compactions(totals: CompactionTotals) -> None:
    if not totals.attempts and not totals.undone:
        return
    say()
    say(strong("compactions"))
    rows = [(outcome.replace("_", " "), f"{count:,}") for outcome, count in totals.attempts.items()]
    if totals.undone:
        rows.append(("undone", f"{totals.undone:,}"))
    print_table(rows, numbers=(1,))
    if totals.tokens_before:
        kept = totals.tokens_after / totals.tokens_before
        say(
            f"{totals.tokens_before:,} tokens became {totals.tokens_after:,} ({percent(kept)}), "
            f"in {totals.seconds:,.1f} s, for {money(totals.cost)}"
        )
