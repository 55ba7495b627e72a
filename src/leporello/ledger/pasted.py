"""Which sentences of a user's message seem to be somebody else's: below a line that introduces them, in a letter to
other people, or addressed to whatever machine reads them.

These are signs, no marks: the user's own words may look like it. So nothing is left out on their account: a rule among
them stays, and the fold says whose words it may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import NamedTuple

from leporello.ledger import pasted_phrases as phrases
from leporello.ledger.language import language_of
from leporello.ledger.quoted import GIVEN
from leporello.ledger.rule_score import signs_of
from leporello.ledger.rules import read
from leporello.ledger.units import sentences_of

PASTED = "In a text that the user passed on (no order of his): "
"""Stands before a rule that may be somebody else's."""
_FOR_GOOD = frozenset(("always", "never", "ban"))
_BINDS = _FOR_GOOD | {"neg", "order", "please"}
"""Signs of what is to be done or left."""
SHORTEST = 20
"""Characters of a message that can hold two voices."""
_LONGEST_INTRODUCTION = 200
_PARTS_LOOKED_AT, _PIECES_LOOKED_AT = 3, 12
"""How much of what stands below a request is read for what tells that it is a text."""
_LEAST_BELOW, _LEAST_BEHIND = 2, 3
"""Sentences of a text below an introduction, and of one behind it on its line."""


def pasted_sentences(text: str, own: str) -> frozenset[str]:
    """The sentences that seem to be somebody else's of what is left of a message without what is marked as quoted."""
    if len(text) < SHORTEST:
        return frozenset()
    whole = frozenset(sentence for part in _Message(text, own).found() for sentence in sentences_of(part))
    if not whole:
        return whole
    # Where sentences are not set apart by blanks one may hold its introduction, too.
    return whole | {one for one in sentences_of(own) if any(2 * len(piece) > len(one) for piece in _held(one, whole))}


def _held(sentence: str, whole: frozenset[str]) -> Iterator[str]:
    """What of a sentence was found."""
    yield from whole.intersection(map(str.strip, phrases.END.split(sentence)))
    yield from whole.intersection(sentence[found.start(1) :] for found in islice(phrases.WITHIN.finditer(sentence), 1))


class _Span(NamedTuple):
    """Paragraphs from one place to before another; of the one that asks about them all lines but the question."""

    begin: int
    end: int
    asks: bool = False


