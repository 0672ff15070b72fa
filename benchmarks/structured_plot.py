"""Learning curves of the tagger and the parser: accuracy after each pass, one line per update."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.panels import HEIGHT, STYLE, WIDTH, Panel

LEFTS = {"tagger": 64, "parser": 474}
TITLES = {"tagger": "Tagger, accuracy in %", "parser": "Parser, UAS in %"}
COLOURS = {
    "unchecked": "#8a8a8a",
    "standard": "#d55e00",
    "early": "#009e73",
    "max-violation": "#0072b2",
}


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
    passes = max(len(line) for line in curves.values())
    steps = max(passes - 1, 1)
    panel = Panel(LEFTS[name], [value for line in curves.values() for value in line])
    parts = panel.frame(
        f"{TITLES[name]} (beam {beam})",
        ((number / steps, number + 1) for number in range(passes)),
    )
    for update, line in curves.items():
        points = ((number / steps, value) for number, value in enumerate(line))
        parts.append(panel.line(points, f'stroke="{COLOURS[update]}"'))
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
