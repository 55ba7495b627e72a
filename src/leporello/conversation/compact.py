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

from leporello.compaction.pipeline import CompactionResult
from leporello.errors import LeaseLost, StoreConflict, StoreError
from leporello.events import CompactionReport, Outcome
from leporello.ledger import ledger as snapshot
from leporello.ledger.facts import ROLES, storable
from leporello.ledger.ledger import Ledger, Pinned
from leporello.messages import is_result, role_of, text_of
from leporello.redact.messages import masked
from leporello.store import Store
from leporello.store.records import CompactionRecord as StoredCompaction
from leporello.store.records import Lease, LedgerSnapshot, StoredFold, View
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


LEASE_SECONDS = 10.0
HELD = "held"
"""In the details of a report: another process had the lease."""


Compact: TypeAlias = Callable[[View], CompactionResult]


def fold_stored(
    store: Store, conversation: str, ledger: Ledger, compact: Compact, *, engine: str, trigger: str
) -> CompactionReport:
    """One compaction of the stored view; the report says what came of it and is kept by the store."""
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
            return report
        view = store.views.view(conversation)
        ledger.pins = pinned(store, conversation)
        done = compact(view)
        if not done.report.committed:
            store.views.record_attempt(conversation, done.report)
            return done.report
        try:
            store.views.commit(conversation, _stored(done, view, ledger), lease)
        except (StoreConflict, LeaseLost) as error:
            report = replace(done.report, outcome=Outcome.BLOCKED, reason=str(error))
            store.views.record_attempt(conversation, report)
            return report
        return done.report


def pinned(store: Store, conversation: str) -> dict[int, Pinned]:
    """The pinned messages of a conversation, as a fold quotes them."""
    numbers = [pin.number for pin in store.pins.all(conversation)]
    found: dict[int, Pinned] = {}
    for stored in store.log.pick(conversation, numbers):
        role = "tool" if is_result(stored.message) else role_of(stored.message)
        if role in ROLES:
            found[stored.number] = Pinned(role, storable(text_of(masked(stored.message))))
    return found


def _stored(done: CompactionResult, view: View, ledger: Ledger) -> StoredCompaction:
    return StoredCompaction(
        base_generation=view.generation,
        base_last=view.last,
        entries=[item.entry for item in done.shown],
        report=done.report,
        folds=[
            StoredFold(new.fold.id, new.fold.span, new.text, to_json(new.fold.handoff), new.children)
            for new in done.folds
        ],
        ledger=LedgerSnapshot(ledger.last, snapshot.VERSION, snapshot.save(ledger)),
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
