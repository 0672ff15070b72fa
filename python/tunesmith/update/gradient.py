"""Gradient steps on a loss, at the cost of the active features only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tunesmith._core import Update
from tunesmith.losses import Loss


def adagrad(loss: Loss = "logistic", eta: float = 0.02, l1: float = 0.1, l2: float = 0.0) -> Update:
    """AdaGrad with L1 by FOBOS (Green et al. 2013).

    Per coordinate G += g², w -= η g/√G, then w <- sign(w)[|w| - λη/√G]₊. A coordinate without a
    gradient keeps its G, so the shrinking of k skipped steps is k·λη/√G, applied when the weight is
    next read: exact, and a million idle features cost nothing.
    (core/solve/src/update/gradient.rs)
    """
    return Update.gradient(loss, "adagrad", eta, l1, l2)


def sgd(
    loss: Loss = "hinge",
    eta: float = 0.01,
    l1: float = 0.0,
    l2: float = 0.0,
    anchor: Sequence[float] = (),
    schedule: Literal["constant", "decreasing"] = "constant",
) -> Update:
    """Stochastic (sub)gradient descent; L2 pulls towards `anchor`, or to zero."""
    return Update.gradient(loss, schedule, eta, l1, l2, list(anchor))
