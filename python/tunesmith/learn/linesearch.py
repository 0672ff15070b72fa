"""Minimum error rate training: exact line search from many points (Och 2003)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tunesmith.engines import Worker
from tunesmith.errors import InputError
from tunesmith.learn.climbing import WHOLE, Field, Path, Search, drop, share_of
from tunesmith.learn.shares import Numbers, Share
from tunesmith.learn.task import Epoch, SavedState, State, Task
from tunesmith.spaces import Spaces
from tunesmith.spaces.moments import LISTED
from tunesmith.weights import Vector

# Line search looks along each axis in turn; past this many a gradient tuner is the right tool.
MOST_FEATURES = 1000
# The share of bins that stand for all in the search from points.
SHARE = 0.2
# How often strings are added to the lists that represent forests in the search from points.
GATHERINGS = 4
# What workers keep beside the task.
SAMPLED, GATHERED = "sampled", "gathered"
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
    shared: ClassVar[bool] = True
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
        whole = Field.open(task, WHOLE, start)
        if not task.outline.flat or task.outline.binned:
            least = max(self.tolerance, self.coarse) if self._others else self.tolerance
            yield from replace(self, tolerance=least)._in_two_climbs(whole, start, seed, state)
        else:
            yield from self._from_many_points(whole, start, seed, state)

    def _from_many_points(
        self, field: Field, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Climb from the start weights and from other points."""
        best, gain, done = field.task.clip(start), -np.inf, 0
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
            climbs = field.climbs([self._from(field, start, base, seed, n) for n in numbers])
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

    def _from(self, field: Field, start: Vector, base: Vector, seed: int, number: int) -> _Climb:
        """Return the climb of a number: from the start weights, or from a point around `base`."""
        rng = np.random.default_rng([seed, number])
        point = field.task.clip(start)
        if number:
            drawn = _anywhere if number > self.restarts else _near
            there = field.task.clip(drawn(base, field.spread, rng))
            point = np.where(field.moving, there, point)
        return _Climb(self, point, rng)

    @property
    def _others(self) -> int:
        """The number of points beside the start weights."""
        return self.restarts + self.wide

    def _in_two_climbs(
        self, field: Field, start: Vector, seed: int, state: SavedState | None
    ) -> Iterator[Epoch]:
        """Climb from the start weights, then from the best point that smaller searches found."""
        task = field.task
        best, gain, done = task.clip(start), -np.inf, 0
        if state is not None:
            best, gain = np.array(state["weights"]), float(state["gain"][0])
            done = int(state["done"][0])
        for number in range(done, 2 if self._others else 1):
            point = task.clip(start)
            if number:
                look = self._on_some if task.outline.binned else self._on_lists
                point = task.clip(look(task, [point, best], seed))
            climb = _Climb(self, point, np.random.default_rng([seed, number]))
            ((weights, reached, moves),) = field.climbs([climb])
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
        """Search on lists of the forests' strings; return the point that is best on the forests.

        Lists of the strings that are best at some points overestimate the gain elsewhere. So each
        search adds the strings that are best where it ended.
        """
        task.shares.ask(_gather, points, True)
        best, gain = points[-1], -np.inf
        for number in range(GATHERINGS):
            lists = Field.open(task, GATHERED, best)
            *_, last = self._from_many_points(lists, best, seed + 1000 * number)
            reached = task.evaluate(last.weights)[1]
            if reached > gain:
                best, gain = last.weights, reached
            if number + 1 < GATHERINGS:
                task.shares.ask(_gather, [last.weights], False)
        task.shares.ask(drop, GATHERED)
        return best

    def _on_some(self, task: Task, points: Sequence[Vector], seed: int) -> Vector:
        """Return the point that is best on all bins, of searches on a share of the bins."""
        count = len(task.outline.groups)
        drawn = np.random.default_rng(seed).permutation(count)
        task.shares.ask(_sample, drawn[: max(1, round(SHARE * count))])
        best, gain = points[-1], task.evaluate(points[-1])[1]
        part = Field.open(task, SAMPLED, best)
        reached = -np.inf
        for epoch in self._from_many_points(part, best, seed):
            if epoch.facts["reached"] > reached:
                reached = epoch.facts["reached"]
                here = task.evaluate(epoch.weights)[1]
                if here > gain:
                    best, gain = epoch.weights, here
        task.shares.ask(drop, SAMPLED)
        return best


@dataclass(frozen=True)
class _Climb:
    """Coordinate ascent from a point."""

    tuner: LineSearch
    point: Vector
    rng: np.random.Generator

    def search(self, task: Task, free: Numbers) -> Search:
        """Ask for lines to be searched; return where the climb ends, the gain there, and the
        number of moves."""
        tuner, rng = self.tuner, self.rng
        path = Path(self.point, free)
        _, _, here = yield path.stay()
        moves = 0
        while moves < tuner.most_moves and len(free):
            before = here
            for axis in rng.permutation(len(free)).tolist():
                bounds = task.lower[free[axis]], task.upper[free[axis]]
                step, gain, here = yield path.axis(axis, *bounds)
                if gain > here:
                    path.step(axis, step)
                    moves += 1
            for _ in range(tuner.directions):
                direction = np.zeros(len(self.point))
                direction[free] = rng.normal(size=len(free))
                step, gain, here = yield path.direction(
                    direction, *_range(task, path.weights, direction)
                )
                if gain > here:
                    path.go(path.weights + step * direction)
                    moves += 1
            # Compute all scores again: the reported gain must be that of these very weights.
            path.go(_tidy(task, path.weights))
            _, _, here = yield path.stay()
            if here - before < tuner.tolerance:
                break
        return path.weights, here, moves


def _gather(worker: Worker, points: Sequence[Vector], fresh: bool) -> None:
    """Keep lists of the forests' strings at some points, with those that are kept already."""
    share: Share = worker.share
    task = share.task
    lists: Spaces = task.spaces.listed(points, LISTED, task.threads)
    if not fresh:
        lists = share_of(worker, GATHERED).task.spaces.merged(lists)
    worker.kept[GATHERED] = share.of(lists)


def _sample(worker: Worker, numbers: Numbers) -> None:
    """Keep those of the bins that have one of the numbers."""
    share: Share = worker.share
    worker.kept[SAMPLED] = share.picked(numbers)


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
