"""What the pages show, read from the store. Nothing here writes, and nothing reads more than its page shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from leporello.config import Settings
from leporello.conversation.rendering import RenderedView, sent_messages
from leporello.conversation.sizes import METER_KEY, PromptSizes
from leporello.errors import LeporelloError, NotFound, StoreUnavailable
from leporello.events import Span
from leporello.gateway.api_errors import refuse
from leporello.gateway.auth import User
from leporello.gateway.dashboard.charts import Chart, usage_charts
from leporello.gateway.dashboard.timeline import (
    MOST_REMEMBERED,
    LogSizeCache,
    LogSizes,
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
    LogStrip,
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
from leporello.policy.decision import depth_of
from leporello.present.text import visible_line
from leporello.present.window import WindowPart, WindowUse, divide
from leporello.redact import redact
from leporello.store import Store
from leporello.store.records import ConversationFilter, ConversationRecord, FoldMark, Page, SearchQuery, View

PAGE_ROWS = 50
SEARCH_HITS = 30
MESSAGE_ROWS = 40
SHOWN_ATTEMPTS = 8
SHOWN_PINS = 50
SHOWN_VALUES = 50
INDEXED_AT_ONCE = 100
"""Messages a search brings into the index before it answers; the rest follows, and the page says so."""
COUNTED_AT_ONCE = 1_000  # the same for insights, which count messages and tools on their way into the index
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
        self.served_window = served_window
        self.log_sizes = LogSizeCache(store)
        self.window_uses: dict[tuple[str, str], WindowUse] = {}
        """The newest ones that were computed, by conversation and by what they depend on."""
        self._indexing = threading.Lock()

    def page(
        self, user: User, where: ConversationFilter, cursor: str | None
    ) -> tuple[list[ConversationRow], str | None]:
        scoped = ConversationFilter(platform=where.platform, model=where.model, owner=user.owner)
        found: Page = self.store.conversations.page(scoped, PAGE_ROWS, cursor)
        return [ConversationReader(self, record).row() for record in found.conversations], found.cursor

    def list_stamp(self, user: User) -> str:
        """Changes whenever the first page of the list would."""
        return digest(self.store.conversations.page(ConversationFilter(owner=user.owner), PAGE_ROWS).conversations)

    def conversation(self, user: User, id: str) -> ConversationReader:
        """A conversation this user may see; any other is not found."""
        found = self.store.conversations.find(id)
        if found is None or (user.owner is not None and found.metadata.owner != user.owner):
            raise refuse(404, "no_such_conversation", "There is no conversation with this id.")
        return ConversationReader(self, found)

    def search(self, query: SearchQuery) -> tuple[list[SearchHit], int]:
        """Hits, best first, and how many messages are not searchable yet."""
        pending = self.catch_up(INDEXED_AT_ONCE)
        hits = self.store.index.search(query)
        titles = {id: self._title(id) for id in dict.fromkeys(hit.conversation for hit in hits)}
        return [SearchHit(hit, titles[hit.conversation]) for hit in hits], pending

    def _title(self, id: str) -> str:
        try:
            return ConversationReader(self, self.store.conversations.resolve(id)).title
        except NotFound:
            return ""

    def catch_up(self, at_once: int) -> int:
        """Index a little now, and the rest while the reader looks at what is there; how many messages are left."""
        pending = self.store.index.pending()
        if not pending or self.store.read_only:
            return pending
        try:
            pending -= self.store.index.catch_up(at_once)
        except StoreUnavailable:
            # On a full disk what was indexed before is what is found.
            return pending
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


class ConversationReader:
    """Reads one conversation for one page."""

    def __init__(self, dashboard: DashboardReader, record: ConversationRecord) -> None:
        self.record = record
        self._dashboard = dashboard
        self._store = dashboard.store

    def row(self) -> ConversationRow:
        """A conversation in a list, with the number of its compactions in force."""
        return ConversationRow(self.record, self.title, self.named, self.record.compactions)

    @property
    def named(self) -> bool:
        return bool(self.record.metadata.title.strip())

    @cached_property
    def title(self) -> str:
        """The conversation's title, or what the user said first; of both, secrets are masked."""
        given = visible_line(self.record.metadata.title, TITLE)
        if given or not self.record.messages:
            return given
        first = self._store.log.span(self.record.id, Span(1, 4))
        opening = next((item for item in first if role_of(item.message) == "user"), None)
        return visible_line(redact(text_of(opening.message)), TITLE) if opening else ""

    @cached_property
    def measure(self) -> Measure:
        """Limits and counts as the conversation's own process knew them last, or by the settings."""
        kept = self._store.state.get(self.record.id, METER_KEY)
        known: dict[str, Any] = kept if isinstance(kept, dict) else {}
        about = self.record.metadata
        window = known.get("window")
        if not window and about.platform == PROXY:
            window = self._dashboard.served_window(about.model)
        sizes = PromptSizes(self._dashboard.settings, about.model, window if isinstance(window, int) else None)
        sizes.restore(known if known.get("model") == about.model else {**known, "meter": {}})
        waits_for = known.get("waits_for") or sizes.limits.hard_tokens
        depth = depth_of(sizes.limits, sizes.fixed.tokens, self._dashboard.settings.compression.policy)
        model = known.get("model") or about.model
        return Measure(sizes, known.get("waits_at"), waits_for, known.get("policy"), depth, model)

    def stamp(self) -> str:
        """Changes whenever the page of a conversation would: one look at each thing it is made from."""
        id, store = self.record.id, self._store
        newest = store.views.attempts(id, 1)
        pins = [pin.number for pin in store.pins.all(id)]
        return digest(
            store.conversations.resolve(id),
            store.usage.totals(id),
            newest[0].number if newest else 0,
            pins,
            store.state.get(id, METER_KEY),
        )

    def overview(self) -> Overview:
        id, views = self.record.id, self._store.views
        stamp = self.stamp()
        pulse = self._store.conversations.pulse(id)
        step = views.generation(id, pulse.generation)
        sizes = self._sizes(pulse.messages, shown_numbers(step, pulse.messages))
        seen = view_segments(step, pulse.messages, self._marks(), sizes)
        log = log_segments(seen, pulse.messages, sizes)
        use = self.window()
        # Framing, and what a provider adds unseen, stand before the messages with the fixed part.
        fixed = max(0, use.used - sum(segment.tokens for segment in seen))
        strip = [*_some(SegmentKind.FIXED, fixed), *seen, *_some(SegmentKind.FREE, use.parts[WindowPart.FREE])]
        return Overview(
            title=self.title,
            named=self.named,
            last=pulse.messages,
            step=step,
            compactions=frozenset(views.in_force(id)),
            use=use,
            window_model=self.measure.model,
            seen=tuple(placed(strip)),
            log=LogStrip(tuple(placed(log)), not sizes.counted(1, pulse.messages)),
            totals=self._store.usage.totals(id),
            attempts=tuple(views.attempts(id, SHOWN_ATTEMPTS)),
            pins=tuple(self._store.pins.all(id)[:SHOWN_PINS]),
            values=tuple(reversed(self._store.values.all(id)[-SHOWN_VALUES:])),
            stamp=stamp,
        )

    def _sizes(self, last: int, shown: Iterable[int] = ()) -> LogSizes:
        return self._dashboard.log_sizes.sizes(self.record, last, self.measure.sizes.counter, shown)

    def _marks(self) -> dict[str, FoldMark]:
        return {mark.id: mark for mark in self._store.views.fold_marks(self.record.id)}

    def window(self) -> WindowUse:
        """Where the window goes: the same sums as `/context` makes, remembered until something changes."""
        record, measure, uses = self.record, self.measure, self._dashboard.window_uses
        pulse = self._store.conversations.pulse(record.id)
        known = measure.sizes.limits, measure.sizes.export(), measure.waits_for
        key = (record.id, digest(record.created_at, pulse.generation, pulse.messages, known))
        found = uses.get(key)
        if found is None:
            view, sizes = self._store.views.view(record.id), measure.sizes
            reading = sizes.read_stored(RenderedView().messages(view))
            due = measure.due(view.generation, view.waits_for_hard_limit)
            found = uses[key] = divide(view.lines, sizes, reading, view.compactions, due)
            for old in list(uses)[:-MOST_REMEMBERED]:
                uses.pop(old, None)
        return found

    def usage(self) -> list[Chart]:
        """Charts over the sessions of the chain: each fold begins another."""
        points = [(str(used.ordinal), used.totals) for used in self._store.usage.by_session(self.record.id)]
        return usage_charts(points, "session") if points else []

    def fold(self, id: str) -> OpenedFold:
        views = self._store.views
        try:
            fold = views.fold(self.record.id, id)
        except NotFound:
            raise refuse(404, "no_such_fold", "This conversation has no such fold.") from None
        sizes = self._sizes(self.record.messages)
        # What was taken back before this fold was made did not go into it.
        standing = {*views.in_force(self.record.id, fold.generation), fold.generation}
        marks = [mark for mark in self._marks().values() if mark.generation in standing]
        sources = sources_of(FoldMark(fold.id, fold.covered, fold.generation), marks, fold.children)
        spans = [source.covered if isinstance(source, FoldMark) else source for source in sources]
        # The message that stood for it in the view it was made for.
        entries = views.generation(self.record.id, fold.generation).entries
        shown = next((entry.inline for entry in entries if entry.fold == fold.id), None)
        return OpenedFold(
            fold,
            self.measure.sizes.counter.message(shown or {"role": "assistant", "content": fold.text}),
            sizes.of(fold.covered.first, fold.covered.last),
            summary_sections(fold.handoff),
            tuple((source, sizes.of(span.first, span.last)) for source, span in zip(sources, spans, strict=True)),
            about=not sizes.counted(fold.covered.first, fold.covered.last),
        )

    # -- messages of the log, and of what the model sees

    def messages(self, span: Span, start: int) -> MessageSpan:
        """Some rows of a span of the log, from a message on."""
        span = Span(max(1, span.first), min(span.last, self.record.messages))
        start = min(max(start, span.first), max(span.first, span.last))
        end = min(span.last, start + MESSAGE_ROWS - 1)
        stored = self._store.log.span(self.record.id, Span(start, end))
        rows = message_rows(stored, self.measure.sizes.counter, self._pinned())
        before = max(span.first, start - MESSAGE_ROWS) if start > span.first else 0
        return MessageSpan(tuple(rows), span, before, end + 1 if end < span.last else 0)

    def shown(self, span: Span, start: int) -> MessageSpan:
        """What the model sees of a span of messages, from a message on."""
        view, sent = self._sent()
        within = [*_within(sent, span)]
        numbers = [item.numbers[0] if item.numbers else 0 for item in within]
        first = next((place for place, number in enumerate(numbers) if number >= start), max(0, len(within) - 1))
        rows = self._view_rows(within[first : first + MESSAGE_ROWS])
        before = next((n for n in numbers[max(0, first - MESSAGE_ROWS) :] if n), 0) if first else 0
        after = next((n for n in numbers[first + MESSAGE_ROWS :] if n), 0)
        return MessageSpan(tuple(rows), span, before, after, view.generation)

    def view(self, start: int) -> MessageSpan:
        """All that the model sees, exactly as it is sent, from a place on."""
        view, sent = self._sent()
        start = min(max(1, start), max(1, len(sent)))
        rows = self._view_rows(sent[start - 1 : start - 1 + MESSAGE_ROWS], as_written=True)
        before = max(1, start - MESSAGE_ROWS) if start > 1 else 0
        after = start + MESSAGE_ROWS if start + MESSAGE_ROWS <= len(sent) else 0
        return MessageSpan(tuple(rows), Span(1, len(sent)), before, after, view.generation, self.window().used)

    def sent_message(self, generation: int, place: int) -> Message:
        """A message at its place in what the model sees; the view must still be the one that was looked at."""
        view, sent = self._sent()
        if view.generation != generation:
            raise refuse(409, "view_changed", "What the model sees has changed. Load the page again.")
        if not 1 <= place <= len(sent):
            raise refuse(404, "no_such_message", "The model sees no such message.")
        return sent[place - 1].sent.message

    def _sent(self) -> tuple[View, list[PlacedMessage]]:
        """The messages that a request made now would carry, each with where it comes from."""
        view = self._store.views.view(self.record.id)
        return view, [PlacedMessage(place, sent) for place, sent in enumerate(sent_messages(view), 1)]

    def _view_rows(self, some: Sequence[PlacedMessage], as_written: bool = False) -> list[MessageRow]:
        numbers = [number for item in some for number in item.numbers]
        times = {stored.number: stored.created_at for stored in self._store.log.pick(self.record.id, numbers)}
        return view_rows(some, self.measure.sizes.counter, times, self._pinned(), as_written=as_written)

    def _pinned(self) -> set[int]:
        return {pin.number for pin in self._store.pins.all(self.record.id)}

    # -- a compaction

    def comparison(self, number: int) -> Comparison:
        """An attempt and, if it was committed, the views before and after it."""
        id, views = self.record.id, self._store.views
        found = views.attempts(id, 1, before=number + 1)
        if not found or found[0].number != number:
            raise refuse(404, "no_such_compaction", "This conversation has no such compaction.")
        attempt = found[0]
        if attempt.generation is None:
            return Comparison(attempt)
        after = views.generation(id, attempt.generation)
        before = views.generation(id, attempt.generation - 1)
        shown = {*shown_numbers(before, after.base_last), *shown_numbers(after, after.base_last)}
        sizes = self._sizes(max(self.record.messages, after.base_last), shown)
        marks = self._marks()
        sides = [view_segments(step, after.base_last, marks, sizes) for step in (before, after)]
        told = attempt.report.tokens_before, attempt.report.tokens_after
        fixed = min(whole - sum(segment.tokens for segment in side) for whole, side in zip(told, sides, strict=True))
        old, new = ([*_some(SegmentKind.FIXED, max(0, fixed)), *side] for side in sides)
        whole = max(sum(segment.tokens for segment in side) for side in (old, new))
        undone = attempt.generation not in views.in_force(id)
        return Comparison(attempt, tuple(placed(old, whole)), tuple(placed(new, whole)), undone=undone)


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
