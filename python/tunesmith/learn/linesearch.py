"""Minimum error rate training: exact line search from many points (Och 2003)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import Threads, Worker, begins, reads
from tunesmith.errors import InputError
from tunesmith.learn.task import Epoch, SavedState, State, Task
from tunesmith.spaces.moments import Within
from tunesmith.weights import Vector

Climbed = tuple[Vector, float, int]

# Line search looks along each axis in turn; past this many a gradient tuner is the right tool.
MOST_FEATURES = 1000
# The share of bins that stand for all in the search from points.
SHARE = 0.2
# Number of strings that represent a forest in the search from points, and how often more are added.
LISTED, GATHERINGS = 100, 4
# Restarts are drawn in this many groups, each around the best point so far, at a distance between
# NEAR and FAR times the size of that point.
GENERATIONS = 3
NEAR, FAR = 0.1, 0.5


@dataclass(frozen=True)
class LineSearch:
    """Coordinate ascent by exact line search, from the start weights and from other points.

    Along a direction each hypothesis is a line in the step; the upper envelope of a sentence's
    lines says which hypothesis wins where, and one sweep over all breakpoints with running
    corpus statistics finds the exact best step. From each point: every axis in random order, then
    `directions` random directions, taking each improvement, until a round gains less than
    `tolerance`. The first third of the restarts lie around the start weights, each further third
    around the best so far: far away from the weights that made the lists, a decoder would find
    other hypotheses. After the first third, `wide` more points are drawn from everywhere: on small
    lists that are not decoded again, the optimum may lie far away. Every point is an epoch; the
    best so far is proposed.

    In a forest the envelope is that of all derivations (Kumar et al. 2009); the sweep is the same.
    A forest holds far more lines than a list, so each search costs far more. Therefore there are
    two climbs over the forests: one from the start weights, one from the best point that searches
    on lists of the forests' best strings have found. Bins are many, too: there the points are
    searched on a fifth of them. All these searches end when a round gains less than `coarse`.
    Without restarts there is one climb, as on lists.
    """

    restarts: int = 30
    directions: int = 0
    tolerance: float = 1e-5
    coarse: float = 1e-3
    most_moves: int = 200
    wide: int = 0
    scale_free: ClassVar[bool] = True
    KERNEL: ClassVar[str] = "core/solve/src/line/mod.rs"

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the best weights after each starting point; points are searched in parallel."""
        if np.count_nonzero(task.free) > MOST_FEATURES:
            raise InputError(
                f"MERT over {np.count_nonzero(task.free)} features would take very long",
                remedy="fix the sparse features (--fix 'PT:*=0'), or use kbmira, pro or adagrad",
            )
        if not task.spaces.flat or task.spaces.binned:
            least = max(self.tolerance, self.coarse) if self._others else self.tolerance
            yield from replace(self, tolerance=least)._in_two_climbs(task, start, seed, state)
        else:
            yield from self._from_many_points(task, start, seed, state)

    def _from_many_points(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Climb from the start weights and from other points."""
        # Every worker climbs.
        task.crew.ask_all(_open, [(start,)] * task.crew.size)
        best, gain, done = task.clip(start), -np.inf, 0
        if state is not None:
            best, gain = np.array(state["weights"]), float(state["gain"][0])
            done = int(state["done"][0])
        base = best if state is None else np.array(state["base"])
        first, *others = np.array_split(np.arange(self.restarts + 1), GENERATIONS)
        everywhere = np.arange(self.restarts + 1, self._others + 1)
        before = 0
        for generation in [first, everywhere, *others]:
            numbers = generation[max(done - before, 0) :].tolist()
            if numbers and before > 0 and done <= before:
                base = best
            points = [(self, start, base if number else None, seed, number) for number in numbers]
            climbs = task.crew.map(_climb, points)
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

    def _in_two_climbs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None
    ) -> Iterator[Epoch]:
        """Climb from the start weights, then from the best point that smaller searches found."""
        task.crew.ask(_open, start)
        best, gain, done = task.clip(start), -np.inf, 0
        if state is not None:
            best, gain = np.array(state["weights"]), float(state["gain"][0])
            done = int(state["done"][0])
        for number in range(done, 2 if self._others else 1):
            point = task.clip(start)
            if number:
                look = _sample if task.spaces.binned else _gather
                point = task.crew.ask(look, self, [point, best], seed)
            weights, reached, moves = task.crew.ask(_climb, self, point, None, seed, number)
            if reached > gain:
                best, gain = weights, reached
            now: State = {
                "weights": best,
                "gain": np.array([gain]),
                "done": np.array([number + 1]),
            }
            last = number == (1 if self._others else 0)
            yield Epoch(number + 1, best, now, {"updates": moves, "reached": reached}, last)

    def climb(
        self,
        task: Task,
        search: _core.LineSearch,
        free: npt.NDArray[np.int64],
        point: Vector,
        rng: np.random.Generator,
    ) -> Climbed:
        """Return where a climb from a point ends, the gain there, and the number of moves."""
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
            # Compute all scores again: the reported gain must be that of these very weights.
            walker.move_to(_tidy(task, walker.weights))
            if walker.gain - here < self.tolerance:
                break
        return walker.weights, walker.gain, moves


@dataclass(frozen=True)
class _Lines:
    """The hypotheses of a worker as lines, and how their features vary."""

    search: _core.LineSearch
    moving: npt.NDArray[np.bool_]
    """Which weights are searched: those of features that never vary change no choice."""
    spread: Vector


@begins
def _open(worker: Worker, start: Vector) -> None:
    """Prepare the worker for climbs."""
    task: Task = worker.share
    within = Within(task.spaces.listed([start], LISTED, task.threads))
    moving = task.free & (within.variances() > 0.0)
    free = np.flatnonzero(moving).tolist()
    search = _core.LineSearch(task.spaces.core, task.table, task.metric.native, free, task.threads)
    worker.kept["lines"] = _Lines(search, moving, within.spread())


@reads
def _climb(
    worker: Worker,
    tuner: LineSearch,
    start: Vector,
    base: Vector | None,
    seed: int,
    number: int,
) -> Climbed:
    """Climb from the start weights, or from a point around `base`."""
    task: Task = worker.share
    lines: _Lines = worker.kept["lines"]
    rng = np.random.default_rng([seed, number])
    point = task.clip(start)
    if base is not None:
        drawn = _anywhere if number > tuner.restarts else _near
        point = np.where(lines.moving, task.clip(drawn(base, lines.spread, rng)), point)
    return tuner.climb(task, lines.search, np.flatnonzero(lines.moving), point, rng)


@reads
def _gather(worker: Worker, tuner: LineSearch, points: Sequence[Vector], seed: int) -> Vector:
    """Search on lists of the forests' strings; return the point that is best on the forests.

    Lists of the strings that are best at some points overestimate the gain elsewhere. So each
    search adds the strings that are best where it ended.
    """
    task: Task = worker.share
    lists = task.spaces.listed(points, LISTED, task.threads)
    best, gain = points[-1], -np.inf
    for number in range(GATHERINGS):
        on_lists = replace(task, spaces=lists, engine=Threads())
        *_, last = tuner._from_many_points(on_lists, best, seed + 1000 * number)
        on_lists.release()
        reached = task.evaluate(last.weights)[1]
        if reached > gain:
            best, gain = last.weights, reached
        lists = lists.merged(task.spaces.listed([last.weights], LISTED, task.threads))
    return best


@reads
def _sample(worker: Worker, tuner: LineSearch, points: Sequence[Vector], seed: int) -> Vector:
    """Return the point that is best on all bins, of searches on a share of the bins."""
    task: Task = worker.share
    part = replace(task, spaces=task.spaces.sampled(SHARE, seed), engine=Threads())
    best, gain = points[-1], task.evaluate(points[-1])[1]
    reached = -np.inf
    for epoch in tuner._from_many_points(part, best, seed):
        if epoch.facts["reached"] > reached:
            reached = epoch.facts["reached"]
            here = task.evaluate(epoch.weights)[1]
            if here > gain:
                best, gain = epoch.weights, here
    part.release()
    return best


def _near(base: Vector, spread: Vector, rng: np.random.Generator) -> Vector:
    """Return a point around `base`, at a distance relative to the size of `base`.

    Around zero, the distance is relative to one.
    """
    size = float(np.abs(base * spread).mean()) or 1.0
    distance = size * NEAR * (FAR / NEAR) ** rng.uniform()
    return np.asarray(base + rng.normal(size=len(base)) / spread * distance)


def _anywhere(base: Vector, spread: Vector, rng: np.random.Generator) -> Vector:
    """Return a point in a random direction from zero; all features have the same influence."""
    return np.asarray(rng.normal(size=len(base)) / spread)


def _range(task: Task, weights: Vector, direction: Vector) -> tuple[float, float]:
    """Return the steps along a direction that stay within all bounds."""
    moving = direction != 0
    with np.errstate(invalid="ignore"):
        one = (task.lower - weights)[moving] / direction[moving]
        other = (task.upper - weights)[moving] / direction[moving]
    return float(np.minimum(one, other).max()), float(np.maximum(one, other).min())


def _tidy(task: Task, weights: Vector) -> Vector:
    """Scale unbounded weights so that their magnitudes sum to one; the choices stay the same."""
    total = float(np.abs(weights).sum())
    if np.isfinite(task.lower).any() or np.isfinite(task.upper).any() or total == 0.0:
        return weights
    return weights / total
