"""The interface of tuners: the task they are given, and the epochs they yield.

A tuner is anything with `epochs(task, start, seed, state)`: it yields an `Epoch` at a time, and
goes on from the `state` of the last one as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import THREADS, Crew, Dealt, Engine, Pool, Worker, reads
from tunesmith.learn.shares import Numbers, Plan, Share, Shares, block_ends, block_sums, fold
from tunesmith.metrics import Metric
from tunesmith.spaces import Outline, Pools, Positions, Spaces
from tunesmith.spaces.moments import LISTED
from tunesmith.weights import Vector, Weights

if TYPE_CHECKING:
    from tunesmith.learn.online import Online

State = dict[str, npt.NDArray[Any]]
SavedState = Mapping[str, npt.NDArray[Any]]
Facts = dict[str, Any]
Statistics = npt.NDArray[np.float64]
# What a task knows of its workers: a copy of it has none.
_OF_WORKERS = ("shares", "crew", "learners", "holders")


@dataclass(frozen=True)
class Selection:
    """Constraints that a worker has chosen for lines, and what it took to find their lists."""

    parts: list[_core.Selected]
    seconds: float = 0.0
    """Time of decoding."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What a source counted while it found hypotheses."""


@dataclass(frozen=True)
class Task:
    """The spaces to tune on, a metric, and limits of the weights; workers of an engine hold it."""

    outline: Outline
    """The spaces, or what is known of them if only workers hold them."""
    metric: Metric
    lower: Vector
    upper: Vector
    threads: int = 0
    engine: Engine = THREADS

    @property
    def spaces(self) -> Spaces:
        """The spaces; raises if only workers hold them."""
        return self.outline.whole

    @cached_property
    def shares(self) -> Shares:
        """The workers that hold the sentences, each its share of them."""
        return Shares.deal(self)

    def held_by(self, crew: Crew, plan: Plan) -> Task:
        """Return the task with workers that hold their shares of it already, by a plan of lines."""
        task = replace(self)
        task.__dict__["shares"] = Shares(plan.over(self.outline), crew)
        return task

    @cached_property
    def crew(self) -> Crew:
        """The workers that each hold all sentences: for tuners that one worker does the work of."""
        return self.engine.crew(self, self.threads)

    def dealt(self, learners: npt.NDArray[np.intp]) -> Crew:
        """Return workers that hold the lists of their learners, given the learner of each line.

        Learner n is at worker n modulo workers. If there are several of them, the same workers are
        asked for evaluations then. Forests and bins are not dealt: each worker holds all of them.
        """
        if np.array_equal(self.__dict__.get("learners", ()), learners):
            return self.crew
        self.release()
        share = _Lists(self, learners)
        crew = self.engine.crew(share, self.threads)
        self.__dict__.update(crew=crew, learners=learners)
        if share.is_dealt(crew.size) and len(set((learners % crew.size).tolist())) > 1:
            self.__dict__["holders"] = learners % crew.size
        return crew

    def placed(self, batch: npt.NDArray[np.uint32], workers: int) -> npt.NDArray[np.intp]:
        """Return the worker that is asked about each line of a batch: the one that has its list."""
        return (batch % workers).astype(np.intp)

    def release(self) -> None:
        """Dismiss the workers and what they keep.

        Workers and task refer to each other: without this their memory is free only when Python
        next looks for such circles.
        """
        for name in _OF_WORKERS:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": THREADS, **dict.fromkeys(_OF_WORKERS)}

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
        return self._rows(weights)[self.outline.last]

    def _rows(self, weights: Vector) -> Statistics:
        """Return the statistics of what the weights choose, a row for each list or forest."""
        rows = np.empty((len(self.outline.groups), self.metric.native.width))
        for numbers, answer in self._by_list(_chosen, weights):
            rows[numbers] = answer
        return rows

    def best(self, weights: Vector) -> Positions:
        """Return what the weights choose from each list or forest."""
        found: list[Any] = [None] * len(self.outline.groups)
        for numbers, answer in self._by_list(_best, weights):
            for number, choice in zip(numbers.tolist(), answer, strict=True):
                found[number] = choice
        return self.spaces.absolute(found)

    def evaluate(self, weights: Vector) -> tuple[float, float]:
        """Return corpus score and gain of the hypotheses that the weights choose, in all bins."""
        ((total,), (gain,)) = self._totals([weights])
        return self.metric.score(total), gain

    def _by_list(self, question: Any, weights: Vector) -> Iterator[tuple[Numbers, Any]]:
        """Yield the numbers of the lists that each worker holds, and what it answers for them.

        Workers that hold the lists of their learners are asked about those.
        """
        holders: npt.NDArray[np.intp] | None = self.__dict__.get("holders")
        if holders is None:
            yield from zip(self.shares.held, self.shares.ask(question, weights), strict=True)
            return
        held = [np.flatnonzero(holders == place) for place in range(self.crew.size)]
        answers = self.crew.ask_all(question, [(weights, each) for each in held])
        yield from zip(held, answers, strict=True)

    def _totals(self, several: Sequence[Vector]) -> tuple[list[Statistics], list[float]]:
        """Return statistics and gain of the corpus that each of several weights chooses."""
        if "holders" in self.__dict__:
            ends = block_ends(self.outline)
            sums = np.stack([block_sums(self._rows(each), ends) for each in several], axis=1)
        else:
            sums = self.shares.by_block(self.shares.ask(_sums, several))
        totals = fold(sums)
        return list(totals), self.metric.native.gains(totals).tolist()

    def gains(self, several: Sequence[Vector]) -> list[float]:
        """Return the corpus gain of what each of several weights chooses, in all bins."""
        return self._totals(several)[1]

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

    @property
    def follows(self) -> bool:
        """Whether a decoder finds the lists when a learner comes to them."""
        return False

    def select(
        self,
        learner: _core.Learner,
        lines: npt.NDArray[np.uint32],
        epoch: int,
        online: Online,
        pool: Pool,
    ) -> Selection:
        """Return the constraints of some lines under a learner's weights, as if in one batch."""
        del online, pool
        return Selection([learner.select(lines, epoch)] if len(lines) else [])

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


