"""Updates that know how sure they are of each weight."""

from __future__ import annotations

from tunesmith._core import Update


def arow(r: float = 0.1, rate: float = 1.0, variance: float = 1.0, linear: bool = False) -> Update:
    """AROW with a diagonal Σ (Crammer, Kulesza & Dredze 2009).

    v = xᵀΣx, β = 1/(v + r): w += β·loss·Σx, Σ -= β(Σx)². `linear` is the linearised form of
    Green et al. 2013, eq. 11: 1/Σ += x²/r, then w += η Σx. (core/solve/src/update/arow.rs)
    """
    return Update.arow(r, rate, variance, linear)
