"""Which sentences of the turns say a claim: all of it, then it may stay in its own words; or most of it, to be quoted.

A line is looked up around the messages it cites. What is not there may still be true with a wrong id: then it is looked
up everywhere, and gets the id of the place that says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.summaries.handoff import HandoffLine
from leporello.summaries.verify.evidence import Evidence, Segment, fold
from leporello.text_features.sentences import (
    ELLIPSIS,
    LINE_NUMBER,
    NEGATORS,
    QUOTED,
    Figure,
    Reading,
    Token,
    any_same,
    is_unspaced,
    read,
)
from leporello.text_features.words import STOP_WORDS, is_hash

_CLAIMS = lazy_regex(r"(?<=[.!?])\s+(?=[A-Z`\"(])|;\s+|(?<=[。！？；])|\n")
_GRAMMAR = frozenset(
    """
    a an the is are was were be been being am it its this that these those and of in on at to for by as which who whose
    whom has have had do does did doing there here also i we you he she they me us him them my our your his her their
    such very just own other so via upon
    """.split()
)
"""Small words that may differ; all others change what is said."""
_TELLING = (STOP_WORDS | NEGATORS) - _GRAMMAR
_HEDGES = frozenset(
    """
    if unless might may could maybe perhaps possibly probably presumably apparently likely seem seems should would will
    shall must todo plan plans planned want wants need needs let please propose proposed suggest suggested going
    consider 可能 也许 或许 大概 似乎 如果 计划 打算 需要 应该 请
    """.split()
)
"""What is doubted, wanted, planned or asked for is told so."""
_OF_TOOLS = frozenset("test run suite result command file commit error exit code output made took hit".split())
"""What a claim may say of the things that tools deal with."""
_FAILING = frozenset("failed failing failure error skipped".split())
_OF_CALLS = ("call", "tool")
_OF = (" of ", " of the ", " out of ", "/")
_FRAME = lazy_regex(
    r"(?<![\w/.-])(?:the )?(?:user|assistant|agent)(?![\w/.-])(?:'s)?"
    r"(?: (?:has |have |had )?(?:asks?|asked|wants?|wanted|requests?|requested|says|said|reports?|reported|told|wrote"
    r")\b)?(?: (?:for|that|to)\b)?:?|用户(?:要求|希望|说|想|报告|提出)?[：:]?|助手(?:说|提出)?[：:]?",
    re.IGNORECASE,
)
MOST_TRIED = 8
LEAST_ADDED = 2
"""Words that a second sentence must account for: a single one may have been put in the place of another. Of a call and
what it shows one is enough."""


# --- all of it -------------------------------------------------------------------------------------------------------


class LineVerdict(Struct, frozen=True):
    """Why a line may not stay in its own words; and where it is said, when that is elsewhere than it says."""

    doubt: str = ""
    sources: tuple[int, ...] = ()


class Judge:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.near = Nearest(evidence)

    def judge(self, line: HandoffLine) -> LineVerdict:
        cited = frozenset(self.evidence.region(line.sources))
        moved: list[int] = []
        for text in claims(line.text):
            for scope in (cited, None) if cited else (None,):
                doubt, numbers = self._claim(text, scope)
                if not doubt:
                    break
            if doubt:
                return LineVerdict(doubt)
            moved.extend(numbers if cited and cited.isdisjoint(numbers) else ())
        return LineVerdict(sources=tuple(dict.fromkeys(moved)))

    def _claim(self, text: str, scope: Collection[int] | None) -> tuple[str, list[int]]:
        """What is not said of a claim in some messages, or in all; and the messages that say it."""
        said = [s.number for s in self.evidence.repeated(text) if scope is None or s.number in scope]
        if said:
            return "", said[:1]
        claim = read(text)
        quoting: list[int] = []
        for quote in claim.quotes:
            pieces = [piece for piece in ELLIPSIS.split(quote) if len(piece) > 1]
            found = [self.evidence.saying(piece, scope) for piece in pieces]
            if not all(found):
                return f"nobody said {quote}", []
            quoting.extend(numbers[0] for numbers in found if " " in quote)
        # What is quoted word for word needs no second look.
        bare = QUOTED.sub(_without_prose, text)
        told = read(without_speaker(bare))
        left = [token for token in told.tokens if _is_telling(token)]
        if all(token.lowered in _TELLING for token in left):
            # "None.", or nothing but a quotation.
            return "", quoting[:1]
        around = self.evidence.groups(quoting) if bare != text else scope
        roles = spoken_by(bare)
        candidates = [s for _, s in self.near.candidates(told, around) if not roles or s.role in roles]
        segments, doubt = self._saying(told, left, candidates)
        return doubt, [segment.number for segment in segments[:1]]

    def _saying(
        self, claim: Reading, words: Sequence[Token], candidates: Sequence[Segment]
    ) -> tuple[tuple[Segment, ...], str]:
        """The one or two segments that say all the words of a claim, or what is lacking."""
        rests = {id(segment): _left(words, claim, segment) for segment in candidates}
        doubt = "nothing like it"
        for first in sorted(candidates, key=lambda segment: len(rests[id(segment)]))[:MOST_TRIED]:
            chosen, rest = self._with_second(first, rests[id(first)], claim, candidates)
            if rest:
                doubt = f"not said: {' '.join(token.text for token in rest)}"
                continue
            doubt = next((why for segment in chosen if (why := _differs(claim, words, segment))), "")
            if not doubt:
                return chosen, ""
        return (), doubt

    def _with_second(
        self, first: Segment, rest: Sequence[Token], claim: Reading, candidates: Sequence[Segment]
    ) -> tuple[tuple[Segment, ...], Sequence[Token]]:
        """A segment, with a second one of the same message or call for the words it leaves; and what is left then."""
        group = self.evidence.groups((first.number,))
        best: tuple[tuple[Segment, ...], Sequence[Token]] = ((first,), rest)
        for second in candidates if rest else ():
            calls = second.role in _OF_CALLS and first.role in _OF_CALLS
            if second is first or not (second.number == first.number or (calls and second.number in group)):
                continue
            left = _left(rest, claim, second)
            added = [token for token in rest if token not in left]
            shown = not (first.verbatim and second.verbatim) and not any(token.text[:1].isdigit() for token in added)
            if len(added) >= (1 if calls and shown else LEAST_ADDED) and len(left) < len(best[1]):
                best = ((first, second), left)
        return best


def _is_telling(token: Token) -> bool:
    return bool(token.keys) and (token.name or token.content or token.text[:1].isdigit() or token.lowered in _TELLING)


def _left(words: Sequence[Token], claim: Reading, segment: Segment) -> list[Token]:
    """The words that a segment doesn't say."""
    source = read(segment.text)
    forms = {form for token in source.tokens for form in token.forms}
    if segment.role in _OF_CALLS:
        forms |= _OF_TOOLS | {segment.call.casefold()}
    text = fold(segment.text)
    denies = any(token.negated or token.lowered in NEGATORS for token in source.tokens)
    return [
        token
        for token in words
        if not ((denies and token.lowered in NEGATORS) or _says(token, claim, source, forms, text))
    ]


