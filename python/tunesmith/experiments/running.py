"""One run: a system on a task with a seed, tuned and tested; found once, kept by content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith import presets
from tunesmith.engines import THREADS, Engine
from tunesmith.errors import InputError
from tunesmith.experiments.local import translated_locally
from tunesmith.experiments.recipe import ACCURACY, ALONE, CONSENSUS, HELDOUT, UNTUNED, System
from tunesmith.experiments.store import Store, load_rows, save_rows
from tunesmith.experiments.worlds import UntestableError, World
from tunesmith.files.arrays import packed, unpacked
from tunesmith.learn.online import Online, with_regime
from tunesmith.learn.task import Tuner
from tunesmith.learn.untuned import untuned_choices
from tunesmith.metrics import Metric, Rows, get_metric
from tunesmith.runs import RunDirectory
from tunesmith.runs.config import settings_of
from tunesmith.sources import Saved, Source
from tunesmith.sources.base import Choice
from tunesmith.spaces.reading import read_weights
from tunesmith.structured import Training, Tree
from tunesmith.structured import train as learn_structured
from tunesmith.tuning import tune
from tunesmith.tuning.setup import Setup
from tunesmith.tuning.start import make_start
from tunesmith.weights import Weights

Chooser = Callable[[Source], Choice]

# What is kept of each round.
EPOCH = (
    "epoch",
    "score",
    "score_bins",
    "seconds",
    "decode_seconds",
    "optimise_seconds",
    "nonzero",
    "spread",
    "model",
    "oracle",
    "prediction",
    "corpus",
    "hypotheses",
    "weights",
)
DECODINGS = 25


class Accuracy(Metric):
    """The percentage of right parts. Statistics: right ones, all."""

    name, width = ACCURACY, 2

    def score_rows(self, rows: Rows) -> Rows:
        """Return percentages."""
        return 100.0 * self.gain_rows(rows)

    def gain_rows(self, rows: Rows) -> Rows:
        """Return shares."""
        shares: Rows = rows[:, 0] / np.maximum(rows[:, 1], 1.0)
        return shares


def metric_of(name: str) -> Metric:
    """Return a metric by name; `accuracy` is that of structured tasks."""
    return Accuracy() if name == ACCURACY else get_metric(name)


@dataclass(frozen=True)
class Job:
    """A run to be made."""

    world: World
    system: System
    seed: int
    metrics: tuple[str, ...]
    before: Mapping[str, Any] | None = None
    """What was found with the system that it starts from."""

    @property
    def label(self) -> str:
        """A short name for messages."""
        return f"{self.world.task.name}, {self.system.name}, seed {self.seed}"


@dataclass(frozen=True)
class Found:
    """What a run found; `tests` has a score for each test and metric."""

    task: str
    system: str
    seed: int
    facts: Mapping[str, Any]

    @property
    def tests(self) -> dict[str, dict[str, float]]:
        """Scores by test, then by metric."""
        return dict(self.facts["tests"])

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """The rounds."""
        return list(self.facts["epochs"])

    def rows(self, test: str, metric: str) -> Rows:
        """Return the statistics of a test's sentences."""
        return np.asarray(load_rows(self.facts)[f"{test}\t{metric}"], np.float64)

    def outputs(self, test: str) -> list[str]:
        """Return the translations of a test."""
        return unpacked(load_rows(self.facts)[f"{test}\toutput"])

    @property
    def weights(self) -> Weights:
        """The weights that were learnt."""
        path = Path(self.facts["folder"]) / "weights.toml"
        return read_weights(path)


def tuner_of(system: System) -> Tuner:
    """Return the tuner of a system."""
    return with_regime(presets.make_tuner(system.preset, dict(system.options)), system.regime)


def made(
    job: Job, store: Store, engine: Engine = THREADS, tell: Callable[..., None] | None = None
) -> Found:
    """Return what a run found, now or before."""
    system, world = job.system, job.world
    tuned_for = metric_of(system.metric or job.metrics[0])
    key: dict[str, Any] = {
        "task": dict(world.digests(system, tuned_for)),
        "search": {**system.search, **world.task.search},
        "system": {
            name: value
            for name, value in asdict(system).items()
            if name not in ("name", "tasks", "options", "after", "preset", "on_lists", "search")
        },
        "metrics": [settings_of(metric_of(name)) for name in job.metrics],
        "metric": settings_of(tuned_for),
        "seed": job.seed,
        "after": None if job.before is None else Path(job.before["folder"]).name,
    }
    if world.task.structured is not None:
        key["system"] |= {"options": dict(system.options), "structured": world.task.structured}
        facts = store.kept("runs", key, lambda path: _structured(job, path))
    elif system.preset in UNTUNED:
        # Choices without tuning have no randomness.
        key |= {"seed": 0, "untuned": system.preset}
        facts = store.kept("runs", key, lambda path: _untuned(job, path))
    else:
        tuner = tuner_of(system)
        key["tuner"] = settings_of(tuner)
        facts = store.kept(
            "runs",
            key,
            lambda path: _tuned(job, path, tuner, tuned_for, engine, tell),
        )
    return Found(world.task.name, system.name, job.seed, facts)


