"""Sentences that the reader of rules is known to take wrongly; a test fails when one of them is read rightly."""

from __future__ import annotations

MISSED = (
    # Fragments of a decision: without what was asked before, they bind nothing.
    "I think by file is too much",
    "ideally just rebase onto main",
)
"""Rules that are not found."""
TAKEN = ("All tests are green in CI.",)
"""Sentences that are taken for rules."""
