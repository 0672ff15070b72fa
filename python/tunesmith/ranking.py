"""Batch optimisers on constraint rows: pairwise ranking and the ramp loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.drivers import Epoch, Online, Task
from tunesmith.features import Vector
from tunesmith.gains import SENTENCE, Gain
from tunesmith.minimise import minimise
from tunesmith.select import hope_fear
from tunesmith.update import sgd


@dataclass(frozen=True)
class Ranking:
    """Sample pairs, separate them by logistic regression, move part of the way there.

    Minimises Σ log(1 + exp(-w·x)) / n + l2/2 ‖w‖² over the sampled rows by L-BFGS, within the
    bounds, then w <- (1 - ψ) w + ψ w*. Each round draws anew, the first half of the rounds by
    `first` where it is given. Pairs differ in the gain of the sentence alone, or (`context`) in
    that of the corpus which the weights choose, with the sentence exchanged.
    """

    selector: _core.Selector
    rounds: int = 12
    interpolate: float = 0.2
    l2: float = 1e-4
    context: bool = False
    first: _core.Selector | None = None

    def epochs(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[Epoch]:
        """Yield the weights after each round."""
        weights, solution, done = task.clip(start), task.clip(start), 0
        if state is not None:
            weights, solution = np.array(state["weights"]), np.array(state["solution"])
            done = int(state["done"][0])
        sampler = _core.Sampler(task.pools.core, task.table, task.metric.native, len(weights))
        for number in range(done + 1, self.rounds + 1):
            chosen = None
            if self.context:
                best = task.pools.best(weights, task.threads)
                chosen = task.pools.statistics(task.metric, best)
            early = 2 * number <= self.rounds
            selector = (self.first if early else None) or self.selector
            rows = sampler.rows(selector, weights, seed, number, task.threads, chosen)
            solution, loss = logistic_regression(task, rows, solution, self.l2)
            # Rounding must not carry a weight past its bounds, nor move a fixed one.
            weights = task.clip((1.0 - self.interpolate) * weights + self.interpolate * solution)
            yield Epoch(
                number,
                weights,
                {"weights": weights, "solution": solution, "done": np.array([number])},
                {"updates": len(rows), "loss": loss},
                number == self.rounds,
            )


def logistic_regression(
    task: Task, rows: _core.Constraints, start: Vector, l2: float
) -> tuple[Vector, float]:
    """Return the weights that rank the better of each row first, and their loss."""
    if not len(rows):
        return start, 0.0
    # In units of each feature's size the problem is round, and L-BFGS needs few steps.
    size = rows.sizes()
    free = np.flatnonzero(task.free & (size > 0.0))
    unit = size[free]

    def objective(u: Vector) -> tuple[float, Vector]:
        w = start.copy()
        w[free] = u / unit
        loss, slope = rows.loss(w, "logistic", task.threads)
        return loss + 0.5 * l2 * float((w * w).sum()), (slope[free] + l2 * w[free]) / unit

    found = minimise(
        objective,
        start[free] * unit,
        task.lower[free] * unit,
        task.upper[free] * unit,
        # Other pairs would move the least loss by features / rows: a tenth of that is enough.
        tolerance=1e-5,
    )
    weights = start.copy()
    weights[free] = found.x / unit
    return weights, found.value


@dataclass(frozen=True)
class Ramp:
    """The ramp loss -max(s - c) + max(s + c) by the concave-convex procedure.

    Each round fixes the hopes under the current weights, then makes `passes` of sub-gradient steps
    over the fears, pulled towards the start weights by L2.
    """

    rounds: int = 10
    passes: int = 5
    eta: float = 1e-4
    l2: float = 1e-3
    gain: Gain = SENTENCE

    def epochs(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[Epoch]:
        """Yield the weights after each round."""
        weights, done = task.clip(start), 0
        if self.passes < 1:
            return
        if state is not None:
            weights, done = np.array(state["weights"]), int(state["done"][0])
        for number in range(done + 1, self.rounds + 1):
            inner = Online(
                selector=hope_fear(pinned=weights),
                update=sgd("hinge", self.eta, l2=self.l2, anchor=start.tolist()),
                gain=self.gain,
                passes=self.passes,
                average="none",
            )
            # Each round its own stream: (seed, round) instead of (seed, pass).
            last = deque(inner.epochs(task, weights, seed + 1_000_003 * number, None), maxlen=1)[0]
            change = float(np.abs(last.weights - weights).max(initial=0.0))
            weights = last.weights
            yield Epoch(
                number,
                weights,
                {"weights": weights, "done": np.array([number])},
                {**last.facts, "weight_change": change},
                number == self.rounds,
            )
