"""Facts of several learners joined into those of one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tunesmith.learn.online import merge_facts


def facts(values: list[float], **more: Any) -> dict[str, Any]:
    """Return what a learner says of sentences whose gains and spreads are these numbers."""
    mean = float(np.mean(values))
    return {
        "visits": len(values),
        "updates": len(values) - 1,
        "loss": sum(values),
        "model": mean,
        "oracle": 2 * mean,
        "prediction": mean / 2,
        "spread": (mean, float(np.std(values))),
        "model_stats": np.array([sum(values), len(values)]),
        "oracle_stats": np.array([2 * sum(values), len(values)]),
        "prediction_stats": np.array([sum(values) / 2, len(values)]),
        **more,
    }


def test_facts_of_shards_are_those_of_all_their_sentences() -> None:
    shards = [[1.0, 4.0, 2.5], [0.5], [3.0, 7.0]]
    found = merge_facts([facts(values) for values in shards])
    whole = [value for values in shards for value in values]
    assert found["updates"] == len(whole) - len(shards)
    assert found["loss"] == pytest.approx(sum(whole))
    assert found["model"] == pytest.approx(np.mean(whole))
    assert found["oracle"] == pytest.approx(2 * np.mean(whole))
    assert found["prediction"] == pytest.approx(np.mean(whole) / 2)
    assert found["spread"]["mean"] == pytest.approx(np.mean(whole))
    assert found["spread"]["sd"] == pytest.approx(np.std(whole))
    stats = {name: total.tolist() for name, total in found["stats"].items()}
    total = sum(whole)
    assert stats == {"model": [total, 6], "oracle": [2 * total, 6], "prediction": [total / 2, 6]}


def test_equal_spreads_deviate_by_nothing_whatever_rounding_leaves() -> None:
    for value in (0.1, 0.3, 0.7, 1.1, 1e-9):
        found = merge_facts([facts([value]), facts([value, value]), facts([value] * 3)])
        assert isinstance(found["spread"]["sd"], float)
        assert found["spread"]["sd"] == pytest.approx(0.0, abs=1e-6)


def test_values_that_no_learner_observed_are_none() -> None:
    nothing = {"model": 0.0, "oracle": 0.0, "prediction": 0.0, "spread": (0.0, 0.0)}
    found = merge_facts([facts([1.0], **nothing)])
    assert [found[key] for key in nothing] == [None] * 4
    assert found["stats"] == {}
    found = merge_facts([facts([1.0], **{**nothing, "model": 0.5})])
    assert [found[key] for key in nothing] == [0.5, None, None, None]
    assert list(found["stats"]) == ["model"]
    assert merge_facts([])["updates"] == 0


def test_seconds_and_staleness_are_joined_where_there_is_a_decoder() -> None:
    clocks = [
        {"decode_seconds": 1.0, "optimise_seconds": 0.25, "staleness": 2},
        {"decode_seconds": 2.0, "optimise_seconds": 0.5, "staleness": 4},
    ]
    found = merge_facts([facts([1.0], **clock) for clock in clocks])
    assert (found["decode_seconds"], found["optimise_seconds"]) == (3.0, 0.75)
    assert found["staleness"] == {"mean": 3.0, "max": 4}
    assert "decode_seconds" not in merge_facts([facts([1.0])])
