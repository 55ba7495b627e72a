"""The judgement on one line of a summary: is everything in it supported by the turns, and contradicted by nothing?

A line is looked up around the messages it cites. What is not there may still be true with a wrong id: then the whole
line must be supported in one other place, and gets that place's id.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from leporello.summary.handoff import Line
from leporello.summary.support.contradiction import Passage, at_odds, contradicted, opposed, substituted
from leporello.summary.support.copies import faithful
from leporello.summary.support.deeds import done
from leporello.summary.support.evidence import Evidence
from leporello.summary.support.figures import Figure, any_same, looks_same
from leporello.summary.support.lexicon import in_other_script, is_general, root, words_of
from leporello.summary.support.reading import LINE_NUMBER, QUOTED, Reading, Token, is_hash, read

_CLAIMS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])|;\s+|(?<=[。！？；])|\n")
_HAN = re.compile(r"[\u3400-\u9fff]")
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…|\[…\])\s*")
SMALL_COUNT = 12
ALIGNED_SHARE = 0.3
NEAR_BEST = 0.6
MOST_NOVEL = 0.4
LEAST_LIKENESS = 0.4
NEARLY_AS_LIKE = 0.85
AS_LIKE = 0.97
MOST_SIDES = 60
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


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a claim is looked up: the messages it is about, and those around them."""

    core: tuple[int, ...]
    region: tuple[int, ...]
    cited: bool = True
    """Whether the line itself says so; otherwise it is only where most of it was found."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a line stands; why not; and where it is supported, when that is elsewhere than it says."""

    why_not: str = ""
    sources: tuple[int, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether the line may stay."""
        return not self.why_not


STANDS = Verdict()


class Judge:
    """Checks claims against the evidence."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def judge(self, line: Line) -> Verdict:
        """The verdict on a line."""
        region = self.evidence.region(line.sources)
        cited = Scope(tuple(number for number in line.sources if number in region), region)
        moved: list[int] = []
        for text in claims(line.text):
            verdict = self._claim(text, cited)
            if not verdict.stands:
                return verdict
            moved.extend(verdict.sources)
        return Verdict("", tuple(dict.fromkeys(moved)))

    def _claim(self, text: str, cited: Scope) -> Verdict:
        if any(not cited.region or segment.number in cited.region for segment in self.evidence.repeated(text)):
            return STANDS
        claim = read(text)
        if not _checkable(claim):
            return STANDS
        why = self._check(claim, cited) if cited.region else ""
        if cited.region and (not why or why.startswith("contradicts")):
            return Verdict(why)
        return self._elsewhere(claim, why, moved=bool(cited.region))

    def _elsewhere(self, claim: Reading, why: str, *, moved: bool) -> Verdict:
        """The verdict of the places that speak most of what the claim speaks of."""
        regions = self.evidence.candidates(claim, self._weights(claim))
        rated = [(*self._likeness(claim, region), region) for region in regions]
        best = max((likeness for likeness, _, _ in rated), default=0.0)
        if best < LEAST_LIKENESS:
            return Verdict(why or ("nothing like it" if _says_something(claim) else ""))
        for likeness, core, region in sorted(rated, key=lambda entry: -entry[0]):
            if likeness < NEARLY_AS_LIKE * best or (likeness < AS_LIKE * best and why.startswith("contradicts")):
                break
            found = self._check(claim, Scope((core,), region, cited=False))
            if not found:
                return Verdict("", (core,) if moved else ())
            why = found if found.startswith("contradicts") else why or found
        return Verdict(why)

    def _likeness(self, claim: Reading, region: tuple[int, ...]) -> tuple[float, int]:
        """How much of a claim is in a region, and which message of it is most like the claim."""
        for number in region if claim.quotes else ():
            if all(self._quoted(quote, (number,)) for quote in claim.quotes):
                return 1.0, number
        weights = self._weights(claim)
        found = self.evidence.aligned(weights, region)
        words = {token.key for token in claim.content if token.key in weights}
        shares = [found[0][0] if found else 0.0] * 3
        if words:
            shares.append(sum(self.evidence.has_any(word, region) for word in words) / len(words))
        if claim.figures:
            known = list(self.evidence.figures(region))
            share = sum(any_same(figure, known) for figure in claim.figures) / len(claim.figures)
            shares.extend([share] * 2)
        return sum(shares) / len(shares), found[0][1].number if found else region[0]

    def _check(self, claim: Reading, scope: Scope) -> str:
        """Why a scope doesn't support a claim; empty when it does."""
        missing = self._missing_quote(claim, scope.region)
        if not missing and any(" " in quote for quote in claim.quotes):
            # What is quoted word for word needs no second look.
            claim = read(QUOTED.sub(_without_prose, claim.text))
        passages = self.passages(claim, scope.region)
        copied = faithful(claim, [passage.reading for passage in passages])
        if copied is False:
            return "contradicts: the same words"
        if substituted(claim, passages):
            return "contradicts: something else"
        return (
            missing
            or self._missing_name(claim, scope.region)
            or self._wrong_figure(claim, scope)
            or self._foreign_words(claim, scope.region)
            or self._said_otherwise(claim, passages, scope, copied=bool(copied))
        )

    # --- what must be there ------------------------------------------------------------------------------------------

    def _missing_name(self, claim: Reading, scope: tuple[int, ...]) -> str:
        for token in claim.names:
            if not self.has_name(token.text, scope):
                return f"unknown name {token.text}"
        for token in _proper_names(claim):
            if not self.evidence.has(token.key, scope):
                return f"unknown name {token.text}"
        return ""

    def has_name(self, raw: str, scope: Collection[int]) -> bool:
        """Whether a name occurs in a scope: whole, or shortened at the end of a path, or as the start of a hash."""
        name = LINE_NUMBER.sub("", raw.strip(".,;:()[]\"'`*")).casefold()
        whole = raw.strip(".,;:()[]\"'`*").casefold()
        if self.evidence.has(whole, scope) or (name == whole and self.evidence.says(whole, scope) and len(whole) > 5):
            return True
        if is_hash(name):
            return any(
                f" {name[:12]}" in f" {self.evidence.text(n)}"
                or (name[:7] in self.evidence.text(n) and name in self.evidence.text(n))
                for n in scope
            )
        if "/" in name or "." in name:
            return self._has_path(name, whole, scope)
        return False

    def _has_path(self, name: str, whole: str, scope: Collection[int]) -> bool:
        pieces = [piece for piece in _ELLIPSIS.split(name) if piece]
        texts = [self.evidence.text(number) for number in scope]
        if whole != name and not any(whole.rpartition(":")[2] in text for text in texts):
            return False
        if len(pieces) > 1:
            return any(all(piece.strip("/") in text for piece in pieces) for text in texts)
        bounded = re.compile(rf"(?<![\w.-]){re.escape(name.removeprefix('./'))}(?![\w-]|\.\w)")
        return any(bounded.search(text) for text in texts)

    def _missing_quote(self, claim: Reading, scope: tuple[int, ...]) -> str:
        for quote in claim.quotes:
            pieces = [piece for piece in _ELLIPSIS.split(quote) if len(piece) > 1]
            if not all(self._quoted(piece, scope) for piece in pieces):
                return f"unknown quotation {quote}"
        return ""

    def _quoted(self, piece: str, scope: Collection[int]) -> bool:
        bare = piece.strip().rstrip(".,;:!?")
        return self.evidence.says(bare, scope) or ("/" in bare and " " not in bare and self.has_name(bare, scope))

    # --- numbers -----------------------------------------------------------------------------------------------------

    def _wrong_figure(self, claim: Reading, scope: Scope) -> str:
        inside = [(token.start, token.start + len(token.text)) for token in claim.names]
        for figure in claim.figures:
            if any(start <= figure.start < end for start, end in inside):
                continue
            shown = claim.text[figure.start : figure.end]
            keys = neighbours(claim, figure)
            plainly = "contradicts: " if scope.cited else ""
            for numbers, weight in ((scope.core, plainly), (scope.region, "")):
                if self._other_unit(figure, numbers):
                    return f"{plainly}another unit than {shown}"
                beside = [other for key in keys for other in self._beside(key, numbers)]
                if beside and not any_same(figure, beside):
                    return f"{weight}another number than {shown}"
                if beside:
                    break
            else:
                if not _may_be_counted(figure) and not any_same(figure, self.evidence.figures(scope.region)):
                    return f"unknown number {shown}"
        return ""

    def _other_unit(self, claim: Figure, numbers: Collection[int]) -> bool:
        """Whether the same figure stands there with another unit, and not with this one."""
        if not claim.kind:
            return False
        known = [figure for figure in self.evidence.figures(numbers) if figure.kind]
        return any(looks_same(claim, figure) for figure in known) and not any_same(claim, known)

    def _beside(self, key: str, scope: Collection[int]) -> list[Figure]:
        """The numbers that stand beside a word, or one of the same meaning, in a scope."""
        found: list[Figure] = []
        words = {key, *in_other_script(key)}
        for word in words:
            for place in self.evidence.segments_with(word, scope):
                reading = read(self.evidence.segments[place].text)
                found.extend(figure for figure in reading.figures if words & set(neighbours(reading, figure)))
        return found

    # --- words -------------------------------------------------------------------------------------------------------

    def _foreign_words(self, claim: Reading, region: tuple[int, ...]) -> str:
        if _other_language(claim):
            return ""
        specific = [token for token in claim.content if is_specific(token)]
        unsupported = [token for token in specific if not self._supports(token, region)]
        foreign = [token for token in unsupported if any(self.evidence.knows(key) for key in token.keys)]
        if foreign:
            return f"foreign word {foreign[0].text}"
        if len(unsupported) > max(1, MOST_NOVEL * len(specific)):
            return f"unknown words {' '.join(token.text for token in unsupported)}"
        for clause in clauses(claim):
            told = [token for token in clause if is_specific(token)]
            if len(clause) < 2 or not told or any(token not in unsupported for token in told):
                continue
            if 2 * sum(self._supports(token, region) for token in clause) <= len(clause):
                return f"unknown clause {' '.join(token.text for token in clause)}"
        return ""

    def _supports(self, token: Token, scope: tuple[int, ...]) -> bool:
        if _HAN.match(token.text):
            return self._supports_han(token, scope)
        return any(self.evidence.has_any(key, scope) for key in token.keys)

    def _supports_han(self, token: Token, scope: tuple[int, ...]) -> bool:
        if not any(_HAN.search(self.evidence.text(number)) for number in scope):
            return True
        known = sum(self.evidence.has(key, scope) for key in token.keys)
        return known * 2 >= len(token.keys)

    # --- what is said of it ------------------------------------------------------------------------------------------

    def _weights(self, claim: Reading) -> dict[str, float]:
        """What a claim can be recognised by. Words of a script that the turns don't use can't be."""
        return {
            token.key: self.evidence.weight(token.key) * (1.5 if token.name else 1.0)
            for token in claim.tokens
            if (token.name or token.content)
            and token.key
            and (token.name or not _HAN.match(token.text) or any(self.evidence.knows(key) for key in token.keys))
        }

    def passages(self, claim: Reading, region: tuple[int, ...]) -> list[Passage]:
        """The segments of a region that speak of the same as the claim."""
        found = self.evidence.aligned(self._weights(claim), region)
        if not found or found[0][0] < ALIGNED_SHARE:
            return []
        best = found[0][0]
        return [
            Passage(share, segment.role, read(segment.text)) for share, segment in found if share >= NEAR_BEST * best
        ]

    def _said_otherwise(self, claim: Reading, passages: list[Passage], scope: Scope, *, copied: bool) -> str:
        """Why what is said of the things in a claim is not what the turns say; a faithful copy agrees word by word."""
        deed = done(claim, self.evidence.deeds, passages)
        if deed is not None:
            return "" if deed else "contradicts: what was done"
        if copied:
            return "contradicts: status" if at_odds(claim, passages) else ""
        if opposed(claim, lambda axis: self._taking_sides(axis, scope)):
            return "contradicts: opposite"
        why = contradicted(claim, passages) if passages else ""
        return f"contradicts: {why}" if why else ""

    def _taking_sides(self, axis: int, scope: Scope) -> list[Reading]:
        """The segments that give one of the answers to a question: of the messages themselves, else of those around."""
        for numbers in (scope.core, scope.region):
            places = {place for word in words_of(axis) for place in self.evidence.segments_with(word, numbers)}
            if places:
                return [read(self.evidence.segments[place].text) for place in sorted(places)[:MOST_SIDES]]
        return []


def _without_prose(quotation: re.Match[str]) -> str:
    """Nothing in place of a quoted sentence; code stays."""
    text = quotation.group()
    return text if text.startswith("`") or (" " not in text and not _HAN.search(text)) else " "


def claims(text: str) -> list[str]:
    """The statements of a line: sentences, and what semicolons separate; a quotation stays whole."""
    masked = QUOTED.sub(lambda match: "\0" * len(match.group()), text)
    pieces: list[str] = []
    start = 0
    for match in _CLAIMS.finditer(masked):
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def clauses(claim: Reading) -> list[list[Token]]:
    """The words of a claim, clause by clause."""
    found: list[list[Token]] = [[]]
    for token in claim.tokens:
        if (token.boundary and token.text in ",，;；:(—–") or token.text.casefold() in _JOINS:
            found.append([])
        elif token.content:
            found[-1].append(token)
    return [clause for clause in found if clause]


_JOINS = frozenset("and which after because while but so then when where whose".split())


def neighbours(reading: Reading, figure: Figure) -> list[str]:
    """The words that say what a number counts: the next ones, or the one right before it."""
    found: list[str] = []
    assigned = reading.text[figure.start - 1 : figure.start] == "="
    for token in [] if assigned else [token for token in reading.tokens if token.start >= figure.end][:3]:
        if token.boundary or token.name or token.text.casefold() in _APART:
            break
        found.extend(_telling(token))
    if found:
        return found
    for token in reversed([token for token in reading.tokens if token.start + len(token.text) <= figure.start][-2:]):
        if token.boundary and token.text in ":(":
            continue
        if token.boundary or token.name:
            break
        if token.content:
            return _telling(token)
        if token.text.casefold() not in _LINKS:
            break
    return []


_APART = frozenset("in on at to and of after with for by or but from".split())
_LINKS = frozenset("is was of at to under on are over".split())


def _telling(token: Token) -> list[str]:
    """The keys of a word that can tell one number from another; vague words stand beside all kinds of them."""
    return [key for key in token.keys if key not in _VAGUE] if token.content else []


_VAGUE = frozenset(map(root, "take last run get need total time thing way about log use set value number".split()))


def _may_be_counted(figure: Figure) -> bool:
    """Small whole numbers may be the writer's own count."""
    return figure.word or (not figure.kind and figure.bare <= SMALL_COUNT and figure.bare == int(figure.bare))


def _checkable(claim: Reading) -> bool:
    return _says_something(claim) or bool(claim.facets)


def _says_something(claim: Reading) -> bool:
    """Whether there is anything in a claim that must be found."""
    return bool(claim.names or claim.quotes or claim.figures or any(is_specific(token) for token in claim.content))


def is_specific(token: Token) -> bool:
    """Whether a word carries a fact: neither grammar nor general vocabulary."""
    if _HAN.match(token.text):
        return True
    return any(not is_general(key) for key in token.keys[:1]) and len(token.key) > 2


def _proper_names(claim: Reading) -> Iterable[Token]:
    """Words with a capital that no sentence start explains."""
    opened = True
    for token in claim.tokens:
        if token.boundary:
            opened = True
            continue
        text = token.text
        if token.content and text.istitle() and len(text) > 2 and not opened and not is_general(token.key):
            yield token
        opened = False


def _other_language(claim: Reading) -> bool:
    words = [token.text.casefold() for token in claim.tokens]
    return sum(word in _OTHER_LANGUAGES for word in words) > sum(word in _ENGLISH for word in words)
