"""`tunesmith compare`: whether one system is better than another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.errors import InputError
from tunesmith.metrics import Metric
from tunesmith.metrics.base import Rows
from tunesmith.metrics.significance import (
    SEED,
    compare_runs,
    paired_bootstrap,
    paired_randomisation,
)
from tunesmith.spaces.reading import read_outputs

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith compare base.txt new.txt other.txt -r ref\n\n"
    "$ tunesmith compare base1.txt,base2.txt new1.txt,new2.txt -r ref\n\n"
    "Runs of a system, separated by commas, are compared as in Clark et al. 2011."
)
SAMPLES = 1000


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(metavar="BASE SYSTEM", help="Outputs, or runs FILE,FILE,… of a system."),
    ],
    reference: o.References = None,
    metric: o.MetricNames = "bleu,chrf,ter",
    samples: Annotated[
        int, o.option("--samples", "N", "Random draws of the tests.", min=1)
    ] = SAMPLES,
    seed: Annotated[int, o.option("--seed", "N", "Seed of the draws.", min=0)] = SEED,
    keep_blank: o.BlankReferences = False,
    json: o.Json = False,
) -> None:
    """Compare systems with a baseline: bootstrap and approximate randomisation."""
    if len(systems) < 2:
        raise InputError("only one system", remedy="give the baseline and at least one system")
    metrics = {name: o.measured(name, reference) for name in o.metric_list(metric)}
    groups = [[run for run in system.split(",") if run] for system in systems]
    files = [run for group in groups for run in group]
    texts, references = read_outputs(files, reference or [], keep_blank)
    found = {}
    for name, measured in metrics.items():
        rows = iter([measured.stats(output, references) for output in texts])
        base, *others = [[next(rows) for _ in group] for group in groups]
        found[name] = [{"system": systems[0], "score": _mean(measured, base)}]
        for system, runs in zip(systems[1:], others, strict=True):
            if len(base) == len(runs) == 1:
                compared = pair_tests(measured, base[0], runs[0], samples, seed)
            else:
                compared = _compared_runs(measured, base, runs, samples, seed)
            found[name].append({"system": system, "score": _mean(measured, runs)} | compared)
        if not json:
            _show(measured, found[name])
            out.print(measured.signature(len(references[0])), style="dim")
    if json:
        emit(found)


def _mean(metric: Metric, runs: list[Rows]) -> float:
    return float(metric.scores([run.sum(axis=0) for run in runs]).mean())


def pair_tests(
    metric: Metric, base: Rows, system: Rows, samples: int = SAMPLES, seed: int = SEED
) -> dict[str, Any]:
    """Return the difference to the baseline, its interval and the p-values."""
    boot = paired_bootstrap(metric, base, system, samples, seed)
    swap = paired_randomisation(metric, base, system, samples, seed)
    return {
        "difference": boot.difference,
        "ci": list(boot.ci),
        "p_bootstrap": boot.p,
        "p_randomisation": swap.p,
    }


def _compared_runs(
    metric: Metric, base: list[Rows], runs: list[Rows], samples: int, seed: int
) -> dict[str, Any]:
    """Return the difference between the means of runs, its p-value, and the deviations."""
    both = compare_runs(metric, base, runs, samples, seed)
    return {
        "difference": both.difference,
        "p_randomisation": both.p,
        "s_sel": both.system.s_sel,
        "s_test": both.system.s_test,
        "baseline_s_sel": both.baseline.s_sel,
        "baseline_s_test": both.baseline.s_test,
        "runs": list(both.system.scores),
        "baseline_runs": list(both.baseline.scores),
    }


def _show(metric: Metric, found: list[dict[str, Any]]) -> None:
    """Print the systems: with an interval, or with the spread over runs and over test sets."""
    several = any("s_sel" in row for row in found)
    spread = ["s_sel", "s_test"] if several else ["95%", "p bootstrap"]
    shown = table(f"\n{metric.label}", "system", "score", "difference", *spread, "p randomisation")
    base = next((row for row in found if "baseline_s_sel" in row), {})
    for number, row in enumerate(found):
        cells = [row["system"], f"{row['score']:.2f}"]
        if several:
            prefix, source = ("", row) if number else ("baseline_", base)
            deviations = [source.get(f"{prefix}{key}") for key in ("s_sel", "s_test")]
            middle = ["" if value is None else f"{value:.2f}" for value in deviations]
        else:
            middle = [
                f"[{row['ci'][0]:+.2f}, {row['ci'][1]:+.2f}]" if number else "",
                f"{row['p_bootstrap']:.4f}" if number else "",
            ]
        difference = f"{row['difference']:+.2f}" if number else ""
        p = f"{row['p_randomisation']:.4f}" if number else ""
        shown.add_row(*cells, difference, *middle, p)
    out.print(shown)
    if several:
        out.print("s_sel: deviation over test sets (bootstrap), s_test: over runs", style="dim")
