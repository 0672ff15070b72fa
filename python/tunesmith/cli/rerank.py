"""`tunesmith rerank`: check lists, tune weights on them, apply the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tunesmith.checking import check_pools
from tunesmith.cli import options as o
from tunesmith.cli.console import (
    Watch,
    emit,
    err,
    fail,
    note,
    out,
    table,
    tell_skipped,
    warn,
)
from tunesmith.errors import InputError
from tunesmith.formats import detect, names
from tunesmith.metrics import get_metric
from tunesmith.presets import PRESETS
from tunesmith.reading import read_lists, read_weights
from tunesmith.reranking import apply_lines, apply_nbest
from tunesmith.runs import fingerprint
from tunesmith.tuning import Result
from tunesmith.tuning import tune as tune_pools

app = typer.Typer(
    help="Check n-best lists, tune weights on them, apply the weights.", no_args_is_help=True
)

Nbest = Annotated[list[Path], typer.Argument(help="N-best lists; several are merged.")]


@app.command(
    epilog="Example: tunesmith rerank check dev.nbest.gz -r dev.ref -m wer",
)
def check(
    nbest: Nbest,
    reference: o.References = None,
    metric: o.MetricName = "bleu",
    format: o.Format = None,
    skip_bad: o.SkipBad = False,
    keep_blank: o.KeepBlank = False,
    column: o.Columns = None,
    feature: o.Features = None,
    per_sentence: o.PerSentence = None,
    first_id: o.FirstId = 0,
    keyed: o.Keyed = False,
    show: Annotated[int, typer.Option("--show", help="Features to show.")] = 30,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Say what is in n-best lists, what is wrong with them, and how much there is to gain."""
    reading = o.reading(
        format, skip_bad, keep_blank, column, feature, per_sentence, first_id, keyed
    )
    read = read_lists(nbest, reference or [], None, reading)
    tell_skipped(read.skipped)
    measured = get_metric(metric) if reference or metric.startswith("column:") else None
    found = check_pools(read.pools, measured, threads)
    if json:
        emit(found)
        return
    kinds = ", ".join(sorted({format or detect(path) for path in nbest}))
    out.print(f"[bold]{len(nbest)} file(s)[/], format {kinds}")
    facts = table("Lists", "", "")
    for key in (
        "sentences",
        "hypotheses",
        "distinct_texts",
        "features",
        "empty_lists",
        "single_lists",
        "shortest",
        "median",
        "longest",
    ):
        facts.add_row(key.replace("_", " "), f"{found[key]:,}")
    out.print(facts)
    if measured is not None:
        scores = table(f"\n{measured.label}", "choice", "score")
        for key in ("worst", "first", "oracle"):
            scores.add_row(key, f"{found['scores'][key]:.2f}")
        scores.add_row("headroom", f"{found['scores']['headroom']:.2f}")
        out.print(scores)
        out.print(found["scores"]["signature"], style="dim", markup=False)
    shown = table(
        "\nFeatures", "name", "coverage", "lowest", "mean", "highest", "varies in", "correlation"
    )
    for row in found["feature_table"][:show]:
        corr = row["correlation"]
        shown.add_row(
            row["name"],
            f"{row['coverage']:.0%}",
            f"{row['lowest']:.4g}",
            f"{row['mean']:.4g}",
            f"{row['highest']:.4g}",
            f"{row['varies']:.0%}",
            "" if corr is None else f"{corr:+.3f}",
        )
    out.print(shown)
    if len(found["feature_table"]) > show:
        out.print(f"… and {len(found['feature_table']) - show} more (--show)", style="dim")
    for finding in found["findings"]:
        warn(finding)


