"""Whole passes of every native learner equal their slow twins."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import gaining, selecting, updating
from twins.drawing import Stream, visiting_order
from twins.lists import Array, Lists, counted
from twins.training import Pass, Rule, learn, online, passes_of, task_of

from tunesmith import Pools, _core
from tunesmith.learn import selectors, updates
from tunesmith.learn.gains import Gain, Scale
from tunesmith.learn.losses import Loss
from tunesmith.learn.online import Average, Online, Schedule

few = settings(max_examples=25, deadline=None)
shapes = st.tuples(
    st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any),
    st.integers(1, 4),
    st.sampled_from(["wer", "bleu"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
Shape = tuple[list[int], int, str, bool, int]
ONE_PASS = Schedule(passes=1, average="none")


def made(shape: Shape, strings: int = 0) -> tuple[Pools, Lists, Array, str]:
    sizes, features, metric, sparse, seed = shape
    rng = np.random.default_rng(seed)
    pools = counted(rng, sizes, features, metric=metric, sparse=sparse, strings=strings)
    return pools, Lists.of(pools, metric), rng.normal(size=features), metric


AVERAGES: tuple[Average, ...] = ("none", "all", "epoch", "updates")


def same(
    tuner: Online,
    pools: Pools,
    metric: str,
    weights: Array,
    twin: Callable[[Average], list[Pass]],
    averages: tuple[Average, ...] = AVERAGES,
) -> None:
    """What every pass proposes is what the twin's pass proposes, whatever it averages."""
    for average in averages:
        averaged = replace(tuner, schedule=replace(tuner.schedule, average=average))
        native = passes_of(averaged, task_of(pools, metric), weights, 7)
        wanted = [each.proposed(average) for each in twin(average)]
        for found, expected in zip(native, wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=average)


def mira(lists: Lists, oracle: str, prediction: str, k: int, c: float) -> Rule:
    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        a, b = selecting.hope_fear(f @ w, gain, oracle, prediction, k)
        return updating.passive_aggressive(w, [(f[a] - f[b], gain[a] - gain[b])], c), a

    return rule


@few
@given(
    shapes,
    st.sampled_from(["M-C", "LU", "MB"]),
    st.sampled_from(["M+C", "PB", "MC"]),
    st.integers(0, 4),
)
def test_mira_equals_its_twin_for_every_oracle_and_prediction(
    shape: Shape, oracle: str, prediction: str, k: int
) -> None:
    pools, lists, weights, metric = made(shape)
    selector = selectors.HopeFear(oracle, prediction, k)  # type: ignore[arg-type]
    rule = mira(lists, oracle, prediction, k, 0.05)
    twin = learn(lists, rule, gaining.SentenceGain(lists), weights, 3, 7)
    tuner = online(selector, updates.PassiveAggressive(0.05))
    same(tuner, pools, metric, weights, lambda average: twin)


@few
@given(shapes, st.sampled_from(["M-C", "LU"]), st.sampled_from(["M+C", "PB"]), st.integers(0, 3))
def test_mira_on_unique_strings_equals_its_twin(
    shape: Shape, oracle: str, prediction: str, k: int
) -> None:
    pools, lists, weights, metric = made(shape, strings=3)
    texts = texts_of(pools)

    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        a, b = selecting.hope_fear(f @ w, gain, oracle, prediction, k, texts[sentence])
        return updating.passive_aggressive(w, [(f[a] - f[b], gain[a] - gain[b])], 0.05), a

    selector = selectors.HopeFear(oracle, prediction, k, unique=True)  # type: ignore[arg-type]
    twin = learn(lists, rule, gaining.SentenceGain(lists), weights, 3, 7)
    tuner = online(selector, updates.PassiveAggressive(0.05))
    same(tuner, pools, metric, weights, lambda average: twin)


def texts_of(pools: Pools) -> list[list[str]]:
    starts = pools.core.starts.tolist()
    texts = pools.core.texts(np.arange(pools.hypotheses))
    return [list(texts[a:b]) for a, b in pairwise(starts)]


