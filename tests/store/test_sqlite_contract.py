"""The store contract on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.contract import StoreContract


class TestSqlite(StoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/store.db"
