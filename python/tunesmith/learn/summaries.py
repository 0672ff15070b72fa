"""What a driver asks of the lists that workers hold, beside what tuners ask.

Answers are put together by list or by block, so that they do not depend on the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith.engines import Worker, reads
from tunesmith.learn.shares import Numbers, Rows, Share, Slopes
from tunesmith.learn.task import Task
from tunesmith.spaces.moments import LISTED, Within, most_influential
from tunesmith.spaces.oracle import added, search_oracle
from tunesmith.weights import Vector, Weights

# Blocks take this many turns to exchange choices: those of one turn do not know of each other. More
# turns find little more, and each is a question to all workers.
TURNS = 32
Choices = list[Any]
"""What is chosen from each list, in a form that means the same to a part and to the whole."""


def oracle_score(task: Task, weights: Vector, *, best: bool = True) -> float:
    """Return the best (or worst) corpus score that the lists of all workers allow."""
    corpus = _Corpus(task, weights, best)
    chosen = search_oracle(corpus, task.metric, best)
    answers = task.shares.crew.ask_all(_statistics, [(each,) for each in corpus.dealt(chosen)])
    rows = task.shares.by_list(answers)[task.outline.last]
    return task.metric.native.score(rows.sum(axis=0))


@dataclass(frozen=True)
class _Corpus:
    """The search for an oracle in the lists of all workers."""

    task: Task
    weights: Vector
    best: bool

    @property
    def exchanges(self) -> int:
        return self.task.shares.crew.ask(_exchanges)[0]

    @property
    def _in_turn(self) -> bool:
        return self.task.shares.crew.ask(_exchanges)[1]

    def dealt(self, chosen: Choices) -> list[Choices]:
        """Return the choices of each worker."""
        return [[chosen[number] for number in held] for held in self.task.shares.held]

    def _gathered(self, answers: Sequence[tuple[Choices, Rows]]) -> tuple[Choices, Vector]:
        rows = self.task.shares.by_list([rows for _, rows in answers])
        return self._in_order([choices for choices, _ in answers]), added(rows)

    def _in_order(self, found: Sequence[Choices]) -> Choices:
        """Return choices in the order of the lists, given those of each worker."""
        chosen: Choices = [None] * len(self.task.outline.groups)
        for held, choices in zip(self.task.shares.held, found, strict=True):
            for number, choice in zip(held.tolist(), choices, strict=True):
                chosen[number] = choice
        return chosen

    def alone(self) -> tuple[Choices, Vector]:
        return self._gathered(self.task.shares.ask(_alone, self.weights, self.best))

    def exchanged(self, chosen: Choices, total: Vector) -> tuple[Choices, Vector]:
        shares = self.task.shares
        if not self._in_turn:
            asked = [(self.weights, self.best, each, total) for each in self.dealt(chosen)]
            return self._gathered(shares.crew.ask_all(_exchange, asked))
        found, blocks = self.dealt(chosen), shares.blocks
        for turn in np.array_split(np.arange(len(blocks)), TURNS):
            spans: list[list[slice]] = [[] for _ in range(shares.crew.size)]
            for place, span in (blocks[block] for block in turn.tolist()):
                spans[place].append(span)
            asked_some = [
                (self.weights, self.best, own, [choices[span] for span in own], total)
                for own, choices in zip(spans, found, strict=True)
            ]
            changes: dict[int, Vector] = {}
            answers = shares.crew.ask_all(_exchange_some, asked_some)
            for place, answer in enumerate(answers):
                mine = (block for block in turn.tolist() if blocks[block][0] == place)
                for block, (several, change) in zip(mine, answer, strict=True):
                    found[place][blocks[block][1]] = several
                    changes[block] = change
            # In the order of the blocks, so that the sum does not depend on the workers.
            for block in turn.tolist():
                total = total + changes[block]
        return self._in_order(found), total


@reads
def _exchanges(worker: Worker) -> tuple[int, bool]:
    """Return how often choices are exchanged at most, and whether lists take turns."""
    share: Share = worker.share
    return share.task.spaces.exchanges, share.task.spaces.in_turn


@reads
def _alone(worker: Worker, weights: Vector, best: bool) -> tuple[Choices, Rows]:
    """Return the best choices of each list alone, and their statistics."""
    share: Share = worker.share
    task = share.task
    found = task.spaces.best_alone(task.metric, weights, best)
    return task.spaces.relative(found), task.spaces.statistics(task.metric, found)


@reads
def _exchange(
    worker: Worker, weights: Vector, best: bool, chosen: Choices, total: Vector
) -> tuple[Choices, Rows]:
    """Return better choices from all lists that are held, and their statistics."""
    share: Share = worker.share
    task = share.task
    before = task.spaces.absolute(chosen)
    found, _ = task.spaces.exchanged(task.metric, weights, best, before, total)
    return task.spaces.relative(found), task.spaces.statistics(task.metric, found)


@reads
def _exchange_some(
    worker: Worker,
    weights: Vector,
    best: bool,
    spans: Sequence[slice],
    chosen: Sequence[Choices],
    total: Vector,
) -> list[tuple[Choices, Vector]]:
    """Return better choices from the lists of some blocks, and how much each changes the sum.

    Blocks do not know of each other's exchanges.
    """
    share: Share = worker.share
    spaces, metric = share.task.spaces, share.task.metric
    found = []
    for span, choices in zip(spans, chosen, strict=True):
        before, first = spaces.absolute(choices, span.start), span.start
        after, changed = spaces.exchanged(metric, weights, best, before, total, first)
        found.append((spaces.relative(after, first), changed - total))
    return found


@reads
def _statistics(worker: Worker, chosen: Choices) -> Rows:
    """Return the statistics of choices, a row for each list."""
    share: Share = worker.share
    spaces = share.task.spaces
    return spaces.statistics(share.task.metric, spaces.absolute(chosen))


def sizes_held(task: Task, points: Sequence[Vector]) -> tuple[list[Vector], npt.NDArray[np.bool_]]:
    """Return how far each of some weights moves the scores within each list, and which features
    vary within any list. The best strings at these points stand for forests."""
    answers = task.shares.ask(_influence, points)
    varying = np.zeros(task.outline.width, np.bool_)
    for _, ids in answers:
        varying[ids] = True
    rows = task.shares.by_list([rows for rows, _ in answers])
    return list(rows.T), varying


@reads
def _influence(worker: Worker, points: Sequence[Vector]) -> tuple[Rows, Numbers]:
    """Return for each list how far the weights move its scores; and the features that vary."""
    share: Share = worker.share
    within = Within(share.task.spaces.listed(points, LISTED, share.task.threads))
    rows = np.stack([within.influence(weights) for weights in points], axis=1)
    return rows, np.flatnonzero(within.varying())


def spreads_held(task: Task, weights: Weights) -> dict[str, float]:
    """Return the mean standard deviation within lists of the features that matter most.

    As `spaces.moments.spreads`, of the lists of all workers.
    """
    vector = weights.vector(task.outline.names)
    answers = task.shares.ask(_deviations, vector)
    summed = task.shares.added([slopes for _, slopes in answers], len(vector))
    found = summed / max(float(sum(several for several, _ in answers)), 1.0)
    return most_influential(task.outline.names, found, vector)


@reads
def _deviations(worker: Worker, weights: Vector) -> tuple[int, Slopes]:
    """Return the number of lists with several hypotheses, and the sums of the standard deviations
    of features within the lists of each block."""
    share: Share = worker.share
    within = Within(share.task.spaces.listed([weights], LISTED, share.task.threads))
    return int((within.sizes > 1).sum()), within.block_deviations(share.ends)
