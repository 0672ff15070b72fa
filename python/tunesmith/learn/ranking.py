"""Batch optimisers on constraint rows: pairwise ranking and the ramp loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tunesmith import _core
from tunesmith.engines import Worker, begins, reads
from tunesmith.learn.gains import SENTENCE, Gain
from tunesmith.learn.minimise import minimise
from tunesmith.learn.online import Learner, Online, Schedule
from tunesmith.learn.selectors import HopeFear, Selector
from tunesmith.learn.shares import Share, Slopes, fold
from tunesmith.learn.task import Epoch, SavedState, Statistics, Task
from tunesmith.learn.updates import Sgd
from tunesmith.weights import Vector

Take = Literal["best", "last"]


@dataclass(frozen=True)
class Ranking:
    """Sample pairs, separate them by logistic regression, move part of the way there.

    Minimises Σ log(1 + exp(-w·x)) / n + l2/2 ‖w‖² over the sampled rows by L-BFGS, within the
    bounds, then w <- (1 - ψ) w + ψ w*. Each round draws new pairs; if `first` is given, it draws
    those of the first half of the rounds. Pairs are compared by the gain of the sentence alone, or,
    with `context`, by the gain of the corpus that the weights choose, with the sentence exchanged.
    A run ends with the `last` round's weights, or with those of the `best` on the lists.
    """

    selector: Selector
    rounds: int = 12
    interpolate: float = 0.2
    l2: float = 1e-4
    context: bool = False
    first: Selector | None = None
    take: Take = "best"

    shared: ClassVar[bool] = True
    KERNEL: ClassVar[str] = "core/solve/src/batch.rs"

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the weights after each round."""
        weights, solution, done = task.clip(start), task.clip(start), 0
        if state is not None:
            weights, solution = np.array(state["weights"]), np.array(state["solution"])
            done = int(state["done"][0])
        for number in range(done + 1, self.rounds + 1):
            chosen = task.chosen(weights) if self.context else None
            early = 2 * number <= self.rounds
            selector = (self.first if early else None) or self.selector
            drawn = draw(task, selector, weights, seed, number, chosen)
            loss = 0.0
            if drawn.rows:
                solution, loss = logistic_regression(task, drawn, solution, self.l2)
            # Rounding must not move a weight past its bounds, or a fixed weight at all.
            weights = task.clip((1.0 - self.interpolate) * weights + self.interpolate * solution)
            yield Epoch(
                number,
                weights,
                {"weights": weights, "solution": solution, "done": np.array([number])},
                {"updates": drawn.rows, "loss": loss},
                number == self.rounds,
            )


@dataclass(frozen=True)
class _Drawn:
    """Pairs that workers have drawn from their lists, and keep."""

    rows: int
    """How many."""
    size: Vector
    """The root mean square of each feature over them."""


def draw(
    task: Task,
    selector: Selector,
    weights: Vector,
    seed: int,
    number: int,
    chosen: Statistics | None = None,
) -> _Drawn:
    """Let all workers draw pairs; gains are in the context of what was chosen, if it is given."""
    answers = task.shares.ask(_sample, selector, weights, seed, number, chosen)
    rows = sum(count for count, _ in answers)
    squares = task.shares.added([slopes for _, slopes in answers], len(weights))
    return _Drawn(rows, np.sqrt(squares / max(rows, 1)))


@begins
def _sample(
    worker: Worker,
    selector: Selector,
    weights: Vector,
    seed: int,
    number: int,
    chosen: Statistics | None,
) -> tuple[int, Slopes]:
    """Draw pairs and keep them; return their number and the squares of each feature in blocks."""
    share: Share = worker.share
    task = share.task
    if "sampler" not in worker.kept:
        worker.kept["sampler"] = _core.Sampler(
            task.spaces.core,
            task.table,
            task.metric.native,
            len(weights),
            share.blocks,
            (share.lines.tolist(), share.whole),
        )
    rows = worker.kept["sampler"].rows(
        selector.kernel(), weights, seed, number, task.threads, chosen
    )
    worker.kept["rows"] = rows
    return len(rows), rows.squares(task.threads)


@reads
def _loss(worker: Worker, weights: Vector) -> tuple[float, Vector]:
    """Return the mean logistic loss of the pairs that were drawn last, and its slope."""
    share: Share = worker.share
    rows: _core.Constraints = worker.kept["rows"]
    return rows.loss(weights, "logistic", share.task.threads)


@reads
def _losses(worker: Worker, weights: Vector, count: int) -> tuple[Vector, Slopes]:
    """Return the part of each block in the mean loss of so many pairs, and its slope."""
    share: Share = worker.share
    rows: _core.Constraints = worker.kept["rows"]
    return rows.losses(weights, "logistic", count, share.task.threads)


def mean_loss(task: Task, drawn: _Drawn, weights: Vector) -> tuple[float, Vector]:
    """Return the mean logistic loss of all pairs, and its slope."""
    shares = task.shares
    if shares.alone:
        return shares.ask(_loss, weights)[0]
    answers = shares.ask(_losses, weights, drawn.rows)
    value = float(fold(shares.by_block([values for values, _ in answers])))
    return value, shares.added([slopes for _, slopes in answers], len(weights))


def logistic_regression(
    task: Task, drawn: _Drawn, start: Vector, l2: float
) -> tuple[Vector, float]:
    """Return the weights that rank the better of each drawn pair first, and their loss."""
    # In units of each feature's size the problem is well conditioned: L-BFGS needs few steps.
    free = np.flatnonzero(task.free & (drawn.size > 0.0))
    unit = drawn.size[free]

    def objective(u: Vector) -> tuple[float, Vector]:
        w = start.copy()
        w[free] = u / unit
        loss, slope = mean_loss(task, drawn, w)
        return loss + 0.5 * l2 * float((w * w).sum()), (slope[free] + l2 * w[free]) / unit

    found = minimise(
        objective,
        start[free] * unit,
        task.lower[free] * unit,
        task.upper[free] * unit,
        # With other pairs the minimum would differ by about features / rows; a tenth is enough.
        tolerance=1e-5,
    )
    weights = start.copy()
    weights[free] = found.x / unit
    return weights, found.value


@dataclass(frozen=True)
class Ramp:
    """The ramp loss -max(s - c) + max(s + c) by the concave-convex procedure.

    Each round fixes the hopes under the current weights, then makes `passes` of sub-gradient steps
    over the fears, pulled towards the start weights by L2. A run ends with the `last` round's
    weights, or with those of the `best` on the lists.
    """

    rounds: int = 10
    passes: int = 5
    eta: float = 1e-4
    l2: float = 1e-3
    gain: Gain = SENTENCE
    take: Take = "best"

    KERNEL: ClassVar[str] = "core/solve/src/update/gradient.rs"

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the weights after each round."""
        weights, done = task.clip(start), 0
        if self.passes < 1:
            return
        if state is not None:
            weights, done = np.array(state["weights"]), int(state["done"][0])
        for number in range(done + 1, self.rounds + 1):
            inner = Online(
                learner=Learner(
                    selector=HopeFear(pinned=tuple(weights.tolist())),
                    update=Sgd("hinge", self.eta, l2=self.l2, anchor=tuple(start.tolist())),
                    gain=self.gain,
                ),
                schedule=Schedule(passes=self.passes, average="none"),
            )
            # Each round has its own random stream: (seed, round) instead of (seed, pass).
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
