"""What a query asks: the words to look for, their synonyms, and the type of answer it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass

from leporello.recall.relatives import relatives_of
from leporello.recall.wants import Want, is_question, wants_of
from leporello.text_features.words import index_words, query_words, stem

RELATIVE = 0.6
"""What a relative of a word counts for, beside 1 for the word itself."""
ANSWER_WORD = 0.5
"""`file`, `line`, `hash`, `error` say what is asked for more than what it is about."""
QUOTED = 1.3
"""Words the query quotes stood in the text exactly so."""
MOST_TERMS = 64


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the query with those that may stand for it, and how much it counts."""

    weight: float
    words: tuple[tuple[str, float], ...]
    """The word itself (1.0) first, then its relatives."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, understood."""

    terms: tuple[Term, ...]
    wants: frozenset[Want]
    is_question: bool
    """Bare words are meant as they are; a question may be answered in other words."""


_ANSWER_WORDS = frozenset(
    stem(word)
    for word in (
        "file line column path location position name hash id commit error message number value word sentence argument "
        "reason method function helper command step user agent assistant"
    ).split()
)
_SPOKEN = re.compile(r"(?<![\w./:@-])(?:[A-Z]?[a-z]+|[A-Z]+)(?:-[a-z]+)*(?![\w/:@]|\.\w|-\w)")
_QUOTATION = re.compile(r"`([^`]+)`|\"([^\"]+)\"|“([^“”]+)”|(?<!\w)'([^']+)'(?!\w)")


def understand(text: str, plainly: bool = False) -> Question:
    """Read a query; `plainly` takes its words and nothing else."""
    quoted = {word for found in _QUOTATION.finditer(text) for word in index_words(found.group())}
    wanted = query_words(text)[:MOST_TERMS]
    if plainly:
        return Question(tuple(Term(1.0, ((word, 1.0),)) for word in wanted), frozenset(), False)
    spoken = {word for found in _SPOKEN.finditer(text) for word in index_words(found.group())}
    terms = tuple(_term(word, word in quoted, word in spoken) for word in wanted)
    return Question(terms, wants_of(text), is_question(text))


def _term(word: str, quoted: bool, spoken: bool) -> Term:
    weight = QUOTED if quoted else ANSWER_WORD if word in _ANSWER_WORDS else 1.0
    # Names in code and quotations mean exactly what they say.
    others = relatives_of(word) if spoken and not quoted else ()
    return Term(weight, ((word, 1.0), *((other, RELATIVE) for other in others)))
