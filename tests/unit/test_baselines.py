"""Random search and grid search: how much they try, what they keep, and how they go on."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from twins.lists import counted
from twins.training import task_of

from tunesmith.learn.baselines import Grid, RandomSearch
from tunesmith.metrics import get_metric
from tunesmith.sources import Saved
from tunesmith.spaces.moments import Within
from tunesmith.tuning.rounds import Decoded, Decodings
from tunesmith.tuning.setup import Setup
from tunesmith.weights import Vector, Weights


def test_a_small_grid_is_tried_whole() -> None:
    task, start = task_of(counted(np.random.default_rng(2), [9] * 8, 2), "wer"), np.array([0.5, -2])
    (epoch,) = Grid(points=5).epochs(task, start, 1)
    values = np.linspace(-2.0, 2.0, 5)
    gains = [task.evaluate(np.array(point))[1] for point in product(values, repeat=2)]
    assert task.evaluate(epoch.weights)[1] == max(*gains, task.evaluate(start)[1])
    assert (epoch.facts["updates"], epoch.last) == (25, True)
    # A grid that is done is not searched again.
    assert list(Grid(points=5).epochs(task, start, 1, epoch.state)) == []


@pytest.mark.parametrize("rounds", [1, 2, 9])
def test_a_large_grid_is_tried_weight_by_weight_until_nothing_is_gained(rounds: int) -> None:
    task, start = task_of(counted(np.random.default_rng(3), [9] * 8, 4), "wer"), np.full(4, 0.3)
    tuner = Grid(points=7, budget=100, rounds=rounds)
    epochs = list(tuner.epochs(task, start, 1))
    gains = [task.evaluate(start)[1], *(task.evaluate(epoch.weights)[1] for epoch in epochs)]
    assert all(epoch.facts["updates"] == 28 for epoch in epochs)
    assert [epoch.last for epoch in epochs] == [False] * (len(epochs) - 1) + [True]
    assert gains == sorted(gains) and gains[1] > gains[0]
    still = [number for number, (a, b) in enumerate(pairwise(gains), 1) if a == b]
    assert len(epochs) == min([*still, rounds])
    for epoch in epochs[:-1]:
        rest = list(tuner.epochs(task, start, 1, epoch.state))
        assert [e.number for e in rest] == [e.number for e in epochs[epoch.number :]]
        assert np.array_equal(rest[-1].weights, epochs[-1].weights)


def test_random_search_keeps_the_best_of_its_tries() -> None:
    lower, upper = np.array([-1.0, 0.25, -np.inf]), np.array([1.0, 0.25, np.inf])
    task = task_of(counted(np.random.default_rng(4), [9] * 8, 3), "wer", lower, upper)
    tuner = RandomSearch(tries=40, epochs_=4)
    epochs = list(tuner.epochs(task, np.array([0.1, 0.25, 3.0]), 1))
    gains = [task.evaluate(epoch.weights)[1] for epoch in epochs]
    assert gains == sorted(gains) and gains[-1] > task.evaluate(np.array([0.1, 0.25, 3.0]))[1]
    assert [epoch.facts["updates"] for epoch in epochs] == [10] * 4
    assert [epoch.last for epoch in epochs] == [False, False, False, True]
    for epoch in epochs:
        assert epoch.weights[1] == 0.25 and abs(epoch.weights[0]) <= 1.0
        rest = list(tuner.epochs(task, np.array([0.1, 0.25, 3.0]), 1, epoch.state))
        for found, wanted in zip(rest, epochs[epoch.number :], strict=True):
            assert np.array_equal(found.weights, wanted.weights)


@pytest.mark.parametrize("tuner", [Grid(points=5), RandomSearch(tries=60, epochs_=1)])
def test_scores_of_a_decoder_stay_as_large_as_they_were(tuner: Grid | RandomSearch) -> None:
    """Only directions are searched: what is found has the size of the start's scores."""
    lists = counted(np.random.default_rng(5), [9] * 11, 3)
    metric, start = get_metric("wer"), np.array([0.1, -4.0, 0.2])
    within = Within(lists)

    def grown(found: Vector) -> float:
        old, new = within.influence(start), within.influence(found)
        sized = (old > 0) & (new > 0)
        return float(np.median(new[sized] / old[sized]))

    (epoch,) = tuner.epochs(task_of(lists, "wer"), start, 4)
    assert grown(epoch.weights) != pytest.approx(1.0, rel=0.05)
    decodings = Decodings(tuner, Saved(lists), Setup(metric, {}, {}, 1), 3)
    begin = Weights.from_vector(lists.names, start)
    decodings.restore(begin, [Decoded(begin, lambda: lists)], {})
    step = decodings.step(begin)
    assert step is not None
    assert grown(step.weights.vector(lists.names)) == pytest.approx(1.0)
