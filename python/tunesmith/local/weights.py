"""What is learnt for one sentence: a method, and weights near the base weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunesmith._core import Blocks
from tunesmith.errors import InputError
from tunesmith.learn.local import ErrorUpdate, MarginUpdate, blocks_of
from tunesmith.learn.task import Task, Tuner
from tunesmith.metrics import Metric
from tunesmith.presets import make_tuner, preset_options
from tunesmith.spaces import Pools, check_range
from tunesmith.weights import Vector, Weights

# Passes of an online tuner over the lists of one sentence, if no other number is given: learning
# starts at weights that are good already.
PASSES = 1
SEED = 1
NEAR = MarginUpdate, ErrorUpdate
"""Updates that stay near the base weights, and learn from `Blocks`."""


@dataclass(frozen=True)
class Local:
    """What is learnt for each sentence, and from how many examples.

    `method` is a preset. `mbuu` and `ebuu` stay near the base weights by as much as `strength`, λ,
    allows. Any other preset starts at the base weights and proposes what its last epoch does;
    presets that make passes make one, unless `options` say otherwise.

    >>> Local("mbuu", k=50, strength=0.1).tuner()
    MarginUpdate(strength=0.1, normalise=False, tolerance=0.001, passes=100)
    """

    method: str = "ebuu"
    k: int = 100
    """The number of examples."""
    strength: float | None = None
    """λ of `mbuu` and `ebuu`; None for the preset's default. 0 gives the base weights to the bit.
    """
    leave_out: bool = False
    """Whether examples with the very same source are passed over."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the preset."""

    def __post_init__(self) -> None:
        check_range("k", self.k, 1)
        check_range("strength", self.strength, 0.0)

    def tuner(self) -> Tuner:
        """Return the preset's tuner; raise if it has no such options."""
        known = preset_options(self.method)
        given = dict(self.options)
        if self.strength is not None:
            if "strength" not in known:
                raise InputError(
                    f"{self.method} has no strength (λ)",
                    remedy=f"use mbuu or ebuu, or set one of its options: {', '.join(known)}",
                )
            given["strength"] = self.strength
        if "passes" in known:
            given.setdefault("passes", PASSES)
        return make_tuner(self.method, given)


def learn(
    tuner: Tuner, lists: Pools | Blocks, metric: Metric, base: Weights, fixed: Iterable[str] = ()
) -> dict[str, float]:
    """Return the weights that differ from the base weights after learning from some lists.

    Weights of `fixed` names do not move. The result depends on the arguments alone. Only updates
    near the base weights learn from `Blocks`.
    """
    names = lists.names
    start = base.vector(names)
    bounds = _bounds(names, start, set(fixed))
    if isinstance(tuner, NEAR):
        # As `epochs`, without what only a run of many epochs needs.
        blocks = blocks_of(lists, metric) if isinstance(lists, Pools) else lists
        found = tuner.learn(blocks, start, bounds).weights
    else:
        assert isinstance(lists, Pools)
        limit = np.full(len(names), np.inf)
        lower, upper = bounds or (-limit, limit)
        task = Task(lists, metric, lower, upper, 1)
        found = start
        for epoch in tuner.epochs(task, start, SEED, None):
            found = epoch.weights
        task.release()
    if not np.isfinite(found).all():
        raise InputError(
            "learning gave weights that are not finite",
            remedy="choose a smaller strength (λ) or step, or another method",
        )
    moved = np.flatnonzero(found != start)
    return {names[place]: float(found[place]) for place in moved}


def _bounds(names: list[str], start: Vector, fixed: set[str]) -> tuple[Vector, Vector] | None:
    """Return bounds that hold fixed weights; None if there are none among the names."""
    held = [place for place, name in enumerate(names) if name in fixed]
    if not held:
        return None
    lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    lower[held] = upper[held] = start[held]
    return lower, upper
