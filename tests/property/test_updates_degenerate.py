"""Where two algorithms must be one: the degenerate equalities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from twins.drawing import visiting_order
from twins.lists import Array, Lists, counted, learnable
from twins.quick import ON_LISTS
from twins.training import STILL, moved, online, passes_of, shares, task_of

from tunesmith import Pools, tune
from tunesmith.learn import selectors, updates
from tunesmith.learn.gains import Gain
from tunesmith.learn.gains import Kind as GainKind
from tunesmith.learn.online import Average, Online, Regime, Schedule, _Team
from tunesmith.learn.scale import measure
from tunesmith.metrics import Metric, get_metric
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


ONE_PASS = Schedule(passes=1, average="none")
MIRA = online(selectors.HopeFear(), updates.PassiveAggressive(0.05))


def after(world: World, tuner: Online, seed: int = 3) -> list[Array]:
    return passes_of(tuner, task_of(world[0], "wer"), world[1], seed)


def equal(left: list[Array], right: list[Array], tolerance: float = 1e-12) -> None:
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@few
@given(worlds, st.sampled_from([0.0, 1e-3, 0.05, 1.0]))
def test_hildreth_passive_aggressive_and_one_cutting_plane_agree_on_one_row(
    world: World, c: float
) -> None:
    closed = after(world, online(selectors.HopeFear(), updates.PassiveAggressive(c)))
    dual = after(world, online(selectors.HopeFear(), updates.Hildreth(c)))
    rule = updates.CuttingPlane(c, epsilon=0.0, planes=1)
    plane = after(world, online(selectors.HopeFear(), rule))
    equal(closed, dual)
    equal(closed, plane)


@few
@given(worlds)
def test_hildreth_on_one_hope_and_one_fear_is_mira(world: World) -> None:
    lists = after(world, online(selectors.Lists(1), updates.Hildreth(0.05)))
    equal(after(world, MIRA), lists)


@few
@given(worlds, st.sampled_from([0.01, 1.0]))
def test_relative_margin_without_a_bound_is_mira(world: World, price: float) -> None:
    inner = selectors.HopeFear(k=3)
    bounded = selectors.Bounded(inner, np.inf, price, 3)
    rules = (updates.PassiveAggressive(0.05), updates.CuttingPlane(0.05), updates.Hildreth())
    for rule in rules:
        equal(after(world, online(inner, rule)), after(world, online(bounded, rule)), 0.0)


@pytest.mark.parametrize(("bounded", "plain"), [("rm", "mira"), ("rm-cp", "mira-cp")])
@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_the_presets_agree_without_a_bound(bounded: str, plain: str, metric: str) -> None:
    pools = learnable(3)
    left = tune(pools, bounded, metric, options={"bound": "inf"}, threads=1)
    right = tune(pools, plain, metric, threads=1)
    assert left.weights == right.weights
    other = tune(pools, bounded, metric, options={"bound": 0.1}, threads=1)
    assert other.weights != right.weights


@dataclass(frozen=True, kw_only=True)
class MixedAlone(Regime):
    """Mixes a single learner too, which nobody needs."""

    @property
    def mixings(self) -> int:
        return self.mix


gain_kinds = st.sampled_from(["sentence", "background", "context"])
averages = st.sampled_from(["none", "all", "epoch"])


@few
@given(worlds, st.integers(1, 5), gain_kinds, averages)
def test_mixing_one_shard_is_serial(
    world: World, mix: int, gain: GainKind, average: Average
) -> None:
    schedule = Schedule(passes=3, average=average)
    serial = online(
        selectors.HopeFear(), updates.PassiveAggressive(0.05), Gain(gain), schedule=schedule
    )
    regime = MixedAlone(mix=mix)
    with counted_mixings() as mixed:
        found = after(world, replace(serial, regime=regime))
    assert len(mixed) == mix * len(found)
    equal(after(world, serial), found, 0.0)


@contextmanager
def counted_mixings() -> Iterator[list[None]]:
    """Take note of every mixing."""
    done, mix = list[None](), _Team.mix

    def counted(team: _Team) -> None:
        done.append(None)
        mix(team)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Team, "mix", counted)
        yield done


@few
@given(worlds, st.integers(1, 4))
def test_shards_of_the_same_sentences_are_one_learner(world: World, mix: int) -> None:
    """Each of two learners has a copy of every sentence, in the same order: their mean is both."""
    pools, weights = world
    tuner = replace(MIRA, schedule=Schedule(passes=3, shuffle=False, average="none"))
    twice = pools.subset([i for i in range(pools.sentences) for _ in "ab"])
    found = after((twice, weights), replace(tuner, regime=Regime(shards=2, mix=mix)))
    equal(after(world, tuner), found, 0.0)


def walked(lists: Lists, w: Array, share: Iterable[int]) -> Array:
    """Return the weights of a learner after its part of a pass, by hand."""
    for sentence in share:
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
    lists, own, wanted = Lists.of(pools, "wer"), [weights] * shards, list[Array]()
    for epoch in (1, 2, 3):
        parts = zip(own, shares(visiting_order(3, epoch, pools.sentences), shards), strict=True)
        own = [walked(lists, w, share) for w, share in parts]
        wanted.append(np.mean(own, axis=0))
        if moved([weights, *wanted][-2], wanted[-1]) <= STILL:
            break
    equal(after(world, replace(MIRA, regime=Regime(shards=shards, mix=0))), wanted)


@few
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(1, 3))
def test_mixing_averages_learners_that_pass_over_their_shards(
    seed: int, shards: int, mix: int
) -> None:
    """By hand: one learner per shard from common weights, averaged `mix` times in a pass."""
    rng = np.random.default_rng(seed)
    pools, weights = counted(rng, [6] * 12, 3), rng.normal(size=3)
    world, lists, wanted = (pools, weights), Lists.of(pools, "wer"), list[Array]()
    for epoch in (1, 2):
        before, order = weights, visiting_order(3, epoch, pools.sentences)
        pieces = [np.array_split(np.array(share), mix) for share in shares(order, shards)]
        for parts in zip(*pieces, strict=True):
            weights = np.mean([walked(lists, weights, part.tolist()) for part in parts], axis=0)
        wanted.append(weights)
        if moved(before, weights) <= STILL:
            break
    regime, schedule = Regime(shards=shards, mix=mix), Schedule(passes=2, average="none")
    equal(after(world, replace(MIRA, schedule=schedule, regime=regime)), wanted)


@few
@given(worlds)
def test_batches_of_one_are_serial_and_a_batch_sees_one_weight_vector(world: World) -> None:
    pools, weights = world
    schedule = Schedule(passes=1, shuffle=False, average="none")
    tuner = online(selectors.HopeFear(), updates.Sgd("hinge", 0.1), schedule=schedule)
    lists, alone = Lists.of(pools, "wer"), weights
    for sentence in range(pools.sentences):
        alone = alone + 0.1 * hinge_gradient(lists, alone, [sentence])
    equal(after(world, tuner), [alone])
    (found,) = after(world, replace(tuner, regime=Regime(batch=pools.sentences)))
    gradient = hinge_gradient(lists, weights, range(pools.sentences))
    np.testing.assert_allclose(found, weights + 0.1 * gradient, rtol=1e-12, atol=1e-12)


def hinge_gradient(lists: Lists, w: Array, sentences: Iterable[int]) -> Array:
    """Return the sum of hope minus fear where the fear is too near, by hand."""
    gradient = np.zeros(len(w))
    for features, stats in ((lists.features[i], lists.stats[i]) for i in sentences):
        if len(features):
            gain, scores = lists.sentence_gain(stats), features @ w
            a, b = int(np.argmax(scores + gain)), int(np.argmax(scores - gain))
            if gain[a] - gain[b] > scores[a] - scores[b]:
                gradient += features[a] - features[b]
    return gradient


def test_an_update_scaled_by_the_oracle_takes_that_part_of_the_step() -> None:
    pools = counted(np.random.default_rng(4), [5], 3)
    lists, w = Lists.of(pools, "wer"), np.zeros(3)
    gain = lists.sentence_gain(lists.stats[0])
    world = pools, w
    for make in (updates.PassiveAggressive, updates.Hildreth):
        (whole,), (part,), (half,) = (
            after(world, online(selectors.HopeFear(), rule, schedule=ONE_PASS))
            for rule in (make(0.05), make(0.05, 1.0, True), make(0.05, 0.5))
        )
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
        for row, (a, b) in enumerate(pairwise(rows["starts"])):
            ids, x = rows["ids"][a:b], rows["values"][a:b]
            loss = rows["gains"][row] - rows["offsets"][row] - w[ids] @ x
            if loss > 0 and len(x):
                w[ids] += min(self.c, loss / (x @ x)) * x
        return w, state + 1


def hope_fear(scores: Array, gain: Array, seed: int) -> Sequence[tuple[int, int]]:
    return [(int(np.argmax(scores + gain)), int(np.argmax(scores - gain)))]


@few
@given(worlds, gain_kinds)
def test_a_selector_and_a_rule_in_python_give_the_native_weights(
    world: World, gain: GainKind
) -> None:
    native, rule = updates.PassiveAggressive(0.05), updates.Custom(PassiveAggressive(0.05))
    wanted = after(world, online(selectors.HopeFear(), native, Gain(gain)))
    equal(after(world, online(selectors.Custom(hope_fear), native, Gain(gain))), wanted)
    equal(after(world, online(selectors.HopeFear(), rule, Gain(gain))), wanted)
    equal(after(world, online(selectors.Custom(hope_fear), rule, Gain(gain))), wanted)


@few
@given(worlds)
def test_a_rule_in_python_respects_bounds_and_fixed_weights(world: World) -> None:
    pools, weights = world
    lower, upper = np.full(len(weights), -0.5), np.full(len(weights), 0.5)
    lower[0] = upper[0] = 0.25
    task = task_of(pools, "wer", lower, upper)
    start = task.clip(weights)
    rule = updates.Custom(PassiveAggressive(0.5))
    own = passes_of(online(selectors.HopeFear(), rule), task, start, 1)
    native = online(selectors.HopeFear(), updates.PassiveAggressive(0.5))
    equal(own, passes_of(native, task, start, 1))
    assert all(w[0] == 0.25 and (lower <= w).all() and (w <= upper).all() for w in own)


# When passes end.


def passes_with(stop: float, passes: int = 40) -> list[Any]:
    """Return the epochs of a learner whose steps become half as large from pass to pass."""
    schedule = Schedule(passes=passes, average="none", slow_down=0.5, stop=stop)
    tuner = online(
        selectors.HopeFear(), updates.PassiveAggressive(0.05), Gain("context"), schedule=schedule
    )
    return list(tuner.epochs(task_of(learnable(3), "bleu"), np.full(4, 0.1), 1))


def test_training_stops_when_in_three_passes_no_weight_moved_by_more() -> None:
    whole = passes_with(0.0)
    moves = [epoch.facts["weight_change"] for epoch in whole]
    assert len(whole) == 40 and moves[0] > 0.01 > moves[-1]
    for stop in (0.01, 1e-3, 1e-6):
        last = next(n for n in range(2, 40) if max(moves[n - 2 : n + 1]) <= stop)
        found = passes_with(stop)
        assert len(found) == last + 1 < 40
        assert [epoch.last for epoch in found] == [False] * last + [True]
        equal([epoch.weights for epoch in found], [e.weights for e in whole[: last + 1]], 0.0)


def test_a_resumed_run_remembers_how_far_weights_moved() -> None:
    whole = passes_with(1e-3)
    schedule = Schedule(passes=40, average="none", slow_down=0.5, stop=1e-3)
    tuner = online(
        selectors.HopeFear(), updates.PassiveAggressive(0.05), Gain("context"), schedule=schedule
    )
    for done in range(1, len(whole)):
        task = task_of(learnable(3), "bleu")
        rest = list(tuner.epochs(task, np.full(4, 0.1), 1, whole[done - 1].state))
        assert [e.number for e in rest] == [e.number for e in whole[done:]]
        equal([e.weights for e in rest], [e.weights for e in whole[done:]], 0.0)


def test_a_pass_without_updates_is_the_last() -> None:
    """Weights that rank every list by its gains violate nothing."""
    pools = Pools.from_arrays([[1.0], [0.0], [2.0], [0.5]], [0, 2, 4], ["f"])
    pools.set_statistics("wer", [[1, 10], [5, 10], [0, 10], [7, 10]])
    epochs = list(MIRA.epochs(task_of(pools, "wer"), np.array([10.0]), 1))
    assert [(e.number, e.last, e.facts["updates"]) for e in epochs] == [(1, True, 0)]
    epochs = list(MIRA.epochs(task_of(pools, "wer"), np.array([-0.05]), 1))
    assert [e.number for e in epochs] == [1, 2, 3]
    assert all(e.facts["updates"] for e in epochs)


@pytest.mark.parametrize("preset", ON_LISTS)
def test_a_metric_in_python_gives_the_native_weights(preset: str) -> None:
    """Word error rate, once native and once from its own statistics in Python."""

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


MARGIN = ("mira", "mira-hildreth", "mira-cp", "rm", "rm-cp")


@few
@given(worlds, st.sampled_from(MARGIN), st.sampled_from([0.25, 4.0, 1024.0]))
def test_the_size_of_the_start_weights_does_not_matter_where_it_is_measured(
    world: World, preset: str, factor: float
) -> None:
    """C, B, D and gains count in units of what the scores spread over."""
    pools, start = world
    assume(measure(pools, start, 0).spread > 1e-6)
    tuner = cast(Online, make_tuner(preset, {"passes": 3, "normalise": False}))
    small, large = (after((pools, size * start), tuner) for size in (1.0, factor))
    equal([factor * weights for weights in small], large, 1e-7 * factor)
    # What `bound=auto` is in this unit.
    bound = {"bound": 2.0} if preset.startswith("rm") else {}
    options = {"passes": 3, "normalise": False, "spread": 0, **bound}
    plain = cast(Online, make_tuner(preset, options))
    unit = measure(pools, start, 0).spread
    equal([weights / unit for weights in small], after((pools, start / unit), plain), 1e-7)


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from(MARGIN), st.integers(0, 3))
def test_the_unit_of_a_feature_does_not_matter_where_features_are_measured(
    seed: int, preset: str, place: int
) -> None:
    rng = np.random.default_rng(seed)
    pools, start = counted(rng, [5, 4, 5, 3], 4), rng.normal(size=4)
    rows, ids, values = pools.core.csr()
    assume(len(values) == 4 * pools.hypotheses)
    factors = np.ones(4)
    factors[place] = 8.0
    texts = pools.core.texts(np.arange(pools.hypotheses))
    other = Pools.from_arrays(
        (rows, ids, values * factors[ids]), pools.core.starts, pools.names, texts, None
    )
    metric = get_metric("wer")
    other.set_statistics(metric, pools.table(metric).rows())
    tuner = cast(Online, make_tuner(preset, {"passes": 3}))
    wanted = after((pools, start), tuner)
    found = after((other, start / factors), tuner)
    equal([weights / factors for weights in wanted], found, 1e-7)
