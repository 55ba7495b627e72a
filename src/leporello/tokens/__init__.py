"""Token counts: exact where a vocabulary exists, else calibrated estimates, corrected by every real usage."""

from leporello.tokens.counter import TokenCounter

__all__ = ["TokenCounter"]
