"""A view: the messages as the model sees them, each with its id for life.

With a store the ids come from the log. A plain list is numbered here: messages count from 1, and a fold that stands in
the list says which numbers it covers, so that later compactions go on counting where the first one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leporello.messages import Message, Messages, role_of
from leporello.records import Entry
from leporello.summary.fold import Fold, read_fold


@dataclass(frozen=True, slots=True)
class Item:
    """One message of a view. `number` is its id without the `m`; a fold has the number of the span's first message."""

    number: int
    message: Message
    fold: Fold | None = None

    @property
    def role(self) -> str:
        """The message's role; folds have none of their own, whatever role they are shown in."""
        return "fold" if self.fold else role_of(self.message)


def number_messages(messages: Messages) -> list[Item]:
    """A plain list as a view."""
    items: list[Item] = []
    following = 1
    kept: list[int] = []
    for message in messages:
        fold = read_fold(message)
        if fold is not None:
            items.append(Item(fold.span.first, message, fold))
            following = max(following, fold.span.last + 1)
            kept = list(fold.kept)
        elif kept:
            # What a fold leaves standing behind itself keeps the number it had inside the span.
            items.append(Item(kept.pop(0), message))
        else:
            items.append(Item(following, message))
            following += 1
    return items


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry of the new view together with the message that is shown for it."""

    entry: Entry
    message: Message


def join_neighbours(messages: Iterable[Message]) -> list[Message]:
    """The list as it is sent: neighbouring user messages become one, their contents joined by a blank line."""
    joined: list[Message] = []
    for message in messages:
        if joined and role_of(message) == "user" == role_of(joined[-1]):
            joined[-1] = _join(joined[-1], message)
        else:
            joined.append(message)
    return joined


def _join(first: Message, second: Message) -> Message:
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
