"""What every preset keeps, whatever the lists: limits, seeds, threads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twins.lists import METRICS, Array, counted, learnable
from twins.quick import ON_LISTS, QUICK
from twins.training import task_of

from tunesmith import PRESETS, Pools, tune
from tunesmith.learn.online import deal, with_regime
from tunesmith.presets import make_tuner

every_preset = pytest.mark.parametrize("preset", ON_LISTS)
few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def lists() -> Pools:
    return learnable(5, empty=[3])


def epochs(
    preset: str,
    pools: Pools,
    metric: Any = "bleu",
    seed: int = 1,
    start: Array | None = None,
    lower: float | Array = -np.inf,
    upper: float | Array = np.inf,
    threads: int = 1,
) -> list[Array]:
    task = task_of(pools, metric, lower, upper, threads)
    begin = task.clip(np.full(len(pools.names), 0.1) if start is None else start)
    return [e.weights for e in make_tuner(preset, QUICK[preset]).epochs(task, begin, seed, None)]


def test_every_preset_is_here() -> None:
    assert set(QUICK) == set(PRESETS)


@every_preset
def test_results_are_the_same_for_1_2_and_4_threads(preset: str) -> None:
    found = [epochs(preset, lists(), threads=threads) for threads in (1, 2, 4)]
    for other in found[1:]:
        assert len(other) == len(found[0])
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("preset", ["mira", "rm", "mira-hildreth"])
def test_mixed_shards_are_the_same_for_1_2_and_4_threads(preset: str) -> None:
    task = [task_of(lists(), "bleu", threads=threads) for threads in (1, 2, 4)]
    tuner = with_regime(make_tuner(preset, QUICK[preset]), "shards=3,mix=2")
    found = [[e.weights for e in tuner.epochs(one, np.zeros(4), 1, None)] for one in task]
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 5))
def test_shards_have_as_many_sentences_and_words(words: list[int], shards: int) -> None:
    found = deal(len(words), [float(count) for count in words], shards)
    assert len(found) == len(words)
    own = [np.flatnonzero(found == shard) for shard in range(shards)]
    assert sum(map(len, own)) == len(words)
    counts = [len(shard) for shard in own]
    totals = [sum(words[i] for i in shard.tolist()) for shard in own]
    assert max(counts) - min(counts) <= 1
    assert max(totals) - min(totals) <= max(words, default=0)


@every_preset
def test_the_same_seed_gives_the_same_weights(preset: str) -> None:
    first, again, other = (epochs(preset, lists(), seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    if preset in ("risk", "grid", "mbuu", "ebuu"):
        assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    elif preset != "mert":  # several ways may lead to one optimum
        assert not np.array_equal(first[0], other[0])


@every_preset
def test_fixed_weights_never_move(preset: str) -> None:
    lower, upper = np.full(4, -np.inf), np.full(4, np.inf)
    lower[2] = upper[2] = 0.3
    found = epochs(preset, lists(), lower=lower, upper=upper)
    assert all(w[2] == 0.3 for w in found)
    assert not np.array_equal(found[-1], [0.1, 0.1, 0.3, 0.1])


@every_preset
@few
@given(
    st.integers(0, 2**32 - 1),
    st.floats(-1, 0.5),
    st.floats(0.01, 1),
    st.lists(st.integers(0, 5), min_size=2, max_size=4).filter(any),
    st.booleans(),
)
def test_bounds_hold_after_every_epoch(
    preset: str, seed: int, low: float, width: float, sizes: list[int], coarse: bool
) -> None:
    rng = np.random.default_rng(seed)
    pools = counted(rng, sizes, 3, coarse=coarse)
    lower, upper = np.full(3, low), np.full(3, low + width)
    lower[0] = upper[0] = low
    start = rng.normal(size=3)
    for w in epochs(preset, pools, "wer", 1, start, lower, upper):
        assert (lower <= w).all() and (w <= upper).all()
        assert w[0] == low


@every_preset
@few
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any),
    st.booleans(),
    st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_weights_stay_finite(
    preset: str, seed: int, sizes: list[int], zero: bool, size: float
) -> None:
    rng = np.random.default_rng(seed)
    pools = counted(rng, sizes, 2, coarse=True)
    start = np.zeros(2) if zero else rng.normal(size=2) * size
    assert all(np.isfinite(w).all() for w in epochs(preset, pools, "wer", 1, start))


@pytest.mark.parametrize("metric", sorted(METRICS))
@every_preset
def test_every_preset_learns_for_every_metric(preset: str, metric: str) -> None:
    """The grid: at or above the start on the lists, or refused with a reason."""
    pools = lists_of_the_grid()
    chosen = METRICS[metric]
    result = tune(pools, preset, chosen, options=QUICK[preset], threads=1)
    assert all(np.isfinite(value) for value in result.weights.values())
    better = result.tuned >= result.start
    if metric in ("ter", "wer", "cer"):
        better = result.tuned <= result.start
    assert better or result.refused
    # There is a feature that knows better: everyone finds some of it.
    assert result.refused is None
    assert result.tuned != result.start
    assert result.weights["quality"] > 0


@cache
def lists_of_the_grid() -> Pools:
    return learnable(11, sentences=14)
