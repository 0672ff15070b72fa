"""A forest built from a list behaves as the list, for every preset and every metric of text."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twins.lists import METRICS, Array, learnable
from twins.quick import ON_LISTS, QUICK
from twins.training import task_of

from tunesmith import Forests, Pools, tune
from tunesmith.metrics import get_metric
from tunesmith.presets import make_tuner
from tunesmith.spaces import Spaces

few = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
TEXT_METRICS = sorted(name for name in METRICS if name != "column")


@cache
def decoded(seed: int) -> tuple[Pools, Array]:
    """Return lists as a decoder gives them: distinct strings, best first under the start weights.

    Distinct, because lists of a forest hold each string once; best first, because gains in context
    start from what stands first in a list and is best in a forest. Features are in quarters, so
    that sums under the start weights do not depend on their order, and every other hypothesis has
    one more: where all have the same, a list is scored in another order of additions than a forest,
    and a last digit is all that L-BFGS needs to stop elsewhere.
    """
    made = learnable(seed, empty=[3])
    rows, ids, values = made.core.csr()
    weights = np.array([0.25, 0.5, -0.25, 0.125, 0.0])
    starts, texts, features, first = made.core.starts, [], [], [0]
    matrix = np.zeros((made.hypotheses, len(weights)))
    for at in range(made.hypotheses):
        matrix[at, ids[rows[at] : rows[at + 1]]] = np.round(4 * values[rows[at] : rows[at + 1]]) / 4
    every = made.core.texts(np.arange(made.hypotheses))
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        seen: set[str] = set()
        for at in sorted(range(a, b), key=lambda at: -float(matrix[at] @ weights)):
            if every[at] not in seen:
                seen.add(every[at])
                texts.append(every[at])
                features.append(matrix[at])
                features[-1][-1] = len(features) % 2
        first.append(len(texts))
    every_id = [np.flatnonzero(row) for row in features]
    rows = np.cumsum([0, *map(len, every_id)])
    kept = [row[ids] for row, ids in zip(features, every_id, strict=True)]
    sparse = rows, np.concatenate(every_id), np.concatenate(kept)
    lists = Pools.from_arrays(sparse, first, [*made.names, "odd"], texts, made.references)
    return lists, weights


# MERT looks for points to start from on lists, and climbs over forests from the best of them only.
OPTIONS = {**QUICK, "mert": {**QUICK["mert"], "restarts": 0}}


def epochs(preset: str, spaces: Spaces, start: Array, metric: Any, seed: int) -> list[Array]:
    task = task_of(spaces, metric, threads=1)
    return [e.weights for e in make_tuner(preset, OPTIONS[preset]).epochs(task, start, seed, None)]


@pytest.mark.parametrize("preset", ON_LISTS)
@few
@given(seed=st.integers(0, 3), metric=st.sampled_from(TEXT_METRICS))
def test_every_preset_learns_the_same(preset: str, seed: int, metric: str) -> None:
    lists, start = decoded(seed)
    forests = Forests.of_lists(lists)
    wanted = epochs(preset, lists, start, METRICS[metric], seed)
    found = epochs(preset, forests, start, METRICS[metric], seed)
    assert len(found) == len(wanted)
    if preset == "mert":
        # On lists a step along an axis is added to scores, on forests scores are computed anew.
        assert found == [pytest.approx(each, rel=1e-12) for each in wanted]
    else:
        assert np.array_equal(found, wanted)


@few
@given(seed=st.integers(0, 3))
def test_mert_with_restarts_climbs_no_lower_than_on_the_list(seed: int) -> None:
    lists, start = decoded(seed)
    wanted = tune(lists, "mert", "bleu", options=QUICK["mert"], start=start)
    options = {**QUICK["mert"], "coarse": 0.0}
    found = tune(Forests.of_lists(lists), "mert", "bleu", options=options, start=start)
    assert found.tuned >= wanted.tuned - 1e-9


def test_a_round_of_mert_over_forests_must_gain_more_where_there_are_restarts() -> None:
    lists, start = decoded(4)
    task = task_of(Forests.of_lists(lists), "bleu", threads=1)

    def moves(restarts: int, coarse: float) -> list[Any]:
        tuner = make_tuner("mert", {"restarts": restarts, "coarse": coarse})
        return [epoch.facts["updates"] for epoch in tuner.epochs(task, -start, 1, None)]

    # No round gains a hundred points: each climb is one round.
    assert moves(2, 1.0)[0] < moves(2, 0.0)[0]
    assert moves(0, 1.0) == moves(0, 0.0)


@pytest.mark.parametrize("preset", ["mert", "kbmira", "pro"])
def test_a_whole_run_is_the_same(preset: str) -> None:
    lists, start = decoded(1)
    options = OPTIONS[preset]
    wanted = tune(lists, preset, "bleu", options=options, start=start, folds=2)
    found = tune(Forests.of_lists(lists), preset, "bleu", options=options, start=start, folds=2)
    assert (found.start, found.oracle) == (wanted.start, wanted.oracle)
    assert found.tuned == pytest.approx(wanted.tuned, abs=1e-9)
    assert found.heldout == pytest.approx(wanted.heldout, abs=1e-9)
    assert dict(found.weights) == pytest.approx(dict(wanted.weights), rel=1e-6, abs=1e-9)


def test_what_is_projected_is_what_is_decoded() -> None:
    lists, start = decoded(2)
    forests = Forests.of_lists(lists)
    result = tune(forests, "mert", "bleu", options=QUICK["mert"], start=start)
    outputs = forests.outputs(forests.best(result.weights))
    assert forests.references is not None
    score = get_metric("bleu").corpus_score(outputs, forests.references)
    assert result.tuned == pytest.approx(score, abs=1e-9)
