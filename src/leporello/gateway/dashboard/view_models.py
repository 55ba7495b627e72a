"""What the pages show, as values: made by the reader, drawn by the templates."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leporello.conversation.rendering import SentMessage
from leporello.conversation.sizes import PromptSizes
from leporello.events import Span
from leporello.gateway.dashboard.timeline import PlacedSegment, SegmentKind, TimelineSegment
from leporello.messages import (
    Message,
    PartKind,
    calls_of,
    encode_json,
    is_result,
    parse_json,
    parts_of,
    result_id,
    role_of,
)
from leporello.policy.decision import CompactionState, due_at
from leporello.policy.state import with_kept
from leporello.present.text import visible, visible_line
from leporello.present.window import WindowUse
from leporello.store.records import (
    Attempt,
    ConversationRecord,
    FoldMark,
    Generation,
    Hit,
    Pin,
    StatedValue,
    StoredFold,
    StoredMessage,
    UsageTotals,
)
from leporello.tokens import TokenCounter

FIRST_CHARACTERS = 1_500  # how much of a text a page shows at first
PIECE_CHARACTERS = 20_000  # how much more is fetched at a time
LEAST_SHOWN = 200
_NAMED = 60


def digest(*values: object) -> str:
    """A short text that stands for values and changes with them."""
    return hashlib.blake2b(repr(values).encode("utf-8", "backslashreplace"), digest_size=9).hexdigest()


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str
    following: int
    """Where the next piece begins; 0 when this is the end."""
    left: int
    """Characters that are not shown yet."""


def piece(text: str, start: int = 0, most: int = PIECE_CHARACTERS) -> TextPiece:
    """A stretch of a text, as it is shown. A little more is not worth another click."""
    end = start + most
    if end + most // 10 >= len(text):
        end = len(text)
    left = len(text) - end
    return TextPiece(visible(text[start:end]), end if left else 0, left)


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """A part of a message: its text, a tool call, thinking, or something that is no text."""

    index: int
    kind: str
    title: str
    shown: TextPiece


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message: of the log, or of what the model sees."""

    role: str
    who: str
    """The tool of a result, else empty."""
    at: float | None
    tokens: int
    blocks: tuple[MessageBlock, ...]
    pinned: bool = False
    place: int = 0
    """Its place in what the model sees; 0 for a message of the log."""
    numbers: tuple[int, ...] = ()
    """All messages it shows; neighbours may be sent as one."""
    fold: str = ""
    shortened: bool = False
    behind: str = ""
    """For a row without a number: the number of the row before it, and a fraction."""

    @property
    def number(self) -> int:
        """Of the first message it shows; 0 where a compaction wrote it."""
        return self.numbers[0] if self.numbers else 0

    @property
    def key(self) -> str:
        """Tells the rows of a list apart, in their order."""
        return self.behind or str(self.number)

    @property
    def version(self) -> str:
        return f"{self.numbers}{self.tokens}{self.pinned}{self.shortened}"


