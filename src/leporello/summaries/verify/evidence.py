"""The covered turns, cut into segments and indexed once, so that what a claim speaks of is found without reading all.

A segment is a sentence of prose, a line of output, or one argument of a call. Messages that belong together (a call and
its results) form a group; a claim is looked up in the groups of the messages it cites, and their neighbours.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import CallFacts, describe, exit_code, looks_failed, result_text
from leporello.ledger.user_text import strip_injected
from leporello.messages import Message, ToolCall, calls_of, is_result, parse_json, result_id, role_of, text_of
from leporello.summaries.handoff import Handoff, LineOrigin
from leporello.text_features.sentences import TOKEN, Figure, amounts, any_same, keys_of

LONGEST_SEGMENT = 600
_SENTENCE = lazy_regex(r"(?<=[.!?])\s+(?=[\"'(`*A-Z0-9\u00c0-\u024f])|(?<=[。！？；])\s*|\n")
_SPACE = lazy_regex(r"\s+")
_LEADING = lazy_regex(r"^[\s>*#•\-–—|`\d.)]+(?=\S)")
_TRAILING = lazy_regex(r"(?<![\s.;:,。；，*`|])[\s.;:,。；，*`|]+$")
MOST_POSTINGS = 1_500
"""A word in more segments says nothing about where to look."""
_DEEDS = {
    "edit": "edited, changed, updated, modified, made changes to",
    "read": "read, looked at, viewed, opened",
    "delete": "deleted, removed",
}
_COMMANDS = {"git commit": "committed", "git push": "pushed"}


class Segment(Struct, frozen=True):
    """A piece of a message. `role` is who said it: user, assistant, tool, or call."""

    number: int
    role: str
    text: str
    call: str = ""
    """The tool that was called, when it is an argument of a call."""
    edits: bool = False
    """Whether that call changes a file."""
    verbatim: bool = True
    """Whether these are words of the message, and not what they mean."""


class Evidence:
    """All segments of the turns with an index over their keys."""

    def __init__(self, turns: Sequence[tuple[int, Message]], previous: Handoff | None = None) -> None:
        self.segments: list[Segment] = []
        self.postings: dict[str, array[int]] = {}
        self.roles: dict[int, str] = {}
        self._ranges: dict[int, tuple[int, int]] = {}
        self._groups: dict[int, tuple[int, ...]] = {}
        self._folded: dict[int, str] = {}
        self._take_previous(previous)
        self._take_turns(turns)
        self.numbers = sorted(self._ranges)

    # --- building ----------------------------------------------------------------------------------------------------

    def _take_previous(self, previous: Handoff | None) -> None:
        """Lines of an earlier handoff stand for the messages they cite, which are not here any more."""
        by_number: dict[int, list[Segment]] = {}
        for _, line in previous.lines() if previous is not None else ():
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
            segments = list(_segments(number, role, message))
            if role == "tool":
                wanted = result_id(message)
                call = next((call for call in waiting if wanted in (call.id, call.name)), None)
                if call is not None:
                    waiting.remove(call)
                    segments.append(Segment(number, "call", deed(describe(call), result_text(message)), verbatim=False))
            else:
                group, waiting = [], list(calls_of(message))
            self._add(number, role, segments)
            group.append(number)
            for member in group:
                self._groups[member] = tuple(group)

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

    def repeated(self, text: str) -> list[Segment]:
        """The segments that say exactly this, bullets and emphasis aside."""
        wanted = plain(text)
        keys = {key for raw in TOKEN.findall(text) for key in keys_of(raw)[:1]}
        rarest = min((self.postings.get(key, ()) for key in keys), key=len, default=())
        found = (self.segments[place] for place in rarest[:MOST_POSTINGS])
        return [segment for segment in found if plain(segment.text) == wanted]

    def weight(self, key: str) -> float:
        """How much a key says: the rarer the more."""
        return math.log(1 + (len(self.segments) + 1) / (1 + len(self.postings.get(key, ()))))

    def groups(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The messages with the calls and results that belong to them."""
        return tuple(dict.fromkeys(member for number in numbers for member in self._groups.get(number, (number,))))

    def region(self, sources: Iterable[int]) -> tuple[int, ...]:
        """The messages around the cited ones: their groups, and one neighbour on either side."""
        found: set[int] = set()
        for number in sources:
            if number in self._ranges:
                group = self._groups.get(number, (number,))
                first, last = bisect_left(self.numbers, group[0]), bisect_left(self.numbers, group[-1])
                found.update(group, self.numbers[max(0, first - 1) : last + 2])
        return tuple(sorted(found))

    def alike(self, weights: dict[str, float], scope: Collection[int] | None, most: int) -> list[tuple[float, Segment]]:
        """The segments that share most with weighted keys, best first, with the share they cover; None: everywhere."""
        scores: dict[int, float] = {}
        for key, weight in weights.items():
            for place in self._places(key, scope):
                scores[place] = scores.get(place, 0.0) + weight
        total = sum(weights.values()) or 1.0
        best = sorted(scores, key=lambda place: (-scores[place], place))[:most]
        return [(scores[place] / total, self.segments[place]) for place in best]

    def _places(self, key: str, scope: Collection[int] | None) -> Iterable[int]:
        posting = self.postings.get(key)
        if posting is None or (scope is None and len(posting) > MOST_POSTINGS):
            return ()
        return posting if scope is None else self._within(posting, scope)

    def _within(self, posting: Sequence[int], scope: Collection[int]) -> Iterator[int]:
        for number in scope:
            start, stop = self._ranges[number]
            place = bisect_left(posting, start)
            while place < len(posting) and posting[place] < stop:
                yield posting[place]
                place += 1

    def said(self, key: str, role: str) -> set[int]:
        """The messages in which one role says a key; a call is the assistant's."""
        roles = ("assistant", "call") if role == "assistant" else (role,)
        found = (self.segments[place] for place in self.postings.get(key, ()))
        return {segment.number for segment in found if segment.role in roles}

    def with_figures(self, figures: Collection[Figure], scope: Collection[int]) -> Iterator[Segment]:
        """The segments in a scope that hold one of some numbers, however it is written."""
        for number in scope if figures else ():
            for segment in self.of(number):
                known = amounts(segment.text)
                if any(any_same(figure, known) for figure in figures):
                    yield segment

    def of(self, number: int) -> list[Segment]:
        start, stop = self._ranges[number]
        return self.segments[start:stop]

    def text(self, number: int) -> str:
        """The text of a message, case and white space folded."""
        known = self._folded.get(number)
        if known is None:
            known = self._folded[number] = fold(" ".join(segment.text for segment in self.of(number)))
        return known

    def saying(self, piece: str, scope: Collection[int] | None = None, role: str = "") -> list[int]:
        """The messages that say a piece of text verbatim, up to the end of a word."""
        wanted = fold(piece).rstrip(".,;:!?")
        numbers = self.numbers if scope is None else scope
        return [
            number
            for number in numbers
            if (not role or self.roles.get(number) == role) and _holds(wanted, self.text(number))
        ]


