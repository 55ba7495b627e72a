"""More than one look at a question: its parts one by one, and again with words of the best lines that were found.

A question may ask for several things, and what answers it may use words that only a first answer names ("her sister"
leads to a name, the name to the rest). No model is needed for either.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, zip_longest

from leporello.lazy_regex import lazy_regex
from leporello.recall.base import RecallMode
from leporello.recall.chunks import MemoryIndex
from leporello.recall.question import Question, Term, understand
from leporello.recall.ranking import KnownEvidence, Rarity, ScoredLine, containing, rank
from leporello.text_features.words import STOP_WORDS, index_words, query_words, rarity

FEEDBACK_LINES = 10
"""The best lines, whose rare words are looked for too."""
FEEDBACK_WORDS = 6
FEEDBACK = 0.15
"""What such a word counts for, beside 1 for a word of the question."""
_LEAST_LETTERS = 4
_COMMON = 0.05
"""A word in more than this share of all passages tells nothing new."""
MOST_PARTS = 6
BEST_OF_PART = 20
"""Lines that each part of a question may name."""
LIFT = 0.7
"""What the first place among lines that were named otherwise is worth beside the score by words."""
RANK_OFFSET = 20
BEST_SAID, FEW_PASSAGES = 2, 3
"""The best lines of the user, by whose words that so few passages hold later ones are found."""
SHORT_QUESTION = 4
"""A question of more words tells enough itself; measured, words of the lines found lead away from it."""
_ASKING = (
    "what|which|when|where|why|who|whom|whose|how|did|does|do|is|are|was|were|can|could|should|will|would|"
    "was|welche[rsnm]?|wann|wo|warum|wer|wie|quand|où|pourquoi|qui|comment|quel(?:le)?s?|cuándo|dónde|qué|quién|cómo"
)
_JOINT = lazy_regex(
    rf"[?？;；]\s{{0,4}}|,?\s{{1,4}}(?:and|or|und|oder|et|ou|y|o)\s{{1,4}}(?=(?:{_ASKING})\b)", re.IGNORECASE
)
_ASKS = lazy_regex(rf"\b(?:{_ASKING})\b|[什谁哪怎几何吗]", re.IGNORECASE)
_LISTED = lazy_regex(r",\s+(?:and|or|und|oder|et|ou|y|o)\s+|,\s+", re.IGNORECASE)
_LAST = lazy_regex(r",\s+(?:and|or|und|oder|et|ou|y|o)\s", re.IGNORECASE)
_PAIR = lazy_regex(
    r"\b(?:between|both|either|neither)\s{1,4}([^,?]{3,80}?)\s{1,4}(?:and|or|nor)\s{1,4}([^,?]{3,80})", re.IGNORECASE
)
_NAME = lazy_regex(r"(?<=\s)[A-Z][\w'-]{1,30}")


def parts_of(text: str) -> tuple[str, ...]:
    """What a question asks for one by one, the names of the whole in each; nothing when it asks for one thing."""
    asked = [part for part in _JOINT.split(text) if len(query_words(part)) > 1 and _ASKS.search(part)]
    parts = [piece for part in asked for piece in _pieces(part)]
    if len(parts) < 2:
        return ()
    names = dict.fromkeys(name for name in _NAME.findall(text) if not _ASKS.fullmatch(name))
    carried = (" ".join([part, *(name for name in names if name not in part)]) for part in parts[:MOST_PARTS])
    return tuple(f"{part}?" for part in carried)


def _pieces(part: str) -> Iterable[str]:
    """The members of a list or of a comparison, else the part itself."""
    compared = _PAIR.search(part)
    if compared:
        return compared.groups()
    listed = [piece for piece in _LISTED.split(part) if len(query_words(piece)) > 1] if _LAST.search(part) else []
    return listed if len(listed) > 2 else [part]


def find_lines(collection: MemoryIndex, text: str, mode: RecallMode, rare: Rarity | None = None) -> list[ScoredLine]:
    """The lines that answer a query, best first."""
    question = understand(text, plainly=mode is RecallMode.WORDS)
    known: KnownEvidence = {}
    found = rank(collection, question, rare, known)
    if not question.is_question:
        return found or containing(collection, text)
    if sum(not term.is_thing for term in question.terms) <= SHORT_QUESTION:
        found = rank(collection, _with_feedback(collection, question, found), rare, known)
    parts = [replace(understand(part), wants=question.wants) for part in parts_of(text)]
    best = [[line.line for line in rank(collection, part, rare, known)[:BEST_OF_PART]] for part in parts]
    found = _with_what_was_said_later(collection, found)
    return lifted(found, dict.fromkeys(line for abreast in zip_longest(*best) for line in abreast if line is not None))


def _with_what_was_said_later(collection: MemoryIndex, found: list[ScoredLine]) -> list[ScoredLine]:
    """The lines found, and those that the user said after one of the best of them in words that few others have.

    They may answer in other words than the question's: what became of a thing seldom repeats what it is.
    """
    entries, entry_of = collection.entries, collection.entry_of
    known = {hit.line for hit in found}
    later: dict[int, None] = {}
    for hit in islice((hit for hit in found if entries[entry_of[hit.line]].passage.role == "user"), BEST_SAID):
        for word in sorted(set(index_words(collection.lines[hit.line])) - STOP_WORDS):
            for line in collection.postings[word] if collection.spread[word] <= FEW_PASSAGES else ():
                if entries[entry_of[line]].passage.role == "user" and line > hit.line and line not in known:
                    later[line] = None
    return sorted([*found, *(ScoredLine(found[len(found) // 2].score, line, 0.0) for line in later)], reverse=True)


def lifted(scored: list[ScoredLine], also: Iterable[int]) -> list[ScoredLine]:
    """Lines found by the whole question, and lines named otherwise, best first: those that are both rise by rank."""
    bonus = {line: LIFT * RANK_OFFSET / (RANK_OFFSET + place) for place, line in enumerate(also)}
    if not bonus:
        return scored
    floor = scored[len(scored) // 2].score if scored else 0.0
    known = {found.line for found in scored}
    risen = [found._replace(score=found.score + bonus.get(found.line, 0.0)) for found in scored]
    risen += [ScoredLine(floor + more, line, 0.0) for line, more in bonus.items() if line not in known]
    return sorted(risen, reverse=True)


def _with_feedback(collection: MemoryIndex, question: Question, found: Sequence[ScoredLine]) -> Question:
    """The question and the words that its best lines share least with the rest of the conversation."""
    asked = {word for term in question.terms for word, _ in term.words} | STOP_WORDS
    passages, spread = len(collection.entries), collection.spread
    worth: dict[str, float] = defaultdict(float)
    for line in found[:FEEDBACK_LINES]:
        share = math.exp(line.score - found[0].score)
        for word in dict.fromkeys(index_words(collection.lines[line.line])):
            if word not in asked and len(word) >= _LEAST_LETTERS and 2 <= spread[word] <= passages * _COMMON:
                worth[word] += share * rarity(passages, spread[word])
    best = sorted(worth, key=lambda word: -worth[word])[:FEEDBACK_WORDS]
    return replace(question, terms=(*question.terms, *(Term(FEEDBACK, ((word, 1.0),)) for word in best)))
