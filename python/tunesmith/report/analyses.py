"""The analyses of a run: a table each, and the curve of scores by beam."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from tunesmith.report.chart import LOW, Chart
from tunesmith.report.scale import around
from tunesmith.report.story import Story, number, table, text
from tunesmith.report.wording import count, decimals, duration, escape, fixed, metric_name

Entry = Mapping[str, Any]
Row = Mapping[str, Any]

TITLES = {
    "beams": "Score by beam size",
    "lists": "Lists of the best translations",
    "bins": "Bins of the search",
    "reachability": "References that the search can reach",
}
NOTES = {
    "beams": "With a wide enough beam the mean model score grows no more: no search errors are "
    "left.",
    "lists": "The oracle is the best score that choosing from the lists can reach. d′ is 0 where "
    "all translations of a list are equal, 1 where no two share an n-gram; −d counts the n-grams "
    "that two of them share.",
    "bins": "The final bins hold whole translations; their score is that of the output. "
    "Search-aware tuning raises the score of all bins.",
    "reachability": "Pairs of sentence and reference, by the length of the sentence. "
    "<code>maxforce</code> learns from references that the search could produce, as a whole or "
    "from the beginning on. States are hypotheses that lead there, derivations the ways there; "
    "medians.",
}
HEADS = {
    "model_score": "Model score",
    "seconds": "Time",
    "oracle": "Oracle",
    "worst": "Worst",
    "hypotheses": "Hypotheses each",
    "diversity": "Diversity d′",
    "shared": "d",
    "final": "Final bin",
    "every": "All bins",
}
COLOURS = ("blue", "red", "green", "purple", "amber", "sky")


def section(story: Story) -> str:
    """Return what `tunesmith analyse` and `reachability` have added to a run."""
    found = "".join(map(_analysis, range(len(story.analyses)), story.analyses))
    return f'<section id="analyses"><h2>Analyses</h2>{found}</section>' if found else ""


def _analysis(place: int, entry: Entry) -> str:
    rows = [row for row in entry.get("rows", []) if isinstance(row, dict)]
    if not rows:
        return ""
    kind = text(entry.get("analysis")) or "analysis"
    shown, drawn = _plain(rows, entry), ""
    if kind == "reachability":
        shown = _reached(rows, entry)
    elif kind == "beams":
        drawn = _curve(f"beams-{place}", rows, entry)
    options = ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in table(entry.get("options")).items()
        if value != "inf"  # A limit that is off.
    )
    facts = [text(entry.get("source")), options, text(entry.get("signature"))]
    told = " · ".join(escape(fact) for fact in facts if fact)
    note = NOTES.get(kind, "")
    return (
        f'<div class="analysis"><h3>{escape(TITLES.get(kind, kind))}</h3>'
        f'<p class="lead">{note}</p>{drawn}{shown}<p class="more">{told}</p></div>'
    )


def _plain(rows: Sequence[Row], entry: Entry) -> str:
    """Return a table with a column for each key; a name that repeats is shown once."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns: dict[str, list[str]] = {}
    for key in keys:
        values = [row.get(key) for row in rows]
        show = _shown(key, values)
        columns[key] = [show(value) for value in values]
        if key == "weights":
            columns[key] = [
                "" if above == name else name
                for name, above in zip(columns[key], ["", *columns[key]], strict=False)
            ]
    metric = metric_name(entry.get("metric") or "score")
    heads = [metric if key == "score" else HEADS.get(key, _spaced(key)) for key in keys]
    cells = [list(row) for row in zip(*columns.values(), strict=True)]
    return _table(heads, cells, sum(key == "weights" for key in keys))


def _shown(key: str, values: Sequence[object]) -> Callable[[object], str]:
    """Return how a column writes its values: all with the same number of decimals."""
    if key == "seconds":
        return lambda value: escape(duration(number(value)))
    places = decimals(*(value for value in values if isinstance(value, float)))

    def show(value: object) -> str:
        if isinstance(value, float):
            return fixed(value, places)
        if isinstance(value, int):
            return count(value)
        return "–" if value is None else escape(value)

    return show


def _reached(rows: Sequence[Row], entry: Entry) -> str:
    """Return counts of pairs that can be reached, with their shares."""
    least = number(entry.get("least")) or 0
    heads = ["Source words", "Pairs", "Whole", f"{count(least)} words on", "Words reached"]
    heads += ["States", "Derivations", "Given up"]
    total = table(entry.get("total"))
    cells = [_reach(f"{row.get('from')}–{row.get('to')}", row) for row in rows]
    return _table(heads, [*cells, _reach("all", total)] if total else cells, 1, last=bool(total))


def _reach(name: str, row: Row) -> list[str]:
    figures = {key: number(value) or 0.0 for key, value in row.items()}
    pairs, words = figures.get("pairs", 0.0), figures.get("words", 0.0)

    def share(part: float, whole: float) -> str:
        return f"{100 * part / whole:.0f}\u00a0%" if whole else "–"

    return [
        escape(name),
        count(pairs),
        *(
            f"{count(figures.get(key, 0.0))} ({share(figures.get(key, 0.0), pairs)})"
            for key in ("whole", "used")
        ),
        share(figures.get("used_words", 0.0), words),
        count(figures.get("states")),
        count(figures.get("derivations")),
        count(figures.get("given_up", 0.0) + figures.get("too_long", 0.0)),
    ]


def _curve(name: str, rows: Sequence[Row], entry: Entry) -> str:
    """Return the chart of scores by beam, or nothing for a single width."""
    lines: dict[str, list[tuple[float, float]]] = {}
    marks: dict[float, str] = {}
    for row in rows:
        beam, score = number(row.get("beam")), number(row.get("score"))
        if beam is None or score is None or beam < 1:
            continue
        marks[math.log2(beam)] = count(beam)
        lines.setdefault(text(row.get("weights")) or "", []).append((math.log2(beam), score))
    if len(marks) < 2:
        return ""
    scores = [score for line in lines.values() for _, score in line]
    places = decimals(*scores)
    metric = metric_name(entry.get("metric") or "score")
    chart = Chart(
        name,
        f"{metric} by beam size",
        LOW,
        (min(marks), max(marks)),
        around(scores),
        x_name="beam",
        x_marks=dict(sorted(marks.items())),
    )
    for (weights, line), colour in zip(lines.items(), cycle(COLOURS), strict=False):
        chart.line(weights, line, colour, lambda value: fixed(value, places))
    return f'<div class="pair">{chart.figure()}</div>'


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], names: int, *, last: bool = False
) -> str:
    """Return a table whose first columns are names; with `last`, the last row is the sum."""
    css = [' class="name"' if place < names else ' class="n"' for place in range(len(heads))]
    head = "".join(
        f'<th scope="col"{each}>{escape(name)}</th>' for name, each in zip(heads, css, strict=True)
    )
    body = "".join(
        ('<tr class="sum">' if last and place == len(rows) - 1 else "<tr>")
        + "".join(f"<td{each}>{cell}</td>" for cell, each in zip(row, css, strict=True))
        + "</tr>"
        for place, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def _spaced(key: str) -> str:
    return key.replace("_", " ").capitalize()
