"""Token counts: exact where a vocabulary exists, else calibrated estimates, corrected by every real usage."""

from leporello.tokens.counter import Calibration, TokenCounter
from leporello.tokens.families import Family, family_of
from leporello.tokens.meter import PromptMeter, PromptSize

__all__ = ["Calibration", "Family", "PromptMeter", "PromptSize", "TokenCounter", "family_of"]
