"""The conversations a proxy has seen: found by their chain, continued, branched where a client went another way.

A conversation's id is made of the chain after its first request, so that any worker finds it again in the store without
an index of its own. The log holds what the client sent; a reply enters it when the client sends it back.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.compact import CompactionJob, owner_name
from leporello.errors import NotFound, StoreConflict
from leporello.fingerprint import common_length, fingerprints
from leporello.ledger import ledger as snapshot
from leporello.messages import Message
from leporello.plugins.host import PluginHost
from leporello.store import Store
from leporello.store.records import LedgerSnapshot, Metadata
from leporello.summaries.base import Summariser

PLATFORM = "gateway"
SHARDS = 64
MOST_BYTES = 448 * 1024 * 1024
"""What conversations at hand may weigh; beyond it the longest unused is read from the store when it comes back."""
OPEN_WEIGHT = 9
"""An open conversation takes about so many times the memory of its text: messages, ledger, counts."""
LIVE_WEIGHT = 800
VALUE_WEIGHT = 250
"""Measured: what a conversation takes that is only recognised, and each of its messages."""


@dataclass(slots=True)
class CachedConversation:
    """A conversation at hand. `guard` is held while it is planned or folded.

    The conversation itself is opened only when there is something to decide: most requests are far from any limit, and
    their messages need only be stored.
    """

    id: str
    values: list[bytes]
    size: int = 0
    generation: int = 0
    """Of the view when it was read; raised by compactions."""
    talk: Conversation | None = None
    turn: int = 0
    """Raised by every request that is planned: late figures of an earlier one are told apart."""
    counted: tuple[int, int] = (0, 0)
    """Tokens that a provider counted, and the bytes of the request and answer it counted."""
    thoughtless: bool = False
    """The model refused thinking that was signed before the last fold; it is left out from then on."""
    used: float = field(default_factory=time.monotonic)
    ended: bool = False
    """Its session was ended because nobody used it; the next message takes it up again."""
    guard: threading.Lock = field(default_factory=threading.Lock)
    charged: int = 0
    """What it weighed when that was last counted."""

    @property
    def weight(self) -> int:
        """Roughly the bytes it takes."""
        return LIVE_WEIGHT + VALUE_WEIGHT * len(self.values) + (self.size * OPEN_WEIGHT if self.talk else 0)

    @property
    def folded(self) -> bool:
        """Whether it was ever folded."""
        return (self.talk.view.generation if self.talk else self.generation) > 0


@dataclass(frozen=True, slots=True)
class ConversationHint:
    """What a request tells about its conversation."""

    start: bytes
    messages: Sequence[Message]
    owner: str
    model: str
    window: int | None
    size: int


class ConversationCache:
    """Finds and keeps conversations; safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        summariser: Callable[[], Summariser | None] = lambda: None,
        plugins: PluginHost | None = None,
        later: Callable[[CompactionJob], bool] | None = None,
        idle: float = math.inf,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`later` takes foldings that can wait; what was not used for `idle` seconds is looked up anew."""
        self.store = store
        self.settings = settings
        self.plugins = plugins or PluginHost(settings)
        self._narrator = summariser
        self._later = later
        self._idle = idle
        self._most_bytes = most_bytes
        self._live: OrderedDict[str, CachedConversation] = OrderedDict()
        self._weight = 0
        self._index: dict[bytes, str] = {}
        self._book = threading.Lock()
        self._shards = [threading.Lock() for _ in range(SHARDS)]

    def take(self, wanted: ConversationHint) -> CachedConversation | None:
        """The conversation of a request, its new messages stored; None when only an earlier state is repeated."""
        values = fingerprints(wanted.start, wanted.messages)
        with self._shards[values[0][0] % SHARDS]:
            for _ in range(3):
                try:
                    live = self._taken(wanted, values)
                except StoreConflict:
                    # Another worker was quicker: what it wrote is read, and the request is looked at again.
                    self._forget_all(values)
                    continue
                if live is not None:
                    self._touch(live, wanted.size)
                return live
        return None

    def look(self, start: bytes, messages: Sequence[Message]) -> CachedConversation | None:
        """The conversation a list continues or repeats, without storing anything."""
        values = fingerprints(start, messages)
        if not values:
            return None
        with self._shards[values[0][0] % SHARDS]:
            live, known = self._find(values)
            return live if live is not None and known == len(live.values) else None

    def _taken(self, wanted: ConversationHint, values: list[bytes]) -> CachedConversation | None:
        live, known = self._find(values)
        if live is None:
            live = self._begun(wanted, values)
        elif known < len(live.values):
            if known == len(values) and not live.folded:
                return None
            live = self._branched(live, known, values)
        self._append(live, wanted.messages[len(live.values) :], values)
        return live

    # -- finding

    def _find(self, values: Sequence[bytes]) -> tuple[CachedConversation | None, int]:
        """The conversation with the longest common beginning, and how long that is.

        Other workers may have begun it, gone on with it or folded it: the store is asked each time, with two small
        queries, and only what is new is read.
        """
        live, known = self._at_hand(values)
        ids = [id_of(value) for value in reversed(values[known:])]
        there = self.store.conversations.existing(ids)
        candidates = [id for id in ids if id in there] + ([live.id] if live is not None else [])
        for id in candidates:
            found = self._up_to_date(id)
            if found is not None:
                return found, common_length(found.values, values)
        return None, 0

    def _up_to_date(self, id: str) -> CachedConversation | None:
        """A conversation as it is now; None when it is gone."""
        live = self._live.get(id)
        if live is None:
            return self._from_store(id)
        with live.guard:
            try:
                pulse = self.store.conversations.pulse(id)
            except NotFound:
                pulse = None
            if pulse is not None and live.values and pulse.messages >= len(live.values):
                fresh = self.store.log.iterate(id, len(live.values) + 1, pulse.messages)
                self._extend(live, fingerprints(live.values[-1], (stored.message for stored in fresh)))
                live.generation = pulse.generation
                if live.talk is not None:
                    live.talk.refresh()
                return live
        # Deleted, perhaps begun anew.
        self._forget(live)
        return self._from_store(id)

    def _at_hand(self, values: Sequence[bytes]) -> tuple[CachedConversation | None, int]:
        for place in range(len(values), 0, -1):
            id = self._index.get(values[place - 1])
            live = self._live.get(id) if id is not None else None
            if live is not None and time.monotonic() - live.used > self._idle:
                self._forget(live)
            elif live is not None:
                return live, place
        return None, 0

    def _from_store(self, id: str) -> CachedConversation | None:
        try:
            record = self.store.conversations.resolve(id)
        except NotFound:
            return None
        start = bytes.fromhex(str(record.metadata.custom.get("chain", "")))
        said = [stored.message for stored in self.store.log.iterate(record.id)]
        size = sum(len(str(message)) for message in said)
        return self._keep(
            CachedConversation(record.id, fingerprints(start, said), size, record.generation, ended=not record.open)
        )

    def open(self, live: CachedConversation, model: str, window: int | None) -> Conversation:
        """The conversation itself, with its ledger and its measure. Call it with the guard held."""
        if live.talk is None:
            record = self.store.conversations.resolve(live.id)
            live.talk = Conversation(
                self.store,
                record,
                self.settings,
                model=model,
                window=window,
                summariser=self._narrator(),
                plugins=self.plugins,
            )
            live.talk.later = self._later
            with self._book:
                self._charge(live)
        elif live.talk.model != model:
            live.talk.use_model(model, window)
        return live.talk

    # -- beginning, branching, adding

    def _begun(self, wanted: ConversationHint, values: Sequence[bytes]) -> CachedConversation:
        about = Metadata(
            platform=PLATFORM, model=wanted.model, owner=wanted.owner, custom={"chain": wanted.start.hex()}
        )
        record = self.store.conversations.create(id_of(values[-1]), about)
        return self._keep(CachedConversation(record.id, []))

    def _branched(self, live: CachedConversation, at: int, values: Sequence[bytes]) -> CachedConversation:
        """The client changed its history, or went back: from there on it is another conversation."""
        wanted: str | None = id_of(values[-1])
        if self.store.conversations.exists(str(wanted)):
            wanted = None
        record = self.store.conversations.branch(live.id, at, wanted)
        return self._keep(CachedConversation(record.id, list(live.values[:at]), live.size, record.generation))

    def _append(self, live: CachedConversation, messages: Sequence[Message], values: Sequence[bytes]) -> None:
        if not messages:
            return
        with live.guard:
            if live.ended:
                self.store.conversations.reopen(live.id)
                live.ended = False
            self.store.log.append(live.id, list(messages), after=len(live.values))
            if live.talk is not None:
                live.talk.refresh()
            self._extend(live, values[len(live.values) :])

    def _extend(self, live: CachedConversation, fresh: Sequence[bytes]) -> None:
        live.values.extend(fresh)
        with self._book:
            self._index.update(dict.fromkeys(fresh, live.id))

    # -- what is at hand

    def _keep(self, live: CachedConversation) -> CachedConversation:
        with self._book:
            if (before := self._live.get(live.id)) is not None and before is not live:
                self._drop(before)
            self._live[live.id] = live
            self._charge(live)
            for value in live.values:
                self._index.setdefault(value, live.id)
        return live

    def _touch(self, live: CachedConversation, size: int) -> None:
        """Note that a conversation was used, and let those go that weigh too much together."""
        gone: list[CachedConversation] = []
        live.used = time.monotonic()
        with self._book:
            live.size = size
            if live.id in self._live:
                self._live.move_to_end(live.id)
            self._charge(live)
            for oldest in self._too_many(live):
                self._drop(oldest)
                gone.append(oldest)
        for old in gone:
            self._put_down(old)

    def _charge(self, live: CachedConversation) -> None:
        """Count anew what one conversation weighs; the others have not changed. Call it with the book."""
        if live.id in self._live:
            self._weight += live.weight - live.charged
            live.charged = live.weight

    def _too_many(self, kept: CachedConversation) -> list[CachedConversation]:
        """The longest unused ones whose going makes room; nobody is looked at while there is room."""
        found: list[CachedConversation] = []
        excess = self._weight - self._most_bytes
        for oldest in self._live.values() if excess > 0 else ():
            if excess <= 0:
                break
            if oldest is not kept and not oldest.guard.locked():
                excess -= oldest.charged
                found.append(oldest)
        return found

    def _put_down(self, live: CachedConversation) -> None:
        """Keep what was extracted so far, so that the conversation opens quickly when it comes back."""
        with live.guard:
            # Whoever found it a moment ago opens it anew.
            conversation, live.talk = live.talk, None
        if conversation is None:
            return
        ledger = conversation.engine.ledger
        self.store.ledgers.save(live.id, LedgerSnapshot(ledger.last, snapshot.VERSION, snapshot.save(ledger)))
        conversation.close()

    def end(self, id: str, before: float, reason: str) -> bool:
        """End the session of a conversation that was last used before a time: engine and plugins are told, once,
        whichever worker does it. Whether it was ended here. The next request takes it up again."""
        lease = self.store.turns.acquire(id, owner_name())
        if lease is None:
            return False
        try:
            record = self.store.conversations.resolve(id)
            if not record.open or record.updated_at >= before:
                return False
            live = self._live.get(id)
            with live.guard if live else nullcontext():
                conversation = live.talk if live else None
                conversation = conversation or Conversation(
                    self.store, record, self.settings, plugins=self.plugins, beside=True
                )
                conversation.refresh()
                conversation.leave("expired")
                self.store.conversations.end(id, reason)
            if live is not None:
                self._forget(live)
            conversation.close()
            return True
        finally:
            self.store.turns.release(lease)

    def _forget(self, live: CachedConversation) -> None:
        with self._book:
            self._drop(live)

    def _forget_all(self, values: Sequence[bytes]) -> None:
        with self._book:
            for id in {self._index.get(value) for value in values}:
                if id is not None and id in self._live:
                    self._drop(self._live[id])

    def _drop(self, live: CachedConversation) -> None:
        if self._live.pop(live.id, None) is None:
            return
        self._weight -= live.charged
        live.charged = 0
        for value in live.values:
            if self._index.get(value) == live.id:
                del self._index[value]


def id_of(value: bytes) -> str:
    """The id of a conversation whose first request ended in this chain value."""
    return f"gw-{value.hex()}"
