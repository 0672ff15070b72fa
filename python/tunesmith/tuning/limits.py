"""Limits on weights: bounds and fixed values, by feature name or pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from tunesmith.errors import InputError, no_feature
from tunesmith.weights import Vector, Weights

Bounds = Mapping[str, tuple[float, float]]


def limits(
    names: Sequence[str],
    bounds: Bounds,
    fixed: Mapping[str, float],
    *,
    growing: bool = False,
) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of the named weights.

    Raise if a name or pattern matches no feature, unless features may appear later (`growing`).
    """
    check_limits(bounds, fixed)
    lower = np.full(len(names), -np.inf)
    upper = np.full(len(names), np.inf)
    for pattern, (low, high) in _ranges(bounds, fixed):
        places = _places(names, pattern)
        if not places and not growing:
            raise no_feature(pattern, names)
        lower[places], upper[places] = low, high
    return lower, upper


def check_limits(bounds: Bounds, fixed: Mapping[str, float]) -> None:
    """Raise if a lower bound is above its upper bound."""
    for name, (low, high) in _ranges(bounds, fixed):
        if not low <= high:
            raise InputError(
                f"the bounds of {name!r} are {low} and {high}", remedy="give the lower one first"
            )


def idle_limits(names: Sequence[str], bounds: Bounds, fixed: Mapping[str, float]) -> list[str]:
    """Return the names and patterns of limits that match no feature."""
    return [pattern for pattern in {**bounds, **fixed} if not _places(names, pattern)]


def within(
    weights: Weights, bounds: Bounds, fixed: Mapping[str, float], names: Sequence[str] = ()
) -> Weights:
    """Return weights within their limits, also those of `names` where zero is not."""
    if not (bounds or fixed):
        return weights
    every = list(dict.fromkeys([*weights, *names]))
    vector = np.clip(weights.vector(every), *limits(every, bounds, fixed, growing=True))
    return weights.replaced(
        {
            name: value
            for name, value in zip(every, vector.tolist(), strict=True)
            if value or name in weights
        }
    )


def _ranges(bounds: Bounds, fixed: Mapping[str, float]) -> list[tuple[str, tuple[float, float]]]:
    return [*bounds.items(), *((name, (value, value)) for name, value in fixed.items())]


def _places(names: Sequence[str], pattern: str) -> list[int]:
    """Return where the name is, or where those are that match it."""
    return [i for i, name in enumerate(names) if name == pattern] or [
        i for i, name in enumerate(names) if fnmatchcase(name, pattern)
    ]


def is_pattern(name: str) -> bool:
    """Whether a name may match others than itself."""
    return any(mark in name for mark in "*?[")


def may_match(bounds: Bounds, fixed: Mapping[str, float]) -> bool:
    """Whether features that are not known yet may have limits."""
    return any(map(is_pattern, [*bounds, *fixed]))
