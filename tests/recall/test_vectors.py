"""Search by meaning: real vectors find what shares no word, words keep what they found, nothing is worked out twice."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.recall.base import RecallQuery
from leporello.recall.hops import lifted
from leporello.recall.memory import MemoryRecall, StaticVectors
from leporello.recall.ranking import ScoredLine
from leporello.recall.stored import StoreRecall
from leporello.store import open_store
from leporello.testing.sessions import generate

pytestmark = pytest.mark.skipif(
    find_spec("wordllama") is None or find_spec("tokenizers") is None, reason="needs the extra leporello[vectors]"
)


@pytest.fixture(scope="module")
def vectors() -> StaticVectors:
    return StaticVectors.load()


SAID = [
    {"role": "user", "content": "The physician wants a weekly overview of everyone in her care."},
    {"role": "assistant", "content": "Understood. The kitchen tiles were delivered on Tuesday."},
    {"role": "user", "content": "The aircraft leaves at dawn."},
]


def test_texts_of_like_meaning_lie_near_each_other(vectors: StaticVectors) -> None:
    doctor, medic, tiles = vectors.embed(["the doctor", "the physician", "kitchen tiles"])
    assert doctor @ medic > doctor @ tiles
    assert abs(float(doctor @ doctor) - 1) < 1e-5


def test_a_question_without_a_common_word_is_answered(vectors: StaticVectors) -> None:
    filler = generate(seed=31, messages=120, tokens=20_000).messages
    question = RecallQuery("What did the doctor ask for about her patients?", max_tokens=300)
    found = MemoryRecall([*filler, *SAID], embedding=vectors).search(question)
    assert any("physician" in window.text for window in found)


def test_plain_words_are_searched_as_they_are(vectors: StaticVectors) -> None:
    with_vectors, without = MemoryRecall(SAID, embedding=vectors), MemoryRecall(SAID)
    assert with_vectors.search(RecallQuery("kitchen tiles")) == without.search(RecallQuery("kitchen tiles"))


def test_each_line_is_worked_out_once(vectors: StaticVectors) -> None:
    asked: list[str] = []

    class Counting:
        def embed(self, texts: list[str]) -> object:
            asked.extend(texts)
            return vectors.embed(texts)

    recall = MemoryRecall(SAID, embedding=Counting())  # type: ignore[arg-type]
    for _ in range(3):
        recall.search(RecallQuery("Who leaves at what time?"))
    recall.add(4, {"role": "user", "content": "The harbour is closed for the winter."})
    recall.search(RecallQuery("Who leaves at what time?"))
    lines = [text for text in asked if text != "Who leaves at what time?"]
    assert len(lines) == len(set(lines))
    assert "The harbour is closed for the winter." in lines


def test_fusion_keeps_what_words_found_and_adds_what_meaning_found() -> None:
    by_words = [ScoredLine(5.0, 7, 1.0), ScoredLine(4.0, 3, 1.0), ScoredLine(1.0, 9, 1.0)]
    together = lifted(by_words, [3, 12])
    assert {found.line for found in together} == {7, 3, 9, 12}
    assert [found.score for found in together] == sorted((found.score for found in together), reverse=True)
    assert next(found for found in together if found.line == 3).score > 4.0
    assert lifted(by_words, []) == by_words


def test_an_empty_collection_has_nothing_near(vectors: StaticVectors) -> None:
    assert MemoryRecall(embedding=vectors).search(RecallQuery("Who was it?")) == []


def test_stored_conversations_are_searched_by_meaning_too(vectors: StaticVectors, tmp_path: Path) -> None:
    """Lines near in meaning rise above lines that merely share a word, whichever conversation they stand in."""
    with open_store(f"sqlite:///{tmp_path}/talk.db") as store, Conversation.open("one", store=store) as talk:
        talk.append(*SAID)
        asked = RecallQuery("What did the doctor ask for?")
        lines = {window.text for window in StoreRecall(store, embedding=vectors).search(asked)}
        assert lines >= {window.text for window in StoreRecall(store).search(asked)}
