"""Measured rows as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are padded, so that it also reads well in a terminal."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [_line(header, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    return "\n".join(lines + [_line(row, widths) for row in rows])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if value >= 1:
        return f"{value:.2f} s"
    if value >= 0.001:
        return f"{value * 1_000:.1f} ms"
    return f"{value * 1_000_000:.0f} us"
