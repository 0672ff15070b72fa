"""Update rules: how constraints move the weights.

A rule of your own has `init(features) -> state` and `step(w, state, separate) -> (w, state)`;
state and weights are arrays. `separate(w)` returns the constraints under `w` as arrays: `starts`,
`ids`, `values` (rows x in compressed form), `gains`, `offsets`, `groups`. With a live decoder new
features come on the way; a rule that keeps state then wants `rearrange(state, places, features)`,
which returns the state with what belonged to feature i at `places[i]`.

>>> class Halfway:
...     '''Go half of the way that satisfies each constraint.'''
...     def init(self, features):
...         return np.zeros(0)
...     def step(self, w, state, separate):
...         rows = separate(w)
...         for row, (a, b) in enumerate(zip(rows["starts"], rows["starts"][1:])):
...             ids, x = rows["ids"][a:b], rows["values"][a:b]
...             loss = rows["gains"][row] - rows["offsets"][row] - w[ids] @ x
...             if loss > 0 and len(x):
...                 w[ids] += 0.5 * loss / (x @ x) * x
...         return w, state
>>> update = of_rule(Halfway())
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith._core import Update
from tunesmith.update.confidence import arow
from tunesmith.update.gradient import adagrad, sgd
from tunesmith.update.margin import cutting_plane, hildreth, passive_aggressive
from tunesmith.update.perceptron import perceptron

__all__ = [
    "Rule",
    "Update",
    "adagrad",
    "arow",
    "cutting_plane",
    "hildreth",
    "of_rule",
    "passive_aggressive",
    "perceptron",
    "sgd",
]

Array = npt.NDArray[np.float64]


class Rule(Protocol):
    """An update rule written in Python."""

    def init(self, features: int, /) -> Array:
        """Return the state at the start, a flat array that a checkpoint can hold."""

    def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
        """Return the new weights and state."""


def of_rule(rule: Rule) -> Update:
    """Make a rule written in Python usable wherever a native one is."""
    return Update.python(rule)
