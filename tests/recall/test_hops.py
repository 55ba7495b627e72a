"""Questions that ask for several things, and answers that lead to further ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.recall.hops import MOST_PARTS, lifted, parts_of
from leporello.recall.memory import MemoryRecall
from leporello.recall.ranking import ScoredLine

from .conftest import assistant, user


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Which port is in use and who chose the number?", ["Which port is in use?", "who chose the number?"]),
        ("Where is the log file? When does the job run?", ["Where is the log file?", "When does the job run?"]),
        (
            "What dates were set for the visa form, the grant letter, and the school fees?",
            ["What dates were set for the visa form?", "the grant letter?", "the school fees?"],
        ),
        (
            "How many days lie between the first meeting with Ann and the patent deadline?",
            ["the first meeting with Ann?", "the patent deadline Ann?"],
        ),
    ],
)
def test_a_compound_question_is_taken_apart(text: str, parts: list[str]) -> None:
    """Several clauses, members of a list, sides of a comparison; names go along."""
    assert list(parts_of(text)) == parts


@pytest.mark.parametrize(
    "text",
    ["Which port?", "Why did it fail after the restart, once the cache was warm?", "List them. Only six items.", ""],
)
def test_one_question_stays_whole(text: str) -> None:
    assert parts_of(text) == ()


@given(st.text(max_size=200))
def test_any_text_has_a_bounded_number_of_parts(text: str) -> None:
    assert len(parts_of(text)) <= MOST_PARTS


def test_lines_for_parts_rise_and_none_is_lost() -> None:
    scored = [ScoredLine(5.0, 7, 1.0), ScoredLine(4.9, 3, 1.0)]
    risen = lifted(scored, [3, 12])
    assert risen[0].line == 3
    assert {found.line for found in risen} == {3, 7, 12}


def test_a_rare_word_of_the_best_line_leads_to_the_next_one() -> None:
    """The question names the harbour, the first answer names the Albatross, and only that word leads to its captain."""
    said = [assistant(f"Nothing new about matter {n} so far, we wait for the papers to come in") for n in range(80)]
    said.insert(20, user("The ship in the harbour is called Albatross"))
    said.insert(60, user("Albatross was sold to Mrs Lindgren"))
    said[40] = user("Supper will be served at nine in the hall")
    found = MemoryRecall(said).answer("Which ship lies in the harbour?", 60)
    assert "called Albatross" in found
    assert "Lindgren" in found