@few
@given(shapes, st.sampled_from(["one", "length", "background"]), st.sampled_from(range(4)))
def test_gains_in_context_equal_their_twins(shape: Shape, scale: Scale, kind: int) -> None:
    pools, lists, weights, metric = made(shape)
    gain, twin_gain = [
        (Gain(scale=scale), gaining.SentenceGain(lists, scale)),
        (
            Gain("background", 0.9, scale=scale),
            gaining.BackgroundGain(lists, 0.9, scale=scale),
        ),
        (
            Gain("background", 0.7, "oracle", scale),
            gaining.BackgroundGain(lists, 0.7, "oracle", scale),
        ),
        (Gain("context", scale=scale), gaining.ContextGain(lists, scale)),
    ][kind]
    tuner = online(selectors.HopeFear(), updates.PassiveAggressive(0.05), gain)
    rule = mira(lists, "M-C", "M+C", 0, 0.05)

    def twin(average: Average) -> list[Pass]:
        own = copy(twin_gain)
        if isinstance(own, gaining.ContextGain):
            own.follow = average == "none"
        return learn(lists, rule, own, weights, 3, 7, average)

    same(tuner, pools, metric, weights, twin)


@few
@given(shapes, st.sampled_from([0.2, 1.0, 5.0]), st.booleans())
def test_relative_margin_equals_its_twin(shape: Shape, bound: float, by_cost: bool) -> None:
    pools, lists, weights, metric = made(shape)

    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        a, b = selecting.hope_fear(f @ w, gain)
        difference = gain[a] - gain[b]
        costs = 1.0 - np.clip(gain, 0.0, 1.0) if by_cost else None
        return updating.relative_margin(w, f, a, b, difference, 0.05, bound, 0.02, costs), a

    selector = selectors.Bounded(selectors.HopeFear(), bound, 0.02, by_cost=by_cost)
    tuner = online(selector, updates.PassiveAggressive(0.05))
    twin = learn(lists, rule, gaining.SentenceGain(lists), weights, 3, 7)
    # A margin step that a bound takes back is an update, but the twin sees weights that stayed.
    same(tuner, pools, metric, weights, lambda average: twin, AVERAGES[:3])


@few
@given(shapes, st.booleans(), st.integers(1, 3))
def test_hildreth_solves_its_quadratic_problem(shape: Shape, model: bool, n: int) -> None:
    pools, lists, weights, metric = made(shape)
    texts = [f"text {i}" for i in range(pools.hypotheses)]
    starts = pools.core.starts

    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        own = texts[starts[sentence] : starts[sentence + 1]]
        pairs = selecting.hope_fear_lists(f @ w, gain, own, n, model)
        slacks = [(0.05, [(f[a] - f[b], float(gain[a] - gain[b]))]) for a, b in pairs]
        return updating.solve(w, slacks), 0

    tuner = online(selectors.Lists(n, model), updates.Hildreth(0.05), schedule=ONE_PASS)
    (twin,) = learn(lists, rule, gaining.SentenceGain(lists), weights, 1, 7)
    (native,) = passes_of(tuner, task_of(pools, metric), weights, 7)
    np.testing.assert_allclose(native, twin.none, rtol=0, atol=2e-5)


def one_list(seed: int, size: int, features: int) -> tuple[Pools, Lists, Array]:
    rng = np.random.default_rng(seed)
    pools = counted(rng, [size], features)
    return pools, Lists.of(pools, "wer"), rng.normal(size=features)


@few
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 4), st.sampled_from([0.01, 1]))
def test_cutting_planes_reach_the_optimum_over_all_hypotheses(
    seed: int, size: int, features: int, c: float
) -> None:
    """½‖v - w‖² + C·max_y (l_y - v·x_y)₊ with y+ as it was at the start."""
    pools, lists, w = one_list(seed, size, features)
    f, gain = lists.features[0], lists.sentence_gain(lists.stats[0])
    better, _ = selecting.hope_fear(f @ w, gain)
    rows = [(f[better] - f[y], float(gain[better] - gain[y])) for y in range(size)]
    rule = updates.CuttingPlane(c, epsilon=1e-10, max_iter=2000, planes=1000)
    tuner = online(selectors.HopeFear(), rule, schedule=ONE_PASS)
    (found,) = passes_of(tuner, task_of(pools, "wer"), w, 1)
    wanted = updating.solve(w, [(c, rows)])
    assert updating.primal(w, found, [(c, rows)]) <= updating.primal(w, wanted, [(c, rows)]) + 1e-8
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


