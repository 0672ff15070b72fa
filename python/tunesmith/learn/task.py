"""The interface of tuners: the task they are given, and the epochs they yield.

A tuner is anything with `epochs(task, start, seed, state)`: it yields an `Epoch` at a time, and
goes on from the `state` of the last one as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import THREADS, Crew, Engine, Pool, Worker, reads
from tunesmith.metrics import Metric
from tunesmith.spaces import Pools, Spaces
from tunesmith.spaces.moments import LISTED
from tunesmith.weights import Vector, Weights

if TYPE_CHECKING:
    from tunesmith.learn.online import Online

State = dict[str, npt.NDArray[Any]]
SavedState = Mapping[str, npt.NDArray[Any]]
Facts = dict[str, Any]
Statistics = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """The spaces to tune on, a metric, and limits of the weights; workers of an engine hold it."""

    spaces: Spaces
    metric: Metric
    lower: Vector
    upper: Vector
    threads: int = 0
    engine: Engine = THREADS

    @cached_property
    def crew(self) -> Crew:
        """The workers that hold the sentences."""
        return self.engine.crew(self, self.threads)

    def release(self) -> None:
        """Dismiss the workers and what they keep.

        Workers and task refer to each other: without this their memory is free only when Python
        next looks for such circles.
        """
        self.__dict__.pop("crew", None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": THREADS, "crew": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({key: value for key, value in state.items() if value is not None})

    @property
    def table(self) -> _core.Table | _core.Segments:
        """Statistics of every hypothesis, or an object that computes them."""
        return self.spaces.table(self.metric, self.threads)

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Which weights may move."""
        return self.lower < self.upper

    def clip(self, weights: Vector) -> Vector:
        """Return the weights within their bounds."""
        return np.clip(weights, self.lower, self.upper)

    def chosen(self, weights: Vector, names: list[str] | None = None) -> Statistics:
        """Return the statistics of the hypotheses that the weights choose, a row per line.

        `names` are those of the weights, if there are more weights than the task has features.
        """
        rows: Statistics = self.crew.ask(_chosen, weights)[self.spaces.last]
        return rows

    def evaluate(self, weights: Vector) -> tuple[float, float]:
        """Return corpus score and gain of the hypotheses that the weights choose, in all bins."""
        total = self.crew.ask(_chosen, weights).sum(axis=0)
        return self.metric.score(total), float(self.metric.native.gains(total[None, :])[0])

    def survey(self, start: Vector, k: int) -> tuple[Pools, Vector]:
        """Return the best of each list or forest, and the weights in the order of its features."""
        lists = self.spaces.listed([start], k or LISTED, self.threads)
        return lists, lists.vector(Weights.from_vector(self.spaces.names, start), partial=True)

    def walk(
        self,
        learner: _core.Learner,
        order: npt.NDArray[np.uint32],
        epoch: int,
        online: Online,
        pool: Pool,
    ) -> list[Facts]:
        """Let a learner pass over sentences; return facts about the pass."""
        del pool
        online.refuse_delay()
        return [learner.run(order, epoch)]

    def limit(self, learner: _core.Learner) -> None:
        """Set the limits of features that a learner met during training; here there are none."""

    @property
    def names(self) -> list[str] | None:
        """Feature names for a learner that may meet new features; None if there are no new ones."""
        return None

    def lengths(self) -> list[float] | None:
        """Return the length of each source sentence, None if sources are unknown."""
        if self.spaces.sources is None:
            return None
        return [float(len(source.split())) for source in self.spaces.by_line(self.spaces.sources)]


@reads
def _chosen(worker: Worker, weights: Vector) -> Statistics:
    """Return the statistics of what the weights choose, a row for each list or forest."""
    task: Task = worker.share
    return task.spaces.statistics(task.metric, task.spaces.best(weights, task.threads))


@dataclass(frozen=True)
class Epoch:
    """The weights that a tuner proposes after an epoch, and the state to continue from."""

    number: int
    weights: Vector
    state: State
    facts: Facts = field(default_factory=dict)
    last: bool = False
    names: list[str] | None = None
    """Names of the weights, if the tuner has met features that the task did not name."""


class Tuner(Protocol):
    """An algorithm that learns weights."""

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None
    ) -> Iterator[Epoch]:
        """Yield epochs, from the first or after the one whose state is given."""
