"""The words of a claim against those in the turns: few may be new, and none may come from somewhere else."""

from __future__ import annotations

import re

from leporello.summaries.verify.evidence import ClaimScope, Evidence
from leporello.summaries.verify.lexicon import consequences_of, is_general
from leporello.summaries.verify.reading import HAN, Reading, Token, read

MOST_NOVEL = 0.4
_OTHER_LANGUAGES = frozenset(
    (
        "der die das und ist nicht von mit wurde wird ein eine für auf zu den dem im sind "
        "el la los las un una que con para por fue no se del es al como "
        "le les des et est une dans pour sur pas par au aux il lo gli che di non per sono della"
    ).split()
)
_ENGLISH = frozenset(
    "the a an of to in is was and for with on that by are were be it as at from this has have not".split()
)


class Vocabulary:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def foreign(self, claim: Reading, scope: ClaimScope, explained: frozenset[str]) -> str:
        """The first word that a region doesn't support, and why; some may be explained otherwise."""
        if is_other_language(claim):
            return ""
        region = scope.region
        unheard = self._unheard(claim, self.evidence.groups(scope.core) or region, explained)
        unheard = unheard or self._generalised(claim, region)
        if unheard:
            return unheard
        specific = [token for token in claim.content if is_specific(token) and token.key not in explained]
        unsupported = [token for token in specific if not self._supports(token, region)]
        foreign = [token for token in unsupported if any(self.evidence.knows(key) for key in token.keys)]
        if foreign:
            return f"foreign word {foreign[0].text}"
        if len(unsupported) > max(1, MOST_NOVEL * len(specific)):
            return f"unknown words {' '.join(token.text for token in unsupported)}"
        renamed = next((token for token in unsupported if self._renamed(token, claim, region)), None)
        if renamed is not None:
            return f"another thing than {renamed.text}"
        for clause in reasons(claim):
            told = [token for token in clause if is_specific(token)]
            if told and not self._supports(told[-1], region):
                return f"unknown reason {' '.join(token.text for token in clause)}"
        for clause in clauses(claim):
            told = [token for token in clause if is_specific(token)]
            if len(clause) < 2 or not told or any(token not in unsupported for token in told):
                continue
            if 2 * sum(self._supports(token, region) for token in clause) <= len(clause):
                return f"unknown clause {' '.join(token.text for token in clause)}"
        return ""

    def _unheard(self, claim: Reading, region: tuple[int, ...], explained: frozenset[str]) -> str:
        """A consequence that nothing in a region tells of."""
        for token in claim.content:
            for words in consequences_of(token.text):
                if token.key in explained or any(self._tells(word, region) for word in words):
                    break
            else:
                if consequences_of(token.text):
                    return f"nothing was {token.text}"
        return ""

    def _tells(self, word: str, region: tuple[int, ...]) -> bool:
        """Whether a word is said in a region, not only a part of a name."""
        readings = (read(self.evidence.segments[place].text) for place in self.evidence.segments_with(word, region))
        return any(not token.name and word in token.keys for reading in readings for token in reading.tokens)

    def _generalised(self, claim: Reading, region: tuple[int, ...]) -> str:
        """All files, every function: where nothing says so."""
        match = _UNIVERSAL.search(claim.text)
        if match is None:
            return ""
        said = re.compile(rf"\b(?:all|every|each|any|whole|entire)\W+(?:\w+\W+){{0,3}}{match[1]}|所有|全部|每", re.I)
        return "" if any(said.search(self.evidence.text(number)) for number in region) else f"not all: {match.group()}"

    def _renamed(self, token: Token, claim: Reading, region: tuple[int, ...]) -> bool:
        """Whether the word before it goes with another thing: "payout backups" where only "payout exports" occur."""
        before, after = _beside(token, claim)
        if before is None or not is_specific(before) or (after is not None and after.content):
            return False
        places = self.evidence.segments_with(before.key, region)
        readings = [read(self.evidence.segments[place].text) for place in places]
        things = [
            following
            for reading in readings
            for word in reading.content
            if word.key == before.key and (following := _beside(word, reading)[1]) is not None and following.content
        ]
        return bool(things) and not any(thing.key in claim.keys for thing in things)

    def _supports(self, token: Token, scope: tuple[int, ...]) -> bool:
        if HAN.match(token.text):
            return self._supports_han(token, scope)
        return any(self.evidence.has_any(key, scope) for key in token.keys)

    def _supports_han(self, token: Token, scope: tuple[int, ...]) -> bool:
        if not any(HAN.search(self.evidence.text(number)) for number in scope):
            return True
        known = sum(self.evidence.has(key, scope) for key in token.keys)
        return known * 2 >= len(token.keys)


def is_specific(token: Token) -> bool:
    """Whether a word carries a fact: neither grammar nor general vocabulary."""
    if HAN.match(token.text):
        return True
    return any(not is_general(key) for key in token.keys[:1]) and len(token.key) > 2


def _beside(token: Token, reading: Reading) -> tuple[Token | None, Token | None]:
    """The content words right before and right behind a word."""
    tokens = reading.tokens
    place = next(k for k, other in enumerate(tokens) if other.start == token.start)
    before = tokens[place - 1] if place and tokens[place - 1].content else None
    after = tokens[place + 1] if place + 1 < len(tokens) and tokens[place + 1].content else None
    return before, after


def clauses(claim: Reading) -> list[list[Token]]:
    found: list[list[Token]] = [[]]
    for token in claim.tokens:
        if (token.boundary and token.text in ",，;；:(—–") or token.text.casefold() in _JOINS:
            found.append([])
        elif token.content and token.text.casefold() not in _LEAD_INS:
            found[-1].append(token)
    return [clause for clause in found if clause]


_LEAD_INS = frozenset("note notice remember recall observe mind consider".split())


def reasons(claim: Reading) -> list[list[Token]]:
    """The clauses of a claim that give a cause."""
    found: list[list[Token]] = []
    inside = False
    for token in claim.tokens:
        if token.text.casefold() in _CAUSES:
            inside = True
            found.append([])
        elif token.boundary:
            inside = False
        elif inside and token.content:
            found[-1].append(token)
    return [clause for clause in found if clause]


_CAUSES = frozenset("because due owing thanks".split())
_UNIVERSAL = re.compile(
    r"\b(?:all|every|each) (?:[a-z]+ )?(?:of )?(?:the )?([a-z]{3,}?)(?:s|es|ies|y)?\b",
    re.I,
)
_JOINS = frozenset("and which after because while but so then when where whose".split())


def is_other_language(claim: Reading) -> bool:
    """Whether a claim is neither in English nor in Chinese."""
    words = [token.text.casefold() for token in claim.tokens]
    return sum(word in _OTHER_LANGUAGES for word in words) > sum(word in _ENGLISH for word in words)
