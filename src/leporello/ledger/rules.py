"""Standing rules in what the user says: orders, bans, preferences, decisions, and facts that bind later work.

Only the user's own words are looked at; text from tools or web pages can never become a rule. A sentence is scored by
signs of ten languages (`leporello.ledger.rule_score`). English, in which most work is done, is read by its words too: a
few features speak for a rule (a ban, a modal, "every", a preference, what "we" do), others against it (a question, a
report of what was, small talk, a hypothesis, "once more"); what they weigh is fitted to recorded sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger import rule_phrases as phrases
from leporello.ledger import rule_words as words
from leporello.ledger.rule_score import score, signs_of, vocabulary, without_paths
from leporello.ledger.units import clip, sentences_of

MAX_RULE_CHARS = 2_000
LONGEST_BLOCK = 4_000
MOST_CLAUSES = 40
LEAST_NAMED_CHARS = 3
LEAST_CLAUSE = 6
MESSAGES_LOOKED_AT = 20
CHARS_LOOKED_AT = 1_000
_QUESTION = lazy_regex(r"[?？]\W*$")
_PIECE = lazy_regex(r"(?<=\w[.!?])\s+(?=\w)|(?<=[。！？])(?=\w)")
_TAIL_QUESTION = lazy_regex(
    r"[,;] (?:and |then |but |so )*(?:(?:can|could|would|will|do|does|is|are|what|how|why|should|couldn't) [^,;]*"
    r"|(?:right|ok|okay|correct|oder|ja|non|no|verdad|né|certo|vero|да|верно) ?\?\W*)$",
    re.IGNORECASE,
)
_QUOTED = lazy_regex(r"(?<!\w)[\"“„«‘][^\"”“»’\s]{1,60} [^\"”“»’]{4,400}[\"”“»’]|[“「『][^”」』]{4,400}[”」』]")
_LONG_QUOTE = lazy_regex(
    r"(?<!\w)[\"“„«][^\"”“»\n]{0,300}[.!?。！？] ?[^\"”“»\n]{0,300}[\"”“»]"
    r"|「[^「」\n]{0,300}[.!?。！？][^「」\n]{0,300}」"
)
"""A quotation of whole sentences."""
_NAME = lazy_regex(r"`\w|\w[/_]\w|[a-z][A-Z]|\b[A-Z]{2}|\d\.\d|\w\.[a-z]{1,4}\b")
_OF_ONESELF = lazy_regex(r"\b(?:i|i'\w{1,2}|my|me|us|yes|please|let's)\b", re.IGNORECASE)
_LATIN_WORD = lazy_regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PATTERNS = {
    "permits": phrases.YES,
    "self": phrases.OWN_DOING,
    "polite": phrases.POLITE,
    "single": phrases.SINGLE,
    "exclaims": lazy_regex(r"[!！]"),
}
_SCRIPTS = (
    (lazy_regex(r"[\u3040-\u30ff]"), "ja"),
    (lazy_regex(r"[\uac00-\ud7af]"), "ko"),
    (lazy_regex(r"[\u3400-\u9fff]"), "zh"),
    (lazy_regex(r"[\u0400-\u04ff]"), "ru"),
)
_KNOWN_BY = {language: frozenset(known.split()) for language, known in words.LATIN.items()}

WEIGHTS: dict[str, tuple[int, int]] = {
    "keeps": (9, 9),
    "near": (8, 8),
    "binds": (13, 15),
    "ban": (16, 14),
    "must": (8, 8),
    "always": (3, 4),
    "throughout": (3, 7),
    "every": (3, 0),
    "only": (1, 6),
    "contrast": (7, 7),
    "condition": (1, 0),
    "prefers": (12, 11),
    "decides": (7, 7),
    "permits": (12, 4),
    "order": (2, 4),
    "no": (1, 1),
    "corrects": (10, 10),
    "work": (33, 21),
    "name": (3, 3),
    "plain": (-33, -35),
    "task": (-15, -17),
    "asks": (-1, -1),
    "report": (-7, -16),
    "past": (-20, -20),
    "guess": (-28, -28),
    "hypothetical": (-30, -30),
    "single": (-40, -40),
    "says": (-36, -36),
    "once": (-13, -13),
    "feels": (-17, -24),
    "trade": (-13, -6),
    "heads": (-30, -30),
    "quoted": (-8, -8),
    "polite": (-25, -25),
    "self": (-20, -34),
    "exclaims": (0, -8),
}
"""How much an English feature speaks for a rule, or against it: in small talk, and in every other conversation.

