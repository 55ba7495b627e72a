"""What a message introduces as somebody else's words is nobody's rule or value; the user's words around it are his."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leporello.ledger.ledger import Ledger
from leporello.ledger.quoted import prose
from leporello.ledger.units import sentences_of
from leporello.summaries.sections import announced_lines

KNOWN_MISSES = ("Ответь на отзыв",)
"""Asks for an answer to a text that nothing points at: "Answer the review. Never again!"."""


def texts_of(name: str) -> list[str]:
    """The messages of a file; another's text stands in ⟦⟧, what is surely the user's in ⟪⟫."""
    corpus = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [block.partition("\n")[2].rstrip("\n") for block in corpus.split("@@")[1:]]


def marked(text: str, marks: str) -> list[str]:
    return [
        said for part in re.findall(f"{marks[0]}(.*?){marks[1]}", text, re.DOTALL) for said in sentences_of(part, 2_000)
    ]


def bare(text: str) -> str:
    return re.sub("[⟦⟧⟪⟫]", "", text)


def letters(text: str) -> str:
    return re.sub(r"\W", "", text)


PASTED = [text for text in texts_of("pasted.txt") if not text.startswith(KNOWN_MISSES)]


@pytest.mark.parametrize("text", PASTED)
def test_what_is_introduced_as_anothers_becomes_no_rule_value_or_announcement(text: str) -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": bare(text)})
    foreign = letters("".join(marked(text, "⟦⟧")))
    taken = [rule.text for rule in ledger.active_rules]
    taken += [stated.text for stated in ledger.values.open.values()]
    taken += [line.text for line in announced_lines(ledger, {1})]
    assert [said for said in taken if letters(said) and letters(said) in foreign] == []


@pytest.mark.parametrize("text", [text for text in [*PASTED, *texts_of("own_words.txt")] if "⟪" in text])
def test_what_the_user_says_around_it_stays_his(text: str) -> None:
    kept = letters(prose(bare(text)))
    assert [said for said in marked(text, "⟪⟫") if letters(said) not in kept] == []


def test_there_are_enough_messages() -> None:
    assert len(PASTED) >= 59
    assert len(texts_of("own_words.txt")) >= 30
