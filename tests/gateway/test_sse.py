"""Events out of bytes that are cut anywhere."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from leporello.dialects import ANTHROPIC, DIALECTS
from leporello.dialects.base import Event, EventReader
from leporello.gateway.proxy.relay import Tally
from leporello.usage import CanonicalUsage

STREAM = (
    b": comment\n\n"
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":7,'
    b'"cache_read_input_tokens":3}}}\n\n'
    b'event: ping\r\ndata: {"type": "ping"}\r\n\r\n'
    b'event: content_block_delta\rdata: {"type":"content_block_delta","delta":{"text":"caf\xc3\xa9"}}\r\r'
    b'event: message_delta\ndata: {"type":"message_delta",\ndata: "usage":{"output_tokens":5}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
EVENTS = [
    Event(
        "message_start", b'{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_read_input_tokens":3}}}'
    ),
    Event("ping", b'{"type": "ping"}'),
    Event("content_block_delta", b'{"type":"content_block_delta","delta":{"text":"caf\xc3\xa9"}}'),
    Event("message_delta", b'{"type":"message_delta",\n"usage":{"output_tokens":5}}'),
    Event("message_stop", b'{"type":"message_stop"}'),
]


def test_cut_at_every_byte() -> None:
    """Two pieces, whatever the cut: the same events, the same usage, the same end."""
    for cut in range(len(STREAM) + 1):
        reader, tally = EventReader(), Tally(ANTHROPIC)
        events = [*reader.feed(STREAM[:cut]), *reader.feed(STREAM[cut:])]
        assert events == EVENTS
        tally.feed(STREAM[:cut])
        tally.feed(STREAM[cut:])
        assert tally.usage == CanonicalUsage(7, 5, 3, 0, 0)
        assert tally.ended
        assert tally.error is None


def test_byte_by_byte() -> None:
    """One byte at a time."""
    reader = EventReader()
    assert [event for byte in STREAM for event in reader.feed(bytes([byte]))] == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_pieces(cuts: list[int]) -> None:
    """Any number of pieces of any size, empty ones among them."""
    places = [0, *sorted(cuts), len(STREAM)]
    reader = EventReader()
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


@given(st.binary(max_size=300))
def test_garbage_is_survived(data: bytes) -> None:
    """Bytes that are no events at all raise nothing and count nothing."""
    for dialect in DIALECTS.values():
        tally = Tally(dialect)
        tally.feed(data)
        assert tally.usage is None
