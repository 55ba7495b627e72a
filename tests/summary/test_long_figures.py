"""Figures of any length in a summary."""

from __future__ import annotations

import pytest

from leporello.text_features.sentences import amounts, any_same


@pytest.mark.parametrize("text", ["0" * 2_000, "1" + "0" * 2_000, "9" * 2_000, "1." + "0" * 2_000])
def test_a_number_longer_than_a_float_is_read(text: str) -> None:
    """A run of digits is no reason to fail: a summary may quote one."""
    assert len(amounts(text)) == 1


def test_a_number_longer_than_a_float_is_no_other_number() -> None:
    assert not any_same(amounts("9" * 400)[0], amounts("9 of 12"))
