"""Where two algorithms must be one: the degenerate equalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.drawing import visiting_order
from twins.lists import Array, Lists, counted, learnable
from twins.training import passes_of, task_of

from tunesmith import PRESETS, Pools, gains, select, tune, update
from tunesmith.drivers import Online
from tunesmith.presets import make_tuner

few = settings(max_examples=25, deadline=None)
worlds = st.builds(
    lambda seed, sizes, features, sparse: (
        counted(np.random.default_rng(seed), sizes, features, sparse=sparse),
        np.random.default_rng(seed + 1).normal(size=features),
    ),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any),
    st.integers(1, 4),
    st.booleans(),
)
World = tuple[Pools, Array]


def after(world: World, online: Online, seed: int = 3) -> list[Array]:
    return passes_of(replace(online, average="none"), task_of(world[0], "wer"), world[1], seed)


def equal(left: list[Array], right: list[Array], tolerance: float = 1e-12) -> None:
    # A pass without updates ends a run; where rounding decides about it, no weight moves.
    for a, b in zip(left, right, strict=False):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@few
@given(worlds, st.sampled_from([0.0, 1e-3, 0.05, 1.0]))
def test_hildreth_passive_aggressive_and_one_cutting_plane_agree_on_one_row(
    world: World, c: float
) -> None:
    closed = after(world, Online(select.hope_fear(), update.passive_aggressive(c), passes=3))
    dual = after(world, Online(select.hope_fear(), update.hildreth(c), passes=3))
    plane = after(
        world, Online(select.hope_fear(), update.cutting_plane(c, epsilon=0.0, planes=1), passes=3)
    )
    equal(closed, dual)
    equal(closed, plane)


@few
@given(worlds)
def test_hildreth_on_one_hope_and_one_fear_is_mira(world: World) -> None:
    closed = after(world, Online(select.hope_fear(), update.passive_aggressive(0.05), passes=3))
    lists = after(world, Online(select.lists(1), update.hildreth(0.05), passes=3))
    equal(closed, lists)


@few
@given(worlds, st.sampled_from([0.01, 1.0]))
def test_relative_margin_without_a_bound_is_mira(world: World, price: float) -> None:
    inner = select.hope_fear(k=3)
    bounded = select.bounded(inner, np.inf, price, 3)
    for rule in (update.passive_aggressive(0.05), update.cutting_plane(0.05), update.hildreth()):
        equal(
            after(world, Online(inner, rule, passes=3)),
            after(world, Online(bounded, rule, passes=3)),
            0.0,
        )


@pytest.mark.parametrize(("bounded", "plain"), [("rm", "mira"), ("rm-cp", "mira-cp")])
@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_the_presets_agree_without_a_bound(bounded: str, plain: str, metric: str) -> None:
    pools = learnable(3)
    left = tune(pools, bounded, metric, options={"bound": "inf"}, threads=1)
    right = tune(pools, plain, metric, threads=1)
    assert left.weights == right.weights
    other = tune(pools, bounded, metric, options={"bound": 0.1}, threads=1)
    assert other.weights != right.weights


@few
@given(worlds, st.integers(1, 5))
def test_mixing_one_shard_is_serial(world: World, mix: int) -> None:
    online = Online(select.hope_fear(), update.passive_aggressive(0.05), passes=3)
    equal(after(world, online), after(world, replace(online, shards=1, mix=mix)), 0.0)


def walked(lists: Lists, w: Array, shard: Array) -> Array:
    """Return the weights of a learner after its part of a pass, by hand."""
    for sentence in shard.tolist():
        f = lists.features[sentence]
        if len(f):
            gain = lists.sentence_gain(lists.stats[sentence])
            a = int(np.argmax(f @ w + gain))
            b = int(np.argmax(f @ w - gain))
            x, loss = f[a] - f[b], gain[a] - gain[b] - w @ (f[a] - f[b])
            if loss > 0 and x.any():
                w = w + min(0.05, loss / (x @ x)) * x
    return w


@few
@given(worlds, st.integers(2, 3))
def test_learners_that_are_not_mixed_go_on_from_their_own_weights(
    world: World, shards: int
) -> None:
    pools, weights = world
    lists, own, wanted = Lists.of(pools, "wer"), [weights] * shards, []
    for epoch in (1, 2, 3):
        order = np.array(visiting_order(3, epoch, pools.sentences))
        parts = zip(own, np.array_split(order, shards), strict=True)
        own = [walked(lists, w, shard) for w, shard in parts]
        wanted.append(np.mean(own, axis=0))
    online = Online(select.hope_fear(), update.passive_aggressive(0.05), passes=3)
    equal(after(world, replace(online, shards=shards, mix=0)), wanted)


@few
@given(worlds, st.integers(2, 3), st.integers(1, 2))
def test_mixing_averages_learners_that_pass_over_their_shards(
    world: World, shards: int, mix: int
) -> None:
    """By hand: one learner per shard from common weights, averaged `mix` times."""
    pools, weights = world
    lists = Lists.of(pools, "wer")
    online = Online(select.hope_fear(), update.passive_aggressive(0.05), passes=1)
    order = np.array(visiting_order(3, 1, pools.sentences))
    for part in np.array_split(order, mix):
        ends = [walked(lists, weights, shard) for shard in np.array_split(part, shards)]
        weights = np.mean(ends, axis=0)
    (found,) = after(world, replace(online, shards=shards, mix=mix))
    np.testing.assert_allclose(found, weights, rtol=1e-12, atol=1e-12)


@few
@given(worlds)
def test_batches_of_one_are_serial_and_a_batch_sees_one_weight_vector(world: World) -> None:
    pools, weights = world
    online = Online(select.hope_fear(), update.sgd("hinge", 0.1), passes=1, shuffle=False)
    equal(after(world, online), after(world, replace(online, batch=1)), 0.0)
    lists = Lists.of(pools, "wer")
    gradient = np.zeros(len(weights))
    for features, stats in zip(lists.features, lists.stats, strict=True):
        if len(features):
            gain, scores = lists.sentence_gain(stats), features @ weights
            a, b = int(np.argmax(scores + gain)), int(np.argmax(scores - gain))
            if gain[a] - gain[b] > scores[a] - scores[b]:
                gradient += features[a] - features[b]
    (found,) = after(world, replace(online, batch=pools.sentences))
    np.testing.assert_allclose(found, weights + 0.1 * gradient, rtol=1e-12, atol=1e-12)


def test_an_update_scaled_by_the_oracle_takes_that_part_of_the_step() -> None:
    pools = counted(np.random.default_rng(4), [5], 3)
    lists, w = Lists.of(pools, "wer"), np.zeros(3)
    gain = lists.sentence_gain(lists.stats[0])
    world = pools, w
    for make in (update.passive_aggressive, update.hildreth):
        (whole,) = after(world, Online(select.hope_fear(), make(0.05), passes=1))
        (part,) = after(world, Online(select.hope_fear(), make(0.05, 1.0, True), passes=1))
        (half,) = after(world, Online(select.hope_fear(), make(0.05, 0.5), passes=1))
        assert whole.any()
        np.testing.assert_allclose(part, gain.max() * whole, rtol=1e-12)
        np.testing.assert_allclose(half, 0.5 * whole, rtol=1e-12)


# What is written in Python gives what is written in Rust.


class PassiveAggressive:
    """PA-I as a rule of one's own."""

    def __init__(self, c: float) -> None:
        self.c = c

    def init(self, features: int, /) -> Array:
        return np.zeros(1)

    def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
        rows = separate(w)
        for row, (a, b) in enumerate(zip(rows["starts"], rows["starts"][1:], strict=False)):
            ids, x = rows["ids"][a:b], rows["values"][a:b]
            loss = rows["gains"][row] - rows["offsets"][row] - w[ids] @ x
            if loss > 0 and len(x):
                w[ids] += min(self.c, loss / (x @ x)) * x
        return w, state + 1


