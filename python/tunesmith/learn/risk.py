"""Minimum risk: the expected gain of the model's own distribution, annealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tunesmith import _core
from tunesmith.engines import Worker, begins, reads
from tunesmith.learn.minimise import minimise
from tunesmith.learn.shares import Rows, Share, Slopes, fold
from tunesmith.learn.task import Epoch, SavedState, Task
from tunesmith.weights import Vector


@dataclass(frozen=True)
class Risk:
    """Maximise E_p[G] with p ∝ exp(α s), α growing from epoch to epoch (Smith & Eisner 2006).

    `objective="sentence"` takes the mean of sentence gains, `"corpus"` the gain of the expected
    corpus statistics. α starts at `alpha` and is multiplied by `anneal`: the distribution sharpens
    until it is the model's choice itself. L2 pulls towards the start of the epoch. L-BFGS, within
    the bounds.

    The expectation over a forest is that over its derivations, by inside and outside with the
    statistics of strings in the nodes (an expectation semiring, Li & Eisner 2009). It is exact for
    the part of the forest that is kept under the weights at the start of an epoch. With metrics
    other than BLEU, the expectation is over the best strings.
    """

    alpha: float = 1.0
    anneal: float = 2.0
    steps: int = 8
    iterations: int = 30
    l2: float = 1e-4
    objective: Literal["sentence", "corpus"] = "corpus"

    shared: ClassVar[bool] = True
    KERNEL: ClassVar[str] = "core/solve/src/risk.rs"

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the weights at each temperature."""
        del seed  # nothing is drawn
        weights, done = task.clip(start), 0
        if state is not None:
            weights, done = np.array(state["weights"]), int(state["done"][0])
        free = np.flatnonzero(task.free)
        for number in range(done + 1, self.steps + 1):
            alpha = self.alpha * self.anneal ** (number - 1)
            anchor = weights.copy()
            task.shares.ask(_expect, weights)

            def objective(
                x: Vector,
                alpha: float = alpha,
                anchor: Vector = anchor,
            ) -> tuple[float, Vector]:
                whole = anchor.copy()
                whole[free] = x
                value, slope = expected_gain(task, whole, alpha, self.objective == "corpus")
                away = x - anchor[free]
                pull = 0.5 * self.l2 * float((away * away).sum())
                return pull - value, self.l2 * away - slope[free]

            found = minimise(
                objective,
                weights[free],
                task.lower[free],
                task.upper[free],
                steps=self.iterations,
            )
            weights = weights.copy()
            weights[free] = found.x
            yield Epoch(
                number,
                weights,
                {"weights": weights, "done": np.array([number])},
                {"updates": found.steps, "loss": found.value, "alpha": alpha},
                number == self.steps,
            )


def expected_gain(task: Task, weights: Vector, alpha: float, corpus: bool) -> tuple[float, Vector]:
    """Return the expected gain and its slope; the workers were asked to `_expect` before.

    Several workers answer twice: with the statistics that they expect, then with the slope, given
    what each statistic is worth to the gain of all of them.
    """
    shares = task.shares
    if shares.alone:
        return shares.ask(_gain, weights, alpha, corpus)[0]
    expected = shares.ask(_stats, weights, alpha)
    known, worth = _core.worth(task.metric.native, shares.by_block([rows for _, rows in expected]))
    # A sentence is worth its own gain, divided by the number of sentences.
    per_row = worth.tolist() if corpus else sum(count for count, _ in expected)
    found = shares.ask(_slopes, weights, alpha, per_row)
    value = known if corpus else float(fold(shares.by_block([values for values, _ in found])))
    return value, shares.added([slopes for _, slopes in found], len(weights))


@begins
def _expect(worker: Worker, weights: Vector) -> None:
    """Prepare the worker for expectations around some weights."""
    share: Share = worker.share
    task = share.task
    worker.kept["expectation"] = _core.Expectation(
        task.spaces.core, task.table, task.metric.native, weights, task.threads, share.blocks
    )


def _expectation(worker: Worker) -> tuple[_core.Expectation, int]:
    """Return what was prepared, and the number of threads."""
    share: Share = worker.share
    return worker.kept["expectation"], share.task.threads


@reads
def _gain(worker: Worker, weights: Vector, alpha: float, corpus: bool) -> tuple[float, Vector]:
    """Return the expected gain and its slope."""
    expectation, threads = _expectation(worker)
    return expectation.gain(weights, alpha, corpus, threads)


@reads
def _stats(worker: Worker, weights: Vector, alpha: float) -> tuple[int, Rows]:
    """Return the number of sentences with hypotheses, and the expected statistics of blocks."""
    expectation, threads = _expectation(worker)
    return expectation.stats(weights, alpha, threads)


@reads
def _slopes(
    worker: Worker, weights: Vector, alpha: float, worth: int | list[float]
) -> tuple[Vector, Slopes]:
    """Return the expected worth of each block, and its slope."""
    expectation, threads = _expectation(worker)
    return expectation.slopes(weights, alpha, worth, threads)
