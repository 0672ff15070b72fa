"""The expected gain, its gradient, and the annealed tuner."""

from __future__ import annotations

import numpy as np
import pytest
from twins import searching
from twins.lists import Array, Lists, counted, learnable
from twins.training import task_of

from tunesmith import Pools, _core
from tunesmith.learn import selectors
from tunesmith.learn.risk import Risk


def expect(
    pools: Pools, metric: str, weights: Array, alpha: float, corpus: bool
) -> tuple[float, Array]:
    task = task_of(pools, metric)
    expectation = _core.Expectation(
        task.spaces.core, task.table, task.metric.native, np.zeros(len(weights)), 1
    )
    return expectation.gain(weights, alpha, corpus, 1)


@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
@pytest.mark.parametrize("metric", ["wer", "bleu"])
def test_value_and_gradient_are_those_of_the_definition(
    metric: str, alpha: float, corpus: bool
) -> None:
    rng = np.random.default_rng(3)
    pools = counted(rng, [5, 0, 1, 7, 4], 3, metric=metric, sparse=True)
    lists = Lists.of(pools, metric)
    weights = rng.normal(size=3)
    value, gradient = expect(pools, metric, weights, alpha, corpus)
    assert value == pytest.approx(searching.expected_gain(lists, weights, alpha, corpus), rel=1e-12)

    def function(w: Array) -> float:
        return searching.expected_gain(lists, w, alpha, corpus)

    np.testing.assert_allclose(gradient, searching.slope(function, weights), rtol=1e-5, atol=1e-8)


def test_the_selector_of_the_expected_gain_gives_the_same_gradient() -> None:
    rng = np.random.default_rng(4)
    pools = counted(rng, [6, 3], 3)
    task, weights = task_of(pools, "wer"), rng.normal(size=3)
    sampler = _core.Sampler(pools.core, task.table, task.metric.native, 3)
    rows = sampler.rows(selectors.Expected(1.5).kernel(), weights).arrays()
    total = np.zeros(3)
    np.add.at(total, rows["ids"], rows["values"])
    _, gradient = expect(pools, "wer", weights, 1.5, False)
    np.testing.assert_allclose(total / 2, gradient, rtol=1e-12)


def test_a_sharp_distribution_expects_what_the_model_chooses() -> None:
    rng = np.random.default_rng(5)
    pools = counted(rng, [6] * 5, 3)
    weights = rng.normal(size=3)
    for corpus in (False, True):
        value, gradient = expect(pools, "wer", weights, 1e9, corpus)
        if corpus:
            assert value == pytest.approx(Lists.of(pools, "wer").corpus_gain(weights), abs=1e-12)
        assert not gradient.any()


def test_values_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(6)
    pools = counted(rng, [4] * 300, 5, sparse=True)
    task, weights = task_of(pools, "wer"), rng.normal(size=5)
    expectation = _core.Expectation(pools.core, task.table, task.metric.native, weights)
    found = [expectation.gain(weights, 1.0, True, threads) for threads in (1, 2, 4)]
    for value, gradient in found[1:]:
        assert value == found[0][0]
        assert np.array_equal(gradient, found[0][1])


@pytest.mark.parametrize("objective", ["sentence", "corpus"])
def test_risk_raises_the_expected_gain(objective: str) -> None:
    pools = learnable(1)
    task = task_of(pools, "bleu")
    tuner = Risk(steps=1, l2=0.0, objective=objective)  # type: ignore[arg-type]
    (epoch,) = tuner.epochs(task, np.zeros(4), 1)
    corpus = objective == "corpus"
    before, _ = expect(pools, "bleu", np.zeros(4), 1.0, corpus)
    after, _ = expect(pools, "bleu", epoch.weights, 1.0, corpus)
    assert after > before + 0.05
    assert epoch.facts["loss"] == pytest.approx(-after)


@pytest.mark.parametrize("objective", ["sentence", "corpus"])
def test_l2_pulls_towards_the_weights_that_the_epoch_starts_with(objective: str) -> None:
    task, start = task_of(learnable(1), "bleu"), np.array([3.0, -2.0, 1.0, 4.0])

    def moved(l2: float) -> float:
        tuner = Risk(steps=1, l2=l2, objective=objective)  # type: ignore[arg-type]
        (epoch,) = tuner.epochs(task, start, 1)
        return float(np.linalg.norm(epoch.weights - start))

    assert moved(1e3) < 1e-2 < moved(1.0) < moved(1e-4)
    # At the optimum the pull and the slope of the expected gain are equal.
    (epoch,) = Risk(steps=1, l2=0.1, objective=objective).epochs(task, start, 1)  # type: ignore[arg-type]
    _, slope = expect(learnable(1), "bleu", epoch.weights, 1.0, objective == "corpus")
    np.testing.assert_allclose(0.1 * (epoch.weights - start), slope, atol=1e-3)
