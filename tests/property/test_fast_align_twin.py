"""The aligner against a slow twin that follows its definition with dictionaries."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.aligning import align

from tunesmith.training.aligners import Aligned, fast_align

sentence = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=7)
texts = st.lists(st.tuples(sentence, sentence), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(pairs=texts)
def test_links_are_the_twins_likeliest(pairs: list[tuple[list[str], list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in (0, 1):
            lines = "".join(" ".join(pair[side]) + "\n" for pair in pairs)
            (folder / str(side)).write_text(lines)
        out = Aligned(folder / "f", folder / "b")
        told = fast_align(folder / "0", folder / "1", out)
        links = [
            [
                {tuple(map(int, link.split("-"))) for link in line.split()}
                for line in path.read_text().splitlines()
            ]
            for path in (out.forward, out.backward)
        ]
    source, target = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for direction, (e, f) in enumerate([(source, target), (target, source)]):
        expected, tension = align(e, f)
        assert told["tensions"][direction] == pytest.approx(tension, rel=1e-4)
        for rows, found in zip(expected, links[direction], strict=True):
            for j, row in enumerate(rows):
                chosen = [link[direction] + 1 for link in found if link[1 - direction] == j]
                assert len(chosen) <= 1
                # Alike to rounding: either may win.
                assert row[chosen[0] if chosen else 0] == pytest.approx(max(row), rel=1e-4)
