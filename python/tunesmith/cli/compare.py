"""`tunesmith compare`: whether one system is better than another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, note, out, table, warn
from tunesmith.errors import InputError
from tunesmith.metrics import Metric
from tunesmith.metrics.base import Rows
from tunesmith.metrics.significance import (
    SEED,
    compare_both,
    paired_bootstrap,
    paired_randomisation,
)
from tunesmith.runs.outputs import Outputs, read_run_outputs
from tunesmith.spaces.reading import read_outputs

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith compare base.txt new.txt other.txt -r ref\n\n"
    "$ tunesmith compare base1.txt,base2.txt new1.txt,new2.txt -r ref\n\n"
    "$ tunesmith compare MERT=runs/mert1,runs/mert2 RM=runs/rm1,runs/rm2 --latex\n\n"
    "Runs of a system, separated by commas, are compared as in Clark et al. 2011."
)
SAMPLES = 1000
LEARNT = ("lists", "text")
"""What a run is judged on if it has no other text: that which it has learnt from."""


@dataclass(frozen=True)
class System:
    """A system with the outputs of its runs: files, or directories of runs."""

    name: str
    runs: tuple[str, ...]


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="BASE SYSTEM",
            help="Outputs or directories of runs; several of a system as ONE,TWO,…; with a name as "
            "NAME=ONE,TWO.",
        ),
    ],
    reference: o.References = None,
    metric: o.MetricNames = "bleu,chrf,ter",
    samples: Annotated[
        int, o.option("--samples", "N", "Random draws of the tests.", min=1)
    ] = SAMPLES,
    seed: Annotated[int, o.option("--seed", "N", "Seed of the draws.", min=0)] = SEED,
    keep_blank: o.BlankReferences = False,
    markdown: Annotated[
        bool, o.flag("--markdown", "One table of all metrics, in Markdown.")
    ] = False,
    latex: Annotated[bool, o.flag("--latex", "The same in LaTeX, for booktabs.")] = False,
    json: o.Json = False,
) -> None:
    """Compare systems with a baseline: bootstrap and approximate randomisation.

    A directory of a finished run stands for what its weights choose on the
    sentences that its result is judged on: held-out text, folds, or without
    either what it has learnt from. Its references are used where no others
    are given.
    """
    if sum((markdown, latex, json)) > 1:
        raise InputError("more than one form", remedy="give --markdown, --latex or --json")
    if len(systems) < 2:
        raise InputError("only one system", remedy="give the baseline and at least one system")
    groups = [_system(each) for each in systems]
    _check_different(groups)
    names = [run for each in groups for run in each.runs]
    folders = [Path(name) for name in names if Path(name).is_dir()]
    metrics = {name: o.measured(name, reference or folders) for name in o.metric_list(metric)}
    files, references = _read(names, reference, keep_blank)
    found = {}
    for name, measured in metrics.items():
        rows = {run: measured.stats(output, references) for run, output in files.items()}
        base, *others = [[rows[run] for run in each.runs] for each in groups]
        found[name] = [{"system": groups[0].name, "score": _mean(measured, base)}]
        if len(base) > 1:
            found[name][0]["runs"] = _scores(measured, base)
        for system, runs in zip(groups[1:], others, strict=True):
            if len(base) == len(runs) == 1:
                compared = pair_tests(measured, base[0], runs[0], samples, seed)
            else:
                compared = _compared_runs(measured, base, runs, samples, seed)
            found[name].append({"system": system.name, "score": _mean(measured, runs)} | compared)
        if not (json or markdown or latex):
            _show(measured, found[name])
            out.print(measured.signature(len(references[0])), style="dim")
    if json:
        emit(found)
    elif markdown or latex:
        signatures = [each.signature(len(references[0])) for each in metrics.values()]
        print(_paper(metrics, found, signatures, samples, latex), end="")


def _system(given: str) -> System:
    """Return a system of the command line: `NAME=` is a name unless it is part of a file's."""
    name, mark, rest = given.partition("=")
    named = bool(mark and name) and not Path(given.split(",")[0]).exists()
    runs = tuple(run for run in (rest if named else given).split(",") if run)
    if not runs:
        raise InputError(f"{given!r} names no output", remedy="give NAME=FILE, or a file")
    return System(name if named else given, runs)


def _check_different(systems: Sequence[System]) -> None:
    """Raise if two systems have one name, or a system the same run twice."""
    for place, each in enumerate(systems):
        if any(each.name == other.name and each != other for other in systems[:place]):
            raise InputError(
                f"two systems are called {each.name!r}", remedy="give each a name: NAME=ONE,TWO"
            )
        if len({Path(run).resolve() for run in each.runs}) < len(each.runs):
            raise InputError(
                f"{each.name!r} has the same run twice, which proves nothing more",
                remedy="name each run once",
            )


def _read(
    names: Sequence[str], reference: list[Path] | None, keep_blank: bool
) -> tuple[dict[str, list[str]], list[list[str]]]:
    """Return the outputs of files and runs by name, and the references of the sentences."""
    runs = {name: read_run_outputs(name) for name in names if Path(name).is_dir()}
    files = [name for name in names if name not in runs]
    judged_on = {each.on for each in runs.values()}
    if judged_on & {*LEARNT}:
        warn("runs without held-out text: their outputs are those of the text they were tuned on")
    if reference or not runs:
        texts, references = read_outputs(files, reference or [], keep_blank)
    else:
        first, held = next(iter(runs.items()))
        references = held.references
        if not all(references):
            raise InputError("the run has no references", first, remedy="give them: --reference")
        texts = [_lines(name, len(references)) for name in files]
        note(f"references: those of {first}")
    _check_same(runs, references, given=bool(reference))
    outputs = dict(zip(files, texts, strict=True))
    return outputs | {name: each.texts for name, each in runs.items()}, references


