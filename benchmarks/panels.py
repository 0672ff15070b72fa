"""Panels of line plots: their size, their style, their grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

WIDTH, HEIGHT = 860, 340
PANEL, TOP, BOTTOM = 320, 44, 270
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:13px}"
    ".tick{fill:#666}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
)


class Panel:
    """A panel that begins at `left` and is high enough for all values."""

    def __init__(self, left: int, values: Sequence[float]) -> None:
        self.left, self._low = left, min(values)
        self._span = (max(values) - self._low) or 1.0

    def _x(self, share: float) -> float:
        return self.left + PANEL * (0.03 + 0.94 * share)

    def _y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (0.04 + 0.92 * (value - self._low) / self._span)

    def frame(self, title: str, ticks: Iterable[tuple[float, object]]) -> list[str]:
        """Return title and grid; a tick is where it stands, as a share of the width, and a name."""
        parts = [f'<text class="title" x="{self.left}" y="{TOP - 18}">{title}</text>']
        for share, name in ticks:
            parts.append(
                f'<text class="tick" x="{self._x(share):.1f}" y="{BOTTOM + 18}" '
                f'text-anchor="middle">{name}</text>'
            )
        for fifth in range(5):
            value = self._low + self._span * fifth / 4
            parts.append(
                f'<path class="grid" d="M{self.left} {self._y(value):.1f}h{PANEL}"/><text '
                f'class="tick" x="{self.left - 8}" y="{self._y(value) + 4:.1f}" '
                f'text-anchor="end">{value:.1f}</text>'
            )
        return parts

    def line(self, points: Iterable[tuple[float, float]], style: str) -> str:
        """Return a line through points, each a share of the width and a value."""
        path = "L".join(f"{self._x(share):.1f} {self._y(value):.1f}" for share, value in points)
        return f'<path class="line" {style} d="M{path}"/>'
