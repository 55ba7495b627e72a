"""Copying a whole store into another: from SQLite to PostgreSQL, and back."""

from __future__ import annotations

from leporello.errors import InputError
from leporello.store.base import Store, Watch
from leporello.store.sql.copying import Copied, copy_database
from leporello.store.sql.store import SqlStore

__all__ = ["Copied", "copy_store"]


def copy_store(source: Store, target: Store, watch: Watch | None = None) -> Copied:
    """Copy every conversation with all it has, and compare each copy with its original.

    Conversations that the target has already, equal in every row, are left alone, so that an interrupted copy can be
    taken up again. `StoreConflict`, before anything is written, when one of them differs.
    """
    if not isinstance(source, SqlStore) or not isinstance(target, SqlStore):
        raise InputError("Only stores on SQLite and PostgreSQL can be copied.")
    return copy_database(source.database, target.database, watch)