def message_rows(
    stored: Iterable[StoredMessage], counter: TokenCounter, pinned: Collection[int] = ()
) -> list[MessageRow]:
    """Rows of neighbouring messages; results are named after the calls among them."""
    listed = list(stored)
    names = _call_names(item.message for item in listed)
    return [
        replace(
            _row(item.message, names, counter), numbers=(item.number,), at=item.created_at, pinned=item.number in pinned
        )
        for item in listed
    ]


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message of a request and its place in it, counted from 1."""

    place: int
    sent: SentMessage

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(line.number for line in self.sent.lines if line.number is not None)


def view_rows(
    shown: Sequence[PlacedMessage],
    counter: TokenCounter,
    times: Mapping[int, float],
    pinned: Collection[int] = (),
    *,
    as_written: bool = False,
) -> list[MessageRow]:
    """Rows of what the model sees; `as_written` leaves JSON as it is instead of making it readable."""
    names = _call_names(item.sent.message for item in shown)
    rows: list[MessageRow] = []
    before = following = 0
    for item in shown:
        numbers, lines = item.numbers, item.sent.lines
        before, following = (numbers[0], 0) if numbers else (before, following + 1)
        row = replace(
            _row(item.sent.message, names, counter, as_written),
            numbers=numbers,
            at=times.get(numbers[-1]) if numbers else None,
            pinned=any(number in pinned for number in numbers),
            place=item.place,
            fold=next((line.fold for line in lines if line.fold), ""),
            shortened=any(line.shortened for line in lines),
            behind=f"{before}.{following:03}" if following else "",
        )
        rows.append(row)
    return rows


def _call_names(messages: Iterable[Message]) -> dict[str, str]:
    return {call.id: call.name for message in messages for call in calls_of(message) if call.id}


def _row(message: Message, names: Mapping[str, str], counter: TokenCounter, as_written: bool = False) -> MessageRow:
    role = "tool" if is_result(message) else role_of(message)
    who = ""
    if role == "tool":
        who = visible_line(names.get(result_id(message)) or str(message.get("name") or ""), _NAMED)
    left = FIRST_CHARACTERS
    blocks = []
    for index, (kind, title, text) in enumerate(texts_of(message, as_written)):
        shown = piece(text, 0, max(LEAST_SHOWN, left))
        left -= len(shown.text)
        blocks.append(MessageBlock(index, kind, title, shown))
    known = role if role in ("user", "assistant", "tool", "system", "developer") else "other"
    return MessageRow(known, who, None, counter.message(message), tuple(blocks))


def texts_of(message: Message, as_written: bool = False) -> list[tuple[str, str, str]]:
    """Everything a message holds as kind, title and text; no part of it is left out.

    JSON objects are shown field by field, unless they are wanted `as_written`.
    """
    laid_out = str if as_written else _fields
    found: list[tuple[str, str, str]] = []
    thoughts = message.get("reasoning_content")
    if isinstance(thoughts, str) and thoughts:
        found.append(("thinking", "thinking", thoughts))
    for part in parts_of(message):
        if part.kind is PartKind.TEXT:
            # Many tools answer with an object whose texts have escaped line ends: nobody could read that.
            found.append(("text", "", laid_out(part.text) if is_result(message) else part.text))
        elif part.kind is PartKind.THINKING:
            found.append(("thinking", "thinking", part.text or _json(part.raw)))
        else:
            found.append(("data", part.kind.value, _json(part.raw)))
    for call in calls_of(message):
        found.append(("call", visible_line(call.name, _NAMED) or "call", laid_out(call.arguments)))
    return found


def _fields(text: str) -> str:
    """The fields of a JSON object one to a line, texts as they are; anything else stands as it was written."""
    value = parse_json(text) if text.lstrip().startswith("{") else None
    if not isinstance(value, dict) or not value:
        return text
    return "\n".join(f"{name}: {inner if isinstance(inner, str) else _json(inner)}" for name, inner in value.items())


def _json(value: object) -> str:
    return encode_json(value).decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class ConversationRow:
    record: ConversationRecord
    title: str
    named: bool
    """Whether somebody gave it its title; else it is what was said first."""
    compactions: int
    """Without those taken back."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    hit: Hit
    title: str


@dataclass(frozen=True, slots=True)
class Measure:
    """What the last process that talked in a conversation left behind about its window."""

    sizes: PromptSizes
    waits_at: int | None = None
    """The generation whose view is left alone for longer, because folding it again would not help."""
    waits_for: int = 0
    """Until how many tokens it is left alone."""
    policy: Any = None
    """The state that the next decision starts from, as it is stored."""
    depth: int = 0
    """What a compaction would aim to leave."""
    model: str = ""
    """The model used last, whose window it is; the conversation may have begun with another."""

    def due(self, generation: int, undone: bool) -> int:
        """At how many tokens the next folding happens by itself; an undone view is left alone for longer, too."""
        limits = self.sizes.limits
        waits = limits.hard_tokens if undone else self.waits_for if self.waits_at == generation else 0
        state = with_kept(CompactionState(wait_for=waits), self.policy, generation)
        return due_at(limits, state, self.sizes.fixed.tokens, self.depth)


