"""`tunesmith rerank`: check lists, tune weights on them, apply the weights."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import (
    Watch,
    both,
    busy,
    emit,
    fail,
    note,
    out,
    show_weights,
    table,
    tell_skipped,
    warn,
)
from tunesmith.cli.presets import started
from tunesmith.cli.verdict import show_untuned, show_verdict, tell_reports
from tunesmith.engines import Engine
from tunesmith.engines.ray import Ray
from tunesmith.errors import InputError
from tunesmith.files.fingerprint import fingerprint
from tunesmith.formats import Reading, names
from tunesmith.formats.base import is_stream
from tunesmith.learn.online import Online
from tunesmith.learn.task import Tuner
from tunesmith.learn.untuned import CONSENSUS, START
from tunesmith.metrics import get_metric
from tunesmith.presets import preset_options
from tunesmith.report import Follow
from tunesmith.rerank.applying import Applied, apply_lines, apply_nbest
from tunesmith.rerank.checking import check_pools
from tunesmith.runs.board import Board
from tunesmith.spaces.derived import derived_in
from tunesmith.spaces.reading import check_copy, read_lists, read_weights, write_weights
from tunesmith.tuning import Keep, Result
from tunesmith.tuning import tune as tune_pools
from tunesmith.tuning.chain import stages_of
from tunesmith.weights import Weights

app = typer.Typer(
    help="Check n-best lists, tune weights on them, apply the weights.", no_args_is_help=True
)


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith rerank check dev.nbest.gz\n\n"
    "$ tunesmith rerank check dev.nbest.gz -r dev.ref -m wer",
)
@o.reads_lists()
def check(
    nbest: o.Nbest,
    reference: o.ListReferences = None,
    metric: o.MetricName = "bleu",
    show: Annotated[int, o.option("--show", "N", "Features to show.", min=0)] = 30,
    list_features: o.Derived = None,
    threads: o.Threads = 0,
    json: o.Json = False,
    *,
    reading: Reading,
) -> None:
    """Check n-best lists: their content, problems in them, and the possible gain."""
    asked = get_metric(metric)
    reading = o.with_columns(reading, asked)
    o.one_list(reading, nbest)
    with busy("reading"):
        read = read_lists(nbest, reference or None, None, reading, o.comma_list(list_features))
    skipped = tell_skipped(read.skipped)
    measured = asked if asked.columns or read.pools.references is not None else None
    with busy("looking"):
        found = check_pools(read.pools, measured, threads)
    if json:
        emit({**found, "skipped": skipped})
        return
    kinds = ", ".join(sorted({reading.format_of(path) for path in nbest}))
    title = nbest[0].name if len(nbest) == 1 else f"{len(nbest)} files, merged"
    show_lists(f"{title} ({kinds})", found)
    if measured is not None:
        scores = table(f"\n{measured.label}", "choice", "score")
        scored = found["scores"]
        best = scored["best_alone_name"]
        labels = {
            "worst": "worst",
            "first": "first",
            "best_alone": f"best feature alone: {(best or '').removeprefix('+')}",
            CONSENSUS: "consensus",
            "oracle": "oracle",
            "headroom": "headroom",
        }
        for key, label in labels.items():
            if scored[key] is not None:
                scores.add_row(label, f"{scored[key]:.2f}")
        out.print(scores)
        out.print(found["scores"]["signature"], style="dim")
    show_features(found["feature_table"], show)
    for finding in found["findings"]:
        warn(finding)


def show_lists(title: str, found: dict[str, Any]) -> None:
    """Print the sizes of the lists."""
    facts = table(title, "", "", header=False)
    for key in ("sentences", "hypotheses", "distinct_texts", "features", "columns"):
        value = len(found[key]) if key == "columns" else found[key]
        if value or key != "columns":
            facts.add_row(key.replace("_", " "), f"{value:,}")
    for key in ("empty_lists", "single_lists"):
        facts.add_row(key.replace("_", " "), f"{found[key]:,}")
    lengths = (found[key] for key in ("shortest", "median", "longest"))
    facts.add_row("shortest, median, longest", " ".join(f"{length:,}" for length in lengths))
    out.print(facts)


def show_features(rows: list[dict[str, Any]], most: int) -> None:
    """Print the table of features, the most frequent first."""
    heads = ["coverage", "lowest", "mean", "highest", "varies in", "correlation"]
    scored = any("alone" in row for row in rows)
    shown = table("\nFeatures", "name", *heads, *(["alone"] if scored else []))
    for row in rows[:most]:
        numbers = [f"{row[key]:.4g}" for key in ("lowest", "mean", "highest")]
        corr = "" if row["correlation"] is None else f"{row['correlation']:+.3f}"
        coverage, varies = f"{row['coverage']:.0%}", f"{row['varies']:.0%}"
        alone = [_alone(row)] if scored else []
        shown.add_row(row["name"], coverage, *numbers, varies, corr, *alone)
    out.print(shown)
    if scored:
        tried = sum("alone" in row for row in rows)
        some = f"; {tried} of {len(rows)} were tried" if tried < len(rows) else ""
        out.print(
            "alone: score of the hypotheses with the highest value of the feature, - with the "
            f"lowest, whichever is better{some}",
            style="dim",
        )
    if len(rows) > most:
        out.print(f"… and {len(rows) - most} more (--show)", style="dim")


def _alone(row: dict[str, Any]) -> str:
    return f"{row['sign']} {row['alone']:.2f}" if "alone" in row else ""


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith rerank tune dev.nbest.gz -r dev.ref -t mert --folds 5 -o w.toml\n\n"
    "$ tunesmith rerank tune run*.gz -r ref -t rm --set bound=2 --run runs/rm\n\n"
    "$ tunesmith rerank tune asr.jsonl -r asr.ref -m wer --bound 'lm*=0:' --seeds 3\n\n"
    "$ tunesmith rerank tune llm.jsonl --list-features first,agreement --folds 5 -o w.toml\n\n"
    "tunesmith presets lists the tuners, tunesmith presets rm the options of one.",
)
@o.reads_lists()
@o.runs_on_engine
def tune(
    nbest: o.Nbest,
    reference: o.ListReferences = None,
    tuner: o.Tuner = None,
    as_: o.As = None,
    metric: o.MetricName = "bleu",
    out_file: o.OutFile = None,
    set_: o.TunerOptions = None,
    regime: o.Regime = None,
    threads: o.Threads = 0,
    json: o.Json = False,
    folds: o.Folds = 0,
    heldout: Annotated[
        list[Path] | None,
        o.option("--heldout", "NBEST", "Lists to score, not to tune on.", o.MEASURE),
    ] = None,
    heldout_reference: Annotated[
        list[Path] | None,
        o.option(
            "--heldout-reference",
            "FILE",
            "References of the held-out lists, unless JSONL lists have them.",
            o.MEASURE,
        ),
    ] = None,
    second_metric: o.SecondMetric = None,
    weights: o.StartWeights = None,
    bound: o.Bound = None,
    fix: o.Fix = None,
    keep: o.Kept = None,
    force: Annotated[
        bool, o.flag("--force", "Write the weights even if they are refused.", o.WEIGHTS)
    ] = False,
    run: o.Run = None,
    resume: o.Resume = False,
    tensorboard: o.Tensorboard = None,
    seeds: o.Seeds = 1,
    seed: o.Seed = 1,
    seconds: o.Seconds = None,
    source: Annotated[
        Path | None,
        o.option("--source", "FILE", "Source sentences, for lengths and the report.", o.LISTS),
    ] = None,
    list_features: o.Derived = None,
    *,
    reading: Reading,
    engine: Engine,
) -> None:
    """Learn weights that rank the best hypothesis of each list first.

    Ends with the scores of the first-ranked, the tuned and the oracle choices,
    of held-out lists (--folds or --heldout), of a second metric, and with tests
    of significance against the best choice without tuning: the start,
    consensus, a single feature. Without --folds or --heldout the tests hold
    only for the tuning lists. Weights that are all zero, unchanged or worse than
    the start are refused with exit code 1.
    """
    o.resumable(run, resume)
    preset, told = o.of_paper(as_, tuner, "kbmira")
    paper = told.on_lists()
    settings = o.settings(set_)
    if as_ is not None:
        settings, regime = paper.with_options(preset, settings), regime or paper.regime
    stages = stages_of(preset, settings, regime)
    for stage in stages:
        refuse_idle_workers(engine, stage.tuner)
    bounds, fixed = o.bounds(bound), o.fixed(fix)
    o.writable(out_file)
    measured = get_metric(metric)
    watched = None if second_metric is None else get_metric(second_metric)
    metrics = [measured] if watched is None else [measured, watched]
    reading = o.with_columns(reading, *metrics)
    held_reading = o.one_list(reading, nbest, heldout or [])
    if heldout_reference and not heldout:
        raise InputError("--heldout-reference without --heldout", remedy="name the lists too")
    start = None if weights is None else read_weights(weights)
    if start is None and told.start is not None:
        note(
            f"--as {as_}: the paper's start ({started(told.start)}) is for decoders; lists begin "
            "with the weights that ranked them (--weights gives others)"
        )
    ini = weights if weights is not None and weights.suffix == ".ini" else None
    if out_file is not None:
        check_copy(out_file, ini)

    # Start weights that name features of the lists want them, too.
    derived = list(dict.fromkeys([*o.comma_list(list_features), *derived_in(start or ())]))
    held = None
    with busy("reading"):
        read = read_lists(nbest, reference or None, source, reading, derived)
        skipped = tell_skipped(read.skipped)
        for each in metrics:
            o.referenced(each, read.pools)
        if heldout:
            read_held = read_lists(heldout, heldout_reference or None, None, held_reading, derived)
            tell_skipped(read_held.skipped)
            held = read_held.pools
            o.referenced(measured, held, "--heldout-reference")
    if start is not None:
        read.pools.check_names(start, learnt=True)
        tell_unknown(start, Applied(features=set(read.pools.names)).unknown(start))
    files = [*nbest, *(reference or []), *(heldout or []), *(heldout_reference or [])]
    files += [path for path in (source, weights) if path is not None]
    with (
        Watch(epochs(preset, settings) if len(stages) == 1 else None) as watch,
        Follow(run) as follow,
        Board(tensorboard) as board,
    ):
        result = tune_pools(
            read.pools,
            preset,
            measured,
            options=settings,
            regime=regime,
            start=start,
            heldout=[] if held is None else held,
            folds=folds,
            seeds=seeds,
            seed=seed,
            keep=keep or paper.keep or Keep.BEST,
            bounds=bounds,
            fixed=fixed,
            second_metric=watched,
            seconds=seconds,
            threads=threads,
            engine=engine,
            run=run,
            resume=resume,
            config=None if run is None else inputs(files, reading, derived),
            listen=both(watch, follow, board),
        )
    accepted = result.refused is None or force
    if out_file is not None and accepted:
        write_weights(result.weights, out_file, ini)
    if json:
        emit({**result.to_json(), "skipped": skipped})
    else:
        show_result(result)
        if out_file is not None and accepted:
            note(f"weights written to {out_file}")
        if run is not None:
            tell_reports(run)
    fits = result.refused is None
    if fits and result.heldout is not None and result.heldout_start is not None:
        gained = result.heldout - result.heldout_start
        if (gained if measured.higher_is_better else -gained) < 0:
            warn(
                f"on held-out lists the score went from {result.heldout_start:.2f} to "
                f"{result.heldout:.2f}: the weights fit the tuning lists only (more lists, or a "
                "tuner with regularisation, may help)"
            )
    if result.refused is not None and force:
        warn(f"weights that would be refused: {result.refused}")
    elif result.refused is not None:
        fail(
            f"refused: {result.refused} (another tuner, start or option may help; --force writes "
            "the weights anyway)",
            1,
        )


def refuse_idle_workers(engine: Engine, tuner: Tuner) -> None:
    """Raise for more workers than a tuner can use on saved lists."""
    wanted = engine.workers if isinstance(engine, Ray) else None
    if wanted is None or getattr(tuner, "shared", False):
        return
    learners = tuner.shares if isinstance(tuner, Online) else 1
    if wanted > learners:
        raise InputError(
            f"--workers {wanted}, but the tuner keeps only {learners} busy",
            remedy=f"give --regime shards={wanted}"
            if isinstance(tuner, Online)
            else "leave --workers out: this tuner learns at one worker",
        )


def epochs(tuner: str, settings: dict[str, Any]) -> int | None:
    """Return the maximum number of epochs of a run, for the progress bar."""
    given = preset_options(tuner) | settings
    if "restarts" in given:
        return int(given["restarts"]) + int(given["wide"]) + 1
    return next((int(given[key]) for key in ("rounds", "passes", "steps") if key in given), None)


def inputs(files: Sequence[Path], reading: Reading, derived: Sequence[str] = ()) -> dict[str, Any]:
    """Return fingerprints by which a resumed run recognises its inputs, and how they were read."""
    paths = [*files, *map(Path, reading.features.values())]
    paths += [Path(file) for file in reading.columns.values() if file is not None]
    # A folder stands for its files; a pipe cannot be read again.
    single = [
        path
        for file in paths
        if not is_stream(file)
        for path in (sorted(p for p in file.rglob("*") if p.is_file()) if file.is_dir() else [file])
    ]
    how = replace(reading, features={}, columns={})
    return {
        "inputs": [fingerprint(path) for path in single],
        "reading": {
            **{key: value for key, value in vars(how).items() if value},
            "features": list(reading.features),
            "columns": list(reading.columns),
            **({"derived": list(derived)} if derived else {}),
        },
    }


def tell_unknown(weights: Weights, unknown: Sequence[str]) -> None:
    """Warn of weights without a feature in the lists."""
    if unknown:
        shown = ", ".join(unknown[:5]) + ("…" if len(unknown) > 5 else "")
        known = sum(1 for value in weights.values() if value) - len(unknown)
        warn(f"weights without a feature in the lists: {len(unknown)} ({shown})")
        if not known:
            warn("no weight has a feature in the lists: every list keeps its order")


def show_result(result: Result) -> None:
    """Print the result of tuning."""
    rows = table(f"{result.tuner} for {result.metric}", "", "score", header=False)
    rows.add_row("start", f"{result.start:.2f}")
    rows.add_row("tuned", f"{result.tuned:.2f}", style="bold")
    rows.add_row("oracle", f"{result.oracle:.2f}")
    if result.heldout is not None:
        rows.add_row("held-out start", f"{result.heldout_start:.2f}")
        rows.add_row("held-out tuned", f"{result.heldout:.2f}", style="bold")
    if len(result.runs) > 1:
        rows.add_row("runs", " ".join(f"{score:.2f}" for score in result.runs))
    if result.second is not None:
        second = result.second
        rows.add_row(
            f"{second['name']}, not tuned", f"{second['start']:.2f} → {second['tuned']:.2f}"
        )
    out.print(rows)
    out.print(result.signature, style="dim")
    show_untuned(result)
    show_verdict(result)
    if (
        result.verdict != "better"
        and result.significance["against"] in (START, CONSENSUS)
        and not derived_in(result.weights)
    ):
        out.print(
            "--list-features first,agreement would let the weights count a hypothesis' place in "
            "the list and how far the others agree with it",
            style="dim",
        )
    show_weights(result.weights)
    out.print(f"\n{result.seconds:.2f} s", style="dim")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith rerank apply test.nbest.gz -w weights.toml > test.out\n\n"
    "$ tunesmith rerank apply test.nbest.gz -w weights.toml --nbest-out new.nbest.gz",
)
@o.reads_lists(columns=False)
def apply(
    nbest: Annotated[Path, typer.Argument(metavar="NBEST", help="N-best lists.")],
    weights: Annotated[
        Path | None,
        o.option(
            "--weights -w",
            "FILE",
            "Tuned weights: TOML, moses.ini, or lines of name and value. Without them the "
            "first-ranked hypotheses are taken.",
        ),
    ] = None,
    nbest_out: Annotated[
        Path | None,
        o.option("--nbest-out", "FILE", "Write the lists re-ordered, with one more score."),
    ] = None,
    name: Annotated[str, o.option("--name", "NAME", "Name of that score.")] = "tunesmith",
    out_format: Annotated[
        str | None,
        o.option("--out-format", "NAME", f"{', '.join(names())}; that of the lists if not given."),
    ] = None,
    threads: o.Threads = 0,
    *,
    reading: Reading,
) -> None:
    """Choose the best hypothesis of each list: one line per sentence on stdout.

    Features that the lists themselves give (rerank tune --list-features) are
    added where the weights name them.
    """
    o.writable(nbest_out, folder=True)
    # Without weights every list keeps its order.
    vector = Weights({}) if weights is None else read_weights(weights)
    if nbest_out is None:
        applied = Applied()
        piped = is_stream(nbest)
        with _ended_at_once() if piped else nullcontext():
            for line in apply_lines(nbest, vector, reading, applied, threads):
                print(line, flush=piped)
    else:
        applied = apply_nbest(nbest, vector, nbest_out, name, out_format, reading, threads)
        note(f"lists written to {nbest_out}")
    tell_skipped(applied.skipped)
    tell_unknown(vector, applied.unknown(vector))


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """Let an interruption end the process: the core ignores it while it waits for input."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
