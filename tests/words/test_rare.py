"""A pattern behind an automaton finds what the pattern finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.ledger.units import BROKEN_RUN, SUMMARY_LINE
from leporello.text_features.rare import RarePattern, widened

PATTERNS = [
    re.compile(r"\bcat\s{1,4}[^\n|;&]{0,12}?(?:token|id_(?:rsa|dsa)\b(?!\.pub)|\.key$)", re.IGNORECASE),
    re.compile(r"(?<![a-z])(?:pin|otp)(?![a-z])|api[_ -]?key|парол|senha\w{0,3}+\d", re.IGNORECASE),
    re.compile(r"^[\w.-]{2,}+@(?:[^\s]{1,3}\.)*de\Z"),
    BROKEN_RUN,
    SUMMARY_LINE,
]
PIECES = [
    "cat",
    "CAT ",
    "\u2003",
    "\x1f",
    "toKen",
    "id_rsa",
    "id_rsa.pub",
    "x.key",
    "pin",
    "o\u0442p",
    "OTP",
    "API key",
]
PIECES += ["FAILED x", "3 failed", "Error: ", "ok 1", "npm ERR"]
PIECES += ["ПАРОЛЬ", "senha\u0663", "p\u0131n", "a.b@", "\u00e9.", "de", "\n", ";", " ", "\ud800", "to\u212aen"]


@given(st.sampled_from(PATTERNS), st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_it_finds_what_the_pattern_finds(pattern: re.Pattern[str], text: str) -> None:
    found = RarePattern(pattern).search(text)
    wanted = pattern.search(text)
    assert (found and found.span()) == (wanted and wanted.span())


def test_it_reads_no_further_than_it_is_told() -> None:
    assert RarePattern(re.compile("b+")).search("aab", 2) is None


def test_a_set_of_other_letters_is_refused() -> None:
    with pytest.raises(AssertionError, match="one byte"):
        widened("[äö]")
