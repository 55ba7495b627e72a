"""`lcm`: the lossless engine. History as a growing tree of summaries, of which the model sees the newest level."""

from leporello.engines.lcm.engine import LcmEngine

__all__ = ["LcmEngine"]
