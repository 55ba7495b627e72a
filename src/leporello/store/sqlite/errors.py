"""SQLite's errors as ours: what happened, where, and what to do."""

from __future__ import annotations

import sqlite3

from leporello.errors import InputError, LeporelloError, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "there is no space left on the disk (or a size limit was reached). Free some space",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only. Make it writable or open another store",
    sqlite3.SQLITE_CANTOPEN: "the file or its folder can't be opened. Check that the folder exists and may be written",
    sqlite3.SQLITE_IOERR: "reading or writing the file failed. Check the disk and its free space",
    sqlite3.SQLITE_PERM: "access is not permitted. Check the file's permissions",
    sqlite3.SQLITE_AUTH: "access is not permitted. Check the file's permissions",
    sqlite3.SQLITE_NOLFS: "the disk can't hold a file of this size",
}


def translate(error: sqlite3.Error, path: str, waited: float) -> LeporelloError:
    """The error to raise instead."""
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the kind, the rest the detail.
    kind = code & 0xFF if isinstance(code, int) else None
    if kind in _BUSY:
        return StoreBusy(f"{path} is in use by another process; gave up after {waited:g} s. Try again later.")
    if kind in _CORRUPT:
        return StoreCorrupt(
            f"{path} is damaged or is not a Leporello store ({error}). "
            "Run `leporello doctor` to see what is readable, and restore a backup."
        )
    if kind in _UNAVAILABLE:
        return StoreUnavailable(f"{path}: {_UNAVAILABLE[kind]} ({error}). Nothing was written.")
    if kind == sqlite3.SQLITE_TOOBIG or isinstance(error, sqlite3.DataError):
        return InputError(f"A value is larger than SQLite can store ({error}).", path)
    return StoreError(f"{path}: SQLite refused a statement ({error}).")
