"""Tune weights on lists: start, runs, folds, held-out lists, significance, refusal."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.drivers import Task, Tuner
from tunesmith.errors import InputError
from tunesmith.features import Vector, Weights
from tunesmith.jobs import Job, Journal, run_jobs
from tunesmith.metrics import Metric, Rows, get_metric
from tunesmith.moments import recover_weights, spreads
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.runs.config import settings_of
from tunesmith.significance import Verdict, paired_bootstrap, paired_randomisation, verdict
from tunesmith.spaces import Pools, Positions, Spaces
from tunesmith.untuned import START, Untuned, untuned_choices

Bounds = Mapping[str, tuple[float, float]]
Keep = Literal["best", "last", "heldout"]
Listener = Callable[[dict[str, Any]], None]

SHOWN_WEIGHTS = 50
SHOWN_NAMES = 12


@dataclass(frozen=True)
class Result:
    """What tuning found; scores are on the metric's own scale."""

    tuner: str
    metric: str
    signature: str
    weights: Weights
    start: float
    tuned: float
    oracle: float
    heldout: float | None
    heldout_start: float | None
    runs: list[float]
    second: dict[str, Any] | None
    significance: dict[str, Any]
    seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    baselines: dict[str, float] = field(default_factory=dict)
    """Scores of what needs no tuning, on the sentences that `significance` is about: `start`,
    `consensus`, and single features as `+NAME` or `-NAME`."""
    verdict: Verdict = "unclear"
    """Whether the tuned weights are better than the best of `baselines`, which
    `significance["against"]` names; `significance["on"]` says on what: `lists` are those that were
    learnt from, where `better` proves nothing."""
    changed: dict[str, int] = field(default_factory=dict)
    """How many of the `sentences` have `changed` output compared with the start, and how many of
    these are `better` and `worse`; on the sentences that `significance` is about."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        plain = {key: value for key, value in self.__dict__.items() if key != "weights"}
        influence = self.weights.influence
        return {**plain, "weights": dict(self.weights), "influence": influence}


def tune(
    pools: Spaces,
    preset: str = "kbmira",
    metric: str | Metric = "bleu",
    *,
    options: Mapping[str, Any] | None = None,
    tuner: Tuner | None = None,
    start: Mapping[str, float] | Vector | None = None,
    heldout: Spaces | None = None,
    folds: int = 0,
    seeds: int = 1,
    seed: int = 1,
    keep: Keep = "best",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    second_metric: str | Metric | None = None,
    threads: int = 0,
    run: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    listen: Listener | None = None,
) -> Result:
    """Learn the weights that make the lists' best hypotheses score highest under a metric.

    `options` are those of the preset; a `tuner` of your own takes the preset's place. `start` are
    weights to begin with; without them the weights behind the lists' own scores are recovered, or
    zero is used, which keeps the lists' order. `heldout` lists are scored but not learnt from,
    `folds` holds out each part of the lists in turn. With several `seeds` the runs' weights are
    averaged. `bounds` and `fixed` take feature names or patterns (`"TM*"`). `keep` says which
    epoch's weights a run ends with: the best on the lists, the last, or the best on `heldout`.
    `run` is a directory for events, checkpoints and weights; `resume` goes on with it.

    Returns a `Result`. `Result.verdict` says whether the weights beat what needs no tuning (the
    start, consensus, the best single feature) on sentences that they were not learnt from, if there
    are any. `Result.refused` gives the reason where the weights are no good: all zero, unchanged,
    or worse than the start. Results do not depend on `threads`.

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
    began = time.perf_counter()
    metric = get_metric(metric)
    algorithm = tuner if tuner is not None else make_tuner(preset, options)
    check_request(seed, threads, keep)
    _check(pools, heldout, folds, seeds, keep)
    names = pools.names
    lower, upper = limits(names, bounds or {}, fixed or {})
    task = Task(pools, metric, lower, upper, threads)
    if not task.free.any():
        raise InputError("every weight is fixed", remedy="leave at least one of them free")
    held = None if heldout is None else heldout.aligned(names)
    begin, first = _begin(pools, start, threads)
    begin = task.clip(begin)
    start_score = pools.score(metric, first)
    oracle_score = pools.score(metric, pools.oracle(metric, begin))

    def evaluate(task: Task, weights: Vector) -> dict[str, Any]:
        score, gain = task.evaluate(_fitting(pools, weights))
        seen: dict[str, Any] = {"score": score, "gain": gain}
        if held is not None:
            there = replace(task, pools=held).evaluate(_fitting(held, weights))
            seen["heldout"], seen["heldout_gain"] = there
        return seen

    jobs = [Job("run", n, seed + n, task, keep) for n in range(seeds)]
    parts = fold_parts(pools.sentences, folds, seed)
    for number in range(folds):
        rest = np.concatenate([part for other, part in enumerate(parts) if other != number])
        fold_task = replace(task, pools=pools.subset(np.sort(rest).tolist()))
        jobs.append(Job("fold", number, seed, fold_task, "last" if keep == "last" else "best"))

    directory = None if run is None else RunDirectory(run)
    if tuner is not None:
        preset = type(tuner).__name__
    settings = {
        "preset": preset,
        "metric": metric.name,
        "signature": pools.signature(metric),
        "options": dict(options or {}),
        "seed": seed,
        "seeds": seeds,
        "folds": folds,
        "keep": keep,
        "tuner": settings_of(algorithm),
        "digest": None if run is None else _digest(task, held, begin),
        **dict(config or {}),
    }
    with Journal(directory, settings, resume, listen) as journal:
        journal.event(
            "start",
            preset=preset,
            metric=metric.name,
            signature=settings["signature"],
            metric_higher=metric.higher_is_better,
            features=len(names),
            sentences=pools.sentences,
            hypotheses=pools.hypotheses,
            space=pools.what,
            start=start_score,
            oracle=oracle_score,
            worst=pools.score(metric, pools.oracle(metric, begin, best=False)),
            options=settings["options"],
            runs=seeds,
            folds=folds,
        )
        found = run_jobs(jobs, algorithm, begin, evaluate, journal)
        finals = [found[number] for number in range(seeds)]
        weights = task.clip(_average(task, finals))
        chosen = pools.best(_fitting(pools, weights), threads)
        tuned = pools.score(metric, chosen)
        # Exchange finds a close bound for metrics that do not add up, not always the best.
        better = max if metric.higher_is_better else min
        oracle_score = better(oracle_score, tuned)

        # The honest comparison is on what was not learnt from, where there is such.
        compared, base, system = pools, first, chosen
        heldout_score = heldout_start = None
        if held is not None:
            compared = held
            if start is None:
                base = held.first()
            else:
                base = held.best(_fitting(held, pools.vector(start, partial=True)), threads)
            system = held.best(_fitting(held, weights), threads)
        elif folds:
            system = _fold_choices(pools, parts, found[seeds:], threads)
        if held is not None or folds:
            heldout_score = compared.score(metric, system)
            heldout_start = compared.score(metric, base)
        simple = untuned_choices(compared, metric, base, _fitting(compared, begin), threads)
        tests = _tests(compared, metric, simple, system, seed)
        tests["on"] = "heldout" if compared is held else "folds" if folds else "lists"
        # The best of many epochs on the held-out lists is a little too good there.
        tests["chosen_there"] = keep == "heldout"
        both = base, system
        rows = [compared.statistics(metric, each) for each in both]
        texts = [compared.outputs(each) for each in both]
        result = Result(
            tuner=preset,
            metric=metric.name,
            signature=settings["signature"],
            weights=Weights.from_vector(names, weights),
            start=start_score,
            tuned=tuned,
            oracle=oracle_score,
            heldout=heldout_score,
            heldout_start=heldout_start,
            runs=[pools.score(metric, pools.best(_fitting(pools, w), threads)) for w in finals],
            second=_second(compared, metric, second_metric, base, system),
            significance=tests,
            seconds=time.perf_counter() - began,
            options=settings["options"],
            refused=refusal(metric, begin, weights, start_score, tuned),
            baselines=simple.scores,
            verdict=_verdict(metric, tests),
            changed=count_changes(metric, rows, texts),
        )
        result.weights.meta.update(
            tuner=preset,
            metric=metric.name,
            signature=result.signature,
            start=start_score,
            tuned=tuned,
            heldout=heldout_score,
            version=_core.__version__,
            spread=spreads(pools, result.weights, threads),
        )
        journal.event(
            "end",
            start=start_score,
            tuned=tuned,
            oracle=oracle_score,
            heldout=heldout_score,
            heldout_start=heldout_start,
            second_metric=result.second,
            significance=result.significance,
            baselines=result.baselines,
            verdict=result.verdict,
            changed=result.changed,
            seconds=result.seconds,
            weights=result.weights.top(SHOWN_WEIGHTS),
            status="refused" if result.refused else "ok",
            reason=result.refused,
        )
        if directory is not None and not journal.finished:
            directory.save_weights(result.weights, result.weights.meta)
            directory.save_changes(changes(metric, rows, texts, compared))
            directory.finish(
                {key: value for key, value in result.to_json().items() if key != "weights"}
            )
    return result


