"""How work is dealt to workers, so that they end together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCKS = 256
"""Parts of a text that are dealt, at most: so many workers can hold some of it."""


def evenly(
    work: npt.NDArray[np.int64] | npt.NDArray[np.float64], workers: int
) -> npt.NDArray[np.intp]:
    """Return a worker for each of some jobs: the largest first, each to whoever has least to do.

    >>> evenly(np.array([1, 2, 9, 3, 4]), 2).tolist()
    [0, 1, 0, 1, 1]
    """
    places, loads = np.zeros(len(work), np.intp), np.zeros(workers)
    for job in np.argsort(-work, kind="stable"):
        places[job] = loads.argmin()
        loads[places[job]] += work[job]
    return places
