"""Finding and holding a conversation inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leporello.errors import InputError, NotFound
from leporello.messages import decode_json, encode_json
from leporello.store.sql.database import Database, Transaction
from leporello.store.sql.texts import name_key

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
