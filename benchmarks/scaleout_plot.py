"""A plot of the load as SVG, written by hand: turns and folds a second, and what a turn took beyond the model."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, GAP = 720, 150, 60, 56
STEP = 5.0
"""Seconds that are drawn as one point."""


def plot(turns: Sequence[tuple[float, float]], folds: Sequence[float], seconds: float) -> str:
    """The picture. `turns` are (when, took); `folds` are times of a clock whose start is the first fold's."""
    count = int(seconds / STEP)
    groups: list[list[float]] = [[] for _ in range(count)]
    for when, took in turns:
        groups[min(count - 1, int(when / STEP))].append(took)
    rate = [len(group) / STEP for group in groups]
    middle = [_part(group, 0.5) for group in groups]
    slow = [_part(group, 0.95) for group in groups]
    last = max((when for when, _ in turns), default=0.0)
    ended = folds[-1] if folds else 0.0
    folding = [0.0] * count
    for fold in folds:
        # The last fold stands near the last turn: the clocks of clients and store are brought together there.
        folding[max(0, min(count - 1, int((last - (ended - fold)) / STEP)))] += 1 / STEP
    body = [
        *_panel(0, "turns a second (line), folds a second (bars)", [rate], folding, seconds),
        *_panel(
            1, "seconds beyond the model's own: median (lower line), 95% (upper line)", [middle, slow], [], seconds
        ),
    ]
    height = 2 * (HEIGHT + GAP) + 10
    style = (
        "text{font:12px sans-serif;fill:#555}.a{fill:none;stroke:#2a6f97;stroke-width:2}.b{fill:#e9b872}.g{stroke:#ccc}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f'<rect width="100%" height="100%" fill="#fff"/><style>{style}</style>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _part(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _panel(
    place: int, title: str, lines: Sequence[Sequence[float]], bars: Sequence[float], seconds: float
) -> list[str]:
    top = place * (HEIGHT + GAP) + 30
    most = max([0.1, *(value for line in lines for value in line), *bars])
    wide = WIDTH - LEFT - 20

    def x(number: float, count: int) -> float:
        return round(LEFT + wide * number / max(1, count), 1)

    def y(value: float) -> float:
        return round(top + HEIGHT * (1 - value / most), 1)

    drawn = [f'<text x="{LEFT}" y="{top - 10}">{title}</text>']
    for part in (0.0, 0.5, 1.0):
        drawn.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(part * most)}" y2="{y(part * most)}"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y(part * most) + 4}" text-anchor="end">{part * most:.2g}</text>')
    for number, value in enumerate(bars):
        if value:
            width = round(wide / len(bars) * 0.8, 1)
            drawn.append(
                f'<rect class="b" x="{x(number, len(bars))}" y="{y(value)}" width="{width}" '
                f'height="{round(top + HEIGHT - y(value), 1)}"/>'
            )
    for line in lines:
        points = " ".join(f"{x(number + 0.5, len(line))},{y(value)}" for number, value in enumerate(line))
        drawn.append(f'<polyline class="a" points="{points}"/>')
    for second in range(0, int(seconds) + 1, 30):
        drawn.append(
            f'<text x="{x(second, int(seconds))}" y="{top + HEIGHT + 16}" text-anchor="middle">{second} s</text>'
        )
    return drawn
