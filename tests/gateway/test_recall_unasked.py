"""Recall without being asked in the proxy: switched on, a folded request ends with what its last message needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.dialects.dialect import Dialect

from .recalls import DIALECTS, ask, folded, history, items, says

QUESTION = "Which port does the staging server of the lighthouse project use?"
SAID = [*history(), {"role": "user", "content": QUESTION}]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_fact_stands_behind_the_question_and_nothing_before_it_changes(tmp_path: Path, dialect: Dialect) -> None:
    """The request is valid and differs from the one without recall in its last item alone, and there at its end."""
    with folded(tmp_path, [says(text="48443."), says(text="Fine.")], {"gateway.recall_unasked": True}) as house:
        reply = ask(house, dialect, "whole", SAID)
        ask(house, dialect, "whole", [*SAID, *reply.turn, {"role": "user", "content": "Thanks."}])
        first, second = house.model_calls
    assert (first.violations, second.violations) == ((), ())
    newest = items(first)[-1]
    assert newest["content"][0]["text"] == QUESTION
    assert "48443" in newest["content"][-1]["text"]
    assert items(second)[: len(items(first)) - 1] == items(first)[:-1]
    assert "<recalled>" not in json.dumps(items(second))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_off_unless_switched_on(tmp_path: Path, dialect: Dialect) -> None:
    with folded(tmp_path, [says(text="?")]) as house:
        ask(house, dialect, "whole", SAID)
        (only,) = house.model_calls
    assert "<recalled>" not in json.dumps(items(only))
