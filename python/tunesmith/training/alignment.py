"""Symmetrisation: one word alignment from the two directed ones."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from tunesmith import _core

Path = str | PathLike[str]
Links = list[tuple[int, int]]
"""Pairs of positions from zero, source first."""

HEURISTICS: tuple[str, ...] = tuple(_core.HEURISTICS)
"""Methods of symmetrisation by their usual names."""

DEFAULT_HEURISTIC = "grow-diag-final-and"


def parse_links(line: str, lengths: tuple[int, int] | None = None) -> Links:
    """Return the links of a line such as `0-0 1-2`.

    Raise an `InputError` for a malformed link and for a position outside a sentence pair of these
    numbers of words.
    """
    return _core.parse_links(line, lengths)


def symmetrise(
    forward: Sequence[tuple[int, int]],
    backward: Sequence[tuple[int, int]],
    heuristic: str = DEFAULT_HEURISTIC,
) -> Links:
    """Return one list of links, sorted; both inputs have the source position first.

    >>> symmetrise([(0, 0), (1, 1)], [(0, 0), (1, 2)])
    [(0, 0), (1, 1), (1, 2)]
    """
    return _core.symmetrise(list(forward), list(backward), heuristic)


def symmetrise_files(
    forward: Path,
    backward: Path,
    out: Path,
    heuristic: str = DEFAULT_HEURISTIC,
    *,
    texts: tuple[Path, Path] | None = None,
    threads: int = 0,
) -> int:
    """Write one alignment file out of two in Pharaoh format; return the number of lines.

    Raise an `InputError` with file and line for malformed links and for files of different lengths;
    with `texts`, source and target, also for links outside a sentence.
    """
    return _core.symmetrise_files(forward, backward, out, heuristic, texts=texts, threads=threads)
