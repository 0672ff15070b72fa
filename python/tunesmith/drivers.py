"""The loop of every tuner: a task in, one set of weights per epoch out.

A tuner is anything with `epochs(task, start, seed, state)`: it yields an `Epoch` at a time, and
goes on from the `state` of the last one as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.features import Vector
from tunesmith.gains import SENTENCE, Gain
from tunesmith.metrics import Metric
from tunesmith.spaces import Pools, Spaces

State = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """What to tune: lists or forests, a metric, limits on the weights."""

    pools: Spaces
    metric: Metric
    lower: Vector
    upper: Vector
    threads: int = 0

    @property
    def table(self) -> _core.Table | _core.Segments:
        """Statistics of every hypothesis, or what computes them."""
        return self.pools.table(self.metric, self.threads)

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Which weights may move."""
        return self.lower < self.upper

    def clip(self, weights: Vector) -> Vector:
        """Return the weights within their bounds."""
        return np.clip(weights, self.lower, self.upper)

    def evaluate(self, weights: Vector) -> tuple[float, float]:
        """Return the corpus score and the corpus gain of what the weights choose."""
        chosen = self.pools.best(weights, self.threads)
        total = self.pools.statistics(self.metric, chosen).sum(axis=0)
        return self.metric.score(total), float(self.metric.native.gains(total[None, :])[0])

    def lists(self, weights: Vector) -> Lists:
        """Return the same task on lists, where an algorithm needs single hypotheses.

        Forests are stood for by their best strings under the weights.
        """
        pools = self.pools.lists(weights, self.threads)
        return Lists(pools, self.metric, self.lower, self.upper, self.threads)

    def lengths(self) -> list[float] | None:
        """Return the length of each source sentence, where sources are known."""
        sources = self.pools.sources
        return None if sources is None else [float(len(source.split())) for source in sources]


@dataclass(frozen=True)
class Lists(Task):
    """A task on lists."""

    pools: Pools

    @property
    def table(self) -> _core.Table:
        """Statistics of every hypothesis."""
        return self.pools.table(self.metric, self.threads)


@dataclass(frozen=True)
class Epoch:
    """Where a tuner stands after an epoch: the weights it proposes and how to go on."""

    number: int
    weights: Vector
    state: State
    facts: dict[str, Any] = field(default_factory=dict)
    last: bool = False


class Tuner(Protocol):
    """An algorithm that learns weights."""

    def epochs(
        self, task: Task, start: Vector, seed: int, state: Mapping[str, npt.NDArray[Any]] | None
    ) -> Iterator[Epoch]:
        """Yield epochs, from the first or after the one whose state is given."""