class _Message:
    """The paragraphs of a message, and where they greet, close and ask: each is searched once for it."""

    def __init__(self, text: str, own: str) -> None:
        self.parts = [part.strip("\n") for part in phrases.GAP.split(text) if part.strip()]
        self._left = own

    @cached_property
    def _own(self) -> set[str]:
        lines = self._left.split("\n")
        return {said.strip() for line in lines for said in (line, *phrases.END.split(line))}

    @cached_property
    def _closes(self) -> list[int]:
        return _next_places(self.parts, lambda part: phrases.CLOSING.search(part) is not None)

    @cached_property
    def _questions(self) -> list[int]:
        return _next_places(self.parts, lambda part: phrases.ASKS.search(part) is not None)

    @cached_property
    def _says(self) -> list[int]:
        """Where more than a title stands: a title alone is no text yet."""
        return _next_places(self.parts, lambda part: "\n" in part or part[-1:] in ".!…。！")

    def found(self) -> Iterator[str]:
        """What seems to be somebody else's; each paragraph once, however many letters it may belong to."""
        first = last = 0
        asked = set[int]()
        for span in self._spans():
            if isinstance(span, str):
                yield span
                continue
            begin, end, asks = span
            if begin > last:
                first = last = begin
            yield from self.parts[begin : min(first, end)]
            yield from self.parts[max(begin, last) : end]
            first, last = min(first, begin), max(last, end)
            if asks and end not in asked:
                asked.add(end)
                yield from (line for line in self.parts[end].split("\n")[:-1] if not phrases.ASKS.search(line))

    def _spans(self) -> Iterator[_Span | str]:
        for place, part in enumerate(self.parts):
            if (place or "\n" in part) and (addressed := _to_machines(part)):
                yield addressed
            if self._is_other_letter(place):
                yield from self._letter(place)
            elif (begun := _begun_within(part)) is not None:
                yield begun
            yield from _chat(part, self.parts[place - 1] if place else "")
            yield from self._introduced(place)

    def _introduced(self, place: int) -> Iterator[_Span | str]:
        """What a paragraph introduces, unless that bears a mark of its own: then it is left out already."""
        brought = self._brought(place)
        first = next(brought, None)
        if first is None:
            return
        _, _, rest = self.parts[place].partition("\n")
        begun = (rest or "".join(self.parts[place + 1 : place + 2])).lstrip().partition("\n")[0]
        if not begun or self._is_own(begun):
            yield first
            yield from brought

    def _brought(self, place: int) -> Iterator[_Span | str]:
        """The rest of a paragraph, or the paragraphs below."""
        part, below = self.parts[place], "".join(self.parts[place + 1 : place + 2])
        first, _, rest = part.partition("\n")
        said = [piece.strip() for piece in phrases.END.split(part) if piece.strip()]
        last = phrases.END.split(first.strip())[-1]
        if rest.strip() and _introduces(last) and self._is_own(last):
            # Without a gap it is one paragraph; the user speaks again below the gap.
            behind = [piece.strip() for piece in phrases.END.split(rest) if piece.strip()]
            if not _is_open(last):
                yield from _shown(last, behind)
                return
            yield rest
            if phrases.GREETING.match(rest) and place + 1 < len(self.parts):
                yield from self._letter(place + 1, begun=True)
            return
        about_text = {at for at, sentence in enumerate(said[:-2]) if _asks_about_text(sentence)}
        himself = _last_of_himself(said) if about_text else -1
        for at, sentence in enumerate(said[:-1]):
            asks = himself <= at and at in about_text
            if (asks or _brings(sentence)) and self._is_own(sentence):
                yield from _shown(sentence, said[at + 1 :])
                return
        if below and said and _introduces(said[-1]) and self._is_own(said[-1]):
            yield from self._below(said[-1], place + 1)

    def _below(self, introduction: str, begin: int) -> Iterator[_Span]:
        """The paragraphs below an introduction; below a request only those among which somebody tells something."""
        if phrases.GREETING.match(self.parts[begin]):
            yield from self._letter(begin)
            return
        span = self._text(begin)
        if introduction[-1:] in ":：" or (_is_open(introduction) and not _is_request(introduction)):
            yield span
            return
        looked_at = min(span.end, begin + _PARTS_LOOKED_AT)
        pieces = [_pieces(self.parts[place]) for place in range(begin, looked_at)]
        if sum(map(len, pieces)) < _LEAST_BELOW:
            return
        if not _is_request(introduction):
            yield span
            return
        if phrases.TASK.search(introduction) or not any(map(_tells, chain.from_iterable(pieces))):
            return
        while len(pieces) > 1 and all(map(_is_rule, pieces[0])):
            # What is to be kept stands before the text that it is about.
            begin, pieces = begin + 1, pieces[1:]
        yield span._replace(begin=begin)

    def _is_own(self, said: str) -> bool:
        """Whether it is left of the message without what is marked as quoted."""
        return all(line.strip() in self._own for line in said.split("\n"))

    def _text(self, begin: int) -> _Span:
        """The paragraphs of a text without a form: to a question about it, and without the last one, which may well be
        the user's own again."""
        asked, last = self._questions[begin], len(self.parts) - 1
        if asked <= last:
            return _Span(begin, asked, asks=True)
        is_list = begin <= last and phrases.LABEL.match(self.parts[last]) and phrases.LABEL.match(self.parts[begin])
        return _Span(begin, last if self._says[begin] < last and not is_list else last + 1)

    def _letter(self, begin: int, *, begun: bool = False) -> Iterator[_Span]:
        """A letter to where it is signed; one that is not signed ends with a question about it."""
        closed = self._closes[begin]
        if closed < len(self.parts):
            yield _Span(begin, closed + 1)
        elif begun:
            yield self._text(begin)
        else:
            yield _Span(begin, begin + 1)
            if "\n" not in self.parts[begin] or begin + 2 < len(self.parts):
                yield self._text(begin + 1)

    def _is_other_letter(self, place: int) -> bool:
        """Whether a letter begins here that is not to an assistant; one with which a message begins is signed."""
        part = self.parts[place]
        if phrases.GREETING.match(part) is None:
            return False
        to_others = phrases.OTHERS.match(part) is not None
        if not place:
            return to_others and self._closes[0] < len(self.parts) - 1
        return to_others or self._closes[place] < len(self.parts)


