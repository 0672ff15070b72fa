"""What a learner learnt: names of features and their weights, as arrays that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core

ALONE = 2**32 - 1
"""Stands for an action in features that are a name alone."""
TYPES = {
    "letters": np.uint8,
    "ends": np.uint64,
    "contexts": np.uint32,
    "actions": np.uint32,
    "values": np.float64,
    "votes": np.float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Weights:
    """Features and the weights of one vector, or of several that vote.

    `letters` and `ends` are the names of contexts; a feature is one of the `contexts` with one of
    the `actions`. `values` has a row for each voter.
    """

    letters: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.uint64]
    contexts: npt.NDArray[np.uint32]
    actions: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float64]
    votes: npt.NDArray[np.float64]

    @classmethod
    def of(cls, kernel: _core.StructuredWeights) -> Weights:
        """Return what the core learnt."""
        return cls(*kernel.arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Weights:
        """Return weights from the arrays of a file; raise a `ValueError` if they do not fit."""
        for name, kind in TYPES.items():
            if name not in arrays or arrays[name].dtype != kind:
                raise ValueError(f"the array {name} is missing or of another type")
            if arrays[name].ndim != (2 if name == "values" else 1):
                raise ValueError(f"the array {name} has another number of dimensions")
        made = cls(*(arrays[name] for name in TYPES))
        # The core checks everything else.
        made.kernel  # noqa: B018
        return made

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def kernel(self) -> _core.StructuredWeights:
        """The weights of the core."""
        arrays = map(np.ascontiguousarray, self.arrays().values())
        return _core.StructuredWeights.load(*arrays)

    def named(self, actions: Sequence[str] = ()) -> dict[str, float]:
        """Return the weight of each feature by name: `context → action`, or a name alone.

        Of several voters, the mean by votes.
        """
        text, starts = self.letters.tobytes(), [0, *self.ends.tolist()]
        contexts = [text[start:end].decode() for start, end in pairwise(starts)]
        values = np.average(self.values, axis=0, weights=self.votes).tolist()
        places = zip(self.contexts.tolist(), self.actions.tolist(), values, strict=True)
        return {
            contexts[context] + ("" if action == ALONE else f" → {actions[action]}"): value
            for context, action, value in places
        }

    def __len__(self) -> int:
        return len(self.contexts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weights):
            return NotImplemented
        mine, theirs = self.arrays(), other.arrays()
        return all(np.array_equal(mine[name], theirs[name]) for name in TYPES)

    def __hash__(self) -> int:
        return hash((len(self), self.values.tobytes()))

    def __repr__(self) -> str:
        voters = "" if len(self.votes) == 1 else f", {len(self.votes)} voters"
        return f"<{len(self):,} weights{voters}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the arrays: the core's copy is made again."""
        return self.arrays()
