"""The beam curve (Liu & Huang 2014, figure 5): `python -m benchmarks.beams_plot [ROWS] [SVG]`.

ROWS is what `python -m benchmarks search-aware-beams` left in `benchmarks/results`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.panels import HEIGHT, PANEL, STYLE, WIDTH, Panel

HERE = Path(__file__).resolve().parent
ROWS = HERE / "results" / "search-aware-beams.json"
SVG = HERE.parent / "docs" / "search-aware-beams.svg"
LEFT, GAP = 64, 90
COLOURS = {"mert": "#0072b2", "sa-mert": "#d55e00", "kbmira": "#009e73", "sa-mira": "#cc79a7"}
DASHES = ("", "6 4", "2 3")
Row = Mapping[str, Any]


def plot(path: Path, rows: Sequence[Row]) -> None:
    """Draw a panel for each task: a line for each tuner and the beam that it was tuned at."""
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    tuned = sorted({int(row["tuned at"]) for row in rows})
    dashes = {beam: DASHES[place % len(DASHES)] for place, beam in enumerate(tuned)}
    panels = [
        _panel(LEFT + place * (PANEL + GAP), task, [r for r in rows if r["task"] == task], dashes)
        for place, task in enumerate(tasks)
    ]
    width = max(WIDTH, LEFT + len(tasks) * (PANEL + GAP))
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}"><style>{STYLE}</style>'
        f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>{"".join(panels)}'
        f"{_legend(dashes)}</svg>\n",
        encoding="utf-8",
    )


def _panel(left: int, task: str, rows: Sequence[Row], dashes: Mapping[int, str]) -> str:
    beams = sorted({int(key) for row in rows for key in row if key.isdecimal()})
    values = [float(row[str(beam)]) for row in rows for beam in beams if str(beam) in row]
    most = math.log2(beams[-1] / beams[0]) or 1.0
    place = {beam: math.log2(beam / beams[0]) / most for beam in beams}
    panel = Panel(left, values)
    parts = panel.frame(f"{escape(task)}, BLEU by beam", ((place[beam], beam) for beam in beams))
    for row in rows:
        known = [beam for beam in beams if str(beam) in row]
        dash = dashes[int(row["tuned at"])]
        parts.append(
            panel.line(
                ((place[beam], float(row[str(beam)])) for beam in known),
                f'stroke="{COLOURS[row["tuner"]]}" stroke-dasharray="{dash}"',
            )
        )
    return "".join(parts)


def _legend(dashes: Mapping[int, str]) -> str:
    x, y, parts = LEFT, HEIGHT - 18, []
    lines = [(name, colour, "") for name, colour in COLOURS.items()]
    lines += [(f"tuned at beam {beam}", "#444", dash) for beam, dash in dashes.items()]
    for name, colour, dash in lines:
        parts.append(
            f'<path stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" '
            f'd="M{x} {y}h24"/><text x="{x + 30}" y="{y + 4}">{name}</text>'
        )
        x += 54 + 7 * len(name)
    return "".join(parts)


if __name__ == "__main__":
    given = [Path(name) for name in sys.argv[1:]]
    source, target = [*given, *(ROWS, SVG)[len(given) :]]
    plot(target, json.loads(source.read_text(encoding="utf-8"))["rows"])
