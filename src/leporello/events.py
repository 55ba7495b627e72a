"""Structured events: one per compaction attempt, nothing is silent.

A listener is a plain callable. Routine is quiet (nobody has to listen), failures carry their reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from leporello.records import CompactionReport


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """One attempt at a compaction of one conversation."""

    conversation: str
    generation: int
    report: CompactionReport
    compactions: int = 0
    """How often the conversation has been compacted, this time included; 0 where nobody counted."""

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form for logs and `--json`; holds sizes and reasons, never message text."""
        report = asdict(self.report)
        report["outcome"] = self.report.outcome.value
        report["covered"] = str(self.report.covered) if self.report.covered else None
        report["verification"] = {k: v for k, v in report["verification"].items() if k != "dropped"}
        about = {"conversation": self.conversation, "generation": self.generation, "compactions": self.compactions}
        return {"event": "compaction", **about, **report}


Listener: TypeAlias = Callable[[CompactionEvent], None]
