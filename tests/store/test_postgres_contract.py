"""The store contract on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.store.contract import StoreContract


class TestPostgres(StoreContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
