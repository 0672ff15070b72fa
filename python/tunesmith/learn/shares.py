"""A task dealt to workers in fixed blocks of lines.

Whoever holds a block sums up over its lists, and the driver adds up the blocks in their order. So
sums are the same to the bit for any engine and any number of workers. Blocks are dealt so that all
workers have about as much to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tunesmith.engines import Crew, Dealt
from tunesmith.engines.dealing import BLOCKS, evenly
from tunesmith.spaces import Outline, Spaces
from tunesmith.weights import Vector

if TYPE_CHECKING:
    from tunesmith.learn.task import Task

T = TypeVar("T")
Numbers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float64]
Slopes = tuple[Numbers, npt.NDArray[np.uint32], Vector]
"""Sparse sums by block: where each starts and the last one ends, ids, values."""


@dataclass(frozen=True)
class Share:
    """Some lines of a task."""

    task: Task
    """The task with the spaces of these lines only."""
    numbers: Numbers
    """The number of each list or forest in the whole task."""
    ends: Numbers
    """Where each block ends among them."""
    lines: Numbers
    """The number of each line in the whole task."""
    whole: int
    """The number of lines of the whole task."""

    @property
    def blocks(self) -> tuple[list[int], list[int]]:
        """The blocks as the core wants them."""
        return self.ends.tolist(), self.numbers.tolist()

    def of(self, spaces: Spaces) -> Share:
        """Return other spaces of the same lines."""
        return replace(self, task=replace(self.task, outline=spaces))

    def picked(self, numbers: Numbers) -> Share:
        """Return those of the lists that have one of the numbers."""
        kept = np.flatnonzero(np.isin(self.numbers, numbers))
        spaces = self.task.spaces
        return replace(
            self.of(spaces.subset(kept.tolist())),
            numbers=self.numbers[kept],
            ends=np.searchsorted(kept, self.ends),
            lines=self.lines[np.unique(spaces.groups[kept])],
        )

    def summed(self, rows: Rows) -> Rows:
        """Return the sum of rows, one for each list, within each block."""
        return block_sums(rows, self.ends)


class Shares:
    """The workers that hold a task in shares; puts their answers together."""

    def __init__(self, plan: Plan, crew: Crew) -> None:
        self._dealing = plan.dealt(crew.size)
        self.crew = crew
        self.held = [self._dealing.held(place) for place in range(crew.size)]
        """The numbers of the lists at each worker."""

    @classmethod
    def deal(cls, task: Task) -> Shares:
        """Return workers that were given their shares of a task.

        The task is not kept, so that workers are dismissed as soon as nobody has the task.
        """
        plan = Plan.of_lists(task.spaces)
        return cls(plan, task.engine.crew(_Deal(task, plan), task.threads))

    @property
    def alone(self) -> bool:
        """Whether one worker holds the whole task."""
        return self.crew.size == 1

    def ask(self, question: Callable[..., T], *args: Any) -> list[T]:
        """Return the answers of all workers to the same question."""
        return self.crew.ask_all(question, [args] * self.crew.size)

    @property
    def blocks(self) -> list[tuple[int, slice]]:
        """The worker of each block, and where its lists are among those that the worker holds."""
        spans = self._dealing.in_order(
            [_spans([0, *self._dealing.ends(place)]) for place in range(self.crew.size)]
        )
        return list(zip(self._dealing.places.tolist(), spans, strict=True))

    def by_list(self, answers: Sequence[Rows]) -> Rows:
        """Return what was answered for each list, in the order of the lists."""
        if self.alone:
            return answers[0]
        lists = sum(map(len, self.held))
        whole = np.empty((lists, *answers[0].shape[1:]), answers[0].dtype)
        for numbers, several in zip(self.held, answers, strict=True):
            whole[numbers] = several
        return whole

    def by_block(self, answers: Sequence[Rows]) -> Rows:
        """Return what was answered for each block, in the order of the blocks."""
        whole = np.empty((len(self._dealing.places), *answers[0].shape[1:]))
        for place, several in enumerate(answers):
            whole[self._dealing.places == place] = several
        return whole

    def added(self, answers: Sequence[Slopes], length: int) -> Vector:
        """Return sparse sums of blocks, added up in the order of the blocks."""
        if self.alone:
            ((_, ids, values),) = answers
        else:
            spans = self._dealing.in_order([_spans(starts.tolist()) for starts, _, _ in answers])
            pieces = list(zip(self._dealing.places.tolist(), spans, strict=True))
            ids = np.concatenate([answers[0][1][:0]] + [answers[p][1][span] for p, span in pieces])
            values = np.concatenate(
                [answers[0][2][:0]] + [answers[p][2][span] for p, span in pieces]
            )
        return np.asarray(np.bincount(ids, values, length), np.float64)


def _spans(starts: Sequence[int]) -> list[slice]:
    """Return the parts between each start and the next."""
    return [slice(*span) for span in pairwise(starts)]


def line_ends(lines: int) -> Numbers:
    """Return where each block ends among so many lines."""
    count = min(lines, BLOCKS)
    return (-(-np.arange(1, count + 1) * lines // max(count, 1))).astype(np.int64)


def block_ends(outline: Outline) -> Numbers:
    """Return where each block ends among the lists of a whole task."""
    return np.searchsorted(outline.groups, line_ends(outline.lines)).astype(np.int64)


def block_sums(rows: Rows, ends: Numbers) -> Rows:
    """Return the sum of the rows of each block, from the first to the last."""
    block = np.searchsorted(ends, np.arange(len(rows)), side="right")
    columns = [np.bincount(block, column, len(ends)) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((len(ends), 0))


def fold(rows: Rows) -> Rows:
    """Return the sum of what was answered for each block, from the first to the last."""
    if not len(rows):
        return np.zeros(rows.shape[1:])
    total: Rows = np.add.accumulate(rows, axis=0)[-1]
    return total


@dataclass(frozen=True)
class Plan:
    """Blocks of neighbouring lists or lines, and how much work there is with each."""

    ends: Numbers
    """Where each block ends."""
    work: Numbers

    @classmethod
    def of_lines(cls, work: Numbers) -> Plan:
        """Return the blocks of a corpus, given how much work there is with each line."""
        ends = line_ends(len(work))
        return cls(ends, np.diff(np.append(0, np.cumsum(work))[ends], prepend=0))

    @classmethod
    def of_lists(cls, spaces: Spaces) -> Plan:
        """Return the blocks of the lists of a corpus."""
        work = np.bincount(spaces.groups, spaces.extents, spaces.lines)
        return cls.of_lines(work.astype(np.int64)).over(spaces)

    def over(self, outline: Outline) -> Plan:
        """Return the same blocks of lines as blocks of their lists."""
        return replace(self, ends=np.searchsorted(outline.groups, self.ends))

    def dealt(self, workers: int) -> Dealing:
        """Return which block is at which worker."""
        return Dealing(np.diff(self.ends, prepend=0), evenly(self.work, workers))


@dataclass(frozen=True)
class Dealing:
    """Which blocks are at which worker."""

    sizes: Numbers
    """The number of lists or lines in each block."""
    places: npt.NDArray[np.intp]
    """The worker of each block."""

    def held(self, place: int) -> Numbers:
        """Return the numbers of the lists or lines at a worker."""
        return np.flatnonzero(np.repeat(self.places, self.sizes) == place).astype(np.int64)

    def ends(self, place: int) -> Numbers:
        """Return where each block ends among the lists or lines at a worker."""
        return np.cumsum(self.sizes[self.places == place])

    def in_order(self, answers: Sequence[Iterable[T]]) -> list[T]:
        """Return what each worker answered for each of its blocks, in the order of the blocks."""
        own = [iter(each) for each in answers]
        return [next(own[place]) for place in self.places.tolist()]


@dataclass(frozen=True)
class _Deal(Dealt):
    """A task of which each worker is given its blocks."""

    task: Task
    plan: Plan

    def parts(self, size: int) -> Iterator[Share]:
        spaces, dealing = self.task.spaces, self.plan.dealt(size)
        for place in range(size):
            held = dealing.held(place)
            task = self.task
            if size > 1:
                task = replace(task, outline=spaces.subset(held.tolist()))
            yield Share(
                task, held, dealing.ends(place), np.unique(spaces.groups[held]), spaces.lines
            )
