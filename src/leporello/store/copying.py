"""Copying a whole store into another: from SQLite to PostgreSQL, and back."""

from __future__ import annotations

from leporello.errors import InputError
from leporello.store.base import Store
from leporello.store.sql.copying import Copied, Progress, copy_database
from leporello.store.sql.store import SqlStore

__all__ = ["Copied", "Progress", "copy_store"]


def copy_store(source: Store, target: Store, progress: Progress | None = None) -> Copied:
    """Copy every conversation with all it has, and compare each copy with its original.

    `StoreConflict` when the target already has one of the ids: what was copied before stays, whole.
    """
    if not isinstance(source, SqlStore) or not isinstance(target, SqlStore):
        raise InputError("Only stores on SQLite and PostgreSQL can be copied.")
    return copy_database(source.database, target.database, progress)
