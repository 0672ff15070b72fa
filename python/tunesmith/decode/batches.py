"""Batches of lines: as many at a time as take about a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import perf_counter
from typing import TypeVar

from tunesmith.decode.lines import refuse_string

Found = TypeVar("Found")
BATCH = 100
"""Maximum number of lines translated at a time."""
LISTED = 100_000
"""Maximum number of hypotheses in the lists of a batch: about 200 MB."""


class Pace:
    """The size of the next batch: about a second's work, and lists that fit into memory.

    Small batches show slow translations sooner; a batch has at least as many lines as threads.

    >>> pace = Pace(threads=2)
    >>> pace.took(2, seconds=0.01)
    >>> pace.size
    100
    >>> pace.took(100, seconds=20.0)
    >>> pace.size
    5
    """

    def __init__(self, threads: int = 0, k: int = 1) -> None:
        self._most = max(1, min(BATCH, LISTED // max(1, k)))
        self._least = min(self._most, threads or os.cpu_count() or 1)
        self.size = self._least

    def took(self, lines: int, seconds: float) -> None:
        """Record how long a batch took."""
        self.size = max(self._least, min(self._most, int(lines / max(seconds, 1e-6))))


def in_batches(
    lines: Iterable[str], pace: Pace, work: Callable[[list[str], int], list[Found]]
) -> Iterator[Found]:
    """Yield what `work` finds for each line, given a batch and the number of its first line.

    Raise for a string instead of lines.
    """
    refuse_string(lines)
    return _in_batches(iter(lines), pace, work)


def _in_batches(
    lines: Iterator[str], pace: Pace, work: Callable[[list[str], int], list[Found]]
) -> Iterator[Found]:
    first = 1
    while batch := list(islice(lines, pace.size)):
        begun = perf_counter()
        found = work(batch, first)
        pace.took(len(batch), perf_counter() - begun)
        yield from found
        first += len(batch)
