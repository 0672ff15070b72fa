"""The two ways to tune with a decoder: on all lists of several decodings, or step by step.

`Batch` optimises on everything that was decoded so far; `Passes` lets the decoder follow the
weights of the moment.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.drivers import Epoch, Facts, Online, State, Statistics, Task, Tuner
from tunesmith.features import Vector, Weights
from tunesmith.linesearch import LISTED
from tunesmith.metrics import Metric
from tunesmith.moments import Within
from tunesmith.runs.checkpoint import unpacked
from tunesmith.sources import Live
from tunesmith.spaces import Forests, Pools, Spaces
from tunesmith.translation import Translator
from tunesmith.tuning import Bounds, limits, may_match

# What a pass may know of the hypotheses it has seen.
GAINS = ("model", "oracle", "prediction", "spread")


@dataclass(frozen=True)
class Setup:
    """What both ways need to know."""

    metric: Metric
    bounds: Bounds
    fixed: Mapping[str, float]
    threads: int
    seed: int


@dataclass(frozen=True)
class Step:
    """The weights to decode with next, what was seen on the way, and how to go on from here."""

    weights: Weights
    facts: Facts
    state: State = field(default_factory=dict)
    last: bool = False
    optimise_seconds: float = 0.0
    decode_seconds: float = 0.0


class Loop(Protocol):
    """Takes what was decoded with its weights, and proposes new ones."""

    k: int | None
    """Length of the lists that it wants of whole decodings; none for the source's own."""

    def add(self, found: Spaces) -> None:
        """Take a decoding of all sentences."""

    def step(self, weights: Weights) -> Step:
        """Return the next weights."""

    def restore(self, start: Weights, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on after the step whose state is given."""

    @property
    def spaces(self) -> Spaces:
        """Everything that was kept of the decodings."""

    @property
    def names(self) -> list[str]:
        """The features that were met, and those that had a weight before."""


class Batch:
    """Decodings are merged, and a tuner optimises on all of them."""

    k: int | None = None

    def __init__(self, tuner: Tuner, setup: Setup) -> None:
        self._tuner, self._setup = tuner, setup
        self._added = 0
        self._known = 0
        self._spaces: Spaces | None = None

    @property
    def spaces(self) -> Spaces:
        """Everything that was decoded so far."""
        assert self._spaces is not None, "nothing has been decoded yet"
        return self._spaces

    @property
    def names(self) -> list[str]:
        """The features of everything that was decoded so far."""
        return self.spaces.names

    def add(self, found: Spaces) -> None:
        """Merge lists into lists, forests into forests."""
        self._added += 1
        if isinstance(found, Pools) and isinstance(self._spaces, Pools):
            self._spaces = Pools.merge([self._spaces, found])
        elif isinstance(found, Forests) and isinstance(self._spaces, Forests):
            self._spaces = Forests.merge([self._spaces, found], self._setup.threads)
        else:
            self._spaces = found

    def restore(self, start: Weights, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Decodings are all there is to know; what the last one brought is told by the state."""
        self._known = int(state["known"][0]) if "known" in state else 0

    def step(self, weights: Weights) -> Step:
        """Return the weights of the tuner's best epoch on everything decoded so far.

        Nothing is left to do when the last decoding brought nothing new.
        """
        began = time.perf_counter()
        spaces, setup = self.spaces, self._setup
        if isinstance(spaces, Pools) and spaces.hypotheses == self._known:
            return Step(weights, {}, last=True)
        self._known = spaces.hypotheses
        lower, upper = limits(spaces.names, setup.bounds, setup.fixed, growing=True)
        task = Task(spaces, setup.metric, lower, upper, setup.threads)
        start = task.clip(spaces.vector(weights, partial=True))
        # Weights at hand do not compete: what they choose from has been shaped by them.
        chosen, best, score, facts = start, -np.inf, 0.0, Facts()
        for epoch in self._tuner.epochs(task, start, setup.seed + self._added, None):
            if not np.isfinite(epoch.weights).all():
                continue
            reached, gain = task.evaluate(epoch.weights)
            if gain > best:
                chosen, best, score, facts = epoch.weights, gain, reached, epoch.facts
        if best == -np.inf:
            score, best = task.evaluate(start)
        chosen = self._scaled(task, chosen, start, best)
        # A feature that no hypothesis has any more keeps its weight.
        proposed = Weights({**weights, **Weights.from_vector(spaces.names, chosen)})
        oracle = spaces.score(setup.metric, spaces.oracle(setup.metric, chosen))
        return Step(
            proposed,
            {
                **{key: facts[key] for key in GAINS if facts.get(key) is not None},
                "projected": score,
                "oracle_score": oracle,
                "hypotheses": spaces.hypotheses,
            },
            {"known": np.array([self._known])},
            optimise_seconds=time.perf_counter() - began,
        )

    def _scaled(self, task: Task, weights: Vector, start: Vector, gain: float) -> Vector:
        """Return weights of the size at the start, where only their direction was tuned.

        A decoder's beam is wide or narrow by the size of scores, so sizes must not run away.
        Weights of features that never vary have no size and stay as they were.
        """
        if not getattr(self._tuner, "scale_free", False):
            return weights
        cells = Within(_standing(task, start, weights)).cells().sqrt()
        varying = task.free & (np.asarray(cells.sum(axis=0)).ravel() > 0.0)
        old, new = (cells @ np.abs(np.where(varying, each, 0.0)) for each in (start, weights))
        sized = (old > 0.0) & (new > 0.0)
        # The median, because a single large weight may matter in a few lists only.
        factor = float(np.median(old[sized] / new[sized])) if sized.any() else 1.0
        scaled = task.clip(np.where(varying, factor * weights, start))
        # Weights that are fixed or bounded may give sizes a meaning.
        return scaled if task.evaluate(scaled)[1] >= gain - 1e-9 else weights


def _standing(task: Task, *points: Vector) -> Pools:
    """Return the lists, or those of the forests' best strings at some points."""
    spaces = task.pools
    if isinstance(spaces, Pools):
        return spaces
    assert isinstance(spaces, Forests)
    return Pools.merge([spaces.kbest(point, LISTED, threads=task.threads) for point in points])


class Passes:
    """The decoder follows the weights of the moment; each step is a pass over the sentences."""

    k: int | None = 1

    def __init__(self, tuner: Online, source: Live, setup: Setup) -> None:
        self._tuner, self._source, self._setup = tuner, source, setup
        self._spaces: Spaces | None = None
        self._epochs: Iterator[Epoch] | None = None
        self._latest: Spaces | None = None
        self._names: list[str] = []

    @property
    def spaces(self) -> Spaces:
        """The translations at the start."""
        assert self._spaces is not None, "nothing has been decoded yet"
        return self._spaces

    @property
    def names(self) -> list[str]:
        """The features that any pass has met so far, and those of the weights at the start."""
        return self._names

    def add(self, found: Spaces) -> None:
        """Keep what was decoded first, and for gains in context what was decoded last."""
        self._spaces = self._spaces or found
        self._latest = found

    def restore(self, start: Weights, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Begin again from the same start, or go on after the pass whose state is given."""
        names = list(dict.fromkeys([*self.spaces.names, *start]))
        self._names = unpacked(state["names"]) if "names" in state else names
        setup = self._setup
        lower, upper = limits(names, setup.bounds, setup.fixed, growing=True)
        task = Stream(
            self.spaces,
            setup.metric,
            lower,
            upper,
            setup.threads,
            source=self._source,
            features=names,
            setup=setup,
            latest=lambda: self._latest,
        )
        if state:
            # What was decoded after the last pass is not at hand.
            self._latest = None
        vector = task.clip(start.vector(names))
        self._epochs = self._tuner.epochs(task, vector, setup.seed, state or None)

    def step(self, weights: Weights) -> Step:
        """Return the weights after another pass."""
        if self._epochs is None:
            self.restore(weights, {})
        assert self._epochs is not None
        epoch = next(self._epochs, None)
        if epoch is None:
            return Step(weights, {}, last=True)
        facts = dict(epoch.facts)
        facts.pop("weight_change")
        self._names = epoch.names or self._names
        seconds = {part: facts.pop(part) for part in ("optimise_seconds", "decode_seconds")}
        # Zeros of features that the model always has are worth knowing.
        found = Weights.from_vector(
            self._names,
            epoch.weights,
            drop_zeros=True,
            always=frozenset(self._source.model.decoder.dense),
        )
        return Step(found, facts, epoch.state, epoch.last, **seconds)


@dataclass(frozen=True, kw_only=True)
class Stream(Task):
    """Sentences that a decoder translates when they are wanted, with the weights of the moment."""

    source: Live
    features: list[str]
    setup: Setup
    latest: Callable[[], Spaces | None]
    """What was decoded with the weights of the last pass, if anybody did."""

    def chosen(self, weights: Vector, names: list[str] | None = None) -> Statistics:
        """Return the statistics of the translations."""
        found = self.latest()
        if found is None:
            found = self.source.decode(Weights.from_vector(names or self.features, weights), 1)
        return found.statistics(self.metric, found.first())

    @property
    def names(self) -> list[str]:
        """The features that are known at the start."""
        return self.features

    def clip(self, weights: Vector) -> Vector:
        """Return the weights within their bounds; those of new features are so already."""
        known = len(self.lower)
        return np.concatenate([np.clip(weights[:known], self.lower, self.upper), weights[known:]])

    def limit(self, learner: _core.Learner) -> None:
        """Give features that a learner has met on the way their limits."""
        if may_match(self.setup.bounds, self.setup.fixed):
            lower, upper = limits(learner.names, self.setup.bounds, self.setup.fixed, growing=True)
            learner.bound(lower.tolist(), upper.tolist())

    def walk(
        self, learner: _core.Learner, order: npt.NDArray[np.uint32], epoch: int, online: Online
    ) -> list[Facts]:
        """Decode batch after batch and let the learner take a step on each."""
        size = max(online.batch, 1)
        batches = [order[at : at + size] for at in range(0, len(order), size)]
        if online.delay == 0:
            facts = []
            for batch in batches:
                found = self._decode(self.source.following(learner), batch, online.k)
                facts.append(self._step(learner, *found, batch, epoch))
            return facts
        return self._late(learner, batches, epoch, online)

    def _late(
        self,
        learner: _core.Learner,
        batches: list[npt.NDArray[np.uint32]],
        epoch: int,
        online: Online,
    ) -> list[Facts]:
        """Take steps on lists that were decoded with the weights of some steps ago."""
        facts: list[Facts] = []
        waiting: deque[tuple[int, npt.NDArray[np.uint32], Future[tuple[Spaces, float]]]] = deque()

        def take() -> None:
            place = 0
            if not online.ordered:
                jobs = [job for _, _, job in waiting]
                wait(jobs, return_when=FIRST_COMPLETED)
                place = next(i for i, job in enumerate(jobs) if job.done())
            made, batch, job = waiting[place]
            del waiting[place]
            late = len(facts) - made
            facts.append({**self._step(learner, *job.result(), batch, epoch), "staleness": late})

        with ThreadPoolExecutor(self.threads or os.cpu_count()) as workers:
            for batch in batches:
                if len(waiting) > online.delay:
                    take()
                translator = self.source.following(learner)
                job = workers.submit(self._decode, translator, batch, online.k)
                waiting.append((len(facts), batch, job))
            while waiting:
                take()
        return facts

    def _decode(
        self, translator: Translator, batch: npt.NDArray[np.uint32], k: int
    ) -> tuple[Spaces, float]:
        began = time.perf_counter()
        found = self.source.found(translator, batch.tolist(), self.source.k or k)
        return found, time.perf_counter() - began

    def _step(
        self,
        learner: _core.Learner,
        found: Spaces,
        seconds: float,
        batch: npt.NDArray[np.uint32],
        epoch: int,
    ) -> Facts:
        began, known = time.perf_counter(), learner.size
        spaces = found.taken_by(learner)
        if learner.size > known:
            self.limit(learner)
        table = spaces.table(self.metric, self.threads)
        seen = learner.visit(spaces.core, table, np.ascontiguousarray(batch), epoch)
        spent = time.perf_counter() - began
        return {**seen, "decode_seconds": seconds, "optimise_seconds": spent}
