"""One job of tuning, and where it stands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from tunesmith.sources import Source
from tunesmith.sources.base import Chosen
from tunesmith.weights import Weights


class Keep(StrEnum):
    """Which round's weights a run ends with."""

    BEST = "best"
    LAST = "last"
    HELDOUT = "heldout"


@dataclass(frozen=True)
class Job:
    """One run of a tuner: a seed on all sentences, or a fold."""

    kind: Literal["run", "fold"]
    number: int
    seed: int
    source: Source
    keep: Keep

    @property
    def name(self) -> dict[str, Any]:
        """How events name the job."""
        return {self.kind: self.number}


@dataclass
class Standing:
    """Where a job stands: the round that is kept, and what is needed to go on.

    Choices are not saved; they are made again from the weights where a run was resumed.
    """

    weights: Weights
    round: int = 0
    score: float | None = None
    """None before the first round, where the start weights do not contend."""
    gain: float | None = None
    """The gain by which rounds are compared."""
    peaked: int = 0
    """The last round that was better than all before."""
    ended: bool = False
    seconds: float = 0.0
    """What the rounds took, in all processes that had a part in them."""
    moved: bool = False
    """Whether any round proposed another direction than the start's."""
    start: float = 0.0
    curve: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """What the source counted in the last round."""
    heldout: list[float] = field(default_factory=list)
    heldout_start: list[float] = field(default_factory=list)
    choice: Chosen | None = None
    start_choice: Chosen | None = None
    heldout_choices: Sequence[Chosen] = field(default_factory=list)
    heldout_start_choices: Sequence[Chosen] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.curve) - 1

    def plain(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the weights."""
        return {
            name: value
            for name, value in vars(self).items()
            if name != "weights" and not name.endswith(("choice", "choices"))
        }

    def keep(
        self,
        number: int,
        weights: Weights,
        choice: Chosen,
        score: float,
        heldout: Sequence[Chosen],
    ) -> None:
        """Make this the round that is kept."""
        self.round, self.weights, self.choice, self.score = number, weights, choice, score
        self.heldout_choices = heldout


@dataclass
class Clock:
    """Seconds by what they went to, of all processes that had a part in the run."""

    began: float = field(default_factory=time.perf_counter)
    decode: float = 0.0
    optimise: float = 0.0
    before: float = 0.0
    """All that passed in processes before this one."""

    @property
    def total(self) -> float:
        """All that passed."""
        return self.before + time.perf_counter() - self.began


def is_finite(weights: Weights) -> bool:
    """Whether all weights are finite numbers."""
    return bool(np.isfinite(np.fromiter(weights.values(), np.float64, len(weights))).all())


def finite(weights: Weights) -> Weights:
    """Return weights with which a source can choose: those that are not finite count as zero."""
    if is_finite(weights):
        return weights
    return Weights({name: w if np.isfinite(w) else 0.0 for name, w in weights.items()})
