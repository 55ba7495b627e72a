"""Messages as rows of a page: who, when, how large, and the beginning of what they say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from leporello.conversation.rendering import SentMessage
from leporello.gateway.dashboard.words import FIRST_CHARACTERS, Piece, one_line, piece
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
from leporello.store.records import StoredMessage
from leporello.tokens import TokenCounter

LEAST_SHOWN = 200
_NAMED = 60


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a message: its text, a tool call, thinking, or something that is no text."""

    index: int
    kind: str
    title: str
    shown: Piece
    size: int


@dataclass(frozen=True, slots=True)
class Row:
    """One message: of the log, or of what the model sees."""

    number: int
    """Of the first message it shows; 0 where a compaction wrote it."""
    role: str
    who: str
    """The tool of a result, else empty."""
    at: float | None
    tokens: int
    blocks: tuple[Block, ...]
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
    def key(self) -> str:
        """Tells the rows of a list apart, in their order."""
        return self.behind or str(self.number)

    @property
    def version(self) -> str:
        """Changes whenever the row does."""
        return f"{self.numbers}{self.tokens}{self.pinned}{self.shortened}"


def message_rows(stored: Iterable[StoredMessage], counter: TokenCounter, pinned: Collection[int] = ()) -> list[Row]:
    """Rows of neighbouring messages; results are named after the calls among them."""
    listed = list(stored)
    names = _call_names(item.message for item in listed)
    return [
        replace(
            _row(item.message, names, counter),
            number=item.number,
            numbers=(item.number,),
            at=item.created_at,
            pinned=item.number in pinned,
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
        """The stored messages it shows."""
        return tuple(line.number for line in self.sent.lines if line.number is not None)


def view_rows(
    shown: Sequence[PlacedMessage],
    counter: TokenCounter,
    times: Mapping[int, float],
    pinned: Collection[int] = (),
    *,
    as_written: bool = False,
) -> list[Row]:
    """Rows of what the model sees; `as_written` leaves JSON as it is instead of making it readable."""
    names = _call_names(item.sent.message for item in shown)
    rows: list[Row] = []
    before = following = 0
    for item in shown:
        row = _view_row(item, names, counter, times, pinned, as_written)
        before, following = (row.number, 0) if row.number else (before, following + 1)
        rows.append(replace(row, behind=f"{before}.{following:03}") if following else row)
    return rows


def _view_row(
    item: PlacedMessage,
    names: Mapping[str, str],
    counter: TokenCounter,
    times: Mapping[int, float],
    pinned: Collection[int],
    as_written: bool,
) -> Row:
    numbers, lines = item.numbers, item.sent.lines
    return replace(
        _row(item.sent.message, names, counter, as_written),
        number=numbers[0] if numbers else 0,
        numbers=numbers,
        at=times.get(numbers[-1]) if numbers else None,
        pinned=any(number in pinned for number in numbers),
        place=item.place,
        fold=next((line.fold for line in lines if line.fold), ""),
        shortened=any(line.shortened for line in lines),
    )


def _call_names(messages: Iterable[Message]) -> dict[str, str]:
    return {call.id: call.name for message in messages for call in calls_of(message) if call.id}


def _row(message: Message, names: Mapping[str, str], counter: TokenCounter, as_written: bool = False) -> Row:
    role = "tool" if is_result(message) else role_of(message)
    who = ""
    if role == "tool":
        who = one_line(names.get(result_id(message)) or str(message.get("name") or ""), _NAMED)
    left = FIRST_CHARACTERS
    blocks = []
    for index, (kind, title, text) in enumerate(texts_of(message, as_written)):
        shown = piece(text, 0, max(LEAST_SHOWN, left))
        left -= len(shown.text)
        blocks.append(Block(index, kind, title, shown, len(text)))
    known = role if role in ("user", "assistant", "tool", "system", "developer") else "other"
    return Row(0, known, who, None, counter.message(message), tuple(blocks))


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
        found.append(("call", one_line(call.name, _NAMED) or "call", laid_out(call.arguments)))
    return found


def _fields(text: str) -> str:
    """The fields of a JSON object one to a line, texts as they are; anything else stands as it was written."""
    value = parse_json(text) if text.lstrip().startswith("{") else None
    if not isinstance(value, dict) or not value:
        return text
    return "\n".join(f"{name}: {inner if isinstance(inner, str) else _json(inner)}" for name, inner in value.items())


def _json(value: object) -> str:
    return encode_json(value).decode("utf-8", "replace").strip()
