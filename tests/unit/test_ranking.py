"""Batch optimisers on rows: ranking by logistic regression, the ramp loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from twins.drawing import visiting_order
from twins.gaining import SentenceGain
from twins.lists import Array, Lists, counted, learnable
from twins.searching import slope
from twins.training import task_of

from tunesmith import Pools, _core
from tunesmith.learn import selectors
from tunesmith.learn.gains import Gain
from tunesmith.learn.ranking import Ramp, Ranking, draw, logistic_regression
from tunesmith.learn.task import Task
from tunesmith.presets import make_tuner

DRAWN = selectors.Pairs(100, 0.05, 20)


def sampled(seed: int = 1, **more: Any) -> tuple[Task, _core.Constraints]:
    pools = counted(np.random.default_rng(3), [6] * 8, 3, **more)
    task = task_of(pools, "wer")
    sampler = _core.Sampler(pools.core, task.table, task.metric.native, 3)
    rows = sampler.rows(DRAWN.kernel(), np.zeros(3), seed, 1)
    return task, rows


def dense(rows: _core.Constraints, features: int) -> Array:
    arrays = rows.arrays()
    matrix = np.zeros((len(rows), features))
    for row in range(len(rows)):
        span = slice(arrays["starts"][row], arrays["starts"][row + 1])
        matrix[row, arrays["ids"][span]] = arrays["values"][span]
    return matrix


LOSSES = {
    "logistic": lambda m, g: np.log1p(np.exp(-m)).mean(),
    "hinge": lambda m, g: np.maximum(g - m, 0.0).mean(),
    "linear": lambda m, g: -m.mean(),
}


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_mean_loss_of_rows_and_its_gradient_are_those_of_the_definition(loss: str) -> None:
    _, rows = sampled(sparse=True)
    matrix, gain = dense(rows, 3), rows.arrays()["gains"]
    at = np.array([0.3, -0.2, 0.5])

    def function(w: Array) -> float:
        return float(LOSSES[loss](matrix @ w, gain))

    for threads in (1, 2, 4):
        value, gradient = rows.loss(at, loss, threads)
        assert value == pytest.approx(function(at), rel=1e-12)
        np.testing.assert_allclose(gradient, slope(function, at), rtol=1e-5, atol=1e-8)
    starts, ids, squares = rows.squares()
    assert starts[0] == 0 and starts[-1] == len(ids)
    np.testing.assert_allclose(np.bincount(ids, squares), (matrix**2).sum(axis=0), rtol=1e-12)


def test_weights_of_another_length_are_refused() -> None:
    _, rows = sampled()
    with pytest.raises(ValueError, match="another length"):
        rows.loss(np.zeros(2), "logistic")
    with pytest.raises(ValueError, match="no loss named"):
        rows.loss(np.zeros(3), "squared")


def ranking_loss(rows: _core.Constraints, l2: float) -> Callable[[Array], float]:
    """Return the loss of some rows as the equation has it."""
    matrix = dense(rows, 3)
    return lambda w: float(np.log1p(np.exp(-matrix @ w)).mean() + 0.5 * l2 * w @ w)


def test_logistic_regression_finds_the_optimum() -> None:
    task, rows = sampled()
    (epoch,) = Ranking(DRAWN, rounds=1, interpolate=1.0, l2=0.01).epochs(task, np.zeros(3), 1)
    found, function = epoch.weights, ranking_loss(rows, 0.01)
    assert epoch.facts["loss"] == pytest.approx(function(found))
    assert np.abs(slope(function, found)).max() < 1e-3
    assert all(function(found) <= function(found + d) for d in np.eye(3) * 0.05)


def test_logistic_regression_finds_the_optimum_within_bounds() -> None:
    task, rows = sampled()
    tuner, function = Ranking(DRAWN, 1, 1.0, l2=0.01), ranking_loss(rows, 0.01)
    (free,) = tuner.epochs(task, np.zeros(3), 1)
    # One weight at a time may go half as far as it would.
    for held in range(3):
        reach = np.full(3, np.inf)
        reach[held] = abs(free.weights[held]) / 2
        (epoch,) = tuner.epochs(replace(task, lower=-reach, upper=reach), np.zeros(3), 1)
        assert abs(epoch.weights[held]) == pytest.approx(reach[held])
        for step in [*np.eye(3) * 0.02, *np.eye(3) * -0.02]:
            there = np.clip(epoch.weights + step, -reach, reach)
            assert function(epoch.weights) <= function(there) + 1e-7


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("held", range(3))
def test_each_bound_of_logistic_regression_holds_alone(held: int, side: str) -> None:
    """A single bound keeps a weight from its optimum, before anything clips it."""
    task, _ = sampled()
    (free,) = Ranking(DRAWN, 1, 1.0, l2=0.01).epochs(task, np.zeros(3), 1)
    away = abs(free.weights[held]) / 2 * (1 if side == "lower" else -1)
    bounds = {"lower": np.full(3, -np.inf), "upper": np.full(3, np.inf)}
    bounds[side][held] = free.weights[held] + away
    bounded = replace(task, lower=bounds["lower"], upper=bounds["upper"])
    drawn = draw(bounded, DRAWN, np.zeros(3), 1, 1)
    found, _ = logistic_regression(bounded, drawn, np.zeros(3), 0.01)
    assert found[held] == pytest.approx(bounds[side][held], rel=1e-6)


def test_logistic_regression_does_not_depend_on_the_unit_of_a_feature() -> None:
    rng = np.random.default_rng(3)
    pools = counted(rng, [6] * 8, 3)
    _, _, values = pools.core.csr()
    unit = np.array([1.0, 1024.0, 1.0 / 1024.0])
    scaled = Pools.from_arrays(
        values.reshape(-1, 3).astype(np.float64) * unit, pools.core.starts, pools.names
    )
    found = []
    for lists in (pools, scaled):
        lists.set_statistics("wer", pools.table(task_of(pools, "wer").metric).rows())
        task = task_of(lists, "wer")
        (epoch,) = Ranking(DRAWN, 1, 1.0, l2=0.0).epochs(task, np.zeros(3), 1)
        found.append(epoch.weights)
    np.testing.assert_allclose(found[1] * unit, found[0], rtol=1e-6)


def test_each_round_goes_part_of_the_way_to_the_solution() -> None:
    pools = learnable(1)
    task, start = task_of(pools, "bleu"), np.array([0.1, 0.2, 0.3, 0.4])
    part, whole = (
        next(iter(Ranking(selectors.Pairs(200), 1, psi).epochs(task, start, 1))).weights
        for psi in (0.25, 1.0)
    )
    np.testing.assert_allclose(part, 0.75 * start + 0.25 * whole, rtol=1e-12)
    first, second = Ranking(selectors.Pairs(200), 2, 0.25).epochs(task, start, 1)
    assert np.array_equal(first.weights, part) and not np.array_equal(second.weights, part)


def ramp(
    lists: Lists,
    scale: str,
    start: Array,
    rounds: int,
    passes: int,
    eta: float,
    l2: float,
    cost: float,
) -> list[Array]:
    """The twin: hopes fixed, then sub-gradient steps over the fears."""
    plain, w, found = SentenceGain(lists, scale), start, []

    def gain(i: int) -> Array:
        return cost * plain(i)

    for number in range(1, rounds + 1):
        hopes = [
            int(np.argmax(f @ w + gain(i))) if len(f) else -1 for i, f in enumerate(lists.features)
        ]
        for epoch in range(1, passes + 1):
            moved = False
            for i in visiting_order(1 + 1_000_003 * number, epoch, len(lists.features)):
                f = lists.features[i]
                if not len(f):
                    continue
                g = gain(i)
                fear = int(np.argmax(f @ w - g))
                x = f[hopes[i]] - f[fear]
                if fear != hopes[i] and g[hopes[i]] - g[fear] > w @ x:
                    w, moved = w + eta * x, True
                w = start + (1.0 - eta * l2) * (w - start)
            if not moved:
                break
        found.append(w)
    return found


@pytest.mark.parametrize(
    ("scale", "cost"), [("one", 1.0), ("one", 10.0), ("length", 1.0), ("background", 1.0)]
)
def test_the_ramp_loss_equals_its_twin(scale: Any, cost: float) -> None:
    pools = learnable(7, empty=[4])
    lists, start = Lists.of(pools, "bleu"), np.array([0.02, 0.1, -0.1, 0.2])
    gain = Gain(scale=scale, times=cost)
    native = Ramp(3, 2, 0.01, 0.05, gain).epochs(task_of(pools, "bleu"), start, 1)
    twin = ramp(lists, scale, start, 3, 2, 0.01, 0.05, cost)
    for epoch, wanted in zip(native, twin, strict=True):
        np.testing.assert_allclose(epoch.weights, wanted, rtol=1e-9, atol=1e-12)


def test_hopes_stay_where_they_are_during_a_round() -> None:
    """y+ is that of the pinned weights although the weights have come to prefer others."""
    pools = counted(np.random.default_rng(5), [5], 2)
    lists, task = Lists.of(pools, "wer"), task_of(pools, "wer")
    now, features = np.array([0.3, -0.2]), lists.features[0]
    gain, hopes = lists.sentence_gain(lists.stats[0]), set[int]()
    fear = int(np.argmax(features @ now - gain))
    for pinned in np.random.default_rng(6).normal(size=(40, 2)):
        hope = int(np.argmax(features @ pinned + gain))
        hopes.add(hope)
        sampler = _core.Sampler(pools.core, task.table, task.metric.native, 2)
        rows = sampler.rows(selectors.HopeFear(pinned=tuple(pinned)).kernel(), now)
        assert len(rows) == (hope != fear)
        if len(rows):
            np.testing.assert_allclose(dense(rows, 2)[0], features[hope] - features[fear])
    assert len(hopes) > 1


def test_no_passes_are_no_rounds() -> None:
    task = task_of(learnable(1), "bleu")
    assert list(make_tuner("rampion", {"passes": 0}).epochs(task, np.zeros(4), 1, None)) == []


def test_gains_in_context_are_those_of_the_corpus_with_one_sentence_exchanged() -> None:
    rng = np.random.default_rng(3)
    stats = np.column_stack([rng.integers(0, 10, 12), rng.integers(5, 15, 12)]).astype(float)
    pools = Pools.from_arrays(rng.normal(size=(12, 2)), [0, 4, 7, 12], ["a", "b"])
    pools.set_statistics("wer", stats)
    task, seen = task_of(pools, "wer"), list[list[float]]()

    def choose(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
        seen.append(gains.tolist())
        return []

    weights = np.array([1.0, -0.5])
    chosen = pools.statistics(task.metric, pools.best(weights))
    sampler = _core.Sampler(pools.core, task.table, task.metric.native, 2)
    sampler.rows(selectors.Custom(choose).kernel(), weights, threads=1, chosen=chosen)
    whole = chosen.sum(axis=0)
    base = task.metric.native.gains(whole[None, :])[0]
    for sentence, (first, end) in enumerate(((0, 4), (4, 7), (7, 12))):
        exchanged = whole - chosen[sentence] + stats[first:end]
        wanted = base + 3 * (task.metric.native.gains(exchanged) - base)
        np.testing.assert_allclose(seen[sentence], wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="a row of statistics for every line"):
        sampler.rows(selectors.Custom(choose).kernel(), weights, chosen=chosen[:2])


def test_ranking_in_context_measures_against_its_own_choice() -> None:
    task, _ = sampled()
    start = np.array([1.0, -0.5, 0.2])
    tuner = Ranking(DRAWN, rounds=1, interpolate=1.0, l2=0.01, context=True)
    chosen = task.spaces.statistics(task.metric, task.spaces.best(start))
    sampler = _core.Sampler(task.spaces.core, task.table, task.metric.native, 3)
    function = ranking_loss(sampler.rows(DRAWN.kernel(), start, 1, 1, chosen=chosen), tuner.l2)
    found = next(tuner.epochs(task, start, 1)).weights
    alone = next(replace(tuner, context=False).epochs(task, start, 1)).weights
    assert np.abs(slope(function, found)).max() < 1e-3 < np.abs(slope(function, alone)).max()


def test_the_first_half_of_the_rounds_may_draw_otherwise() -> None:
    pools = counted(np.random.default_rng(3), [6] * 8, 3)
    task = task_of(pools, "wer")
    few, many = selectors.Pairs(100, 0.05, 1), selectors.Pairs(100, 0.05, 20)

    def rows(tuner: Ranking) -> list[Any]:
        return [epoch.facts["updates"] for epoch in tuner.epochs(task, np.zeros(3), 1)]

    alone = rows(Ranking(many, rounds=5))
    mixed = rows(Ranking(many, rounds=5, first=few))
    assert mixed[:2] == rows(Ranking(few, rounds=5))[:2]
    assert mixed[2:] == alone[2:]
    assert mixed[0] < alone[0]


def test_pro_never_draws_more_in_the_first_rounds_than_later() -> None:
    task = task_of(counted(np.random.default_rng(3), [6] * 8, 3), "wer")

    def weights(**options: int) -> list[Any]:
        tuner = make_tuner("pro", {"rounds": 2, "keep": 20, **options})
        return [epoch.weights.tolist() for epoch in tuner.epochs(task, np.zeros(3), 1, None)]

    assert weights(samples=9) == weights(samples=9, first=9)
    assert weights(samples=9) != weights(samples=9, first=3)