def limits(
    names: Sequence[str],
    bounds: Bounds,
    fixed: Mapping[str, float],
    *,
    growing: bool = False,
) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of the named weights.

    Refuses a name that there is not, and a pattern that matches nothing, unless there may be more
    names later (`growing`).
    """
    check_limits(bounds, fixed)
    lower = np.full(len(names), -np.inf)
    upper = np.full(len(names), np.inf)
    for pattern, (low, high) in _ranges(bounds, fixed):
        places = _places(names, pattern)
        if not places and not growing:
            raise no_feature(pattern, names)
        lower[places], upper[places] = low, high
    return lower, upper


def check_limits(bounds: Bounds, fixed: Mapping[str, float]) -> None:
    """Refuse limits that no weight can keep to."""
    for name, (low, high) in _ranges(bounds, fixed):
        if not low <= high:
            raise InputError(
                f"the bounds of {name!r} are {low} and {high}", remedy="give the lower one first"
            )


def no_feature(name: str, names: Sequence[str]) -> InputError:
    """Return what to say of limits for a feature that there is not."""
    return InputError(
        f"no feature is called {name!r}", remedy=f"there are {', '.join(names[:SHOWN_NAMES])}"
    )


def idle_limits(names: Sequence[str], bounds: Bounds, fixed: Mapping[str, float]) -> list[str]:
    """Return the names and patterns of limits that are those of no feature."""
    return [pattern for pattern in {**bounds, **fixed} if not _places(names, pattern)]


def within(
    weights: Weights, bounds: Bounds, fixed: Mapping[str, float], names: Sequence[str] = ()
) -> Weights:
    """Return weights within their limits, also those of `names` where zero is not."""
    if not (bounds or fixed):
        return weights
    every = list(dict.fromkeys([*weights, *names]))
    vector = np.clip(weights.vector(every), *limits(every, bounds, fixed, growing=True))
    return weights.replaced(
        {
            name: value
            for name, value in zip(every, vector.tolist(), strict=True)
            if value or name in weights
        }
    )


def _ranges(bounds: Bounds, fixed: Mapping[str, float]) -> list[tuple[str, tuple[float, float]]]:
    return [*bounds.items(), *((name, (value, value)) for name, value in fixed.items())]


def _places(names: Sequence[str], pattern: str) -> list[int]:
    """Return where the name is, or where those are that match it."""
    return [i for i, name in enumerate(names) if name == pattern] or [
        i for i, name in enumerate(names) if fnmatchcase(name, pattern)
    ]


def is_pattern(name: str) -> bool:
    """Whether a name may match others than itself."""
    return any(mark in name for mark in "*?[")


def may_match(bounds: Bounds, fixed: Mapping[str, float]) -> bool:
    """Whether features that are not known yet may have limits."""
    return any(map(is_pattern, [*bounds, *fixed]))


def fold_parts(sentences: int, folds: int, seed: int) -> list[npt.NDArray[np.int64]]:
    """Return the sentences of each fold: a random partition, the same for the same seed."""
    if folds == 0:
        return []
    order = _core.permutation(seed, 0, sentences).astype(np.int64)
    return [np.sort(part) for part in np.array_split(order, folds)]


def average_direction(runs: Sequence[Vector]) -> Vector:
    """Return the mean of the runs' weights, each scaled to the same length first."""
    if len(runs) == 1:
        return runs[0]
    norms = [float(np.linalg.norm(w)) for w in runs]
    size = float(np.mean(norms))
    scaled = [w / n * size if n else w for w, n in zip(runs, norms, strict=True)]
    mean: Vector = np.mean(scaled, axis=0)
    return mean


