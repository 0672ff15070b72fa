"""`tunesmith report`: one HTML file about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit
from tunesmith.report import write_report

EXAMPLES = "Example:\n\n$ tunesmith report runs/rm --out rm.html"


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The directory that was given to --run.")
    ],
    out: Annotated[
        Path | None,
        o.option("--out -o", "FILE", "Where to write; default: report.html in the run."),
    ] = None,
    json: o.Json = False,
) -> None:
    """Write one self-contained HTML file: curves, weights, sentences that changed."""
    o.writable(out)
    written = write_report(run, out)
    if json:
        emit({"report": str(written)})
    else:
        print(written)
