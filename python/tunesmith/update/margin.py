"""Large-margin updates: the smallest change of the weights that meets the constraints."""

from __future__ import annotations

import math

from tunesmith._core import Update


def passive_aggressive(c: float = 0.01, rate: float = 1.0, scale_by_oracle: bool = False) -> Update:
    """PA-I, which is 1-best MIRA: w += min(C, loss / ‖x‖²) x for each violated row in turn.

    Rows of a bounded selector carry their own cap D and are met one round after the other, each
    under the weights that the one before left: that is RM-PA. Equals `hildreth` and one round of
    `cutting_plane` on a single row. (core/solve/src/update/passive_aggressive.rs)
    """
    return Update.passive_aggressive(cap(c), rate, scale_by_oracle)


def hildreth(
    c: float = 0.01,
    rate: float = 1.0,
    scale_by_oracle: bool = False,
    tolerance: float = 1e-8,
    sweeps: int = 10_000,
) -> Update:
    """k-best MIRA: min ½‖w' - w‖² + C Σξ subject to w'·x_j >= l_j - ξ_j (Hasler et al. 2011).

    Dual coordinate ascent, α_j <- clip(α_j + (l_j - w'·x_j)/‖x_j‖², 0, C), until no α moves by
    more than `tolerance`. C = 0 asks for hard constraints. (core/solve/src/update/hildreth.rs)
    """
    return Update.hildreth(cap(c), rate, scale_by_oracle, tolerance, sweeps)


def cutting_plane(
    c: float = 0.01,
    epsilon: float = 1e-4,
    epsilon_bound: float = 1e-4,
    max_iter: int = 100,
    planes: int = 100,
) -> Update:
    """Working sets grown by the most violated constraint (Chiang 2012).

    Σα = C per sentence, all on y+ at the start; mass moves between two members at a time, at most
    `max_iter` moves. A bounded selector gives three sets per sentence, and each round adds the
    largest of the three violations: that is RM-CP (Eidelman et al. 2013).
    (core/solve/src/update/cutting_plane.rs)
    """
    return Update.cutting_plane(cap(c), epsilon, epsilon_bound, max_iter, planes)


def cap(c: float) -> float:
    """Return the largest dual weight for slack C, where 0 means no slack at all."""
    return math.inf if c == 0 else c
