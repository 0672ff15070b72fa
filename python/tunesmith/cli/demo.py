"""`tunesmith demo`: the whole of it on sample lists, in under a minute."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import Watch, emit, note, out, table
from tunesmith.errors import InputError
from tunesmith.metrics import get_metric
from tunesmith.reading import read_pools
from tunesmith.report import write_report
from tunesmith.sample import write_sample
from tunesmith.significance import paired_bootstrap
from tunesmith.tuning import tune

EXAMPLES = "Example: tunesmith demo --dir demo"
TUNERS = ("mert", "kbmira", "rm")


def demo(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where to leave the files; else a new folder.")
    ] = None,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Make sample lists, tune them three ways, apply the weights and show what changed."""
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise InputError("the folder is not empty", str(folder), remedy="name a new one")
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="tunesmith-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    note(f"1. sample lists: 300 sentences × 30 hypotheses for tuning, 300 for testing, in {folder}")
    write_sample(folder)
    dev = read_pools(folder / "dev.nbest.gz", folder / "dev.ref")
    test = read_pools(folder / "test.nbest.gz", folder / "test.ref")
    metric = get_metric("bleu")
    note(
        f"\n2. tune for BLEU (sentences are ordered by the system's own score at first)\n"
        f"   $ tunesmith rerank tune {folder}/dev.nbest.gz -r {folder}/dev.ref -t mert …"
    )
    rows = table("", "tuner", "dev start", "dev tuned", "oracle", "test start", "test", "p", "s")
    first = test.statistics(metric, test.first())
    found = {}
    best = None
    for name in TUNERS:
        with Watch() as watch:
            result = tune(
                dev,
                name,
                metric,
                heldout=test,
                threads=threads,
                run=folder / name,
                listen=watch,
            )
        result.weights.save(folder / f"{name}.toml")
        chosen = test.statistics(metric, test.best(result.weights, threads))
        p = paired_bootstrap(metric, first, chosen).p
        rows.add_row(
            name,
            f"{result.start:.2f}",
            f"{result.tuned:.2f}",
            f"{result.oracle:.2f}",
            f"{result.heldout_start:.2f}",
            f"{result.heldout:.2f}",
            f"{p:.3f}",
            f"{result.seconds:.2f}",
        )
        found[name] = {key: value for key, value in result.to_json().items() if key != "weights"}
        if best is None or (result.heldout or 0.0) > (best.heldout or 0.0):
            best = result
    assert best is not None
    out.print(rows)
    out.print(best.signature, style="dim", markup=False)
    weights = table(f"\n3. what {best.tuner} learnt", "feature", "weight")
    for feature, value in best.weights.top(10).items():
        weights.add_row(feature, f"{value:+.4f}")
    out.print(weights)
    out.print(
        f"\n[bold]4. before and after[/]  $ tunesmith rerank apply test.nbest.gz "
        f"-w {best.tuner}.toml"
    )
    before, after = test.outputs(test.first()), test.outputs(test.best(best.weights, threads))
    gain = metric.native.sentence_gains(test.statistics(metric, test.best(best.weights, threads)))
    gain -= metric.native.sentence_gains(first)
    for i in sorted(range(test.sentences), key=lambda i: -gain[i])[:3]:
        out.print(f"  - {before[i]}", style="red", markup=False)
        out.print(f"  + {after[i]}", style="green", markup=False)
    report = write_report(folder / best.tuner)
    note(f"\n5. the report of the run\n   $ tunesmith report {folder / best.tuner}")
    if json:
        emit({"folder": str(folder), "report": str(report), "tuners": found})
    else:
        print(report)
