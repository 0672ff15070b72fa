"""The perceptron."""

from __future__ import annotations

from tunesmith._core import Update


def perceptron(rate: float = 1.0) -> Update:
    """Add η x where y- scores at least as high as a better y+ (Collins 2002).

    Usually averaged by the driver. (core/solve/src/update/perceptron.rs)
    """
    return Update.perceptron(rate)
