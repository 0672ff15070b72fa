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
from tunesmith.engines.simulation import Measurements, simulate
from tunesmith.errors import InputError
from tunesmith.learn.online import with_regime
from tunesmith.learn.task import Tuner
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Spaces
from tunesmith.tuning import tune
from tunesmith.tuning.measuring import measure

SENTENCES, QUICK = 300, 12
EPOCHS, TURNS, MIX = 3, 3, 20
MOST = 1.15
WORKERS = (1, 2, 4)
FIXED = {"UnknownWordPenalty0": 1.0}
QUESTIONS = 200
"""To measure how long one takes."""
Make = Callable[[int], Tuner]


def mixing(shards: int) -> Tuner:
    """Return an online tuner that is spread over learners."""
    return with_regime(make_tuner("mira"), f"shards={shards},mix={MIX}" if shards > 1 else None)


def batch(shards: int) -> Tuner:
    """Return a batch tuner, as the simulation measures it."""
    del shards
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
    """The seconds of epochs after the first, by the clock, and the weights at the end."""

    epochs: list[float]
    passes: list[float]
    """Without the decoding after each, by which an online tuner's weights are scored."""
    decodings: list[float]
    """The decodings after each."""
    weights: dict[str, float]


def text(setting: Setting, threads: int) -> Clocked:
    """Return development text of Multi30k with Moses' model."""
    work = searchaware_bench.captions(setting)
    count = QUICK if setting.quick else SENTENCES
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
    clock, decoded = list[float](), list[float]()
    # Copies of the source, which the loop makes, note in the same list.
    source.spent.clear()

    def listen(event: Mapping[str, Any]) -> None:
        if event["event"] in ("start", "epoch"):
            clock.append(time.perf_counter())
            decoded.append(sum(source.spent))

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
    pairs = list(pairwise(list(zip(clock, decoded, strict=True))[-epochs:]))
    return Timed(
        [after[0] - before[0] for before, after in pairs],
        [after[0] - before[0] - (after[1] - before[1]) for before, after in pairs],
        [after[1] - before[1] for before, after in pairs],
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


def on_cores(known: Measurements, workers: int, cores: int) -> Measurements:
    """Return times of workers that share too few cores."""
    slower = max(workers / cores, 1.0)
    return replace(
        known,
        decode_seconds=tuple(slower * each for each in known.decode_seconds),
        step_seconds=slower * known.step_seconds,
    )


def simulation(setting: Setting) -> Outcome:
    """Return predicted and measured times of passes with 1, 2 and 4 workers."""
    outcome = Outcome("Predicted and measured seconds of a pass")
    source, cores = text(setting, 1), os.cpu_count() or 1
    say("  measuring")
    known = measure(source, source.model.weights, METRIC, mixing(1), k=100)
    for workers in WORKERS:
        with ray(workers) as engine:
            # The lists on which a batch tuner works grow, so that only its decodings compare.
            seen = replace(
                on_cores(known, workers, cores), latency=latency(engine), optimise_seconds=0.0
            )
            options: dict[str, tuple[Make, dict[str, int]]] = {
                "mixing": (mixing, {"mix": MIX}),
                "batch-tuner": (batch, {}),
            }
            for regime, (make, more) in options.items():
                guess = simulate(regime, seen, workers, len(source.lines), **more).seconds
                runs = [timed(source, make(workers), engine) for _ in range(setting.times(TURNS))]
                parts = [run.passes if regime == "mixing" else run.decodings for run in runs]
                real = [statistics.mean(each) for each in parts if each]
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
        f"{len(source.lines)} sentences. Decoding times were measured on one core. Where there "
        f"are more workers than the {cores} cores, they are longer in proportion. The time of a "
        "message is that of empty questions to the same workers."
    )
    return outcome
