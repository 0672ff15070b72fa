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
