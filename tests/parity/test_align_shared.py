"""Alignment and symmetrisation against what the other tools of Multi30k were given."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tunesmith.training.aligners import Aligned, fast_align
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


def test_fast_align_finds_the_links_of_the_authors_program(tmp_path: Path) -> None:
    text = ROOT / "multi30k"
    out = Aligned(tmp_path / "forward", tmp_path / "backward")
    told = fast_align(text / "train.de.gz", text / "train.en.gz", out)
    assert told["pairs"] == 29_000
    for path, name in ((out.forward, "fwd"), (out.backward, "rev")):
        theirs = gzip.decompress((ROOT / "multi30k-moses" / f"{name}.align.gz").read_bytes())
        pairs = [
            (set(one.split()), set(other.split()))
            for one, other in zip(
                path.read_text().splitlines(), theirs.decode().splitlines(), strict=True
            )
        ]
        shared = sum(len(one & other) for one, other in pairs)
        assert 2 * shared / sum(len(one) + len(other) for one, other in pairs) > 0.995
