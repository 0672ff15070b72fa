"""Measures what a simulation of workers replays: times and sizes of one sentence."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from dataclasses import replace

from tunesmith.engines.simulation import Measurements
from tunesmith.errors import InputError
from tunesmith.learn.task import Tuner
from tunesmith.metrics import Metric
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.sources import Live
from tunesmith.sources.base import LIST
from tunesmith.tuning.loop import tune

# A weight on its way; names travel only when a feature is new.
WEIGHT_BYTES = 8


def measure(
    source: Live, start: Mapping[str, float], metric: str | Metric, tuner: Tuner, k: int = LIST
) -> Measurements:
    """Decode each sentence alone on one thread, and let an online tuner make one pass."""
    alone = replace(source, threads=1, k=k)
    seconds, size = decode_times(alone, start, k)
    count = len(seconds)
    online = tune(
        alone, metric=metric, tuner=tuner, start=start, iterations=1, keep="last", threads=1
    )  # fmt: skip
    batch = tune(
        alone, "mert", metric, options={"restarts": 5}, start=start, iterations=1, threads=1
    )
    return Measurements(
        decode_seconds=seconds,
        step_seconds=online.optimise_seconds / count,
        update_bytes=float(WEIGHT_BYTES * len(online.weights)),
        list_bytes=size / count,
        optimise_seconds=batch.optimise_seconds / count,
    )


def decode_times(
    source: Live, weights: Mapping[str, float], k: int = LIST
) -> tuple[tuple[float, ...], int]:
    """Return the seconds that each sentence alone takes on one thread, and the bytes of all lists.

    Lists are made as a tuner gets them.
    """
    translator = source.model.translator(weights, source.settings, tokenized=True)
    seconds, size = [], 0
    for line in range(source.sentences):
        # Of the processor: others may use the machine, too.
        began = time.process_time()
        found = source.found(translator, [line], k)
        seconds.append(time.process_time() - began)
        size += len(pickle.dumps(found))
    return tuple(seconds), size


def measured_run(folder: str) -> Measurements:
    """Return measurements of a run with a live decoder: the mean times of its epochs.

    They are those of one thread if the run had one (`threads=1`), and of the sentences alone if it
    had no held-out text. Raise if there is no run, or if it has no such epochs.
    """
    events = RunDirectory(folder).open().events()
    start = next((each for each in events if each["event"] == "start"), {})
    epochs = [e for e in events if e["event"] == "epoch" and e.get("decode_seconds")]
    if not epochs or not start.get("sentences"):
        raise InputError(
            "no epochs with a live decoder", folder, remedy="name a run of tunesmith tune"
        )
    # An epoch of an online tuner decodes each sentence twice: to learn, and to be scored.
    times = 2 if start.get("space") == "sentence" else 1
    count = len(epochs) * int(start["sentences"])
    decode = sum(float(each["decode_seconds"]) for each in epochs) / (count * times)
    optimise = sum(float(each["optimise_seconds"]) for each in epochs) / count
    size = WEIGHT_BYTES * max(int(each["nonzero"]) for each in epochs)
    return Measurements((decode,), optimise, float(size), 0.0, optimise)


def default_tuner() -> Tuner:
    """Return the tuner whose steps are measured."""
    return make_tuner("mira")