def hope_fear(scores: Array, gain: Array, seed: int) -> Sequence[tuple[int, int]]:
    return [(int(np.argmax(scores + gain)), int(np.argmax(scores - gain)))]


@few
@given(worlds, st.sampled_from(["sentence", "background", "context"]))
def test_a_selector_and_a_rule_in_python_give_the_native_weights(world: World, gain: Any) -> None:
    native = Online(select.hope_fear(), update.passive_aggressive(0.05), gains.Gain(gain), passes=3)
    wanted = after(world, native)
    chosen = replace(native, selector=select.of_function(hope_fear))
    ruled = replace(native, update=update.of_rule(PassiveAggressive(0.05)))
    equal(after(world, chosen), wanted)
    # Python rules count violated rows, so that both stop after the same pass.
    equal(after(world, ruled), wanted)
    equal(after(world, replace(chosen, update=ruled.update)), wanted)


@few
@given(worlds)
def test_a_rule_in_python_respects_bounds_and_fixed_weights(world: World) -> None:
    pools, weights = world
    lower, upper = np.full(len(weights), -0.5), np.full(len(weights), 0.5)
    lower[0] = upper[0] = 0.25
    task = task_of(pools, "wer", lower, upper)
    start = task.clip(weights)
    rule = update.of_rule(PassiveAggressive(0.5))
    own = passes_of(Online(select.hope_fear(), rule, passes=3), task, start, 1)
    native = Online(select.hope_fear(), update.passive_aggressive(0.5), passes=3)
    equal(own, passes_of(native, task, start, 1))
    assert all(w[0] == 0.25 and (lower <= w).all() and (w <= upper).all() for w in own)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_metric_in_python_gives_the_native_weights(preset: str) -> None:
    """Word error rate, once native and once from its own statistics in Python."""
    from tunesmith.metrics import Metric

    class Wer(Metric):
        name = "wer-in-python"
        width = 2

        @property
        def higher_is_better(self) -> bool:
            return False

        def score_rows(self, rows: Array) -> Array:
            return 100.0 * rows[:, 0] / rows[:, 1]

        def gain_rows(self, rows: Array) -> Array:
            return 1.0 - rows[:, 0] / rows[:, 1]

        def __repr__(self) -> str:
            return "Wer()"

    rng = np.random.default_rng(8)
    pools = counted(rng, [6] * 8, 3)
    own = Wer()
    pools.set_statistics(own, pools.table(task_of(pools, "wer").metric).rows())
    options = SMALL.get(preset, {})
    for seed in (1, 2):
        found = []
        for metric in ("wer", own):
            task = task_of(pools, metric)
            epochs = make_tuner(preset, options).epochs(task, np.full(3, 0.1), seed, None)
            found.append([epoch.weights for epoch in epochs])
        equal(found[0], found[1], 1e-9 if preset in ("risk", "pro") else 1e-12)


SMALL: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 3},
    "kbmira": {"passes": 5},
    "pro": {"rounds": 3, "samples": 200},
    "random": {"tries": 50},
    "grid": {"points": 5},
    "risk": {"steps": 2},
}
