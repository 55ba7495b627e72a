"""The page that `leporello replay --html` writes: one file, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from leporello.bench.bill import (
    CLIENT,
    COLUMNS,
    NEVER_COMPACTED,
    UNITS,
    BilledSession,
    ReplayRun,
    bill_report,
    cell,
    conditions,
    is_idle,
    over_window,
    recall_means,
    recorded,
    simulated,
)
from leporello.billing import CacheBill
from leporello.models import model_facts
from leporello.usage import money

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1_000, 62, 16, 14, 34
MOST_POINTS = 900


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart. `css` is its class; `marks` are places on it that get a sign."""

    name: str
    css: str
    values: Sequence[float]
    marks: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of stacked parts, each with its class, and what stands behind it."""

    name: str
    parts: Sequence[tuple[str, float, str]]
    """Class, length, what it says when pointed at."""
    note: str


@dataclass(frozen=True, slots=True)
class Point:
    """One point with its name. Points of one `group` are joined by a line."""

    name: str
    css: str
    x: float
    y: float
    group: str = ""


def short(number: float) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "K")):
        if abs(number) >= size:
            return f"{number / size:.1f}".rstrip("0").rstrip(".") + letter
    return f"{number:.0f}"


def ticks(most: float, wanted: int = 5) -> list[float]:
    """Round numbers from 0 to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def dollars(value: float) -> str:
    """An amount on an axis: `$20`, `$7.5`."""
    return f"${value:,.2f}".rstrip("0").rstrip(".")


def _svg(height: float, body: Iterable[str], label: str, css: str = "chart") -> str:
    drawn = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">{"".join(body)}</svg>'
    return f'<div class="{css}">{drawn}</div>'


def _text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">{escape(words)}</text>'


