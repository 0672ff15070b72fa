"""Selectors on lists made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from twins.lists import Array
from twins.training import task_of

from tunesmith import InputError, Pools, _core
from tunesmith.learn import selectors
from tunesmith.learn.selectors import Selector

# Scores under the weight 1 and errors of ten words; gains are 1 - errors / 10.
SCORES = [3.0, 2.0, 1.0, 0.0]
ERRORS = [5, 2, 1, 9]


def pairs_of(
    selector: Selector, texts: list[str] | None = None, scores: Sequence[float] = SCORES
) -> list[tuple[int, int]]:
    """Return the pairs that a selector chooses, found by their marks."""
    count = len(scores)
    marks = np.column_stack([scores, np.eye(count)])
    names = ["score", *(f"is{i}" for i in range(count))]
    pools = Pools.from_arrays(marks, [0, count], names, texts or [f"t{i}" for i in range(count)])
    pools.set_statistics("wer", [[errors, 10] for errors in ERRORS[:count]])
    task, weights = task_of(pools, "wer"), np.array([1.0] + [0.0] * count)
    sampler = _core.Sampler(pools.core, task.table, task.metric.native, len(weights))
    rows = sampler.rows(selector.kernel(), weights).arrays()
    found = []
    for a, b in pairwise(rows["starts"]):
        marked = dict(zip(rows["ids"][a:b].tolist(), rows["values"][a:b].tolist(), strict=True))
        better = [i for i in range(count) if marked.get(i + 1) == 1.0]
        worse = [i for i in range(count) if marked.get(i + 1) == -1.0]
        found.append((better[0], worse[0]))
    return found


@pytest.mark.parametrize(
    ("oracle", "prediction", "k", "pair"),
    [
        ("M-C", "M+C", 0, (0, None)),  # hope 3.5, fear 2.5 are one and the same
        ("LU", "PB", 0, (2, 0)),
        ("LU", "MC", 0, (2, 3)),
        ("MB", "PB", 0, (2, 0)),
        ("LU", "PB", 2, (1, 0)),  # of the two best-scoring
        ("MB", "PB", 2, (2, 0)),  # of all
        ("LU", "MC", 3, (2, 0)),
        ("MB", "MC", 2, (2, 0)),
        ("M-C", "MC", 0, (0, 3)),
        ("LU", "M+C", 0, (2, 0)),
    ],
)
def test_oracles_and_predictions_of_eidelman(
    oracle: Any, prediction: Any, k: int, pair: tuple[int, int | None]
) -> None:
    wanted = [] if pair[1] is None else [pair]
    assert pairs_of(selectors.HopeFear(oracle, prediction, k)) == wanted


def test_hopes_lie_nearer_to_the_models_best_the_less_gains_count() -> None:
    # Scores fall and gains rise: only large differences in gain make up for the scores.
    chosen = [pairs_of(selectors.HopeFear("M-C", "PB", beta=beta)) for beta in (1.0, 5.0, 100.0)]
    assert chosen == [[], [(1, 0)], [(2, 0)]]
    assert pairs_of(selectors.HopeFear("LU", "PB", beta=0.1)) == [(2, 0)]


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="M-C, LU or MB"):
        selectors.HopeFear(oracle="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"M\+C, PB or MC"):
        selectors.HopeFear(prediction="worst")  # type: ignore[arg-type]


def test_lists_of_hopes_and_fears() -> None:
    # Hopes by s + G: 3.5, 2.8, 1.9; fears by s - G: 2.5, 1.2, 0.1 — the same order.
    assert pairs_of(selectors.Lists(2)) == [(1, 0)]
    assert pairs_of(selectors.Lists(3)) == [(1, 0), (2, 0), (2, 1)]
    # Everyone against the best hope, which is 0: only 3 is worse.
    assert pairs_of(selectors.Lists(2, model=True)) == []
    assert pairs_of(selectors.Lists(4, model=True)) == [(0, 3)]


def test_lists_are_unique_by_string() -> None:
    texts = ["same", "same", "c", "d"]
    # 1 has the text of 0, which is the better hope and the better fear.
    assert pairs_of(selectors.Lists(2), texts) == [(2, 0)]


def test_the_model_list_adds_what_neither_hopes_nor_fears_hold() -> None:
    scores = [0.30, 0.29, 0.28, 0.0]
    # Hopes: 2 (1.18); fears: 3 (-0.1); model: 0.
    assert pairs_of(selectors.Lists(1), scores=scores) == [(2, 3)]
    assert pairs_of(selectors.Lists(1, model=True), scores=scores) == [(2, 0), (2, 3)]


def test_pairs_below_the_threshold_are_not_kept() -> None:
    every = set(pairs_of(selectors.Pairs(500, 0.0, 0)))
    assert every == {(1, 0), (2, 0), (2, 1), (0, 3), (1, 3), (2, 3)}
    assert set(pairs_of(selectors.Pairs(500, 0.45, 0))) == {(1, 3), (2, 3)}
    # The most different first.
    assert pairs_of(selectors.Pairs(500, 0.05, 3)) == [(2, 3)] * 3


def test_bounds_come_after_the_inner_constraints() -> None:
    """Rows of the first round only are asked for here: they are the inner selector's."""
    inner = selectors.HopeFear("LU", "PB")
    assert pairs_of(selectors.Bounded(inner, 1.0, 0.01)) == pairs_of(inner)


def test_a_selector_in_python_sees_scores_gains_and_a_seed() -> None:
    seen: list[tuple[Array, Array, int]] = []

    def choose(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
        seen.append((scores, gains, seed))
        return [(2, 3), (np.int64(1), 0)]  # type: ignore[list-item]

    assert pairs_of(selectors.Custom(choose)) == [(2, 3), (1, 0)]
    ((scores, gains, seed),) = seen
    assert scores.tolist() == SCORES
    np.testing.assert_allclose(gains, [0.5, 0.8, 0.9, 0.1])
    assert isinstance(seed, int)


def test_the_seed_of_a_python_selector_depends_on_seed_epoch_and_sentence() -> None:
    seen: list[int] = []

    def choose(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
        seen.append(seed)
        return []

    pools = Pools.from_arrays(np.ones((3, 1)), [0, 1, 2, 3], ["f"])
    pools.set_statistics("wer", np.ones((3, 2)))
    task, chooser = task_of(pools, "wer"), selectors.Custom(choose)
    for seed, epoch in [(1, 1), (1, 2), (2, 1), (1, 1)]:
        sampler = _core.Sampler(pools.core, task.table, task.metric.native, 1)
        sampler.rows(chooser.kernel(), np.zeros(1), seed, epoch, 1)
    assert len(set(seen[:9])) == 9
    assert seen[9:] == seen[:3]
