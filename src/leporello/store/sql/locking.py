"""Finding and holding a conversation: row locks, leases, and fences for owners that lost their lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from leporello.errors import InputError, LeaseLost, NotFound
from leporello.messages import decode_json, encode_json
from leporello.store.base import DEFAULT_LEASE_SECONDS, Fence
from leporello.store.records import Lease
from leporello.store.sql.database import Database, Transaction
from leporello.store.sql.encoding import millis, name_key, pack, seconds, unpack

STORE_ITSELF = 0
"""The conversation key under which the store keeps its own state."""

LARGEST_NUMBER = 2**62
"""Numbers from outside are data, too: beyond this no database can compare them."""

_HOLD = (
    "SELECT c.conversation, c.last, c.generation, c.tip FROM conversations c "
    "WHERE c.conversation = (SELECT d.conversation FROM directory d WHERE d.name = ?)"
)


@dataclass(frozen=True, slots=True)
class Held:
    """A conversation that nobody else changes until the transaction ends."""

    key: int
    last: int
    generation: int
    tip: int


def locate(tx: Transaction, id: str) -> tuple[int, int]:
    """The conversation key and session ordinal of any id."""
    row = tx.row("SELECT conversation, ordinal FROM directory WHERE name = ?", name_key(id))
    if row is None:
        raise unknown(id)
    return row[0], row[1]


def hold(db: Database, tx: Transaction, id: str) -> Held:
    """Find a conversation and keep it for this transaction.

    Always the first lock that is taken, so that no two transactions wait for each other.
    """
    row = tx.row(_HOLD + db.for_update, name_key(id))
    if row is None:
        raise unknown(id)
    return Held(*row)


def unknown(id: str) -> NotFound:
    """The error for an id that no session has."""
    return NotFound(
        f"No conversation or session has the id {shown(id)}. `leporello sessions list` shows what there is."
    )


def shown(text: str) -> str:
    """A text from outside as it may stand in an error message."""
    quoted = ascii(text)
    return quoted if len(quoted) <= 80 else f"{quoted[:76]}...'"


def to_json(value: Any, what: str) -> bytes:
    """JSON bytes that read back as exactly this value; `InputError` for anything JSON can't carry."""
    try:
        data = encode_json(value)
        same = _same(decode_json(data), value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}") from error
    if not same:
        raise InputError(
            f"{what} would not read back as written: use only dicts with text keys, lists, texts and numbers."
        )
    return data


def _same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals itself."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return False


class SqlLeases:
    """`Leases` of the port, of one kind: each kind has a table of its own."""

    def __init__(self, db: Database, table: str = "leases") -> None:
        self._db = db
        self._table = table

    def acquire(self, conversation: str, owner: str, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease | None:
        with self._db.write() as tx:
            held = hold(self._db, tx, conversation)
            now = self._db.now()
            row = tx.row(
                f"SELECT token, owner, expires FROM {self._table} WHERE conversation = ?",  # noqa: S608 - a constant
                held.key,
            )
            if row is not None and row[2] > now and unpack(row[1]) != owner:
                return None
            token = 1 if row is None else row[0] + 1
            expires = now + millis(seconds)
            tx.run(
                f"INSERT INTO {self._table} (conversation, token, owner, expires) VALUES (?, ?, ?, ?) "  # noqa: S608
                "ON CONFLICT (conversation) DO UPDATE SET token = excluded.token, owner = excluded.owner, "
                "expires = excluded.expires",
                *(held.key, token, pack(owner), expires),
            )
        return Lease(conversation, owner, token, expires / 1000)

    def renew(self, lease: Lease, seconds: float = DEFAULT_LEASE_SECONDS) -> Lease:
        with self._db.write() as tx:
            held = hold(self._db, tx, lease.conversation)
            expires = self._db.now() + millis(seconds)
            kept = tx.run(
                f"UPDATE {self._table} SET expires = ? WHERE conversation = ? AND token = ? AND expires > 0",  # noqa: S608
                *(expires, held.key, lease.token),
            )
            if not kept:
                raise LeaseLost(f"The lease of {shown(lease.owner)} on {shown(lease.conversation)} was taken over.")
        return Lease(lease.conversation, lease.owner, lease.token, expires / 1000)

    def release(self, lease: Lease) -> None:
        with self._db.write() as tx:
            held = hold(self._db, tx, lease.conversation)
            tx.run(
                f"UPDATE {self._table} SET expires = 0 WHERE conversation = ? AND token = ?",  # noqa: S608
                *(held.key, lease.token),
            )

    def holder(self, conversation: str) -> Lease | None:
        with self._db.read() as tx:
            key, _ = locate(tx, conversation)
            row = tx.row(f"SELECT owner, token, expires FROM {self._table} WHERE conversation = ?", key)  # noqa: S608
        if row is None or row[2] <= self._db.now():
            return None
        return Lease(conversation, unpack(row[0]), row[1], seconds(row[2]))


_TOKEN = "SELECT t.token FROM turns t WHERE t.conversation = (SELECT d.conversation FROM directory d WHERE d.name = ?)"


class FencedDatabase:
    """`Database` that commits only while the lease of the fence is the newest."""

    def __init__(self, db: Database, fence: Fence) -> None:
        self._db = db
        self._fence = fence

    @property
    def url(self) -> str:
        return self._db.url

    @property
    def read_only(self) -> bool:
        return self._db.read_only

    @property
    def for_update(self) -> str:
        return self._db.for_update

    def now(self) -> int:
        return self._db.now()

    @contextmanager
    def write(self, durable: bool = True) -> Iterator[Transaction]:
        with self._db.write(durable) as tx:
            yield tx
            lease = self._fence.lease
            if lease is None:
                raise LeaseLost("This conversation may only be written to in a turn, and there is none now.")
            row = tx.row(_TOKEN, name_key(lease.conversation))
            if row is None or row[0] != lease.token:
                raise LeaseLost(
                    f"The turn of {shown(lease.owner)} on {shown(lease.conversation)} was taken over. "
                    "Nothing was written; the new holder goes on with it."
                )

    def read(self) -> AbstractContextManager[Transaction]:
        return self._db.read()

    def close(self) -> None:
        """Nothing: whoever opened the database closes it."""
