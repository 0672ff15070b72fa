"""Symmetrisation and Pharaoh files on small examples."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tunesmith.errors import InputError
from tunesmith.training.alignment import HEURISTICS, parse_links, symmetrise, symmetrise_files

FORWARD = [(0, 0), (0, 1), (3, 3)]
BACKWARD = [(0, 0), (4, 1)]
EXPECTED = {
    "intersection": [(0, 0)],
    "union": [(0, 0), (0, 1), (3, 3), (4, 1)],
    "grow-diag": [(0, 0), (0, 1)],
    "grow-diag-final": [(0, 0), (0, 1), (3, 3), (4, 1)],
    "grow-diag-final-and": [(0, 0), (0, 1), (3, 3)],
}


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_hand_made_sentence(heuristic: str) -> None:
    assert symmetrise(FORWARD, BACKWARD, heuristic) == EXPECTED[heuristic]


def test_an_unknown_heuristic_is_told_the_known_ones() -> None:
    with pytest.raises(ValueError, match="grow-diag-final-and"):
        symmetrise([], [], "grow")


@pytest.mark.parametrize("line", ["1", "a-b", "1-2-3", "-1-0", "0-1,", "99999999999-1"])
def test_what_is_no_link_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="is not a link"):
        parse_links(line)


def test_links_outside_the_sentence_are_refused() -> None:
    assert parse_links("1-2 0-0", (2, 3)) == [(1, 2), (0, 0)]
    with pytest.raises(InputError, match="target sentence of 2 words"):
        parse_links("1-2", (2, 2))
    with pytest.raises(InputError, match="65,535"):
        parse_links("70000-0")


def test_files_are_symmetrised_line_by_line(tmp_path: Path) -> None:
    forward, backward, out = (tmp_path / name for name in ("f.gz", "b", "out.gz"))
    forward.write_bytes(gzip.compress(b"0-0 0-1 3-3\n\n1-1"))
    backward.write_text("0-0 4-1\n\n1-1\n")
    assert symmetrise_files(forward, backward, out, threads=2) == 3
    assert gzip.decompress(out.read_bytes()) == b"0-0 0-1 3-3\n\n1-1\n"


def test_bad_files_are_named_with_the_line(tmp_path: Path) -> None:
    good, bad, out = (tmp_path / name for name in ("good", "bad", "out"))
    good.write_text("0-0\n0-0\n")
    for text, line, message in [
        ("0-0\nx\n", 2, "is not a link"),
        ("0-0\n", 1, "ends after 1 lines"),
        ("0-0\n0-0\n0-0\n", 2, "ends after 2 lines"),
    ]:
        bad.write_text(text)
        with pytest.raises(InputError, match=message) as caught:
            symmetrise_files(good, bad, out)
        assert caught.value.line == line
        assert not out.exists()
    (tmp_path / "source").write_text("a\nb\n")
    (tmp_path / "target").write_text("x\n\n")
    with pytest.raises(InputError, match="target sentence of 0 words") as caught:
        symmetrise_files(good, good, out, texts=(tmp_path / "source", tmp_path / "target"))
    assert (caught.value.file, caught.value.line) == (str(good), 2)
