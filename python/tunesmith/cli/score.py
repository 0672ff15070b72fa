"""`tunesmith score`: the scores of an output, as sacreBLEU prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.metrics.significance import confidence
from tunesmith.spaces.reading import read_outputs

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith score output.txt -r ref.A -r ref.B -m bleu,chrf++,ter\n\n"
    "$ tunesmith rerank apply test.nbest -w w.toml | tunesmith score - -r test.ref"
)


def score(
    hypothesis: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="One sentence per line; - is the input.")
    ],
    reference: o.References = None,
    metric: o.MetricNames = "bleu,chrf,ter",
    confidence_: Annotated[
        bool, o.flag("--confidence", "Bootstrap a 95% confidence interval.")
    ] = False,
    keep_blank: o.BlankReferences = False,
    json: o.Json = False,
) -> None:
    """Score an output against one or more references."""
    metrics = {name: o.measured(name, reference) for name in o.metric_list(metric)}
    (texts,), references = read_outputs([hypothesis], reference or [], keep_blank)
    found: dict[str, Any] = {}
    intervals = {}
    rows = table("", "metric", "score", *(["95%"] if confidence_ else []))
    for name, measured in metrics.items():
        stats = measured.stats(texts, references)
        found[name] = measured.score(stats.sum(axis=0))
        cells = [measured.label, f"{found[name]:.2f}"]
        if confidence_:
            interval = confidence(measured, stats)
            intervals[name] = [interval.low, interval.high]
            cells.append(f"[{interval.low:.2f}, {interval.high:.2f}]")
        rows.add_row(*cells)
    if json:
        emit(found | ({"confidence": intervals} if intervals else {}))
        return
    out.print(rows)
    for measured in metrics.values():
        out.print(f"{measured.label}: {measured.signature(len(references[0]))}", style="dim")
