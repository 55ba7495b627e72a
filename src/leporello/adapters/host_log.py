"""The log of a conversation that another host keeps as a plain list: every message once, under its number for life.

The host hands its list over now and then, and changes it in between: it compacts it, cuts it back, joins neighbouring
messages, strips texts, and loads it again from its own database. So the list is matched with the log line by line. A
message that says the same as one of the log has its number; so has one that the host restated (a result of the same
call, a text with something taken away or put around it) and each part of a message that the host joined. What a
compaction wrote is known by the views in the store, wherever it stands: alone, joined with words of others before or
behind it, or its parts run together to one text. Everything else is new, and is appended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.compaction.assemble import STUB
from leporello.compaction.pipeline import CompactionResult, catch_up
from leporello.compaction.view import OPENING, Item, Origin
from leporello.conversation.artifacts import StoredArchive
from leporello.conversation.compact import stored_compaction
from leporello.events import Span, ViewEntry
from leporello.fingerprint import message_fingerprint
from leporello.lazy_regex import lazy_regex
from leporello.ledger import ledger as snapshot
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, Messages, calls_of, is_result, result_id, role_of, text_of
from leporello.recall.base import ArchivedFold
from leporello.store import Store
from leporello.summaries.fold import RunningState, SummaryTree, ViewFold, read_fold

LEAST_RESTATED = 20
"""Characters of a text that must stand in a known one to be what the host left of it: not "yes" in "yes, but"."""
MARK = lazy_regex(r"<leporello-[a-z]{1,20} [^<>\n]*>")
"""The first line of everything that a compaction writes into a list."""
_WRITTEN_ALONE = ("<leporello-fold ", "<leporello-frontier ", "<leporello-opening ")
"""How a message of ours begins; nodes follow a frontier, and a state may."""


def parts_of(message: Message, written: Callable[[str], str | None]) -> list[tuple[bool, Message]]:
    """The messages that this one was joined of, and whether a compaction wrote them; those are as it wrote them.

    `written` tells what begins with a mark. Only what stands there to the last character is ours.
    """
    role, content = role_of(message), message.get("content")
    if role not in ("user", "assistant") or "<leporello-" not in text_of(message):
        return [(False, message)]
    runs: list[tuple[bool, list[Any]]] = []
    for ours, part in (cut for whole in as_parts(content) for cut in _cut(whole, written)):
        if not runs or runs[-1][0] is not ours or (ours and part["text"].startswith(_WRITTEN_ALONE)):
            runs.append((ours, []))
        runs[-1][1].append(part)
    if not any(ours for ours, _ in runs):
        return [(False, message)]
    # Calls stand in the last message; the host's notes are about what it joined.
    rest = {key: value for key, value in message.items() if not key.startswith("_") and key != "tool_calls"}
    found: list[tuple[bool, Message]] = []
    for ours, parts in runs:
        alone = len(parts) == 1 and (ours or isinstance(content, str))
        said = {"role": role} if ours else rest
        found.append((ours, {**said, "content": parts[0]["text"] if alone else parts}))
    if message.get("tool_calls"):
        if found[-1][0]:
            found.append((False, {**rest, "content": ""}))
        found[-1][1]["tool_calls"] = message["tool_calls"]
    return [(True, message)] if len(found) == 1 and found[0][1]["content"] == content else found


def _cut(part: Any, written: Callable[[str], str | None]) -> Iterator[tuple[bool, Any]]:
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str):
        yield False, part
        return
    end = 0
    for mark in MARK.finditer(text):
        block = written(mark[0])
        if mark.start() < end or not block or not text.startswith(block, mark.start()):
            continue
        if text[end : mark.start()].strip():
            yield False, {**part, "text": text[end : mark.start()].strip()}
        yield True, {"type": "text", "text": block}
        end = mark.start() + len(block)
    if text[end:].strip():
        yield False, {**part, "text": text[end:].strip()}


def restates(known: Message, message: Message) -> bool:
    """Whether the message is the known one as the host has it now: the same call or result, or part of its text."""
    if role_of(known) != role_of(message):
        return False
    if is_result(known) or is_result(message):
        return result_id(known) == result_id(message) != ""
    calls = [call.id for call in calls_of(known)]
    if calls != [call.id for call in calls_of(message)]:
        return False
    one, two = text_of(known).strip(), text_of(message).strip()
    return bool(calls and calls[0]) or (len(two) >= LEAST_RESTATED and two in one)


def rest_around(known: Message, message: Message) -> Message | None:
    """What stands before and behind the known message where the host joined it with others; None where it did not."""
    if role_of(known) != "user" or role_of(message) != "user":
        return None
    one, two = known.get("content"), message.get("content")
    if isinstance(one, list) and isinstance(two, list):
        behind = two[len(one) :]
        return {**message, "content": behind} if one and behind and two[: len(one)] == one else None
    if not isinstance(one, str) or not isinstance(two, str) or not one.strip():
        return None
    before, found, after = f"\n\n{two.strip()}\n\n".partition(f"\n\n{one.strip()}\n\n")
    # "yes" before other words is a message of its own, "yes" among them is not.
    if not found or not (before or after) or (before and len(one.strip()) < LEAST_RESTATED):
        return None
    return {**message, "content": "\n\n".join(filter(None, (before.strip(), after.strip())))}


def as_parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


FOLDS_KEY = "hosted.folds"
"""Folds of version 0.1.0, which had no views of hosted conversations: id, first, last, text, ids of inner folds."""


class HostArchive(StoredArchive):
    """What the recall tools read of such a log."""

    def folds(self) -> Sequence[ArchivedFold]:
        """Oldest first."""
        kept = self._store.state.get(self._conversation, FOLDS_KEY) or []
        earlier = [ArchivedFold(id, Span(first, last), text, tuple(inner)) for id, first, last, text, inner in kept]
        return [*earlier, *super().folds()]


class HostLog:
    """One conversation of another host in a store."""

    def __init__(self, store: Store, conversation: str) -> None:
        self.store = store
        self.id = conversation
        self.archive = HostArchive(store, conversation)
        self._ledger: Ledger | None = None
        self._numbers: dict[bytes, list[int]] = defaultdict(list)
        self._shown: dict[int, Message] = {}
        """Messages that the newest view shows in another form than the log has them."""
        self._generation = -1
        self._blocks: dict[str, str] = {}  # what compactions wrote, by its first line
        self._remember(OPENING)
        self._has_all_blocks = False
        self._last = 0

    # -- the host's list

    def number(self, messages: Messages) -> list[Item]:
        """The list with the numbers of the log. What is new in it is stored."""
        return [item for items in self.number_each(messages) for item in items]

    def number_each(self, messages: Messages) -> list[list[Item]]:
        """The same, for each message its lines: several where the host joined some, none for what nobody said."""
        self._refresh()
        numbering = _Numbering(self, self._last)
        placed = []
        for position, message in enumerate(messages):
            numbering.take(message, messages[position + 1] if position + 1 < len(messages) else None)
            placed.append(numbering.items)
            numbering.items = []
        if numbering.new:
            self.store.log.append(self.id, numbering.new)
            self._refresh()
        return placed

    def knows(self, message: Message) -> bool:
        self._refresh()
        return bool(self.numbers_of(message))

    def numbers_of(self, message: Message) -> Sequence[int]:
        """The numbers under which the log has a message that says the same, ascending."""
        return self._numbers.get(_identity(message), ())

    def forms_of(self, number: int) -> Iterator[Message]:
        """A message as the log has it and, where it differs, as it is shown."""
        yield from (stored.message for stored in self.store.log.pick(self.id, [number]))
        if number in self._shown:
            yield self._shown[number]

    def shows(self, number: int, message: Message) -> bool:
        """Whether the message is the form in which the newest view shows a number, and not the log's."""
        return number in self._shown and _identity(self._shown[number]) == _identity(message)

    def written(self, mark: str) -> str | None:
        """What a compaction wrote that begins with this line."""
        if mark not in self._blocks and not self._has_all_blocks:
            # Not of the newest view: the host went back to an earlier list.
            self._has_all_blocks = True
            for generation in self.store.views.generations(self.id):
                self._remember_folds(generation.entries)
        return self._blocks.get(mark)

    def _refresh(self) -> None:
        """Take up what the log has beyond what was read of it, and the newest view."""
        for stored in self.store.log.iterate(self.id, self._last + 1):
            self._numbers[_identity(stored.message)].append(stored.number)
            self._last = stored.number
        generation = self.store.conversations.pulse(self.id).generation
        if generation == self._generation:
            return
        if self._generation < 0:
            for _, first, last, text, _ in self.store.state.get(self.id, FOLDS_KEY) or []:
                fold = read_fold({"role": "assistant", "content": text})
                if fold is not None and fold.span == Span(first, last):
                    # Otherwise the log was joined of parts, and the text counts in another way than the log.
                    self._remember({"content": text})
        self._generation, self._has_all_blocks = generation, False
        entries = self.store.views.generation(self.id, generation).entries
        self._remember_folds(entries)
        self._shown = {entry.ref: entry.inline for entry in entries if entry.ref is not None and entry.inline}
        for number, message in self._shown.items():
            known = self._numbers[_identity(message)]
            if number not in known:
                known.append(number)
                known.sort()

    def _remember_folds(self, entries: Sequence[ViewEntry]) -> None:
        for entry in entries:
            if entry.fold is not None and entry.inline is not None and read_fold(entry.inline):
                self._remember(entry.inline)

    def _remember(self, message: Message) -> None:
        for part in as_parts(message["content"]):
            if mark := MARK.match(part["text"]):
                self._blocks[mark[0]] = part["text"]

    # -- compactions

    @property
    def ledger(self) -> Ledger:
        """The facts of the whole log, what is folded included."""
        if self._ledger is None:
            kept = self.store.ledgers.latest(self.id, snapshot.VERSION)
            self._ledger = snapshot.load(kept.data) if kept else Ledger(renumbers=False)
        fresh = self.store.log.iterate(self.id, self._ledger.last + 1)
        catch_up(self._ledger, [new_item(stored.number, stored.message) for stored in fresh])
        return self._ledger

    @property
    def next_fold(self) -> int:
        """The number of the next fold: ids of folds are for life."""
        return max((int(fold.id[1:]) for fold in self.archive.folds()), default=0) + 1

    def commit(self, items: Sequence[Item], done: CompactionResult) -> None:
        """Store what a compaction of these items shows from now on, and its folds."""
        last = max((item.fold.span.last if item.fold else item.number for item in items), default=0)
        generation = self.store.conversations.pulse(self.id).generation
        self.store.views.commit(self.id, stored_compaction(done, generation, last, self.ledger))


