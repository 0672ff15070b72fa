"""`tunesmith score`: the scores of an output, as sacreBLEU prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.formats import read_references
from tunesmith.metrics import get_metric
from tunesmith.significance import confidence

EXAMPLES = "Example: tunesmith score output.txt -r ref.A -r ref.B -m bleu,chrf,ter"


def score(
    hypothesis: Annotated[Path, typer.Argument(help="An output, one sentence per line.")],
    reference: o.References = None,
    metric: Annotated[
        str, typer.Option("--metric", "-m", help="One or more, as in bleu,chrf,ter.")
    ] = "bleu,chrf,ter",
    confidence_: Annotated[
        bool, typer.Option("--confidence", help="Bootstrap a 95% confidence interval.")
    ] = False,
    keep_blank: Annotated[
        bool, typer.Option("--keep-blank/--refuse-blank", help="Blank references are taken.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Score an output against one or more references."""
    texts = [lines[0] for lines in read_references([hypothesis], keep_blank=True).texts]
    references = read_references(reference or [], sentences=len(texts), keep_blank=keep_blank).texts
    found = {}
    rows = table("", "metric", "score", *(["95%"] if confidence_ else []), "signature")
    for name in o.metric_list(metric):
        measured = get_metric(name)
        stats = measured.stats(texts, references)
        value = measured.score(stats.sum(axis=0))
        found[name] = value
        interval = confidence(measured, stats) if confidence_ else None
        more = [] if interval is None else [f"[{interval.low:.2f}, {interval.high:.2f}]"]
        rows.add_row(
            measured.label,
            f"{value:.2f}",
            *more,
            measured.signature(len(references[0]) if references else 1),
        )
    if json:
        emit(found)
    else:
        out.print(rows)