def _average(task: Task, runs: Sequence[Vector]) -> Vector:
    """Return the mean of the runs' weights; lengths count where limits give them a meaning."""
    limited = [np.isfinite(limit[limit != 0.0]).any() for limit in (task.lower, task.upper)]
    if any(limited):
        mean: Vector = np.mean(runs, axis=0)
        return mean
    return average_direction(runs)


def check_request(seed: int, threads: int, keep: str) -> None:
    """Refuse what no tuning takes."""
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed is {seed}", remedy="give a number from 0 on, below 2**63")
    if threads < 0:
        raise InputError(f"{threads} threads", remedy="give their number, or 0 for one per core")
    if keep not in get_args(Keep):
        raise InputError(f"keep is {keep!r}", remedy=f"use one of {', '.join(get_args(Keep))}")


def _check(pools: Spaces, heldout: Spaces | None, folds: int, seeds: int, keep: str) -> None:
    if pools.hypotheses == 0:
        raise InputError("the lists hold no hypotheses", remedy="check the n-best file")
    if not pools.names:
        raise InputError("the hypotheses have no features", remedy="nothing can be tuned")
    if folds and heldout is not None:
        raise InputError("both folds and held-out lists", remedy="choose one of the two")
    if folds == 1 or folds > pools.sentences:
        raise InputError(f"{folds} folds of {pools.sentences} sentences", remedy="give 2 or more")
    if seeds < 1:
        raise InputError(f"{seeds} runs", remedy="give at least one seed")
    if keep == "heldout" and heldout is None:
        raise InputError(
            "weights are to be chosen on held-out lists, but there are none",
            remedy="give held-out lists",
        )


