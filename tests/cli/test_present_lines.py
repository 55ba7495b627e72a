"""Sentences about compactions: what was folded, what was shortened, what an undo brings back."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.agent.commands import COMMANDS
from leporello.conversation import Conversation
from leporello.events import CompactionReport, Outcome, Span
from leporello.present.records import compaction_line, undo_line
from leporello.present.text import percent, without_markdown
from leporello.store import open_store
from leporello.store.records import View, ViewLine
from leporello.testing.sessions import generate


@pytest.mark.parametrize(
    ("pruned", "said"),
    [(0, ""), (1, "1 long tool output behind it is shown as a pointer."), (3, "3 long tool outputs")],
)
def test_shortened_outputs_are_told_beside_the_fold(pruned: int, said: str) -> None:
    """A fold of three messages alone does not explain thousands of tokens less."""
    report = CompactionReport(
        Outcome.COMMITTED, tokens_before=9_277, tokens_after=5_017, covered=Span(3, 5), pruned=pruned
    )
    line = compaction_line(report)
    assert line.startswith("Folded m3-m5: 9,277 → 5,017 tokens (46% less)")
    assert said in line
    assert ("pointer" in line) == bool(pruned)


def _view(*lines: ViewLine) -> View:
    return View("c", "s", 1, 9, tuple(lines), folds=1, compactions=1, waits_for_hard_limit=False)


def test_an_undo_says_what_came_back_and_what_stays() -> None:
    """Messages that were shown all along are not "shown again"."""

    def line(number: int, shortened: bool = False) -> ViewLine:
        return ViewLine({"role": "user", "content": "words"}, number, shortened=shortened)

    fold = ViewLine({"role": "user", "content": "fold"}, fold="f1")
    newer = ViewLine({"role": "user", "content": "fold"}, fold="f2")
    before = _view(newer, line(5), line(6, shortened=True), line(7))
    one, all_of_it = _view(fold, *map(line, (3, 4, 5, 6, 7))), _view(*map(line, (1, 2, 3, 4, 5, 6, 7)))
    assert undo_line(before, one) == (
        "The last compaction is undone: m3-m4 are shown again; 1 shortened message is whole again; "
        "1 earlier fold stays."
    )
    assert undo_line(before, all_of_it).endswith(
        "m1-m4 are shown again; 1 shortened message is whole again; no fold is left."
    )


def test_a_real_undo(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db")) as store, Conversation.open("c", window=8_000, store=store) as talk:
        talk.append(*generate(seed=4, messages=60, tokens=12_000, images=0).messages)
        covered = talk.compact().covered
        assert covered is not None
        said = COMMANDS["undo"].run(talk, "")
        assert f"m{covered.first}-m" in said
        assert said.endswith("no fold is left.")


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0%"), (0.024, "2.4%"), (0.46, "46%"), (0.997, "99.7%"), (0.99999, "99.9%"), (1.0, "100%")],
)
def test_only_all_of_it_is_100_percent(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_conversation_tells_what_it_is(tmp_path: Path) -> None:
    """In a debugger or a notebook."""
    with open_store(str(tmp_path / "s.db")) as store, Conversation.open("c", window=8_000, store=store) as talk:
        talk.append(*generate(seed=4, messages=60, tokens=12_000, images=0).messages)
        talk.compact()
        assert repr(talk) == f"<Conversation 'c': messages={talk.runtime.log.view.last}, folds=1>"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("- **Deadline**: `March 3`", "Deadline: March 3"),
        ("## 2. The port is ```8080```", "The port is 8080"),
        ("> 3) quoted\n* listed", "quoted\nlisted"),
        ("snake_case * 2 - 1 #4 a_b_", "snake_case * 2 - 1 #4 a_b_"),
    ],
)
def test_a_piece_of_markdown_is_shown_without_its_marks(written: str, read: str) -> None:
    assert without_markdown(written) == read