def _grid(values: Sequence[float], place: Callable[[float], float], form: Callable[[float], str]) -> Iterable[str]:
    for value in values:
        y = place(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(LEFT - 8, y + 4, form(value), "tick", "end")


def sawtooth(lines: Sequence[Line], limit: float | None, label: str, height: int = 300) -> str:
    """Lines over the number of the call; the first is filled. `limit` is drawn across."""
    longest = max((len(line.values) for line in lines), default=1)
    rows = ticks(max([limit or 0.0, *(value for line in lines for value in line.values)]))
    inner, wide = height - TOP - BOTTOM, WIDTH - LEFT - RIGHT

    def x(index: float) -> float:
        return LEFT + wide * index / max(1, longest - 1)

    def y(value: float) -> float:
        return TOP + inner * (1 - value / rows[-1])

    body = list(_grid(rows, y, short))
    body += [_text(x(tick), height - 12, f"{tick:,.0f}", "tick", "middle") for tick in ticks(longest - 1, 6)[1:-1]]
    body.append(_text(WIDTH - RIGHT, height - 12, "call", "tick", "end"))
    if limit is not None:
        body.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(limit):.1f}" y2="{y(limit):.1f}"/>')
        body.append(_text(WIDTH - RIGHT, y(limit) - 5, "window", "tick", "end"))
    for place, line in reversed(list(enumerate(lines))):
        step = max(1, len(line.values) // MOST_POINTS)
        # The ends of a fall are kept, whatever is left out between them.
        kept = sorted({*range(0, len(line.values), step), *line.marks, *(mark - 1 for mark in line.marks if mark)})
        points = " ".join(f"{x(index):.1f},{y(line.values[index]):.1f}" for index in kept)
        if not place and kept:
            floor = f"{y(0):.1f}"
            body.append(f'<polygon class="area" points="{x(kept[0]):.1f},{floor} {points} {x(kept[-1]):.1f},{floor}"/>')
        body.append(
            f'<polyline class="line {line.css}" points="{points}"><title>{escape(line.name)}</title></polyline>'
        )
        for mark in line.marks:
            words = f"{line.name}: compacted to {line.values[mark]:,.0f} tokens before call {mark + 1}"
            body.append(
                f'<circle class="mark {line.css}" cx="{x(mark):.1f}" cy="{y(line.values[mark]):.1f}" r="3.5">'
                f"<title>{escape(words)}</title></circle>"
            )
    return _svg(height, body, label)


def bars(rows: Sequence[Bar], label: str) -> str:
    """Stacked bars, one below the other, on one scale."""
    most = max((sum(length for _, length, _ in row.parts) for row in rows), default=1.0) or 1.0
    body = []
    for row in rows:
        parts = "".join(
            f'<i class="{css}" style="width:{100 * length / most:.3f}%" title="{escape(said)}"></i>'
            for css, length, said in row.parts
        )
        body.append(f'<div class="bar"><b>{escape(row.name)}</b><span>{parts}<em>{escape(row.note)}</em></span></div>')
    return f'<div role="img" aria-label="{escape(label)}">{"".join(body)}</div>'


def scatter(points: Sequence[Point], x_name: Callable[[float], str], label: str, height: int = 340) -> str:
    """Points over two axes; y is a share from 0 to 1."""
    columns = ticks(max((point.x for point in points), default=1.0) * 1.12)
    inner, wide = height - TOP - BOTTOM, WIDTH - LEFT - RIGHT

    def x(value: float) -> float:
        return LEFT + wide * value / columns[-1]

    def y(value: float) -> float:
        return TOP + inner * (1 - value)

    body = list(_grid([0, 0.25, 0.5, 0.75, 1.0], y, lambda value: f"{value:.0%}"))
    body += [_text(x(tick), height - 12, x_name(tick), "tick", "middle") for tick in columns[1:]]
    for group in dict.fromkeys(point.group for point in points if point.group):
        ours = sorted((point.x, point.y) for point in points if point.group == group)
        path = " ".join(f"{x(one):.1f},{y(two):.1f}" for one, two in ours)
        body.append(f'<polyline class="line ours" points="{path}"/>')
    taken = [(x(point.x) - 6, x(point.x) + 6, y(point.y) + 4) for point in points]
    for point in sorted(points, key=lambda point: (not point.group, point.x)):
        across, down = x(point.x), y(point.y)
        body.append(f'<circle class="dot {point.css}" cx="{across:.1f}" cy="{down:.1f}" r="5.5"/>')
        said = f"{point.name}, {money(point.x)}, {point.y:.0%}"
        long = 7.0 * len(said)
        at_edge = across + 11 + long > WIDTH
        start = across - 11 - long if at_edge else across + 11
        words = _free_line(down + 4, (start, start + long), taken, height - BOTTOM)
        taken.append((start, start + long, words))
        body.append(_text(across + (-11 if at_edge else 11), words, said, "value", "end" if at_edge else "start"))
    return _svg(height, body, label, "chart labelled")


def _free_line(
    wanted: float, span: tuple[float, float], taken: Sequence[tuple[float, float, float]], low: int
) -> float:
    """The nearest line to the wanted one on which a label of this span stands on no dot and no other label."""
    lines = sorted((wanted + 15 * step for step in range(-20, 21)), key=lambda line: abs(line - wanted))
    free = (
        line
        for line in lines
        if TOP <= line <= low
        and not any(abs(line - other) < 14 and start < span[1] and span[0] < end for start, end, other in taken)
    )
    return next(free, wanted)


BUCKETS = {
    "read": "read from the cache",
    "written": "written to the cache",
    "fresh": "uncached",
    "output": "answers",
    "summary": "summary calls",
}
SIMULATED = (
    "Simulated: every request was rebuilt as it would have been sent, and billed by the vendor's published cache rules "
    "and list prices with the times of the recording."
)
_FOOTER = (
    "<footer><p>Answers are the recorded ones; no model was asked. The amounts are computed from list prices and are "
    "not an invoice.</p></footer>"
)
_TOGGLE = (
    "const r=document.documentElement,d=()=>r.dataset.theme||"
    "(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');"
    "document.querySelector('button').onclick=()=>{r.dataset.theme=d()==='dark'?'light':'dark'}"
)


def report_page(runs: Sequence[ReplayRun], without: ReplayRun, *, made_by_rule: bool) -> str:
    """The whole page. The first run is the one it is about; the others stand beside it, `without` compaction too."""
    shown = [*runs, *([] if any(run.name == without.name for run in runs) else [without])]
    reports = {run.name: bill_report(run.billed, without.billed) for run in shown}
    totals = {name: report["total"] for name, report in reports.items()}
    with open(os.path.join(os.path.dirname(__file__), "report.css"), encoding="utf-8") as file:
        style = file.read()
    body = "".join(
        (
            _headline(runs[0], reports[runs[0].name]),
            *(_sizes(place, runs[0], without) for place in range(len(runs[0].billed))),
            _money(shown),
            _table(shown, reports, made_by_rule),
            _recall(shown, totals),
            _FOOTER,
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Replay of {escape(_names(runs[0]))}</title><style>{style}</style></head><body><main>"
        "<header><b>leporello replay</b><button>light / dark</button></header>"
        f"{body}</main><script>{_TOGGLE}</script></body></html>\n"
    )


def _names(run: ReplayRun) -> str:
    return ", ".join(billed.name for billed in run.billed)


def _headline(run: ReplayRun, report: dict[str, Any]) -> str:
    total = report["total"]
    actual = recorded(total, _span)
    lines = [
        f"{escape(one.name)}: {escape(conditions(one, row))}."
        for one, row in zip(run.billed, report["sessions"], strict=True)
    ]
    lines += [f"{SIMULATED} {over_window(total)}", *([f"Recorded: {actual}"] if actual else [])]
    tiles = [
        (f"{total['hit_rate']:.1%}", "of the prompts read from the cache"),
        (
            f"{total['compactions']:,}",
            f"compaction{'s' * (total['compactions'] != 1)}, {total['waits']:,} while a request waited",
        ),
        (f"{total['cache_breaks']:,}", "requests that lost cached tokens"),
        (short(total["mean_context"]), "tokens in the mean prompt"),
    ]
    if "recovered" in total and total["compactions"]:
        tiles.append((f"{total['recovered']:.0%}", "found again with one search"))
    shown = "".join(f'<div class="tile"><b>{value}</b><span>{words}</span></div>' for value, words in tiles)
    about = "".join(f"<p>{line}</p>" for line in lines)
    return f'<h1>{simulated(run, total, _span)}</h1><div class="about">{about}</div><div class="tiles">{shown}</div>'


def _span(css: str, amount: str) -> str:
    return f'<span class="{css}">{escape(amount)}</span>'


def _sizes(place: int, run: ReplayRun, without: ReplayRun) -> str:
    main = run.billed[place]
    lines = [_line(run.label, "ours", main)]
    if main.recorded is not None:
        lines.append(Line(CLIENT, "real", [call.prompt for call in main.recorded.calls], main.recorded.falls))
    if run.name != without.name:
        lines.append(_line(without.label, "other", without.billed[place]))
    limit = main.setup.window_tokens
    tallest = max(value for line in lines for value in line.values)
    chart = sawtooth(lines, float(limit) if limit <= 1.6 * tallest else None, "Prompt tokens of each call")
    colours = {"ours": "--ours", "real": "--real", "other": "--grey"}
    keys = "".join(
        f'<li><i class="line-key" style="background:var({colours[line.css]})"></i>{escape(line.name)}</li>'
        for line in lines
    )
    return (
        f"<section><h2>How large each request was</h2><p>{escape(main.name)}: prompt tokens call by call, "
        f'system prompt and tools included. Dots are compactions.</p>{chart}<ul class="legend">{keys}</ul></section>'
    )


def _line(name: str, css: str, billed: BilledSession) -> Line:
    calls = billed.replayed.calls
    marks = [index for index, call in enumerate(calls) if call.compactions] if css == "ours" else []
    return Line(name, css, [call.bill.prompt for call in calls], marks)


def _money(runs: Sequence[ReplayRun]) -> str:
    rows = []
    for run in runs:
        replayed = [(one.setup.model, one.replayed) for one in run.billed]
        calls = [
            _parts(model, ((call.bill, call.output) for call in it.calls), it.summary_cost or 0.0)
            for model, it in replayed
        ]
        rows.append(_bar(run.label, calls))
    recorded = [(one.setup.model, one.recorded) for one in runs[0].billed if one.recorded is not None]
    if len(recorded) == len(runs[0].billed):
        sent = [_parts(model, [*((call, 0) for call in it.calls), (CacheBill(), it.output)]) for model, it in recorded]
        rows.insert(0, _bar(CLIENT, sent))
    paid = {css for row in rows for css, value, _ in row.parts if value}
    keys = "".join(
        f'<li><i style="background:var(--{css})"></i>{escape(words)}</li>'
        for css, words in BUCKETS.items()
        if css in paid
    )
    return (
        "<section><h2>Where the money goes</h2><p>Each bar is one way of serving the same calls; reads cost a tenth of "
        "uncached input or less, writes a quarter more, for an hour twice as much.</p>"
        f'{bars(rows, "Cost by kind of token")}<ul class="legend">{keys}</ul></section>'
    )


def _bar(name: str, sessions: Sequence[dict[str, float]]) -> Bar:
    total = {css: sum(parts[css] for parts in sessions) for css in BUCKETS}
    parts = [(css, value, f"{BUCKETS[css]}: {money(value)}") for css, value in total.items()]
    return Bar(name, parts, money(sum(total.values())))


def _parts(model: str, calls: Iterable[tuple[CacheBill, int]], summary: float = 0.0) -> dict[str, float]:
    """What each kind of token of some calls cost, at the prices that hold for each request; calls with their output."""
    found = {**dict.fromkeys(BUCKETS, 0.0), "summary": summary}
    for bill, output in calls:
        prices = model_facts(model).prices_at(bill.prompt)
        if prices is not None:
            read = prices.input if prices.cache_read is None else prices.cache_read
            found["read"] += bill.read * read / 1e6
            found["written"] += CacheBill(write=bill.write, long_write=bill.long_write).cost_at(prices)
            found["fresh"] += bill.uncached * prices.input / 1e6
            found["output"] += output * prices.output / 1e6
    return found


def _table(runs: Sequence[ReplayRun], reports: Mapping[str, dict[str, Any]], made_by_rule: bool) -> str:
    main = reports[runs[0].name]["total"]
    columns = [key for key in COLUMNS if key in main]
    rows = [
        ("ours" if place == 0 else "", run.label, row := reports[run.name]["total"], is_idle(run, row))
        for place, run in enumerate(runs)
    ]
    if "recorded" in main:
        rows.insert(0, ("real", CLIENT, main["recorded"], False))
    body = "".join(
        f'<tr class="{css}"><td>{escape(name)}</td>'
        + "".join(f"<td>{cell(row, key, idle)}</td>" for key in columns)
        + "</tr>"
        for css, name, row, idle in rows
    )
    head = "".join(f"<th>{COLUMNS[key]}</th>" for key in columns)
    means = [UNITS, *([recall_means(main, made_by_rule)] if "questions" in main else [])]
    if any(idle for *_, idle in rows):
        means.append(NEVER_COMPACTED)
    return (
        f"<section><h2>Side by side</h2>{''.join(f'<p>{line}</p>' for line in means)}"
        f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</section>"
    )


def _recall(runs: Sequence[ReplayRun], totals: Mapping[str, dict[str, Any]]) -> str:
    points = list(_points(runs, totals))
    if len(points) < 2:
        return ""
    chart = scatter(points, dollars, "Recall against cost")
    idle = [run.label for run in runs if is_idle(run, totals[run.name])]
    left_out = f" Left out, because they never compacted: {escape(', '.join(idle))}." if idle else ""
    return (
        "<section><h2>What is known, and what it costs</h2><p>Questions about the session that the final context "
        "answers word for word, against the bill. Better is up and to the left. Rules that let a model write a summary "
        f"are shown with what they keep word for word; what the summary would add is not known.{left_out}</p>{chart}"
        "</section>"
    )


def _points(runs: Sequence[ReplayRun], totals: Mapping[str, dict[str, Any]]) -> Iterator[Point]:
    for place, run in enumerate(runs):
        total = totals[run.name]
        if "closed" in total and total["cost"] is not None and not is_idle(run, total):
            ours = run.name.partition(",")[0] == runs[0].name.partition(",")[0]
            yield Point(
                run.label, "other" if place and not ours else "ours", total["cost"], total["closed"], "ours" * ours
            )