def _start(job: Job) -> Weights | None:
    """Return the weights that a run starts from; None: those that saved lists imply."""
    system, world = job.system, job.world
    if job.before is not None:
        return read_weights(Path(job.before["folder"]) / "weights.toml")
    if world.task.lists:
        names = world.lists_of(system)["development"].names
        start = system.start
        return Weights(dict.fromkeys(names, start)) if isinstance(start, float) else None
    model = world.model(system.templates)
    if system.start is None:
        return model.weights
    fixed = {**model.fixed, **world.task.fixed}
    if system.start == "equal":
        return model.weights.uniform(fixed)
    dense = [name for name in model.decoder.dense if name not in fixed]
    return Weights({**dict.fromkeys(dense, system.start), **fixed})


def _iterations(system: System, tuner: Tuner, source: Source) -> int | None:
    """Return how many rounds are made; `decodings` counts what each round decodes.

    A batch tuner decodes once at the start and once in each round; an online tuner that follows the
    decoder twice in each: to learn, and to be judged.
    """
    if source.fixed:
        return None
    if system.decodings is None:
        return system.iterations
    follows = isinstance(tuner, Online) and tuner.follow
    return max(1, (system.decodings - 1) // (2 if follows else 1))


def _tuned(
    job: Job,
    path: Path,
    tuner: Tuner,
    metric: Metric,
    engine: Engine,
    tell: Callable[..., None] | None,
) -> dict[str, Any]:
    system, world = job.system, job.world
    source = world.source(system)
    run = path / "run"
    if source.fixed and (system.iterations is not None or system.decodings is not None):
        raise InputError(
            f"{system.name}: saved lists of {world.task.name} are not decoded again",
            world.task.file,
            remedy="leave iterations and decodings out",
        )
    result = tune(
        source,
        system.preset,
        metric,
        options=system.options,
        tuner=tuner,
        start=_start(job),
        seed=job.seed,
        heldout=world.heldout(system),
        keep=system.keep,
        iterations=_iterations(system, tuner, source),
        seconds=system.seconds,
        fixed=dict(world.task.fixed) or None,
        threads=1,
        engine=engine,
        run=run,
        resume=run.is_dir(),
        listen=tell,
    )
    events = [e for e in RunDirectory(run).events() if e["event"] == "epoch"]
    weights, development, seconds = result.weights, result.tuned, result.seconds
    if system.seconds is not None and seconds > system.seconds and events:
        counted = within(system.seconds, events)
        seconds = sum(float(each["seconds"]) for each in counted)
        if len(counted) < len(events):
            best = kept(counted, system.keep, metric)
            development = float(best["score"])
            weights = read_weights(RunDirectory(run).epoch_weights_file(int(best["epoch"]), 0))
    _save(path, weights)
    return {
        "start": result.start,
        "development": development,
        "tests": _tested(job, weights, path),
        "curve": result.curve,
        "epochs": [{k: event[k] for k in EPOCH if event.get(k) is not None} for event in events],
        "rounds": result.iterations,
        "seconds": seconds,
        "decode_seconds": result.decode_seconds,
        "optimise_seconds": result.optimise_seconds,
        "nonzero": weights.nonzero,
        "refused": result.refused,
        "tuner": repr(tuner),
    }


def within(budget: float, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the rounds that ended within a budget of seconds; the first one in any case."""
    ends = accumulate(float(event["seconds"]) for event in events)
    return events[: max(1, sum(end <= budget for end in ends))]


def kept(events: Sequence[Mapping[str, Any]], keep: str, metric: Metric) -> Mapping[str, Any]:
    """Return the round that counts: the last, or the best on the tuning or the held-out text."""
    if keep == "last":
        return events[-1]
    score = "heldout" if keep == HELDOUT else "score"
    best = max if metric.higher_is_better else min
    return best(events, key=lambda event: float(event[score]))


def _untuned(job: Job, path: Path) -> dict[str, Any]:
    weights, world = _start(job), job.world
    if job.system.options:
        raise InputError(
            f"{job.system.name}: options without a tuner: {', '.join(job.system.options)}",
            remedy="leave the options out, or name a preset",
        )
    metric = metric_of(job.system.metric or job.metrics[0])
    source = world.source(job.system)
    begun = make_start(source, [], weights, Setup(metric, {}, {}, 1)).weights
    choose = _chooser(job, metric, begun)
    score = choose(source).score(metric)
    _save(path, begun)
    return {
        "start": score,
        "development": score,
        "tests": _tested(job, begun, path, choose),
        "curve": [score],
        "epochs": [],
        "rounds": 0,
        "seconds": 0.0,
        "decode_seconds": 0.0,
        "optimise_seconds": 0.0,
        "nonzero": begun.nonzero,
        "refused": None,
        "tuner": job.system.preset,
    }


def _chooser(job: Job, metric: Metric, weights: Weights) -> Chooser:
    """Return how a system without a tuner chooses its outputs."""
    preset = job.system.preset
    lists = job.world.lists_of(job.system) if job.world.task.lists else {}
    if not lists:
        if preset in (CONSENSUS, ALONE):
            raise InputError(
                f"{job.system.name}: {preset} chooses from saved lists",
                job.world.task.file,
                remedy='use preset = "none" with a decoder',
            )
        return lambda source: source.choose(weights, 1)
    if preset == ALONE:
        # The development lists say which feature, and which sign.
        spaces = lists["development"]
        vector = spaces.vector(weights, partial=True)
        tried = untuned_choices(spaces, metric, spaces.first(), vector, 1)
        name = next(iter(tried.alone))
        alone = Weights({name[1:]: 1.0 if name[0] == "+" else -1.0})
        return lambda source: source.choose(alone, 1)
    if preset == CONSENSUS:
        return lambda source: _agreed(source, weights)
    if job.system.start is not None or job.before is not None:
        return lambda source: source.choose(weights, 1)
    return _first


def _agreed(source: Source, weights: Weights) -> Choice:
    """Return the hypotheses that agree most with the others of their lists."""
    assert isinstance(source, Saved)
    vector = source.spaces.vector(weights, partial=True)
    return Choice(source.spaces, source.spaces.consensus(vector, None, 1))


def _first(source: Source) -> Choice:
    """Return the first hypothesis of each list, which need not have the best score."""
    assert isinstance(source, Saved)
    return source.opening(None)[1]


def _save(path: Path, weights: Weights) -> None:
    weights.save(path / "weights.toml")


def _tested(
    job: Job, weights: Weights, path: Path, choose: Chooser | None = None
) -> dict[str, dict[str, float]]:
    """Translate the tests, keep outputs and statistics, and return the scores.

    From saved lists, `choose` takes the outputs; without it, the weights do.
    """
    world, system = job.world, job.system
    arrays: dict[str, Any] = {}
    scores: dict[str, dict[str, float]] = {}
    for name, (outputs, references) in _outputs(job, weights, choose).items():
        arrays[f"{name}\toutput"] = packed([text.replace("\n", " ") for text in outputs])
        scores[name] = {}
        for wanted in job.metrics:
            metric = metric_of(wanted)
            rows = metric.stats(outputs, references)
            arrays[f"{name}\t{wanted}"] = rows
            scores[name][wanted] = metric.score(rows.sum(axis=0))
    if not scores:
        raise UntestableError(f"the task {world.task.name} has no tests for {system.name}")
    save_rows(path, arrays)
    return scores


def _outputs(
    job: Job, weights: Weights, choose: Chooser | None
) -> dict[str, tuple[list[str], Sequence[Sequence[str]]]]:
    world, system = job.world, job.system
    found: dict[str, tuple[list[str], Sequence[Sequence[str]]]] = {}
    if world.task.lists:
        for name, pools in world.lists_of(system).items():
            if name != "development":
                saved = Saved(pools)
                choice = saved.choose(weights, 1) if choose is None else choose(saved)
                assert pools.references is not None
                found[name] = choice.outputs(), pools.references
        return found
    for name, read in world.tests.items():
        live = world.live(read, system)
        if system.local is not None:
            found[name] = translated_locally(world, system, weights, read), live.references
            continue
        lists = live.decode(weights, 1)
        found[name] = lists.outputs(lists.first()), live.references
    return found


def _structured(job: Job, path: Path) -> dict[str, Any]:
    """Learn a structured task; its curve is the accuracy on the sentences that choose the pass."""
    task, examples = job.world.examples()
    system = job.system
    options = dict(system.options)
    if system.beam is not None:
        options["beam"] = system.beam
    if system.iterations is not None:
        options["passes"] = system.iterations
    try:
        training = Training(**options, seed=job.seed)
    except TypeError as error:
        raise InputError(f"{system.name}: {error}", remedy="use the fields of Training") from None
    model = learn_structured(
        task, examples["learnt"], training, dev=examples["choosing"], threads=1
    )
    test = examples["test"]
    outputs = model.predict([given for given, _ in test], threads=1)
    rows = np.array(
        [task.right(wanted, out) for (_, wanted), out in zip(test, outputs, strict=True)],
        np.float64,
    )
    save_rows(path, {f"test\t{ACCURACY}": rows, "test\toutput": packed(map_text(outputs))})
    curve = [each.dev or 0.0 for each in model.history]
    return {
        "start": 0.0,
        "development": curve[model.kept - 1],
        "tests": {"test": {ACCURACY: Accuracy().score(rows.sum(axis=0))}},
        "curve": curve,
        "epochs": [
            {"epoch": n, "score": each.dev, "seconds": each.seconds}
            for n, each in enumerate(model.history, 1)
        ],
        "rounds": len(curve),
        "seconds": sum(each.seconds for each in model.history),
        "decode_seconds": 0.0,
        "optimise_seconds": sum(each.seconds for each in model.history),
        "nonzero": len(model.weights),
        "refused": None,
        "tuner": repr(training),
    }


def map_text(outputs: Sequence[Any]) -> list[str]:
    """Return outputs of a structured task as lines: tags, or the heads of trees."""
    return [" ".join(map(str, each.heads if isinstance(each, Tree) else each)) for each in outputs]
