"""How exam results are shown: tables for the terminal, one Markdown table for a page, and the list of misses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leporello.bench.bank import KINDS
from leporello.bench.exam import SessionScore, report
from leporello.bench.run import ExamRun
from leporello.cli.output import print_table, say, strong

_SESSION_WIDTH = 40


def print_scores(contest: ExamRun, scores: Sequence[SessionScore]) -> None:
    """One engine at one window: by session, then by kind of question."""
    result = report(scores)
    say(strong(f"{contest.engine}, window {contest.window:,}, search {contest.search}"))
    rows = [
        (Path(row["session"]).name[:_SESSION_WIDTH], *_figures(row), str(row["compactions"]), f"{row['seconds']:.1f}")
        for row in result["sessions"]
    ]
    totals = (str(sum(score.compactions for score in scores)), f"{sum(score.seconds for score in scores):.1f}")
    rows.append(("all", *_figures(result["total"]), *totals))
    print_table(rows, ("session", "questions", "closed", "recovered", "kept", "compactions", "seconds"))
    say()
    print_table(
        [(kind, *_figures(row)) for kind, row in sorted(result["kinds"].items())],
        ("kind", "questions", "closed", "recovered"),
    )
    say()


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    rates = (str(row["questions"]), f"{row['closed']:.1%}", f"{row['recovered']:.1%}")
    return (*rates, f"{row['kept_tokens']:,}") if "kept_tokens" in row else rates


def print_markdown(results: Sequence[tuple[ExamRun, Sequence[SessionScore]]]) -> None:
    """The table of `markdown_table` on the screen."""
    for line in markdown_table(results):
        say(line)


def markdown_table(results: Sequence[tuple[ExamRun, Sequence[SessionScore]]]) -> list[str]:
    """Engines and windows down, kinds of questions across; each cell is closed-book / recovered in per cent."""
    reports = [(contest, report(scores)) for contest, scores in results]
    present = [kind for kind in KINDS if any(kind in result["kinds"] for _, result in reports)]
    headings = ["engine", "window", "kept tokens", "all", *present, "compactions", "seconds"]
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for (contest, result), (_, scores) in zip(reports, results, strict=True):
        cells = [contest.engine, f"{contest.window:,}", f"{result['total']['kept_tokens']:,}", _cell(result["total"])]
        cells += [_cell(result["kinds"][kind]) if kind in result["kinds"] else "" for kind in present]
        cells += [str(sum(score.compactions for score in scores)), f"{sum(score.seconds for score in scores):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(row: dict[str, Any]) -> str:
    return f"{row['closed'] * 100:.1f} / {row['recovered'] * 100:.1f}"


def misses_of(scores: Sequence[SessionScore]) -> list[dict[str, Any]]:
    """Every question that was not answered from the context alone, and whether the search found it."""
    return [
        {
            "session": score.session,
            "id": answer.question.id,
            "kind": answer.question.kind,
            "recovered": answer.recovered,
            "question": answer.question.question,
            "gold": answer.question.gold,
            "line": answer.question.line,
        }
        for score in scores
        for answer in score.answers
        if not answer.closed
    ]


def print_misses(scores: Sequence[SessionScore]) -> None:
    """The misses, for reading."""
    for miss in misses_of(scores):
        mark = "found by search" if miss["recovered"] else "LOST"
        where = f"{Path(miss['session']).name} {miss['id']} [{miss['kind']}, line {miss['line']}] {mark}"
        say(f"{where}\n    {miss['question']}\n    {miss['gold']!r}")
    say()
