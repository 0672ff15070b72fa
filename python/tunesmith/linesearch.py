"""Minimum error rate training: exact line search from many points (Och 2003)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.drivers import Epoch, State, Task
from tunesmith.errors import InputError
from tunesmith.features import Vector
from tunesmith.moments import Within
from tunesmith.spaces import Forests, Pools

Climbed = tuple[Vector, float, int]

# Line search looks along each axis in turn; past this many a gradient tuner is the right tool.
MOST_FEATURES = 1000
# Strings of a forest that stand for it where points are searched, and how often they are gathered.
LISTED, GATHERINGS = 100, 4
# How often restarts move on to the best so far, and how far from it they lie, at least and at most,
# in the size of its features.
GENERATIONS = 3
NEAR, FAR = 0.1, 0.5


@dataclass(frozen=True)
class LineSearch:
    """Coordinate ascent by exact line search, from the start weights and from other points.

    Along a direction each hypothesis is a line in the step; the upper envelope of a sentence's
    lines tells which hypothesis wins where, and one sweep over all breakpoints with running
    corpus statistics finds the exact best step. From each point: every axis in random order, then
    `directions` random directions, taking each improvement, until a round gains less than
    `tolerance`. The first third of the restarts lie around the start weights, each further third
    around the best so far: what is found far away from the weights that lists were made with is
    seldom what a decoder finds there. `wide` more points are drawn from everywhere behind the first
    third: on small lists that no decoder makes again, the optimum may lie far away. Every point is
    an epoch; the best so far is proposed.

    In a forest the envelope is that of all derivations (Kumar et al. 2009); the sweep is the same.
    It holds far more lines than a list, and each search costs that much more. So the points are
    searched on lists of the forests' best strings, gathered around what was found so far; the
    point that is best on the forests is where the second and last climb over them begins. Rounds
    of all these searches end when one gains less than `coarse`; without restarts there is one climb
    as on lists.
    Kernels: `core/solve/src/line`.
    """

    restarts: int = 30
    directions: int = 0
    tolerance: float = 1e-5
    coarse: float = 1e-3
    most_moves: int = 200
    wide: int = 0
    scale_free: ClassVar[bool] = True

    def epochs(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[Epoch]:
        """Yield the best weights after each starting point; points are searched in parallel."""
        if np.count_nonzero(task.free) > MOST_FEATURES:
            raise InputError(
                f"MERT over {np.count_nonzero(task.free)} features would take very long",
                remedy="fix the sparse features (--fix 'PT:*=0'), or use kbmira, pro or adagrad",
            )
        if isinstance(task.pools, Forests):
            least = max(self.tolerance, self.coarse) if self._others else self.tolerance
            yield from replace(self, tolerance=least)._over_forests(task, start, seed, state)
            return
        assert isinstance(task.pools, Pools)
        within = Within(task.pools)
        moving = _moving(task, within)
        free, spread = np.flatnonzero(moving), within.spread()
        search = self._search(task, free)
        best, gain, done = task.clip(start), -np.inf, 0
        if state is not None:
            best, gain = np.array(state["weights"]), float(state["gain"][0])
            done = int(state["done"][0])

        base = best if state is None else np.array(state["base"])

        def climb(number: int, base: Vector) -> tuple[Vector, float, int]:
            rng = np.random.default_rng([seed, number])
            point = task.clip(start)
            if number > 0:
                drawn = _anywhere if number > self.restarts else _near
                point = np.where(moving, task.clip(drawn(base, spread, rng)), point)
            return self._climb(task, search, free, point, rng)

        first, *others = np.array_split(np.arange(self.restarts + 1), GENERATIONS)
        everywhere = np.arange(self.restarts + 1, self.restarts + 1 + self.wide)
        before = 0
        for generation in [first, everywhere, *others]:
            numbers = generation[max(done - before, 0) :].tolist()
            if numbers and before > 0 and done <= before:
                base = best
            climbs = _in_order(climb, numbers, base, task.threads)
            for place, (weights, reached, moves) in enumerate(climbs, max(done, before)):
                if reached > gain:
                    best, gain = weights, reached
                now: State = {
                    "weights": best,
                    "base": base,
                    "gain": np.array([gain]),
                    "done": np.array([place + 1]),
                }
                facts = {"updates": moves, "reached": reached}
                yield Epoch(place + 1, best, now, facts, place == self._others)
            before += len(generation)

    @property
    def _others(self) -> int:
        """The number of points beside the start weights."""
        return self.restarts + self.wide

    def _search(self, task: Task, free: npt.NDArray[np.int64]) -> _core.LineSearch:
        return _core.LineSearch(
            task.pools.core, task.table, task.metric.native, free.tolist(), task.threads
        )

    def _over_forests(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None,
    ) -> Iterator[Epoch]:
        """Climb from the start weights, then from what lists of the best strings led to."""
        assert isinstance(task.pools, Forests)
        lists = task.pools.kbest(start, LISTED, threads=task.threads)
        free = np.flatnonzero(_moving(task, Within(lists)))
        search = self._search(task, free)
        best, gain, done = task.clip(start), -np.inf, 0
        if state is not None:
            best, gain = np.array(state["weights"]), float(state["gain"][0])
            done = int(state["done"][0])
        for number in range(done, 2 if self._others else 1):
            point = task.clip(start)
            if number:
                point = self._on_lists(task, [point, best], seed)
            rng = np.random.default_rng([seed, number])
            weights, reached, moves = self._climb(task, search, free, point, rng)
            if reached > gain:
                best, gain = weights, reached
            now: State = {
                "weights": best,
                "gain": np.array([gain]),
                "done": np.array([number + 1]),
            }
            last = number == (1 if self._others else 0)
            yield Epoch(number + 1, best, now, {"updates": moves, "reached": reached}, last)

    def _on_lists(self, task: Task, points: Sequence[Vector], seed: int) -> Vector:
        """Return the point that is best on the forests, of searches on lists of their strings.

        Lists of the strings that are best at some points promise too much elsewhere. So each search
        adds the strings that are best where it ends, and the next one knows better.
        """
        forests = task.pools
        assert isinstance(forests, Forests)
        listed = partial(forests.kbest, k=LISTED, threads=task.threads)
        lists = Pools.merge([listed(point) for point in points])
        best, gain = points[-1], -np.inf
        for number in range(GATHERINGS):
            *_, last = self.epochs(replace(task, pools=lists), best, seed + 1000 * number)
            reached = task.evaluate(last.weights)[1]
            if reached > gain:
                best, gain = last.weights, reached
            lists = Pools.merge([lists, listed(last.weights)])
        return best

    def _climb(
        self,
        task: Task,
        search: _core.LineSearch,
        free: npt.NDArray[np.int64],
        point: Vector,
        rng: np.random.Generator,
    ) -> tuple[Vector, float, int]:
        walker = search.walker(point)
        moves = 0
        while moves < self.most_moves and len(free):
            here = walker.gain
            for axis in rng.permutation(len(free)).tolist():
                feature = free[axis]
                step, gain = walker.axis(axis, task.lower[feature], task.upper[feature])
                if gain > walker.gain:
                    walker.move_axis(axis, step)
                    moves += 1
            for _ in range(self.directions):
                direction = np.zeros(len(point))
                direction[free] = rng.normal(size=len(free))
                step, gain = walker.direction(direction, *_range(task, walker.weights, direction))
                if gain > walker.gain:
                    walker.move_to(walker.weights + step * direction)
                    moves += 1
            # Scores computed afresh: what is reported is what these weights choose.
            walker.move_to(_tidy(task, walker.weights))
            if walker.gain - here < self.tolerance:
                break
        return walker.weights, walker.gain, moves


def _in_order(
    climb: Callable[[int, Vector], Climbed], numbers: list[int], base: Vector, threads: int
) -> Iterator[Climbed]:
    """Yield what each climb reached, in order, several climbing at a time."""
    with ThreadPoolExecutor(threads or None) as workers:
        jobs = [workers.submit(climb, number, base) for number in numbers]
        try:
            for job in jobs:
                yield job.result()
        finally:
            for job in jobs:
                job.cancel()


def _moving(task: Task, within: Within) -> npt.NDArray[np.bool_]:
    """Return which weights are searched: those of features that never vary change no choice."""
    return task.free & (within.variances() > 0.0)


def _near(base: Vector, spread: Vector, rng: np.random.Generator) -> Vector:
    """Return a point around `base`, some way off as its features are large; around zero, any."""
    size = float(np.abs(base * spread).mean()) or 1.0
    distance = size * NEAR * (FAR / NEAR) ** rng.uniform()
    return np.asarray(base + rng.normal(size=len(base)) / spread * distance)


def _anywhere(base: Vector, spread: Vector, rng: np.random.Generator) -> Vector:
    """Return a point in any direction from zero, where each feature counts for as much."""
    return np.asarray(rng.normal(size=len(base)) / spread)


def _range(task: Task, weights: Vector, direction: Vector) -> tuple[float, float]:
    """Return the steps along a direction that stay within all bounds."""
    moving = direction != 0
    with np.errstate(invalid="ignore"):
        one = (task.lower - weights)[moving] / direction[moving]
        other = (task.upper - weights)[moving] / direction[moving]
    return float(np.minimum(one, other).max()), float(np.maximum(one, other).min())


def _tidy(task: Task, weights: Vector) -> Vector:
    """Scale unbounded weights to sum to one in magnitude: the choice does not depend on it."""
    total = float(np.abs(weights).sum())
    if np.isfinite(task.lower).any() or np.isfinite(task.upper).any() or total == 0.0:
        return weights
    return weights / total
