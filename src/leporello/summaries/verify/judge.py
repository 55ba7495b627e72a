"""The judgement on one line of a summary: is everything in it supported by the turns, and contradicted by nothing?

A line is looked up around the messages it cites. What is not there may still be true with a wrong id: then the whole
line must be supported in one other place, and gets that place's id.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from leporello.summaries.handoff import HandoffLine
from leporello.summaries.verify.attribution import ACTED, done, without_speaker
from leporello.summaries.verify.contradiction import Passage, at_odds, contradicted, opposed, substituted
from leporello.summaries.verify.evidence import ClaimScope, Deed, Evidence, Segment
from leporello.summaries.verify.lexicon import in_other_script, is_general, root, sides_of, words_of
from leporello.summaries.verify.nearest import Nearest, holds_name
from leporello.summaries.verify.numbers import Counting, free_figures, misjudged
from leporello.summaries.verify.paraphrase import faithful, telling, unaccounted
from leporello.summaries.verify.reading import (
    ELLIPSIS,
    HAN,
    LINE_NUMBER,
    NEGATORS,
    QUOTED,
    Reading,
    Token,
    any_same,
    is_hash,
    read,
)
from leporello.summaries.verify.vocabulary import Vocabulary, is_other_language, is_specific

_CLAIMS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])|;\s+|(?<=[。！？；])|\n")
ALIGNED_SHARE = 0.3
NEAR_BEST = 0.6
LEAST_LIKENESS = 0.4
NEARLY_AS_LIKE = 0.85
AS_LIKE = 0.97
MOST_SIDES = 60
MOMENT = re.compile(
    r"(?<![\w:.])\d{1,2}:\d{2}(?![\w:])|\b(?:yesterday|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:last|next) (?:night|week|month|year)|(?:before|previous|earlier|another) (?:this )?session"
    r"|(?:january|february|april|june|july|august|september|october"
    r"|november|december)|\w+ (?:days?|weeks?|months?|years?) ago|\d{1,2} (?:march|may))\b",
    re.IGNORECASE,
)
"""Times that a claim may not make up."""


@dataclass(frozen=True, slots=True)
class LineVerdict:
    """Why a line is wrong, or why it is in doubt; and where it is supported, when that is elsewhere than it says."""

    wrong: str = ""
    doubt: str = ""
    sources: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the line may stay in its own words."""
        return not self.wrong and not self.doubt


STANDS = LineVerdict()


