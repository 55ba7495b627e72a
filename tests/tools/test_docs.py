"""What docs/guides/tools.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from leporello.tools.base import OutputLimits

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "tools.md").read_text()


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/guides/tools.md", "exec", dont_inherit=True), {"__name__": "example"})


def test_every_built_in_tool_is_described(workshop: Any) -> None:
    described = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(set(described) - {"auto", "deny"}) == sorted(workshop.box.names)


def test_the_table_of_limits_is_true() -> None:
    rows = re.findall(r"^\| ([\d,]+)(?: and more)? \| ([\d,]+).*? \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for row in rows:
        window, result, turn, preview = (int(cell.replace(",", "")) for cell in row)
        limits = OutputLimits.for_window(window)
        assert (limits.result_chars, limits.turn_chars, limits.preview_chars) == (result, turn, preview)
