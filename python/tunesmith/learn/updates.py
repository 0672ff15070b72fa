"""Update rules: how constraints move the weights.

An update is a value: it prints as the expression that makes it, equals its copy, and makes its
kernel at the last moment. A rule of your own has `init(features) -> state` and
`step(w, state, separate) -> (w, state)`; state and weights are arrays. `separate(w)` returns the
constraints under `w` as arrays: `starts`, `ids`, `values` (rows x in compressed form), `gains`,
`offsets`, `groups`. With a live decoder new features appear during training; a rule that keeps
state then needs `rearrange(state, places, features)`, which returns the state with what belonged to
feature i at `places[i]`.

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
>>> update = Custom(Halfway())
>>> PassiveAggressive(0.01)
PassiveAggressive(c=0.01, rate=1.0, scale_by_oracle=False)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.learn.losses import Loss

Shrink = Literal["exact", "phrasal", "touched"]

Array = npt.NDArray[np.float64]


class Update(Protocol):
    """Moves the weights towards meeting constraints."""

    KERNEL: ClassVar[str]
    """The file of the kernel."""

    def kernel(self) -> _core.Update:
        """Return the kernel that does what this value says."""


@dataclass(frozen=True)
class PassiveAggressive:
    """PA-I, which is 1-best MIRA: w += min(C, loss / ‖x‖²) x for each violated row in turn.

    Rows of a bounded selector have their own cap D. They are met round by round, each under the
    weights that the round before has left: that is RM-PA. On a single row this equals `Hildreth`
    and one round of `CuttingPlane`. `scale_by_oracle` multiplies steps by the plain gain of y+, in
    [0, 1] whatever gains learning sees.
    """

    c: float = 0.01
    rate: float = 1.0
    scale_by_oracle: bool = False

    KERNEL: ClassVar[str] = "core/solve/src/update/passive_aggressive.rs"
    SCALED: ClassVar[tuple[str, ...]] = ("c",)

    def kernel(self) -> _core.Update:
        return _core.Update.passive_aggressive(_cap(self.c), self.rate, self.scale_by_oracle)


@dataclass(frozen=True)
class Hildreth:
    """k-best MIRA: min ½‖w' - w‖² + C Σξ subject to w'·x_j >= l_j - ξ_j (Hasler et al. 2011).

    Dual coordinate ascent, α_j <- clip(α_j + (l_j - w'·x_j)/‖x_j‖², 0, C), until no α moves by
    more than `tolerance`. C = 0 asks for hard constraints.
    """

    c: float = 0.01
    rate: float = 1.0
    scale_by_oracle: bool = False
    tolerance: float = 1e-8
    sweeps: int = 10_000

    KERNEL: ClassVar[str] = "core/solve/src/update/hildreth.rs"
    SCALED: ClassVar[tuple[str, ...]] = ("c",)

    def kernel(self) -> _core.Update:
        return _core.Update.hildreth(
            _cap(self.c), self.rate, self.scale_by_oracle, self.tolerance, self.sweeps
        )


@dataclass(frozen=True)
class CuttingPlane:
    """Working sets grown by the most violated constraint (Chiang 2012).

    Σα = C per sentence, all on y+ at the start; mass moves between two members at a time, at most
    `max_iter` moves. A bounded selector gives three sets per sentence, and each round adds the
    largest of the three violations: that is RM-CP (Eidelman et al. 2013).
    """

    c: float = 0.01
    epsilon: float = 1e-4
    epsilon_bound: float = 1e-4
    max_iter: int = 100
    planes: int = 100

    KERNEL: ClassVar[str] = "core/solve/src/update/cutting_plane.rs"
    SCALED: ClassVar[tuple[str, ...]] = ("c",)

    def kernel(self) -> _core.Update:
        return _core.Update.cutting_plane(
            _cap(self.c), self.epsilon, self.epsilon_bound, self.max_iter, self.planes
        )


@dataclass(frozen=True)
class Perceptron:
    """Add η x where y- scores at least as high as a better y+ (Collins 2002).

    With `mean`, the sentences of a batch that are wrong under the weights before it are averaged
    (the mini-batch perceptron of Zhao & Huang 2013); without, rows are added one after the other.
    `when` says which rows move the weights: those where y- scores as high (`wrong`), those where y+
    wins by less than the difference of gains (`loss`), or all (`always`).
    """

    rate: float = 1.0
    mean: bool = False
    when: Literal["wrong", "loss", "always"] = "wrong"

    KERNEL: ClassVar[str] = "core/solve/src/update/perceptron.rs"
    SCALED: ClassVar[tuple[str, ...]] = ("rate",)

    def kernel(self) -> _core.Update:
        return _core.Update.perceptron(self.rate, self.mean, self.when)


@dataclass(frozen=True)
class Arow:
    """AROW with a diagonal Σ (Crammer, Kulesza & Dredze 2009).

    v = xᵀΣx, β = 1/(v + r): w += β·loss·Σx, Σ -= β(Σx)². `linear` is the linearised form of
    Green et al. 2013, eq. 11: 1/Σ += x²/r, then w += η Σx.
    """

    r: float = 0.1
    rate: float = 1.0
    variance: float = 1.0
    linear: bool = False

    KERNEL: ClassVar[str] = "core/solve/src/update/arow.rs"

    def kernel(self) -> _core.Update:
        return _core.Update.arow(self.r, self.rate, self.variance, self.linear)


@dataclass(frozen=True)
class AdaGrad:
    """AdaGrad with L1 by FOBOS (Green et al. 2013).

    Per coordinate G += g², w -= η g/√G, then w <- sign(w)[|w| - λη/√G]₊. A coordinate without a
    gradient keeps its G, so the shrinking of k skipped steps is k·λη/√G. It is applied when the
    weight is next read: the result is exact, and a million idle features cost nothing.

    `shrink` says when λ shrinks a weight. `exact`: as above. `phrasal`: as in the paper's own
    program, where the skipped steps are made up for when a gradient next touches the weight, after
    its step, and at the end of an epoch; until then the weight is read unshrunk. `touched`: a step
    shrinks the weights that have a gradient, the end of an epoch all of them once; idle steps
    shrink nothing, so rare features survive. With the last two each row counts twice, because in
    that program its mirror image is an example, too: √G is twice as large, and λ counts half.
    Deviation from that program: it adds 0.001 to √G.
    """

    loss: Loss = "logistic"
    eta: float = 0.02
    l1: float = 0.1
    l2: float = 0.0
    shrink: Shrink = "exact"

    KERNEL: ClassVar[str] = "core/solve/src/update/gradient.rs"

    def kernel(self) -> _core.Update:
        return _core.Update.gradient(
            self.loss, "adagrad", self.eta, self.l1, self.l2, shrink=self.shrink
        )


@dataclass(frozen=True)
class Sgd:
    """Stochastic (sub)gradient descent; L2 pulls towards `anchor`, or to zero."""

    loss: Loss = "hinge"
    eta: float = 0.01
    l1: float = 0.0
    l2: float = 0.0
    anchor: tuple[float, ...] = ()
    rate: Literal["constant", "decreasing"] = "constant"

    KERNEL: ClassVar[str] = "core/solve/src/update/gradient.rs"

    def kernel(self) -> _core.Update:
        return _core.Update.gradient(
            self.loss, self.rate, self.eta, self.l1, self.l2, list(self.anchor)
        )


class Rule(Protocol):
    """An update rule written in Python."""

    def init(self, features: int, /) -> Array:
        """Return the state at the start, a flat array that a checkpoint can hold."""

    def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
        """Return the new weights and state."""


@dataclass(frozen=True)
class Custom:
    """A rule written in Python, usable wherever a native one is."""

    rule: Rule

    KERNEL: ClassVar[str] = "core/python/src/update.rs"

    def kernel(self) -> _core.Update:
        """Return a kernel that calls the rule."""
        return _core.Update.python(self.rule)


def _cap(c: float) -> float:
    """Return the largest dual weight for slack C, where 0 means no slack at all."""
    return math.inf if c == 0 else c
