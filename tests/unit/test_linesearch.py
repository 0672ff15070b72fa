"""MERT from many points: what is searched, refused and resumed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from twins.lists import Array, Lists, counted
from twins.training import task_of

from tunesmith import Forests, InputError, Pools, _core
from tunesmith.learn.linesearch import (
    FAR,
    GATHERINGS,
    GENERATIONS,
    MOST_FEATURES,
    NEAR,
    LineSearch,
    _anywhere,
    _near,
    _range,
)
from tunesmith.spaces.moments import LISTED


@pytest.mark.parametrize("wide", [0, 4])
def test_later_restarts_lie_around_the_best_also_when_resumed(wide: int) -> None:
    """What counts as the best must not change because the run was stopped in between."""
    pools = counted(np.random.default_rng(2), [25] * 12, 6)
    task, start = task_of(pools, "wer"), np.full(6, 0.1)
    tuner = LineSearch(restarts=12, wide=wide)
    whole = list(tuner.epochs(task, start, 1))
    gains = [float(epoch.state["gain"][0]) for epoch in whole]
    first = len(np.array_split(np.arange(13), GENERATIONS)[0])
    assert len(set(gains[first:])) > 1, "these lists are too easy to tell"
    for done, epoch in enumerate(whole, start=1):
        saved = {name: array.copy() for name, array in epoch.state.items()}
        rest = list(tuner.epochs(task, start, 1, saved))
        assert [e.number for e in rest] == list(range(done + 1, 14 + wide))
        for found, wanted in zip(rest, whole[done:], strict=True):
            assert np.array_equal(found.weights, wanted.weights)
            assert found.facts == wanted.facts


def test_restarts_find_more_than_the_start_alone_and_directions_more_than_axes() -> None:
    pools = counted(np.random.default_rng(3), [25] * 12, 6)
    task, start = task_of(pools, "wer"), np.full(6, 0.1)

    def reached(restarts: int, directions: int) -> float:
        *_, last = LineSearch(restarts, directions).epochs(task, start, 1)
        return float(last.state["gain"][0])

    assert Lists.of(pools, "wer").corpus_gain(start) < reached(0, 0) < reached(20, 0)
    assert reached(0, 0) < reached(0, 20)


def test_wide_restarts_find_what_lies_far_away() -> None:
    """On a few short lists, where more restarts around the best find nothing more."""
    rng = np.random.default_rng(30)
    features = rng.normal(size=(120, 5))
    texts = ["a " * int(n) for n in rng.integers(1, 9, 120)]
    pools = Pools.from_arrays(
        features, np.arange(0, 121, 12), list("abcde"), texts=texts, references=[["a a a a"]] * 10
    )

    def reached(restarts: int, wide: int) -> float:
        tuner = LineSearch(restarts, wide=wide)
        *_, last = tuner.epochs(task_of(pools, "wer"), np.ones(5), 1)
        assert last.number == restarts + wide + 1
        return float(last.state["gain"][0])

    assert reached(30, 0) <= reached(130, 0) < reached(30, 100)


def test_wide_restarts_come_beside_the_others() -> None:
    """The points around the start weights are those that are searched without them."""
    pools = counted(np.random.default_rng(2), [25] * 12, 6)
    task, start = task_of(pools, "wer"), np.full(6, 0.1)
    first = len(np.array_split(np.arange(13), GENERATIONS)[0])
    plain, wide = (
        [epoch.facts for epoch in LineSearch(12, wide=wide).epochs(task, start, 1)]
        for wide in (0, 5)
    )
    assert (len(plain), len(wide)) == (13, 18)
    assert wide[:first] == plain[:first]


def test_restarts_around_zero_go_in_all_directions() -> None:
    """Lists without scores begin at zero, which says nothing of how large weights are."""
    pools = counted(np.random.default_rng(3), [25] * 12, 6)
    task, start = task_of(pools, "wer"), np.zeros(6)
    reached = [epoch.facts["reached"] for epoch in LineSearch(restarts=9).epochs(task, start, 1)]
    assert len(set(reached[1:4])) > 1


@pytest.mark.parametrize("seed", range(5))
def test_features_that_never_vary_keep_their_weights(seed: int) -> None:
    """However large they are, and whatever rounding leaves of the differences to their mean."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 4))
    features[:, 1] = np.repeat(rng.uniform(-100, 100, 6), 10)
    features[:, 3] = 0.0
    texts = ["a " * int(n) for n in rng.integers(1, 9, 60)]
    pools = Pools.from_arrays(
        features, np.arange(0, 61, 10), list("abcd"), texts=texts, references=[["a a a a"]] * 6
    )
    start = np.array([0.3, 0.2, 0.1, 0.4])
    for epoch in LineSearch(restarts=8).epochs(task_of(pools, "wer"), start, seed):
        # Weights are scaled together.
        share = epoch.weights / epoch.weights[1]
        assert share[3] == pytest.approx(2.0)
        assert np.abs(share[[0, 2]]).max() > 1e-3


