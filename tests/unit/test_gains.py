"""Gains in context where several learners share a corpus, and ties that no sign may break."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from twins import gaining, selecting, updating
from twins.drawing import visiting_order
from twins.lists import Array, Lists, counted, learnable
from twins.training import online, passes_of, shares, task_of

from tunesmith import Pools, _core
from tunesmith.learn import selectors, updates
from tunesmith.learn.gains import Gain, Kind
from tunesmith.learn.online import Regime
from tunesmith.learn.selectors import Selector


def mixed(lists: Lists, w: Array, passes: int, shards: int, mix: int) -> list[Array]:
    """Mixing by hand: each shard follows its own choices from what all chose before the epoch."""
    own, found = [gaining.ContextGain(lists) for _ in range(shards)], []
    for epoch in range(1, passes + 1):
        order = visiting_order(3, epoch, len(lists.features))
        pieces = [np.array_split(np.array(share), mix) for share in shares(order, shards)]
        for parts in zip(*pieces, strict=True):
            ends = []
            for part, gain in zip(parts, own, strict=True):
                v = w
                for i in part.tolist():
                    f = lists.features[i]
                    if len(f):
                        g = gain(i)
                        a, b = selecting.hope_fear(f @ v, g)
                        best = int(np.argmax(f @ v))
                        v = updating.passive_aggressive(v, [(f[a] - f[b], g[a] - g[b])], 0.05)
                        gain.observe(i, best, a)
                ends.append(v)
            w = np.mean(ends, axis=0)
        for gain in own:
            gain.end_epoch(w)
        found.append(w)
    return found


@pytest.mark.parametrize(("shards", "mix"), [(1, 1), (2, 1), (3, 2), (2, 4)])
def test_mixed_learners_share_the_context_of_the_whole_corpus(shards: int, mix: int) -> None:
    pools = learnable(6, empty=[2])
    lists, start = Lists.of(pools, "bleu"), np.array([0.0, 0.1, -0.1, 0.2])
    tuner = online(
        selectors.HopeFear(),
        updates.PassiveAggressive(0.05),
        Gain("context"),
        regime=Regime(shards=shards, mix=mix),
    )
    native = passes_of(tuner, task_of(pools, "bleu"), start, 3)
    twin = mixed(lists, start, 3, shards, 1 if shards == 1 else mix)
    for found, wanted in zip(native, twin, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_statistics_of_another_corpus_are_refused() -> None:
    pools = learnable(1, 3, 4)
    task = task_of(pools, "bleu")
    learner = _core.Learner(
        pools.core, task.table, task.metric.native, selectors.HopeFear().kernel(),
        updates.Perceptron().kernel(), np.zeros(4), gain="context",
    )  # fmt: skip
    with pytest.raises(ValueError, match="another corpus"):
        learner.set_context(np.zeros((2, 9)))


def test_weights_of_zero_keep_the_order_of_the_list() -> None:
    """0 · -1 is -0: the k best of a list that nobody has scored are its first k."""
    features = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    pools = Pools.from_arrays(features, [0, 4], ["f"], ["a", "b", "c", "d"])
    pools.set_statistics("wer", [[5, 10], [9, 10], [1, 10], [1, 10]])
    task = task_of(pools, "wer")

    def chosen(selector: Selector) -> list[float]:
        sampler = _core.Sampler(pools.core, task.table, task.metric.native, 1)
        rows = sampler.rows(selector.kernel(), np.zeros(1))
        values: list[float] = rows.arrays()["values"].tolist()
        return values

    # The best and the worst of the first two, and of the first three.
    assert chosen(selectors.HopeFear("LU", "MC", k=2)) == [-1.0 - 1.0]
    assert chosen(selectors.HopeFear("LU", "MC", k=3)) == [-2.0 - 1.0]
    assert chosen(selectors.Lists(1)) == [-2.0 - 1.0]


def test_line_search_takes_minus_zero_for_zero() -> None:
    pools = Pools.from_arrays([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]], [0, 3], ["a", "b"])
    pools.set_statistics("wer", [[5, 10], [1, 10], [9, 10]])
    task = task_of(pools, "wer")
    search = _core.LineSearch(pools.core, task.table, task.metric.native, [0, 1], 1)
    walker = search.walker(np.array([2.0, 1.0]))
    for step, gain in (
        walker.axis(0, -np.inf, np.inf),
        walker.direction(np.array([1.0, 0.0]), -np.inf, np.inf),
    ):
        # The first of two equal hypotheses is chosen, so the better second is out of reach.
        assert gain == 0.5
        assert Lists.of(pools, "wer").corpus_gain(np.array([2.0 + step, 1.0])) == gain


@pytest.mark.parametrize("kind", ["sentence", "background", "context"])
def test_state_of_a_gain_is_restored(kind: str) -> None:
    pools = counted(np.random.default_rng(1), [5] * 6, 3)
    task, order = task_of(pools, "wer"), np.arange(6, dtype=np.uint32)

    def learner() -> _core.Learner:
        return _core.Learner(
            pools.core, task.table, task.metric.native, selectors.HopeFear().kernel(),
            updates.PassiveAggressive(0.05).kernel(), np.zeros(3), gain=kind,
            gain_scale="background",
        )  # fmt: skip

    whole, half = learner(), learner()
    whole.run(order, 1)
    half.restore(*(whole.state()[part] for part in ("weights", "lag", "steps", "gain", "update")))
    context = task.chosen(whole.weights)
    for one in (whole, half):
        one.set_context(context)
        one.run(order[::-1].copy(), 2)
    assert np.array_equal(whole.weights, half.weights)
    assert np.array_equal(whole.average, half.average)
    assert all(np.array_equal(a, half.state()[part]) for part, a in whole.state().items())
    other = _core.Learner(
        pools.core, task.table, task.metric.native, selectors.HopeFear().kernel(),
        updates.Arow().kernel(), np.zeros(3), gain=kind,
    )  # fmt: skip
    with pytest.raises(ValueError, match="another learner"):
        other.restore(*(whole.state()[p] for p in ("weights", "lag", "steps", "gain", "update")))


def test_only_gains_over_a_background_are_multiplied_by_its_length() -> None:
    assert [Gain(kind).scale for kind in get_args(Kind)] == ["one", "background", "one"]
    assert Gain("background", scale="length").scale == "length"
