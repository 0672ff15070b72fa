"""Minimum risk: the expected gain of the model's own distribution, annealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tunesmith import _core
from tunesmith.engines import Worker, begins, reads
from tunesmith.learn.minimise import minimise
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
            task.crew.ask(_expect, weights)

            def objective(
                x: Vector,
                alpha: float = alpha,
                anchor: Vector = anchor,
            ) -> tuple[float, Vector]:
                whole = anchor.copy()
                whole[free] = x
                corpus = self.objective == "corpus"
                value, slope = task.crew.ask(_gain, whole, alpha, corpus)
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


@begins
def _expect(worker: Worker, weights: Vector) -> None:
    """Prepare the worker for expectations around some weights."""
    task: Task = worker.share
    worker.kept["expectation"] = _core.Expectation(
        task.spaces.core, task.table, task.metric.native, weights, task.threads
    )


@reads
def _gain(worker: Worker, weights: Vector, alpha: float, corpus: bool) -> tuple[float, Vector]:
    """Return the expected gain and its slope."""
    expectation: _core.Expectation = worker.kept["expectation"]
    return expectation.gain(weights, alpha, corpus, worker.share.threads)
