"""The conversations of the proxy: found by the fingerprints of a request, continued, or branched after an edit.

A conversation's id is made of the fingerprint after its first request, so that any worker finds it in the store without
an index of its own. The log holds what the client sent; a reply enters it when the client sends it back.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.conversation.compact import CompactionJob, owner_name
from leporello.errors import InputError, NotFound, StoreConflict, StoreError
from leporello.fingerprint import common_length, fingerprints, known_lengths
from leporello.gateway.conversation_cache import MOST_BYTES, OPEN_WEIGHT, ConversationCache
from leporello.gateway.proxy.request import KnownRequests
from leporello.ledger.user_text import title_from
from leporello.messages import Message
from leporello.plugins.host import PluginHost
from leporello.store import Store
from leporello.store.records import Metadata, Pulse
from leporello.summaries.base import Summariser

PLATFORM = "gateway"
SHARDS = 64
ENTRY_WEIGHT = 800
VALUE_WEIGHT = 250
"""Measured: bytes of a conversation that is only recognised, and of each of its messages."""
log = logging.getLogger("leporello.gateway")


@dataclass(slots=True)
class CachedConversation:
    """A conversation this process knows. `guard` is held while a request is rewritten or the conversation compacted.

    The conversation itself is opened only when there is something to decide: most requests are far from any limit, and
    their messages need only be stored.
    """

    id: str
    values: list[bytes]
    size: int = 0
    generation: int = 0
    """Of the view when it was read; raised by compactions."""
    conversation: Conversation | None = None
    turn: int = 0
    """Raised by every request that is rewritten: late figures of an earlier one are told apart."""
    counted: tuple[int, int] = (0, 0)
    """Tokens that a provider counted, and the bytes of the request and answer it counted."""
    fixed: int | None = None
    """Tokens of instructions and tools, as its first request had them."""
    drops_thinking: bool = False
    """The model refused thinking that was signed before the last fold; it is left out from then on."""
    ended: bool = False
    """Its session was ended because nobody used it; the next message reopens it."""
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def weight(self) -> int:
        return ENTRY_WEIGHT + VALUE_WEIGHT * len(self.values) + (self.size * OPEN_WEIGHT if self.conversation else 0)

    @property
    def in_use(self) -> bool:
        return self.guard.locked()

    @property
    def folded(self) -> bool:
        """Whether it was ever compacted."""
        return (self.conversation.runtime.log.view.generation if self.conversation else self.generation) > 0


@dataclass(frozen=True, slots=True)
class ConversationHint:
    """What a request tells about its conversation."""

    start: bytes
    messages: Sequence[Message]
    owner: str
    model: str
    size: int
    values: Sequence[bytes] = ()
    """Fingerprints of the messages, where they are known."""


class ProxiedConversations:
    """Finds, stores and caches proxied conversations; safe to use from several threads."""

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
        """`later` takes compactions that can wait; what is unused for `idle` seconds is read from the store again."""
        self.store = store
        self.settings = settings
        self.plugins = plugins or PluginHost(settings)
        self._summariser = summariser
        self._later = later
        self.requests = KnownRequests(idle)
        self.cache = ConversationCache[CachedConversation](idle, most_bytes, removed=self._unindex)
        self._index: dict[bytes, str] = {}
        """Ids by fingerprint; changed with the cache's lock held."""
        self._shards = [threading.Lock() for _ in range(SHARDS)]

    def take(self, hint: ConversationHint) -> CachedConversation | None:
        """The conversation of a request, its new messages stored; None when only an earlier state is repeated."""
        self.evict()
        values = list(hint.values) or fingerprints(hint.start, hint.messages)
        with self._shards[values[0][0] % SHARDS]:
            found = self._take(hint, values)
        if found is not None:
            found.size = hint.size
            self.cache.touch(found)
            self.evict(found)
        return found

    def look(self, values: Sequence[bytes]) -> CachedConversation | None:
        """The conversation that a list with these fingerprints continues or repeats, without storing anything."""
        if not values:
            return None
        with self._shards[values[0][0] % SHARDS]:
            found, known = self._find(values)
            return found if found is not None and known == len(found.values) else None

    def _take(self, hint: ConversationHint, values: list[bytes]) -> CachedConversation | None:
        for _ in range(3):
            try:
                return self._continue(hint, values)
            except StoreConflict:
                # Another worker was quicker: read what it wrote, and look at the request again.
                with self.cache.lock:
                    for id in {self._index.get(value, "") for value in values}:
                        if (cached := self.cache.get(id)) is not None:
                            self.cache.remove(cached)
        return None

    def _continue(self, hint: ConversationHint, values: list[bytes]) -> CachedConversation | None:
        found, known = self._find(values)
        if found is None:
            found = self._begin(hint, values)
        elif known < len(found.values):
            if known == len(values) and not found.folded:
                return None
            found = self._branch(found, known, values)
        self._append(found, hint.messages[len(found.values) :], values)
        return found

    # -- finding

    def _find(self, values: Sequence[bytes]) -> tuple[CachedConversation | None, int]:
        """The conversation with the longest common beginning, and how long that is.

        Other workers may have begun, continued or compacted it: the store is asked each time, with one small query,
        and only what is new is read.
        """
        cached, known = self._cached(values)
        ids = [id_of(value) for value in reversed(values[known:])] + ([cached.id] if cached is not None else [])
        there = self.store.conversations.pulses(ids)
        for id in ids:
            found = self._up_to_date(id, there[id]) if id in there else None
            if found is not None:
                return found, common_length(found.values, values)
        if cached is not None and cached.id not in there:
            self.cache.remove(cached)
        return None, 0

    def _cached(self, values: Sequence[bytes]) -> tuple[CachedConversation | None, int]:
        for length in known_lengths(values, self._index):
            found = self.cache.get(self._index.get(values[length - 1], ""))
            if found is not None:
                return found, length
        return None, 0

    def _up_to_date(self, id: str, pulse: Pulse) -> CachedConversation | None:
        """A conversation as it is now; None when it is gone."""
        cached = self.cache.get(id)
        if cached is None:
            return self._from_store(id)
        with cached.guard:
            if cached.values and pulse.messages >= len(cached.values):
                fresh = self.store.log.iterate(id, len(cached.values) + 1, pulse.messages)
                self._extend(cached, fingerprints(cached.values[-1], (stored.message for stored in fresh)))
                cached.generation = max(cached.generation, pulse.generation)
                if cached.conversation is not None:
                    cached.conversation.runtime.log.refresh(pulse)
                return cached
        # Deleted, perhaps begun anew.
        self.cache.remove(cached)
        return self._from_store(id)

    def _from_store(self, id: str) -> CachedConversation | None:
        try:
            record = self.store.conversations.resolve(id)
        except NotFound:
            return None
        start = bytes.fromhex(str(record.metadata.custom.get("chain", "")))
        said = [stored.message for stored in self.store.log.iterate(record.id)]
        size = sum(len(str(message)) for message in said)
        values = fingerprints(start, said)
        return self._add(CachedConversation(record.id, values, size, record.generation, ended=not record.open))

    def open(self, cached: CachedConversation, model: str, window: int | None) -> Conversation:
        """The conversation itself, with its ledger and its measure. Call it with the guard held."""
        if cached.conversation is None:
            record = self.store.conversations.resolve(cached.id)
            cached.ended = not record.open
            cached.conversation = Conversation(
                self.store,
                record,
                self.settings,
                model=model,
                window=window,
                summariser=self._summariser(),
                plugins=self.plugins,
            )
            cached.conversation.runtime.hooks.later = self._later
            if self.cache.get(cached.id) is None:
                # It was evicted while its answer was under way: back in the cache it gets closed one day.
                self._add(cached)
            self.cache.touch(cached)
        elif cached.conversation.runtime.sizes.model != model:
            cached.conversation.runtime.use_model(model, window)
        return cached.conversation

    # -- beginning, branching, adding

    def _begin(self, hint: ConversationHint, values: Sequence[bytes]) -> CachedConversation:
        about = Metadata(
            title_from(hint.messages),
            platform=PLATFORM,
            model=hint.model,
            owner=hint.owner,
            custom={"chain": hint.start.hex()},
        )
        record = self.store.conversations.create(id_of(values[-1]), about)
        return self._add(CachedConversation(record.id, []))

    def _branch(self, origin: CachedConversation, at: int, values: Sequence[bytes]) -> CachedConversation:
        """The client changed its history, or went back: from there on it is another conversation."""
        id: str | None = id_of(values[-1])
        if self.store.conversations.exists(str(id)):
            id = None
        record = self.store.conversations.branch(origin.id, at, id)
        return self._add(CachedConversation(record.id, list(origin.values[:at]), origin.size, record.generation))

    def _append(self, cached: CachedConversation, messages: Sequence[Message], values: Sequence[bytes]) -> None:
        if not messages:
            return
        with cached.guard:
            if cached.ended:
                self.store.conversations.reopen(cached.id)
                cached.ended = False
            if cached.conversation is None:
                self.store.log.append(cached.id, list(messages), after=len(cached.values))
            else:
                cached.conversation.runtime.log.append(messages, after=len(cached.values))
            self._extend(cached, values[len(cached.values) :])

    def _extend(self, cached: CachedConversation, fresh: Sequence[bytes]) -> None:
        with self.cache.lock:
            cached.values.extend(fresh)
            self._index.update(dict.fromkeys(fresh, cached.id))

    # -- the cache

    def _add(self, cached: CachedConversation) -> CachedConversation:
        with self.cache.lock:
            self.cache.add(cached)
            for value in cached.values:
                self._index.setdefault(value, cached.id)
        return cached

    def _unindex(self, cached: CachedConversation) -> None:
        for value in cached.values:
            if self._index.get(value) == cached.id:
                del self._index[value]

    def evict(self, keep: CachedConversation | None = None) -> None:
        """Close what was not used for long or weighs too much."""
        self.requests.evict()
        for cached in self.cache.evict(keep):
            with cached.guard:
                # Whoever found it a moment ago opens it anew.
                conversation, cached.conversation = cached.conversation, None
            if conversation is None:
                continue
            try:
                conversation.runtime.suspend()
            except (StoreError, InputError) as error:
                # Deleted or begun anew meanwhile, or the store is busy: no reason to fail the request that made room.
                log.warning('{"problem": "suspend", "kind": "%s"}', type(error).__name__)
            conversation.close()

    def end(self, id: str, before: float, reason: str) -> bool:
        """End the session of a conversation that was last used before a time, unless another worker did.

        Engine and plugins are told once. Returns whether it was ended here; the next request reopens it.
        """
        lease = self.store.turns.acquire(id, owner_name())
        if lease is None:
            return False
        try:
            record = self.store.conversations.resolve(id)
            if not record.open or record.updated_at >= before:
                return False
            cached = self.cache.get(id)
            with cached.guard if cached else nullcontext():
                conversation = cached.conversation if cached else None
                conversation = conversation or Conversation(
                    self.store, record, self.settings, plugins=self.plugins, beside=True
                )
                conversation.runtime.log.refresh()
                conversation.runtime.leave("expired")
                self.store.conversations.end(id, reason)
            if cached is not None:
                self.cache.remove(cached)
            conversation.close()
            return True
        finally:
            self.store.turns.release(lease)


def id_of(value: bytes) -> str:
    """The id of a conversation whose first request ended in this fingerprint."""
    return f"gw-{value.hex()}"
