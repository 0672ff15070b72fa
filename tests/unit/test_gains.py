"""Gains in context where several learners share a corpus, and ties that no sign may break."""

from __future__ import annotations

import numpy as np
import pytest
from twins import gaining, selecting, updating
from twins.drawing import visiting_order
from twins.lists import Array, Lists, counted, learnable
from twins.training import passes_of, task_of

from tunesmith import Pools, _core, gains, select, update
from tunesmith.drivers import Online


def mixed(lists: Lists, w: Array, passes: int, shards: int, mix: int) -> list[Array]:
    """Mixing by hand: each shard follows its own choices from what all chose before the epoch."""
    own, found = [gaining.ContextGain(lists) for _ in range(shards)], []
    for epoch in range(1, passes + 1):
        order = np.array(visiting_order(3, epoch, len(lists.features)))
        for part in np.array_split(order, mix):
            ends = []
            for shard, gain in zip(np.array_split(part, shards), own, strict=True):
                v = w
                for i in shard.tolist():
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
    online = Online(
        select.hope_fear(),
        update.passive_aggressive(0.05),
        gains.context(),
        passes=3,
        average="none",
        shards=shards,
        mix=mix,
    )
    native = passes_of(online, task_of(pools, "bleu"), start, 3)
    twin = mixed(lists, start, 3, shards, 1 if shards == 1 else mix)
    for found, wanted in zip(native, twin, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_statistics_of_another_corpus_are_refused() -> None:
    pools = learnable(1, 3, 4)
    task = task_of(pools, "bleu")
    learner = _core.Learner(
        pools.core, task.table, task.metric.native, select.hope_fear(), update.perceptron(),
        np.zeros(4), gain="context",
    )  # fmt: skip
    with pytest.raises(ValueError, match="another corpus"):
        learner.set_context(np.zeros((2, 9)))


def test_weights_of_zero_keep_the_order_of_the_list() -> None:
    """0 · -1 is -0: the k best of a list that nobody has scored are its first k."""
    features = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    pools = Pools.from_arrays(features, [0, 4], ["f"], ["a", "b", "c", "d"])
    pools.set_statistics("wer", [[5, 10], [9, 10], [1, 10], [1, 10]])
    task = task_of(pools, "wer")

    def chosen(selector: _core.Selector) -> list[float]:
        sampler = _core.Sampler(pools.core, task.table, task.metric.native, 1)
        rows = sampler.rows(selector, np.zeros(1))
        return rows.arrays()["values"].tolist()

    # The best and the worst of the first two, and of the first three.
    assert chosen(select.hope_fear("LU", "MC", k=2)) == [-1.0 - 1.0]
    assert chosen(select.hope_fear("LU", "MC", k=3)) == [-2.0 - 1.0]
    assert chosen(select.lists(1)) == [-2.0 - 1.0]


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
            pools.core, task.table, task.metric.native, select.hope_fear(),
            update.passive_aggressive(0.05), np.zeros(3), gain=kind, gain_scale="background",
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
        pools.core, task.table, task.metric.native, select.hope_fear(), update.arow(), np.zeros(3),
        gain=kind,
    )  # fmt: skip
    with pytest.raises(ValueError, match="another learner"):
        other.restore(*(whole.state()[p] for p in ("weights", "lag", "steps", "gain", "update")))
