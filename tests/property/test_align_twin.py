"""Symmetrisation against a slow twin that follows its definition with sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.training.alignment import HEURISTICS, symmetrise

Links = list[tuple[int, int]]
links = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14)


def twin(forward: Links, backward: Links, heuristic: str) -> Links:
    one, two = set(forward), set(backward)
    if heuristic == "union":
        return sorted(one | two)
    kept = one & two
    sources, targets = {link[0] for link in kept}, {link[1] for link in kept}

    def add(link: tuple[int, int]) -> None:
        kept.add(link)
        sources.add(link[0])
        targets.add(link[1])

    if heuristic != "intersection":
        changed = True
        while changed:
            changed = False
            for link in sorted((one | two) - kept):
                near = any(abs(link[0] - a) <= 1 and abs(link[1] - b) <= 1 for a, b in kept)
                if near and not (link[0] in sources and link[1] in targets):
                    add(link)
                    changed = True
    for direction in (one, two):
        for link in sorted(direction):
            covered = [link[0] in sources, link[1] in targets]
            if (heuristic.endswith("final") and not all(covered)) or (
                heuristic.endswith("final-and") and not any(covered)
            ):
                add(link)
    return sorted(kept)


@pytest.mark.parametrize("heuristic", HEURISTICS)
@given(forward=links, backward=links)
def test_equal_to_the_twin(heuristic: str, forward: Links, backward: Links) -> None:
    assert symmetrise(forward, backward, heuristic) == twin(forward, backward, heuristic)
