"""What a query is understood to ask."""

from __future__ import annotations

import pytest

from leporello.recall.question import AnswerType, answer_types, understand


def words(text: str) -> set[str]:
    return {word for term in understand(text).terms for word, _ in term.words}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("What did the user say about the port?", AnswerType.USER),
        ("Why was the cache dropped?", AnswerType.REASON),
        ("In which file and on which line is it defined?", AnswerType.PLACE),
        ("How many tests failed?", AnswerType.AMOUNT),
        ("What did the compiler complain about?", AnswerType.ERROR),
        ("Which commit added the parser?", AnswerType.COMMIT),
        ("At which address does the server listen?", AnswerType.ADDRESS),
        ("用户为什么要改端口？", AnswerType.REASON),
        ("用户为什么要改端口？", AnswerType.USER),
    ],
)
def test_the_way_of_asking_tells_the_kind_of_answer(text: str, want: AnswerType) -> None:
    """Common ways of asking are recognised."""
    assert want in answer_types(text)


@pytest.mark.parametrize(
    "text", ["stopThemeWatcher", "staging server port", "src/net/server.py:88", "ValueError line 7"]
)
def test_bare_words_want_nothing_in_particular(text: str) -> None:
    """A query that is not a question is looked for as it is."""
    assert answer_types(text) == frozenset()


def test_relatives_are_looked_for_too() -> None:
    """A question in other words than the text still meets it, at a lower weight."""
    (term,) = (term for term in understand("who removed it").terms if term.words[0][0] == "remov")
    related = dict(term.words)
    assert related["remov"] == 1.0
    assert 0 < related["delet"] < 1.0


def test_names_and_quotations_mean_what_they_say() -> None:
    """No relatives for identifiers or quoted words."""
    assert "delet" not in words("removeFile")
    assert "delet" not in words("the label 'remove'")
    assert "delet" in words("the remove button")


def test_words_mode_takes_the_words_alone() -> None:
    """Plainly read, a question is a list of words."""
    question = understand("Why did he remove it?", plainly=True)
    assert question.wants == frozenset()
    assert [term.words for term in question.terms] == [(("remov", 1.0),)]


@pytest.mark.parametrize("text", ["", " ", "???", "\ud800", "the of and", "a" * 100_000, "x " * 50_000])
def test_any_text_can_be_asked(text: str) -> None:
    """Odd queries give a question, and never a large one."""
    assert len(understand(text).terms) <= 64
