"""Standing rules in what the user says: orders, bans, preferences, decisions, and facts that bind later work.

Only the user's own words are looked at; text from tools or web pages can never become a rule. A sentence is scored: a
few features of its words in the user's language speak for a rule (a ban, a modal, "every", a preference, what "we" do),
others against it (a question, a report of what was, small talk, a hypothesis, a quotation, "once more"). What they
weigh is in one table, fitted to sentences in ten languages and to recorded sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from leporello.ledger import rule_phrases as phrases
from leporello.ledger import rule_words as words
from leporello.ledger.units import clip, sentences_of

MAX_RULE_CHARS = 2_000
LONGEST_BLOCK = 4_000
MOST_CLAUSES = 40
LEAST_NAMED_CHARS = 3
_QUESTION = re.compile(r"[?？]\W*$")
_PIECE = re.compile(r"(?<=\w[.!?])\s+(?=\w)")
_TAIL_QUESTION = re.compile(
    r"[,;] (?:and |then |but |so )*(?:(?:can|could|would|will|do|does|is|are|what|how|why|should|couldn't) [^,;]*"
    r"|(?:right|ok|okay|correct|oder|ja|non|no|verdad|né|certo|vero|да|верно) ?\?\W*)$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)[\"“„«‘][^\"”“»’\s]{1,60} [^\"”“»’]{4,400}[\"”“»’]|[“「『][^”」』]{4,400}[”」』]")
_NAME = re.compile(r"`\w|\w[/_]\w|[a-z][A-Z]|\b[A-Z]{2}|\d\.\d|\w\.[a-z]{1,4}\b")
_OF_ONESELF = re.compile(r"\b(?:i|i'\w{1,2}|my|me|us|yes|please|let's)\b", re.IGNORECASE)
_LATIN = re.compile(r"[A-Za-z]{2}")
_LATIN_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SCRIPTS = (
    (re.compile(r"[\u3040-\u30ff]"), "ja"),
    (re.compile(r"[\uac00-\ud7af]"), "ko"),
    (re.compile(r"[\u3400-\u9fff]"), "zh"),
    (re.compile(r"[\u0400-\u04ff]"), "ru"),
)
_KNOWN_BY = {language: frozenset(known.split()) for language, known in words.LATIN.items()}

WEIGHTS: dict[str, int] = {
    "keeps": 9,
    "near": 8,
    "binds": 13,
    "ban": 16,
    "must": 8,
    "always": 3,
    "every": 3,
    "only": 1,
    "contrast": 7,
    "condition": 1,
    "prefers": 12,
    "decides": 7,
    "permits": 12,
    "order": 2,
    "no": 1,
    "corrects": 10,
    "work": 33,
    "name": 3,
    "plain": -33,
    "task": -15,
    "asks": -1,
    "report": -7,
    "past": -20,
    "guess": -28,
    "hypothetical": -30,
    "says": -36,
    "once": -13,
    "feels": -17,
    "trade": -13,
    "heads": -30,
    "quoted": -8,
    "polite": -25,
}
"""How much a feature speaks for a rule, or against it."""
THRESHOLD = 17
FORCE = frozenset("ban keeps must always every only contrast prefers decides permits corrects binds no".split())
"""Of these a rule has at least one; the others only add to them."""
ASKED = frozenset(("ban", "keeps"))
"""The same for what is asked politely: everything else asked so is work for this turn."""


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
    kind = next(filter(None, map(_kind, _said(sentence))), None)
    return RuleReading(kind, not question and bool(phrases.REVOKES.search(sentence)), question)


def _said(sentence: str) -> Iterator[str]:
    """The pieces of a sentence that say something: what only asks is left out, and so is a question at the end."""
    for piece in _PIECE.split(sentence):
        if not _QUESTION.search(piece) or phrases.POLITE.search(piece):
            yield piece
        elif (match := _TAIL_QUESTION.search(piece)) and match.start() > 0:
            yield piece[: match.start()]


def features(sentence: str) -> frozenset[str]:
    """The features of a sentence, of those that `WEIGHTS` names."""
    said = _QUOTED.sub(" ", sentence).replace("’", "'")
    language = _language(said)
    known = words.words_of(language)
    found = {str(match.lastgroup) for match in known.anywhere.finditer(said)}
    for clause in _clauses(said):
        for opening in _openings(clause):
            if match := known.start.match(opening):
                found.add(str(match.lastgroup))
    found |= {str(match.lastgroup) for match in known.topic.finditer(said)}
    if phrases.YES.search(said):
        found.add("permits")
    if "permits" in found:
        found -= {"task", "once"}
    if not _OF_ONESELF.search(said):
        found.discard("trade")
    if _NAME.search(said) or (language not in _KNOWN_BY and _LATIN.search(said)):
        found.add("name")
    if said.rstrip().endswith((":", "：")):
        found.add("heads")
    if len(said) + 8 < len(sentence):
        found.add("quoted")
    if phrases.POLITE.search(said):
        found.add("polite")
    if not found & (ASKED if "polite" in found else FORCE - {"every"} if "task" in found else FORCE):
        found.add("plain")
    return frozenset(found)


def _language(text: str) -> str:
    for script, language in _SCRIPTS:
        if script.search(text):
            return language
    spoken = {word.casefold() for word in _LATIN_WORD.findall(text.replace("’", "'"))}
    known = {
        language: 2 * len(known & spoken) - len(known & spoken & words.SHARED) for language, known in _KNOWN_BY.items()
    }
    best = max(known, key=known.__getitem__)
    return best if known[best] else "en"


def score(found: frozenset[str]) -> int:
    return sum(WEIGHTS.get(feature, 0) for feature in found)


def _kind(sentence: str) -> RuleKind | None:
    """What sort of rule it is, if it is one; assent that does not say to what is none."""
    found = features(sentence)
    if score(found) < THRESHOLD:
        return None
    if "no" in found and found & {"ban", "order", "keeps"}:
        return RuleKind.REFUSAL
    if "permits" in found:
        return RuleKind.APPROVAL if len(phrases.BARE_ASSENT.sub("", sentence)) >= LEAST_NAMED_CHARS else None
    for feature, kind in _KINDS.items():
        if feature in found:
            return kind
    return RuleKind.CONSTRAINT


_KINDS = {"corrects": RuleKind.CORRECTION, "decides": RuleKind.DECISION, "prefers": RuleKind.PREFERENCE}


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
    return "permits" in features(sentence)


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
