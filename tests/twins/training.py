"""One sentence after the other, as slowly as it can be written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tunesmith.drivers import Online, Task
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces import Spaces
from twins.drawing import visiting_order
from twins.gaining import SentenceGain
from twins.lists import Array, Lists

Rule = Callable[[Array, int, int, Array], tuple[Array, int]]
"""(weights, epoch, sentence, gains) -> the new weights and y+."""


def learn(
    lists: Lists,
    rule: Rule,
    gain: SentenceGain,
    weights: Array,
    passes: int,
    seed: int,
    averaged: bool = False,
) -> list[Array]:
    """Return the weights after each pass, and then the mean of those after every step.

    That mean so far is what a pass proposes if `averaged`.
    """
    after, seen = [], []
    for epoch in range(1, passes + 1):
        for sentence in visiting_order(seed, epoch, len(lists.features)):
            features = lists.features[sentence]
            if not len(features):
                continue
            best = int(np.argmax(features @ weights))
            weights, oracle = rule(weights, epoch, sentence, gain(sentence))
            gain.observe(sentence, best, oracle)
            seen.append(weights)
        gain.end_epoch(np.mean(seen, axis=0) if averaged and seen else weights)
        after.append(weights)
    return [*after, np.mean(seen, axis=0)]


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


def passes_of(online: Online, task: Task, weights: Array, seed: int) -> list[Array]:
    """Return what the learner proposes after each pass."""
    return [epoch.weights for epoch in online.epochs(task, weights, seed, None)]
