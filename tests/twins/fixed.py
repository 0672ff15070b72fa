"""A decoder that finds what it is told to find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunesmith import _core
from tunesmith.sources import Source
from tunesmith.spaces import Pools, Spaces


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