@dataclass(frozen=True)
class Online:
    """Pass after pass over the sentences: select, step, observe.

    `batch` sentences see the same weights; with `shards` > 1 as many learners each pass over their
    part from common weights, which are averaged `mix` times per pass (iterative parameter mixing,
    McDonald et al. 2010). `average` proposes the mean of the weights after every step so far
    (`all`), of the current pass (`epoch`), or the weights themselves (`none`).

    Stops early after a pass without updates, or when in three passes no weight moved by more than
    `stop` (Hasler et al. 2011).
    """

    selector: _core.Selector
    update: _core.Update
    gain: Gain = SENTENCE
    passes: int = 20
    batch: int = 1
    shuffle: bool = True
    average: Literal["all", "epoch", "none"] = "all"
    slow_down: float = 1.0
    stop: float = 0.0
    shards: int = 1
    mix: int = 1

    def epochs(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[Epoch]:
        """Yield the weights after each pass."""
        learners = [self._learner(task, start, seed) for _ in range(max(self.shards, 1))]
        done, moved = 0, [np.inf, np.inf]
        if state is not None:
            done, moved = int(state["done"][0]), state["moved"].tolist()
            for number, learner in enumerate(learners):
                learner.restore(
                    *(
                        state[f"{part}.{number}"]
                        for part in ("weights", "lag", "steps", "gain", "update")
                    )
                )
                # As often as it was done, so that rounding is the same too.
                for _ in range(done):
                    learner.slow_down(self.slow_down)
        for epoch in range(done + 1, self.passes + 1):
            before = np.mean([learner.weights for learner in learners], axis=0)
            order = (
                _core.permutation(seed, epoch, task.pools.sentences)
                if self.shuffle
                else np.arange(task.pools.sentences, dtype=np.uint32)
            )
            if self.average == "epoch":
                for learner in learners:
                    learner.restart_average()
            seen = self._pass(learners, order, epoch, task.threads)
            weights = np.mean([learner.weights for learner in learners], axis=0)
            proposed = (
                weights
                if self.average == "none"
                else np.mean([learner.average for learner in learners], axis=0)
            )
            moved = [*moved[-2:], float(np.abs(weights - before).max(initial=0.0))]
            last = seen["updates"] == 0 or max(moved) <= self.stop
            for learner in learners:
                learner.slow_down(self.slow_down)
            yield Epoch(
                epoch,
                task.clip(proposed),
                self._state(learners, epoch, moved),
                {**seen, "weight_change": moved[-1]},
                last or epoch == self.passes,
            )
            if last:
                return

    def _learner(self, task: Task, start: Vector, seed: int) -> _core.Learner:
        bounded = bool(np.isfinite(task.lower).any() or np.isfinite(task.upper).any())
        return _core.Learner(
            task.pools.core,
            task.table,
            task.metric.native,
            self.selector,
            self.update,
            start,
            lengths=task.lengths(),
            lower=task.lower.tolist() if bounded else None,
            upper=task.upper.tolist() if bounded else None,
            batch=self.batch,
            seed=seed,
            averaged=self.average != "none",
            **self.gain.options(),  # type: ignore[arg-type]
        )

    def _pass(
        self,
        learners: list[_core.Learner],
        order: npt.NDArray[np.uint32],
        epoch: int,
        threads: int,
    ) -> dict[str, Any]:
        if len(learners) == 1:
            seen = learners[0].run(order, epoch)
            learners[0].end_epoch()
            return _merge_facts([seen])
        facts: list[dict[str, Any]] = []
        visitor = np.zeros(len(order), np.int64)
        with ThreadPoolExecutor(threads or None) as workers:
            for part in np.array_split(order, max(self.mix, 1)):
                shards = np.array_split(part, len(learners))
                for number, shard in enumerate(shards):
                    visitor[shard] = number
                jobs = [
                    workers.submit(learner.run, np.ascontiguousarray(shard), epoch)
                    for learner, shard in zip(learners, shards, strict=True)
                ]
                facts.extend(job.result() for job in jobs)
                mixed = np.mean([learner.weights for learner in learners], axis=0)
                for learner in learners:
                    learner.set_weights(mixed)
        # Gains in context are those of the whole corpus: each sentence as its learner saw it.
        every = np.stack([learner.observed for learner in learners])
        rows = every.reshape(len(learners), len(order), -1)
        together = rows[visitor, np.arange(len(order))].ravel()
        for learner in learners:
            learner.end_epoch(together)
        return _merge_facts(facts)

    @staticmethod
    def _state(learners: list[_core.Learner], done: int, moved: list[float]) -> State:
        state: State = {"done": np.array([done]), "moved": np.array(moved[-2:])}
        for number, learner in enumerate(learners):
            state |= {f"{part}.{number}": array for part, array in learner.state().items()}
        return state


def _merge_facts(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """Join what several learners saw: counts add up, means are weighted by visits."""
    visits = sum(fact["visits"] for fact in facts)
    share = [fact["visits"] / visits if visits else 0.0 for fact in facts]

    def mean(key: str) -> float:
        return float(sum(s * fact[key] for s, fact in zip(share, facts, strict=True)))

    spread = sum(s * fact["spread"][0] for s, fact in zip(share, facts, strict=True))
    square = sum(
        s * (fact["spread"][0] ** 2 + fact["spread"][1] ** 2)
        for s, fact in zip(share, facts, strict=True)
    )
    watched = any(fact["oracle"] or fact["prediction"] or fact["model"] for fact in facts)
    return {
        "updates": sum(fact["updates"] for fact in facts),
        "loss": sum(fact["loss"] for fact in facts),
        "model": mean("model") if watched else None,
        "oracle": mean("oracle") if watched else None,
        "prediction": mean("prediction") if watched else None,
        "spread": {"mean": spread, "sd": max(square - spread**2, 0.0) ** 0.5} if watched else None,
    }
