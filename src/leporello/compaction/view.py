"""A view: the messages as the model sees them, each with its id for life; hashes and sizes worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from leporello.events import ViewEntry
from leporello.fingerprint import fingerprints
from leporello.messages import Message, Messages, is_instruction, message_hash, role_of
from leporello.summaries.fold import Fold, blocks_of, read_fold
from leporello.summaries.handoff import Handoff
from leporello.summaries.summary_tree import read_state
from leporello.summaries.trust import Trust
from leporello.tokens import TokenCounter


class MessageHashes:
    """`message_hash` by message object."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, str]] = {}

    def __call__(self, message: Message) -> str:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, message_hash(message))
        return known[1]


class MessageSizes:
    """Tokens by message object."""

    def __init__(self, counter: TokenCounter, hashes: MessageHashes) -> None:
        self._counter = counter
        self._hashes = hashes
        self._known: dict[int, tuple[Message, int]] = {}

    def __call__(self, message: Message) -> int:
        known = self._known.get(id(message))
        if known is None:
            tokens = self._counter.message(message, self._hashes(message))
            known = self._known[id(message)] = (message, tokens)
        return known[1]


OPENING: Message = {
    "role": "user",
    "content": "<leporello-opening v=1>The start of this conversation is folded.</leporello-opening>",
}
"""Stands first where the fold would otherwise open the list in the assistant's role, which some APIs refuse."""


def is_opening(message: Message) -> bool:
    """Whether the message is the constant one we put before a fold."""
    return message.get("content") == OPENING["content"] and role_of(message) == "user"


@dataclass(frozen=True, slots=True)
class Item:
    """One message of a view. `number` is its id without the `m`; a fold has the number of the span's first message."""

    number: int
    message: Message
    fold: Fold | None = None
    entry: ViewEntry | None = None
    """How the view refers to it, when it is not simply shown as stored."""
    unverified: Handoff | None = None
    """What the message says as an earlier summary that nobody vouches for."""

    @property
    def role(self) -> str:
        """The message's role; summaries have none of their own, whatever role they are shown in."""
        return "fold" if self.is_summary else role_of(self.message)

    @property
    def is_summary(self) -> bool:
        """Whether it is a summary, believed or not, and nothing that anybody said."""
        return self.fold is not None or self.unverified is not None


def number_messages(messages: Messages, trust: Trust | None = None) -> list[Item]:
    """A plain list as a view. Without trust no fold in it is believed."""
    items: list[Item] = []
    following = 1
    said = 0
    kept: list[int] = []
    for message in messages:
        fold = read_fold(message)
        if fold is not None and _believed(fold, message, trust, said, items[-1:]):
            items.append(Item(fold.span.first, message, fold))
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


def _item(number: int, message: Message, fold: Fold | None) -> Item:
    return Item(number, message, unverified=fold.handoff if fold else None)


def _believed(fold: Fold, message: Message, trust: Trust | None, said: int, before: Sequence[Item]) -> bool:
    """Whether a fold is vouched for and stands where it can: it follows what was said before the span it covers.

    Instructions are not counted: those of a span are moved in front of its fold. A state stands behind its frontier.
    """
    if trust is None or not trust.believes(blocks_of(message)):
        return False
    frontier = before[0].fold if before else None
    if frontier is not None and read_state(message) is not None:
        return fold.span.first >= frontier.span.first
    return fold.span.first > said


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry of the new view together with the message that is shown for it."""

    entry: ViewEntry
    message: Message


def entry_of(item: Item) -> ViewEntry:
    """How a view refers to an item that is shown as it is."""
    if item.entry is not None:
        return item.entry
    return ViewEntry(inline=item.message, fold=item.fold.id) if item.fold else ViewEntry(ref=item.number)


@dataclass(frozen=True, slots=True)
class Returned:
    """A view as it was handed out as a plain list, to recognise that list when it comes back longer."""

    items: tuple[Item, ...]
    last: int
    """The newest message number at that time."""
    fingerprint: bytes
    """Taken at once: the host may change its messages in place."""

    @classmethod
    def of(cls, shown: Iterable[Shown], last: int) -> Returned:
        """Neighbouring user messages of the view are joined, as they were in the list."""
        items: list[Item] = []
        number = 0
        for line in shown:
            summary = read_fold(line.message)
            fold = summary if line.entry.fold else None
            # What a compaction wrote itself (a fold, a stub) has no number of its own in the log.
            number = fold.span.first if fold else line.entry.ref or number
            told = summary.handoff if summary and not fold else None
            item = Item(number, line.message, fold, line.entry, told)
            if items and item.role == "user" == items[-1].role:
                joined = join(items[-1].message, line.message)
                items[-1] = Item(item.number, joined, None, ViewEntry(ref=item.number, inline=joined))
            else:
                items.append(item)
        return cls(tuple(items), last, _fingerprint([item.message for item in items]))

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


def join_neighbours(messages: Iterable[Message], before: Sequence[Message] = ()) -> list[Message]:
    """The list as it is sent: neighbouring user messages become one, their contents joined by a blank line.

    A fold is never joined: it would no longer be recognised, and neither would the words beside it. What stands
    `before` the messages is joined already.
    """
    joined: list[Message] = list(before)
    for message in messages:
        if joined and are_joined(joined[-1], message):
            joined[-1] = join(joined[-1], message)
        else:
            joined.append(message)
    return joined


def are_joined(first: Message, second: Message) -> bool:
    """Whether two neighbours are sent as one: both are the user's own words."""
    return role_of(first) == "user" == role_of(second) and read_fold(first) is None and read_fold(second) is None


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
