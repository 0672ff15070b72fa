"""Line search finds the best step there is, and what it promises is what the weights give."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import searching
from twins.lists import Lists, counted
from twins.training import task_of

from tunesmith import Pools, _core
from tunesmith.learn.linesearch import LineSearch

few = settings(max_examples=40, deadline=None)
worlds = st.builds(
    lambda seed, sizes, features, sparse, metric: (
        counted(np.random.default_rng(seed), sizes, features, sparse=sparse, metric=metric),
        np.random.default_rng(seed + 1),
        metric,
    ),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 8), min_size=1, max_size=5).filter(any),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["wer", "bleu"]),
)
World = tuple[Pools, np.random.Generator, str]


def search_of(pools: Pools, metric: str) -> _core.LineSearch:
    task = task_of(pools, metric)
    every = list(range(len(pools.names)))
    return _core.LineSearch(pools.core, task.table, task.metric.native, every, 1)


@few
@given(worlds, st.booleans())
def test_the_sweep_along_a_direction_is_the_best_of_all_steps(world: World, bounded: bool) -> None:
    pools, rng, metric = world
    lists = Lists.of(pools, metric)
    weights, direction = rng.normal(size=(2, len(pools.names)))
    low, high = (-0.5, 1.5) if bounded else (-np.inf, np.inf)
    walker = search_of(pools, metric).walker(weights)
    step, gain = walker.direction(direction, low, high)
    assert gain == searching.best_step(lists, weights, direction, low, high)[1]
    assert low <= step <= high
    # Attained: the promised gain is that of the weights there, to the last bit.
    walker.move_to(weights + step * direction)
    assert walker.gain == gain == lists.corpus_gain(weights + step * direction)


@few
@given(worlds, st.booleans())
def test_the_sweep_along_an_axis_is_the_best_of_all_steps(world: World, bounded: bool) -> None:
    pools, rng, metric = world
    lists = Lists.of(pools, metric)
    weights = rng.normal(size=len(pools.names))
    for axis, direction in enumerate(np.eye(len(weights))):
        low, high = (weights[axis] - 0.3, weights[axis] + 0.7) if bounded else (-np.inf, np.inf)
        walker = search_of(pools, metric).walker(weights)
        step, gain = walker.axis(axis, low, high)
        limits = (low - weights[axis], high - weights[axis])
        assert gain == searching.best_step(lists, weights, direction, *limits)[1]
        assert low <= weights[axis] + step <= high
        walker.move_axis(axis, step)
        assert walker.weights[axis] == weights[axis] + step
        assert walker.gain == gain == lists.corpus_gain(walker.weights)


@few
@given(worlds)
def test_no_grid_along_a_direction_beats_the_sweep(world: World) -> None:
    pools, rng, metric = world
    lists = Lists.of(pools, metric)
    weights, direction = rng.normal(size=(2, len(pools.names)))
    _, gain = search_of(pools, metric).walker(weights).direction(direction, -np.inf, np.inf)
    for step in np.concatenate([np.linspace(-5, 5, 41), [-1e6, 1e6]]):
        assert lists.corpus_gain(weights + step * direction) <= gain


@few
@given(worlds)
def test_an_axis_is_the_direction_of_its_unit_vector(world: World) -> None:
    pools, rng, metric = world
    weights = rng.normal(size=len(pools.names))
    walker = search_of(pools, metric).walker(weights)
    for axis, direction in enumerate(np.eye(len(weights))):
        along = walker.axis(axis, -np.inf, np.inf)
        np.testing.assert_allclose(
            along, walker.direction(direction, -np.inf, np.inf), rtol=1e-9, atol=1e-9
        )


@settings(max_examples=15, deadline=None)
@given(worlds, st.integers(0, 2), st.booleans())
def test_mert_reports_the_gain_of_its_weights_and_keeps_bounds(
    world: World, directions: int, bounded: bool
) -> None:
    pools, rng, metric = world
    count = len(pools.names)
    lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
    if bounded and count > 1:
        lower, upper = np.full(count, -0.4), np.full(count, 0.6)
        lower[0] = upper[0] = 0.25
    task = task_of(pools, metric, lower, upper)
    start = task.clip(rng.normal(size=count))
    lists = Lists.of(pools, metric)
    best = lists.corpus_gain(start)
    for epoch in LineSearch(4, directions).epochs(task, start, 1):
        assert (lower <= epoch.weights).all() and (epoch.weights <= upper).all()
        reached = lists.corpus_gain(epoch.weights)
        assert reached == epoch.state["gain"][0] >= best
        best = reached
    if count == 1:
        # One weight only: there is nothing else to search.
        assert best == searching.best_step(lists, start, np.ones(1), -np.inf, np.inf)[1]


@few
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 8), min_size=1, max_size=4).filter(any),
    st.booleans(),
)
def test_ties_do_not_break_the_search(seed: int, sizes: list[int], zero: bool) -> None:
    """Features of small whole numbers make every list full of ties."""
    rng = np.random.default_rng(seed)
    pools = counted(rng, sizes, 2, coarse=True)
    lists = Lists.of(pools, "wer")
    weights = np.zeros(2) if zero else rng.integers(-1, 2, 2).astype(np.float64)
    walker = search_of(pools, "wer").walker(weights)
    assert walker.gain == lists.corpus_gain(weights)
    for axis in range(2):
        step, gain = walker.axis(axis, -8.0, 8.0)
        moved = weights + step * np.eye(2)[axis]
        assert gain == lists.corpus_gain(moved)
        grid = [
            lists.corpus_gain(weights + t * np.eye(2)[axis]) for t in np.linspace(-7.9, 7.9, 40)
        ]
        assert gain >= max(walker.gain, *grid) - 1e-12


def test_a_step_of_nothing_is_preferred_to_an_equal_one() -> None:
    pools = Pools.from_arrays([[0.0], [1.0]], [0, 2], ["f"])
    pools.set_statistics("wer", [[1, 4], [1, 4]])
    walker = search_of(pools, "wer").walker(np.array([0.5]))
    assert walker.axis(0, -np.inf, np.inf) == (0.0, 0.75)


def test_the_scores_of_a_walker_do_not_drift() -> None:
    rng = np.random.default_rng(0)
    pools = counted(rng, [20] * 10, 3)
    lists = Lists.of(pools, "wer")
    walker = search_of(pools, "wer").walker(rng.normal(size=3))
    for _ in range(300):
        walker.move_axis(int(rng.integers(3)), float(rng.normal()))
    assert walker.gain == lists.corpus_gain(walker.weights)