class Judge:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.counting = Counting(evidence)
        self.vocabulary = Vocabulary(evidence)
        self.near = Nearest(evidence)

    def judge(self, line: HandoffLine) -> LineVerdict:
        region = self.evidence.region(line.sources)
        cited = ClaimScope(tuple(number for number in line.sources if number in region), region)
        verdicts = [self._claim(text, cited) for text in claims(line.text)]
        moved = tuple(dict.fromkeys(number for verdict in verdicts for number in verdict.sources))
        worst = next((v for v in verdicts if v.wrong), None) or next((v for v in verdicts if v.doubt), STANDS)
        return replace(worst, sources=moved)

    def nearest(self, line: HandoffLine) -> tuple[Segment, ...]:
        """The one or two segments that a line is nearest to; none when that is not clear."""
        claim = read(without_speaker(line.text))
        weights = self._weights(claim)
        cited = [number for number in line.sources if number in self.evidence.roles]
        places = [cited, self.evidence.groups(cited), self.evidence.region(cited)] if cited else []
        found = self.near.quotable(claim, weights, places, cited)
        if found:
            return found
        anywhere = [number for region in self.evidence.candidates(claim, weights) for number in region]
        return self.near.quotable(claim, weights, [tuple(dict.fromkeys(anywhere)) or self._naming(claim)])

    def _naming(self, claim: Reading) -> tuple[int, ...]:
        """The messages that hold a name of a claim, in whatever form."""
        names = [token.text for token in claim.names]
        return tuple(
            number
            for number in self.evidence.numbers
            if any(holds_name(name, (self.evidence.text(number),)) for name in names)
        )

    def _claim(self, text: str, cited: ClaimScope) -> LineVerdict:
        if any(not cited.region or segment.number in cited.region for segment in self.evidence.repeated(text)):
            return STANDS
        claim = read(text)
        if not _checkable(claim):
            return STANDS
        why = self._check(claim, cited) if cited.region else ""
        if cited.region and not why:
            return LineVerdict(doubt=self._doubt(claim, cited))
        if cited.region and why.startswith("contradicts"):
            return LineVerdict(why)
        return self._elsewhere(claim, why, moved=bool(cited.region))

    def _elsewhere(self, claim: Reading, why: str, *, moved: bool) -> LineVerdict:
        """The verdict of the places that speak most of what the claim speaks of."""
        regions = self.evidence.candidates(claim, self._weights(claim))
        rated = [(*self._likeness(claim, region), region) for region in regions]
        best = max((likeness for likeness, _, _ in rated), default=0.0)
        if best < LEAST_LIKENESS:
            return LineVerdict(why or ("nothing like it" if _says_something(claim) else ""))
        doubted: LineVerdict | None = None
        for likeness, core, region in sorted(rated, key=lambda entry: -entry[0]):
            if likeness < NEARLY_AS_LIKE * best or (likeness < AS_LIKE * best and why.startswith("contradicts")):
                break
            scope = ClaimScope((core,), region, cited=False)
            found = self._check(claim, scope)
            if not found:
                verdict = LineVerdict(doubt=self._doubt(claim, scope), sources=(core,) if moved else ())
                if verdict.plain:
                    return verdict
                doubted = doubted or verdict
            why = found if found.startswith("contradicts") else why or found
        return doubted or LineVerdict(why)

    def _doubt(self, claim: Reading, scope: ClaimScope) -> str:
        """What in a supported claim is not accounted for word by word."""
        if any(" " in quote for quote in claim.quotes):
            claim = read(QUOTED.sub(_without_prose, claim.text))
        told = read(without_speaker(claim.text))
        segments = [s for _, s in self.near.candidates(told, self._weights(told), scope.region)]
        sums = {f.start for f in free_figures(told) if self.counting.summed(told, f, scope.region)}
        words = [token for token in telling(told) if token.start not in sums]
        # What a call shows, the agent did, and nobody else.
        if told.text == claim.text and done(claim, self._deeds(scope), self.passages(claim, scope.region)):
            words = [t for t in words if t.key not in ACTED and t.text.casefold() not in NEGATORS]
            told = replace(told, statuses=frozenset())
        left = unaccounted(told, words, segments, self.evidence)
        return f"not accounted for: {' '.join(left)}" if left else ""

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
        core = found[0][1].number if found else region[0]
        if claim.figures:
            found_in = {number: self.counting.share_in(claim, number) for number in region}
            core = max(region, key=lambda number: (found_in[number], number == core, -number))
            shares.extend([found_in[core]] * 2)
        return sum(shares) / len(shares), core

    def _check(self, claim: Reading, scope: ClaimScope) -> str:
        """Why a scope doesn't support a claim; empty when it does."""
        missing = self._missing_quote(claim, scope.region)
        if not missing and any(" " in quote for quote in claim.quotes):
            # What is quoted word for word needs no second look.
            claim = read(QUOTED.sub(_without_prose, claim.text))
        passages = self.passages(claim, scope.region)
        copied = faithful(claim, [passage.reading for passage in passages])
        if copied is False:
            return "contradicts: the same words"
        deed = done(claim, self._deeds(scope), passages)
        if not deed and substituted(claim, passages):
            return "contradicts: something else"
        return (
            missing
            or self._missing_name(claim, scope.region)
            or self.counting.wrong(claim, scope)
            or self.vocabulary.foreign(claim, scope, ACTED if deed else frozenset())
            or ("contradicts: what was done" if deed is False else "")
            or ("" if deed else self._said_otherwise(claim, passages, scope, copied=bool(copied)))
        )

    def _deeds(self, scope: ClaimScope) -> Sequence[Deed]:
        """The calls that a claim may be about: all of them, unless it says which."""
        return self.evidence.deeds_in(scope.region) if scope.cited else self.evidence.deeds

    # --- what must be there ------------------------------------------------------------------------------------------

    def _missing_name(self, claim: Reading, scope: tuple[int, ...]) -> str:
        for token in claim.names:
            if not self.has_name(token.text, scope):
                return f"unknown name {token.text}"
        for moment in MOMENT.finditer(claim.text):
            if not self.evidence.says(moment.group(), scope):
                return f"unknown time {moment.group()}"
        for person in _PERSON.finditer(claim.text):
            if not any(self.evidence.has(root(person[1] or person[2]), (number,)) for number in scope):
                return f"unknown person {person.group()}"
        for token in _proper_names(claim, capitals=not is_other_language(claim)):
            if not self.evidence.has(token.key, scope):
                return f"unknown name {token.text}"
        return ""

    def has_name(self, raw: str, scope: Collection[int]) -> bool:
        """Whether a name occurs in a scope: whole, or shortened at the end of a path, or as the start of a hash."""
        whole = raw.strip(".,;:()[]\"'`*").casefold()
        if self.evidence.has(whole, scope):
            return True
        if len(whole) > 5 and not is_hash(whole) and not LINE_NUMBER.search(whole) and self.evidence.says(whole, scope):
            return True
        if not is_hash(whole) and "/" not in whole and "." not in whole:
            return False
        return holds_name(raw, [self.evidence.text(number) for number in scope])

    def _missing_quote(self, claim: Reading, scope: tuple[int, ...]) -> str:
        for quote in claim.quotes:
            pieces = [piece for piece in ELLIPSIS.split(quote) if len(piece) > 1]
            if not all(self._quoted(piece, scope) for piece in pieces):
                return f"unknown quotation {quote}"
        return ""

    def _quoted(self, piece: str, scope: Collection[int]) -> bool:
        bare = piece.strip().rstrip(".,;:!?")
        return self.evidence.says_whole(bare, scope) or ("/" in bare and " " not in bare and self.has_name(bare, scope))

    # --- what is said of it ------------------------------------------------------------------------------------------

    def _weights(self, claim: Reading) -> dict[str, float]:
        """What a claim can be recognised by. Words of a script that the turns don't use are translated if possible."""
        weights: dict[str, float] = {}
        other = is_other_language(claim)
        for token in claim.tokens:
            if not (token.name or token.content) or not token.key:
                continue
            if other and not token.name and not self.evidence.knows(token.key):
                continue
            if token.name or not HAN.match(token.text) or any(self.evidence.knows(key) for key in token.keys):
                weights[token.key] = self.evidence.weight(token.key) * (1.5 if token.name else 1.0)
            else:
                known = [word for key in token.keys for word in in_other_script(key) if self.evidence.knows(word)]
                weights.update(
                    (word, self.evidence.weight(word)) for word in sorted(known, key=self.evidence.weight)[:1]
                )
        return weights

    def passages(self, claim: Reading, region: tuple[int, ...]) -> list[Passage]:
        """The segments of a region that speak of the same as the claim."""
        found = self.evidence.aligned(self._weights(claim), region)
        if not found or found[0][0] < ALIGNED_SHARE:
            return []
        best = found[0][0]
        return [
            Passage(share, segment.role, read(segment.text)) for share, segment in found if share >= NEAR_BEST * best
        ]

    def _said_otherwise(self, claim: Reading, passages: list[Passage], scope: ClaimScope, *, copied: bool) -> str:
        """Why what is said of the things in a claim is not what the turns say; a faithful copy agrees word by word."""
        if copied:
            return "contradicts: status" if at_odds(claim, passages) else ""
        if misjudged(claim, self._counted(claim, scope)):
            return "contradicts: how many"
        if self._denied(claim, scope):
            return "contradicts: negation"
        if opposed(claim, lambda axis: self._taking_sides(axis, scope)):
            return "contradicts: opposite"
        why = contradicted(claim, passages) if passages else ""
        return f"contradicts: {why}" if why else ""

    def _denied(self, claim: Reading, scope: ClaimScope) -> bool:
        """Whether a claim denies a word that the messages it is about only affirm."""
        for token in claim.tokens:
            if not token.negated or not token.content or sides_of(token.key) or is_general(token.key):
                continue
            places = self.evidence.segments_with(token.key, scope.core)
            said = [
                other for p in places for other in read(self.evidence.segments[p].text).tokens if other.key == token.key
            ]
            if said and not any(other.negated for other in said):
                return True
        return False

    def _counted(self, claim: Reading, scope: ClaimScope) -> list[Reading]:
        """The segments that count on one side or the other of what a claim says: of the nearest messages that do."""
        words = {word for facet in claim.facets if claim.figures for word in words_of(facet.side.axis)}
        for numbers in (scope.core, scope.region):
            places = {place for word in words for place in self.evidence.segments_with(word, numbers)}
            readings = [read(self.evidence.segments[place].text) for place in sorted(places)]
            found = [reading for reading in readings if any(any_same(f, reading.figures) for f in claim.figures)]
            if found:
                return found
        return []

    def _taking_sides(self, axis: int, scope: ClaimScope) -> list[Reading]:
        """The segments that give one of the answers to a question: of the messages themselves, else of those around."""
        for numbers in (scope.core, scope.region):
            places = {place for word in words_of(axis) for place in self.evidence.segments_with(word, numbers)}
            if places:
                return [read(self.evidence.segments[place].text) for place in sorted(places)[:MOST_SIDES]]
        return []


