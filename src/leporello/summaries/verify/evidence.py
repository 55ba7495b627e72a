"""The covered turns, cut into segments and indexed once, so that what a claim speaks of is found without reading all.

A segment is a sentence of prose, a line of output, or one argument of a call. Messages that belong together (a call and
its results) form a group; a claim is looked up in the groups of the messages it cites, and their neighbours.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leporello.ledger.calls import describe, exit_code, looks_failed, result_text
from leporello.ledger.user_text import strip_injected
from leporello.messages import Message, ToolCall, calls_of, is_result, parse_json, result_id, role_of, text_of
from leporello.summaries.handoff import Handoff, LineOrigin
from leporello.summaries.verify.lexicon import synonyms_of
from leporello.summaries.verify.reading import TOKEN, Figure, Reading, amounts, keys_of

LONGEST_SEGMENT = 600
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(`*A-Z0-9\u00c0-\u024f])|(?<=[。！？；])\s*|\n")
_SPACE = re.compile(r"\s+")
_LEADING = re.compile(r"^[\s>*#•\-–—|`\d.)]+(?=\S)")
_TRAILING = re.compile(r"(?<![\s.;:,。；，*`|])[\s.;:,。；，*`|]+$")
MOST_POSTINGS = 1_500
"""A word in more segments says nothing about where to look."""
QUOTED_SCORE = 100.0
COMMAND_WORDS = 3
"""`command: git commit`: the name of an argument, a program, and what it is to do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a message. `role` is who said it: user, assistant, tool, call, or program for an earlier handoff."""

    number: int
    role: str
    text: str
    call: str = ""
    """The tool that was called, when it is an argument of a call."""
    verbatim: bool = True
    """Whether these are words of the message, and not what they mean."""


@dataclass(frozen=True, slots=True)
class Deed:
    """A call that was made: what kind of work on which file or with which command, and whether it failed."""

    number: int
    work: str
    path: str
    command: str
    failed: bool
    code: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimScope:
    """Where a claim is looked up: the messages it is about, and those around them."""

    core: tuple[int, ...]
    region: tuple[int, ...]
    cited: bool = True
    """Whether the line itself says so; otherwise it is only where most of it was found."""


class Evidence:
    """All segments of the turns with an index over their keys."""

    def __init__(self, turns: Sequence[tuple[int, Message]], previous: Handoff | None = None) -> None:
        self.segments: list[Segment] = []
        self.postings: dict[str, array[int]] = {}
        self.roles: dict[int, str] = {}
        self._ranges: dict[int, tuple[int, int]] = {}
        self._groups: dict[int, tuple[int, ...]] = {}
        self._figures: dict[int, list[Figure]] = {}
        self._folded: dict[int, str] = {}
        self._called: dict[int, frozenset[str]] = {}
        self._changing: frozenset[int] | None = None
        self._whole: str | None = None
        self._amounts: dict[str, list[tuple[float, int]]] | None = None
        self.deeds: list[Deed] = []
        self._take_previous(previous)
        self._take_turns(turns)
        self.numbers = sorted(self._ranges)

    # --- building ----------------------------------------------------------------------------------------------------

    def _take_previous(self, previous: Handoff | None) -> None:
        """Lines of an earlier handoff stand for the messages they cite, which are not here any more."""
        if previous is None:
            return
        by_number: dict[int, list[Segment]] = {}
        for _, line in previous.lines():
            number = line.sources[0] if line.sources else 0
            role = {LineOrigin.USER: "user", LineOrigin.TOOL: "tool"}.get(line.origin, "assistant")
            by_number.setdefault(number, []).extend(Segment(number, role, text) for text in split(line.text))
        for number in sorted(by_number):
            self._add(number, "program", by_number[number])

    def _take_turns(self, turns: Sequence[tuple[int, Message]]) -> None:
        group: list[int] = []
        waiting: list[ToolCall] = []
        for number, message in turns:
            role = "tool" if is_result(message) else role_of(message)
            self._add(number, role, list(_segments(number, role, message)))
            if role == "tool":
                self._note_deed(number, message, waiting)
            else:
                group, waiting = [], list(calls_of(message))
            group.append(number)
            for member in group:
                self._groups[member] = tuple(group)

    def _note_deed(self, number: int, message: Message, waiting: list[ToolCall]) -> None:
        wanted = result_id(message)
        call = next((call for call in waiting if wanted in (call.id, call.name)), None)
        if call is not None:
            waiting.remove(call)
            facts = describe(call)
            text = result_text(message)
            command, path = fold(facts.command), facts.path.casefold()
            self.deeds.append(Deed(number, facts.work, path, command, looks_failed(text), exit_code(text)))

    def _add(self, number: int, role: str, segments: list[Segment]) -> None:
        start = len(self.segments)
        for position, segment in enumerate(segments, start):
            for key in {key for raw in TOKEN.findall(segment.text) for key in keys_of(raw)}:
                posting = self.postings.get(key)
                if posting is None:
                    posting = self.postings[key] = array("I")
                posting.append(position)
        self.segments.extend(segments)
        self.roles[number] = role
        self._ranges[number] = (start, len(self.segments))

    # --- looking up --------------------------------------------------------------------------------------------------

    def knows(self, key: str) -> bool:
        return key in self.postings

    def repeated(self, text: str) -> list[Segment]:
        """The segments that say exactly this, bullets and emphasis aside."""
        wanted = plain(text)
        return [self.segments[place] for place in self._rarest(text) if plain(self.segments[place].text) == wanted]

    def _rarest(self, text: str) -> Sequence[int]:
        """The segments that hold the rarest word of a text; none when a word is unknown."""
        keys = {key for raw in TOKEN.findall(text) for key in keys_of(raw)[:1]}
        known = [self.postings.get(key, ()) for key in keys]
        return min(known, key=len, default=())[:MOST_POSTINGS]

    def weight(self, key: str) -> float:
        """How much a key says: the rarer the more."""
        posting = self.postings.get(key)
        return math.log(1 + (len(self.segments) + 1) / (1 + (len(posting) if posting else 0)))

    def region(self, sources: Iterable[int]) -> tuple[int, ...]:
        """The messages around the cited ones: their groups, and one neighbour on either side."""
        found: set[int] = set()
        for number in sources:
            if number not in self._ranges:
                continue
            group = self._groups.get(number, (number,))
            found.update(group)
            for edge, step in ((group[0], -1), (group[-1], 1)):
                place = bisect_left(self.numbers, edge) + step
                if 0 <= place < len(self.numbers):
                    found.add(self.numbers[place])
        return tuple(sorted(found))

    def groups(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The messages with the calls and results that belong to them."""
        return tuple(dict.fromkeys(member for number in numbers for member in self._groups.get(number, (number,))))

    def segments_with(self, key: str, scope: Collection[int]) -> Iterator[int]:
        """Positions of the segments in a scope that have a key."""
        posting = self.postings.get(key)
        if posting is None:
            return
        for number in scope:
            start, stop = self._ranges[number]
            place = bisect_left(posting, start)
            while place < len(posting) and posting[place] < stop:
                yield posting[place]
                place += 1

    def has(self, key: str, scope: Collection[int]) -> bool:
        return next(self.segments_with(key, scope), None) is not None

    def has_any(self, key: str, scope: Collection[int]) -> bool:
        """Whether a key or a synonym of it occurs in a scope."""
        return self.has(key, scope) or any(self.has(other, scope) for other in synonyms_of(key))

    def said(self, key: str, role: str) -> Iterator[Segment]:
        """The segments of one role that have a key or a synonym of it; a call is the assistant's."""
        roles = ("assistant", "call") if role == "assistant" else (role,)
        for word in (key, *synonyms_of(key)):
            for place in self.postings.get(word, ()):
                if self.segments[place].role in roles:
                    yield self.segments[place]

    def candidates(self, claim: Reading, weights: dict[str, float], most: int = 10) -> list[tuple[int, ...]]:
        """The regions of the segments that share most with a claim, best first; quotations come before everything."""
        scores: dict[int, float] = {}
        for place, score in self._shares(weights).items():
            number = self.segments[place].number
            scores[number] = max(scores.get(number, 0.0), score)
        for figure in claim.figures:
            numbers = set(self._with_amount(figure))
            weight = math.log(1 + len(self.numbers) / (1 + len(numbers)))
            for number in numbers:
                scores[number] = scores.get(number, 0.0) + weight
        for quote in claim.quotes:
            for number in self._holding(fold(quote)):
                scores[number] = scores.get(number, 0.0) + QUOTED_SCORE
        best = sorted(scores, key=lambda number: (-scores[number], number))[: 2 * most]
        return list(dict.fromkeys(self.region((number,)) for number in best))[:most]

    def _shares(self, weights: dict[str, float]) -> dict[int, float]:
        """For each segment that shares a telling word with the claim: how much it shares."""
        scores: dict[int, float] = {}
        for key, weight in weights.items():
            for word, factor in ((key, 1.0), *((other, 0.7) for other in synonyms_of(key))):
                posting = self.postings.get(word)
                if posting is None or len(posting) > MOST_POSTINGS:
                    continue
                for place in posting:
                    scores[place] = scores.get(place, 0.0) + factor * weight
        return scores

    def _with_amount(self, figure: Figure) -> Iterator[int]:
        """The messages that hold a number which supports the given one."""
        if self._amounts is None:
            self._amounts = {}
            for number in self.numbers:
                for known in self.figures((number,)):
                    self._amounts.setdefault(known.kind, []).append((known.amount, number))
            for entries in self._amounts.values():
                entries.sort()
        entries = self._amounts.get(figure.kind, [])
        low, high = figure.span
        for place in range(bisect_left(entries, (low, 0)), len(entries)):
            if entries[place][0] > high:
                break
            yield entries[place][1]

    def _holding(self, piece: str) -> list[int]:
        """The messages that hold a piece of folded text verbatim."""
        numbers = dict.fromkeys(self.segments[place].number for place in self._rarest(piece))
        return [number for number in numbers if piece in self.text(number)]

    def aligned(self, weights: dict[str, float], scope: Collection[int], most: int = 8) -> list[tuple[float, Segment]]:
        """The segments in a scope that share most with weighted keys, best first, with the share they cover."""
        scores: Counter[int] = Counter()
        for key, weight in weights.items():
            hits = set(self.segments_with(key, scope))
            near = {place for other in synonyms_of(key) for place in self.segments_with(other, scope)} - hits
            for place in hits:
                scores[place] += weight  # type: ignore[assignment]
            for place in near:
                scores[place] += 0.7 * weight  # type: ignore[assignment]
        total = sum(weights.values()) or 1.0
        return [(score / total, self.segments[place]) for place, score in scores.most_common(most)]

    def figures(self, scope: Collection[int]) -> Iterator[Figure]:
        for number in scope:
            known = self._figures.get(number)
            if known is None:
                start, stop = self._ranges[number]
                known = self._figures[number] = amounts("\n".join(s.text for s in self.segments[start:stop]))
            yield from known

    def of(self, number: int) -> list[Segment]:
        start, stop = self._ranges[number]
        return self.segments[start:stop]

    def text(self, number: int) -> str:
        """The text of a message, case and white space folded."""
        known = self._folded.get(number)
        if known is None:
            start, stop = self._ranges[number]
            known = self._folded[number] = fold(" ".join(segment.text for segment in self.segments[start:stop]))
        return known

    def called(self, number: int) -> frozenset[str]:
        """The words for what was called: the names of the tools, and how their first arguments begin."""
        known = self._called.get(number)
        if known is None:
            calls = [s for member in self.groups((number,)) for s in self.of(member) if s.role == "call"]
            begins = [call.text for call in calls if not call.verbatim]
            firsts = [after for before, after in pairwise(calls) if not before.verbatim and after.verbatim]
            begins.extend(" ".join(first.text.split()[:COMMAND_WORDS]) for first in firsts)
            keys = (key for text in begins for raw in TOKEN.findall(text) for key in keys_of(raw))
            known = self._called[number] = frozenset(keys)
        return known

    def changes(self, number: int) -> bool:
        """Whether a message makes a call that edits something, or answers one."""
        if self._changing is None:
            edits = (deed.number for deed in self.deeds if deed.work == "edit" and not deed.failed)
            self._changing = frozenset(self.groups(edits))
        return number in self._changing

    def deeds_in(self, scope: Collection[int]) -> list[Deed]:
        """The calls whose results stand in a scope; all of them when there is none."""
        return [deed for deed in self.deeds if deed.number in scope] or self.deeds

    def says(self, piece: str, scope: Collection[int], role: str = "") -> bool:
        """Whether a piece of text occurs verbatim in a scope, said by `role` when given."""
        wanted = fold(piece)
        return any(wanted in self.text(number) for number in scope if not role or self.roles.get(number) == role)

    def says_whole(self, piece: str, scope: Collection[int]) -> bool:
        """Whether a piece of text occurs verbatim in a scope and ends where a word ends."""
        wanted = fold(piece)
        for number in scope:
            text = self.text(number)
            place = text.find(wanted)
            while place >= 0:
                end = place + len(wanted)
                if not (wanted[-1:].isalnum() and text[end : end + 1].isalnum() and wanted.isascii()):
                    return True
                place = text.find(wanted, place + 1)
        return False


