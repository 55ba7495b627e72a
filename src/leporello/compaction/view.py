"""A view: what the model sees, line by line, each with its id for life; hashes and sizes worked out once.

Whether a line is a fold is what it was made as, or what was read once where a plain list came in; never its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from leporello.events import ViewEntry
from leporello.fingerprint import fingerprints
from leporello.messages import Message, Messages, is_instruction, role_of
from leporello.summaries.fold import RunningState, Trust, ViewFold, blocks_of, read_fold
from leporello.summaries.handoff import Handoff

T = TypeVar("T")


class ByObject(Generic[T]):
    """A function of a message, worked out once for each message object."""

    def __init__(self, work: Callable[[Message], T]) -> None:
        self._work = work
        self._known: dict[int, tuple[Message, T]] = {}

    def __call__(self, message: Message) -> T:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, self._work(message))
        return known[1]


OPENING: Message = {
    "role": "user",
    "content": "<leporello-opening v=1>The start of this conversation is folded.</leporello-opening>",
}
"""Stands first where the fold would otherwise open the list in the assistant's role, which some APIs refuse."""


def is_opening(message: Message) -> bool:
    """Whether the message is the constant one we put before a fold."""
    return message.get("content") == OPENING["content"] and role_of(message) == "user"


class Origin(StrEnum):
    """Where the message of a line comes from."""

    LOG = "log"
    SHORTENED = "shortened"
    """It is a message of the log, but shown shortened or mended."""
    WRITTEN = "written"
    """A compaction wrote it: a fold, a stub, the opening."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a view."""

    number: int
    """The message's id without the `m`. A fold has that of its first message, a stub that of its predecessor."""
    message: Message
    """As it is sent."""
    fold: ViewFold | None = None
    """What it stands for, when it is a fold that somebody vouches for."""
    origin: Origin = Origin.LOG
    unverified: Handoff | None = None
    """What the message says as an earlier summary that nobody vouches for."""
    engine_fold: str = ""
    """The id of the fold whose text it is part of, when an engine wrote that has folds of its own kind."""

    @property
    def role(self) -> str:
        """The message's role; summaries have none of their own, whatever role they are shown in."""
        return "fold" if self.is_summary else role_of(self.message)

    @property
    def is_summary(self) -> bool:
        """Whether it is a summary, believed or not, and nothing that anybody said."""
        return self.fold is not None or self.unverified is not None

    @property
    def fold_id(self) -> str | None:
        """The fold it shows, of whatever engine."""
        return self.fold.id if self.fold else self.engine_fold or None

    @property
    def entry(self) -> ViewEntry:
        """The line as it is stored."""
        ref = None if self.origin is Origin.WRITTEN else self.number
        inline = None if self.origin is Origin.LOG else self.message
        return ViewEntry(ref, inline, self.fold_id)

    def showing(self, message: Message) -> Item:
        """The line with another message for it; itself when it is the same."""
        if message is self.message:
            return self
        changed = Origin.SHORTENED if self.origin is Origin.LOG else self.origin
        return replace(self, message=message, origin=changed)


def number_messages(messages: Messages, trust: Trust | None = None) -> list[Item]:
    """A plain list as a view. Without trust no fold in it is believed."""
    items: list[Item] = []
    following = 1
    said = 0
    kept: list[int] = []
    for message in messages:
        fold = read_fold(message)
        if fold is not None and _believed(fold, message, trust, said, items[-1:]):
            items.append(Item(fold.span.first, message, fold, Origin.WRITTEN))
            following = max(following, fold.span.last + 1)
            said = max(said, fold.span.last)
            kept = list(fold.kept)
        elif kept:
            # What a fold leaves standing behind itself keeps the number it had inside the span.
            items.append(_item(kept.pop(0), message, fold))
        else:
            items.append(_item(following, message, fold))
            following += 1
            said += not is_instruction(message) and not is_opening(message)
    return items


def _item(number: int, message: Message, fold: ViewFold | None) -> Item:
    return Item(number, message, unverified=fold.handoff if fold else None)


def _believed(fold: ViewFold, message: Message, trust: Trust | None, said: int, before: Sequence[Item]) -> bool:
    """Whether a fold is vouched for and stands where it can: it follows what was said before the span it covers.

    Instructions are not counted: those of a span are moved in front of its fold. A state stands behind its tree.
    """
    if trust is None or not trust.believes(blocks_of(fold, message)):
        return False
    tree = before[0].fold if before else None
    if tree is not None and isinstance(fold, RunningState):
        return fold.span.first >= tree.span.first
    return fold.span.first > said


class Returned(Struct, frozen=True):
    """A view as it was handed out as a plain list, to recognise that list when it comes back longer."""

    items: tuple[Item, ...]
    last: int
    """The newest message number at that time."""
    fingerprint: bytes
    """Taken at once: the host may change its messages in place."""

    @classmethod
    def of(cls, shown: Iterable[Item], last: int) -> Returned:
        """Neighbouring user messages of the view are joined, as they were in the list."""
        items = tuple(join_neighbours(shown))
        return cls(items, last, _fingerprint([item.message for item in items]))

    def match(self, messages: Messages) -> list[Item] | None:
        """The list with ids when it begins with this view; None when it is another one.

        The items hold the messages as given: what the host added to them stays.
        """
        count = len(self.items)
        if len(messages) < count or _fingerprint(messages[:count]) != self.fingerprint:
            return None
        known = [replace(item, message=message) for item, message in zip(self.items, messages, strict=False)]
        # A fold in what is new can't be one of ours: those stand where they were put.
        new = enumerate(messages[count:], self.last + 1)
        return known + [_item(number, message, read_fold(message)) for number, message in new]


def _fingerprint(messages: Messages) -> bytes:
    return b"".join(fingerprints(b"", messages)[-1:])


def join_neighbours(items: Iterable[Item], before: Sequence[Item] = ()) -> list[Item]:
    """The lines as they are sent: neighbouring user messages become one, their contents joined by a blank line.

    A fold of ours is never joined: it would no longer be recognised in the list, and neither would the words beside
    it. What stands `before` is joined already.
    """
    joined: list[Item] = list(before)
    for item in items:
        if joined and are_joined(joined[-1], item):
            message = join(joined[-1].message, item.message)
            joined[-1] = Item(item.number, message, origin=Origin.SHORTENED)
        else:
            joined.append(item)
    return joined


def are_joined(first: Item, second: Item) -> bool:
    """Whether two neighbours are sent as one: both stand in the user's role, and neither is a fold of ours."""
    return all(role_of(item.message) == "user" and item.fold is None for item in (first, second))


def join(first: Message, second: Message) -> Message:
    one, two = first.get("content"), second.get("content")
    content: object
    if not one or not two:
        content = two or one or ""
    elif isinstance(one, str) and isinstance(two, str):
        content = f"{one}\n\n{two}"
    else:
        content = [*_as_parts(one), *_as_parts(two)]
    return {**first, **second, "content": content}


def _as_parts(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}]