def _says(token: Token, claim: Reading, source: Reading, forms: Collection[str], text: str) -> bool:
    if token.name:
        return holds_name(token.text, text) or token.forms[0] in forms
    figure = next((f for f in claim.free_figures() if f.start <= token.start < f.end), None)
    if figure is not None:
        return any_same(figure, source.figures) or _is_sum(figure, claim, source)
    if token.lowered == "all" and claim.text[token.start + 4 : token.start + 5].isdigit():
        # "All 21 tests passed" of "21 passed", when nothing else is counted.
        return not any(form in _FAILING for other in source.tokens for form in other.forms)
    if is_unspaced(token.text):
        return all(form in forms for form in token.forms)
    return token.forms[0] in forms or (len(token.forms) > 1 and all(form in forms for form in token.forms[1:]))


def _is_sum(figure: Figure, claim: Reading, source: Reading) -> bool:
    """Whether "2 of 12" adds up: two numbers of the source, 2 and 10, make the second."""
    part = next((other for other in claim.figures if claim.text[other.end : figure.start] in _OF), None)
    if part is None or figure.kind or figure.about:
        return False
    known = {other.bare: source.text[other.end :].split()[:1] for other in source.figures if not other.kind}
    counted = [word.strip(",.;") for word in known.get(part.bare, ())]
    return figure.bare - part.bare in known and any(word in claim.text for word in counted)


