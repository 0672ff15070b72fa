"""On the lists that Moses tuned on, every figure of Moses is reached."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tunesmith import Pools, _core, get_metric, read_pools, tune
from tunesmith.formats.weights import read_moses_ini
from tunesmith.spaces.moments import recover_weights

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
LISTS = ROOT / "multi30k-moses" / "nbest"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not LISTS.is_dir(), reason=f"the shared data are not at {LISTS}"),
]
METRIC = "bleu:tokenize=none"


@pytest.fixture(scope="module")
def merged() -> Pools:
    files = [LISTS / f"run{run}.best100.out.gz" for run in range(1, 9)]
    return read_pools(files, ROOT / "multi30k" / "val.en.gz")


def test_the_eight_lists_hold_the_hypotheses_that_moses_counted(merged: Pools) -> None:
    assert (merged.sentences, merged.hypotheses, len(merged.names)) == (1014, 231_843, 14)


def test_the_weights_behind_the_first_lists_are_those_of_the_untuned_decoder(
    merged: Pools,
) -> None:
    known = read_moses_ini(ROOT / "multi30k-moses" / "moses.untuned.ini")
    for pools in (merged.origin, Pools(_core.read_moses(LISTS / "run1.best100.out.gz"))):
        found = recover_weights(pools)
        assert found is not None
        # Moses' tuning scales the weights of its first run to sum to one.
        wanted = np.array([known[name] for name in pools.names])
        wanted /= np.abs(wanted).sum()
        np.testing.assert_allclose(found.vector(pools.names), wanted, rtol=0, atol=1e-3)


def test_the_start_is_the_untuned_decoder_and_unlike_it_in_a_few_sentences(
    merged: Pools,
) -> None:
    """Its own 1-best output scores 39.05; the lists were made in another run."""
    assert round(merged.score(get_metric(METRIC), merged.first()), 2) == 39.04
    path = ROOT / "multi30k-moses" / "output" / "untuned.val.en.gz"
    outputs = [line.strip() for line in _core.Lines(path)]
    same = sum(a == b for a, b in zip(outputs, merged.outputs(merged.first()), strict=True))
    assert same == 1014 - 25
    score = get_metric(METRIC).corpus_score(outputs, merged.references or [])
    assert round(score, 2) == 39.05


def test_mert_reaches_what_moses_reaches(merged: Pools) -> None:
    result = tune(merged, "mert", METRIC, threads=2)
    assert result.refused is None
    assert result.tuned >= 41.0
    # What was promised on the lists is what sacreBLEU's formula gives for the chosen lines.
    outputs = merged.outputs(merged.best(result.weights))
    assert get_metric(METRIC).corpus_score(outputs, merged.references or []) == result.tuned


def test_batch_mira_reaches_what_moses_reaches(merged: Pools) -> None:
    result = tune(merged, "kbmira", METRIC, threads=2)
    assert result.refused is None
    assert result.tuned >= 40.4
