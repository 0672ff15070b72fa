"""The page itself: one HTML file with its style and script inside."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.report import analyses, charts, sections, several
from tunesmith.report.story import Story, read_story, text
from tunesmith.report.wording import escape, metric_name
from tunesmith.runs import RunDirectory


def write_report(
    run_dir: Path | str, out: Path | str | None = None, live: float | None = None
) -> Path:
    """Write the report of a run and return its path, by default `report.html` in the run.

    With `live`, the page of an unfinished run reloads itself after that many seconds. Raise if
    the directory holds no run or its events are not JSON.
    """
    run = RunDirectory(run_dir).open()
    path = run.path / "report.html" if out is None else Path(out)
    page = render_report(read_story(run), live).encode("utf-8")
    with atomic_write(path) as stream:
        stream.write(page)
    return path


def write_comparison(runs: Sequence[Path | str], out: Path | str) -> Path:
    """Write one page about several runs and return its path; raise as `write_report` does.

    A run is called by the last part of its path, or by all of it where two would be called alike.
    """
    whole = [Path(run).resolve() for run in runs]
    lasts = [path.name for path in whole]
    stories: dict[str, Story] = {}
    for run, path in zip(runs, whole, strict=True):
        if whole.count(path) > 1:
            raise InputError("the same run twice", str(run), remedy="name each run once")
        name = path.name if lasts.count(path.name) == 1 else str(run)
        stories[name] = read_story(RunDirectory(run).open())
    title = f"{len(stories)} runs · Tunesmith"
    page = _page(title, several.body(stories)).encode("utf-8")
    with atomic_write(Path(out)) as stream:
        stream.write(page)
    return Path(out)


def render_report(story: Story, live: float | None = None) -> str:
    """Return the report as HTML that needs no network."""
    refresh = (
        f'<meta http-equiv="refresh" content="{max(1, round(live))}">'
        if live is not None and story.end is None
        else ""
    )
    return _page(_title(story), _body(story, live), refresh)


def _page(title: str, body: str, refresh: str = "") -> str:
    style, script = _asset("style.css"), _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Even if some text were not escaped, the browser would run only our script.
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'{refresh}<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>\n{style}</style></head>\n<body><main>\n{body}\n</main>\n"
        f"<script>{script}</script></body></html>\n"
    )


def _body(story: Story, live: float | None) -> str:
    pairs = [chart for chart in (charts.learning_curve(story), charts.gain_bars(story)) if chart]
    small = charts.small_charts(story)
    columns = 3 if len(small) == 3 else 2
    drawn = (
        (f'<div class="pair">{"".join(pairs)}</div>' if pairs else "")
        + charts.weight_lines(story)
        + (f'<div class="small-charts in-{columns}">{"".join(small)}</div>' if small else "")
        + sections.epochs_table(story)
    )
    parts = [
        sections.header(story),
        sections.status(story, live),
        sections.summary(story),
        f'<section id="curves"><h2>Epoch by epoch</h2>{drawn}</section>' if drawn else "",
        analyses.section(story),
        sections.weights_table(story),
        sections.sentences(story),
        sections.configuration(story),
    ]
    return "\n".join(part for part in parts if part)


def _title(story: Story) -> str:
    preset = text(story.start.get("preset")) or "run"
    return f"{preset} for {metric_name(story.start.get('metric', 'a metric'))} · Tunesmith"


def _asset(name: str) -> str:
    return resources.files("tunesmith.report").joinpath(name).read_text(encoding="utf-8")
