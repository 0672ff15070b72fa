"""One SVG chart, drawn here and only decorated by the page's script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tunesmith.report.scale import Scale, tick_places
from tunesmith.report.wording import escape, fixed

Point = tuple[float, float | None]


@dataclass(frozen=True)
class Size:
    """Width, height and margins in the chart's own units, and the style for its text."""

    style: str
    width: float
    height: float
    left: float
    right: float
    top: float = 14
    bottom: float = 34
    x_ticks: int = 8
    y_ticks: int = 5
    most_marks: int = 40


# Four small charts form two rows, three form one.
NARROW = Size("narrow", 340, 200, 54, 14, x_ticks=5, y_ticks=4)
LOW = Size("medium", 560, 200, 56, 18, y_ticks=4)
MEDIUM = Size("medium", 560, 300, 56, 18)
LARGE = Size("large", 720, 360, 64, 18, x_ticks=10, y_ticks=6, most_marks=12)


@dataclass
class Chart:
    """A chart to which lines, bands, bars and rules are added; `figure` returns its HTML."""

    name: str
    title: str
    size: Size
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    note: str = ""
    y_text: Callable[[float], str] | None = None
    whole_y: bool = False
    x_name: str = "epoch"
    x_marks: Mapping[float, str] | None = None
    """Labels of places on the x axis, if these are not whole numbers."""
    parts: list[str] = field(default_factory=list)
    legend: list[tuple[str, str, str, str]] = field(default_factory=list)
    tips: list[dict[str, object]] = field(default_factory=list)
    x_values: set[float] = field(default_factory=set)

    def __post_init__(self) -> None:
        size = self.size
        self.x = Scale(*self.x_limits, size.left, size.width - size.right)
        self.y = Scale(*self.y_limits, size.height - size.bottom, size.top)

    def line(
        self,
        name: str,
        points: Sequence[Point],
        colour: str,
        text: Callable[[float], str],
        *,
        dashed: bool = False,
        faint: bool = False,
        value: str = "",
        extra: Callable[[float], str] | None = None,
    ) -> None:
        """Draw a line with gaps for unknown values; a faint line has no label."""
        known = [(x, y) for x, y in points if y is not None]
        if not known:
            return
        kind = "line" + (" dashed" if dashed else "") + (" faint" if faint else "")
        head = f'<g class="series" data-name="{escape(name)}" style="--c:var(--{colour})">'
        marks = ""
        if not faint and len(known) <= self.size.most_marks:
            marks = "".join(
                f'<circle cx="{self.x(x):.2f}" cy="{self.y(y):.2f}" r="3.2"/>' for x, y in known
            )
        self.parts.append(f'{head}<path class="{kind}" d="{self._path(points)}"/>{marks}</g>')
        if faint:
            return
        self.legend.append((name, colour, "dashed" if dashed else "solid", value))
        self._tip(
            name,
            colour,
            {x: (text(y) + (extra(x) if extra else ""), round(self.y(y), 2)) for x, y in known},
        )

    def band(self, points: Sequence[tuple[float, float, float]], colour: str) -> None:
        """Fill between a lower and an upper value."""
        if not points:
            return
        there = [f"{self.x(x):.2f},{self.y(high):.2f}" for x, _, high in points]
        back = [f"{self.x(x):.2f},{self.y(low):.2f}" for x, low, _ in reversed(points)]
        self.parts.append(
            f'<path class="band" style="--c:var(--{colour})" d="M{"L".join(there + back)}Z"/>'
        )

    def area(self, points: Sequence[Point], colour: str) -> None:
        """Fill from zero up to a line."""
        self.band([(x, 0.0, y) for x, y in points if y is not None], colour)

    def bars(
        self,
        groups: Sequence[tuple[str, Sequence[Point], str]],
        text: Callable[[float], str],
    ) -> None:
        """Draw bars side by side at each x, one for each group with a value there."""
        places = sorted({x for _, points, _ in groups for x, y in points if y is not None})
        if not places:
            return
        gap = min((b - a for a, b in pairwise(places)), default=1.0)
        room = min(abs(self.x(gap) - self.x(0)) * 0.76, 66.0)
        width = room / len(groups)
        for order, (name, points, colour) in enumerate(groups):
            drawn = []
            for x, y in points:
                if y is None:
                    continue
                left = self.x(x) - room / 2 + order * width
                top, base = self.y(max(y, 0)), self.y(min(y, 0))
                drawn.append(
                    f'<rect x="{left:.2f}" y="{top:.2f}" width="{max(width - 0.6, 0.8):.2f}" '
                    f'height="{max(base - top, 0):.2f}"/>'
                )
            if not drawn:
                continue
            self.parts.append(
                f'<g class="series bars" data-name="{escape(name)}" '
                f'style="--c:var(--{colour})">{"".join(drawn)}</g>'
            )
            self.legend.append((name, colour, "block", ""))
            self._tip(name, colour, {x: (text(y), None) for x, y in points if y is not None})

    def rule(self, value: float, label: str, *, above: bool = True) -> None:
        """Draw a reference level, if it lies inside the chart."""
        if not min(self.y_limits) <= value <= max(self.y_limits):
            return
        y = self.y(value)
        # Close to the upper edge the label would be cut off.
        above = above and y > self.size.top + 16
        baseline = "" if above else ' dominant-baseline="hanging"'
        self.parts.append(
            f'<g class="rule"><line x1="{self.size.left}" x2="{self.size.width - self.size.right}" '
            f'y1="{y:.2f}" y2="{y:.2f}"/><text x="{self.size.width - self.size.right}" '
            f'y="{y - 5 if above else y + 5:.2f}" text-anchor="end"{baseline}>'
            f"{escape(label)}</text></g>"
        )

    def beyond(self, label: str, *, upwards: bool) -> None:
        """Print a note at the edge about a value outside the chart."""
        arrow, y = (
            ("↑", self.size.top + 2) if upwards else ("↓", self.size.height - self.size.bottom - 6)
        )
        baseline = ' dominant-baseline="hanging"' if upwards else ""
        self.parts.append(
            f'<text class="beyond" x="{self.size.left + 8}" y="{y}"{baseline}>'
            f"{arrow} {escape(label)}</text>"
        )

    def ring(self, x: float, y: float, colour: str) -> None:
        """Mark one point as the one that was chosen."""
        self.parts.append(
            f'<circle class="ring" style="--c:var(--{colour})" '
            f'cx="{self.x(x):.2f}" cy="{self.y(y):.2f}" r="7"/>'
        )

    def figure(self, css: str = "", side: str = "") -> str:
        """Return the chart with its caption, legend and the values for its tooltip."""
        size, name = self.size, escape(self.name)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        tip = _script(self._tip_table()) if self.tips else ""
        legend = side or self._legend()
        drawing = (
            f'<div class="plot"><svg class="{size.style}" viewBox="0 0 {size.width} {size.height}" '
            f'role="img" aria-labelledby="{name}-title" tabindex="0">'
            f"{self._axes()}{''.join(self.parts)}</svg></div>"
        )
        inside = f"{drawing}{legend}" if side else f"{legend}{drawing}"
        return (
            f'<figure class="chart {css}" id="{name}"><figcaption><h3 id="{name}-title">'
            f"{escape(self.title)}</h3>{note}</figcaption>{inside}{tip}</figure>"
        )

    # -- inside --------------------------------------------------------------------------

    def _axes(self) -> str:
        size = self.size
        right, base = size.width - size.right, size.height - size.bottom
        y_ticks = self.y.ticks(size.y_ticks, self.whole_y)
        places = 0 if self.whole_y else tick_places(y_ticks)
        drawn = []
        for tick in y_ticks:
            y = self.y(tick)
            label = self.y_text(tick) if self.y_text else fixed(tick, places)
            drawn.append(
                f'<line x1="{size.left}" x2="{right}" y1="{y:.2f}" y2="{y:.2f}"/>'
                f'<text x="{size.left - 8}" y="{y:.2f}" text-anchor="end" '
                f'dominant-baseline="central">{escape(label)}</text>'
            )
        marks = self.x_marks
        if marks is None:
            marks = {x: str(int(x)) for x in self.x.ticks(size.x_ticks, whole=True)}
        for tick, mark in marks.items():
            drawn.append(
                f'<text x="{self.x(tick):.2f}" y="{base + 9}" text-anchor="middle" '
                f'dominant-baseline="hanging">{escape(mark)}</text>'
            )
        drawn.append(
            f'<text class="unit" x="{size.left - 8}" y="{base + 9}" text-anchor="end" '
            f'dominant-baseline="hanging">{escape(self.x_name)}</text>'
        )
        return f'<g class="axes">{"".join(drawn)}</g>'

    def _path(self, points: Sequence[Point]) -> str:
        pen, drawn = "M", []
        for x, y in points:
            if y is None:
                pen = "M"
            else:
                drawn.append(f"{pen}{self.x(x):.2f},{self.y(y):.2f}")
                pen = "L"
        return "".join(drawn)

    def _legend(self) -> str:
        if len(self.legend) < 2:
            return ""
        return f'<ul class="legend">{legend_items(self.legend)}</ul>'

    def _called(self, x: float) -> str:
        """Return what a place on the x axis is called in the tooltip."""
        if self.x_marks is not None:
            return f"{self.x_name} {self.x_marks.get(x, x)}"
        return f"{self.x_name} {int(x)}" if x else "start"

    def _tip(self, name: str, colour: str, values: dict[float, tuple[str, float | None]]) -> None:
        self.x_values.update(values)
        self.tips.append({"name": name, "colour": colour, "values": values})

    def _tip_table(self) -> dict[str, object]:
        xs = sorted(self.x_values)
        rows = []
        for tip in self.tips:
            values = tip["values"]
            assert isinstance(values, dict)
            found = [values.get(x) for x in xs]
            rows.append(
                {
                    "name": tip["name"],
                    "colour": tip["colour"],
                    "text": [item[0] if item else None for item in found],
                    "y": [item[1] if item else None for item in found],
                }
            )
        return {
            "x": [self._called(x) for x in xs],
            "at": [round(self.x(x), 2) for x in xs],
            "top": self.size.top,
            "base": self.size.height - self.size.bottom,
            "rows": rows,
        }


def legend_items(items: Iterable[tuple[str, str, str, str]]) -> str:
    """Return the entries of a legend: swatch, name and optional value."""
    return "".join(
        f'<li data-name="{escape(name)}"><i class="{kind}" style="--c:var(--{colour})"></i>'
        f"<span>{escape(name)}</span>{f'<b>{escape(value)}</b>' if value else ''}</li>"
        for name, colour, kind, value in items
    )


def _script(value: object) -> str:
    # "</script>" and "<!--" are valid JSON, but would end or hide the block.
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'