In small talk only what is about work can be a rule: people tell each other what to do all the time.
"""
THRESHOLDS = (17, 3)
FORCE = frozenset(
    "ban keeps must always throughout every only contrast prefers decides permits corrects binds no".split()
)
"""Of these a rule has at least one; the others only add to them."""
LEAST_SCORE, IN_SMALL_TALK = -0.3, 3.0
"""What a sentence scores at least to be a rule by its signs; more in small talk."""
IN_ENGLISH, A_SIGN = 0.2, 30
"""The same in English, where its words count too: so much of their weight as a sign of weight 1."""
UNLIKELY = -2.5
"""What scores so little is no rule, whatever its words say: a joke, a sigh, a request."""
COURTESY_BYTES = 12
"""A sentence of no more is a "Thanks." or a "谢谢。": no company."""
ASKED = frozenset(("ban", "keeps"))
"""The same for what is asked politely: everything else asked so is work for this turn."""


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
def read(sentence: str, *, small_talk: bool = False, company: str = "") -> RuleReading:
    """Whether a sentence of the user states a rule, takes one back, or asks something.

    `company` is what `company_of` gives for its message: what else is said there.
    """
    if "\n" in sentence and phrases.BAN_HEADING.match(sentence.split("\n", 1)[0]):
        return RuleReading(RuleKind.CONSTRAINT)
    if len(sentence) > MAX_RULE_CHARS or phrases.CODE_LIKE.search(sentence):
        return RuleReading()
    question = bool(_QUESTION.search(sentence))
    # What stands before a question is mostly why it is asked: it is read as strictly as small talk.
    company = company or company_of(_PIECE.split(sentence))
    kinds = (_kind(said, small_talk=small_talk or question, company=company) for said in _said(sentence))
    kind = next(filter(None, kinds), None)
    return RuleReading(kind, not question and bool(phrases.REVOKES.search(sentence)), question)


def company_of(sentences: Sequence[str]) -> str:
    """What stands beside a sentence of a message, as a sign of its own.

    What somebody says alone is said to be kept; most messages of several sentences are a request, and what stands
    beside a question mostly explains it.
    """
    if sum(len(sentence.encode()) > COURTESY_BYTES for sentence in sentences) <= 1:
        return ""
    return "asked" if any(map(_QUESTION.search, sentences)) else "beside"


def _said(sentence: str) -> Iterator[str]:
    """The pieces of a sentence that say something: what only asks is left out, and so is a question at the end.

    What gives a reason may tell of the past or of people; the rule beside it is read for itself too.
    """
    for piece in _PIECE.split(sentence):
        if not _QUESTION.search(piece) or phrases.POLITE.search(piece):
            yield piece
            if (main := phrases.REASON.sub("", piece)) != piece and len(main) >= LEAST_CLAUSE:
                yield main
        elif (match := _TAIL_QUESTION.search(piece)) and match.start() > 0:
            yield piece[: match.start()]


@lru_cache(maxsize=8192)
def features(sentence: str) -> frozenset[str]:
    """The features of an English sentence, of those that `WEIGHTS` names."""
    said = _own_words(sentence)
    known = words.english()
    named = bool(_NAME.search(said))
    said = without_paths(said)
    lowered = said.lower()
    found = {str(match.lastgroup) for match in known.anywhere.finditer(lowered)}
    for clause in _clauses(said):
        for opening in _openings(clause):
            if match := known.start.match(opening.lower()):
                found.add(str(match.lastgroup))
    found |= {str(match.lastgroup) for match in known.topic.finditer(lowered)}
    found |= {name for name, pattern in _PATTERNS.items() if pattern.search(said)}
    _weigh_up(found, said)
    if named:
        found.add("name")
    if _heads(said):
        found.add("heads")
    if len(said) + 8 < len(sentence):
        found.add("quoted")
    if not found & (ASKED if "polite" in found else FORCE - {"every", "only"} if "task" in found else FORCE):
        found.add("plain")
    return frozenset(found)


def _weigh_up(found: set[str], said: str) -> None:
    """Leave out what says nothing beside something else."""
    if "permits" in found:
        found -= {"task", "once"}
    if "decides" in found:  # what was decided holds from then on
        found.discard("past")
    if not _OF_ONESELF.search(said):
        found.discard("trade")


@lru_cache(maxsize=8192)
def language_of(text: str) -> str:
    """The language a text is written in, English where nothing tells."""
    for script, language in _SCRIPTS:
        if script.search(text):
            return language
    spoken = set(map(str.casefold, _LATIN_WORD.findall(text.replace("’", "'"))))
    letters = set(text.casefold())
    known = {
        language: 2 * len(known & spoken)
        - len(known & spoken & words.SHARED)
        + len(vocabulary(language) & spoken)
        + (not letters.isdisjoint(words.LETTERS.get(language, ())))
        for language, known in _KNOWN_BY.items()
    }
    best = max(known, key=known.__getitem__)
    return best if known[best] else "en"


def margin(found: frozenset[str], *, small_talk: bool = True) -> int:
    """How far features speak for a rule; none below zero."""
    column = 0 if small_talk else 1
    return sum(WEIGHTS[feature][column] for feature in found if feature in WEIGHTS) - THRESHOLDS[column]


def is_small_talk(messages: Sequence[str]) -> bool:
    """Whether the user talks about life rather than about work, by the newest messages."""
    newest = messages[-MESSAGES_LOOKED_AT:]
    return 2 * (1 + sum(map(_chats, newest))) >= 2 + len(newest)


@lru_cache(maxsize=2048)
def _chats(message: str) -> bool:
    """Whether a message is about feelings or a purchase, and about nothing that one works on."""
    sentences = sentences_of(message[:CHARS_LOOKED_AT])
    language = language_of(message[:CHARS_LOOKED_AT])
    if language != "en":
        signs = frozenset[str]().union(*(signs_of(sentence, language) for sentence in sentences))
        return not signs.isdisjoint(("oh", "exclaims", "calm")) and signs.isdisjoint(("name", "version"))
    if any(map(_names_work, sentences)):
        return False
    return any(not features(sentence).isdisjoint(("feels", "exclaims", "trade")) for sentence in sentences)


def _names_work(sentence: str) -> bool:
    """Whether `features` has "work": most messages do in their first sentences, and need not be read further."""
    return any(match.lastgroup == "work" for match in words.english().topic.finditer(_own_words(sentence).lower()))


def _heads(sentence: str) -> bool:
    """Whether something follows that a line only introduces, or a program put it into brackets."""
    return sentence.rstrip().endswith((":", "：")) or sentence.startswith("[")


def _own_words(sentence: str) -> str:
    return _QUOTED.sub(" ", sentence).replace("’", "'")


def _kind(sentence: str, *, small_talk: bool, company: str) -> RuleKind | None:
    """What sort of rule it is, if it is one; assent that does not say to what is none."""
    language = language_of(_own_words(sentence))
    found = features(sentence) if language == "en" else signs_of(sentence, language)
    likely = score(sentence, language, company)
    if language != "en":
        least = UNLIKELY if "permits" in found else IN_SMALL_TALK if small_talk else LEAST_SCORE
        if _heads(sentence) or likely < least:
            return None
    else:
        weight = margin(found, small_talk=small_talk)
        by_words = weight >= 0 and (score(sentence, language) > UNLIKELY or "permits" in found)
        by_signs = not small_talk and not _heads(sentence) and likely + weight / A_SIGN >= IN_ENGLISH
        if not (by_words or by_signs):
            return None
    if "no" in found and found & {"ban", "order", "keeps", "neg"}:
        return RuleKind.REFUSAL
    if "permits" in found:
        return RuleKind.APPROVAL if len(phrases.BARE_ASSENT.sub("", sentence)) >= LEAST_NAMED_CHARS else None
    return next((kind for feature, kind in _KINDS.items() if feature in found), RuleKind.CONSTRAINT)


_KINDS = {
    "corrects": RuleKind.CORRECTION,
    "decides": RuleKind.DECISION,
    "prefers": RuleKind.PREFERENCE,
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
    for line in _LONG_QUOTE.sub(" ", text).split("\n"):
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
        supposed = not supposed and len(sentence) <= MAX_RULE_CHARS and _supposes(sentence)


def _supposes(sentence: str) -> bool:
    language = language_of(sentence)
    return "hypothetical" in features(sentence) if language == "en" else "suppose" in signs_of(sentence, language)


def _block(lines: list[str]) -> list[str]:
    return [clip("\n".join(line for line in lines if line.strip()), LONGEST_BLOCK)] if len(lines) > 1 else []


def is_cancel(text: str) -> bool:
    """Whether a whole user message only says stop."""
    return len(text) < 80 and bool(phrases.CANCEL.match(text.strip()))


@lru_cache(maxsize=8192)
def permits(sentence: str) -> bool:
    language = language_of(sentence)
    return "permits" in (features(sentence) if language == "en" else signs_of(sentence, language))


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
