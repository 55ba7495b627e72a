"""Standing rules in what the user says: constraints, preferences, corrections, decisions, approvals and refusals.

Only the user's own words are looked at; text from tools or web pages can never become a rule. A sentence is read clause
by clause: an order stands at the start of a clause ("never push", "please use tabs"), a requirement has a subject and a
modal ("every commit has to ..."). The same words elsewhere are a report ("it never worked", "I don't know") and no
rule. English and Chinese are read well, a few other languages by their plainest words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from leporello.ledger import rule_phrases as phrases
from leporello.ledger.units import clip, sentences_of

MAX_RULE_CHARS = 2_000
LONGEST_BLOCK = 4_000
MOST_CLAUSES = 40
LEAST_NAMED_CHARS = 3
_QUESTION = re.compile(r"[?？]\W*$")
_LATIN = re.compile(r"[A-Za-z]{2}")
_HAN = re.compile(r"[\u3400-\u9fff]")


class RuleKind(StrEnum):
    CONSTRAINT = "constraint"
    PREFERENCE = "preference"
    CORRECTION = "correction"
    DECISION = "decision"
    APPROVAL = "approval"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class RuleReading:
    """How a sentence of the user reads."""

    kind: RuleKind | None = None
    revokes: bool = False
    question: bool = False

    @property
    def rule(self) -> bool:
        return self.kind is not None


@lru_cache(maxsize=8192)
def read(sentence: str) -> RuleReading:
    """Whether a sentence of the user states a rule, takes one back, or asks something."""
    if "\n" in sentence and phrases.BAN_HEADING.match(sentence.split("\n", 1)[0]):
        return RuleReading(RuleKind.CONSTRAINT)
    if len(sentence) > MAX_RULE_CHARS or phrases.CODE_LIKE.search(sentence):
        return RuleReading()
    question = bool(_QUESTION.search(sentence))
    if question and not phrases.POLITE.search(sentence):
        return RuleReading(question=True)
    kind = _chinese(sentence) if _HAN.search(sentence) else None
    if kind is None and _LATIN.search(sentence):
        kind = _english(sentence.replace("’", "'"))
    if kind is None and not question and phrases.OTHER_LANGUAGES.search(sentence):
        kind = RuleKind.CONSTRAINT
    return RuleReading(kind, not question and bool(phrases.REVOKES.search(sentence)), question)


def rule_sentences(text: str) -> list[str]:
    """The sentences of a text, one by one; a list under a heading such as "Never:" is one sentence with its heading."""
    found: list[str] = []
    plain: list[str] = []
    banned: list[str] = []
    for line in text.split("\n"):
        if banned and (phrases.LIST_ITEM.match(line) or (len(banned) == 1 and not line.strip())):
            banned.append(line)
            continue
        found.extend(_block(banned))
        banned = []
        if phrases.BAN_HEADING.match(line):
            found.extend(sentences_of("\n".join(plain), MAX_RULE_CHARS))
            plain, banned = [], [line]
        else:
            plain.append(line)
    return [*found, *_block(banned), *sentences_of("\n".join(plain), MAX_RULE_CHARS)]


def _block(lines: list[str]) -> list[str]:
    return [clip("\n".join(line for line in lines if line.strip()), LONGEST_BLOCK)] if len(lines) > 1 else []


def is_cancel(text: str) -> bool:
    """Whether a whole user message only says stop."""
    return len(text) < 80 and bool(phrases.CANCEL.match(text.strip()))


@lru_cache(maxsize=8192)
def permits(sentence: str) -> bool:
    return bool(phrases.PERMITS.search(sentence) or phrases.ZH_PERMITS.search(sentence))


def _english(sentence: str) -> RuleKind | None:
    clauses = _clauses(sentence)
    openings = (opening for clause in clauses for opening in _openings(clause))
    orders = any(map(phrases.ORDER.match, openings)) or _is_tied_order(sentence, clauses)
    if phrases.POLITE.search(sentence):
        return RuleKind.CONSTRAINT if phrases.POLITE_ORDER.search(sentence) else None
    if phrases.NO.search(sentence) and orders:
        return RuleKind.REFUSAL
    if (phrases.YES.search(sentence) or phrases.PERMITS.search(sentence)) and _names_something(sentence):
        return RuleKind.APPROVAL
    requires = any(_requires(clause) for clause in clauses)
    if phrases.CORRECTS.search(sentence) and (orders or requires or _says_what_is_right(sentence, clauses[0])):
        return RuleKind.CORRECTION
    if phrases.DECIDES.search(sentence):
        return RuleKind.DECISION
    if phrases.PREFERS.search(sentence):
        return RuleKind.PREFERENCE
    return RuleKind.CONSTRAINT if orders or requires or phrases.CONVENTION.search(sentence) else None


def _clauses(sentence: str) -> list[str]:
    """The clauses; one that goes on with the subject of a report ("we add it but don't move it") stays with it."""
    clauses: list[str] = []
    start = 0
    for match in phrases.CLAUSE.finditer(sentence):
        joined = match.group().strip().casefold() in ("but", "and", "or")
        if joined and phrases.SUBJECT.match(sentence[start : match.start()]):
            continue
        clauses.append(sentence[start : match.start()])
        start = match.end()
    clauses.append(sentence[start:])
    return [clause for clause in clauses[:MOST_CLAUSES] if clause.strip()] or [sentence]


def _openings(clause: str) -> Iterator[str]:
    """A clause, and the same without each of the words that may stand before an order."""
    yield clause
    while (match := phrases.LEAD_IN.match(clause)) and match.end():
        clause = clause[match.end() :]
        yield clause


def _is_tied_order(sentence: str, clauses: list[str]) -> bool:
    """Work that is asked for with a condition or a contrast: "run the linter before you commit", "put X, not Y"."""
    if not (phrases.CONDITION.search(sentence) or phrases.CONTRAST.search(sentence)):
        return False
    openings = (opening for clause in clauses if not phrases.REPORT.match(clause) for opening in _openings(clause))
    return any(phrases.VERB.match(opening) for opening in openings)


def _names_something(sentence: str) -> bool:
    """Whether assent says to what; a bare "yes, go ahead" means nothing away from the question before it."""
    return len(phrases.BARE_ASSENT.sub("", sentence)) >= LEAST_NAMED_CHARS


def _requires(clause: str) -> bool:
    wanted = phrases.REQUIRES.search(clause) or phrases.WE_MUST.search(clause)
    return bool(wanted) and not phrases.NOT_REQUIRED.search(clause)


def _says_what_is_right(sentence: str, opening: str) -> bool:
    """A correction says what is right, not only that something is wrong."""
    rest = sentence[len(opening) :] if len(opening) < 24 else sentence
    return len(rest.split()) >= 3 and bool(phrases.INSTEAD.search(rest))


def _chinese(sentence: str) -> RuleKind | None:
    if _QUESTION.search(sentence) or phrases.ZH_VETO.search(sentence):
        return None
    orders = bool(phrases.ZH_ORDER.search(sentence))
    if orders and phrases.ZH_REFUSES.search(sentence):
        return RuleKind.REFUSAL
    if phrases.ZH_CORRECTS.search(sentence) and len(sentence) > 6:
        return RuleKind.CORRECTION
    if phrases.ZH_PERMITS.search(sentence):
        return RuleKind.APPROVAL
    if orders:
        return RuleKind.CONSTRAINT
    if phrases.ZH_PREFERS.search(sentence):
        return RuleKind.PREFERENCE
    return RuleKind.DECISION if phrases.ZH_DECIDES.search(sentence) else None
