"""Selectors: from the hypotheses of a sentence to constraints.

A selector is a value: it prints as the expression that makes it, equals its copy, and makes its
kernel at the last moment. A selector of your own is a function of two arrays and a seed: the model
scores and the gains of a sentence's hypotheses. It answers with pairs (better, worse); each becomes
the constraint `w·(f(better) - f(worse)) >= gain(better) - gain(worse)`.

>>> def best_against_model(scores, gains, seed):
...     return [(int(gains.argmax()), int(scores.argmax()))]
>>> selector = Custom(best_against_model)
>>> Bounded(HopeFear(k=500), bound=1.0) == Bounded(HopeFear(k=500), bound=1.0)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError

Oracle = Literal["M-C", "LU", "MB"]
Prediction = Literal["M+C", "PB", "MC"]
Fix = Literal["standard", "early", "max-violation", "unchecked"]
Choose = Callable[
    [npt.NDArray[np.float64], npt.NDArray[np.float64], int], Sequence[tuple[int, int]]
]

# γ and β of Eidelman 2012, eq. 3: argmax γ·score ± β·gain.
ORACLES = {"M-C": (1.0, 1.0), "LU": (0.0, 1.0), "MB": (0.0, 1.0)}
PREDICTIONS = {"M+C": (1.0, 1.0), "PB": (1.0, 0.0), "MC": (0.0, 1.0)}


class Selector(Protocol):
    """Chooses hypotheses of a sentence under the current weights."""

    KERNEL: ClassVar[str]
    """The file of the kernel."""

    def kernel(self) -> _core.Selector:
        """Return the kernel that does what this value says."""


@dataclass(frozen=True)
class HopeFear:
    """One pair per sentence: y+ = argmax γ⁺s - β⁺c, y- = argmax γ⁻s + β⁻c (Eidelman 2012, eq. 3).

    Oracles: `M-C` (hope), `LU` (lowest cost of the k-best), `MB` (lowest cost of all).
    Predictions: `M+C` (fear), `PB` (the model's best), `MC` (highest cost).
    `k` limits the candidates to the k best-scoring; 0 takes the whole list. With `unique` these are
    k strings, each with its best derivation; with `whole_forests` the limit is for lists only, and
    forests are searched. With `pinned`, y+ is chosen by these weights instead of the current ones
    (the fixed half of a ramp loss). `beta` is β⁺ of hopes: the lower, the nearer they lie to the
    model's best.
    """

    oracle: Oracle = "M-C"
    prediction: Prediction = "M+C"
    k: int = 0
    pinned: tuple[float, ...] | None = None
    beta: float = 1.0
    unique: bool = False
    whole_forests: bool = False

    KERNEL: ClassVar[str] = "core/solve/src/select.rs"

    def __post_init__(self) -> None:
        if self.oracle not in ORACLES:
            raise InputError(f"no oracle named {self.oracle!r}", remedy="use M-C, LU or MB")
        if self.prediction not in PREDICTIONS:
            raise InputError(f"no prediction named {self.prediction!r}", remedy="use M+C, PB or MC")

    def kernel(self) -> _core.Selector:
        score, gain = ORACLES[self.oracle]
        return _core.Selector.hope_fear(
            (score, self.beta * gain),
            PREDICTIONS[self.prediction],
            (0 if self.oracle == "MB" else self.k, self.unique, self.whole_forests),
            (self.k, self.unique, self.whole_forests),
            self.pinned,
        )


@dataclass(frozen=True)
class Lists:
    """Several constraints per sentence (Hasler et al. 2011).

    All pairs of n hopes and n fears; with `model`, every member of the model's, the hopes' and the
    fears' n-best against the best hope.
    """

    n: int = 10
    model: bool = False
    k: int = 0

    KERNEL: ClassVar[str] = "core/solve/src/select.rs"

    def kernel(self) -> _core.Selector:
        return _core.Selector.lists(self.n, self.model, (self.k, True, False))


@dataclass(frozen=True)
class Pairs:
    """Sampled pairs (Hopkins & May 2011).

    Draw `samples` (Γ), keep those whose gains differ by more than `threshold`, of these the `keep`
    (Ξ) most different.
    """

    samples: int = 5000
    threshold: float = 0.05
    keep: int = 50

    KERNEL: ClassVar[str] = "core/solve/src/select.rs"

    def kernel(self) -> _core.Selector:
        return _core.Selector.pairs(self.samples, self.threshold, self.keep)


@dataclass(frozen=True)
class Expected:
    """The gradient of the expected gain under p ∝ exp(α s), to be used with the linear loss."""

    alpha: float = 1.0
    k: int = 0

    KERNEL: ClassVar[str] = "core/solve/src/select.rs"

    def kernel(self) -> _core.Selector:
        return _core.Selector.expected(self.alpha, self.k)


@dataclass(frozen=True)
class Bounded:
    """Add the relative margin's bounds: -B <= s(y+) - s(y) <= B (Eidelman et al. 2013).

    `bound` is B, `price` the slack price D. The update first meets the inner constraint, then the
    bound against the lowest-scoring candidate, then that against the highest. With `by_cost`, B is
    multiplied by the plain cost of that candidate (their footnote 4). The candidates are the `k`
    best, `unique` by string, of forests too.
    """

    inner: Selector
    bound: float = 1.0
    price: float = 0.01
    k: int = 0
    unique: bool = False
    by_cost: bool = False

    KERNEL: ClassVar[str] = "core/solve/src/select.rs"
    SCALED: ClassVar[tuple[str, ...]] = ("bound", "price")

    def kernel(self) -> _core.Selector:
        return _core.Selector.bounded(
            self.inner.kernel(),
            self.bound,
            self.price,
            (self.k, self.unique, False),
            self.by_cost,
        )


@dataclass(frozen=True)
class Violations:
    """Gold derivations against the beam, at the step where the beam goes wrong.

    For decoders that can be forced to a reference: gold derivations spell a beginning of it and can
    be finished within the limits of the search. With d⁺_i the best gold derivation that covers i
    words and d⁻_i the best in the beam, the `update` says which step i is corrected:

    - `standard`: the last; `unchecked` the same, even where s(d⁻) < s(d⁺), which is no violation;
    - `early`: the first at which the beam holds no gold derivation, else the last;
    - `max-violation`: argmax_i s(d⁻_i) - s(d⁺_i) (Huang, Fayong & Guo 2012; Yu et al. 2013).

    Each of the `k` best derivations of the beam that are not gold gives the constraint
    `w·(f(d⁺) - f(d⁻)) >= margin`. With `future`, scores and features have those of the best
    translation of the uncovered words. If a reference cannot be reached, its longest beginning of
    at least `least` words is used; None leaves such references out.
    """

    update: Fix = "max-violation"
    k: int = 1
    future: bool = False
    least: int | None = None
    margin: float = 1.0

    KERNEL: ClassVar[str] = "core/solve/src/violation.rs"

    def __post_init__(self) -> None:
        if self.update not in get_args(Fix):
            known = ", ".join(get_args(Fix))
            raise InputError(f"no update named {self.update!r}", remedy=f"use one of {known}")

    def kernel(self) -> _core.Selector:
        """Return the kernel for the lists of a forced decoder, gold first."""
        return _core.Selector.against(self.margin)


@dataclass(frozen=True)
class Custom:
    """A selector written in Python: `choose(scores, gains, seed) -> [(better, worse), …]`."""

    choose: Choose

    KERNEL: ClassVar[str] = "core/python/src/select.rs"

    def kernel(self) -> _core.Selector:
        """Return a kernel that calls the function."""
        return _core.Selector.python(self.choose)
