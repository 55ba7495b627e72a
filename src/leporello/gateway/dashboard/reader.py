"""What the pages show, read from the store. Nothing here writes, and nothing reads more than its page shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from leporello.config import Settings
from leporello.conversation.rendering import RenderedView, sent_messages
from leporello.conversation.sizes import METER_KEY
from leporello.errors import LeporelloError, NotFound
from leporello.events import Span
from leporello.gateway.api_errors import refuse
from leporello.gateway.dashboard.auth import User
from leporello.gateway.dashboard.charts import Chart, Point, usage_charts
from leporello.gateway.dashboard.timeline import (
    MOST_REMEMBERED,
    LogSizeCache,
    Scale,
    SegmentKind,
    TimelineSegment,
    log_segments,
    placed,
    shown_numbers,
    sources_of,
    view_segments,
)
from leporello.gateway.dashboard.view_models import (
    Comparison,
    ConversationRow,
    Measure,
    MessageRow,
    MessageSpan,
    OpenedFold,
    Overview,
    PlacedMessage,
    SearchHit,
    digest,
    message_rows,
    summary_sections,
    view_rows,
)
from leporello.gateway.proxy.conversations import PLATFORM as PROXY
from leporello.messages import Message, role_of, text_of
from leporello.models.limits import limits_of
from leporello.present.text import visible_line
from leporello.present.window import WindowContext, WindowPart, WindowUse, divide
from leporello.redact import redact
from leporello.store import Store
from leporello.store.records import (
    ConversationFilter,
    ConversationRecord,
    FoldMark,
    Page,
    SearchQuery,
    StoredFold,
    View,
)
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptMeter

PAGE_ROWS = 50
SEARCH_HITS = 30
MESSAGE_ROWS = 40
SHOWN_ATTEMPTS = 8
SHOWN_PINS = 50
INDEXED_AT_ONCE = 100
"""Messages a search brings into the index before it answers; the rest follows, and the page says so."""
COUNTED_AT_ONCE = 1_000
"""The same for insights, which count messages and tools on their way into the index."""
TITLE = 90


class DashboardReader:
    """Reads for users; each sees only their own conversations."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        served_window: Callable[[str], int | None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`served_window` tells how large a model's window is at the server that requests are sent to."""
        self.store = store
        self.settings = settings
        self.clock = clock
        self._served_window = served_window
        self._sizes = LogSizeCache(store)
        self._uses: dict[tuple[str, str], WindowUse] = {}
        self._indexing = threading.Lock()

    # -- many conversations

    def page(
        self, user: User, where: ConversationFilter, cursor: str | None
    ) -> tuple[list[ConversationRow], str | None]:
        scoped = ConversationFilter(platform=where.platform, model=where.model, owner=user.owner)
        found: Page = self.store.conversations.page(scoped, PAGE_ROWS, cursor)
        return [self.listed(record) for record in found.conversations], found.cursor

    def listed(self, record: ConversationRecord) -> ConversationRow:
        """A conversation with a name: its title, or what the user said first; of both, secrets are masked."""
        title = self.title(record)
        named = bool(record.metadata.title.strip())
        return ConversationRow(
            record, title, named, len(self.store.views.in_force(record.id)) if record.generation else 0
        )

    def title(self, record: ConversationRecord) -> str:
        return visible_line(record.metadata.title, TITLE) or self._opening(record)

    def _opening(self, record: ConversationRecord) -> str:
        first = self.store.log.span(record.id, Span(1, 4)) if record.messages else []
        said = next((item for item in first if role_of(item.message) == "user"), None)
        return visible_line(redact(text_of(said.message)), TITLE) if said else ""

    def search(self, user: User, query: SearchQuery) -> tuple[list[SearchHit], int]:
        """Hits, best first, and how many messages are not searchable yet."""
        pending = self.catch_up(INDEXED_AT_ONCE)
        hits = self.store.index.search(query)
        titles: dict[str, str] = {}
        for hit in hits:
            if hit.conversation not in titles:
                try:
                    titles[hit.conversation] = self.title(self.store.conversations.resolve(hit.conversation))
                except NotFound:
                    titles[hit.conversation] = ""
        return [SearchHit(hit, titles[hit.conversation]) for hit in hits], pending

    def catch_up(self, at_once: int) -> int:
        """Index a little now, and the rest while the reader looks at what is there; how many messages are left."""
        pending = self.store.index.pending()
        if not pending or self.store.read_only:
            return pending
        pending -= self.store.index.catch_up(at_once)
        if pending > 0 and self._indexing.acquire(blocking=False):
            threading.Thread(target=self._index_rest, daemon=True).start()
        return max(0, pending)

    def _index_rest(self) -> None:
        try:
            while self.store.index.catch_up(INDEXED_AT_ONCE):
                pass
        except LeporelloError:
            # The store is closed or away; the next search goes on.
            return
        finally:
            self._indexing.release()

    # -- one conversation

    def record(self, user: User, id: str) -> ConversationRecord:
        """A conversation this user may see; any other is not found."""
        try:
            found = self.store.conversations.resolve(id)
        except NotFound:
            found = None
        if found is None or (user.owner is not None and found.metadata.owner != user.owner):
            raise refuse(404, "no_such_conversation", "There is no conversation with this id.")
        return found

    def measure(self, record: ConversationRecord) -> Measure:
        """Limits and counts as the conversation's own process knew them last, or by the settings."""
        kept = self.store.state.get(record.id, METER_KEY)
        known: dict[str, Any] = kept if isinstance(kept, dict) else {}
        model = record.metadata.model
        counter = TokenCounter.for_model(model or None)
        meter = PromptMeter(counter)
        if known.get("model") == model:
            meter.restore(known.get("meter") or {})
        window = known.get("window") or (self._served_window(model) if record.metadata.platform == PROXY else None)
        limits = limits_of(self.settings, model or None, served_window=window if isinstance(window, int) else None)
        system, tools = known.get("fixed") or (0, 0)
        raw = known.get("fixed_raw")
        if raw is None:
            raw = counter.family.framing.request + (system + tools) / counter.calibration.factor
        waits_for = known.get("waits_for") or limits.hard_tokens
        return Measure(limits, counter, meter, system, tools, raw, known.get("waits_at"), waits_for)

    def stamp(self, id: str) -> str:
        """Changes whenever the page of a conversation would: one look at each thing it is made from."""
        record = self.store.conversations.resolve(id)
        totals = self.store.usage.totals(id)
        newest = self.store.views.attempts(id, 1)
        pins = [pin.number for pin in self.store.pins.all(id)]
        measure = self.store.state.get(id, METER_KEY)
        return digest(record, totals, newest[0].number if newest else 0, pins, measure)

    def list_stamp(self, user: User) -> str:
        """Changes whenever the first page of the list would."""
        return digest(self.store.conversations.page(ConversationFilter(owner=user.owner), PAGE_ROWS).conversations)

    def overview(self, record: ConversationRecord) -> Overview:
        """Everything the first screen of a conversation shows."""
        stamp = self.stamp(record.id)
        pulse = self.store.conversations.pulse(record.id)
        step = self.store.views.generation(record.id, pulse.generation)
        measure = self.measure(record)
        sizes = self._sizes.sizes(record, pulse.messages, measure.counter, shown_numbers(step, pulse.messages))
        scale = Scale(sizes.of, measure.counter.message, sizes.counted)
        marks = {mark.id: mark for mark in self.store.views.fold_marks(record.id)}
        seen = view_segments(step, pulse.messages, marks, scale)
        log = log_segments(seen, pulse.messages, scale)
        use = self.window(record)
        # Framing, and what a provider adds unseen, stand before the messages with the fixed part.
        fixed = max(0, use.used - sum(segment.tokens for segment in seen))
        strip = [*_some(SegmentKind.FIXED, fixed), *seen, *_some(SegmentKind.FREE, use.parts[WindowPart.FREE])]
        return Overview(
            record=record,
            title=self.title(record),
            named=bool(record.metadata.title.strip()),
            last=pulse.messages,
            step=step,
            compactions=frozenset(self.store.views.in_force(record.id)),
            use=use,
            seen=tuple(placed(strip)),
            log=tuple(placed(log)),
            log_tokens=sum(segment.tokens for segment in log),
            log_about=not sizes.counted(1, pulse.messages),
            totals=self.store.usage.totals(record.id),
            attempts=tuple(self.store.views.attempts(record.id, SHOWN_ATTEMPTS)),
            pins=tuple(self.store.pins.all(record.id)[:SHOWN_PINS]),
            stamp=stamp,
        )

    def window(self, record: ConversationRecord) -> WindowUse:
        """Where the window goes: the same sums as `/context` makes, remembered until something changes."""
        measure = self.measure(record)
        pulse = self.store.conversations.pulse(record.id)
        known = measure.meter.export(), measure.system, measure.tools, measure.fixed_raw, measure.waits_for
        key = (record.id, digest(record.created_at, pulse.generation, pulse.messages, measure.limits, known))
        found = self._uses.get(key)
        if found is None:
            found = self._uses[key] = _window_use(measure, self.store.views.view(record.id))
            for old in list(self._uses)[:-MOST_REMEMBERED]:
                self._uses.pop(old, None)
        return found

    def usage(self, record: ConversationRecord) -> list[Chart]:
        """Charts over the sessions of the chain: each fold begins another."""
        points: list[Point] = [(str(used.ordinal), used.totals) for used in self.store.usage.by_session(record.id)]
        return usage_charts(points, "session") if points else []

    def opened(self, record: ConversationRecord, id: str) -> OpenedFold:
        """A fold with what it was made from."""
        try:
            fold = self.store.views.fold(record.id, id)
        except NotFound:
            raise refuse(404, "no_such_fold", "This conversation has no such fold.") from None
        counter = self.measure(record).counter
        sizes = self._sizes.sizes(record, record.messages, counter)
        # What was taken back before this fold was made did not go into it.
        standing = {*self.store.views.in_force(record.id, fold.generation), fold.generation}
        marks = [mark for mark in self.store.views.fold_marks(record.id) if mark.generation in standing]
        mark = FoldMark(fold.id, fold.covered, fold.generation)
        sources = sources_of(mark, marks, fold.children)
        spans = [source.covered if isinstance(source, FoldMark) else source for source in sources]
        return OpenedFold(
            fold,
            counter.message(self._shown_as(record, fold)),
            sizes.of(fold.covered.first, fold.covered.last),
            summary_sections(fold.handoff),
            tuple((source, sizes.of(span.first, span.last)) for source, span in zip(sources, spans, strict=True)),
            about=not sizes.counted(fold.covered.first, fold.covered.last),
        )

    def _shown_as(self, record: ConversationRecord, fold: StoredFold) -> Message:
        """The message that stood for a fold in the view it was made for."""
        entries = self.store.views.generation(record.id, fold.generation).entries
        shown = (entry.inline for entry in entries if entry.fold == fold.id)
        return next(shown, None) or {"role": "assistant", "content": fold.text}

    def stretch(self, record: ConversationRecord, span: Span, start: int) -> MessageSpan:
        """Some rows of a span, from a message on."""
        span = Span(max(1, span.first), min(span.last, record.messages))
        start = min(max(start, span.first), max(span.first, span.last))
        end = min(span.last, start + MESSAGE_ROWS - 1)
        counter = self.measure(record).counter
        rows = message_rows(self.store.log.span(record.id, Span(start, end)), counter, self._pinned(record))
        before = max(span.first, start - MESSAGE_ROWS) if start > span.first else 0
        return MessageSpan(tuple(rows), span, before, end + 1 if end < span.last else 0)

    def _pinned(self, record: ConversationRecord) -> set[int]:
        return {pin.number for pin in self.store.pins.all(record.id)}

    # -- what the model sees

    def sent(self, record: ConversationRecord) -> tuple[View, list[PlacedMessage]]:
        """The messages that a request made now would carry, each with where it comes from."""
        view = self.store.views.view(record.id)
        return view, [PlacedMessage(place, sent) for place, sent in enumerate(sent_messages(view), 1)]

    def shown(self, record: ConversationRecord, span: Span, start: int) -> MessageSpan:
        """What the model sees of a span of messages, from a message on."""
        view, sent = self.sent(record)
        within = [*_within(sent, span)]
        numbers = [item.numbers[0] if item.numbers else 0 for item in within]
        first = next((place for place, number in enumerate(numbers) if number >= start), max(0, len(within) - 1))
        rows = self._view_rows(record, within[first : first + MESSAGE_ROWS])
        before = next((n for n in numbers[max(0, first - MESSAGE_ROWS) :] if n), 0) if first else 0
        after = next((n for n in numbers[first + MESSAGE_ROWS :] if n), 0)
        return MessageSpan(tuple(rows), span, before, after, view.generation)

    def view(self, record: ConversationRecord, start: int) -> MessageSpan:
        """All that the model sees, exactly as it is sent, from a place on."""
        view, sent = self.sent(record)
        start = min(max(1, start), max(1, len(sent)))
        rows = self._view_rows(record, sent[start - 1 : start - 1 + MESSAGE_ROWS], as_written=True)
        before = max(1, start - MESSAGE_ROWS) if start > 1 else 0
        after = start + MESSAGE_ROWS if start + MESSAGE_ROWS <= len(sent) else 0
        return MessageSpan(
            tuple(rows), Span(1, len(sent)), before, after, view.generation, tokens=self.window(record).used
        )

    def _view_rows(
        self, record: ConversationRecord, some: Sequence[PlacedMessage], as_written: bool = False
    ) -> list[MessageRow]:
        numbers = [number for item in some for number in item.numbers]
        times = {stored.number: stored.created_at for stored in self.store.log.pick(record.id, numbers)}
        counter = self.measure(record).counter
        return view_rows(some, counter, times, self._pinned(record), as_written=as_written)

    def sent_message(self, record: ConversationRecord, generation: int, place: int) -> Message:
        """One of these messages; the view must still be the one that was looked at."""
        view, sent = self.sent(record)
        if view.generation != generation:
            raise refuse(409, "view_changed", "What the model sees has changed. Load the page again.")
        if not 1 <= place <= len(sent):
            raise refuse(404, "no_such_message", "The model sees no such message.")
        return sent[place - 1].sent.message

    # -- a compaction

    def comparison(self, record: ConversationRecord, number: int) -> Comparison:
        """An attempt and, if it was committed, the views before and after it."""
        found = self.store.views.attempts(record.id, 1, before=number + 1)
        if not found or found[0].number != number:
            raise refuse(404, "no_such_compaction", "This conversation has no such compaction.")
        attempt = found[0]
        if attempt.generation is None:
            return Comparison(attempt)
        after = self.store.views.generation(record.id, attempt.generation)
        before = self.store.views.generation(record.id, attempt.generation - 1)
        marks = {mark.id: mark for mark in self.store.views.fold_marks(record.id)}
        counter = self.measure(record).counter
        shown = {*shown_numbers(before, after.base_last), *shown_numbers(after, after.base_last)}
        sizes = self._sizes.sizes(record, max(record.messages, after.base_last), counter, shown)
        scale = Scale(sizes.of, counter.message, sizes.counted)
        sides = [view_segments(step, after.base_last, marks, scale) for step in (before, after)]
        told = attempt.report.tokens_before, attempt.report.tokens_after
        fixed = min(whole - sum(segment.tokens for segment in side) for whole, side in zip(told, sides, strict=True))
        old, new = ([*_some(SegmentKind.FIXED, max(0, fixed)), *side] for side in sides)
        totals = [sum(segment.tokens for segment in side) for side in (old, new)]
        return Comparison(
            attempt,
            tuple(placed(old, max(totals))),
            tuple(placed(new, max(totals))),
            totals[0],
            totals[1],
            undone=attempt.generation not in self.store.views.in_force(record.id),
        )


def _some(kind: SegmentKind, tokens: int) -> list[TimelineSegment]:
    return [TimelineSegment(kind, None, tokens)] if tokens else []


def _within(sent: Sequence[PlacedMessage], span: Span) -> Iterator[PlacedMessage]:
    """The messages that show some of a span, with the stubs that stand behind them."""
    inside = False
    for item in sent:
        if item.sent.lines:
            inside = any(number in span for number in item.numbers)
        if inside:
            yield item


def _window_use(measure: Measure, view: View) -> WindowUse:
    reading = measure.meter.read_beside(RenderedView().messages(view), measure.fixed_raw)
    return divide(
        WindowContext(
            view.lines,
            measure.counter,
            measure.limits,
            measure.system,
            measure.tools,
            reading.tokens,
            reading.measured,
            view.compactions,
            waits_for=measure.due(view.generation, view.waits_for_hard_limit),
        )
    )
