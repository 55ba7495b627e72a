"""PostgreSQL's errors as ours: what happened, where, and what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from leporello.errors import InputError, LeporelloError, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable

_BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected, errors.SerializationFailure)
_FULL = (errors.DiskFull, errors.InsufficientResources, errors.ConfigurationLimitExceeded, errors.OutOfMemory)
_DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)
_FORBIDDEN = (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege)
_TOO_LARGE = (errors.ProgramLimitExceeded, errors.NumericValueOutOfRange)


def translate(error: psycopg.Error, url: str, waited: float, committing: bool = False) -> LeporelloError:
    """The error to raise instead; `committing` says that the answer to a COMMIT never came."""
    if isinstance(error, PoolTimeout | TooManyRequests):
        return StoreUnavailable(f"No connection to {url} within {waited:g} s. Check that the server runs and has room.")
    if isinstance(error, _BUSY):
        return StoreBusy(f"{url}: another worker held what was needed for more than {waited:g} s. Try again.")
    if isinstance(error, _DAMAGED):
        return StoreCorrupt(f"{url} is damaged ({_text(error)}). Restore a backup.")
    if isinstance(error, _FULL):
        return StoreUnavailable(f"{url}: the server has no space or memory left ({_text(error)}). Nothing was written.")
    if isinstance(error, _FORBIDDEN):
        return StoreUnavailable(f"{url} can't be written: it is read-only ({_text(error)}). Nothing was written.")
    if isinstance(error, _TOO_LARGE):
        return InputError(f"A value is larger than PostgreSQL can store ({_text(error)}).", url)
    if isinstance(error, psycopg.OperationalError | PoolClosed):
        outcome = "Whether the last write arrived is unknown: look before you repeat it." if committing else ""
        return StoreUnavailable(f"{url}: the connection was lost ({_text(error)}). {outcome or 'Nothing was written.'}")
    return StoreError(f"{url}: PostgreSQL refused a statement ({_text(error)}).")


def _text(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
