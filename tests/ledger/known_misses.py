"""Sentences that the reader of rules is known to take wrongly; a test fails when one of them is read rightly."""

from __future__ import annotations

# A fragment of a decision: without what was asked before, it binds nothing.
MISSED = ("ideally just rebase onto main",)
"""Rules that are not found."""
TAKEN = ("Nothing changed since yesterday.",)
"""Sentences that are taken for rules."""
