"""Minimum risk: the expected gain of the model's own distribution, annealed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.drivers import Epoch, Task
from tunesmith.features import Vector
from tunesmith.minimise import minimise


@dataclass(frozen=True)
class Risk:
    """Maximise E_p[G] with p ∝ exp(α s), α growing from epoch to epoch (Smith & Eisner 2006).

    `objective="sentence"` takes the mean of sentence gains, `"corpus"` the gain of the expected
    corpus statistics. α starts at `alpha` and is multiplied by `anneal`: the distribution sharpens
    until it is the model's choice itself. L2 pulls towards the start of the epoch. L-BFGS, within
    the bounds.

    The expectation over a forest is that over its derivations, by inside and outside with the
    statistics of strings in the nodes (an expectation semiring, Li & Eisner 2009): exact for what
    is kept of the forest under the weights that an epoch starts with. Metrics other than BLEU see
    the best strings. Kernels: `core/solve/src/risk.rs`, `core/space/src/forest/unfold.rs`.
    """

    alpha: float = 1.0
    anneal: float = 2.0
    steps: int = 8
    iterations: int = 30
    l2: float = 1e-4
    objective: Literal["sentence", "corpus"] = "corpus"

    def epochs(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
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
            expectation = _core.Expectation(
                task.pools.core, task.table, task.metric.native, weights, task.threads
            )

            def objective(
                x: Vector,
                alpha: float = alpha,
                anchor: Vector = anchor,
                expectation: _core.Expectation = expectation,
            ) -> tuple[float, Vector]:
                whole = anchor.copy()
                whole[free] = x
                corpus = self.objective == "corpus"
                value, slope = expectation.gain(whole, alpha, corpus, task.threads)
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
