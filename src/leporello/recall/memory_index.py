"""An index over the lines of a conversation, in memory, growing message by message.

Besides which line holds which word it knows the shape of the conversation: which passage a line belongs to, which call
a result answers, and which *step* (an assistant message with its calls and their results, or one message) it is part
of. Adding a message costs what the message is long, however much is there already.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leporello.messages import calls_of, is_result, result_id
from leporello.recall.chunks import Chunk, chunks_of, line_features
from leporello.redact.messages import masked
from leporello.text_features.words import index_words

APART = 4
"""Steps further away than this say nothing about each other."""


@dataclass(frozen=True, slots=True)
class MessageOrigin:
    """Which conversation a message is of, and when it was said; empty where there is only one, in memory."""

    conversation: str = ""
    at: float | None = None


HERE = MessageOrigin()
_NOTHING_KNOWN = (0, 0)
Shorten = Callable[[Chunk], Chunk]
"""What of a passage is taken in."""


@dataclass(frozen=True, slots=True)
class ChunkEntry:
    """Where a passage stands in the collection."""

    passage: Chunk
    message: int
    origin: MessageOrigin
    step: int
    first: int
    """Number of its first line; lines are counted through the whole collection."""

    @property
    def stop(self) -> int:
        """One past its last line."""
        return self.first + len(self.passage.lines)


class MemoryIndex:
    """Lines of many messages with their words. Messages are added in the order of the conversation."""

    def __init__(self) -> None:
        self.entries: list[ChunkEntry] = []
        self.partners: dict[int, int] = {}
        """The entry of a call for the entry of its result, and the other way round."""
        self.steps: list[list[int]] = []
        """The entries of each step."""
        self.lines: list[str] = []
        self.entry_of: list[int] = []
        """For each line the number of its entry."""
        self.lengths: list[int] = []
        """For each line how many words it has."""
        self.repeated: list[bool] = []
        """For each line whether it stood in an earlier place already."""
        self.postings: dict[str, list[int]] = {}
        """For each word the lines that hold it, in order."""
        self.spread: dict[str, int] = {}
        """For each word how many entries hold it."""
        self._signs: list[tuple[int, int]] = []
        """For each line the signs that were looked for, and those of them that it carries."""
        self._seen: set[str] = set()
        self._waiting: dict[str, deque[tuple[str, int | None]]] = {}

    def add(
        self, number: int, message: Mapping[str, Any], origin: MessageOrigin = HERE, shorten: Shorten | None = None
    ) -> None:
        """Take in the next message, secrets masked; `number` is its id in the log."""
        message = masked(dict(message))
        tool, call_entry = "", None
        if is_result(message):
            queue = self._waiting.get(result_id(message))
            if queue:
                tool, call_entry = queue.popleft()
            if not self.steps:
                self.steps.append([])
        else:
            self.steps.append([])
            self._waiting = defaultdict(deque)
        calls: dict[int, int] = {}
        for passage in chunks_of(message, tool):
            place = self._take(number, shorten(passage) if shorten else passage, origin)
            if passage.is_call:
                calls[passage.call] = place
            elif call_entry is not None:
                self.partners[place] = call_entry
                self.partners[call_entry] = place
        for call in calls_of(message):
            self._waiting[call.id or call.name].append((call.name, calls.get(call.index)))

    def part(self) -> None:
        """What comes next doesn't stand beside what is there: messages between them are missing."""
        self.steps.extend([] for _ in range(APART))
        self._waiting = {}

    def _take(self, number: int, passage: Chunk, origin: MessageOrigin) -> int:
        place = len(self.entries)
        self.entries.append(ChunkEntry(passage, number, origin, len(self.steps) - 1, len(self.lines)))
        self.steps[-1].append(place)
        postings, in_passage = self.postings, set()
        for line in passage.lines:
            words = index_words(line)
            at = len(self.lines)
            self.lines.append(line)
            self.entry_of.append(place)
            self.lengths.append(len(words))
            key = line.casefold()
            self.repeated.append(key in self._seen)
            self._seen.add(key)
            distinct = set(words)
            in_passage |= distinct
            for word in distinct:
                held = postings.get(word)
                if held is None:
                    postings[word] = [at]
                else:
                    held.append(at)
        for word in in_passage:
            self.spread[word] = self.spread.get(word, 0) + 1
        return place

    def signs(self, first: int, stop: int, wanted: int) -> list[int]:
        """Which of the wanted signs the lines from `first` to before `stop` carry; worked out when first asked."""
        if not wanted:
            return [0] * (stop - first)
        known = self._signs
        if stop > len(known):
            known.extend([_NOTHING_KNOWN] * (len(self.lines) - len(known)))
        shown = []
        for line in range(first, stop):
            looked_for, carried = known[line]
            if wanted & ~looked_for:
                carried |= line_features(self.lines[line], wanted & ~looked_for)
                known[line] = (wanted | looked_for, carried)
            shown.append(carried & wanted)
        return shown