def _differs(claim: Reading, words: Sequence[Token], segment: Segment) -> str:
    """How a segment that has the words of a claim says something else with them."""
    source = read(segment.text)
    denied: dict[str, set[bool]] = {}
    for token in source.tokens:
        for form in token.forms:
            denied.setdefault(form, set()).add(token.negated)
    for token in words:
        if any(token.negated not in denied[form] for form in token.forms[:1] if form in denied):
            return f"denied: {token.text}"
    if segment.role in _OF_CALLS:
        return "" if _in_order(words, segment) else "in another order"
    spoken = {token.lowered for token in claim.tokens}
    hedges = {token.lowered for token in source.tokens if token.lowered in _HEDGES} - spoken
    if hedges and segment.role != "user":
        return f"only {' '.join(sorted(hedges))}"
    if segment.text.rstrip(" *_`").endswith(("?", "？")) and "?" not in claim.text:
        return "a question"
    return "" if _in_order(words, segment) else "in another order"


def _in_order(words: Sequence[Token], segment: Segment) -> bool:
    """Whether names and numbers stand in the order of the claim: exchanged ones say something else."""
    text = fold(segment.text)
    place = 0
    for token in words:
        if token.name or token.text[:1].isdigit():
            exact = token.forms[0]
            if exact not in text:
                continue
            place = text.find(exact, place)
            if place < 0:
                return False
            place += len(exact) * exact.isdigit()
    return True


def _without_prose(quotation: re.Match[str]) -> str:
    """Nothing in place of a quoted sentence; code stays."""
    text = quotation.group()
    return text if text.startswith("`") or (" " not in text and not is_unspaced(text[1:])) else " "


def without_speaker(text: str) -> str:
    """A claim without the words that say whose it is, which `Speakers` judges; approval and the like are more."""
    return _FRAME.sub(" ", text, count=1)


def spoken_by(text: str) -> tuple[str, ...]:
    """Whose segments may back a claim that names a speaker; none when it names nobody."""
    frame = _FRAME.search(text)
    if frame is None:
        return ()
    return ("user",) if "user" in frame.group().casefold() or "用户" in frame.group() else ("assistant", "call")


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


# --- most of it ------------------------------------------------------------------------------------------------------

MOST_SEGMENTS = 40
LEAST_SHARE = 0.15
"""Of a claim's words, when its names and numbers are there."""
LEAST_SHARE_OF_WORDS = 0.3
"""Of a claim that has only words, or some of whose names and numbers are not there."""
PRINTED = 0.8
"""Of two sentences that are as near, people's words are read more easily than what programs print."""
EXACT_WEIGHT = 1.5
"""Of names and numbers, beside 1 for a word."""
_SIGNS = '{}[]<>|;\\"'
_FRINGE = ",;:()[]\"'`*"


class Essentials(Struct, frozen=True):
    """What a claim can't do without: names, numbers in digits, and quotations."""

    names: tuple[str, ...]
    figures: tuple[Figure, ...]
    quotes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names) + len(self.figures) + len(self.quotes)

    def held_by(self, segment: Segment) -> set[int]:
        """Which of them a segment holds, by their place."""
        text = fold(segment.text)
        held = [holds_name(name, text) for name in self.names]
        known = read(segment.text).figures if self.figures else ()
        held.extend(any_same(figure, known) for figure in self.figures)
        held.extend(
            all(fold(piece).rstrip(".,;:!?") in text for piece in ELLIPSIS.split(quote) if len(piece) > 1)
            for quote in self.quotes
        )
        return {place for place, there in enumerate(held) if there}


def essentials_of(claim: Reading) -> Essentials:
    names = tuple(dict.fromkeys(token.text for token in claim.names))
    figures = tuple(figure for figure in claim.free_figures() if not figure.word)
    return Essentials(names, figures, tuple(quote for quote in claim.quotes if " " in quote))


