"""A folding that is due but can wait: described so that another process can do it while the conversation goes on.

It is bound to a generation. Whoever comes after somebody else folded finds another generation and does nothing, so the
same order may be given, lost and repeated as often as it happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class FoldOrder:
    """What must be known to fold a conversation beside the process that serves it."""

    conversation: str
    generation: int
    model: str = ""
    window: int | None = None
    system_tokens: int = 0
    tool_tokens: int = 0
    recall: bool = False
    """Whether the model can call the recovery tools."""
    trigger: str = "threshold"

    @property
    def key(self) -> str:
        """The same for every order of the same folding."""
        return f"{self.conversation}:{self.generation}"

    def as_dict(self) -> dict[str, Any]:
        """For a queue."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FoldOrder:
        """As it came out of the queue, where a newer version may have put it."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})