@few
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 4), st.sampled_from([0.1, 0.7]))
def test_relative_margin_by_cutting_planes_reaches_the_optimum(
    seed: int, size: int, features: int, bound: float
) -> None:
    """Three maxima over the list, one for the margin and one for each bound."""
    pools, lists, w = one_list(seed, size, features)
    f, gain = lists.features[0], lists.sentence_gain(lists.stats[0])
    better, _ = selecting.hope_fear(f @ w, gain)
    x = f[better] - f
    problem = [
        (0.3, [(x[y], float(gain[better] - gain[y])) for y in range(size)]),
        (0.2, [(-x[y], -bound) for y in range(size)]),
        (0.2, [(x[y], -bound) for y in range(size)]),
    ]
    tuner = online(
        selectors.Bounded(selectors.HopeFear(), bound, 0.2),
        updates.CuttingPlane(0.3, 1e-10, 1e-10, max_iter=3000, planes=1000),
        schedule=ONE_PASS,
    )
    (found,) = passes_of(tuner, task_of(pools, "wer"), w, 1)
    wanted = updating.solve(w, problem)
    assert updating.primal(w, found, problem) <= updating.primal(w, wanted, problem) + 1e-7


@few
@given(shapes, st.booleans(), st.sampled_from([0.1, 10.0]))
def test_arow_equals_its_twin(shape: Shape, linear: bool, r: float) -> None:
    pools, lists, weights, metric = made(shape)
    twin_rule = updating.Arow(r, np.full(len(weights), 0.5), 0.3, linear)

    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        a, b = selecting.hope_fear(f @ w, gain)
        return twin_rule.step(w, [(f[a] - f[b], gain[a] - gain[b])]), a

    tuner = online(selectors.HopeFear(), updates.Arow(r, 0.3, 0.5, linear))
    twin = learn(lists, rule, gaining.SentenceGain(lists), weights, 3, 7)
    same(tuner, pools, metric, weights, lambda average: twin)


@few
@given(shapes, st.sampled_from(["PB", "M+C"]), st.booleans())
def test_perceptron_equals_its_twin(shape: Shape, prediction: str, loss: bool) -> None:
    pools, lists, weights, metric = made(shape)

    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        a, b = selecting.hope_fear(f @ w, gain, "M-C", prediction)
        x, better = f[a] - f[b], gain[a] - gain[b]
        counts = better > 0.0 and (w @ x < better if loss else w @ x <= 0.0)
        return w + (0.1 * x if counts else 0.0), a

    selector = selectors.HopeFear("M-C", prediction)  # type: ignore[arg-type]
    tuner = online(selector, updates.Perceptron(0.1, when="loss" if loss else "wrong"))
    twin = learn(lists, rule, gaining.SentenceGain(lists), weights, 3, 7)
    same(tuner, pools, metric, weights, lambda average: twin)


@few
@given(
    shapes,
    st.booleans(),
    st.sampled_from([(0.0, 0.0), (0.05, 0.0), (0.0, 0.3), (0.05, 0.3)]),
    st.sampled_from(["logistic", "hinge"]),
)
def test_lazy_regularisation_equals_the_eager_one(
    shape: Shape, adagrad: bool, strengths: tuple[float, float], loss: Loss
) -> None:
    """Every coordinate shrunk after every step gives what the lazy update gives."""
    pools, lists, weights, metric = made((*shape[:3], True, shape[4]))
    l1, l2 = strengths
    slopes = {"logistic": updating.logistic_slope, "hinge": updating.hinge_slope}
    twin_rule = updating.Fobos(slopes[loss], 0.1, l1, l2, adagrad)

    def rule(w: Array, epoch: int, sentence: int, gain: Array) -> tuple[Array, int]:
        f = lists.features[sentence]
        stream = Stream(7, epoch, sentence)
        pairs = selecting.sampled_pairs(gain, stream, 20, 0.05, 5)
        return twin_rule.step(w, [(f[a] - f[b], gain[a] - gain[b]) for a, b in pairs]), 0

    make = updates.AdaGrad if adagrad else updates.Sgd
    tuner = online(
        selectors.Pairs(20, 0.05, 5),
        make(loss, 0.1, l1, l2),
        schedule=Schedule(passes=4, average="none"),
    )
    gain = gaining.SentenceGain(lists)
    twin = learn(lists, rule, gain, weights, 4, 7, updates=lambda: twin_rule.updates)
    native = passes_of(tuner, task_of(pools, metric), weights, 7)
    for found, wanted in zip(native, twin, strict=True):
        np.testing.assert_allclose(found, wanted.none, rtol=1e-9, atol=1e-9)