def _holds(wanted: str, text: str) -> bool:
    place = text.find(wanted)
    while place >= 0:
        following = text[place + len(wanted) : place + len(wanted) + 1]
        if not (wanted[-1:].isalnum() and following.isalnum() and wanted.isascii()):
            return True
        place = text.find(wanted, place + 1)
    return False


def deed(facts: CallFacts, result: str) -> str:
    """What a call and its result show, in the words a claim may use for it."""
    code = exit_code(result)
    failed = looks_failed(result)
    ended = "failed, failure" if failed else "succeeded, success, passed" if code == 0 else ""
    shown = f"ran, run, executed `{facts.command}`" if facts.command else ""
    if facts.path and not failed and facts.work in _DEEDS:
        shown += f" {_DEEDS[facts.work]} {facts.path}"
    shown += "".join(f", {word}" for start, word in _COMMANDS.items() if start in facts.command and not failed)
    return f"{shown} {ended}" + (f", exit code {code}, exited with {code}" if code is not None else "")


def _segments(number: int, role: str, message: Message) -> Iterator[Segment]:
    text = result_text(message) if role == "tool" else text_of(message)
    said = strip_injected(text) if role == "user" else text
    for piece in split(said, lines=role == "tool"):
        yield Segment(number, role, piece)
    if len(said) < len(text):
        # What a program put into the message is there, but the user didn't say it.
        for piece in split(text):
            if piece not in said:
                yield Segment(number, "tool", piece)
    for call in calls_of(message):
        value = parse_json(call.arguments)
        edits = describe(call).work == "edit"
        yield Segment(number, "call", call.name, verbatim=False)
        for piece in _strings(value) if isinstance(value, dict | list) else [call.arguments]:
            for line in split(piece, lines=True):
                yield Segment(number, "call", line, call.name, edits)


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
