"""A compaction of a stored conversation: lease, compact, compare-and-swap, record; or described for later."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

from msgspec import Struct, field

from leporello.cancel import CancelToken
from leporello.compaction.pipeline import CompactionResult
from leporello.conversation.log import ledger_snapshot
from leporello.errors import LeaseLost, StoreConflict, StoreError
from leporello.events import CompactionReport, Listener, Outcome
from leporello.ledger.facts import ROLES, storable
from leporello.ledger.ledger import Ledger, Pinned
from leporello.messages import is_result, role_of, text_of
from leporello.policy.state import GROWTH
from leporello.redact.messages import masked
from leporello.store import Store
from leporello.store.records import CompactionRecord as StoredCompaction
from leporello.store.records import Lease, StoredFold, View
from leporello.summaries.base import LivePrefix, Summariser
from leporello.summaries.handoff import to_json


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What must be known to fold a conversation beside the process that serves it."""

    conversation: str
    generation: int
    model: str = ""
    window: int | None = None
    system_tokens: int = 0
    tool_tokens: int = 0
    recall: bool = False
    """Whether the model can call the recovery tools."""
    trigger: str = "threshold"
    tokens: int = 0
    """Of the request that made it due."""

    def again(self, earlier: CompactionJob | None) -> bool:
        """Whether it is worth trying after an earlier job: of another view, or of one that has grown much since."""
        if earlier is None or earlier.generation != self.generation:
            return True
        return self.tokens >= earlier.tokens * (1 + GROWTH)

    @property
    def key(self) -> str:
        """The same for every order of the same folding."""
        return f"{self.conversation}:{self.generation}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompactionJob:
        """As it came out of the queue, where a newer version may have put it."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


class CompactionHooks(Struct):
    """What a host hangs into the compactions of a conversation."""

    summariser: Summariser | None = None
    """Writes the summaries; None: they are made without a model."""
    listeners: list[Listener] = field(default_factory=list)
    """Told what came of a compaction."""
    before: list[Callable[[str], None]] = field(default_factory=list)
    """Told that a compaction begins, and why."""
    cancel: CancelToken | None = None
    """Stops a compaction that is under way; nothing is changed then, and `Cancelled` is raised."""
    later: Callable[[CompactionJob], bool] | None = None
    """Takes compactions that are due but can wait, to be done beside the conversation; False when it can't."""
    live: Callable[[], LivePrefix | None] | None = None
    """The conversation as its own model has it in its cache; a summary call may begin with it."""
    closing: list[Callable[[], None]] = field(default_factory=list)
    """Called when the conversation is closed."""


LEASE_SECONDS = 10.0
HELD = "held"
"""In the details of a report: another process had the lease, or was done before this one had it."""


Compact: TypeAlias = Callable[[View], CompactionResult]


def fold_stored(
    store: Store,
    conversation: str,
    ledger: Ledger,
    compact: Compact,
    *,
    engine: str,
    trigger: str,
    state: Callable[[int], Mapping[str, Any]],
    decided: int | None = None,
    instead: View | None = None,
) -> tuple[CompactionReport, View]:
    """One compaction of the stored view: what came of it, kept by the store too, and the view there is then.

    `state`: the values that go with a new generation, so that whoever sees the one sees the other. `decided`: the
    generation that was found too large; a newer one is left as it is. `instead`: the view that the last compaction was
    made of, when this one is to stand in its place.
    """
    with _leased(store, conversation) as lease:
        if lease is None:
            report = CompactionReport(
                Outcome.BLOCKED,
                "Another process is folding this conversation.",
                engine,
                trigger=trigger,
                details={HELD: True},
            )
            store.views.record_attempt(conversation, report)
            return report, store.views.view(conversation)
        view = store.views.view(conversation)
        base = instead or view
        expected = view.generation if decided is None else decided
        if view.generation != (instead.generation + 1 if instead else expected):
            reason = "Another process compacted this conversation in the meantime."
            return CompactionReport(Outcome.BLOCKED, reason, engine, trigger=trigger, details={HELD: True}), view
        ledger.pins = pinned(store, conversation)
        done = compact(base)
        if not done.report.committed:
            store.views.record_attempt(conversation, done.report)
            return done.report, store.views.view(conversation)
        try:
            stored = stored_compaction(done, view.generation, base.last, ledger)
            made = store.views.commit(conversation, replace(stored, state=state(view.generation + 1)), lease)
        except (StoreConflict, LeaseLost) as error:
            report = replace(done.report, outcome=Outcome.BLOCKED, reason=str(error))
            store.views.record_attempt(conversation, report)
            return report, store.views.view(conversation)
        return done.report, made


def pinned(store: Store, conversation: str) -> dict[int, Pinned]:
    """The pinned messages of a conversation, as a fold quotes them."""
    numbers = [pin.number for pin in store.pins.all(conversation)]
    found: dict[int, Pinned] = {}
    for stored in store.log.pick(conversation, numbers):
        role = "tool" if is_result(stored.message) else role_of(stored.message)
        if role in ROLES:
            found[stored.number] = Pinned(role, storable(text_of(masked(stored.message))))
    return found


def stored_compaction(done: CompactionResult, generation: int, last: int, ledger: Ledger) -> StoredCompaction:
    """A result as the store takes it; made of the view of a generation, which accounts for messages up to `last`."""
    return StoredCompaction(
        base_generation=generation,
        base_last=last,
        entries=[item.entry for item in done.shown],
        report=done.report,
        folds=[
            StoredFold(new.fold.id, new.fold.span, new.text, to_json(new.fold.handoff), new.children)
            for new in done.folds
        ],
        ledger=ledger_snapshot(ledger),
    )


def owner_name() -> str:
    """Who holds a lease: unique for each attempt, readable for people."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


@contextmanager
def _leased(store: Store, conversation: str) -> Iterator[Lease | None]:
    """The lease while the block runs, renewed in the background; None when another owner holds it."""
    lease = store.leases.acquire(conversation, owner_name(), LEASE_SECONDS)
    if lease is None:
        yield None
        return
    stop = threading.Event()
    keeper = threading.Thread(target=_keep, args=(store, lease, stop), daemon=True)
    try:
        keeper.start()
        yield lease
    finally:
        # An interrupt may fall into the starting: a keeper that goes on would hold the lease for ever.
        stop.set()
        if keeper.ident is not None:
            keeper.join()
        store.leases.release(lease)


def _keep(store: Store, lease: Lease, stop: threading.Event) -> None:
    held = lease
    while not stop.wait(LEASE_SECONDS / 3):
        try:
            held = store.leases.renew(held, LEASE_SECONDS)
        except LeaseLost:
            # The commit will find out by itself and write nothing.
            return
        except StoreError:
            # A database that is away for a moment: the lease may still be ours when it is back.
            continue
