"""Strips, pieces and charts as values: nothing is lost, nothing is shown twice, everything is to scale."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leporello.events import Span, ViewEntry
from leporello.gateway.dashboard.charts import HEIGHT, MOST_BARS, TOP, nice_top, usage_charts
from leporello.gateway.dashboard.http import slug, unslug
from leporello.gateway.dashboard.pages import local
from leporello.gateway.dashboard.timeline import (
    LogSizes,
    SegmentKind,
    log_segments,
    placed,
    sources_of,
    view_segments,
)
from leporello.gateway.dashboard.view_models import piece, texts_of
from leporello.messages import Message
from leporello.present.text import short_count, visible
from leporello.store.records import FoldMark, Generation, UsageTotals
from leporello.usage import CanonicalUsage, money
from tests.store.contract.base import ODD_IDS

SCALE = LogSizes(tuple(range(0, 100_010, 10)), (0,) * 10_001, lambda _: 25)


@st.composite
def views(draw: st.DrawFn) -> tuple[Generation, int, dict[str, FoldMark]]:
    """A log of which some stretches are folded and some messages inside them are shown all the same."""
    last = draw(st.integers(1, 60))
    cuts = sorted(draw(st.sets(st.integers(1, last + 1), max_size=6)))
    entries: list[ViewEntry] = []
    marks: dict[str, FoldMark] = {}
    place = 1
    for first, end in zip(cuts[::2], cuts[1::2], strict=False):
        entries += [ViewEntry(ref=n) for n in range(place, first)]
        fold = f"f{len(marks) + 1}"
        message: Message = {"role": "assistant", "content": "summary"}
        entries.append(ViewEntry(inline=message, fold=fold))
        marks[fold] = FoldMark(fold, Span(first, end - 1), 1)
        entries += [ViewEntry(ref=n) for n in draw(st.sets(st.integers(first, end - 1), max_size=1))]
        place = end
    base = draw(st.integers(max(0, place - 1), last))
    entries += [ViewEntry(ref=n) for n in range(place, base + 1)]
    return Generation(1, "compaction", 1, base, "s", 0.0, tuple(entries)), last, marks


@given(views())
def test_the_log_is_divided_without_gaps_and_overlaps(drawn: tuple[Generation, int, dict[str, FoldMark]]) -> None:
    """Every message of the log is in exactly one segment, shown or folded."""
    step, last, marks = drawn
    segments = log_segments(view_segments(step, last, marks, SCALE), last, SCALE)
    numbers = [n for segment in segments if segment.span for n in range(segment.span.first, segment.span.last + 1)]
    assert numbers == list(range(1, last + 1))
    assert sum(segment.tokens for segment in segments) == last * 10


@given(views(), st.integers(0, 5_000))
def test_segments_fill_the_strip_and_no_more(drawn: tuple[Generation, int, dict[str, FoldMark]], whole: int) -> None:
    """Side by side from the left, in order, within the strip; equal tokens are equally wide."""
    step, last, marks = drawn
    places = placed(view_segments(step, last, marks, SCALE), whole)
    x = 0.0
    for place in places:
        assert abs(place.x - x) < 0.01
        assert place.width > 0
        x += place.width
    assert x <= 100.1
    kinds = [place.segment.kind for place in places]
    assert SegmentKind.TAIL not in kinds[:-1]


def test_sources_of_a_fold_cover_what_it_covers() -> None:
    """A fold that took another in is made from that one and the messages around it, not from what is inside it."""
    marks = [FoldMark("f1", Span(4, 20), 1), FoldMark("f2", Span(4, 50), 2), FoldMark("f3", Span(4, 90), 3)]
    assert sources_of(marks[2], marks, ()) == [marks[1], Span(51, 90)]
    assert sources_of(marks[1], marks, ("f1",)) == [marks[0], Span(21, 50)]
    assert sources_of(marks[0], marks, ()) == [Span(4, 20)]
    tree = [FoldMark("a", Span(1, 10), 1), FoldMark("b", Span(11, 20), 2), FoldMark("top", Span(1, 25), 3)]
    assert sources_of(tree[2], tree, ("a", "b")) == [tree[0], tree[1], Span(21, 25)]


@given(st.text(max_size=300), st.integers(1, 50))
def test_pieces_together_are_the_text(text: str, most: int) -> None:
    """Piece after piece, the whole text is shown, and how much is left is true."""
    shown, start, steps = "", 0, 0
    while True:
        part = piece(text, start, most)
        shown += part.text
        steps += 1
        if not part.following:
            break
        assert part.left == len(text) - part.following
        start = part.following
    assert part.left == 0
    assert visible(text).replace("\r", "") == shown.replace("\r", "") or "\r" in text
    assert steps <= len(text) // most + 1


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_no_control_character_reaches_a_page(text: str) -> None:
    """What is shown can be written as UTF-8 and neither moves a cursor nor turns a line."""
    shown = visible(text)
    shown.encode("utf-8")
    assert not any(
        (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E for c in shown
    )
    assert visible("plain text\n") == "plain text\n"


def test_any_id_has_an_address() -> None:
    """Ids are any text; their addresses have only letters that addresses have."""
    for id in (*ODD_IDS, "build-42", "gw-0a", "~tilde", "a/b", "..", "."):
        part = slug(id)
        assert unslug(part) == id
        assert part.replace("-", "").replace("_", "").replace("~", "").isascii()
        assert "/" not in part
        assert part not in ("", ".", "..")


def test_only_places_here_are_gone_on_to() -> None:
    """After signing in nobody is led elsewhere."""
    assert local("/c/build-42?x=1") == "/c/build-42?x=1"
    for elsewhere in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:1", "", "/a\nb", "c/d"):
        assert local(elsewhere) == "/"


def test_numbers_are_short_and_right() -> None:
    """Three digits and a unit; money with the digits that say something."""
    assert [short_count(n) for n in (0, 950, 1_000, 12_345, 999_960, 4_413_870)] == [
        "0",
        "950",
        "1K",
        "12.3K",
        "1M",
        "4.41M",
    ]
    assert [money(n) for n in (0, 0.0022, 0.15, 4.02, 1234.5)] == ["$0.00", "$0.0022", "$0.15", "$4.02", "$1,234"]


def test_amounts_too_small_to_show_and_negative_ones() -> None:
    tiny = (1e-8, 0.00004, 0.00009, 1e-300)
    assert {money(n) for n in tiny} == {"under $0.0001"}
    assert {money(-n) for n in (0.0, *tiny)} == {"$0.00"}
    assert [money(n) for n in (-0.002, -0.05, -1.234, -1234.5)] == ["-$0.002", "-$0.05", "-$1.23", "-$1,234"]
    assert [money(n) for n in (0.0001, 0.01, 0.0994)] == ["$0.0001", "$0.01", "$0.0994"]
    assert not any(money(1.37**power).endswith(".") for power in range(-120, 60))


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6), st.floats(0, 1e5)), max_size=150))
def test_charts_hold_what_their_tables_say(figures: list[tuple[int, int, float]]) -> None:
    """Bars stay inside the chart, in as many as can be told apart; the table adds up to the whole."""
    points = [
        (str(n), UsageTotals(CanonicalUsage(fresh, output, fresh // 2, 0, 0), 1, cost))
        for n, (fresh, output, cost) in enumerate(figures, 1)
    ]
    tokens, cost, cache = usage_charts(points, "session")
    for chart in (tokens, cost):
        assert len(chart.bars) <= MOST_BARS
        for bar in chart.bars:
            assert 0 <= bar.x <= bar.x + bar.width <= 100.01
            assert all(rect.height > 0 for rect in bar.rects)
            assert sum(rect.height for rect in bar.rects) <= HEIGHT + 4 * 0.8 + 0.1
    assert all(TOP <= dot.y <= TOP + HEIGHT for dot in cache.dots)
    assert sum(int(row[1].replace(",", "")) for row in tokens.rows) == len(points)


@given(st.floats(1e-6, 1e12))
def test_axes_end_at_round_numbers_above_the_highest(value: float) -> None:
    """The highest bar fits, and uses at least half of the height."""
    top = nice_top(value)
    assert value * 0.999 <= top <= value * 2.01


def test_every_part_of_a_message_is_shown() -> None:
    """Text, thinking, calls, and things that are no text: nothing is left out, whatever it is."""
    message: Message = {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}, "b", 5],
        "tool_calls": [{"id": "1", "function": {"name": "run", "arguments": '{"command": "ls", "n": 3}'}}, "odd"],
    }
    texts = texts_of(message)
    assert [kind for kind, _, _ in texts] == ["thinking", "text", "data", "text", "data", "call"]
    assert texts[-1] == ("call", "run", "command: ls\nn: 3")
    assert texts_of({"role": "user", "content": ""}) == []