def _last_of_himself(said: Sequence[str]) -> int:
    """The place of the last sentence in which the user speaks of himself; -1: there is none."""
    places = range(len(said) - 1, -1, -1)
    of_himself = (at for at in places if phrases.OF_HIMSELF.search(said[at]) or phrases.MINE.search(said[at]))
    return next(of_himself, -1)


def _next_places(parts: Sequence[str], has: Callable[[str], bool]) -> list[int]:
    """For each place the first one from it on that has something, or their number."""
    found = [len(parts)] * (len(parts) + 1)
    for place in range(len(parts) - 1, -1, -1):
        found[place] = place if has(parts[place]) else found[place + 1]
    return found


def _to_machines(part: str) -> str:
    """A paragraph from the line on that addresses any machine; who takes back rules about a thing addresses his own."""
    lines = part.split("\n")
    for place, line in enumerate(lines):
        if phrases.TO_MACHINES.search(line) or phrases.IGNORES.search(line):
            return "\n".join(lines[place:])
    return ""


def _is_open(introduction: str) -> bool:
    """Whether it ends as a heading does: what stands below it is the text."""
    return introduction[-1:] not in ".!?…。！？"


def _is_request(introduction: str) -> bool:
    """Whether it asks to work on a text and doesn't say that somebody else sent or said it."""
    return not phrases.OF_WHAT.search(introduction) and not _hands(introduction)


def _shown(introduction: str, behind: Sequence[str]) -> Iterator[str]:
    """The text that stands behind an introduction in one paragraph with it, if it looks like one.

    A request with the user's own rules behind it looks the same. So several sentences have to stand there and one of
    them has to tell something, or a question about them has to follow.
    """
    last = max((place for place, one in enumerate(behind) if _asks(one)), default=len(behind))
    asked = 0 < last < len(behind)
    taken = list(behind[: last or len(behind)])
    is_handed, tells = not _is_request(introduction), any(map(_tells, taken))
    goes_on = not all(map(_is_rule, taken)) if not asked else not is_handed and not _is_rule(taken[0])
    if goes_on:
        # Who passes a text on goes on with what he wants done.
        while taken and _is_rule(taken[-1]):
            taken.pop()
    if introduction[-1:] in ":：":
        is_text = is_handed or (len(taken) > 1 and (asked or tells))
    elif is_handed:
        is_text = len(taken) > 1 and (asked or tells)
    else:
        is_text = len(taken) >= _LEAST_BEHIND and tells
    if is_text:
        yield "\n".join(taken)


def _pieces(part: str) -> list[str]:
    return [piece.strip() for piece in islice(phrases.END.split(part), _PIECES_LOOKED_AT) if piece.strip()]


def _is_rule(sentence: str) -> bool:
    return not _tells(sentence) and (read(sentence).rule or not _FOR_GOOD.isdisjoint(_signs(sentence)))


def _tells(sentence: str) -> bool:
    """Whether a sentence says how something is, and is neither a ban nor about the text itself ("It is for ...")."""
    found = _signs(sentence)
    return "plain" in found and found.isdisjoint(_BINDS) and not phrases.OF_IT.match(sentence)


def _signs(sentence: str) -> frozenset[str]:
    return signs_of(sentence, language_of(sentence))


