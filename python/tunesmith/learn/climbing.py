"""Line search where the lists are: climbs ask for lines, workers find what changes along them.

A climb does not know who searches. A single worker climbs by itself. Several workers each answer
with the breakpoints of their own lists, and the driver sweeps over those of all; climbs that are
under way at the same time put their lines into one question. Both ways end at the same weights to
the bit.

What a worker keeps of a climb can be found again from the line that is asked for, so questions
about lines only read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import Pool, Worker, begins, reads
from tunesmith.learn.shares import Numbers, Rows, Share, Slopes
from tunesmith.learn.task import Task
from tunesmith.spaces.moments import LISTED, Within
from tunesmith.weights import Vector

T = TypeVar("T")
Climbed = tuple[Vector, float, int]
"""Where a climb ended, the gain there, and the number of moves."""
Found = tuple[float, float, float]
"""The best step along a line, the gain that it reaches, and the gain without a step."""
Broken = tuple[Rows, Rows, Vector, npt.NDArray[np.uint32], npt.NDArray[Any]]
"""The statistics of each block without a step, and how they change along a line: at its far left by
block; where on the way, of which list, by how much."""

# What is searched: the task itself, or what workers have made of it under another name.
WHOLE = "whole"


@dataclass(frozen=True)
class Line:
    """A line through a point. The point is that of some weights after steps along axes."""

    base: Vector
    steps: tuple[tuple[int, float], ...]
    axis: int | None = None
    direction: Vector | None = None
    """Neither axis nor direction: only the point itself."""
    reach: tuple[float, float] = (0.0, 0.0)
    """The steps that are allowed."""
    bounds: tuple[float, float] = (0.0, 0.0)
    """The bounds of an axis' weight."""


Search = Generator[Line, Found, Climbed]


class Ascent(Protocol):
    """A climb that has not begun."""

    def search(self, task: Task, free: Numbers) -> Search:
        """Ask for lines; return where the climb ends. Axes are the places of `free` features."""


class Path:
    """The way of a climb so far."""

    def __init__(self, point: Vector, free: Numbers) -> None:
        self._free = free
        self.go(point)

    def go(self, weights: Vector) -> None:
        """Go to other weights; all scores are computed afresh there."""
        self._base, self._steps = weights, list[tuple[int, float]]()
        self.weights = weights.copy()

    def step(self, axis: int, step: float) -> None:
        """Go a step along an axis."""
        self._steps.append((axis, step))
        self.weights[self._free[axis]] += step

    def stay(self) -> Line:
        """Return the point."""
        return Line(self._base, tuple(self._steps))

    def axis(self, axis: int, lower: float, upper: float) -> Line:
        """Return the line along an axis, between the bounds of its weight."""
        here = float(self.weights[self._free[axis]])
        reach = lower - here, upper - here
        return Line(self._base, tuple(self._steps), axis, None, reach, (lower, upper))

    def direction(self, direction: Vector, lower: float, upper: float) -> Line:
        """Return the line along a direction, within a range of steps."""
        return Line(self._base, tuple(self._steps), None, direction, (lower, upper))


@dataclass(frozen=True)
class Field:
    """What is searched, ready for climbs; known to the driver."""

    task: Task
    name: str
    moving: npt.NDArray[np.bool_]
    """Which weights are searched: those of features that never vary change no choice."""
    spread: Vector
    """The standard deviation of each feature within lists, one where it does not vary."""

    @classmethod
    def open(cls, task: Task, name: str, start: Vector) -> Field:
        """Prepare all workers for climbs."""
        shares = task.shares
        answers = shares.ask(_vary, name, start)
        count = sum(hypotheses for hypotheses, _ in answers)
        sums = shares.added([slopes for _, slopes in answers], len(start))
        moving = task.free & (sums > 0.0)
        spread = np.where(sums > 0.0, np.sqrt(sums / max(count, 1)), 1.0)
        shares.ask(_open if name == WHOLE else _open_other, name, np.flatnonzero(moving))
        return cls(task, name, moving, spread)

    def climbs(self, ascents: Sequence[Ascent]) -> Iterator[Climbed]:
        """Yield where each climb ends, in their order."""
        shares = self.task.shares
        free = np.flatnonzero(self.moving)
        if shares.alone:
            asked = [(self.name, ascent, free) for ascent in ascents]
            yield from shares.crew.map(_climb, asked)
            return
        under_way = {n: ascent.search(self.task, free) for n, ascent in enumerate(ascents)}
        lines = {number: next(search) for number, search in under_way.items()}
        ended: dict[int, Climbed] = {}
        while lines:
            found, lines = self._searched(lines), {}
            for number, best in found.items():
                try:
                    lines[number] = under_way[number].send(best)
                except StopIteration as end:
                    ended[number] = end.value
        for number in range(len(ascents)):
            yield ended[number]

    def _searched(self, lines: Mapping[int, Line]) -> dict[int, Found]:
        """Return the best step along each line, of all workers' lists."""
        shares, metric = self.task.shares, self.task.metric.native
        answers = shares.ask(_look, self.name, dict(lines))

        def best(number: int) -> Found:
            parts = [answer[number] for answer in answers]
            return _core.sweep(
                metric,
                shares.by_block([part[0] for part in parts]),
                shares.by_block([part[1] for part in parts]),
                np.concatenate([part[2] for part in parts]),
                np.concatenate([part[3] for part in parts]),
                np.concatenate([part[4].astype(np.float64) for part in parts]),
                *lines[number].reach,
            )

        found = _each(Pool(self.task.threads), best, lines)
        return dict(zip(lines, found, strict=True))