@dataclass(slots=True)
class _Numbering:
    """The pass through one list. Numbers of messages ascend; what a fold left standing comes right behind it."""

    log: HostLog
    last: int
    """The newest number, new messages of this list included."""
    items: list[Item] = field(default_factory=list)
    new: list[Message] = field(default_factory=list)
    _kept: list[int] = field(default_factory=list)
    _floor: int = 0
    _folded: ViewFold | None = None  # the newest fold so far

    def take(self, message: Message, following: Message | None) -> None:
        if is_result(message) and message.get("content") == STUB:
            # A compaction put it there, and the next one does it again where it is needed.
            return
        parts = parts_of(message, self.log.written)
        if len(parts) > 1 and any(self._repeats(part) for ours, part in parts if ours):
            # Somebody quotes a fold.
            parts = [(False, message)]
        for (ours, part), behind in zip(parts, [*(part for _, part in parts[1:]), following], strict=True):
            if not ours:
                self._place(part, behind)
            elif (fold := read_fold(part)) and not self._repeats(part):
                self.items.append(Item(fold.span.first, part, fold, Origin.WRITTEN))
                self._floor = max(self._floor, fold.span.last)
                self._folded = fold
                self._kept = list(fold.kept)

    def _repeats(self, message: Message) -> bool:
        """Whether the list has shown what a fold stands for."""
        fold = read_fold(message)
        if fold is None or self._folded is None or fold.span.last > self._folded.span.last:
            return False
        return not (isinstance(fold, RunningState) and isinstance(self._folded, SummaryTree))

    def _place(self, message: Message, following: Message | None) -> None:
        number = self._known(message, following)
        if number is not None:
            self._add(number, message, Origin.SHORTENED if self.log.shows(number, message) else Origin.LOG)
            return
        for expected in (*self._kept, self._floor + 1):
            for form in self.log.forms_of(expected):
                rest = rest_around(form, message)
                if restates(form, message) or (rest and self._continues(expected, following)):
                    self._add(expected, message, Origin.SHORTENED)
                    return
                if rest is not None:
                    self._add(expected, form, Origin.LOG)
                    self._place(rest, following)
                    return
        self.last += 1
        plain = {key: value for key, value in message.items() if not key.startswith("_")}
        self.new.append(plain)
        self._kept, self._floor = [], self.last
        self.items.append(new_item(self.last, message))

    def _continues(self, number: int, following: Message | None) -> bool:
        """Whether the next message of the host is the next of the log: then it changed an old message."""
        return following is not None and number + 1 in self.log.numbers_of(following)

    def _known(self, message: Message, following: Message | None) -> int | None:
        numbers = self.log.numbers_of(message)
        found = next((number for number in numbers if number in self._kept or number > self._floor), None)
        if found is None or found <= self._floor + 1 or following is None:
            return found
        # A repeated "go on" must not skip what the host still has: the next message tells which one it is.
        then = self.log.numbers_of(following)
        return None if found + 1 not in then and any(self._floor < number <= found for number in then) else found

    def _add(self, number: int, message: Message, origin: Origin) -> None:
        self._kept = [kept for kept in self._kept if kept > number]
        self._floor = max(self._floor, number)
        self.items.append(Item(number, message, origin=origin))


def new_item(number: int, message: Message) -> Item:
    """A message of the log; a fold in it that this conversation does not know is a summary nobody vouches for."""
    fold = read_fold(message)
    return Item(number, message, unverified=fold.handoff if fold else None)


def _identity(message: Message) -> bytes:
    content = message.get("content")
    # Hosts strip texts when they load them again.
    return message_fingerprint({**message, "content": content.strip()} if isinstance(content, str) else message)
