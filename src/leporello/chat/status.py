"""The status line of a chat. Loaded before the prompt: it imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.present.numbers import bar, money, short_count

GAUGE = 10


@dataclass(frozen=True, slots=True)
class ChatStatus:
    model: str
    used: int = 0
    window: int = 0
    cost: float | None = None
    hit_rate: float | None = None
    folds: int = 0
    warning: str = ""
    """Something that is wrong and stays so; it comes right behind the model."""
    assumed: bool = False
    """Whether the window is a guess."""
    note: str = ""
    """Stands in for the numbers while there are none."""

    @property
    def share(self) -> float:
        """How full the window is, 0 to 1."""
        return min(1.0, self.used / self.window) if self.window else 0.0


def gauge(share: float, width: int = GAUGE) -> str:
    return bar(share, width).ljust(width, "░")


def parts(status: ChatStatus) -> list[str]:
    """The line in pieces, the most important first."""
    pieces = [status.model or "no model"]
    if status.note:
        return [*pieces, status.note]
    if status.warning:
        pieces.append(f"! {status.warning}")
    if status.window:
        used = f"{short_count(status.used)}/{short_count(status.window)}{' assumed' if status.assumed else ''}"
        pieces.append(f"{gauge(status.share)} {status.share:.0%} {used}")
    if status.cost is not None:
        pieces.append(money(status.cost))
    if status.hit_rate is not None:
        pieces.append(f"cache {status.hit_rate:.0%}")
    if status.folds:
        pieces.append(f"folded {status.folds}×")
    return pieces


def status_line(status: ChatStatus, width: int) -> str:
    """As many pieces as fit; the model's name gives way first, then pieces from the right."""
    pieces = parts(status)
    line = " · ".join(pieces)
    if len(line) > width and len(pieces[0]) > 12:
        spare = max(12, len(pieces[0]) - (len(line) - width))
        pieces[0] = pieces[0][: spare - 1] + "…" if spare < len(pieces[0]) else pieces[0]
    while len(pieces) > 1 and len(" · ".join(pieces)) > width:
        pieces.pop()
    if len(pieces) == 1 and status.window:
        # Too narrow for the gauge: how full the window is still stands there in figures.
        figure = f" {status.share:.0%}"
        return pieces[0][: max(0, width - len(figure))] + figure
    return " · ".join(pieces)[:width]
