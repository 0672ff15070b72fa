"""What two sets of weights have in common, by template (Green et al. 2013, section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import correlation

from tunesmith.decode.templates import DENSE, template_of

# How many times larger than all weights that differ an equal one must be, to be left out.
HIDES = 10.0


@dataclass(frozen=True)
class Overlap:
    """The features of a template that have a weight in one file, in the other, in both."""

    template: str
    left: int
    right: int
    both: int
    opposed: int
    """Of those in both, how many have opposite signs."""
    cosine: float | None
    """Of the two vectors; None where one is zero. 1: the same direction."""
    correlation: float | None
    """Of the weights of the features in both; None where one side has no variance."""

    @property
    def share(self) -> float:
        """The share of the union that is in both."""
        union = self.left + self.right - self.both
        return self.both / union if union else 0.0


def overlap(left: Mapping[str, float], right: Mapping[str, float]) -> list[Overlap]:
    """Return what two sets of weights have in common: dense features first, then by size.

    Weights of zero do not count. Directions leave `constants` out.

    >>> for each in overlap({"lm": 0.5, "PT:a~b": 1.0, "PT:c~d": 0.0}, {"lm": 1.0, "PT:a~b": -2.0}):
    ...     print(each.template, each.left, each.right, each.both, each.opposed, each.cosine)
    dense 1 1 1 0 1.0
    rule-id 1 1 1 1 -1.0
    """
    parts: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    for side, weights in enumerate((left, right)):
        for name, value in weights.items():
            if value:
                parts.setdefault(template_of(name), ({}, {}))[side][name] = value
    idle = constants(left, right)
    found = [_overlap(name, *sides, idle) for name, sides in parts.items()]
    return sorted(found, key=lambda e: (e.template != DENSE, -e.left - e.right, e.template))


def constants(left: Mapping[str, float], right: Mapping[str, float]) -> set[str]:
    """Return the features with equal weights that would hide all that differs.

    A decoder's weight of -100 for unknown words is one: no list teaches it, and beside it any two
    sets of weights have the same direction.

    >>> constants({"lm": 0.5, "unknown": -100.0}, {"lm": -1.0, "unknown": -100.0})
    {'unknown'}
    """
    equal = {name for name, value in left.items() if right.get(name) == value}
    learnt = max(
        (abs(value) for side in (left, right) for name, value in side.items() if name not in equal),
        default=0.0,
    )
    return {name for name in equal if learnt and abs(left[name]) > HIDES * learnt}


def _overlap(
    template: str, left: dict[str, float], right: dict[str, float], idle: set[str]
) -> Overlap:
    # Sorted: sums of floats depend on the order.
    both = sorted(left.keys() & right.keys())
    sizes = [length(side, idle) for side in (left, right)]
    moving = [name for name in both if name not in idle]
    product = sum(left[name] * right[name] for name in moving)
    return Overlap(
        template,
        len(left),
        len(right),
        len(both),
        sum(left[name] * right[name] < 0.0 for name in both),
        product / (sizes[0] * sizes[1]) if all(sizes) else None,
        _correlation([left[name] for name in moving], [right[name] for name in moving]),
    )


def _correlation(left: list[float], right: list[float]) -> float | None:
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return correlation(left, right)


def length(weights: Mapping[str, float], without: Collection[str] = ()) -> float:
    """Return the Euclidean length of weights, some left out."""
    return math.sqrt(sum(v * v for name, v in weights.items() if name not in without))


def differences(left: Mapping[str, float], right: Mapping[str, float]) -> dict[str, float]:
    """Return the change of each weight from left to right, largest first, equal ones left out.

    Both are scaled to the same length first, without `constants`: only the direction of weights
    decides.

    >>> differences({"lm": 0.3, "words": 0.4}, {"lm": 0.6, "words": 0.8, "PT:a~b": 0.0})
    {}
    """
    idle = constants(left, right)
    sizes = [length(side, idle) or 1.0 for side in (left, right)]
    names = [name for name in dict.fromkeys([*left, *right]) if name not in idle]
    moved = {n: right.get(n, 0.0) / sizes[1] - left.get(n, 0.0) / sizes[0] for n in names}
    kept = {name: value for name, value in moved.items() if abs(value) > 1e-12}
    return dict(sorted(kept.items(), key=lambda item: (-abs(item[1]), item[0])))
