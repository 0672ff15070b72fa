"""Update rules on dense rows, and generic solvers for the problems that they solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from twins.lists import Array

Row = tuple[Array, float]
"""x = f(y+) - f(y-) and the gain by which y+ must win."""


def passive_aggressive(w: Array, rows: Sequence[Row], c: float) -> Array:
    """Return w after PA-I on each violated row in turn."""
    for x, gain in rows:
        loss = gain - w @ x
        if loss > 0 and x @ x > 0:
            w = w + min(c, float(loss / (x @ x))) * x
    return w


def relative_margin(
    w: Array, features: Array, better: int, worse: int, gain: float,
    c: float, bound: float, price: float, costs: Array | None = None,
) -> Array:  # fmt: skip
    """Return w after RM-PA: the MIRA step, then each bound under the weights it finds.

    With `costs`, the bound of a candidate is multiplied by its own.
    """
    bounds = bound * (np.ones(len(features)) if costs is None else costs)
    w = passive_aggressive(w, [(features[better] - features[worse], gain)], c)
    lowest = int(np.argmin(features @ w))
    x = features[better] - features[lowest]
    if w @ x > bounds[lowest] and x @ x > 0:
        w = w - min(price, (w @ x - bounds[lowest]) / (x @ x)) * x
    highest = int(np.argmax(features @ w))
    x = features[better] - features[highest]
    if w @ x < -bounds[highest] and x @ x > 0:
        w = w + min(price, (-bounds[highest] - w @ x) / (x @ x)) * x
    return w


def largest(w: Array, rows: Sequence[Row]) -> float:
    """Return the largest violation of some rows."""
    return max([0.0, *(float(goal - w @ x) for x, goal in rows)])


def solve(w: Array, slacks: Sequence[tuple[float, Sequence[Row]]]) -> Array:
    """Return argmin ½‖v - w‖² + Σ_s price_s ξ_s, v·x >= l - ξ_s for the rows of each slack s.

    A generic solver (SLSQP) that knows nothing of duals: for tiny problems.
    """
    size, count = len(w), len(slacks)
    blocks = [(number, x, goal) for number, (_, rows) in enumerate(slacks) for x, goal in rows]
    if not blocks:
        return w
    matrix = np.zeros((len(blocks), size + count))
    target = np.zeros(len(blocks))
    for place, (number, x, goal) in enumerate(blocks):
        matrix[place, :size], matrix[place, size + number], target[place] = x, 1.0, goal
    price = np.array([p for p, _ in slacks])
    slack = [largest(w, rows) for _, rows in slacks]
    begin = np.concatenate([w, slack])
    found = minimize(  # type: ignore[call-overload]
        lambda z: 0.5 * np.sum((z[:size] - w) ** 2) + price @ z[size:],
        begin,
        jac=lambda z: np.concatenate([z[:size] - w, price]),
        bounds=[(None, None)] * size + [(0.0, None)] * count,
        constraints={"type": "ineq", "fun": lambda z: matrix @ z - target, "jac": lambda z: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return np.asarray(found.x[:size])


def primal(w: Array, v: Array, slacks: Sequence[tuple[float, Sequence[Row]]]) -> float:
    """Return the value that `solve` minimises."""
    slack = sum(p * largest(v, rows) for p, rows in slacks)
    return float(0.5 * np.sum((v - w) ** 2) + slack)


@dataclass
class Arow:
    """AROW with a diagonal Σ, and its linearised form."""

    r: float
    variance: Array
    rate: float = 1.0
    linear: bool = False

    def step(self, w: Array, rows: Sequence[Row]) -> Array:
        """Return w after each violated row."""
        for x, gain in rows:
            loss = gain - w @ x
            if loss <= 0 or not x.any():
                continue
            if self.linear:
                self.variance = 1.0 / (1.0 / self.variance + x**2 / self.r)
                w = w + self.rate * self.variance * x
            else:
                beta = 1.0 / (x @ (self.variance * x) + self.r)
                w = w + self.rate * beta * loss * self.variance * x
                self.variance = self.variance - beta * (self.variance * x) ** 2
        return w


@dataclass
class Fobos:
    """Gradient steps with the regularisers applied to every coordinate after every step."""

    slope: Callable[[float, float], float]
    eta: float
    l1: float
    l2: float
    adagrad: bool
    squares: Array = field(default_factory=lambda: np.zeros(0))
    updates: int = 0
    """Rows with a slope, so far."""

    def step(self, w: Array, rows: Sequence[Row], then: Array | None = None) -> Array:
        """Return w after one batch of rows against the same weights: w, or those of `then`."""
        if not len(self.squares):
            self.squares = np.zeros(len(w))
        gradient = np.zeros(len(w))
        for x, gain in rows:
            slope = self.slope(float((w if then is None else then) @ x), gain)
            gradient += slope * x
            self.updates += slope != 0.0
        self.squares = self.squares + gradient**2
        if self.adagrad:
            seen = self.squares > 0
            size = np.where(seen, self.eta / np.sqrt(np.where(seen, self.squares, 1.0)), 0.0)
        else:
            size = np.full(len(w), self.eta)
        w = w - size * gradient
        w = np.maximum(1.0 - size * self.l2, 0.0) * w
        return np.sign(w) * np.maximum(np.abs(w) - size * self.l1, 0.0)


def logistic_slope(margin: float, gain: float) -> float:
    """Return d log(1 + exp(-m)) / dm."""
    return -1.0 / (1.0 + float(np.exp(margin)))


def hinge_slope(margin: float, gain: float) -> float:
    """Return d max(0, gain - m) / dm."""
    return -1.0 if gain > margin else 0.0
