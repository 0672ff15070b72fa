"""Local training: weights near given ones that suit a few lists (Liu et al. 2012).

Both updates work in a scale of their own, because λ has a meaning only for weights of a certain
size. The spread of the lists is the standard deviation of the scores within a list under the start
weights, averaged over the lists with more than one hypothesis. The weights are divided by it before
learning and multiplied by it afterwards. With `normalise`, features count in units of their own
spread: the root of the mean variance within the lists in which a feature varies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tunesmith import _core
from tunesmith.engines import Worker, reads
from tunesmith.learn.task import Epoch, SavedState, Task
from tunesmith.metrics import Metric
from tunesmith.spaces import Pools
from tunesmith.weights import Vector

Bounds = tuple[Vector, Vector]

# Strings that stand for a forest: as many as the paper's lists have.
LISTED = 100


def blocks_of(pools: Pools, metric: Metric) -> _core.Blocks:
    """Return lists with their sentence gains, as updates look at them."""
    return _core.Blocks.of(pools.core, pools.table(metric, 1), metric.native)


class Learnt(NamedTuple):
    """Weights, and how they were found."""

    weights: Vector
    spread: float
    """The spread that the start weights were divided by."""
    objective: float
    passes: int
    """The number of passes over the lists."""
    gap: float
    """An upper bound of the distance to the minimum; NaN if unknown."""


class Update(ABC):
    """An update that moves given weights by as much as its strength allows."""

    @abstractmethod
    def learn(self, lists: _core.Blocks, start: Vector, bounds: Bounds | None = None) -> Learnt:
        """Return weights near the start; run in this thread, without the interpreter lock."""

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield one epoch with the weights that were learnt."""
        del seed  # nothing is drawn
        if state is not None:
            return
        found = task.crew.ask(_learn, self, task.clip(start))
        yield Epoch(
            1,
            found.weights,
            {"weights": found.weights},
            {"updates": found.passes, "loss": found.objective, "spread_of_scores": found.spread},
            last=True,
        )


@dataclass(frozen=True)
class MarginUpdate(Update):
    """Move the weights so that the oracle of each list wins by its gain (MBUU).

    min ½‖W - W_b‖² + λ/K Σ_j max_n (l_jn - W·Δh_jn), solved in the dual until the duality gap is
    below `tolerance` times the loss at the start. The oracle has the best gain of its list, and
    among equals the best score under W_b. Bounds are met exactly.
    """

    strength: float = 0.018
    normalise: bool = False
    tolerance: float = 1e-3
    passes: int = 100

    KERNEL: ClassVar[str] = "core/solve/src/local/margin.rs"

    def learn(self, lists: _core.Blocks, start: Vector, bounds: Bounds | None = None) -> Learnt:
        """Return weights near the start."""
        return Learnt(
            *_core.margin_update(
                lists,
                start,
                bounds,
                self.normalise,
                self.strength,
                self.tolerance,
                self.passes,
            )
        )


@dataclass(frozen=True)
class ErrorUpdate(Update):
    """Move the weights so that the expected gain of the lists grows (EBUU).

    min ½‖W - W_b‖² + λ/K Σ_j Σ_e Err(e) P_α(e | f_j; W), P_α ∝ exp(α W·h), Err = -gain, by
    spectral projected gradient from W_b, until no weight moves by more than `tolerance` times the
    largest move.
    """

    strength: float = 2.0
    sharpness: float = 1.0
    normalise: bool = False
    tolerance: float = 1e-2
    passes: int = 100

    KERNEL: ClassVar[str] = "core/solve/src/local/error.rs"

    def learn(self, lists: _core.Blocks, start: Vector, bounds: Bounds | None = None) -> Learnt:
        """Return weights near the start."""
        return Learnt(
            *_core.error_update(
                lists,
                start,
                bounds,
                self.normalise,
                self.strength,
                self.sharpness,
                self.tolerance,
                self.passes,
            )
        )


@reads
def _learn(worker: Worker, update: Update, start: Vector) -> Learnt:
    task: Task = worker.share
    lists = task.spaces.listed([start], LISTED, task.threads)
    unbounded = np.isneginf(task.lower).all() and np.isposinf(task.upper).all()
    bounds = None if unbounded else (task.lower, task.upper)
    return update.learn(blocks_of(lists, task.metric), start, bounds)
