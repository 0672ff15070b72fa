"""`tunesmith report`: one HTML file about a run, or about several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit
from tunesmith.report import write_comparison, write_report

EXAMPLES = (
    "Examples:\n\n$ tunesmith report runs/rm --out rm.html\n\n"
    "$ tunesmith report runs/mert runs/mira runs/rm --out tuners.html"
)
SEVERAL = Path("runs.html")


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Directories that were given to --run."),
    ],
    out: Annotated[
        Path | None,
        o.option(
            "--out -o",
            "FILE",
            f"Where to write; default: report.html in the run, {SEVERAL} here for several.",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Write one self-contained HTML file: curves, weights, sentences that changed.

    Of several runs, the page has the learning curves in one chart, and a table
    of what each run reached.
    """
    o.writable(out)
    if len(runs) == 1:
        written = write_report(runs[0], out)
    else:
        written = write_comparison(runs, out or SEVERAL)
    if json:
        emit({"report": str(written)})
    else:
        print(written)
