"""How a structured learner learns, and what its passes saw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from tunesmith.errors import InputError

Update = Literal["unchecked", "standard", "early", "max-violation"]
UPDATES: tuple[Update, ...] = ("unchecked", "standard", "early", "max-violation")
Method = Literal["perceptron", "mira", "kbest-mira"]
METHODS: tuple[Method, ...] = ("perceptron", "mira", "kbest-mira")
Average = Literal["averaged", "voted"]
AVERAGES: tuple[Average, ...] = ("averaged", "voted")


@dataclass(frozen=True)
class Training:
    """How to learn; `beam=None` drops nothing.

    `update` is the step of the search that is repaired: `unchecked` and `standard` the last one
    (`standard` only if the weights are to blame), `early` the first that leaves nothing gold in the
    beam, `max-violation` the one where gold is furthest behind. `c` caps a step of MIRA, `k` is
    how many of the beam `kbest-mira` separates from gold. The examples of a `batch` are searched
    with the same weights and make one step. Learners of `shards` go over shares of the examples
    and are mixed after each pass. `voters` weight vectors vote if `weights` is `voted`.
    """

    beam: int | None = 8
    update: Update = "max-violation"
    learner: Method = "perceptron"
    passes: int = 10
    weights: Average = "averaged"
    batch: int = 1
    shards: int = 1
    seed: int = 1
    c: float = 0.01
    k: int = 8
    voters: int = 10

    KERNEL: ClassVar[str] = "core/structured/src/learner.rs"

    def __post_init__(self) -> None:
        """Raise an `InputError` for what cannot be learnt with."""
        for name in ("beam", "passes", "batch", "shards", "k", "voters"):
            value = getattr(self, name)
            if name == "beam" and value is None:
                continue
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value}", remedy="give a whole number from 1 on")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise InputError(f"seed is {self.seed}", remedy="give a whole number from 0 on")
        if not (isinstance(self.c, float | int) and self.c > 0 and not math.isnan(self.c)):
            raise InputError(f"c is {self.c}", remedy="give a positive number")
        choices = {"update": UPDATES, "learner": METHODS, "weights": AVERAGES}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}", remedy=f"use one of {', '.join(known)}"
                )
        if self.weights == "voted" and self.shards > 1:
            raise InputError(
                "voted weights of several shards",
                remedy="use averaged weights, or one shard: mixed weights survive nothing",
            )


@dataclass(frozen=True)
class Pass:
    """What a pass saw; `dev` is the accuracy on other examples, in percent.

    `wrong` examples ended with something else than gold; `updates` of them moved the weights, of
    which `invalid` ones were no violations.
    """

    examples: int
    wrong: int
    updates: int
    invalid: int
    violation: float
    seconds: float
    dev: float | None = None