def _digest(task: Task, held: Spaces | None, begin: Vector) -> str:
    """Return a fingerprint of what is learnt from and of the limits, so that a run is resumed with
    the data that it was started with."""
    made = hashlib.sha256()
    for pools in (task.pools, held):
        if pools is not None:
            for part in pools.contents(task.metric):
                made.update(part)
            made.update("\n".join(pools.names).encode("utf-8", "surrogatepass"))
    for vector in (begin, task.lower, task.upper):
        made.update(vector.tobytes())
    return made.hexdigest()


def _fitting(spaces: Spaces, weights: Vector) -> Vector:
    """Return weights with which spaces can choose: features that only they have weigh nothing.

    So do weights that are not finite: a tuner may have better ones yet, or is refused.
    """
    finite = np.nan_to_num(weights, posinf=0.0, neginf=0.0)
    return np.pad(finite, (0, spaces.width - len(finite)))


def _begin(
    pools: Spaces, start: Mapping[str, float] | Vector | None, threads: int
) -> tuple[Vector, Positions]:
    """Return the weights to begin with, and the choices that count as the start."""
    if start is not None:
        # Weights of a larger model are welcome; those of another one are a mistake.
        if isinstance(start, Mapping):
            pools.check_names(start, learnt=True)
        vector = pools.vector(start, partial=True)
        return vector, pools.best(vector, threads)
    first = pools.first()
    recovered = recover_weights(pools.origin) if isinstance(pools, Pools) else None
    return pools.vector(recovered or {}), first


def _fold_choices(
    pools: Spaces, parts: Sequence[npt.NDArray[np.int64]], weights: Sequence[Vector], threads: int
) -> Positions:
    """Return what each fold's weights choose for the sentences they have not seen."""
    chosen = np.full(pools.sentences, -1, np.int64)
    for part, vector in zip(parts, weights, strict=True):
        chosen[part] = pools.best(_fitting(pools, vector), threads)[part]
    return chosen