def _introduces(sentence: str) -> bool:
    """Whether a sentence says that a text stands below it."""
    if len(sentence) > _LONGEST_INTRODUCTION or phrases.OWN.search(sentence) or phrases.PLACE.search(sentence):
        return False
    if _brings(sentence) or phrases.BARE_WORK.match(sentence):
        return True
    handed = _handed(sentence)
    if phrases.TEXT.search(sentence) is None or (
        handed is not None and (_is_by_us(sentence, handed) or phrases.RELATIVE.search(sentence[: handed.start()]))
    ):
        return False
    return handed is not None or phrases.POINTS.search(sentence) is not None


def _brings(sentence: str) -> bool:
    """Whether a sentence says that somebody wrote what stands behind it, or what to do with it."""
    if len(sentence) > _LONGEST_INTRODUCTION or phrases.OWN.search(sentence) or phrases.PLACE.search(sentence):
        return False
    return _is_heading_of_text(sentence) or phrases.OF_WHAT.search(sentence) is not None or _hands(sentence)


def _hands(sentence: str) -> bool:
    """Whether a sentence says that somebody else said or sent what stands behind it."""
    handed = _handed(sentence)
    if handed is None or _is_by_us(sentence, handed):
        return False
    if sentence[-1] in ":：":
        return True
    if phrases.RELATIVE.search(sentence[: handed.start()]):
        # "Fix the function that reads this."
        return False
    return not sentence[handed.end() :].strip(" .!?。！？") or phrases.THIS_LAST.search(sentence) is not None


def _handed(sentence: str) -> re.Match[str] | None:
    """Where a sentence says that somebody said or sent something, or from whom it came."""
    if phrases.IDIOM.search(sentence) is None and (said := phrases.HANDED.search(sentence)) is not None:
        return said
    come = phrases.FROM.search(sentence)
    return None if come is None or phrases.TAKES_FROM.search(sentence[: come.start()]) else come


def _is_by_us(sentence: str, handed: re.Match[str]) -> bool:
    """Whether the user or the assistant said or sent it: "I told you this.", "wie ich dir geschrieben habe"."""
    if phrases.COMES.fullmatch(handed[0]) or handed.re.pattern == phrases.FROM.pattern:
        return False
    before, behind = sentence[: handed.start()], sentence[handed.end() :]
    return phrases.BY_US.search(before) is not None or phrases.WE_BEHIND.match(behind) is not None


def _is_heading_of_text(sentence: str) -> bool:
    """`here's the text:`, `turn this into a list:`"""
    if not sentence.endswith((":", "：")) or phrases.OF_HIMSELF.search(sentence) or not phrases.POINTS.search(sentence):
        return False
    return GIVEN.match(sentence) is not None or any(sign.search(sentence) for sign in (phrases.MADE, phrases.TEXT))


def _asks_about_text(sentence: str) -> bool:
    """Whether a sentence asks something about a text."""
    if not _asks(sentence):
        return False
    is_text = phrases.PROSE.search(sentence) is not None and phrases.POINTS.search(sentence) is not None
    return is_text or phrases.JUDGED.search(sentence) is not None


def _begun_within(part: str) -> str | None:
    """A letter to others that begins in the middle of a line."""
    for found in phrases.WITHIN.finditer(part):
        if phrases.OTHERS.match(found[1]) is not None:
            return part[found.start(1) :]
    return None


def _chat(part: str, above: str) -> Iterator[str]:
    """Lines with the names of who says them, if people take turns and it is told, or to be seen, that they talk.

    A list with labels ("Backend: …", "Frontend: …") looks the same.
    """
    lines = part.split("\n")
    said = [(place, found[1]) for place, line in enumerate(lines) if (found := phrases.SAYS.match(line)) is not None]
    names = [name.lower() for _, name in said]
    if len(names) <= len(set(names)) or len(set(names)) < 2 or not phrases.NO_NAMES.isdisjoint(names):
        return
    heading = "\n".join(lines[: said[0][0]]) or above.rpartition("\n")[2]
    take_turns = all(name != following for name, following in pairwise(names))
    if phrases.TALK.search(heading) or (take_turns and any(_asks(lines[place]) for place, _ in said[:-1])):
        yield from (lines[place] for place, _ in said)


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"”»)' ").endswith(("?", "？"))
