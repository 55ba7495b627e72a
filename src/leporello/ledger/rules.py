"""Standing rules in what the user says: orders, bans, preferences, decisions, and facts that bind later work.

Only the user's own words are looked at; text from tools or web pages can never become a rule. Each sentence is scored
in its language (`leporello.ledger.rule_score`); here stands which sentences are looked at and what a score means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger import rule_phrases as phrases
from leporello.ledger.importance import words_of
from leporello.ledger.language import language_of
from leporello.ledger.rule_score import score, signs_of
from leporello.ledger.units import clip, sentences_of

MAX_RULE_CHARS = 2_000
LONGEST_BLOCK = 4_000
LEAST_NAMED_CHARS = 3
LEAST_CLAUSE = 6
MESSAGES_LOOKED_AT = 20
LEAST_CHATS = 2
"""One kind word is no small talk yet."""
_FEELS = frozenset(("oh", "exclaims", "calm"))
_WORKS = frozenset(("name", "version", "task", "polite", "please"))
CHARS_LOOKED_AT = 1_000
_QUESTION = lazy_regex(r"[?？]\W*$")
_PIECE = lazy_regex(r"(?<=\w[.!?])\s+(?=\w)|(?<=[。！？])(?=\w)")
_TAIL_QUESTION = lazy_regex(
    r"[,;] (?:and |then |but |so )*(?:(?:can|could|would|will|do|does|is|are|what|how|why|should|couldn't) [^,;]*"
    r"|(?:right|ok|okay|correct|oder|ja|non|no|verdad|né|certo|vero|да|верно) ?\?\W*)$",
    re.IGNORECASE,
)
_QUOTED = lazy_regex(r"(?<!\w)[\"“„«‘][^\"”“»’\s]{1,60} [^\"”“»’]{4,400}[\"”“»’]|[“「『][^”」』]{4,400}[”」』]")
LONG_QUOTE = lazy_regex(
    r"(?<!\w)[\"“„«][^\"”“»\n]{0,300}[.!?。！？] ?[^\"”“»\n]{0,300}[\"”“»]"
    r"|「[^「」\n]{0,300}[.!?。！？][^「」\n]{0,300}」"
)
"""A quotation of whole sentences."""
BRIEF = 2
"""Sentences of a message in which a request stands beside a rule, and no text that somebody else wrote."""
LEAST_SCORE, IN_SMALL_TALK = -36, 600
"""What a sentence scores at least to be a rule, in hundredths; more in small talk."""
COURTESY_BYTES = 12
"""A sentence of no more is a "Thanks." or a "谢谢。": no company."""


class RuleKind(StrEnum):
    CONSTRAINT = "constraint"
    PREFERENCE = "preference"
    CORRECTION = "correction"
    DECISION = "decision"
    APPROVAL = "approval"
    REFUSAL = "refusal"


class RuleReading(Struct, frozen=True):
    """How a sentence of the user reads."""

    kind: RuleKind | None = None
    revokes: bool = False
    question: bool = False

    @property
    def rule(self) -> bool:
        return self.kind is not None


@lru_cache(maxsize=8192)
def read(sentence: str, *, small_talk: bool = False, company: str = "", brief: bool = False) -> RuleReading:
    """Whether a sentence of the user states a rule, takes one back, or asks something.

    `company` is what `company_of` gives for its message: what else is said there; `brief` where that is one sentence.
    """
    if "\n" in sentence and phrases.BAN_HEADING.match(sentence.split("\n", 1)[0]):
        return RuleReading(RuleKind.CONSTRAINT)
    if len(sentence) > MAX_RULE_CHARS or phrases.CODE_LIKE.search(sentence):
        return RuleReading()
    question = bool(_QUESTION.search(sentence))
    company = company or company_of(_PIECE.split(sentence))
    kinds = (_kind(said, small_talk=small_talk, company=company, brief=brief) for said in said_in(sentence))
    kind = next(filter(None, kinds), None)
    return RuleReading(kind, not question and _revokes(sentence), question)


def _revokes(sentence: str) -> bool:
    """Whether it says that something no longer holds; English and Chinese have phrases of their own for it."""
    said = phrases.REVOKES.search(sentence) is not None
    return said or (language_of(sentence) not in ("en", "zh") and "revoke" in _signs(sentence))


def company_of(sentences: Sequence[str]) -> str:
    """What stands beside a sentence of a message, as a sign of its own.

    What somebody says alone is said to be kept; most messages of several sentences are a request, and what stands
    beside a question mostly explains it.
    """
    if sum(len(sentence.encode()) > COURTESY_BYTES for sentence in sentences) <= 1:
        return ""
    return "asked" if any(map(_QUESTION.search, sentences)) else "beside"


def said_in(sentence: str) -> Iterator[str]:
    """The pieces of a sentence that say something: what only asks is left out, and so is a question at the end.

    What gives a reason may tell of the past or of people; the rule beside it is read for itself too.
    """
    for piece in _PIECE.split(sentence):
        if not _QUESTION.search(piece) or "polite" in _signs(piece):
            yield piece
            if (main := phrases.REASON.sub("", piece)) != piece and len(main) >= LEAST_CLAUSE:
                yield main
        elif (match := _TAIL_QUESTION.search(piece)) and match.start() > 0:
            yield piece[: match.start()]


def is_small_talk(messages: Sequence[str]) -> bool:
    """Whether the user talks about life rather than about work, by the newest messages."""
    newest = messages[-MESSAGES_LOOKED_AT:]
    chats = sum(map(_chats, newest))
    return chats >= LEAST_CHATS and 2 * chats >= len(newest)


@lru_cache(maxsize=2048)
def _chats(message: str) -> bool:
    """Whether a message is about feelings, asks for nothing, and names nothing that one works on."""
    signs = frozenset[str]().union(*map(_signs, sentences_of(message[:CHARS_LOOKED_AT])))
    return not signs.isdisjoint(_FEELS) and signs.isdisjoint(_WORKS)


def _signs(said: str) -> frozenset[str]:
    return signs_of(said, language_of(said))


def _heads(sentence: str) -> bool:
    """Whether something follows that a line only introduces, or a program put it into brackets."""
    return sentence.rstrip().endswith((":", "：")) or sentence.startswith("[")


def _own_words(sentence: str) -> str:
    return _QUOTED.sub(" ", sentence).replace("’", "'")


def _kind(sentence: str, *, small_talk: bool, company: str, brief: bool) -> RuleKind | None:
    """What sort of rule it is, if it is one; assent that does not say to what is none."""
    language = language_of(_own_words(sentence))
    found = signs_of(sentence, language)
    least = IN_SMALL_TALK if small_talk else LEAST_SCORE
    if brief and _holds_alone(found):
        company = ""
    if _heads(sentence) or score(sentence, language, company) < least:
        return None
    if len(phrases.BARE_ASSENT.sub("", sentence)) < LEAST_NAMED_CHARS or (
        found <= _SAYS_LITTLE and _is_one_word(sentence)
    ):
        return None
    if "no" in found and found & {"ban", "order", "neg"}:
        return RuleKind.REFUSAL
    if permits(sentence):
        return RuleKind.APPROVAL
    return next((kind for sign, kind in _KINDS.items() if sign in found), RuleKind.CONSTRAINT)


def _holds_alone(found: frozenset[str]) -> bool:
    """Whether "always" or "never" goes with an order: that says it is to be kept, whatever is asked for beside it.

    In a message of several sentences it may as well stand in a text that the user passes on.
    """
    return bool(found & _FOR_GOOD) and bool(found & _ORDERS) and found.isdisjoint(_OF_ONCE)


def holds_for_good(sentence: str) -> bool:
    """Whether a sentence says that something is always or never to be done."""
    return bool(_signs(sentence) & _FOR_GOOD) and read(sentence).rule


def _is_one_word(sentence: str) -> bool:
    return len(words_of(sentence)) < 2


_FOR_GOOD = frozenset({"always", "never", "ban"})
_ORDERS = frozenset({"ban", "order", "form", "name"})
_OF_ONCE = frozenset(
    "again cond fails lifts longing may maybe me nth oh once past people permits polite quote revoke says still "
    "suppose then they this withdrawn".split()
)
"""Signs of what is told, supposed, asked for one time or said by others."""
_SAYS_LITTLE = frozenset({"plain"})
"""Signs of a statement that neither orders, bans nor wishes: in one word it tells what was done, "Fixed."."""
_KINDS = {
    "corrects": RuleKind.CORRECTION,
    "decides": RuleKind.DECISION,
    "wish": RuleKind.PREFERENCE,
}


def rule_sentences(text: str) -> list[str]:
    """The sentences of a text that its writer says himself, one by one; a list under a heading such as "Never:" is one.

    Left out are those inside a longer quotation, those pasted below a line that says so, and what follows from a
    hypothesis.
    """
    found: list[str] = []
    plain: list[str] = []
    banned: list[str] = []
    for line in _own_lines(text):
        if banned and (phrases.LIST_ITEM.match(line) or (len(banned) == 1 and not line.strip())):
            banned.append(line)
            continue
        found.extend(_block(banned))
        banned = []
        if phrases.BAN_HEADING.match(line):
            found.extend(_own_sentences(plain))
            plain, banned = [], [line]
        else:
            plain.append(line)
    return [*found, *_block(banned), *_own_sentences(plain)]


def _own_lines(text: str) -> Iterator[str]:
    """The lines without those pasted below a line that says where they are from, up to an empty line or a question."""
    pasted = False
    for line in LONG_QUOTE.sub(" ", text).split("\n"):
        bare = line.strip()
        pasted = pasted and bool(bare) and not _QUESTION.search(bare)
        if not pasted:
            yield line
        pasted = pasted or (bare.endswith((":", "：")) and bool(phrases.PASTED.search(bare)))


def _own_sentences(lines: Sequence[str]) -> Iterator[str]:
    supposed = False
    for sentence in sentences_of("\n".join(lines), MAX_RULE_CHARS):
        if not supposed:
            yield sentence
        supposed = not supposed and len(sentence) <= MAX_RULE_CHARS and "suppose" in _signs(sentence)


def _block(lines: list[str]) -> list[str]:
    return [clip("\n".join(line for line in lines if line.strip()), LONGEST_BLOCK)] if len(lines) > 1 else []


def is_cancel(text: str) -> bool:
    """Whether a whole user message only says stop."""
    return len(text) < 80 and bool(phrases.CANCEL.match(text.strip()))


@lru_cache(maxsize=8192)
def permits(sentence: str) -> bool:
    return "permits" in _signs(sentence) or phrases.YES.search(sentence) is not None
