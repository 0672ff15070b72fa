"""MBUU and EBUU: the equations, their degenerate cases, their scale."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize
from twins.lists import Array, Lists, counted, learnable
from twins.training import task_of

from tunesmith import Pools, get_metric
from tunesmith.learn.local import ErrorUpdate, MarginUpdate, blocks_of
from tunesmith.presets import make_tuner

METRIC = get_metric("wer")
# The stubs know only some of the forms that its arguments may have.
minimize: Any = scipy_minimize


def blocks(pools: Pools) -> list[tuple[Array, Array]]:
    """Return features and gains of each list that is not empty."""
    rows, ids, values = pools.core.csr()
    matrix = np.zeros((pools.hypotheses, len(pools.names)))
    matrix[np.repeat(np.arange(pools.hypotheses), np.diff(rows)), ids] = values
    table = pools.table(METRIC).rows()
    gains = np.array([METRIC.native.sentence_gains(row[None, :])[0] for row in table])
    starts = pools.core.starts
    return [(matrix[a:b], gains[a:b]) for a, b in pairwise(starts) if b > a]


def spread_of(lists: list[tuple[Array, Array]], weights: Array) -> float:
    return float(np.mean([(x @ weights).std() for x, _ in lists if len(x) > 1]))


def pools_of(seed: int, sparse: bool = False) -> Pools:
    return counted(np.random.default_rng(seed), [4, 0, 3, 1, 5, 4], 4, sparse=sparse)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("strength", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mbuu_solves_the_quadratic_program(seed: int, strength: float, bounded: bool) -> None:
    pools, base = pools_of(seed, sparse=seed == 2), np.array([0.5, -1.0, 0.25, 2.0])
    lists = blocks(pools)
    spread = spread_of(lists, base)
    start = base / spread
    lower, upper = np.full(4, -np.inf), np.full(4, np.inf)
    if bounded:
        lower[0] = upper[0] = base[0]
        lower[1], upper[1] = -1.01, -0.99
    rows, targets, owners = [], [], []
    for number, (x, gains) in enumerate(lists):
        scores = x @ start
        oracle = max(range(len(x)), key=lambda n: (gains[n], scores[n]))
        for n in range(len(x)):
            rows.append(x[oracle] - x[n])
            targets.append(gains[oracle] - gains[n])
            owners.append(np.eye(len(lists))[number])
    a, b, e = np.array(rows), np.array(targets), np.array(owners)
    share = strength / len(lists)
    found = minimize(
        lambda z: 0.5 * ((z[:4] - start) ** 2).sum() + share * z[4:].sum(),
        np.concatenate([start, e.T.max(axis=1) * 50]),
        jac=lambda z: np.concatenate([z[:4] - start, np.full(len(lists), share)]),
        constraints=[
            {
                "type": "ineq",
                "fun": lambda z: e @ z[4:] + a @ z[:4] - b,
                "jac": lambda z: np.hstack([a, e]),
            }
        ],
        bounds=[*zip(lower / spread, upper / spread, strict=True), *[(0, None)] * len(lists)],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    update = MarginUpdate(strength, tolerance=1e-12, passes=10_000)
    learnt = update.learn(blocks_of(pools, METRIC), base, (lower, upper) if bounded else None)
    assert learnt.spread == pytest.approx(spread)
    np.testing.assert_allclose(learnt.weights / spread, found.x[:4], atol=1e-6)
    assert learnt.objective == pytest.approx(found.fun, abs=1e-8)
    assert learnt.gap <= 1e-9


def test_mbuu_of_one_row_is_passive_aggressive() -> None:
    pools = Pools.from_arrays(
        [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]], [0, 2], ["a", "b", "c"], ["x", "y"], [["y"]]
    )
    base = np.array([2.0, 0.1, 0.3])
    spread = abs(base @ [1.0, -3.0, 1.0]) / 2
    delta = np.array([-1.0, 3.0, -1.0])
    loss = 1.0 - base @ delta / spread
    for c in (0.01, 10.0):
        step = min(c, loss / (delta @ delta))
        found = MarginUpdate(c, tolerance=1e-12).learn(blocks_of(pools, METRIC), base)
        np.testing.assert_allclose(found.weights, base + spread * step * delta, rtol=1e-12)


def expected_error(lists: list[tuple[Array, Array]], weights: Array, alpha: float) -> float:
    total = 0.0
    for x, gains in lists:
        scores = alpha * (x @ weights)
        share = np.exp(scores - scores.max())
        total -= float((share * gains).sum() / share.sum())
    return total / len(lists)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("strength", [0.06, 0.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ebuu_minimises_the_expected_error(seed: int, strength: float, bounded: bool) -> None:
    pools, base = pools_of(seed, sparse=seed == 2), np.array([0.5, -1.0, 0.25, 2.0])
    lists = blocks(pools)
    spread = spread_of(lists, base)
    start = base / spread
    lower, upper = np.full(4, -np.inf), np.full(4, np.inf)
    if bounded:
        lower[0] = upper[0] = base[0]
        lower[1], upper[1] = -1.001, -0.999
    found = minimize(
        lambda v: 0.5 * ((v - start) ** 2).sum() + strength * expected_error(lists, v, 0.5),
        start,
        bounds=[*zip(lower / spread, upper / spread, strict=True)],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
    )
    update = ErrorUpdate(strength, 0.5, tolerance=1e-9, passes=10_000)
    learnt = update.learn(blocks_of(pools, METRIC), base, (lower, upper) if bounded else None)
    np.testing.assert_allclose(learnt.weights / spread, found.x, atol=1e-5)
    assert learnt.objective == pytest.approx(found.fun, abs=1e-9)


UPDATES: list[Any] = [MarginUpdate, ErrorUpdate]


@pytest.mark.parametrize("update", UPDATES)
@given(
    base=st.lists(st.floats(-10, 10, width=32), min_size=4, max_size=4),
    normalise=st.booleans(),
    seed=st.integers(0, 5),
)
def test_without_strength_the_weights_are_the_same_to_the_bit(
    update: Any, base: list[float], normalise: bool, seed: int
) -> None:
    start = np.array(base)
    found = update(0.0, normalise=normalise).learn(blocks_of(pools_of(seed), METRIC), start)
    assert found.weights.tobytes() == start.tobytes()


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("update", UPDATES)
def test_the_size_of_the_weights_does_not_matter(update: Any, normalise: bool) -> None:
    pools, base = pools_of(1), np.array([0.5, -1.0, 0.25, 2.0])
    learnt = [
        update(0.5, normalise=normalise).learn(blocks_of(pools, METRIC), s * base)
        for s in (1.0, 64.0)
    ]
    assert not np.array_equal(learnt[0].weights, base)
    np.testing.assert_allclose(learnt[1].weights, 64.0 * learnt[0].weights, rtol=1e-12)


@pytest.mark.parametrize("update", UPDATES)
def test_normalised_features_may_have_any_unit(update: Any) -> None:
    pools, base = pools_of(1), np.array([0.5, -1.0, 0.25, 2.0])
    unit = np.array([1.0, 8.0, 0.25, 1.0])
    matrix = np.concatenate([x for x, _ in blocks(pools)])
    texts = pools.core.texts(np.arange(pools.hypotheses))
    scaled = Pools.from_arrays(
        matrix * unit, pools.core.starts, pools.names, texts, pools.references
    )
    scaled.set_statistics(METRIC, pools.table(METRIC).rows())
    options = {"normalise": True, "tolerance": 1e-9}
    one = update(0.5, **options).learn(blocks_of(pools, METRIC), base)
    other = update(0.5, **options).learn(blocks_of(scaled, METRIC), base / unit)
    np.testing.assert_allclose(other.weights * unit, one.weights, rtol=1e-6)


@pytest.mark.parametrize("name", ["mbuu", "ebuu"])
def test_the_presets_are_tuners_of_one_epoch(name: str) -> None:
    pools, start = learnable(1), np.array([0.02, 0.5, -0.3, 0.4])
    task = task_of(pools, "bleu")
    tuner: Any = make_tuner(name, {"strength": 1.0})
    (epoch,) = tuner.epochs(task, start, 1, None)
    assert epoch.last and not np.array_equal(epoch.weights, start)
    direct = tuner.learn(blocks_of(pools, task.metric), start).weights
    assert epoch.weights.tolist() == direct.tolist()
    assert list(tuner.epochs(task, start, 1, epoch.state)) == []
    # Far from the start there is only the loss: the gain of the lists grows.
    before = task.evaluate(start)[1]
    (far,) = make_tuner(name, {"strength": 1000.0}).epochs(task, start, 1, None)
    assert task.evaluate(far.weights)[1] > before + 0.05


@pytest.mark.parametrize("update", UPDATES)
def test_from_the_sentence_itself_its_gain_grows(update: Any) -> None:
    pools = learnable(3, sentences=1)
    metric = get_metric("bleu")
    start = np.array([0.02, 0.5, -0.3, 0.4])
    found = update(1000.0).learn(blocks_of(pools, metric), start)
    gains = Lists.of(pools, "bleu")
    assert gains.corpus_gain(found.weights) > gains.corpus_gain(start)
