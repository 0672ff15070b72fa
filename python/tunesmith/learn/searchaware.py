"""Search-aware tuning: any batch tuner, over every bin of the search (Liu & Huang 2014)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tunesmith.errors import InputError
from tunesmith.learn.task import Epoch, SavedState, Task, Tuner
from tunesmith.weights import Vector


@dataclass(frozen=True)
class SearchAware:
    """A tuner that learns from bins, so that good partial translations survive the beam.

    Every bin counts as a sentence, scored by what its partial translations may become. The tuner
    sees lines of fewer than `shorter` words only, all lines where it is 0.
    """

    tuner: Tuner
    shorter: int = 0

    KERNEL: ClassVar[str] = "core/search/src/outcome.rs"
    space: ClassVar[str] = "bins"

    @property
    def scale_free(self) -> bool:
        """Whether only the direction of the weights is tuned."""
        return bool(getattr(self.tuner, "scale_free", False))

    @property
    def shared(self) -> bool:
        """Whether all workers are asked about all that they hold."""
        return self.shorter == 0 and bool(getattr(self.tuner, "shared", False))

    @property
    def take(self) -> str:
        """The round that a run ends with: best or last."""
        return str(getattr(self.tuner, "take", "best"))

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the tuner's epochs on the bins of short lines."""
        seen = task if self.shorter == 0 else self._seen(task)
        yield from self.tuner.epochs(seen, start, seed, state)
        if seen is not task:
            seen.release()

    def _seen(self, task: Task) -> Task:
        lengths = task.lengths()
        if lengths is None:
            return task
        short = np.asarray(lengths) < self.shorter
        if not short.any():
            raise InputError(
                f"no sentence has fewer than {self.shorter} words",
                remedy="give --set shorter=0 to tune on all of them, or a larger number",
            )
        chosen = np.flatnonzero(short[task.spaces.groups]).tolist()
        return replace(task, outline=task.spaces.subset(chosen))
