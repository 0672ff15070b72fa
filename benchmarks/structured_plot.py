"""Learning curves of the tagger and the parser: accuracy after each pass, one line per update."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 860, 340
PANEL, TOP, BOTTOM = 320, 44, 270
LEFTS = {"tagger": 64, "parser": 474}
TITLES = {"tagger": "Tagger, accuracy in %", "parser": "Parser, UAS in %"}
COLOURS = {
    "unchecked": "#8a8a8a",
    "standard": "#d55e00",
    "early": "#009e73",
    "max-violation": "#0072b2",
}
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:13px}"
    ".tick{fill:#666}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
)


def plot(path: Path, name: str, curves: dict[str, list[float]], beam: int) -> None:
    """Draw one panel anew; the other is kept as the file has it."""
    known = _kept(path)
    rounded = {update: [round(value, 2) for value in line] for update, line in curves.items()}
    known[name] = {"beam": beam, "curves": rounded}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}"><style>{STYLE}</style>',
        f"<desc>{json.dumps(known)}</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        *(_panel(each, known[each]["beam"], known[each]["curves"]) for each in sorted(known)),
        _legend(),
        "</svg>\n",
    ]
    path.write_text("".join(parts), encoding="utf-8")


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of both panels, which the drawing itself carries."""
    if not path.exists():
        return {}
    found = re.search(r"<desc>(.*?)</desc>", path.read_text(encoding="utf-8"))
    return dict(json.loads(found[1])) if found else {}


def _panel(name: str, beam: int, curves: dict[str, list[float]]) -> str:
    left = LEFTS[name]
    values = [value for line in curves.values() for value in line]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    passes = max(len(line) for line in curves.values())

    def x(number: int) -> float:
        return left + PANEL * (0.03 + 0.94 * number / max(passes - 1, 1))

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (0.04 + 0.92 * (value - low) / span)

    parts = [f'<text class="title" x="{left}" y="{TOP - 18}">{TITLES[name]} (beam {beam})</text>']
    for number in range(passes):
        parts.append(
            f'<text class="tick" x="{x(number):.1f}" y="{BOTTOM + 18}" text-anchor="middle">'
            f"{number + 1}</text>"
        )
    for fifth in range(5):
        value = low + span * fifth / 4
        parts.append(
            f'<path class="grid" d="M{left} {y(value):.1f}h{PANEL}"/><text class="tick" '
            f'x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>'
        )
    for update, line in curves.items():
        points = "L".join(f"{x(number):.1f} {y(value):.1f}" for number, value in enumerate(line))
        parts.append(f'<path class="line" stroke="{COLOURS[update]}" d="M{points}"/>')
    return "".join(parts)


def _legend() -> str:
    x, y = LEFTS["tagger"], HEIGHT - 18
    parts = []
    for update, colour in COLOURS.items():
        parts.append(
            f'<path stroke="{colour}" stroke-width="3" d="M{x} {y}h16"/>'
            f'<text x="{x + 22}" y="{y + 4}">{update}</text>'
        )
        x += 48 + 7 * len(update)
    parts.append(f'<text class="tick" x="{x + 20}" y="{y + 4}">over passes</text>')
    return "".join(parts)