def test_too_many_features_are_refused_with_a_way_out() -> None:
    names = MOST_FEATURES + 1
    pools = counted(np.random.default_rng(1), [2], names)
    with pytest.raises(InputError, match=r"1001 features.*--fix"):
        next(iter(LineSearch().epochs(task_of(pools, "wer"), np.zeros(names), 1)))
    lower, upper = np.zeros(names), np.zeros(names)
    upper[:3] = 1.0
    fixed = task_of(pools, "wer", lower, upper)
    assert len(list(LineSearch(1).epochs(fixed, np.zeros(names), 1))) == 2


def test_coordinates_and_statistics_that_do_not_belong_are_refused() -> None:
    pools, other = (counted(np.random.default_rng(s), [3, s], 2) for s in (1, 2))
    task = task_of(pools, "wer")
    with pytest.raises(IndexError, match="no feature"):
        _core.LineSearch(pools.core, task.table, task.metric.native, [2])
    with pytest.raises(ValueError, match="other lists"):
        _core.LineSearch(other.core, task.table, task.metric.native, [0])
    walker = _core.LineSearch(pools.core, task.table, task.metric.native, [1]).walker(np.zeros(2))
    with pytest.raises(IndexError, match="axis 1 of 1"):
        walker.axis(1, -1.0, 1.0)
    with pytest.raises(ValueError, match="another length"):
        walker.direction(np.zeros(3), -1.0, 1.0)
    with pytest.raises(ValueError, match="another length"):
        walker.move_to(np.zeros(1))


def test_steps_along_a_direction_stay_within_all_bounds() -> None:
    pools = counted(np.random.default_rng(1), [3], 3)
    task = task_of(pools, "wer", np.array([-1.0, 0.0, 0.5]), np.array([1.0, 4.0, 0.5]))
    weights = np.array([0.5, 1.0, 0.5])
    # The third weight is fixed and does not move: it limits nothing.
    assert _range(task, weights, np.array([2.0, 1.0, 0.0])) == (-0.75, 0.25)
    assert _range(task, weights, np.array([-2.0, 1.0, 0.0])) == (-0.25, 0.75)
    assert _range(task_of(pools, "wer"), weights, np.ones(3)) == (-np.inf, np.inf)


def test_restarts_move_all_features_by_as_much_as_they_matter() -> None:
    """A feature with values in the hundreds gets small weights: it must not decide alone."""
    rng = np.random.default_rng(1)
    spread, base = np.array([0.01, 1.0, 100.0]), np.array([200.0, 2.0, 0.02])
    far = np.array([_anywhere(base, spread, rng) * spread for _ in range(300)])
    np.testing.assert_allclose(far.std(axis=0), 1.0, rtol=0.2)
    near = np.array([(_near(base, spread, rng) - base) * spread for _ in range(300)])
    size = float(np.abs(base * spread).mean())
    assert (near.std(axis=0) > NEAR * size).all() and (near.std(axis=0) < FAR * size).all()


def small_forests() -> Forests:
    """Return forests of lists with texts, so that any metric can score them."""
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(list("abcd"), 6)) for _ in range(200)]
    pools = Pools.from_arrays(
        rng.normal(size=(200, 4)),
        np.arange(0, 201, 20),
        list("wxyz"),
        texts=texts,
        references=[["a b c d a b"]] * 10,
    )
    return Forests.of_lists(pools)


@pytest.mark.parametrize("restarts", [0, 2])
def test_a_search_over_forests_goes_on_where_it_was_stopped(restarts: int) -> None:
    task, start = task_of(small_forests(), "bleu"), np.full(4, 0.1)
    tuner = LineSearch(restarts)
    whole = list(tuner.epochs(task, start, 1))
    assert [epoch.number for epoch in whole] == list(range(1, 3 if restarts else 2))
    assert [epoch.last for epoch in whole] == [False] * (len(whole) - 1) + [True]
    for done, epoch in enumerate(whole, start=1):
        rest = list(tuner.epochs(task, start, 1, epoch.state))
        assert [e.number for e in rest] == [e.number for e in whole[done:]]
        for found, wanted in zip(rest, whole[done:], strict=True):
            assert np.array_equal(found.weights, wanted.weights)


@pytest.mark.parametrize("metric", ["wer", "bleu"])
def test_of_searches_on_lists_the_best_on_the_forests_is_returned(metric: str) -> None:
    forests = small_forests()
    task, start = task_of(forests, metric), np.full(4, 0.1)
    tuner = LineSearch(restarts=1, most_moves=1)
    lists, best, found = forests.listed([start], LISTED, 1), start, dict[float, Array]()
    for number in range(GATHERINGS):
        *_, last = tuner.epochs(replace(task, outline=lists), best, 7 + 1000 * number)
        found.setdefault(task.evaluate(last.weights)[1], last.weights)
        best = found[max(found)]
        lists = lists.merged(forests.listed([last.weights], LISTED, 1))
    assert len(found) > 1, "searches that all end alike"
    assert np.array_equal(tuner._on_lists(task, [start], 7), best)
