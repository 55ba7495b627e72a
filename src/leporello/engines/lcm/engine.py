"""`LcmEngine`: the `ContextEngine` of the lossless tree. It folds when the compressor would; what differs is how."""

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
