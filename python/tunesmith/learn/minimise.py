"""The least value of a smooth function within bounds, by L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tunesmith.weights import Vector

Objective = Callable[[Vector], tuple[float, Vector]]
"""From a point to value and slope."""

MEMORY = 10
"""Steps from which curvature is learnt."""
TRIALS = 20
"""Lengths tried in one direction."""


@dataclass(frozen=True)
class Found:
    """Where the search ended, the value there, and the number of steps."""

    x: Vector
    value: float
    steps: int


def minimise(
    objective: Objective,
    start: Vector,
    lower: Vector,
    upper: Vector,
    *,
    steps: int = 100,
    tolerance: float = 2e-9,
    flat: float = 1e-5,
) -> Found:
    """Return the end of a descent from `start`, which is brought within the bounds first.

    It ends when a step gains less than `tolerance` of the value (or of one, for values below), or
    when no slope that the bounds leave room for is steeper than `flat`. Coordinates that a bound
    stops keep their value, the others take a quasi-Newton step (Bertsekas 1982; Nocedal 1980) whose
    length fulfils the weak Wolfe conditions (Lewis & Overton 2013).

    >>> found = minimise(lambda x: (float((x - 2.0) @ (x - 2.0)), 2.0 * (x - 2.0)),
    ...     np.zeros(2), np.array([-9.0, -9.0]), np.array([9.0, 1.0]))
    >>> found.x.round(4).tolist()
    [2.0, 1.0]
    """
    x = np.clip(start, lower, upper)
    value, slope = objective(x)
    pairs: deque[tuple[Vector, Vector]] = deque(maxlen=MEMORY)
    for done in range(steps):
        free = ~((x <= lower) & (slope > 0.0) | (x >= upper) & (slope < 0.0))
        steep = np.where(free, slope, 0.0)
        if np.abs(steep).max(initial=0.0) <= flat:
            return Found(x, value, done)
        moved = None
        for known in (pairs, ()):
            direction = np.where(free, -_newton(steep, known), 0.0)
            if _dot(direction, slope) < 0.0:
                moved = _search(objective, x, value, slope, direction, lower, upper)
            if moved is not None:
                break
            # The curvature of earlier steps does not fit here: follow the slope alone.
            pairs.clear()
        if moved is None:
            return Found(x, value, done)
        there, lower_value, next_slope = moved
        pairs.append((there - x, next_slope - slope))
        gained = (value - lower_value) / max(abs(value), abs(lower_value), 1.0)
        x, value, slope = there, lower_value, next_slope
        if gained <= tolerance:
            return Found(x, value, done + 1)
    return Found(x, value, steps)


def _dot(a: Vector, b: Vector) -> float:
    # Not by BLAS: its threads spin between such short sums, which costs more than the sums.
    return float((a * b).sum())


def _newton(slope: Vector, pairs: deque[tuple[Vector, Vector]] | tuple[()]) -> Vector:
    """Return the slope times the inverse curvature, which is estimated from the last steps.

    Without steps, return the slope, shortened to a length of one if it is longer. Coordinates with
    a slope of zero stay zero.
    """
    free = slope != 0.0
    known = []
    for moved, bent in pairs:
        moved, bent = np.where(free, moved, 0.0), np.where(free, bent, 0.0)
        curved = _dot(moved, bent)
        if curved > 1e-12 * _dot(bent, bent):
            known.append((moved, bent, curved))
    if not known:
        return slope / max(1.0, sqrt(_dot(slope, slope)))
    found, shares = slope.copy(), []
    for moved, bent, curved in reversed(known):
        shares.append(_dot(moved, found) / curved)
        found -= shares[-1] * bent
    _, bent, curved = known[-1]
    found *= curved / _dot(bent, bent)
    for (moved, bent, curved), share in zip(known, reversed(shares), strict=True):
        found += (share - _dot(bent, found) / curved) * moved
    return found


def _search(
    objective: Objective,
    x: Vector,
    value: float,
    slope: Vector,
    direction: Vector,
    lower: Vector,
    upper: Vector,
) -> tuple[Vector, float, Vector] | None:
    """Return point, value and slope at a good length along the direction, None if no length is
    better than staying."""
    downhill = _dot(direction, slope)
    least, most, length = 0.0, np.inf, 1.0
    best: tuple[Vector, float, Vector] | None = None
    for _ in range(TRIALS):
        aimed = x + length * direction
        there = np.clip(aimed, lower, upper)
        found, leaning = objective(there)
        if not found <= value + 1e-4 * _dot(slope, there - x):
            most = length
            # The minimum of the parabola through the two values and the slope.
            over = found - value - length * downhill
            guess = -0.5 * downhill * length**2 / over if np.isfinite(over) else 0.0
            length = min(max(guess, least + 0.1 * (most - least)), least + 0.5 * (most - least))
            continue
        if best is None or found < best[1]:
            best = (there, found, leaning)
        if _dot(np.where(there == aimed, direction, 0.0), leaning) >= 0.9 * downhill:
            break
        least = length
        length = 2.0 * length if most == np.inf else 0.5 * (least + most)
    return best
