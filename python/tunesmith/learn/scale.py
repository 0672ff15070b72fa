"""The size of scores: what C, B and D of the margin updates mean for some weights.

Decoding does not change when all weights are multiplied by a number, but C, B, D and gains in
[0, 1] do: they are meant for scores that differ by about one within a sentence. Dividing the
weights by a unit and multiplying the unit back at the end is the same as multiplying gains, C, B
and D by it. The second is done here, so that fixed weights and limits keep their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from tunesmith.learn.task import SavedState, State
from tunesmith.spaces import Pools
from tunesmith.spaces.moments import Within
from tunesmith.weights import Vector

Part = TypeVar("Part")


@dataclass(frozen=True)
class Measured:
    """The size of scores and of features in the lists of some weights."""

    spread: float
    """The mean over lists of the highest score minus the lowest; 0 where nothing differs."""
    deviations: dict[str, float]
    """The mean standard deviation within lists of features that vary in at least half of them."""


def measure(lists: Pools, weights: Vector, k: int) -> Measured:
    """Return the size of scores among the `k` best of each list (all if 0), and of features."""
    within = Within(lists)
    scores, starts = within.scores(weights), lists.core.starts
    spreads = []
    for begin, end in pairwise(starts):
        if end - begin > 1:
            best = np.sort(scores[begin:end])[::-1][: k or None]
            spreads.append(float(best[0] - best[-1]))
    varying, deviations = within.varying(), within.deviations()
    common = np.flatnonzero(2 * varying >= max(len(spreads), 1))
    names = lists.names
    return Measured(
        float(np.mean(spreads)) if spreads else 0.0,
        {names[i]: float(deviations[i]) for i in common},
    )


def paces(measured: Measured, names: list[str]) -> Vector:
    """Return how far each weight moves, compared with others, where features have own units.

    The unit of a common feature is its standard deviation within lists; that of others, which may
    be indicators of single rules, is 1.
    """
    units = np.array([measured.deviations.get(name, 1.0) or 1.0 for name in names])
    pace: Vector = 1.0 / units**2
    return pace


def in_units(part: Part, unit: float) -> Part:
    """Return a selector or update whose numbers that are sizes of scores are multiplied.

    A part names these fields in `SCALED`; parts within parts follow.
    """
    if unit == 1.0 or not is_dataclass(part) or isinstance(part, type):
        return part
    changed: dict[str, Any] = {
        name: unit * getattr(part, name) for name in getattr(part, "SCALED", ())
    }
    for field in fields(part):
        value = getattr(part, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            changed[field.name] = in_units(value, unit)
    return replace(part, **changed)


@dataclass(frozen=True)
class Fit:
    """The unit that gains, C, B and D are multiplied by, and the pace of each weight."""

    unit: float = 1.0
    paces: tuple[float, ...] | None = None

    def state(self) -> State:
        """Return the fit for a checkpoint: a resumed run does not measure again."""
        kept: State = {} if self.unit == 1.0 else {"unit": np.array([self.unit])}
        return kept if self.paces is None else {**kept, "paces": np.array(self.paces)}

    @classmethod
    def of(cls, state: SavedState) -> Fit:
        """Return the fit that a checkpoint has."""
        unit = float(state["unit"][0]) if "unit" in state else 1.0
        return cls(unit, tuple(state["paces"].tolist()) if "paces" in state else None)
