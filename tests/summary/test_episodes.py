"""The story of the work: a line for each request, with what was done about it and how that ended."""

from __future__ import annotations

import json

from leporello.events import Span
from leporello.ledger.ledger import Ledger
from leporello.summaries.episodes import episode_lines
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff, HandoffLine, LineOrigin, Section
from leporello.summaries.import_fold import inherit
from leporello.summaries.sections import within


def ledger_of(*steps: tuple[str, str, str]) -> Ledger:
    """Steps are ("user", text, "") or (tool, argument, result)."""
    ledger = Ledger()
    number = 0
    for tool, argument, result in steps:
        number += 1
        if tool == "user":
            ledger.add(number, {"role": "user", "content": argument})
            continue
        key = "command" if tool == "terminal" else "path"
        function = {"name": tool, "arguments": json.dumps({key: argument})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        ledger.add(number, {"role": "assistant", "content": "", "tool_calls": [call]})
        number += 1
        ledger.add(number, {"role": "tool", "tool_call_id": f"c{number - 1}", "content": result})
    return ledger


def test_each_request_is_a_line_with_what_was_done_and_how_it_ended() -> None:
    ledger = ledger_of(
        ("user", "Fix the parser for empty input please.", ""),
        ("edit_file", "src/parser.py", "ok"),
        ("terminal", "pytest -q", "exit_code: 1\n2 failed, 8 passed in 3s"),
        ("edit_file", "src/parser.py", "ok"),
        ("terminal", "pytest -q", "exit_code: 0\n10 passed in 3s"),
        ("user", "yes", ""),
        ("terminal", "git commit -m parser", "[main 1a2b3c4] parser\n 1 file changed"),
        ("user", "Now write the docs for it as well.", ""),
        ("write_file", "docs/parser.md", "ok"),
    )
    first, second = (line.text for line in episode_lines(ledger, range(1, 40)))
    assert first.startswith("“Fix the parser for empty input please.”: changed src/parser.py ×2; pytest -q → ")
    assert "10 passed in 3s (after 1 failed)" in first
    assert "git commit -m parser → 1 file changed" in first
    assert second == "“Now write the docs for it as well.”: changed docs/parser.md"


def test_what_an_earlier_fold_told_is_told_on() -> None:
    ledger = Ledger()
    line = HandoffLine("“Fix it”: changed a.py; pytest → 3 passed", (2, 9), LineOrigin.PROGRAM)
    inherit(ledger, Fold(1, Span(1, 9), Handoff({Section.COMPLETED: (line,)})))
    assert [told.text for told in episode_lines(ledger, range(1, 10))] == [line.text]


def test_a_number_of_lines_is_not_an_outcome() -> None:
    ledger = ledger_of(("user", "Run the linter over all of it.", ""), ("terminal", "make lint", "a\nb"))
    (line,) = episode_lines(ledger, range(1, 9))
    assert line.text.endswith("make lint → no error shown")


def test_the_story_has_no_gaps() -> None:
    steps = [
        step
        for n in range(12)
        for step in (
            ("user", f"Please change the module number {n} so that it does what the others do.", ""),
            ("edit_file", f"src/a_rather_long_folder_name/module_{n}.py" * (3 if n == 8 else 1), "ok"),
            ("terminal", f"pytest -q tests/module_{n}", "exit_code: 0\n10 passed in 3s"),
        )
    ]
    lines = within(episode_lines(ledger_of(*steps), range(1, 200)), 150, lambda text: len(text) // 4, newest_first=True)
    numbers = [line.ordinal for line in lines]
    assert numbers == list(range(numbers[0], 13))
    assert len(numbers) < 12
