"""The suite that `leporello.store.Store` must pass on every database. Each test opens an empty store."""

from __future__ import annotations

from tests.store.contract.artifacts_and_state import ArtifactsAndStateContract
from tests.store.contract.care import CareContract
from tests.store.contract.inbox import InboxContract
from tests.store.contract.leases import LeasesContract
from tests.store.contract.log import LogContract
from tests.store.contract.observing import ObservingContract
from tests.store.contract.search import SearchContract
from tests.store.contract.sessions import SessionsContract
from tests.store.contract.usage import UsageContract
from tests.store.contract.views import ViewsContract

__all__ = ["StoreContract"]


class StoreContract(
    LogContract,
    SessionsContract,
    ViewsContract,
    UsageContract,
    ArtifactsAndStateContract,
    LeasesContract,
    InboxContract,
    SearchContract,
    CareContract,
    ObservingContract,
):
    """All parts of the contract."""