def holds_name(raw: str, text: str) -> bool:
    """Whether a folded text holds a name: whole, or shortened at the end of a path, or as the start of a hash."""
    whole = raw.strip(_FRINGE).rstrip(".").casefold()
    name = LINE_NUMBER.sub("", whole)
    if is_hash(name):
        return re.search(rf"(?<![0-9a-z]){name[:12]}", text) is not None
    if "/" not in name and "." not in name:
        return re.search(rf"(?<![\w-]){re.escape(whole)}(?![\w-])", text) is not None
    if whole != name and whole.rpartition(":")[2] not in text:
        return False
    pieces = [piece for piece in ELLIPSIS.split(name) if piece]
    if len(pieces) > 1:
        return all(piece.strip("/") in text for piece in pieces)
    return re.search(rf"(?<![\w.-]){re.escape(name.removeprefix('./'))}(?![\w-]|\.\w)", text) is not None


class _Rated(Struct, frozen=True):
    """A segment: which essentials it holds, and its share of the words."""

    held: set[int]
    share: float
    segment: Segment


def _readable(segment: Segment) -> float:
    """How well a segment reads as a quotation: lines of output the less, the more signs there are among the words."""
    if segment.role != "tool":
        return 1.0
    return PRINTED * (1 - sum(map(segment.text.count, _SIGNS)) / len(segment.text))


class Nearest:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def candidates(self, claim: Reading, scope: Collection[int] | None) -> list[tuple[float, Segment]]:
        """The segments of some messages, or of all, that share most with a claim, best first."""
        weights: dict[str, float] = {}
        for token in claim.tokens:
            if token.keys and not token.boundary and (token.name or token.content or token.text[:1].isdigit()):
                key = token.keys[-1] if is_hash(token.keys[0]) else token.keys[0]
                weights[key] = self.evidence.weight(key) * (1.0 if token.content else EXACT_WEIGHT)
        found = self.evidence.alike(weights, scope, MOST_SEGMENTS)
        if scope is not None:
            known = {id(segment) for _, segment in found}
            others = self.evidence.with_figures(claim.free_figures(), scope)
            found.extend((0.0, segment) for segment in others if id(segment) not in known)
        return found

    def quotable(self, line: HandoffLine) -> tuple[Segment, ...]:
        """The one or two segments that say most of what a line says; none when nothing is near.

        The messages that the line cites come first, then those around them, then all others. Best are segments that
        hold every name and number; else one that holds half of them.
        """
        claim = read(without_speaker(line.text))
        cited = [number for number in line.sources if number in self.evidence.roles]
        places: list[Sequence[int] | None] = [self.evidence.groups(cited), self.evidence.region(cited)] if cited else []
        essentials = essentials_of(claim)
        least = LEAST_SHARE if len(essentials) else LEAST_SHARE_OF_WORDS
        partial: list[tuple[Segment, ...]] = []
        for scope in (*places, None):
            found = [(share, s) for share, s in self.candidates(claim, scope) if s.verbatim]
            rated = [_Rated(essentials.held_by(s), share * _readable(s), s) for share, s in found]
            rated.sort(key=lambda one: (-len(one.held), -one.share, not one.segment.edits))
            for first in rated:
                chosen = self._completed(first, rated, len(essentials), cited)
                if chosen and (sum(one.share for one in chosen) >= least or (essentials.figures and scope)):
                    return tuple(one.segment for one in chosen)
            partial.extend(
                (one.segment,)
                for one in rated[:1]
                if 2 * len(one.held) >= len(essentials.names) + len(essentials.figures)
                and one.share >= LEAST_SHARE_OF_WORDS
            )
        return partial[0] if partial else ()

    def _completed(
        self, first: _Rated, rated: Sequence[_Rated], wanted: int, cited: Collection[int]
    ) -> tuple[_Rated, ...]:
        """A segment, with a second one when it lacks essentials that another has; nothing when some are lacking still.

        The second belongs to it: the call and its results, or another message that the line cites.
        """
        if len(first.held) == wanted:
            return (first,)
        beside = {*self.evidence.groups((first.segment.number,)), *cited}
        fitting = (one for one in rated if one.segment.number in beside and len(first.held | one.held) == wanted)
        second = max(fitting, key=lambda one: one.share, default=None)
        return (first, second) if second is not None else ()