def _without_prose(quotation: re.Match[str]) -> str:
    """Nothing in place of a quoted sentence; code stays."""
    text = quotation.group()
    return text if text.startswith("`") or (" " not in text and not HAN.search(text)) else " "


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


def _checkable(claim: Reading) -> bool:
    return _says_something(claim) or bool(claim.facets)


def _says_something(claim: Reading) -> bool:
    """Whether there is anything in a claim that must be found."""
    return bool(claim.names or claim.quotes or claim.figures or any(is_specific(token) for token in claim.content))


def _proper_names(claim: Reading, *, capitals: bool) -> Iterable[Token]:
    """Words with a capital that no sentence start explains, abbreviations, and branches and places of deployment."""
    opened = True
    before = ""
    for token in claim.tokens:
        if token.boundary:
            opened = True
            continue
        text = token.text
        capital = (text.isupper() or (text.istitle() and not opened)) and not is_general(token.key)
        if (
            token.content
            and len(text) > 2
            and ((capital and capitals) or (text in _BRANCHES and (opened or before in _AT)))
        ):
            yield token
        opened = False
        before = text.casefold()


_BRANCHES = frozenset("main master develop dev trunk staging production prod stable nightly canary beta".split())
_PERSON = re.compile(
    r"\b(?:an?|the|another|some|our|their) (reviewer|colleague|customer|client|manager|teammate|maintainer|tester"
    r"|developer|designer|admin|administrator|boss|team|intern|contractor|auditor|stakeholder|owner)s?\b"
    r"|\b(nobody|everybody|everyone|somebody|someone)\b",
    re.IGNORECASE,
)
_AT = frozenset("on to into onto from in at branch against off auf nach von sur vers".split())
