"""The one loop: a source, a tuner, a metric; seeds, folds, runs; weights, and whether they help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import THREADS, Engine
from tunesmith.errors import InputError
from tunesmith.learn.task import Tuner
from tunesmith.metrics import Metric, get_metric
from tunesmith.runs import RunDirectory
from tunesmith.runs.config import settings_of
from tunesmith.sources import Saved, Source
from tunesmith.spaces import Spaces
from tunesmith.tuning.chain import stages_of, tune_in_turn
from tunesmith.tuning.comparison import outcome_of
from tunesmith.tuning.journal import Journal, Listener
from tunesmith.tuning.keeper import Keeper
from tunesmith.tuning.limits import Bounds, check_limits, idle_limits
from tunesmith.tuning.result import Result, refusal
from tunesmith.tuning.rounds import make_rounds
from tunesmith.tuning.runner import EVENT_WEIGHTS, Runner
from tunesmith.tuning.setup import Setup
from tunesmith.tuning.standing import Clock, Job, Keep
from tunesmith.tuning.start import make_start
from tunesmith.weights import Vector

# Fields of the result that the last event shows.
END_FIELDS = (
    "start",
    "tuned",
    "oracle",
    "heldout",
    "heldout_start",
    "heldout_all",
    "heldout_start_all",
    "significance",
    "baselines",
    "verdict",
    "changed",
    "seconds",
)


def tune(
    source: Source | Spaces,
    preset: str | None = None,
    metric: str | Metric = "bleu",
    *,
    options: Mapping[str, Any] | None = None,
    regime: str | None = None,
    tuner: Tuner | None = None,
    start: Mapping[str, float] | Vector | None = None,
    heldout: Source | Spaces | Sequence[Source | Spaces] = (),
    folds: int = 0,
    seeds: int = 1,
    seed: int = 1,
    keep: str = "best",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    second_metric: str | Metric | None = None,
    iterations: int | None = None,
    stop: float = 1e-5,
    seconds: float | None = None,
    merged: bool = False,
    threads: int = 0,
    engine: Engine | None = None,
    run: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    listen: Listener | None = None,
) -> Result:
    """Learn the weights with which the best hypotheses score highest under a metric.

    Parameters
    ----------
    source
        Lists or forests, or a source that decodes: `Live` (our decoders), `Command` (any program).
    preset, options, regime, tuner
        The algorithm by name (`kbmira`) with its options and changes to its regime
        (`"shards=2,mix=5"`); a `tuner` of your own takes its place. `"mert,mira"` is a chain: each
        begins with what the one before it found, and only the last one sees templates that were
        turned on for tuning. Options of a chain name the tuner: `{"mira.c": 0.01}`.
    start
        Weights to begin with. Saved lists may do without: the weights behind their own scores are
        recovered, or zero is used, which keeps their order.
    heldout, folds
        What is scored but not learnt from: other sources, or each of `folds` parts in turn.
    seeds, seed
        With several seeds, the average of the runs' weights is returned.
    keep
        The round whose weights a run ends with: the `best` on the source, the `last`, or the best
        on `heldout`.
    bounds, fixed
        Limits of weights, by feature name or pattern (`"TM*"`).
    iterations, stop, seconds, merged
        With a decoder: at most so many decodings (25) or passes (the preset's). Batch tuners end
        early when a decoding brings nothing new, no weight moves by more than `stop`, or five
        decodings in a row are no better. A run or fold whose rounds took `seconds` begins no other
        one: then the result depends on the machine. With `merged`, online tuners pass over the
        lists of all decodings instead of following the decoder.
    run, resume, config, meta
        A directory for events, checkpoints and weights. `resume` goes on with it and raises if any
        setting changed, including the extra ones in `config`. `meta` is written with the weights.

    Returns a `Result`. `Result.verdict` says whether the weights beat what needs no tuning on
    sentences that they were not learnt from, if there are any. `Result.refused` gives the reason
    where the weights are no good: all zero, unchanged, or worse than the start. Results do not
    depend on `threads` or `engine`.

    >>> import numpy as np
    >>> from tunesmith import Pools, tune
    >>> pools = Pools.from_arrays(
    ...     features=np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]),
    ...     starts=[0, 2, 4],
    ...     names=["fluency", "noise"],
    ...     texts=["a cat sad", "a cat sat", "the dog runs of", "the dog runs off"],
    ...     references=[["a cat sat"], ["the dog runs off"]],
    ... )
    >>> result = tune(pools, preset="mert", metric="chrf")
    >>> result.tuned, result.weights["fluency"] > result.weights["noise"]
    (100.0, True)
    """
    clock = Clock()
    measure = get_metric(metric)
    second = None if second_metric is None else get_metric(second_metric)
    preset = preset or ("kbmira" if tuner is None else type(tuner).__name__)
    if tuner is None:
        stages = stages_of(preset, options, regime)
        if len(stages) > 1:
            return tune_in_turn(
                tune,
                stages,
                source,
                measure,
                start=start,
                heldout=heldout,
                folds=folds,
                seeds=seeds,
                seed=seed,
                keep=keep,
                bounds=bounds,
                fixed=fixed,
                second_metric=second_metric,
                iterations=iterations,
                stop=stop,
                seconds=seconds,
                merged=merged,
                threads=threads,
                engine=engine,
                run=run,
                resume=resume,
                config=config,
                meta=meta,
                listen=listen,
            )
        tuner = stages[0].tuner
    algorithm = tuner
    kept = _check(seed, seeds, threads, keep)
    if kept is Keep.BEST and getattr(algorithm, "take", "best") == "last" and _is_saved(source):
        kept = Keep.LAST
    where = source if isinstance(source, Source) else Saved(source)
    if (space := getattr(algorithm, "space", None)) is not None:
        where = where.suited(space)
    given = [heldout] if isinstance(heldout, Source | Spaces) else heldout
    others = [each if isinstance(each, Source) else Saved(each) for each in given]
    where, others = where.on(engine or THREADS), [each.on(engine or THREADS) for each in others]
    _check_sources(where, others, folds, iterations, kept)
    if seconds is not None and not seconds > 0:
        raise InputError(f"{seconds} seconds", remedy="give more than none")
    asked = Setup(measure, bounds or {}, dict(fixed or {}), threads, engine or THREADS)
    check_limits(asked.bounds, asked.fixed)
    # Raises if the tuner's regime does not suit the source, before a run directory is made.
    make_rounds(algorithm, where, asked, seed, iterations, merged)
    begin = make_start(where, others, start, asked)
    parts = fold_parts(where.sentences, folds, seed)
    jobs = [Job("run", number, seed + number, where, kept) for number in range(seeds)]
    for number in range(folds):
        rest = np.concatenate([part for other, part in enumerate(parts) if other != number])
        fold = where.subset(np.sort(rest).tolist())
        jobs.append(Job("fold", number, seed, fold, Keep.LAST if kept is Keep.LAST else Keep.BEST))
    setup = begin.setup
    counts = {len(references) for references in where.references or [[""]]}
    signature = measure.signature(counts.pop() if len(counts) == 1 else -1)
    settings = {
        "preset": preset,
        "metric": measure.name,
        "signature": signature,
        "options": dict(options or {}),
        "seed": seed,
        "seeds": seeds,
        "folds": folds,
        "keep": kept.value,
        "iterations": iterations,
        "stop": stop,
        "merged": merged,
        "fixed": setup.fixed,
        "bounds": setup.bounds,
        "measure": settings_of(measure),
        "second_metric": None if second is None else settings_of(second),
        "tuner": settings_of(algorithm),
        "digest": {} if run is None else begin.digests(measure),
        **({} if seconds is None else {"seconds": seconds}),
        **begin.resume_keys(),
        **dict(config or {}),
    }
    directory = None if run is None else RunDirectory(run)
    with Journal(directory, settings, resume, listen) as journal:
        shown = ("preset", "metric", "signature", "options", "folds")
        runner = Runner(
            algorithm,
            begin,
            iterations=iterations,
            stop=stop,
            seconds=seconds,
            merged=merged,
            journal=journal,
            keeper=Keeper(journal, directory, clock),
            clock=clock,
            facts={key: settings[key] for key in shown} | {"runs": seeds},
        )
        ends = runner.run_all(jobs)
        found = outcome_of(begin, jobs, ends, parts)
        weights, runs = found.weights, ends[:seeds]
        oracle = runner.oracle
        if oracle is not None:
            # Exchange finds a close bound for metrics that do not add up, not always the best.
            oracle = (max if measure.higher_is_better else min)(oracle, found.tuned)
        result = Result(
            tuner=preset,
            metric=measure.name,
            signature=signature,
            weights=weights,
            start=found.start,
            tuned=found.tuned,
            oracle=oracle,
            heldout=found.heldout[0] if found.heldout else None,
            heldout_start=found.heldout_start[0] if found.heldout else None,
            heldout_all=found.heldout,
            heldout_start_all=found.heldout_start,
            runs=[found.start if run.score is None else run.score for run in runs],
            curve=runs[0].curve,
            counts=runs[0].counts,
            **found.comparison.facts(begin.weights, threads, kept, second, seed),
            seconds=clock.total,
            decode_seconds=clock.decode,
            optimise_seconds=clock.optimise,
            options=dict(options or {}),
            refused=refusal(
                measure,
                begin.weights,
                weights,
                found.start,
                found.tuned,
                moved=any(run.moved for run in runs),
                heldout=kept is Keep.HELDOUT,
            ),
            # What the source itself keeps was not asked for, so it is not reported.
            idle_limits=idle_limits(
                [*runner.names, *weights, *where.kept_weights], setup.bounds, setup.fixed
            ),
        )
        weights.meta.update(
            tuner=preset,
            metric=measure.name,
            signature=signature,
            start=result.start,
            tuned=result.tuned,
            heldout=result.heldout,
            version=_core.__version__,
            spread=runner.spreads(weights),
            **dict(meta or {}),
        )
        journal.event(
            "end",
            **{name: getattr(result, name) for name in END_FIELDS},
            second_metric=result.second,
            weights=weights.top(EVENT_WEIGHTS),
            status="refused" if result.refused else "ok",
            reason=result.refused,
        )
        if directory is not None and not journal.finished:
            directory.save_weights(weights, weights.meta)
            directory.save_changes(found.comparison.changes())
            directory.save_outputs(found.comparison.outputs())
            directory.finish(
                {key: value for key, value in result.to_json().items() if key != "weights"}
            )
    return result


def _is_saved(source: Source | Spaces) -> bool:
    """Whether a tuner's own rounds are those of the run."""
    return not isinstance(source, Source) or source.fixed


