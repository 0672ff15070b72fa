"""Lines with error bars as a drawing that stands alone: one SVG for each plot of a recipe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean

from tunesmith.experiments.recipe import Plotted, Recipe, System
from tunesmith.experiments.running import Found
from tunesmith.experiments.tables import PAIR, Context, Filled, Several
from tunesmith.report.scale import Scale, around, tick_places

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
DASHES = ("", "6 3", "2 3")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BASE = 720, 420, 62, 190, 40, 370
TESTS = "tests"
"""As `y` of a plot: a line for each test."""
BESIDE = 4
"""How far apart the bars of two lines stand."""
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:14px}"
    ".tick{fill:#666}.grid{stroke:#ddd}"
)


@dataclass(frozen=True)
class Point:
    """A value with the ends of its error bar, if it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


Series = Mapping[str, Sequence[Point]]


def plots(context: Context, asked: Plotted, tables: Sequence[Filled]) -> dict[str, str]:
    """Return a drawing for each task, by its file name."""
    found = {}
    for task in context.recipe.tasks:
        if task not in context.worlds:
            continue
        runs = [
            (system, context.found[task, system.name])
            for system in context.recipe.matching(asked.systems, task)
            if (task, system.name) in context.found
        ]
        series, axis = _series(asked, task, runs, tables)
        if not any(series.values()):
            continue
        title = f"{asked.title or context.recipe.title} ({task})"
        scores = asked.kind != "options" or asked.y == "mean"
        label = context.metric().label if scores else asked.y
        named = plot_name(context.recipe, asked, task)
        found[named] = draw(title, axis, label, series, asked.kind != "passes")
    return found


def plot_name(recipe: Recipe, asked: Plotted, task: str) -> str:
    """Return the file of a plot; those of the same kind are numbered."""
    alike = [each for each in recipe.plots if each.kind == asked.kind]
    number = f"-{alike.index(asked) + 1}" if len(alike) > 1 else ""
    return f"{asked.kind}{number}-{task}.svg"


def _series(
    asked: Plotted,
    task: str,
    runs: Sequence[tuple[System, Sequence[Found]]],
    tables: Sequence[Filled],
) -> tuple[Series, str]:
    if asked.kind == "passes":
        return {system.name: drawn_passes(each, asked.bars) for system, each in runs}, "pass"
    if asked.kind == "options":
        name = asked.x or ""
        tests = list(runs[0][1][0].tests) if runs else []
        return {
            line: sorted(
                (
                    Point(value, cell, low, high)
                    for system, _ in runs
                    if (value := system.number(name)) is not None
                    for cell, low, high in _cells(tables, task, system.name, column)
                ),
                key=lambda point: point.x,
            )
            for line, column in (
                [(test, test) for test in tests] if asked.y == TESTS else [(task, asked.y)]
            )
        }, name
    names = {system.name for system, _ in runs}
    lines: dict[str, list[Point]] = {}
    for table in tables:
        if table.kind != asked.kind:
            continue
        for row in table.rows:
            if row.get("task") == task and row.get("system") in names:
                lines[str(row["system"])] = [
                    Point(float(column), *_drawn(cell))
                    for column, cell in row.items()
                    if column.isdecimal() and cell is not None
                ]
    return lines, {"beams": "width of the beam"}.get(asked.kind, asked.kind)


def drawn_passes(runs: Sequence[Found], bars: bool) -> list[Point]:
    """Return the tuning score by pass: the mean of the seeds; bars: y+ and y-, or the seeds."""
    points = []
    for number in range(max((len(run.epochs) for run in runs), default=0)):
        epochs = [run.epochs[number] for run in runs if number < len(run.epochs)]
        scores = [float(each["score"]) for each in epochs if each.get("score") is not None]
        if not scores:
            continue
        low, high = (min(scores), max(scores)) if len(scores) > 1 else (None, None)
        if bars and all(each.get("corpus", {}).keys() >= PAIR for each in epochs):
            high, low = (
                fmean(each["corpus"][name] for each in epochs) for name in ("oracle", "prediction")
            )
        points.append(Point(number + 1.0, fmean(scores), low, high))
    return points


def _cells(
    tables: Sequence[Filled], task: str, system: str, column: str
) -> list[tuple[float, float | None, float | None]]:
    return [
        _drawn(row[column])
        for table in tables
        for row in table.rows
        if row.get("task") == task and row.get("system") == system and row.get(column) is not None
    ][:1]


def _drawn(cell: object) -> tuple[float, float | None, float | None]:
    if isinstance(cell, Several):
        around = (min(cell.values), max(cell.values)) if len(cell.values) > 1 else (None, None)
        return cell.mean, *around
    assert isinstance(cell, int | float)
    return float(cell), None, None


def draw(title: str, x_name: str, y_name: str, series: Series, even: bool = False) -> str:
    """Return a drawing of lines; with `even`, the values of x stand at equal distances."""
    points = [point for line in series.values() for point in line]
    shown = sorted({point.x for point in points})

    def place(value: float) -> float:
        return float(shown.index(value)) if even else value

    ends = [e for p in points for e in (p.y, p.low, p.high) if e is not None]
    x = Scale(min(place(p.x) for p in points), max(place(p.x) for p in points), LEFT, WIDTH - RIGHT)
    y = Scale(*around(ends), BASE, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
        f'<text class="tick" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{BASE + 38}" '
        f'text-anchor="middle">{escape(x_name)}</text>',
        f'<text class="tick" transform="translate(16 {(BASE + TOP) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_name)}</text>',
    ]
    ticks = y.ticks(6)
    for tick in ticks:
        parts.append(
            f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/><text class="tick" '
            f'x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">'
            f"{tick:.{tick_places(ticks)}f}</text>"
        )
    every = max(1, math.ceil(len(shown) / 12))
    for value in shown[::every]:
        parts.append(
            f'<text class="tick" x="{x(place(value)):.1f}" y="{BASE + 18}" '
            f'text-anchor="middle">{value:g}</text>'
        )
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        path = "L".join(f"{x(place(p.x)):.1f} {y(p.y):.1f}" for p in line)
        parts.append(f'<g stroke="{colour}" fill="none">')
        if path:
            parts.append(f'<path stroke-width="2" stroke-dasharray="{dash}" d="M{path}"/>')
        # Bars of several lines would hide each other.
        aside = BESIDE * (number - (len(series) - 1) / 2)
        for p in line:
            across = x(place(p.x))
            bar = across + aside
            if p.low is not None and p.high is not None:
                low, high = y(p.low), y(p.high)
                parts.append(
                    f'<path d="M{bar:.1f} {low:.1f}V{high:.1f}'
                    f'M{bar - 3:.1f} {low:.1f}h6M{bar - 3:.1f} {high:.1f}h6"/>'
                )
            parts.append(f'<circle cx="{across:.1f}" cy="{y(p.y):.1f}" r="2.5" fill="{colour}"/>')
        at = TOP + 18 * number
        parts.append(
            f'<path stroke-width="2" stroke-dasharray="{dash}" '
            f'd="M{WIDTH - RIGHT + 14} {at}h22"/></g>'
            f'<text x="{WIDTH - RIGHT + 42}" y="{at + 4}">{escape(name)}</text>'
        )
    return "".join([*parts, "</svg>\n"])
