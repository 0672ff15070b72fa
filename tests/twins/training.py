"""One sentence after the other, as slowly as it can be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.learn.gains import SENTENCE, Gain
from tunesmith.learn.online import Learner, Online, Regime, Schedule
from tunesmith.learn.selectors import Selector
from tunesmith.learn.task import Task
from tunesmith.learn.updates import Update
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces import Spaces
from twins.drawing import visiting_order
from twins.gaining import SentenceGain
from twins.lists import Array, Lists

Rule = Callable[[Array, int, int, Array], tuple[Array, int]]
"""(weights, epoch, sentence, gains) -> the new weights and y+."""

STILL = 1e-10
"""No weight moves by more in a pass that changes nothing: rounding decides whether such a pass
counts updates, and so whether it is the last one."""


@dataclass(frozen=True)
class Pass:
    """The weights after a pass, and what it could propose instead of them."""

    none: Array
    all: Array
    """The mean of the weights after every step so far."""
    epoch: Array
    """The mean of the weights after every step of the pass."""
    updates: Array
    """The mean of the weights after every step so far that changed them."""

    def proposed(self, average: str) -> Array:
        """Return what is proposed with an average of this name."""
        found: Array = getattr(self, average)
        return found


def learn(
    lists: Lists,
    rule: Rule,
    gain: SentenceGain,
    weights: Array,
    passes: int,
    seed: int,
    average: str = "none",
    updates: Callable[[], int] | None = None,
) -> list[Pass]:
    """Return what is known after each pass, up to the first one that moves no weight.

    `average` is what a pass proposes, which gains in context hear of. A rule that moves weights
    without constraints says with `updates` how many it has met: a pass without any is the last.
    """
    found, seen, changed = list[Pass](), list[Array](), list[Array]()
    for epoch in range(1, passes + 1):
        before, met, first = weights, updates() if updates else 0, len(seen)
        for sentence in visiting_order(seed, epoch, len(lists.features)):
            features = lists.features[sentence]
            if not len(features):
                continue
            best = int(np.argmax(features @ weights))
            old = weights
            weights, oracle = rule(weights, epoch, sentence, gain(sentence))
            gain.observe(sentence, best, oracle)
            seen.append(weights)
            if (weights != old).any():
                changed.append(weights)
        found.append(
            Pass(
                weights,
                np.mean(seen, axis=0),
                np.mean(seen[first:], axis=0),
                np.mean(changed, axis=0) if changed else weights,
            )
        )
        gain.end_epoch(found[-1].proposed(average))
        if moved(before, weights) <= STILL or (updates and updates() == met):
            break
    return found


def moved(before: Array, after: Array) -> float:
    """Return by how much the weight that moved furthest did."""
    return float(np.abs(after - before).max(initial=0.0))


def shares(order: Sequence[int], shards: int) -> list[list[int]]:
    """Return what each learner visits: sentences without a length are dealt to and fro."""
    seats = [*range(shards), *reversed(range(shards))]
    return [[i for i in order if seats[i % len(seats)] == shard] for shard in range(shards)]


def online(
    selector: Selector,
    update: Update,
    gain: Gain = SENTENCE,
    *,
    schedule: Schedule | None = None,
    regime: Regime | None = None,
) -> Online:
    """Return a tuner of three passes that proposes its weights themselves, unless told."""
    return Online(
        learner=Learner(selector=selector, update=update, gain=gain),
        schedule=schedule or Schedule(passes=3, average="none"),
        regime=regime or Regime(),
    )


def task_of(
    pools: Spaces,
    metric: str | Metric,
    lower: float | Array = -np.inf,
    upper: float | Array = np.inf,
    threads: int = 1,
) -> Task:
    """Return what a tuner works on."""
    unit = np.ones(len(pools.names))
    return Task(pools, get_metric(metric), lower * unit, upper * unit, threads)


def passes_of(tuner: Online, task: Task, weights: Array, seed: int) -> list[Array]:
    """Return what is proposed after each pass, up to the first one that moves no weight."""
    found = list[Array]()
    for epoch in tuner.epochs(task, weights, seed, None):
        found.append(epoch.weights)
        if epoch.facts["weight_change"] <= STILL:
            break
    return found
