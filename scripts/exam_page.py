"""Writes the table of docs/explanation/exam.md: all engines, baselines, windows and kinds of questions.

    python scripts/exam_page.py BANKS SESSIONS

BANKS is a folder of question banks, SESSIONS the folder their sessions stand in. Takes several minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from leporello.bench.bank import load_bank
from leporello.bench.baselines import BASELINES, SIZED
from leporello.bench.exam import BankExam
from leporello.bench.run import BANK, ExamRun, run_all
from leporello.cli.exam_command import markdown_table
from leporello.engines import BUILTIN

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "exam.md"
BY_HAND = "<!-- table: hand-written banks -->"
END = "<!-- end of table -->"
WINDOWS = (40_000, 64_000, 128_000, 200_000)


def contests() -> list[ExamRun]:
    """Engines at every window; baselines whose result does not depend on it at one."""
    sized = [ExamRun(engine, window, "recall") for engine in (*BUILTIN, *SIZED) for window in WINDOWS]
    return [*sized, *(ExamRun(engine, 128_000, "plain") for engine in BASELINES if engine not in SIZED)]


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
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), BY_HAND, table(hand)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
