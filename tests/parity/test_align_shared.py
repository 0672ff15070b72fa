"""Symmetrisation against the alignment that Multi30k's other tools were given."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tunesmith.training.alignment import symmetrise_files

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"the shared data are not at {ROOT}"),
]


def test_grow_diag_final_and_is_equal_on_every_line(tmp_path: Path) -> None:
    moses, text = ROOT / "multi30k-moses", ROOT / "multi30k"
    lines = symmetrise_files(
        moses / "fwd.align.gz",
        moses / "rev.align.gz",
        tmp_path / "links",
        texts=(text / "train.de.gz", text / "train.en.gz"),
    )
    assert lines == 29_000
    expected = gzip.decompress((moses / "aligned.grow-diag-final-and.gz").read_bytes())
    assert (tmp_path / "links").read_bytes() == expected