def _held(worker: Worker) -> Task:
    """Return what a worker holds, as a task."""
    held: Task | Share = worker.share
    return held.task if isinstance(held, Share) else held


@reads
def _chosen(worker: Worker, weights: Vector, held: Positions | None = None) -> Statistics:
    """Return the statistics of what the weights choose, a row for each list, or for those held."""
    task = _held(worker)
    rows = task.spaces.statistics(task.metric, task.spaces.best(weights, task.threads))
    return rows if held is None else rows[held]


@reads
def _best(worker: Worker, weights: Vector, held: Positions | None = None) -> list[Any]:
    """Return what the weights choose from each list, or from those held."""
    task = _held(worker)
    found = task.spaces.relative(task.spaces.best(weights, task.threads))
    return found if held is None else [found[place] for place in held.tolist()]


@reads
def _sums(worker: Worker, several: Sequence[Vector]) -> Statistics:
    """Return for each block the statistics of what each of several weights chooses."""
    share: Share = worker.share
    rows = [share.summed(_chosen(worker, weights)) for weights in several]
    return np.stack(rows, axis=1)


@dataclass(frozen=True)
class _Lists(Dealt):
    """A task of which each worker is given the lists of its learners."""

    task: Task
    learners: npt.NDArray[np.intp]

    def is_dealt(self, size: int) -> bool:
        return size > 1 and self.task.spaces.thins

    def parts(self, size: int) -> Iterator[Task]:
        if not self.is_dealt(size):
            yield from [self.task] * size
            return
        own = [self.learners % size == place for place in range(size)]
        for part in self.task.spaces.thinned(own):
            yield replace(self.task, outline=part)


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
    """An algorithm that learns weights.

    One with an attribute `shared` that is true asks all workers, however many, about their shares,
    and does not look at `task.spaces`: workers may hold them.
    """

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None
    ) -> Iterator[Epoch]:
        """Yield epochs, from the first or after the one whose state is given."""
