"""`tunesmith compare`: whether one system is better than another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.errors import InputError
from tunesmith.formats import read_references
from tunesmith.metrics import get_metric
from tunesmith.significance import SEED, compare_runs, paired_bootstrap, paired_randomisation

EXAMPLES = (
    "Examples: tunesmith compare base.txt new.txt -r ref · several runs of a system, separated by "
    "commas, are compared as in Clark et al. 2011: tunesmith compare b1.txt,b2.txt,b3.txt "
    "n1.txt,n2.txt,n3.txt -r ref"
)


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(help="The baseline, then systems: files, or runs FILE,FILE,… of one."),
    ],
    reference: o.References = None,
    metric: Annotated[
        str, typer.Option("--metric", "-m", help="One or more, as in bleu,chrf,ter.")
    ] = "bleu,chrf,ter",
    samples: Annotated[int, typer.Option("--samples", help="Random draws of the tests.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws.")] = SEED,
    keep_blank: o.KeepBlank = False,
    json: o.Json = False,
) -> None:
    """Compare systems with a baseline: paired bootstrap and approximate randomisation."""
    if len(systems) < 2:
        raise InputError("only one system", remedy="give the baseline and at least one system")
    groups = [system.split(",") for system in systems]
    texts = [
        [[line[0] for line in read_references([run], keep_blank=True).texts] for run in group]
        for group in groups
    ]
    first = len(texts[0][0])
    for group, outputs in zip(groups, texts, strict=True):
        for file, output in zip(group, outputs, strict=True):
            if len(output) != first:
                raise InputError(
                    f"{len(output)} sentences, but {groups[0][0]} has {first}",
                    file,
                    remedy="compare outputs of the same sentences",
                )
    references = read_references(reference or [], sentences=first, keep_blank=keep_blank).texts
    found: dict[str, list[dict[str, Any]]] = {}
    for name in o.metric_list(metric):
        measured = get_metric(name)
        stats = [[measured.stats(output, references) for output in outputs] for outputs in texts]
        rows = table(
            f"\n{measured.label}",
            "system",
            "score",
            "difference",
            "95%",
            "p bootstrap",
            "p randomisation",
        )
        base = stats[0]
        means = [measured.scores([run.sum(axis=0) for run in runs]).mean() for runs in stats]
        rows.add_row(systems[0], f"{means[0]:.2f}", "", "", "", "")
        found[name] = [{"system": systems[0], "score": float(means[0])}]
        for system, runs, mean in zip(systems[1:], stats[1:], means[1:], strict=True):
            row: dict[str, Any] = {"system": system, "score": float(mean)}
            if len(base) == len(runs) == 1:
                boot = paired_bootstrap(measured, base[0], runs[0], samples, seed)
                swap = paired_randomisation(measured, base[0], runs[0], samples, seed)
                row |= {
                    "difference": boot.difference,
                    "ci": list(boot.ci),
                    "p_bootstrap": boot.p,
                    "p_randomisation": swap.p,
                }
                rows.add_row(
                    system,
                    f"{mean:.2f}",
                    f"{boot.difference:+.2f}",
                    f"[{boot.ci[0]:+.2f}, {boot.ci[1]:+.2f}]",
                    f"{boot.p:.4f}",
                    f"{swap.p:.4f}",
                )
            else:
                both = compare_runs(measured, base, runs, samples, seed)
                row |= {
                    "difference": both.difference,
                    "p_randomisation": both.p,
                    "s_sel": both.system.s_sel,
                    "s_test": both.system.s_test,
                    "baseline_s_sel": both.baseline.s_sel,
                    "runs": list(both.system.scores),
                }
                rows.add_row(
                    system,
                    f"{mean:.2f} ± {both.system.s_test:.2f}",
                    f"{both.difference:+.2f}",
                    f"s_sel {both.system.s_sel:.2f}",
                    "",
                    f"{both.p:.4f}",
                )
            found[name].append(row)
        if not json:
            out.print(rows)
            out.print(
                measured.signature(len(references[0]) if references else 1),
                style="dim",
                markup=False,
            )
    if json:
        emit(found)
