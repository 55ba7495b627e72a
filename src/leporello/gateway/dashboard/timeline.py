"""A conversation as a timeline: what stands open, what is folded, each as wide as its tokens."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate

from leporello.events import Span
from leporello.messages import Message
from leporello.store import Store
from leporello.store.records import ConversationRecord, FoldMark, Generation
from leporello.tokens import TokenCounter

MOST_REMEMBERED = 200
MOST_READ = 2_000_000  # bytes of messages that are read only to be counted
SAMPLES = 24
USUAL_RATIO = 0.27  # tokens for each byte of JSON where nothing could be counted
UNKNOWN = -1.0


@dataclass(slots=True)
class _Known:
    bytes: array[int] = field(default_factory=lambda: array("Q"))
    """Of each message."""
    raw: array[float] = field(default_factory=lambda: array("d"))
    """Tokens of each message before calibration; `UNKNOWN` where it was not counted."""

    def uncounted(self, numbers: Iterable[int]) -> list[int]:
        return [number for number in numbers if number <= len(self.raw) and self.raw[number - 1] == UNKNOWN]


@dataclass(frozen=True, slots=True)
class LogSizes:
    """Sizes in tokens: of stretches of the log, and of messages that a compaction wrote."""

    sums: tuple[float, ...]
    """Of the first N messages."""
    estimates: tuple[int, ...]
    """How many of the first N messages are estimated."""
    count: Callable[[Message], int]

    def of(self, first: int, last: int) -> int:
        """Tokens of a stretch, both ends included."""
        first, last = self._within(first, last)
        return round(self.sums[last] - self.sums[first - 1]) if last >= first else 0

    def counted(self, first: int, last: int) -> bool:
        """Whether every message of a stretch was counted; else its size is an estimate."""
        first, last = self._within(first, last)
        return last < first or self.estimates[last] == self.estimates[first - 1]

    def _within(self, first: int, last: int) -> tuple[int, int]:
        return max(1, first), min(last, len(self.sums) - 1)


class LogSizeCache:
    """Remembers sizes; safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, float, str], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def sizes(
        self, record: ConversationRecord, last: int, counter: TokenCounter, shown: Iterable[int] = ()
    ) -> LogSizes:
        """Sizes of the first `last` messages; those that are `shown` are counted, however many they are."""
        # A conversation that was deleted and begun again under its id is another one; so is one with another model.
        key = (record.id, record.created_at, counter.model)
        with self._lock:
            known = self._known.setdefault(key, _Known())
            self._known.move_to_end(key)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            if len(known.bytes) < last:
                known.bytes.extend(self._store.log.sizes(record.id, Span(len(known.bytes) + 1, last)))
                known.raw.extend([UNKNOWN] * (len(known.bytes) - len(known.raw)))
            self._count(known, record.id, counter, known.uncounted(shown))
            unread = known.uncounted(range(1, last + 1))
            if sum(known.bytes[number - 1] for number in unread) > MOST_READ:
                unread = known.uncounted({1 + (last - 1) * n // (SAMPLES - 1) for n in range(SAMPLES)})
            self._count(known, record.id, counter, unread)
            return _sizes(known, last, counter)

    def _count(self, known: _Known, id: str, counter: TokenCounter, numbers: list[int]) -> None:
        for item in self._store.log.pick(id, numbers) if numbers else ():
            known.raw[item.number - 1] = counter.raw_message(item.message)


def _sizes(known: _Known, last: int, counter: TokenCounter) -> LogSizes:
    pairs = list(zip(known.raw[:last], known.bytes[:last], strict=True))
    counted = [(raw, size) for raw, size in pairs if raw != UNKNOWN]
    read = sum(size for _, size in counted)
    ratio = (sum(raw for raw, _ in counted) / read if read else USUAL_RATIO) * counter.calibration.factor
    tokens = (counter.scale(raw) if raw != UNKNOWN else size * ratio for raw, size in pairs)
    return LogSizes(
        tuple(accumulate(tokens, initial=0.0)),
        tuple(accumulate((raw == UNKNOWN for raw, _ in pairs), initial=0)),
        counter.message,
    )


NARROWEST = 0.35  # percent of the strip below which nothing could be seen or clicked


class SegmentKind(StrEnum):
    HEAD = "head"
    FOLD = "fold"
    KEPT = "kept"
    TAIL = "tail"
    NOTE = "note"
    FIXED = "fixed"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class TimelineSegment:
    """One stretch: of the log, or of what the model sees."""

    kind: SegmentKind
    span: Span | None
    tokens: int
    fold: str = ""
    covered: int = 0
    """Tokens of the messages a fold stands for."""
    shortened: int = 0
    """How many of the messages are shown shortened."""
    about: bool = False
    """Whether the size of what it stands for is an estimate."""

    @property
    def messages(self) -> int:
        return self.span.last - self.span.first + 1 if self.span else 0


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A segment and where it stands, in percent of the strip."""

    segment: TimelineSegment
    x: float
    width: float


def shown_numbers(step: Generation, last: int) -> list[int]:
    """The stored messages that a view shows as they are."""
    numbers = [entry.ref for entry in step.entries if entry.ref is not None and entry.inline is None]
    return [*numbers, *range(step.base_last + 1, last + 1)]


def view_segments(step: Generation, last: int, marks: Mapping[str, FoldMark], sizes: LogSizes) -> list[TimelineSegment]:
    """What the model sees: the entries of a generation, then what the log has beyond them."""
    segments: list[TimelineSegment] = []
    for entry in step.entries:
        if entry.fold is not None and entry.inline is not None:
            mark = marks.get(entry.fold)
            span = mark.covered if mark else None
            covered = sizes.of(span.first, span.last) if span else 0
            about = span is not None and not sizes.counted(span.first, span.last)
            segments.append(
                TimelineSegment(SegmentKind.FOLD, span, sizes.count(entry.inline), entry.fold, covered, about=about)
            )
        elif entry.ref is not None:
            here = Span(entry.ref, entry.ref)
            if entry.inline is not None:
                _add_run(segments, here, sizes.count(entry.inline), shortened=1)
            else:
                _add_run(segments, here, sizes.of(entry.ref, entry.ref))
        elif entry.inline is not None:
            segments.append(TimelineSegment(SegmentKind.NOTE, None, sizes.count(entry.inline)))
    if step.base_last < last:
        beyond = Span(step.base_last + 1, last)
        _add_run(segments, beyond, sizes.of(beyond.first, beyond.last))
    return _named(segments)


def _add_run(segments: list[TimelineSegment], span: Span, tokens: int, shortened: int = 0) -> None:
    before = segments[-1] if segments else None
    if before and before.kind is SegmentKind.KEPT and before.span and before.span.last + 1 == span.first:
        segments.pop()
        span = Span(before.span.first, span.last)
        tokens, shortened = before.tokens + tokens, before.shortened + shortened
    segments.append(TimelineSegment(SegmentKind.KEPT, span, tokens, shortened=shortened))


def _named(segments: Sequence[TimelineSegment]) -> list[TimelineSegment]:
    """Messages before the first fold are the head, the newest behind the last one the tail."""
    folds = [place for place, segment in enumerate(segments) if segment.kind is SegmentKind.FOLD]
    named = []
    for place, segment in enumerate(segments):
        kind = segment.kind
        if kind is SegmentKind.KEPT and folds:
            newest = place > folds[-1] and place == len(segments) - 1
            kind = SegmentKind.HEAD if place < folds[0] else SegmentKind.TAIL if newest else kind
        named.append(replace(segment, kind=kind))
    return named


def log_segments(shown: Iterable[TimelineSegment], last: int, sizes: LogSizes) -> list[TimelineSegment]:
    """The whole log, divided by what the model sees of it: open messages, and stretches behind a fold."""
    spans = [(segment.span, segment) for segment in shown if segment.span]
    opened = [(span, segment.kind) for span, segment in spans if segment.kind is not SegmentKind.FOLD]
    folds = [(span, segment.fold) for span, segment in spans if segment.kind is SegmentKind.FOLD]
    segments: list[TimelineSegment] = []
    place = 1
    for span, kind in sorted(opened, key=lambda item: item[0].first):
        segments += _hidden(Span(place, span.first - 1), folds, sizes)
        segments.append(_stretch(kind, span, sizes))
        place = span.last + 1
    return segments + _hidden(Span(place, last), folds, sizes)


def _stretch(kind: SegmentKind, span: Span, sizes: LogSizes, fold: str = "") -> TimelineSegment:
    about = not sizes.counted(span.first, span.last)
    return TimelineSegment(kind, span, sizes.of(span.first, span.last), fold, about=about)


def _hidden(gap: Span, folds: Sequence[tuple[Span, str]], sizes: LogSizes) -> list[TimelineSegment]:
    """A stretch that is not shown, cut where one fold ends and another begins."""
    found: list[TimelineSegment] = []
    place = gap.first
    while place <= gap.last:
        before_next = min((span.first - 1 for span, _ in folds if span.first > place), default=gap.last)
        end, id = next(((span.last, id) for span, id in folds if place in span), (before_next, ""))
        found.append(_stretch(SegmentKind.FOLD, Span(place, min(end, gap.last)), sizes, id))
        place = end + 1
    return found


def placed(segments: Sequence[TimelineSegment], whole: int = 0) -> list[PlacedSegment]:
    """Segments side by side; the strip stands for `whole` tokens, or for all of them."""
    total = max(whole, sum(segment.tokens for segment in segments), 1)
    widths = [max(NARROWEST, segment.tokens * 100 / total) for segment in segments]
    # What the narrowest were given is taken from all, so that the strip ends where it should.
    end = min(100.0, sum(segment.tokens for segment in segments) * 100 / total)
    scale = end / sum(widths) if widths and sum(widths) > end else 1.0
    scaled = [width * scale for width in widths]
    places = zip(segments, accumulate(scaled, initial=0.0), scaled, strict=False)
    return [PlacedSegment(segment, round(x, 3), round(width, 3)) for segment, x, width in places]


def sources_of(mark: FoldMark, marks: Sequence[FoldMark], children: Sequence[str]) -> list[FoldMark | Span]:
    """What a fold was made from: earlier folds, and the messages between them."""
    if children:
        within = [other for other in marks if other.id in children]
    else:
        earlier = [
            other
            for other in marks
            if other.generation < mark.generation
            and other.covered.first >= mark.covered.first
            and other.covered.last <= mark.covered.last
        ]
        within = [other for other in earlier if not any(_inside(other, wider) for wider in earlier)]
    found: list[FoldMark | Span] = []
    place = mark.covered.first
    for other in sorted(within, key=lambda item: (item.covered.first, item.covered.last)):
        if other.covered.first > place:
            found.append(Span(place, other.covered.first - 1))
        found.append(other)
        place = max(place, other.covered.last + 1)
    if place <= mark.covered.last:
        found.append(Span(place, mark.covered.last))
    return found


def _inside(small: FoldMark, wide: FoldMark) -> bool:
    """Whether a fold went into another: it covers less, or the same and is older."""
    if wide is small or small.covered.first < wide.covered.first or small.covered.last > wide.covered.last:
        return False
    return small.covered != wide.covered or small.generation < wide.generation