def _second(
    pools: Spaces, metric: Metric, asked: str | Metric | None, base: Positions, system: Positions
) -> dict[str, Any] | None:
    """Score with a metric that was not tuned: whoever gains on one should not lose on the other."""
    if asked is None:
        if pools.references is None:
            return None
        asked = {"bleu": "chrf", "wer": "cer"}.get(metric.name, "bleu")
    other = get_metric(asked)

    def score(positions: Positions) -> float:
        if other.columns or pools.references is None:
            return pools.score(other, positions)
        return other.corpus_score(pools.outputs(positions), pools.references)

    return {
        "name": other.name,
        "signature": pools.signature(other),
        "start": score(base),
        "tuned": score(system),
    }


def _tests(
    pools: Spaces, metric: Metric, simple: Untuned, system: Positions, seed: int
) -> dict[str, Any]:
    """Return tests of the tuned choices against the best of those that need no tuning, and against
    the start."""
    best = _significance(pools, metric, simple.choices[simple.best], system, seed)
    start = best
    if simple.best != START:
        start = _significance(pools, metric, simple.choices[START], system, seed)
    return {**best, "against": simple.best, "start": start}


def _verdict(metric: Metric, tests: Mapping[str, Any]) -> Verdict:
    if "bootstrap" not in tests:
        return "unclear"
    difference = tests["bootstrap"]["difference"]
    gain = difference if metric.higher_is_better else -difference
    return verdict(gain, tests["bootstrap"]["p"], tests["randomisation"]["p"])


def _significance(
    pools: Spaces, metric: Metric, base: Positions, system: Positions, seed: int
) -> dict[str, Any]:
    before, after = pools.statistics(metric, base), pools.statistics(metric, system)
    bootstrap = paired_bootstrap(metric, before, after, seed=seed)
    shuffled = paired_randomisation(metric, before, after, seed=seed)
    return {
        "bootstrap": {
            "p": bootstrap.p,
            "ci": list(bootstrap.ci),
            "difference": bootstrap.difference,
        },
        "randomisation": {"p": shuffled.p},
    }


def refusal(
    metric: Metric, begin: Vector, weights: Vector, start: float, tuned: float
) -> str | None:
    """Return why the weights are no good, or None."""
    if not np.isfinite(weights).all():
        return "a weight is not finite: the step size is too large"
    if not weights.any():
        return "all weights are zero: the regularisation is too strong"
    if same_direction(weights, begin):
        return "the weights have not changed: no constraint was violated, or the start is optimal"
    worse = tuned < start if metric.higher_is_better else tuned > start
    if worse:
        return f"the tuned score {tuned:.2f} is worse than the start {start:.2f}"
    return None


def same_direction(one: Vector, other: Vector) -> bool:
    """Whether two weight vectors choose alike everywhere, being multiples of each other."""
    norms = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    if not all(norms):
        return norms == (0.0, 0.0)
    return bool(np.abs(one / norms[0] - other / norms[1]).max() < 1e-12)


def changes(
    metric: Metric, rows: Sequence[Rows], texts: Sequence[Sequence[str]], told: Spaces
) -> Iterator[dict[str, Any]]:
    """Yield the sentences whose output changed, the largest change in gain first.

    Statistics and texts are those before and after; `told` has sources and references.
    """
    before, after = (metric.native.sentence_gains(each) for each in rows)
    changed = _changed(texts)
    changed.sort(key=lambda i: (-abs(after[i] - before[i]), i))
    keys = told.keys
    for i in changed:
        yield {
            "sentence": i,
            "key": keys[i] if keys else None,
            "source": told.sources[i] if told.sources else None,
            "reference": told.references[i] if told.references else [],
            "before": texts[0][i],
            "after": texts[1][i],
            "gain_before": float(before[i]),
            "gain_after": float(after[i]),
        }


def count_changes(
    metric: Metric, rows: Sequence[Rows], texts: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Return how many sentences there are, how many changed, and how many of these gained or lost.

    Statistics and texts are those before and after.
    """
    before, after = (metric.native.sentence_gains(each) for each in rows)
    changed = _changed(texts)
    moved = (after - before)[changed]
    return {
        "sentences": len(texts[0]),
        "changed": len(changed),
        "better": int(np.count_nonzero(moved > 0)),
        "worse": int(np.count_nonzero(moved < 0)),
    }


def _changed(texts: Sequence[Sequence[str]]) -> list[int]:
    return [i for i, (before, after) in enumerate(zip(*texts, strict=True)) if before != after]
