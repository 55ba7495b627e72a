"""Failed assertions inside the contract show their values, as in any test file."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("leporello.testing.store_contract")
