"""The suite any `leporello.store.base.Store` must pass.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def url(self, tmp_path):
            return f"mystore://{tmp_path}"

        def open(self, url, options=None):
            return my_open(url, options)

Each test opens an empty store. Needs pytest and hypothesis, which Leporello itself does not require.
"""

from __future__ import annotations

from leporello.testing.store_contract.care import CareContract
from leporello.testing.store_contract.chain import ChainContract
from leporello.testing.store_contract.counters import CountersContract
from leporello.testing.store_contract.inbox import InboxContract
from leporello.testing.store_contract.keeps import KeepsContract
from leporello.testing.store_contract.leases import LeasesContract
from leporello.testing.store_contract.log import LogContract
from leporello.testing.store_contract.search import SearchContract
from leporello.testing.store_contract.views import ViewsContract
from leporello.testing.store_contract.watching import WatchingContract

__all__ = ["StoreContract"]


class StoreContract(
    LogContract,
    ChainContract,
    ViewsContract,
    CountersContract,
    KeepsContract,
    LeasesContract,
    InboxContract,
    SearchContract,
    CareContract,
    WatchingContract,
):
    """All parts of the contract."""
