"""The demo runs to its end without key or network, and what it claims is so."""

from __future__ import annotations

import re

import pytest

from leporello.testing import demo


@pytest.mark.slow
def test_the_demo_tells_a_true_story(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    shown = capsys.readouterr().out
    compactions = re.findall(r"^  m\d+ +([\d,]+) -> ([\d,]+)", shown, re.MULTILINE)
    assert len(compactions) >= 5
    for before, after in compactions:
        assert int(after.replace(",", "")) < int(before.replace(",", "")) / 1.5
    kept, rules = re.findall(r"(\d+) of (\d+) word for word", shown)[0]
    assert kept == rules
    assert ", 0 are in the summary" in shown
    assert "valid for every provider" in shown
    assert "NOT" not in shown
