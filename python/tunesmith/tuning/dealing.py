"""Sentences dealt to workers that follow a decoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tunesmith.engines import Dealt

if TYPE_CHECKING:
    from tunesmith.tuning.rounds import Following


@dataclass(frozen=True)
class Sentences(Dealt):
    """A task of which each worker is given the model, and the sentences of its learners.

    Learner n is at worker n modulo workers. All sentences keep their numbers.
    """

    task: Following
    learners: npt.NDArray[np.intp]

    def parts(self, size: int) -> Iterator[Following]:
        """Yield the part of each worker; a single one is given the whole."""
        for place in range(size):
            own = self.learners % size == place
            source = self.task.source
            yield replace(self.task, source=source if own.all() else source.thinned(own))


def evenly(sizes: npt.NDArray[np.int64], workers: int) -> npt.NDArray[np.intp]:
    """Return a worker for each of some jobs: the largest first, each to whoever has least to do.

    >>> evenly(np.array([1, 2, 9, 3, 4]), 2).tolist()
    [0, 1, 0, 1, 1]
    """
    places, loads = np.zeros(len(sizes), np.intp), np.zeros(workers)
    for job in np.argsort(-sizes, kind="stable"):
        places[job] = loads.argmin()
        loads[places[job]] += sizes[job]
    return places
