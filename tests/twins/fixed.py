"""A decoder that finds what it is told to find, and a tuner that proposes what it is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.learn.task import Epoch, Task
from tunesmith.sources import Source
from tunesmith.spaces import Pools, Spaces

Array = npt.NDArray[np.float64]


@dataclass
class Fixed(Source):
    """A decoder that always finds the same lists; only what it likes best depends on weights."""

    lists: Pools

    follows = True

    def __post_init__(self) -> None:
        self.references, self.sources = self.lists.references or [], [""] * self.lists.sentences

    def following(self, learner: _core.Learner) -> None:
        return None

    def found(self, translator: Any, sentences: Sequence[int], k: int) -> Spaces:
        return self.lists.subset(list(sentences))

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        if k != 1:
            return self.lists
        texts = self.lists.outputs(self.lists.best(self.lists.vector(weights, partial=True)))
        nothing = np.zeros((len(texts), 1))
        places = range(len(texts) + 1)
        return Pools.from_arrays(nothing, places, ["nothing"], texts, self.references)


@dataclass(frozen=True)
class Proposing:
    """A tuner that has its mind made up."""

    weights: Mapping[str, float]

    def epochs(self, task: Task, start: Array, seed: int, state: Any) -> Iterator[Epoch]:
        yield Epoch(1, task.spaces.vector(self.weights), {}, last=True)