@app.command(
    epilog="Examples: tunesmith rerank tune dev.nbest.gz -r dev.ref --tuner mert --metric bleu "
    "--folds 5 --out weights.toml · tunesmith rerank tune run*.gz -r ref -t rm --set bound=2 "
    "--run runs/rm --seeds 3 · tunesmith presets lists the tuners and their options",
)
def tune(
    nbest: Nbest,
    reference: o.References = None,
    tuner: Annotated[
        str, typer.Option("--tuner", "-t", help=f"One of {', '.join(PRESETS)}.")
    ] = "kbmira",
    metric: o.MetricName = "bleu",
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the weights (TOML).")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: an option of the tuner.")
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Hold out each of K parts in turn.")] = 0,
    heldout: Annotated[
        list[Path] | None, typer.Option("--heldout", help="N-best lists to score, not learn from.")
    ] = None,
    heldout_reference: Annotated[
        list[Path] | None,
        typer.Option("--heldout-reference", help="References of the held-out lists."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", "-w", help="Weights to start from (TOML, moses.ini, cdec)."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences, for lengths and the report.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs to average.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first run.")] = 1,
    keep: Annotated[
        str, typer.Option("--keep", help="Epoch to keep: best, last or heldout.")
    ] = "best",
    bound: Annotated[
        list[str] | None,
        typer.Option("--bound", help="NAME=LOW:HIGH, patterns allowed: --bound 'LM*=0:'."),
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option("--fix", help="NAME=VALUE: a weight that must not move.")
    ] = None,
    second_metric: Annotated[
        str | None, typer.Option("--second-metric", help="A metric that is watched, not tuned.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="Directory for events, checkpoints, weights per epoch."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted --run.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write the weights even if they are refused.")
    ] = False,
    format: o.Format = None,
    skip_bad: o.SkipBad = False,
    keep_blank: o.KeepBlank = False,
    column: o.Columns = None,
    feature: o.Features = None,
    per_sentence: o.PerSentence = None,
    first_id: o.FirstId = 0,
    keyed: o.Keyed = False,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Learn weights that make the best hypothesis of each list score highest.

    Ends with the scores of the first-ranked, tuned and oracle choices, a held-out score with
    --folds or --heldout, a second metric, and significance tests. Weights that are no good (all
    zero, unchanged, worse than the start) are refused with exit code 1.
    """
    if resume and run is None:
        raise InputError("--resume without --run", remedy="name the run directory")
    if keep not in ("best", "last", "heldout"):
        raise InputError(f"--keep {keep}", remedy="use best, last or heldout")
    if tuner not in PRESETS:
        raise InputError(f"no tuner named {tuner!r}", remedy=f"use one of {', '.join(PRESETS)}")
    settings = o.settings(set_)
    reading = o.reading(
        format, skip_bad, keep_blank, column, feature, per_sentence, first_id, keyed
    )
    read = read_lists(nbest, reference or [], source, reading)
    tell_skipped(read.skipped)
    held = None
    if heldout:
        told = read_lists(heldout, heldout_reference or [], None, reading)
        tell_skipped(told.skipped)
        held = told.pools
    files = [*nbest, *(reference or []), *(heldout or []), *(heldout_reference or [])]
    kept: Literal["best", "last", "heldout"] = keep  # type: ignore[assignment]
    with Watch() as watch:
        result = tune_pools(
            read.pools,
            tuner,
            metric,
            options=settings,
            start=None if weights is None else read_weights(weights),
            heldout=held,
            folds=folds,
            seeds=seeds,
            seed=seed,
            keep=kept,
            bounds=o.bounds(bound),
            fixed=o.fixed(fix),
            second_metric=second_metric,
            threads=threads,
            run=run,
            resume=resume,
            config=None
            if run is None
            else {
                "inputs": [fingerprint(path) for path in files],
                "weights": None if weights is None else fingerprint(weights),
                "fix": fix or [],
                "bound": bound or [],
            },
            listen=watch,
        )
    accepted = result.refused is None or force
    if out_file is not None and accepted:
        result.weights.save(out_file)
    if json:
        emit(result.to_json())
    else:
        show_result(result)
        if out_file is not None and accepted:
            note(f"weights written to {out_file}")
        if run is not None:
            note(f"tunesmith report {run} shows the run")
    if result.refused is not None:
        fail(
            f"refused: {result.refused} (another tuner, start or option may help; "
            "--force writes the weights all the same)"
            if not force
            else f"refused, but written: {result.refused}",
            1,
        )


def show_result(result: Result) -> None:
    """Print what tuning found."""
    rows = table(f"{result.tuner} for {result.metric}", "", "score")
    rows.add_row("start", f"{result.start:.2f}")
    rows.add_row("tuned", f"[bold]{result.tuned:.2f}[/]")
    rows.add_row("oracle", f"{result.oracle:.2f}")
    if result.heldout is not None:
        rows.add_row("held-out start", f"{result.heldout_start:.2f}")
        rows.add_row("held-out", f"[bold]{result.heldout:.2f}[/]")
    if len(result.runs) > 1:
        rows.add_row("runs", " ".join(f"{score:.2f}" for score in result.runs))
    if result.second is not None:
        second = result.second
        rows.add_row(
            f"{second['name']}, not tuned", f"{second['start']:.2f} → {second['tuned']:.2f}"
        )
    out.print(rows)
    out.print(result.signature, style="dim", markup=False)
    boot = result.significance["bootstrap"]
    where = {"lists": "the tuning lists", "folds": "held-out folds", "heldout": "held-out lists"}
    out.print(
        f"\nagainst the start on {where[result.significance['on']]}: {boot['difference']:+.2f} "
        f"[{boot['ci'][0]:+.2f}, {boot['ci'][1]:+.2f}], p = {boot['p']:.3g} (paired bootstrap), "
        f"p = {result.significance['randomisation']['p']:.3g} (approximate randomisation)"
    )
    weights = table("\nWeights", "name", "weight")
    for name, value in result.weights.top(20).items():
        weights.add_row(name, f"{value:+.6g}")
    out.print(weights)
    if len(result.weights) > 20:
        out.print(f"… and {len(result.weights) - 20} more", style="dim")
    out.print(f"\n{result.seconds:.2f} s", style="dim")


@app.command(
    epilog="Examples: tunesmith rerank apply test.nbest.gz -w weights.toml > test.out · "
    "tunesmith rerank apply test.nbest.gz -w weights.toml --nbest-out test.reranked.gz",
)
def apply(
    nbest: Annotated[Path, typer.Argument(help="N-best lists.")],
    weights: Annotated[Path, typer.Option("--weights", "-w", help="Tuned weights.")],
    nbest_out: Annotated[
        Path | None,
        typer.Option("--nbest-out", help="Write the lists re-ordered, with one more score."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the score in --nbest-out.")
    ] = "tunesmith",
    out_format: Annotated[
        str | None,
        typer.Option("--out-format", help=f"Format of --nbest-out: {', '.join(names())}."),
    ] = None,
    format: o.Format = None,
    skip_bad: o.SkipBad = False,
    keep_blank: o.KeepBlank = False,
    feature: o.Features = None,
    per_sentence: o.PerSentence = None,
    first_id: o.FirstId = 0,
    keyed: o.Keyed = False,
    threads: o.Threads = 0,
) -> None:
    """Choose the best hypothesis of each list: one line per sentence on stdout."""
    reading = o.reading(format, skip_bad, keep_blank, None, feature, per_sentence, first_id, keyed)
    vector = read_weights(weights)
    if nbest_out is None:
        lines, unknown = apply_lines(nbest, vector, reading, threads)
        for line in lines:
            print(line)
        missing = sorted(unknown())
    else:
        missing, skipped = apply_nbest(nbest, vector, nbest_out, name, out_format, reading, threads)
        tell_skipped(skipped)
        note(f"lists written to {nbest_out}")
    if missing:
        shown = ", ".join(missing[:5]) + ("…" if len(missing) > 5 else "")
        warn(f"{len(missing)} weight(s) met no feature of the lists: {shown}")
    err.file.flush()
