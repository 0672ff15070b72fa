"""Predicts how long a pass takes with many workers, how stale steps are, and what travels.

Measured times of single sentences are replayed through each regime as a discrete-event
simulation: workers decode, messages queue at the driver's network link, the driver takes steps.

>>> known = Measurements(decode_seconds=(0.2,), step_seconds=0.001, update_bytes=8_000)
>>> one, ten = (simulate("mixing", known, workers, 1000) for workers in (1, 10))
>>> one.seconds / ten.seconds > 9.9
True
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith.engines.dealing import BLOCKS, evenly
from tunesmith.errors import InputError

MOST = 100_000
"""Sentences that are simulated; the numbers of a longer pass are in proportion."""
QUESTIONS = 4
"""To all workers in a mixing: to pass over a piece, for features, for weights, to take weights."""
LIST = 100
"""Translations of a measured list."""
LARGEST = 1e30
"""Seconds or bytes of one measurement, at most."""
Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measurements:
    """What a simulation replays. Times are those of one thread."""

    decode_seconds: tuple[float, ...]
    """Of some sentences; a longer text repeats them."""
    step_seconds: float = 0.0
    """A learner's step on one sentence."""
    update_bytes: float = 0.0
    """Weights on their way in either direction."""
    list_bytes: float = 0.0
    """The n-best list of one sentence."""
    optimise_seconds: float = 0.0
    """A batch tuner's work on one sentence, per decoding."""
    latency: float = 0.001
    """Seconds until a message arrives, however short it is."""
    bandwidth: float = 1e8
    """Bytes per second of the driver's link."""

    def __post_init__(self) -> None:
        numbers = {key: value for key, value in asdict(self).items() if key != "decode_seconds"}
        for name, value in numbers.items():
            if not 0 <= value <= LARGEST or (name == "bandwidth" and value == 0):
                raise InputError(f"{name} is {value}", remedy="give a measured number")
        times = self.decode_seconds
        if not times or not all(0 <= each <= LARGEST for each in times) or not sum(times):
            raise InputError(
                "decode_seconds has no usable times", remedy="give seconds of at least one sentence"
            )

    @classmethod
    def of(cls, found: Mapping[str, Any], file: str | None = None) -> Measurements:
        """Return measurements from a JSON object; raise if it is not one of them."""
        known = list(cls.__dataclass_fields__)
        if unknown := sorted(set(found) - {*known}):
            raise InputError(
                f"unknown measurement {unknown[0]}", file, remedy=f"use {', '.join(known)}"
            )
        times = found.get("decode_seconds")
        rest = {key: value for key, value in found.items() if key != "decode_seconds"}
        if not isinstance(times, list) or not all(map(_is_number, [*times, *rest.values()])):
            raise InputError(
                "not measurements", file, remedy="write them with tunesmith simulate --save FILE"
            )
        try:
            return cls(tuple(map(float, times)), **{key: float(rest[key]) for key in rest})
        except InputError as error:
            raise InputError(error.message, file, remedy=error.remedy) from None

    def message(self, size: float) -> float:
        """Return how long the link is busy with a message."""
        return size / self.bandwidth

    def drawn(self, sentences: int) -> Times:
        """Return the decoding times of a text, in a random order that is always the same."""
        times = np.resize(np.array(self.decode_seconds), sentences)
        return np.random.default_rng(1).permutation(times)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LARGEST


@dataclass(frozen=True)
class Predicted:
    """One pass over the text, or one decoding of a batch tuner."""

    regime: str
    workers: int
    seconds: float
    efficiency: float
    """The part of the workers' time, or of that of their cores, in which they decode or step."""
    staleness: float
    """Steps of others that the mean step has not seen, but would have seen in serial order."""
    bytes_moved: float
    bottleneck: str
    """What takes most of the time: workers, network or driver."""