def fold_parts(sentences: int, folds: int, seed: int) -> list[npt.NDArray[np.int64]]:
    """Return the sentences of each fold: a random partition, the same for the same seed."""
    if folds == 0:
        return []
    order = _core.permutation(seed, 0, sentences).astype(np.int64)
    return [np.sort(part) for part in np.array_split(order, folds)]


def _check(seed: int, seeds: int, threads: int, keep: str) -> Keep:
    """Return which weights to keep; raise if a number makes no sense."""
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed is {seed}", remedy="give a number from 0 on, below 2**63")
    if seeds < 1:
        raise InputError(f"{seeds} runs", remedy="give at least one seed")
    if threads < 0:
        raise InputError(f"{threads} threads", remedy="give their number, or 0 for one per core")
    if keep not in list(Keep):
        raise InputError(f"keep is {keep!r}", remedy=f"use one of {', '.join(Keep)}")
    return Keep(keep)


def _check_sources(
    source: Source,
    heldout: Sequence[Source],
    folds: int,
    iterations: int | None,
    keep: Keep,
) -> None:
    if isinstance(source, Saved):
        source.check()
    if folds and heldout:
        raise InputError("both folds and held-out lists", remedy="choose one of the two")
    if folds == 1 or folds < 0 or folds > source.sentences:
        raise InputError(f"{folds} folds of {source.sentences} sentences", remedy="give 2 or more")
    if keep is Keep.HELDOUT and not heldout:
        raise InputError(
            "weights are to be chosen on held-out text, but there is none",
            remedy="give held-out lists, or a held-out source and its references",
        )
    if iterations is not None and iterations < 1:
        raise InputError(f"{iterations} iterations", remedy="give at least one")
