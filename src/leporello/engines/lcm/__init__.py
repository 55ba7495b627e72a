"""`lcm`: the lossless engine. History as a growing tree of summaries, of which the model sees the newest level."""

from __future__ import annotations

from leporello.compaction.pipeline import Folder
from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm.folder import fold_into_nodes


class LcmEngine(ContextCompressor):
    """Shows the past as a frontier of summaries that stay as they are, byte for byte, until they are merged."""

    @property
    def name(self) -> str:
        """The name under which the config selects it."""
        return "lcm"

    def _folder(self) -> Folder:
        return fold_into_nodes