def all_done(work: Sequence[float], cores: int) -> float:
    """Return when the last of some workers is done, who share the cores evenly.

    >>> all_done([1.0, 2.0, 1.0, 1.0], cores=4)
    2.0
    >>> all_done([1.0, 2.0, 1.0, 1.0], cores=2)
    3.0
    """
    now = done = 0.0
    for place, each in enumerate(sorted(work)):
        now += (each - done) * max((len(work) - place) / cores, 1.0)
        done = each
    return now


def _mixing(
    known: Measurements, workers: int, times: Times, cores: int, *, mix: int = 20
) -> Predicted:
    """Each worker passes over its shard; weights are averaged `mix` times."""
    seconds = busy = network = stale = moved = 0.0
    # A shard has no more pieces than sentences; learners mix without steps after that.
    count = min(mix, -(-len(times) // workers))
    shards = [np.array_split(shard, count) for shard in np.array_split(times, workers)]
    for pieces in zip(*shards, strict=True):
        own = [float(piece.sum()) + known.step_seconds * len(piece) for piece in pieces]
        seconds += all_done(own, cores)
        busy += sum(own)
        # Of the other shards' steps in the piece, half come before the mean step.
        steps = sum(map(len, pieces))
        stale += steps * (steps - steps / workers) / 2
    # A single worker has nobody to mix with.
    if workers > 1:
        waiting = QUESTIONS * known.latency
        network = mix * 2 * (waiting + workers * known.message(known.update_bytes))
        moved = mix * 2.0 * workers * known.update_bytes
    return _predicted(
        "mixing", workers, cores, seconds, network, 0.0, busy, stale / len(times), moved
    )


def _batches(
    known: Measurements, workers: int, times: Times, cores: int, *, batch: int = 0
) -> Predicted:
    """All workers decode a batch with the same weights; the driver takes the step."""
    size = batch or 4 * workers
    seconds = busy = network = driver = stale = moved = 0.0
    for at in range(0, len(times), size):
        part = times[at : at + size]
        free = [0.0] * min(workers, cores, len(part))
        for each in part.tolist():
            heapq.heapreplace(free, free[0] + each)
        seconds += max(free)
        busy += float(part.sum())
        driver += known.step_seconds * len(part)
        # Weights go to every worker, an update comes back for every sentence.
        size_of_all = (workers + len(part)) * known.update_bytes
        network += 2 * known.latency + known.message(size_of_all)
        moved += size_of_all
        stale += len(part) * (len(part) - 1) / 2
    return _predicted(
        "mini-batch", workers, cores, seconds, network, driver, busy, stale / len(times), moved
    )


def _stale(known: Measurements, workers: int, times: Times, cores: int) -> Predicted:
    """Nobody waits: the driver takes each step when its update arrives."""
    crossing = known.message(known.update_bytes)
    # All workers that have a sentence are busy all the time.
    at_once = min(workers, len(times))
    coming = iter((times * max(at_once / cores, 1.0)).tolist())
    # When a worker has decoded, and how many steps its weights had seen.
    events = [(each, 0) for each in islice(coming, workers)]
    heapq.heapify(events)
    busy = sum(each for each, _ in events)
    inward = outward = driver = end = stale = 0.0
    steps = 0
    while events:
        now, seen = heapq.heappop(events)
        # The update crosses the link, then waits for the driver; new weights go back.
        inward = max(inward, now) + crossing
        driver = max(driver, inward + known.latency) + known.step_seconds
        stale += steps - seen
        steps += 1
        end = driver
        each = next(coming, None)
        if each is not None:
            outward = max(outward, driver) + crossing
            busy += each
            heapq.heappush(events, (outward + known.latency + each, steps))
    moved = 2 * steps * known.update_bytes
    taken = steps * known.step_seconds
    shared = busy / workers
    network = steps * crossing
    worst = max((shared, "workers"), (network, "network"), (taken, "driver"))[1]
    used = busy / (workers * end) if end else 1.0
    return Predicted("stale-gradient", workers, end, used, stale / max(steps, 1), moved, worst)


def _decoding(
    known: Measurements, workers: int, times: Times, cores: int, *, factor: float = 1.0
) -> Predicted:
    """Each worker decodes the lines of its blocks, keeps their lists and tunes on them.

    The text is `factor` times as long as the times say. Blocks are dealt by measured times, where
    a run deals them by words.

    Weights go to every worker, and the translation of each line comes back. What a tuner asks of
    the lists is not counted as messages.
    """
    blocks = np.array_split(times, min(len(times), BLOCKS))
    each = np.array([block.sum() + known.optimise_seconds * len(block) for block in blocks])
    own = factor * np.bincount(evenly(each, workers), each, workers)
    moved = factor * len(times) * known.list_bytes / LIST + workers * known.update_bytes
    network = 2 * known.latency + known.message(moved)
    seconds, busy = all_done(own.tolist(), cores), float(own.sum())
    return _predicted("batch-tuner", workers, cores, seconds, network, 0.0, busy, 0.0, moved)


def _predicted(
    regime: str,
    workers: int,
    cores: int,
    seconds: float,
    network: float,
    driver: float,
    busy: float,
    staleness: float,
    moved: float,
) -> Predicted:
    parts = {"workers": seconds, "network": network, "driver": driver}
    total = sum(parts.values())
    return Predicted(
        regime,
        workers,
        total,
        busy / (min(workers, cores) * total) if total else 1.0,
        staleness,
        moved,
        max(parts, key=lambda name: parts[name]),
    )


REGIMES: dict[str, Callable[..., Predicted]] = {
    "mixing": _mixing,
    "mini-batch": _batches,
    "stale-gradient": _stale,
    "batch-tuner": _decoding,
}


def simulate(
    regime: str,
    known: Measurements,
    workers: int,
    sentences: int,
    cores: int | None = None,
    **options: int,
) -> Predicted:
    """Return what a pass over so many sentences would take.

    Workers share `cores`, and have one each by default. `mix` is an option of `mixing`, `batch` of
    `mini-batch` (default: four sentences a worker).
    """
    cores = workers if cores is None else cores
    if min(workers, sentences, cores) < 1:
        numbers = f"{workers} workers, {sentences} sentences, {cores} cores"
        raise InputError(numbers, remedy="give at least one")
    least = min(sentences, max(MOST, 100 * workers))
    factor = sentences / least
    if regime == "batch-tuner":
        return _decoding(known, workers, known.drawn(least), cores, factor=factor)
    found = REGIMES[regime](known, workers, known.drawn(least), cores, **options)
    if factor == 1.0:
        return found
    stale = found.staleness
    if regime == "mixing":
        # Pieces are longer, but there are no more of them: only the workers' part grows.
        extra = (factor - 1.0) * float(known.drawn(least).sum() + known.step_seconds * least)
        at_once = min(workers, cores)
        seconds = found.seconds + extra / at_once
        busy = found.efficiency * found.seconds * at_once + extra
        return Predicted(
            regime, workers, seconds, busy / (at_once * seconds), stale * factor,
            found.bytes_moved, "workers" if extra / at_once > found.seconds else found.bottleneck,
        )  # fmt: skip
    return Predicted(
        regime, workers, found.seconds * factor, found.efficiency, stale,
        found.bytes_moved * factor, found.bottleneck,
    )  # fmt: skip


def spread_of(text: str) -> list[int]:
    """Return numbers of workers from `1,2,8`, or from `1..1000` in steps of about two.

    >>> spread_of("1..10")
    [1, 2, 5, 10]
    """
    low, dots, high = text.partition("..")
    try:
        if not dots:
            found = sorted({int(each) for each in text.split(",")})
        else:
            ends = int(low), int(high)
            steps = [head * 10**power for power in range(7) for head in (1, 2, 5)]
            found = sorted({*ends, *(each for each in steps if ends[0] < each < ends[1])})
    except ValueError:
        found = []
    if not found or found[0] < 1 or found[-1] > 1_000_000 or (dots and int(low) > int(high)):
        raise InputError(f"--workers {text}", remedy="write 1..1000, or 1,2,8")
    return found