@dataclass(frozen=True, slots=True)
class LogStrip:
    """The whole log, to its own scale."""

    places: tuple[PlacedSegment, ...]
    about: bool
    """Whether its size is an estimate."""

    @property
    def tokens(self) -> int:
        return sum(place.segment.tokens for place in self.places)


@dataclass(frozen=True, slots=True)
class Overview:
    title: str
    named: bool
    last: int
    step: Generation
    compactions: frozenset[int]
    """Generations of the compactions that were not taken back."""
    use: WindowUse
    """Where the window goes: the number of tokens in use, and at which the next folding happens by itself."""
    window_model: str
    """Whose window it is."""
    seen: tuple[PlacedSegment, ...]
    """What the model sees, to the scale of its window."""
    log: LogStrip
    totals: UsageTotals
    attempts: tuple[Attempt, ...]
    pins: tuple[Pin, ...]
    values: tuple[StatedValue, ...]
    """What was said about things up to the last compaction, newest first."""
    stamp: str
    """Changes whenever the page would."""

    @property
    def undone(self) -> int:
        """How many compactions were taken back: each is a step of the view, and so is taking it back."""
        return (self.step.generation - len(self.compactions)) // 2

    @property
    def segments(self) -> list[TimelineSegment]:
        without = (SegmentKind.FREE, SegmentKind.FIXED)
        return [place.segment for place in self.seen if place.segment.kind not in without]

    @property
    def threshold(self) -> float:
        """Where folding begins, in percent of the upper strip."""
        whole = max(sum(place.segment.tokens for place in self.seen), 1)
        return round(100 * self.use.threshold / whole, 2)


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A line of a summary, and the messages it comes from."""

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenedFold:
    """A fold that is opened: what it says and what it was made from."""

    fold: StoredFold
    tokens: int
    covered: int
    sections: Mapping[str, Sequence[SummaryLine]]
    sources: tuple[tuple[FoldMark | Span, int], ...]
    """Each with its tokens in the log."""
    about: bool = False
    """Whether these are estimates."""


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Some rows of a longer span of messages, of the log or of what the model sees."""

    rows: tuple[MessageRow, ...]
    span: Span
    before: int
    """Where the rows before these begin; 0 when there are none."""
    after: int
    """Where the rows after these begin; 0 when there are none."""
    generation: int | None = None
    """Of the view whose rows they are; None for rows of the log."""
    tokens: int = 0
    """Of the whole request, where the rows are all of a view."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A compaction: the view before it and after it, to the same scale."""

    attempt: Attempt
    before: tuple[PlacedSegment, ...] = ()
    after: tuple[PlacedSegment, ...] = ()
    undone: bool = False

    @property
    def sections(self) -> dict[str, int]:
        """Lines of the summary by section, where its engine tells them."""
        told = self.attempt.report.details.get("sections")
        listed = told.items() if isinstance(told, dict) else ()
        return {str(name): lines for name, lines in listed if isinstance(lines, int)}


def summary_sections(handoff: object) -> dict[str, list[SummaryLine]]:
    """The sections of a stored summary. Engines of others may have stored anything; what has no text is left out."""
    found: dict[str, list[SummaryLine]] = {}
    for name, lines in handoff.items() if isinstance(handoff, dict) else ():
        for line in lines if isinstance(lines, list) else ():
            text = line.get("text") if isinstance(line, dict) else None
            if isinstance(text, str):
                sources = line.get("sources")
                numbers = [n for n in sources if isinstance(n, int)] if isinstance(sources, list) else []
                found.setdefault(str(name), []).append(SummaryLine(text, tuple(numbers)))
    return found
