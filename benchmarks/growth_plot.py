"""A picture of growth: time and memory of each stage over the size of the text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 860, 360
PANEL, TOP, BOTTOM = 300, 44, 300
LEFTS = (64, 454)
COLOURS = {
    "text": "#8a8a8a",
    "align": "#0072b2",
    "symmetrise": "#56b4e9",
    "lm": "#009e73",
    "words": "#cc79a7",
    "phrases": "#e69f00",
    "hiero": "#d55e00",
    "all": "#000000",
}
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:13px}"
    ".tick{fill:#666}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
    ".linear{stroke:#999;stroke-dasharray:4 4;fill:none}"
)


@dataclass(frozen=True)
class Growth:
    """One size of text: CPU seconds and megabytes of each stage."""

    pairs: int
    stages: dict[str, tuple[float, float]]

    @property
    def cpu(self) -> float:
        """Return the time of all stages."""
        return sum(cpu for cpu, _ in self.stages.values())

    @property
    def peak(self) -> float:
        """Return the memory of the stage that takes most."""
        return max(peak for _, peak in self.stages.values())


def plot(seen: Sequence[Growth]) -> str:
    """Return an SVG with a panel for time and one for memory."""
    stages = list(seen[0].stages)
    time = {stage: [growth.stages[stage][0] for growth in seen] for stage in stages}
    memory = {stage: [growth.stages[stage][1] for growth in seen] for stage in stages}
    time["all"] = [growth.cpu for growth in seen]
    pairs = [growth.pairs for growth in seen]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}"><style>{STYLE}</style>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _panel(LEFTS[0], "CPU seconds by stage", pairs, time),
        _panel(LEFTS[1], "Peak memory by stage, MB", pairs, memory),
        _legend([*stages, "all"]),
        "</svg>\n",
    ]
    return "".join(parts)


def _panel(left: float, title: str, pairs: Sequence[int], lines: dict[str, list[float]]) -> str:
    values = [value for line in lines.values() for value in line]
    across = _scale(min(pairs), max(pairs), left, left + PANEL)
    up = _scale(min(values), max(values), BOTTOM, TOP)
    parts = [f'<text class="title" x="{left}" y="{TOP - 18}">{title}</text>']
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    for power in range(low, high + 1):
        value = 10.0**power
        if min(values) <= value <= max(values):
            y = up(value)
            parts.append(
                f'<path class="grid" d="M{left} {y:.1f}h{PANEL}"/>'
                f'<text class="tick" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">'
                f"{value:g}</text>"
            )
    for count in pairs:
        x = across(count)
        parts.append(
            f'<path class="grid" d="M{x:.1f} {TOP}V{BOTTOM}"/>'
            f'<text class="tick" x="{x:.1f}" y="{BOTTOM + 18}" text-anchor="middle">'
            f"{count // 1000}k pairs</text>"
        )
    # What growing with the text would look like, from the topmost line's beginning.
    start = max(line[0] for line in lines.values())
    reach = min(max(pairs) / min(pairs), max(values) / start)
    parts.append(
        f'<path class="linear" d="M{across(min(pairs)):.1f} {up(start):.1f}'
        f'L{across(min(pairs) * reach):.1f} {up(start * reach):.1f}"/>'
    )
    for stage, line in lines.items():
        points = [
            f"{across(count):.1f} {up(value):.1f}" for count, value in zip(pairs, line, strict=True)
        ]
        parts.append(
            f'<path class="line" stroke="{COLOURS.get(stage, "#888")}" d="M{"L".join(points)}"/>'
        )
    return "".join(parts)


def _legend(stages: Sequence[str]) -> str:
    parts = []
    x, y = LEFTS[0], HEIGHT - 18
    for stage in [*stages, "linear"]:
        stroke = f'stroke="{COLOURS.get(stage, "#888")}" stroke-width="3"'
        look = 'class="linear"' if stage == "linear" else stroke
        parts.append(f'<path {look} d="M{x} {y}h16"/><text x="{x + 22}" y="{y + 4}">{stage}</text>')
        x += 48 + 7 * len(stage)
    return "".join(parts)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return a logarithmic scale with a little room at both ends."""
    span = math.log(high / low) or 1.0
    return lambda value: start + (end - start) * (0.04 + 0.92 * math.log(value / low) / span)
