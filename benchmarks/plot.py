"""Points as an SVG drawing, for figures that a table of numbers does not show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
WIDTH, HEIGHT, LEFT, BASE, TOP = 640, 400, 60, 350, 30
Points = Sequence[tuple[float, float]]


def scatter(path: Path, title: str, axes: tuple[str, str], series: Mapping[str, Points]) -> None:
    """Write a drawing of several series of points over two axes that start at zero."""
    most = [
        max((point[axis] for points in series.values() for point in points), default=1.0)
        for axis in (0, 1)
    ]

    def x(value: float) -> float:
        return LEFT + value / most[0] * (WIDTH - LEFT - 20)

    def y(value: float) -> float:
        return BASE - value / most[1] * (BASE - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle">{escape(title)}</text>',
        f'<path d="M{LEFT},{TOP}V{BASE}H{WIDTH - 20}" fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{BASE + 36}" text-anchor="middle">{escape(axes[0])}</text>',
        f'<text transform="translate(14 {(BASE + TOP) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(axes[1])}</text>',
    ]
    for tick in _ticks(most[0]):
        parts.append(
            f'<text x="{x(tick):.1f}" y="{BASE + 16}" text-anchor="middle">{tick:g}</text>'
        )
    for tick in _ticks(most[1]):
        parts.append(
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        dots = "".join(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2"/>' for a, b in points)
        parts.append(f'<g fill="{colour}" fill-opacity="0.6">{dots}</g>')
        parts.append(
            f'<text x="{LEFT + 16}" y="{TOP + 16 * (number + 1)}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def _ticks(most: float) -> list[float]:
    """Round numbers from zero up to the largest value, six at most."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(step for step in (power / 5, power / 2, power, 2 * power) if most / step <= 5.5)
    return [step * number for number in range(int(most / step) + 1)]
