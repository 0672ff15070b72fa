"""Baselines for tuners: random search and grid search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import ClassVar

import numpy as np

from tunesmith.learn.task import Epoch, SavedState, State, Task
from tunesmith.weights import Vector

# Points that workers are asked about at a time.
TOGETHER = 32


def _keep_best(
    task: Task, candidates: Iterator[Vector], best: Vector, gain: float
) -> tuple[Vector, float, int]:
    tried = 0
    while several := list(islice(candidates, TOGETHER)):
        tried += len(several)
        for weights, reached in zip(several, task.gains(several), strict=True):
            if reached > gain:
                best, gain = weights, reached
    return best, gain, tried


def _size(start: Vector) -> float:
    return float(np.abs(start).max(initial=0.0)) or 1.0


def _resume(task: Task, start: Vector, state: SavedState | None) -> tuple[Vector, float, int]:
    if state is None:
        weights = task.clip(start)
        return weights, task.evaluate(weights)[1], 0
    return np.array(state["weights"]), float(state["gain"][0]), int(state["done"][0])


def _epoch(number: int, best: Vector, gain: float, tried: int, last: bool) -> Epoch:
    state: State = {"weights": best, "gain": np.array([gain]), "done": np.array([number])}
    return Epoch(number, best, state, {"updates": tried}, last)


@dataclass(frozen=True)
class RandomSearch:
    """Try `tries` random points, half of them around the best so far; keep the best."""

    tries: int = 1000
    epochs_: int = 10
    scale_free: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    KERNEL: ClassVar[str] = "core/space/src/pools.rs"

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the best weights after each tenth of the tries."""
        best, gain, done = _resume(task, start, state)
        for number in range(done + 1, self.epochs_ + 1):
            rng = np.random.default_rng([seed, number])
            count = max(self.tries // self.epochs_, 1)
            best, gain, tried = _keep_best(
                task, self._draw(task, best, start, rng, count), best, gain
            )
            yield _epoch(number, best, gain, tried, number == self.epochs_)

    @staticmethod
    def _draw(
        task: Task, best: Vector, start: Vector, rng: np.random.Generator, count: int
    ) -> Iterator[Vector]:
        for index in range(count):
            if index % 2:
                draw = best + rng.normal(size=len(best)) * np.abs(best).mean()
            else:
                draw = rng.uniform(-1.0, 1.0, len(best)) * _size(start)
            yield np.where(task.free, task.clip(draw), best)


@dataclass(frozen=True)
class Grid:
    """Try `points` values per weight between -size and size: all combinations if these are at most
    `budget`, else one weight at a time, round after round."""

    points: int = 11
    budget: int = 5000
    rounds: int = 5
    scale_free: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    KERNEL: ClassVar[str] = "core/space/src/pools.rs"

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the best weights after the grid, or after each round over the weights."""
        del seed  # nothing is drawn
        best, gain, done = _resume(task, start, state)
        free = np.flatnonzero(task.free).tolist()
        values = np.linspace(-1.0, 1.0, self.points) * _size(start)
        if self.points ** len(free) <= self.budget:
            if done == 0:
                best, gain, tried = _keep_best(
                    task, self._all(task, best, free, values), best, gain
                )
                yield _epoch(1, best, gain, tried, True)
            return
        for number in range(done + 1, self.rounds + 1):
            before, tried = gain, 0
            for feature in free:
                axis = self._axis(task, best, feature, values)
                best, gain, more = _keep_best(task, axis, best, gain)
                tried += more
            last = number == self.rounds or gain == before
            yield _epoch(number, best, gain, tried, last)
            if last:
                return

    @staticmethod
    def _all(task: Task, best: Vector, free: list[int], values: Vector) -> Iterator[Vector]:
        for combination in product(values.tolist(), repeat=len(free)):
            weights = best.copy()
            weights[free] = combination
            yield task.clip(weights)

    @staticmethod
    def _axis(task: Task, best: Vector, feature: int, values: Vector) -> Iterator[Vector]:
        for value in values.tolist():
            weights = best.copy()
            weights[feature] = value
            yield task.clip(weights)