@few
@given(
    shapes,
    st.sampled_from([(0.0, 0.0), (0.05, 0.0), (0.05, 0.3)]),
    st.sampled_from(["phrasal", "touched"]),
)
def test_idle_weights_shrink_late_as_in_phrasal_or_once_after_a_pass(
    shape: Shape, strengths: tuple[float, float], kind: updates.Shrink
) -> None:
    pools, lists, weights, metric = made((*shape[:3], True, shape[4]))
    l1, l2 = strengths
    squares, last, step = np.zeros(len(weights)), np.zeros(len(weights), int), 0
    w = weights.copy()

    def sizes() -> Array:
        return np.where(squares > 0, 0.1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)

    def shrink(j: int, size: float, times: int) -> None:
        for _ in range(times):
            kept = max(1.0 - size * l2, 0.0) * w[j]
            w[j] = np.sign(kept) * max(abs(kept) - size * l1, 0.0)

    wanted = []
    for epoch in (1, 2, 3):
        rows = 0
        for sentence in visiting_order(7, epoch, len(lists.features)):
            f, gain = lists.features[sentence], gaining.SentenceGain(lists)
            if not len(f):
                continue
            step += 1
            stream = Stream(7, epoch, sentence)
            pairs = selecting.sampled_pairs(gain(sentence), stream, 20, 0.05, 5)
            gradient = np.zeros(len(w))
            for a, b in pairs:
                x = f[a] - f[b]
                # The pair and its mirror image.
                gradient += 2.0 * updating.logistic_slope(float(w @ x), 0.0) * x
            rows += len(pairs)
            before = sizes()
            squares += gradient**2
            for j in np.flatnonzero(gradient).tolist():
                w[j] -= sizes()[j] * gradient[j]
                if kind == "phrasal":
                    shrink(j, before[j], step - 1 - last[j])
                shrink(j, sizes()[j], 1)
                last[j] = step
        for j in range(len(w)):
            shrink(j, sizes()[j], step - last[j] if kind == "phrasal" else 1)
            last[j] = step
        wanted.append(w.copy())
        if not rows:
            break
    rule = updates.AdaGrad("logistic", 0.1, l1, l2, kind)
    tuner = online(selectors.Pairs(20, 0.05, 5), rule)
    native = [epoch.weights for epoch in tuner.epochs(task_of(pools, metric), weights, 7, None)]
    for found, expected in zip(native, wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@few
@given(shapes, st.integers(0, 40), st.integers(0, 2**64 - 1), st.integers(1, 9))
def test_sampled_pairs_are_those_of_pro(shape: Shape, keep: int, seed: int, epoch: int) -> None:
    pools, lists, weights, metric = made(shape)
    task = task_of(pools, metric)
    sampler = _core.Sampler(pools.core, task.table, task.metric.native, len(weights))
    rows = sampler.rows(selectors.Pairs(60, 0.05, keep + 1).kernel(), weights, seed, epoch).arrays()
    wanted = []
    for sentence, stats in enumerate(lists.stats):
        gain = lists.sentence_gain(stats) if len(stats) else np.zeros(0)
        for a, b in selecting.sampled_pairs(
            gain, Stream(seed, epoch, sentence), 60, 0.05, keep + 1
        ):
            x = lists.features[sentence][a] - lists.features[sentence][b]
            wanted.append((sentence, gain[a] - gain[b], x))
    assert rows["groups"].tolist() == [row[0] for row in wanted]
    np.testing.assert_allclose(rows["gains"], [row[1] for row in wanted], rtol=1e-12)
    for place, (_, _, x) in enumerate(wanted):
        span = slice(rows["starts"][place], rows["starts"][place + 1])
        dense = np.zeros(len(weights))
        dense[rows["ids"][span]] = rows["values"][span]
        np.testing.assert_allclose(dense, x, rtol=1e-12)


@pytest.mark.parametrize("length", [0, 1, 2, 50])
def test_the_visiting_order_depends_on_seed_and_epoch_only(length: int) -> None:
    for seed, epoch in [(1, 1), (1, 2), (2**64 - 1, 1)]:
        order = _core.permutation(seed, epoch, length).tolist()
        assert order == visiting_order(seed, epoch, length)
        assert sorted(order) == list(range(length))
