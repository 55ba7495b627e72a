"""The vocabularies themselves: loaded late, total on every text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.tokens import families
from leporello.tokens.families import count


def test_importing_the_counter_loads_no_vocabulary() -> None:
    """Twenty megabytes of vocabulary are for those who count; the others don't wait."""
    program = "import sys, leporello.tokens; sys.exit('splintr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", ["o200k_base", "llama3", "mistral_v1", "gemma3"])
def test_an_empty_text_is_nothing(name: str) -> None:
    """Begin-of-text tokens belong to a request, not to every text."""
    assert count(name, "") == 0
    assert count(name, "a") == 1


@given(st.text(alphabet=st.characters(), max_size=200))
def test_every_text_has_a_count(text: str) -> None:
    """Lone surrogates, control characters and unassigned code points included; at most a token per byte."""
    tokens = count("o200k_base", text)
    assert bool(tokens) == bool(text)
    assert tokens <= len(text.encode("utf-8", "replace"))


@given(text=st.text(alphabet="ab \n你é{}", max_size=400), size=st.integers(5, 60))
def test_slices_of_a_long_text_cost_little(text: str, size: int) -> None:
    """Counting in slices is off by a few tokens per cut at most, and never below the whole."""
    whole = count("o200k_base", text)
    original, families.CHUNK = families.CHUNK, size
    try:
        sliced = count("o200k_base", text)
    finally:
        families.CHUNK = original
    assert whole - 1 <= sliced <= whole + 4 * (len(text) // size + 1)
