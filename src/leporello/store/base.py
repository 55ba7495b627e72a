"""The store port: what a conversation needs of a database, in small groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from leporello.events import CompactionReport, Span
from leporello.messages import Message, Messages
from leporello.store.records import (
    ArtifactInfo,
    Attempt,
    Checkup,
    CompactionRecord,
    ConversationFilter,
    ConversationKind,
    ConversationRecord,
    FoldMark,
    Generation,
    Hit,
    Insights,
    InsightsQuery,
    Lease,
    LedgerSnapshot,
    Metadata,
    ModelCall,
    Page,
    Pin,
    Pulse,
    SearchQuery,
    SessionRecord,
    SessionUsage,
    StoredFold,
    StoredMessage,
    UsageTotals,
    View,
)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is opened."""

    wait_seconds: float = 10.0
    """How long a call waits for another process before it raises `StoreBusy`."""
    read_only: bool = False
    synchronous: str = "FULL"
    """SQLite only: `FULL` (an acknowledged write survives a power cut) or `NORMAL`."""
    connections: int = 8
    """PostgreSQL only: the most connections this process opens."""
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message that somebody sent to the agent of a conversation, and how it ended.

    A letter is not yet a message of the log: it may be a command, and it may have to wait.
    """

    conversation: str
    id: str
    """Of the sender's choosing; the same id is the same letter, and can't say something else."""
    number: int
    """Grows in the order of arrival."""
    text: str
    """Empty once the letter has ended: what was said is in the log."""
    attempts: int = 0
    """How often somebody began to answer it."""
    message: int | None = None
    """The number of the message in the log, once it was entered there."""
    cancelled: bool = False
    outcome: Mapping[str, Any] | None = None
    """How it ended; None while it waits or is being answered."""


class Fence:
    """The lease under which somebody writes; it changes from turn to turn, and between turns there is none."""

    __slots__ = ("lease",)

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease


DEFAULT_LEASE_SECONDS = 10.0

Watch: TypeAlias = Callable[[int, int], None]
"""Told during long work: how much is done, and of how much."""


class Conversations(Protocol):
    """Conversations and the sessions they are made of."""

    def create(
        self,
        id: str | None = None,
        metadata: Metadata | None = None,
        kind: ConversationKind = ConversationKind.ROOT,
        parent_session_id: str | None = None,
        created_at: float | None = None,
    ) -> ConversationRecord:
        """A new conversation with its first session. `StoreConflict` when the id is taken; None makes one up.

        A sub-agent names the session that started it; that never makes it a continuation.
        """

    def resolve(self, id: str) -> ConversationRecord:
        """The conversation any id of the chain belongs to, with its tip."""

    def pulse(self, id: str) -> Pulse:
        """How far the conversation has come; one row, for whoever watches it."""

    def exists(self, id: str) -> bool:
        """Whether any conversation or session has this id."""

    def existing(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that a conversation or session has."""

    def session(self, id: str) -> SessionRecord:
        """One session by its own id."""

    def sessions(self, conversation: str) -> list[SessionRecord]:
        """The chain, oldest first."""

    def children(self, session_id: str) -> list[SessionRecord]:
        """Sessions that name this one as their parent: its continuation, branches and sub-agents."""

    def get_compression_tip(self, id: str) -> str:
        """The newest continuation of a session: follows children only where the parent ended by compression and the
        child, of the same conversation, started at or after that end."""

    def update(self, conversation: str, **changes: Any) -> ConversationRecord:
        """Change fields of `Metadata` (title, platform, model, owner, system_prompt, custom) of the tip."""

    def end(self, conversation: str, reason: str, at: float | None = None) -> None:
        """Mark the tip as ended (exit, reset, expiry), now or at a recorded time. Ending twice keeps the first."""

    def reopen(self, conversation: str) -> None:
        """The conversation goes on in the same session."""

    def branch(
        self, conversation: str, at: int, id: str | None = None, created_at: float | None = None
    ) -> ConversationRecord:
        """A new conversation that begins as this one was after message `at`: same numbers, same view."""

    def page(self, where: ConversationFilter | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """A page of conversations, newest activity first; without their system prompts."""

    def delete(self, conversation: str) -> None:
        """Remove a conversation with all it has, indexes included."""

    def prune(self, before: float, dry_run: bool = False) -> list[str]:
        """Delete ended conversations without pins whose last activity is older; returns their ids."""


class Log(Protocol):
    """The messages of a conversation: they are only ever added."""

    def append(
        self, conversation: str, messages: Messages, at: Sequence[float] | None = None, after: int | None = None
    ) -> list[int]:
        """Store messages durably, in order, and return their numbers.

        `at` gives their times (now unless told); `after` is the expected number of the newest message so far:
        `StoreConflict` when somebody else appended since. Never waits for a compaction.
        """

    def message(self, conversation: str, number: int) -> StoredMessage:
        """One message; `NotFound` when the log has no such number."""

    def span(self, conversation: str, span: Span) -> list[StoredMessage]:
        """Messages of a span; numbers beyond the log's end are left out."""

    def pick(self, conversation: str, numbers: Iterable[int]) -> list[StoredMessage]:
        """Messages of some numbers, in the order of the log; numbers that the log does not have are left out."""

    def iterate(self, conversation: str, first: int = 1, last: int | None = None) -> Iterator[StoredMessage]:
        """All messages in order, read in batches."""

    def sizes(self, conversation: str, span: Span) -> list[int]:
        """Bytes of the messages of a span as JSON, in order, without reading them."""

    def count(self, conversation: str) -> int:
        """How many messages; also the newest number."""

    def find(self, conversation: str, message: Message) -> int | None:
        """The first number under which exactly this message is stored."""


class Views(Protocol):
    """What the model sees, and how it came to be."""

    def view(self, conversation: str) -> View:
        """The current view, resolved to messages. Reads nothing that is folded away."""

    def commit(self, conversation: str, compaction: CompactionRecord, lease: Lease | None = None) -> View:
        """Make a compaction visible: end the session with `compression`, start its child, write all of it at once.

        `StoreConflict` when the conversation's generation is not the base any more, `LeaseLost` when the lease was
        taken over; then nothing was written. Messages appended meanwhile stand behind the entries.
        """

    def undo(self, conversation: str) -> View:
        """Show what was shown before the last compaction that is still in force, plus all that came after it.

        Appends a record; `NotFound` when there is nothing to undo.
        """

    def generation(self, conversation: str, generation: int) -> Generation:
        """One step of the view's history."""

    def generations(self, conversation: str) -> list[Generation]:
        """All steps, from the start (0)."""

    def in_force(self, conversation: str, at: int | None = None) -> list[int]:
        """Generations of the compactions that were not taken back, oldest first; as of generation `at`, if told."""

    def record_attempt(self, conversation: str, report: CompactionReport) -> int:
        """Keep the report of an attempt that did not commit; returns its number."""

    def attempts(self, conversation: str, limit: int = 50, before: int | None = None) -> list[Attempt]:
        """Attempts, newest first, committed ones included; those with a number below `before`, if told."""

    def fold(self, conversation: str, fold: str) -> StoredFold:
        """One fold by its id."""

    def folds(self, conversation: str) -> list[StoredFold]:
        """All folds, oldest first."""

    def fold_marks(self, conversation: str) -> list[FoldMark]:
        """The same without texts: a long conversation has folds of many thousand words."""


class Usage(Protocol):
    """Counters that only grow."""

    def add(self, conversation: str, call: ModelCall) -> None:
        """Add one call to the counters of the conversation's newest session, atomically."""

    def session_totals(self, session: str) -> UsageTotals:
        """What one session used."""

    def totals(self, conversation: str) -> UsageTotals:
        """What the whole chain used."""

    def by_session(self, conversation: str) -> list[SessionUsage]:
        """What each session of the chain used, oldest first; sessions without a call are left out."""

    def insights(self, query: InsightsQuery | None = None) -> Insights:
        """Totals by day, model, platform, purpose and tool; compactions."""


class Artifacts(Protocol):
    """Large outputs, whole, by the hash of their bytes; the same bytes are kept once per conversation."""

    def put(self, conversation: str, data: bytes, name: str = "") -> str:
        """Store bytes and return their handle."""

    def get(self, conversation: str, handle: str) -> bytes:
        """The bytes of a handle."""

    def all(self, conversation: str) -> list[ArtifactInfo]:
        """All artifacts of a conversation, oldest first."""


class Pins(Protocol):
    """Messages that must survive."""

    def add(self, conversation: str, number: int, note: str = "") -> None:
        """Pin a message; pinning again replaces the note."""

    def remove(self, conversation: str, number: int) -> bool:
        """Take a pin off; False when there was none."""

    def all(self, conversation: str) -> list[Pin]:
        """All pins in the order of their messages."""


class Ledgers(Protocol):
    """Snapshots of the ledger, so that it need not be rebuilt from the log."""

    def save(self, conversation: str, snapshot: LedgerSnapshot) -> None:
        """Keep a snapshot; only the newest few are kept."""

    def latest(self, conversation: str, version: int, upto: int | None = None) -> LedgerSnapshot | None:
        """The newest snapshot of this version whose base is at most `upto`."""


class State(Protocol):
    """Small durable values by key, per conversation; `conversation=None` is the store's own."""

    def get(self, conversation: str | None, key: str) -> Any:
        """The JSON value, or None."""

    def set(self, conversation: str | None, key: str, value: Any) -> None:
        """Store a JSON value."""

    def add(self, conversation: str | None, key: str, amount: int = 1) -> int:
        """Add to a counter (0 when absent) and return it, atomically."""

    def remove(self, conversation: str | None, key: str) -> bool:
        """Forget a key; False when it was not there."""

    def items(self, conversation: str | None) -> Mapping[str, Any]:
        """All keys and values."""


class Inbox(Protocol):
    """Letters to the agent of a conversation: written down before they are answered, and each answered once."""

    def post(self, conversation: str, id: str, text: str, most: int | None = None) -> InboxMessage:
        """Take a letter in, durably; where the id is known, the letter that is there.

        `LetterConflict` when that one says something else, `InboxFull` when `most` letters wait already.
        """

    def get(self, conversation: str, id: str) -> InboxMessage:
        """One letter; `NotFound` when there is none of this id."""

    def waiting(self, conversation: str, limit: int | None = None) -> list[InboxMessage]:
        """Letters that have not ended, in the order of their arrival."""

    def cancelled(self, conversation: str) -> list[str]:
        """Ids of letters that have not ended and are not wanted any more."""

    def begin(self, conversation: str, id: str) -> InboxMessage:
        """Count an attempt to answer a letter."""

    def enter(self, conversation: str, id: str, message: Message) -> int:
        """Append a letter's message to the log, once and for all; its number, also when it was entered before."""

    def end(self, conversation: str, id: str, outcome: Mapping[str, Any]) -> None:
        """Write down how a letter ended; the first outcome stands."""

    def cancel(self, conversation: str) -> int:
        """Mark all letters that have not ended as not wanted any more; how many that are."""

    def stranded(self, limit: int = 100) -> list[str]:
        """Conversations with letters that have not ended and nobody who holds their turn."""


class Leases(Protocol):
    """The right to compact a conversation, or to answer in it, held by one owner at a time."""

    def acquire(self, conversation: str, owner: str, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease | None:
        """Take the lease if it is free, expired or already this owner's; None while another holds it."""

    def renew(self, lease: Lease, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease:
        """Hold it longer; `LeaseLost` when another owner took it over."""

    def release(self, lease: Lease) -> None:
        """Give it back; nothing happens when it is lost already."""

    def holder(self, conversation: str) -> Lease | None:
        """Who holds it now."""


class Index(Protocol):
    """Full-text search. Indexing lags behind a durable watermark; a search catches up first."""

    def search(self, query: SearchQuery) -> list[Hit]:
        """The best chunks, best first, at most one hit for each chunk of a message."""

    def pending(self) -> int:
        """How many messages are not indexed yet."""

    def catch_up(self, limit: int | None = None) -> int:
        """Index up to `limit` pending messages (all unless told) and return how many it were."""


class Care(Protocol):
    """Looking after the store."""

    def checkup(self, deep: bool = True, watch: Watch | None = None) -> Checkup:
        """Check chains, views, indexes and, when `deep`, every message and artifact against its hash."""

    def repair(self, watch: Watch | None = None) -> Checkup:
        """Rebuild the indexes (nothing else) and check again."""

    def sizes(self) -> Mapping[str, int]:
        """Bytes by table and index."""

    def vacuum(self) -> None:
        """Give unused space back and merge the indexes."""

    def backup(self, destination: str, watch: Watch | None = None) -> None:
        """Write a complete copy to a new SQLite file while the store is in use."""


class Store(Protocol):
    """A place where conversations live. Close it, or use it as a context manager."""

    @property
    def url(self) -> str:
        """What it was opened with, without a password."""

    @property
    def read_only(self) -> bool:
        """Whether writing is impossible."""

    @property
    def conversations(self) -> Conversations: ...

    @property
    def log(self) -> Log: ...

    @property
    def views(self) -> Views: ...

    @property
    def usage(self) -> Usage: ...

    @property
    def artifacts(self) -> Artifacts: ...

    @property
    def pins(self) -> Pins: ...

    @property
    def ledgers(self) -> Ledgers: ...

    @property
    def state(self) -> State: ...

    @property
    def leases(self) -> Leases: ...

    @property
    def inbox(self) -> Inbox: ...

    @property
    def turns(self) -> Leases:
        """The right to answer in a conversation."""

    def behind(self, fence: Fence) -> Store:
        """The same store for the holder of a turn: every write raises `LeaseLost`, and leaves nothing behind, unless
        the lease in the fence is still the newest of `turns`. Searching and taking turns are not fenced."""

    @property
    def index(self) -> Index: ...

    @property
    def care(self) -> Care: ...

    def close(self) -> None:
        """Release all connections; safe to call twice."""

    def __enter__(self) -> Store: ...

    def __exit__(self, *exc: object) -> None: ...
