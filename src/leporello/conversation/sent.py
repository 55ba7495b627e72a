"""The view as it is sent: calls and results that match, neighbouring user messages as one.

A turn costs only what is new: whatever stands before the last call and its results is settled and not looked at again,
until the view itself is another one.
"""

from __future__ import annotations

from dataclasses import dataclass

from leporello.compaction.assemble import repair
from leporello.compaction.view import Shown, are_joined, join, join_neighbours
from leporello.events import ViewEntry
from leporello.messages import Message
from leporello.store.records import View, ViewLine
from leporello.turns import groups


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message of a request, and the lines of the view it comes from; none for a stub that answers a lost call."""

    message: Message
    lines: tuple[ViewLine, ...] = ()


def sent_messages(view: View) -> list[SentMessage]:
    """What `Sent` makes of a view, for those who want to know where each message comes from."""
    shown = [Shown(ViewEntry(ref=place, inline=line.message), line.message) for place, line in enumerate(view.lines)]
    found: list[SentMessage] = []
    for item in repair(shown):
        lines = () if item.entry.ref is None else (view.lines[item.entry.ref],)
        if found and are_joined(found[-1].message, item.message):
            found[-1] = SentMessage(join(found[-1].message, item.message), (*found[-1].lines, *lines))
        else:
            found.append(SentMessage(item.message, lines))
    return found


class Sent:
    """Follows the view of one conversation."""

    def __init__(self) -> None:
        self._generation = -1
        self._settled: list[Message] = []
        self._lines = 0
        self._last: ViewLine | None = None

    def messages(self, view: View) -> list[Message]:
        """What is sent of a view."""
        if not self._goes_on(view):
            self._generation, self._settled, self._lines, self._last = view.generation, [], 0, None
        new = view.lines[self._lines :]
        found = groups([line.message for line in new])
        cut = found[-1].start if found else 0
        if cut:
            self._settle(new[:cut])
        return join_neighbours([*self._settled[-1:], *_repaired(new[cut:])], self._settled[:-1])

    def _goes_on(self, view: View) -> bool:
        """Whether the view is the one followed so far, longer at its end."""
        if view.generation != self._generation or len(view.lines) < self._lines:
            return False
        return not self._lines or view.lines[self._lines - 1] is self._last

    def _settle(self, lines: tuple[ViewLine, ...]) -> None:
        fresh = _repaired(lines, more_follows=True)
        self._settled = join_neighbours([*self._settled[-1:], *fresh], self._settled[:-1])
        self._lines += len(lines)
        self._last = lines[-1]


def _repaired(lines: tuple[ViewLine, ...], *, more_follows: bool = False) -> list[Message]:
    shown = [Shown(ViewEntry(inline=line.message), line.message) for line in lines]
    return [line.message for line in repair(shown, more_follows=more_follows)]