def _lines(name: str, sentences: int) -> list[str]:
    """Return the lines of an output beside runs that have the references."""
    (texts,), _ = read_outputs([name], [Path(name)], keep_blank=True)
    if len(texts) != sentences:
        raise InputError(
            f"{len(texts)} lines, but the runs have {sentences} sentences",
            name,
            remedy="give the output for the sentences that the runs are judged on",
        )
    return texts


def _check_same(
    runs: Mapping[str, Outputs], references: Sequence[Sequence[str]], given: bool
) -> None:
    """Raise if runs are judged on other sentences than those of the references."""
    for name, each in runs.items():
        other = len(each.texts) != len(references) if given else each.references != references
        if other:
            raise InputError(
                f"its {len(each.texts)} sentences are not those of the "
                f"{len(references)} references",
                name,
                remedy="compare runs with the same held-out text, or outputs of the same text",
            )


def _scores(metric: Metric, runs: Sequence[Rows]) -> list[float]:
    return [float(each) for each in metric.scores([run.sum(axis=0) for run in runs])]


def _mean(metric: Metric, runs: Sequence[Rows]) -> float:
    scores = _scores(metric, runs)
    return sum(scores) / len(scores)


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
    """Return the difference between the means of runs, its p-values, and the deviations."""
    tests = compare_both(metric, base, runs, samples, seed)
    both = tests.randomisation
    return {
        "difference": both.difference,
        "ci": list(tests.bootstrap.ci),
        "p_bootstrap": tests.bootstrap.p,
        "p_randomisation": both.p,
        "s_sel": both.system.s_sel,
        "s_test": both.system.s_test,
        "baseline_s_sel": both.baseline.s_sel,
        "baseline_s_test": both.baseline.s_test,
        "runs": list(both.system.scores),
        "baseline_runs": list(both.baseline.scores),
    }


def _paper(
    metrics: Mapping[str, Metric],
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    signatures: Sequence[str],
    samples: int,
    latex: bool,
) -> str:
    """Return one table of all metrics: scores with deviations over runs, differences, p."""
    # Slow to import: only these two forms need it.
    from tunesmith.experiments.tables import Cell, Filled, Several
    from tunesmith.experiments.writing import latex as in_latex
    from tunesmith.experiments.writing import markdown as in_markdown
    from tunesmith.experiments.writing import texts_of

    rows: list[dict[str, Cell]] = [{"system": each["system"]} for each in found[next(iter(found))]]
    for name, metric in metrics.items():
        for row, each in zip(rows, found[name], strict=True):
            row[metric.label] = Several(tuple(each.get("runs", [each["score"]])))
            row[f"Δ {metric.label}"] = (
                f"{each['difference']:+.2f}" if "difference" in each else None
            )
            tests = [p for key, p in each.items() if key in ("p_randomisation", "p_bootstrap")]
            row[f"p {metric.label}"] = max(tests, default=None)
    signed = zip(metrics.values(), signatures, strict=True)
    several = any("runs" in each for rows_of in found.values() for each in rows_of)
    how = "mean ± standard deviation over runs; " if several else ""
    said = (
        f"{how}p: the larger of approximate randomisation and bootstrap against "
        f"{rows[0]['system']}, {samples} draws; "
        f"{'; '.join(f'{m.label} {each}' for m, each in signed)}"
    )
    heads, cells = texts_of(Filled("scores", "", list(rows[-1]), rows))
    if latex:
        return in_latex(heads, cells, said)
    return f"{in_markdown(heads, cells)}\n{said}\n"


def _show(metric: Metric, found: list[dict[str, Any]]) -> None:
    """Print the systems: with an interval, or with the spread over runs and over test sets."""
    several = any("s_sel" in row for row in found)
    spread = ["s_sel", "s_test"] if several else []
    tests = ["95%", "p bootstrap", "p randomisation"]
    shown = table(f"\n{metric.label}", "system", "score", *spread, "difference", *tests)
    base = next((row for row in found if "baseline_s_sel" in row), {})
    for number, row in enumerate(found):
        cells = [row["system"], f"{row['score']:.2f}"]
        if several:
            prefix, source = ("", row) if number else ("baseline_", base)
            deviations = [source.get(f"{prefix}{key}") for key in ("s_sel", "s_test")]
            cells += ["" if value is None else f"{value:.2f}" for value in deviations]
        if number:
            cells += [
                f"{row['difference']:+.2f}",
                f"[{row['ci'][0]:+.2f}, {row['ci'][1]:+.2f}]",
                f"{row['p_bootstrap']:.4f}",
                f"{row['p_randomisation']:.4f}",
            ]
        shown.add_row(*cells)
    out.print(shown)
    if several:
        out.print("s_sel: deviation over test sets (bootstrap), s_test: over runs", style="dim")
        out.print("the larger p counts: randomisation takes equal runs for evidence", style="dim")
