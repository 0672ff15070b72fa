"""The minimiser within bounds, against that of SciPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from twins.lists import Array

from tunesmith.learn.minimise import minimise

few = settings(max_examples=60, deadline=None)


def logistic(seed: int, size: int) -> tuple[Array, float]:
    """Return rows of features of very different sizes, and the strength of an L2 pull."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(40, size)) * np.exp(rng.normal(size=size)) + 0.2, 1e-2


@few
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.sampled_from([np.inf, 1.0, 0.1]),
    st.booleans(),
)
def test_the_least_value_within_bounds_is_found(
    seed: int, size: int, bound: float, fixed: bool
) -> None:
    rows, pull = logistic(seed, size)
    rng = np.random.default_rng(seed + 1)
    lower, upper = -bound * rng.uniform(size=size), bound * rng.uniform(size=size)
    start = 2.0 * rng.normal(size=size)
    if fixed:
        lower[0] = upper[0] = 0.3

    def objective(w: Array) -> tuple[float, Array]:
        margins = rows @ w
        value = float(np.logaddexp(0.0, -margins).mean()) + 0.5 * pull * float(w @ w)
        return value, pull * w - rows.T @ np.exp(-np.logaddexp(0.0, margins)) / len(rows)

    found = minimise(objective, start, lower, upper, steps=2000, tolerance=1e-13, flat=1e-7)
    bounds = list(zip(lower.tolist(), upper.tolist(), strict=True))
    wanted = minimize(
        objective, np.clip(start, lower, upper), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    assert ((found.x >= lower) & (found.x <= upper)).all()
    assert found.value == objective(found.x)[0]
    assert found.value <= wanted.fun + 1e-8


def test_a_curved_valley_is_followed_to_its_end() -> None:
    def rosenbrock(x: Array) -> tuple[float, Array]:
        a, b = 1.0 - x[0], x[1] - x[0] ** 2
        slope = np.array([-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
        return float(a * a + 100.0 * b * b), slope

    free = np.full(2, np.inf)
    found = minimise(rosenbrock, np.array([-1.2, 1.0]), -free, free, tolerance=1e-12, flat=1e-8)
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-5)
    assert found.steps < 60


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_it_takes_no_more_steps_than_allowed_and_never_climbs(steps: int) -> None:
    rows, _ = logistic(3, 6)
    seen = []

    def objective(w: Array) -> tuple[float, Array]:
        margins = rows @ w
        value = float(np.logaddexp(0.0, -margins).mean())
        return value, -rows.T @ np.exp(-np.logaddexp(0.0, margins)) / len(rows)

    free = np.full(6, np.inf)
    for allowed in range(steps + 1):
        found = minimise(objective, np.ones(6), -free, free, steps=allowed, tolerance=0.0)
        assert found.steps == allowed
        seen.append(found.value)
    assert seen == sorted(seen, reverse=True)


def test_a_value_that_is_not_a_number_is_stepped_back_from() -> None:
    def wall(x: Array) -> tuple[float, Array]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(x[0] - np.log(x[0])), 1.0 - 1.0 / x

    found = minimise(wall, np.array([30.0]), np.array([-np.inf]), np.array([np.inf]))
    np.testing.assert_allclose(found.x, [1.0], atol=1e-3)


def test_it_ends_when_a_step_gains_too_small_a_part_of_the_value() -> None:
    scales = np.array([1.0, 30.0, 900.0])

    def bowl(x: Array) -> tuple[float, Array]:
        return 5.0 + 0.5 * float((scales * x * x).sum()), scales * x

    free = np.full(3, np.inf)
    values = [minimise(bowl, np.ones(3), -free, free, steps=n).value for n in range(12)]
    gained = [(a - b) / a for a, b in pairwise(values)]
    assert gained[0] > 0.9 and min(gained) < 0.2, "a hill that ends otherwise"
    for tolerance in (0.2, 0.01):
        last = next(at for at, part in enumerate(gained, 1) if part <= tolerance)
        found = minimise(bowl, np.ones(3), -free, free, tolerance=tolerance)
        assert (found.steps, found.value) == (last, values[last])
