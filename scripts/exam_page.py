"""Writes the tables of docs/explanation/exam.md: all engines, baselines, windows and kinds of questions.

    python scripts/exam_page.py BANKS SESSIONS

BANKS is a folder of question banks, SESSIONS the folder their sessions stand in. Sessions without a bank get one by
rule and make up the second table. Takes several minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from leporello.bench.bank import json_tokens, load_bank
from leporello.bench.exam import BankExam, without_thinking
from leporello.bench.make_bank import make_bank
from leporello.bench.run import BANK, BASELINES, SIZED, ExamRun, run_all
from leporello.cli.exam_command import markdown_table
from leporello.engines import BUILTIN
from leporello.errors import InputError
from leporello.importers import load_session

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "exam.md"
BY_HAND, BY_RULE = "<!-- table: hand-written banks -->", "<!-- table: banks made by rule -->"
END = "<!-- end of table -->"
WINDOWS = (64_000, 128_000, 200_000)
SHORTEST = 50_000
"""Sessions of fewer tokens are hardly folded at all and say nothing."""


def contests() -> list[ExamRun]:
    """Engines at every window; baselines whose result does not depend on it at one."""
    sized = [ExamRun(engine, window, "recall") for engine in (*BUILTIN, *SIZED) for window in WINDOWS]
    return [*sized, *(ExamRun(engine, 128_000, "plain") for engine in BASELINES if engine not in SIZED)]


def by_rule(sessions: Path, covered: set[Path]) -> Iterator[BankExam]:
    """A bank for every long session that has none."""
    for path in sorted(file for file in sessions.rglob("*") if file.is_file() and file.resolve() not in covered):
        try:
            if json_tokens(without_thinking(load_session(path).messages)) >= SHORTEST:
                yield BankExam(make_bank(path, str(path.relative_to(sessions))), sessions)
        except InputError as error:
            print(f"left out: {error}"[:120], file=sys.stderr)


def table(sittings: list[BankExam]) -> list[str]:
    """All contests over the sittings, as Markdown."""
    entries = contests()
    pairs = [(contest, sitting) for contest in entries for sitting in sittings]
    scores = {}
    for number, score in run_all(pairs):
        scores[number] = score
        print(f"{len(scores)} of {len(pairs)}", file=sys.stderr)
    width = len(sittings)
    rows = [[scores[row * width + column] for column in range(width)] for row in range(len(entries))]
    return markdown_table(BANK, list(zip(entries, rows, strict=True)))


def with_table(page: str, mark: str, lines: list[str]) -> str:
    """The page with everything between a mark and the next end mark replaced."""
    before, found, rest = page.partition(mark)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise SystemExit(f"{PAGE} has no marks {mark!r} and {END!r} to write between")
    return "\n".join([before + mark, "", *lines, "", END]) + after


def main(banks: Path, sessions: Path) -> None:
    """Run all exams and write the page."""
    hand = [BankExam(load_bank(path), sessions) for path in sorted(banks.glob("*.json"))]
    covered = {(sessions / sitting.bank.session).resolve() for sitting in hand}
    page = with_table(PAGE.read_text("utf-8"), BY_HAND, table(hand))
    page = with_table(page, BY_RULE, table(list(by_rule(sessions, covered))))
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
