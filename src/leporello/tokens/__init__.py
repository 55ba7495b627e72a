"""Token counts: exact where a vocabulary exists, else calibrated estimates, corrected by every real usage."""

from leporello.tokens.calibration import Calibration
from leporello.tokens.counter import TokenCounter
from leporello.tokens.families import Family, family_of
from leporello.tokens.meter import PromptMeter, Reading

__all__ = ["Calibration", "Family", "PromptMeter", "Reading", "TokenCounter", "family_of"]