def _each(pool: Pool, call: Callable[[int], T], numbers: Collection[int]) -> Iterator[T]:
    """Yield the results in order; threads are started only for several calls."""
    alone = pool.threads == 1 or len(numbers) == 1
    return map(call, numbers) if alone else pool.map(call, numbers)


def share_of(worker: Worker, name: str) -> Share:
    """Return the share that is searched."""
    share: Share = worker.share if name == WHOLE else worker.kept[name]
    return share


@reads
def _vary(worker: Worker, name: str, start: Vector) -> tuple[int, Slopes]:
    """Return the number of hypotheses, and how features vary within the lists of each block."""
    share = share_of(worker, name)
    lists = share.task.spaces.listed([start], LISTED, share.task.threads)
    return lists.hypotheses, Within(lists).block_variances(share.ends)


@begins
def _open(worker: Worker, name: str, free: Numbers) -> None:
    """Prepare the worker for climbs on the task."""
    _open_other(worker, name, free)


def _open_other(worker: Worker, name: str, free: Numbers) -> None:
    """Prepare the worker for climbs on something else that it keeps."""
    share = share_of(worker, name)
    task = share.task
    worker.kept[f"lines of {name}"] = _core.LineSearch(
        task.spaces.core,
        task.table,
        task.metric.native,
        free.tolist(),
        task.threads,
        share.blocks,
    )


def drop(worker: Worker, name: str) -> None:
    """Forget something that was searched."""
    for key in (name, f"lines of {name}"):
        worker.kept.pop(key, None)


@reads
def _climb(worker: Worker, name: str, ascent: Ascent, free: Numbers) -> Climbed:
    """Climb on all lists."""
    share, walks = share_of(worker, name), _Walks(worker.kept[f"lines of {name}"])
    search = ascent.search(share.task, free)
    line = next(search)
    while True:
        try:
            line = search.send(_step(walks.at(line), line))
        except StopIteration as end:
            climbed: Climbed = end.value
            return climbed


def _step(walker: _core.Walker, line: Line) -> Found:
    """Return the best step along a line."""
    if line.axis is not None:
        return *walker.axis(line.axis, *line.bounds), walker.gain
    if line.direction is not None:
        return *walker.direction(line.direction, *line.reach), walker.gain
    return 0.0, walker.gain, walker.gain


@reads
def _look(worker: Worker, name: str, lines: Mapping[int, Line]) -> dict[int, Broken]:
    """Return what changes along the line of each climb that is under way."""
    search = worker.kept[f"lines of {name}"]
    known: dict[int, _Walks] = worker.kept.get("walks", {})
    # Those of climbs that have ended are forgotten, and those of another search are not used.
    walks = {
        number: known[number]
        if number in known and known[number].search is search
        else _Walks(search)
        for number in lines
    }
    worker.kept["walks"] = walks

    def broken(number: int) -> Broken:
        line = lines[number]
        walker = walks[number].at(line)
        sums = walker.sums
        if line.axis is not None:
            left, at, lists, changes = walker.axis_breaks(line.axis, *line.reach)
        elif line.direction is not None:
            left, at, lists, changes = walker.breaks(line.direction, *line.reach)
        else:
            nothing = np.zeros((0, sums.shape[1]))
            left, at, lists, changes = np.zeros_like(sums), np.zeros(0), _NOBODY, nothing
        return sums, left, at, lists, _smallest(changes)

    return dict(zip(lines, _each(worker.pool, broken, lines), strict=True))


_NOBODY = np.zeros(0, np.uint32)


class _Walks:
    """The walker of a climb, brought to wherever a line goes through."""

    def __init__(self, search: _core.LineSearch) -> None:
        self.search = search
        self._base: Vector | None = None
        self._steps: tuple[tuple[int, float], ...] = ()
        self._walker: _core.Walker

    def at(self, line: Line) -> _core.Walker:
        """Return the walker at the point of a line."""
        done = len(self._steps)
        goes_on = (
            self._base is not None
            and (line.base is self._base or np.array_equal(line.base, self._base))
            and line.steps[:done] == self._steps
        )
        if not goes_on:
            self._walker, done = self.search.walker(line.base), 0
        for axis, step in line.steps[done:]:
            self._walker.move_axis(axis, step)
        self._base, self._steps = line.base, line.steps
        return self._walker


def _smallest(values: Rows) -> npt.NDArray[Any]:
    """Return values in the smallest type that holds them exactly: most metrics count."""
    for kind in (np.int8, np.int16, np.float32):
        with np.errstate(all="ignore"):
            found = values.astype(kind)
        if np.array_equal(found, values):
            return found
    return values
