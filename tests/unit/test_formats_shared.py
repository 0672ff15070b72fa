"""The lists of real decoders, read whole and written back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tunesmith import _core
from tunesmith.formats import read_nbest, read_references, weights, write_nbest

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"the shared data are not at {ROOT}"),
]

LISTS = {
    "multi30k-moses/nbest/run1.best100.out.gz": (1014, 70215, 14),
    "multi30k-moses/test_2016.mira.cube1000.best10.gz": (1000, None, 14),
    "multi30k-cdec/val.first300.500best.gz": (300, 120700, 12),
    "multi30k-cdec/test_2016.first300.pop200.best10.gz": (300, None, 12),
    "nbest-asr/dev_clean.nbest.gz": (2703, None, 3),
    "nbest-asr/test_clean.nbest.gz": (2620, None, 3),
    "nbest-nmt/fairseq7.dev.nbest.gz": (1222, None, 5),
    "nbest-nmt/wmt21-systems.nbest.gz": (1000, None, 20),
}


@pytest.mark.parametrize("name", LISTS)
def test_real_lists(tmp_path: Path, name: str) -> None:
    sentences, hypotheses, features = LISTS[name]
    pools, skipped = read_nbest(ROOT / name)
    assert skipped == []
    assert (pools.sentences, len(pools.names)) == (sentences, features)
    assert hypotheses is None or pools.hypotheses == hypotheses
    assert np.diff(pools.starts).min() > 0
    for format in ("moses", "cdec"):
        path = tmp_path / f"{format}.zst"
        write_nbest(pools, path, format)
        again = read_nbest(path, format).pools
        every = np.arange(pools.hypotheses)
        assert again.texts(every) == pools.texts(every)
        assert np.array_equal(again.scores, pools.scores)
        assert sorted(again.names) == sorted(pools.names)
        for at in range(0, pools.hypotheses, 997):
            assert dict(again.features(at)) == dict(pools.features(at))
            assert again.extra(at) == pools.extra(at)


def test_the_eight_lists_have_the_lines_that_moses_wrote() -> None:
    folder = ROOT / "multi30k-moses" / "nbest"
    parts = [_core.read_moses(folder / f"run{run}.best100.out.gz") for run in range(1, 9)]
    assert sum(part.hypotheses for part in parts) // 1000 == 610
    merged = _core.Pools.merge(parts)
    assert merged.hypotheses == 231_843
    assert len(merged.names) == 14


def test_scores_are_the_weighted_features() -> None:
    folder = ROOT / "multi30k-moses"
    pools = read_nbest(folder / "test_2016.mira.cube1000.best10.gz").pools
    known = weights.read_moses_ini(folder / "moses.mira.ini")
    assert set(pools.names) <= set(known)
    # Unknown words weigh in the total but are not listed; most sentences have none.
    totals = np.array(
        [
            sum(known[name] * value for name, value in pools.features(at))
            for at in range(pools.hypotheses)
        ]
    )
    gap = pools.scores - totals
    unknown = np.round(gap / -100) * -100
    assert np.abs(gap - unknown).max() < 0.01


def test_cdec_weights_belong_to_cdec_lists() -> None:
    folder = ROOT / "multi30k-cdec"
    names = read_nbest(folder / "val.first300.500best.gz").pools.names
    for path in sorted(folder.glob("weights.*")):
        assert set(names) <= set(weights.read_cdec(path)), path


def test_references_of_real_lists() -> None:
    pools = read_nbest(ROOT / "nbest-nmt" / "wmt21-systems.nbest.gz").pools
    paths = sorted((ROOT / "nbest-nmt").glob("wmt21-systems.ref.*.gz"))
    read = read_references(paths, sentences=pools.sentences)
    assert {len(texts) for texts in read.texts} == {2}
    assert not read.blank
    assert all(re.search(r"\S", text) for texts in read.texts for text in texts)
