"""What the pages show, read from the store. Nothing here writes, and nothing reads more than its page shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from leporello.agent.commands_context import Room, WindowUse, divide
from leporello.config import Settings
from leporello.conversation.sent import Sent
from leporello.conversation.state import METER_KEY
from leporello.errors import LeporelloError, NotFound
from leporello.gateway.dashboard.charts import Chart, Point, usage_charts
from leporello.gateway.dashboard.door import Visitor
from leporello.gateway.dashboard.rows import message_rows
from leporello.gateway.dashboard.shown import (
    Comparison,
    Found,
    Listed,
    Measure,
    Opened,
    Overview,
    Stretch,
    SummaryLine,
)
from leporello.gateway.dashboard.sizes import SizeBook, Sizes
from leporello.gateway.dashboard.strip import (
    Scale,
    Segment,
    SegmentKind,
    log_segments,
    placed,
    shown_numbers,
    sources_of,
    view_segments,
)
from leporello.gateway.dashboard.words import one_line
from leporello.gateway.faults import refuse
from leporello.gateway.talks import PLATFORM as PROXY
from leporello.limits import limits_of
from leporello.messages import role_of, text_of
from leporello.records import Span
from leporello.redact import redact
from leporello.store.base import Store
from leporello.store.records import (
    ConversationFilter,
    ConversationRecord,
    FoldMark,
    Generation,
    Page,
    SearchQuery,
)
from leporello.tokens import TokenCounter
from leporello.tokens.meter import PromptMeter

PAGE_ROWS = 50
SEARCH_HITS = 30
MESSAGE_ROWS = 40
SHOWN_ATTEMPTS = 8
MOST_COUNTED = 400
"""Messages of a view that are counted one by one; of more, sizes are estimated."""
SHOWN_PINS = 50
INDEXED_AT_ONCE = 100
"""Messages a search brings into the index before it answers; the rest follows, and the page says so."""
TITLE = 90


class Reader:
    """Reads for visitors; each sees only what is theirs."""

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
        self._book = SizeBook(store)
        self._indexing = threading.Lock()

    # -- many conversations

    def page(self, visitor: Visitor, where: ConversationFilter, cursor: str | None) -> tuple[list[Listed], str | None]:
        """A page of conversations, newest activity first."""
        scoped = ConversationFilter(platform=where.platform, model=where.model, owner=visitor.owner)
        found: Page = self.store.conversations.page(scoped, PAGE_ROWS, cursor)
        return [self.listed(record) for record in found.conversations], found.cursor

    def listed(self, record: ConversationRecord) -> Listed:
        """A conversation with a name: its title, or what the user said first; of both, secrets are masked."""
        title = one_line(record.metadata.title, TITLE)
        return Listed(record, title or self._opening(record), bool(title))

    def _opening(self, record: ConversationRecord) -> str:
        first = self.store.log.span(record.id, Span(1, 4)) if record.messages else []
        said = next((item for item in first if role_of(item.message) == "user"), None)
        return one_line(redact(text_of(said.message)), TITLE) if said else ""

    def search(self, visitor: Visitor, query: SearchQuery) -> tuple[list[Found], int]:
        """Hits, best first, and how many messages are not searchable yet."""
        pending = self._catch_up()
        hits = self.store.index.search(query)
        titles: dict[str, str] = {}
        for hit in hits:
            if hit.conversation not in titles:
                try:
                    titles[hit.conversation] = self.listed(self.store.conversations.resolve(hit.conversation)).title
                except NotFound:
                    titles[hit.conversation] = ""
        return [Found(hit, titles[hit.conversation]) for hit in hits], pending

    def _catch_up(self) -> int:
        """Index a little now, and the rest while the reader looks at the first hits; how much is left."""
        pending = self.store.index.pending()
        if not pending or self.store.read_only:
            return pending
        pending -= self.store.index.catch_up(INDEXED_AT_ONCE)
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

    def record(self, visitor: Visitor, id: str) -> ConversationRecord:
        """A conversation this visitor may see; any other does not exist for them."""
        try:
            found = self.store.conversations.resolve(id)
        except NotFound:
            found = None
        if found is None or (visitor.owner is not None and found.metadata.owner != visitor.owner):
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
        return Measure(limits, counter, meter, int(system), int(tools), known.get("waits_at"))

    def overview(self, record: ConversationRecord) -> Overview:
        """Everything the first screen of a conversation shows. Reads no message of the log but a few samples."""
        pulse = self.store.conversations.pulse(record.id)
        step = self.store.views.generation(record.id, pulse.generation)
        marks = self.store.views.fold_marks(record.id)
        measure = self.measure(record)
        sizes = self._book.sizes(record, pulse.messages, measure.counter)
        seen = self._segments(record.id, step, pulse.messages, marks, sizes, measure.counter)
        log = log_segments(seen, pulse.messages, sizes.of)
        fixed = measure.system + measure.tools
        tokens = fixed + sum(segment.tokens for segment in seen)
        free = max(0, measure.limits.window - tokens)
        strip = [*_some(SegmentKind.FIXED, fixed), *seen, *_some(SegmentKind.FREE, free)]
        listed = self.listed(record)
        return Overview(
            record=record,
            title=listed.title,
            named=listed.named,
            last=pulse.messages,
            step=step,
            folds=len(marks),
            limits=measure.limits,
            due=measure.due(step.generation, step.kind == "undo"),
            seen=tuple(placed(strip)),
            log=tuple(placed(log)),
            seen_tokens=tokens,
            log_tokens=sizes.of(1, pulse.messages),
            totals=self.store.usage.totals(record.id),
            attempts=tuple(self.store.views.attempts(record.id, SHOWN_ATTEMPTS)),
            pins=tuple(self.store.pins.all(record.id)[:SHOWN_PINS]),
        )

    def _segments(
        self,
        id: str,
        step: Generation,
        last: int,
        marks: Sequence[FoldMark],
        sizes: Sizes,
        counter: TokenCounter,
    ) -> list[Segment]:
        """A view in pieces. What it shows is counted exactly as long as it is not absurdly much."""
        numbers = shown_numbers(step, last)
        weigh = sizes.of
        if len(numbers) <= MOST_COUNTED:
            exact = {item.number: counter.message(item.message) for item in self.store.log.pick(id, numbers)}
            weigh = partial(_sum, exact)
        known = {mark.id: mark for mark in marks}
        return view_segments(step, last, known, Scale(sizes.of, weigh, counter.message))

    def window(self, record: ConversationRecord) -> WindowUse:
        """Where the window goes: the same sums as `/context` makes."""
        measure = self.measure(record)
        view = self.store.views.view(record.id)
        reading = measure.meter.read(Sent().messages(view))
        used = reading.tokens if reading.measured else reading.tokens + measure.system + measure.tools
        return divide(
            Room(
                view.lines,
                measure.counter,
                measure.limits,
                measure.system,
                measure.tools,
                used,
                reading.measured,
                view.compactions,
                waits_for=measure.due(view.generation, view.waits_for_hard_limit),
            )
        )

    def usage(self, record: ConversationRecord) -> list[Chart]:
        """Charts over the sessions of the chain: each fold begins another."""
        points: list[Point] = [(str(used.ordinal), used.totals) for used in self.store.usage.by_session(record.id)]
        return usage_charts(points, "session") if points else []

    def opened(self, record: ConversationRecord, id: str) -> Opened:
        """A fold with what it was made from."""
        try:
            fold = self.store.views.fold(record.id, id)
        except NotFound:
            raise refuse(404, "no_such_fold", "This conversation has no such fold.") from None
        counter = TokenCounter.for_model(record.metadata.model or None)
        sizes = self._book.sizes(record, record.messages, counter)
        marks = self.store.views.fold_marks(record.id)
        mark = FoldMark(fold.id, fold.covered, fold.generation)
        sources = sources_of(mark, marks, fold.children)
        spans = [source.covered if isinstance(source, FoldMark) else source for source in sources]
        return Opened(
            fold,
            counter.text(fold.text),
            sizes.of(fold.covered.first, fold.covered.last),
            _sections(fold.handoff),
            tuple((source, sizes.of(span.first, span.last)) for source, span in zip(sources, spans, strict=True)),
        )

    def stretch(self, record: ConversationRecord, span: Span, start: int) -> Stretch:
        """Some rows of a span, from a message on."""
        span = Span(max(1, span.first), min(span.last, record.messages))
        start = min(max(start, span.first), max(span.first, span.last))
        end = min(span.last, start + MESSAGE_ROWS - 1)
        counter = TokenCounter.for_model(record.metadata.model or None)
        pinned = {pin.number for pin in self.store.pins.all(record.id)}
        rows = message_rows(self.store.log.span(record.id, Span(start, end)), counter, pinned)
        before = max(span.first, start - MESSAGE_ROWS) if start > span.first else 0
        return Stretch(tuple(rows), span, before, end + 1 if end < span.last else 0)

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
        marks = self.store.views.fold_marks(record.id)
        counter = TokenCounter.for_model(record.metadata.model or None)
        sizes = self._book.sizes(record, record.messages, counter)
        draw = partial(self._segments, record.id, marks=marks, sizes=sizes, counter=counter)
        sides = draw(before, after.base_last), draw(after, after.base_last)
        told = attempt.report.tokens_before, attempt.report.tokens_after
        fixed = min(whole - sum(segment.tokens for segment in side) for whole, side in zip(told, sides, strict=True))
        old, new = ([*_some(SegmentKind.FIXED, max(0, fixed)), *side] for side in sides)
        totals = [sum(segment.tokens for segment in side) for side in (old, new)]
        current = self.store.views.generation(record.id, self.store.conversations.pulse(record.id).generation)
        return Comparison(
            attempt,
            tuple(placed(old, max(totals))),
            tuple(placed(new, max(totals))),
            totals[0],
            totals[1],
            undone=current.state < attempt.generation,
        )


def _some(kind: SegmentKind, tokens: int) -> list[Segment]:
    return [Segment(kind, None, tokens)] if tokens else []


def _sum(counted: Mapping[int, int], first: int, last: int) -> int:
    return sum(counted.get(number, 0) for number in range(first, last + 1))


def _sections(handoff: object) -> dict[str, list[SummaryLine]]:
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