def _segments(number: int, role: str, message: Message) -> Iterator[Segment]:
    text = result_text(message) if role == "tool" else text_of(message)
    if role == "user":
        said = strip_injected(text)
        for piece in split(said):
            yield Segment(number, "user", piece)
        if len(said) < len(text):
            # What a program put into the message is there, but the user didn't say it.
            for piece in split(text):
                if piece not in said:
                    yield Segment(number, "tool", piece)
    else:
        for piece in split(text, lines=role == "tool"):
            yield Segment(number, role, piece)
    code = exit_code(text) if role == "tool" else None
    if code is not None:
        # What the number means, for claims that say so in words.
        yield Segment(number, "tool", f"exit code {code}: {'failure' if code else 'success'}", verbatim=False)
    for call in calls_of(message):
        value = parse_json(call.arguments)
        yield Segment(number, "call", call.name, verbatim=False)
        for piece in _strings(value) if isinstance(value, dict | list) else [call.arguments]:
            for line in split(piece, lines=True):
                yield Segment(number, "call", line, call.name)


def _strings(value: object) -> Iterator[str]:
    """Everything a JSON value says: `key: value` for plain ones."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield str(key)
                yield from _strings(item)
            else:
                yield f"{key}: {item}"
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    else:
        yield str(value)


def split(text: str, *, lines: bool = False) -> Iterator[str]:
    """The segments of a text: lines of output, sentences of prose; what is very long is cut at blanks."""
    for piece in text.split("\n") if lines else _SENTENCE.split(text):
        bare = piece.strip()
        while len(bare) > LONGEST_SEGMENT:
            cut = bare.rfind(" ", LONGEST_SEGMENT // 2, LONGEST_SEGMENT)
            cut = cut if cut > 0 else LONGEST_SEGMENT
            yield bare[:cut]
            bare = bare[cut:].strip()
        if bare:
            yield bare


def fold(text: str) -> str:
    """Case and white space folded; typographic apostrophes made plain, emphasis left out."""
    return _SPACE.sub(" ", text.replace("’", "'").replace("‘", "'").replace("**", "")).strip().casefold()


def plain(text: str) -> str:
    """A sentence without bullets, emphasis and its full stop, for comparing whole sentences."""
    return _TRAILING.sub("", _LEADING.sub("", fold(text).replace("`", "")))
