"""Workers of Ray beside threads: the time of epochs, and what the simulation says of them.

Epochs are timed on the clock, so these want a machine without other work. Multi30k German-English
with Moses' model and the search that its configuration asks for; engines run in turn, with the same
number of cores.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from benchmarks import searchaware_bench
from benchmarks.data import METRIC, Setting
from benchmarks.harness import Cell, Claim, Outcome, Skip, say, several
from benchmarks.online_bench import PHRASES
from tunesmith.engines import THREADS, Engine, Worker, reads
from tunesmith.engines.ray import Ray
from tunesmith.engines.simulation import simulate
from tunesmith.errors import InputError
from tunesmith.learn.online import with_regime
from tunesmith.learn.task import Tuner
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Spaces
from tunesmith.tuning import tune
from tunesmith.tuning.measuring import WEIGHT_BYTES, decode_times, measure

SENTENCES, QUICK = 300, 12
EPOCHS, TURNS, MIX = 3, 3, 20
PREDICTED = 100
"""Sentences of the passes that are predicted: there are many of them."""
MOST = 1.15
WORKERS = (1, 2, 4)
FIXED = {"UnknownWordPenalty0": 1.0}
QUESTIONS = 200
"""To measure how long one takes."""
SCALES = (
    (10_000, 10),
    (10_000, 100),
    (100_000, 100),
    (1_000_000, 100),
    (1_000_000, 1_000),
    (10_000_000, 1_000),
)
"""Sentences and workers that are simulated."""
WEIGHTS = (15, 1_000_000)
Make = Callable[[int], Tuner]


def mixing(shards: int) -> Tuner:
    """Return an online tuner that is spread over learners."""
    return with_regime(make_tuner("mira"), f"shards={shards},mix={MIX}" if shards > 1 else None)


def batches(workers: int) -> Tuner:
    """Return an online tuner whose batches are decoded by all workers."""
    return with_regime(make_tuner("mira"), f"batch={4 * workers}")


def stale(workers: int) -> Tuner:
    """Return an online tuner whose workers never wait."""
    return with_regime(
        make_tuner("mira"), f"delay={max(workers - 1, 1)},stale=gradient,ordered=false"
    )


def batch(workers: int) -> Tuner:
    """Return a batch tuner, as the simulation measures it."""
    del workers
    return make_tuner("mert", {"restarts": 5})


TUNERS: Mapping[str, Make] = {"mira, mixing": mixing, "mert": batch}


@dataclass
class Clocked(Live):
    """A source that notes how long the decodings of the whole text took."""

    spent: list[float] = field(default_factory=list)

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Translate all sentences."""
        began = time.perf_counter()
        try:
            return super().decode(weights, k)
        finally:
            self.spent.append(time.perf_counter() - began)


@dataclass(frozen=True)
class Timed:
    """Seconds of the epochs after the first, by the clock, and the weights at the end."""

    epochs: list[float]
    passes: list[float]
    """Without the decoding after each, by which an online tuner's weights are scored."""
    decodings: list[float]
    """A batch tuner's decodings."""
    weights: dict[str, float]


def text(setting: Setting, threads: int, most: int = SENTENCES) -> Clocked:
    """Return development text of Multi30k with Moses' model."""
    work = searchaware_bench.captions(setting)
    count = QUICK if setting.quick else most
    lines, references = work.development
    return Clocked(
        work.model,
        lines[:count],
        references[:count],
        k=100,
        # A narrow search is quick, and shows that everything runs; messages weigh too much then.
        settings=PHRASES if setting.quick else {},
        tokenized=True,
        threads=threads,
    )


def timed(source: Clocked, tuner: Tuner, engine: Engine, epochs: int = EPOCHS) -> Timed:
    """Tune; the first epoch sends the model, and is left out."""
    told, scored = list[Mapping[str, Any]](), list[float]()
    # Copies of the source, which the loop makes, note in the same list.
    source.spent.clear()

    def listen(event: Mapping[str, Any]) -> None:
        if event["event"] == "epoch":
            told.append(event)
            scored.append(sum(source.spent))

    result = tune(
        source,
        metric=METRIC,
        tuner=tuner,
        start=source.model.weights,
        iterations=epochs,
        keep="last",
        fixed=FIXED,
        threads=source.threads,
        engine=engine,
        listen=listen,
    )
    seconds = [each["seconds"] for each in told[1:]]
    after = [now - before for before, now in pairwise(scored)]
    return Timed(
        seconds,
        [whole - part for whole, part in zip(seconds, after, strict=True)],
        [each["decode_seconds"] for each in told[1:]],
        dict(result.weights),
    )


def ray(workers: int) -> Ray:
    """Return an engine of this machine; skip where Ray is not installed."""
    made = Ray(workers)
    try:
        made.crew(None, 1)
    except InputError as error:
        made.close()
        raise Skip(str(error)) from None
    return made


def overhead(setting: Setting) -> Outcome:
    """Return epochs of an online and of a batch tuner on threads and on Ray, in turn."""
    cores = os.cpu_count() or 1
    outcome = Outcome(f"Ray against threads: seconds of an epoch, {cores} cores")
    on_threads, on_ray = text(setting, cores), text(setting, 1)
    with ray(cores) as engine:
        for name, make in TUNERS.items():
            pairs = []
            for turn in range(setting.times(TURNS)):
                pair = timed(on_threads, make(cores), THREADS), timed(on_ray, make(cores), engine)
                if pair[0].weights != pair[1].weights:
                    raise AssertionError(f"{name}: other weights on Ray")
                pairs.append(pair)
                say(f"  {name} {turn + 1}: {sum(pair[0].epochs):.1f}, {sum(pair[1].epochs):.1f} s")
            ratios = [sum(two.epochs) / sum(one.epochs) for one, two in pairs]
            row: dict[str, Cell] = {"tuner": name, "sentences": len(on_ray.lines)}
            row["threads"] = several(s for one, _ in pairs for s in one.epochs)
            row["Ray"] = several(s for _, two in pairs for s in two.epochs)
            row["Ray / threads"] = several(ratios)
            outcome.rows.append(row)
            middle = statistics.median(ratios)
            outcome.claims.append(
                Claim(f"{name}: an epoch on Ray against threads", middle, MOST, "at most")
            )
    outcome.notes.append(
        "The same weights to the bit. Ratios of runs in turn; the median is claimed. The first "
        "epoch of a run, in which workers load the model, is left out."
    )
    return outcome


@reads
def _nothing(worker: Worker) -> None:
    """Answer at once."""


def latency(engine: Ray) -> float:
    """Return the seconds of a message to all workers, one way."""
    crew = engine.crew(None, 1)
    asked = [() for _ in range(crew.size)]
    crew.ask_all(_nothing, asked)
    began = time.perf_counter()
    for _ in range(QUESTIONS):
        crew.ask_all(_nothing, asked)
    return (time.perf_counter() - began) / QUESTIONS / 2


REGIMES: Mapping[str, tuple[Make, Mapping[str, int]]] = {
    "mixing": (mixing, {"mix": MIX}),
    "mini-batch": (batches, {}),
    "stale-gradient": (stale, {}),
    "batch-tuner": (batch, {}),
}
"""The tuner for a number of workers, and the options of its simulation."""


def simulation(setting: Setting) -> Outcome:
    """Return predicted and measured times of passes with 1, 2 and 4 workers."""
    outcome = Outcome("Predicted and measured seconds of a pass")
    source, cores = text(setting, 1, PREDICTED), os.cpu_count() or 1
    say("  measuring")
    known = measure(source, source.model.weights, METRIC, mixing(1), k=100)
    for workers in WORKERS:
        with ray(workers) as engine:
            # The lists on which a batch tuner works grow, so that only its decodings compare.
            known = replace(known, latency=latency(engine), optimise_seconds=0.0)
            for regime, (make, options) in REGIMES.items():
                run = timed(source, make(workers), engine)
                # The same weights at nearly the same time: both change how long decoding takes.
                seconds, _ = decode_times(source, run.weights, k=100)
                seen, count = replace(known, decode_seconds=seconds), len(source.lines)
                guess = simulate(regime, seen, workers, count, cores, **options).seconds
                real = run.decodings if regime == "batch-tuner" else run.passes
                middle = statistics.median(real)
                row: dict[str, Cell] = {"regime": regime, "workers": workers}
                row |= {"predicted": round(guess, 2), "measured": several(real)}
                row["predicted / measured"] = round(guess / middle, 3)
                outcome.rows.append(row)
                say(f"  {regime}, {workers} workers: {guess:.1f}, measured {several(real)}")
                away = abs(guess / middle - 1.0)
                claim = f"{regime}, {workers} workers: prediction is off by"
                outcome.claims.append(Claim(claim, away, MOST - 1.0, "at most"))
    outcome.notes.append(
        f"{len(source.lines)} sentences; batches of four sentences a worker. Decoding times were "
        "measured on one core, sentence by sentence, after each run and with its weights. Workers "
        f"share {cores} cores. The time of a message is that of empty questions to the same "
        "workers. Of the batch tuner, the decodings."
    )
    return outcome


def scale(setting: Setting) -> Outcome:
    """Return what passes over large texts would take with many workers, by the simulation."""
    outcome = Outcome("Simulated passes: time, mean staleness, what takes most of the time")
    source = text(setting, 1, PREDICTED)
    known = measure(source, source.model.weights, METRIC, mixing(1), k=100)
    for weights in WEIGHTS:
        seen = replace(known, update_bytes=float(WEIGHT_BYTES * weights))
        for sentences, workers in SCALES:
            alone = simulate("mixing", seen, 1, sentences).seconds
            row: dict[str, Cell] = {"weights": weights, "sentences": sentences, "workers": workers}
            row["one worker"] = duration(alone)
            for regime, (_, options) in REGIMES.items():
                found = simulate(regime, seen, workers, sentences, **options)
                stale = "" if regime == "batch-tuner" else f", {found.staleness:,.0f}"
                row[regime] = f"{duration(found.seconds)}{stale}, {found.bottleneck}"
            outcome.rows.append(row)
    mean = statistics.mean(known.decode_seconds)
    outcome.notes.append(
        f"Measured on one thread: {1000 * mean:.1f} ms to decode a sentence, "
        f"{1000 * known.step_seconds:.2f} ms for a learner's step on its list, "
        f"{1000 * known.optimise_seconds:.2f} ms of MERT's work on it; assumed: "
        f"{known.bandwidth / 1e6:.0f} MB/s and {1000 * known.latency:.0f} ms a message. "
        "Multi30k, a phrase-based model of Moses, lists of 100"
    )
    outcome.notes.append(
        "all weights are counted in each message; the engine sends those that changed. Of the "
        "batch tuner: a decoding and the optimisation after it"
    )
    return outcome


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> [duration(each) for each in (7.4, 200, 5000, 80_000, 864_000)]
    ['7 s', '3 min', '83 min', '22.2 h', '10.0 d']
    """
    for unit, size, digits, most in (("s", 1, 0, 120), ("min", 60, 0, 7200), ("h", 3600, 1, 1e5)):
        if seconds < most:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86_400:.1f} d"
