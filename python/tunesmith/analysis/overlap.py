"""What two sets of weights have in common, by template (Green et al. 2013, section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import correlation

from tunesmith.decode.templates import DENSE, template_of


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

    Weights of zero do not count.

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
    found = [_overlap(name, *sides) for name, sides in parts.items()]
    return sorted(found, key=lambda e: (e.template != DENSE, -e.left - e.right, e.template))


def _overlap(template: str, left: dict[str, float], right: dict[str, float]) -> Overlap:
    # Sorted: sums of floats depend on the order.
    both = sorted(left.keys() & right.keys())
    sizes = [math.sqrt(sum(value * value for value in side.values())) for side in (left, right)]
    product = sum(left[name] * right[name] for name in both)
    return Overlap(
        template,
        len(left),
        len(right),
        len(both),
        sum(left[name] * right[name] < 0.0 for name in both),
        product / (sizes[0] * sizes[1]) if all(sizes) else None,
        _correlation([left[name] for name in both], [right[name] for name in both]),
    )


def _correlation(left: list[float], right: list[float]) -> float | None:
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return correlation(left, right)


def length(weights: Mapping[str, float]) -> float:
    """Return the Euclidean length of weights; 1 if all are zero."""
    return math.sqrt(sum(value * value for value in weights.values())) or 1.0


def differences(left: Mapping[str, float], right: Mapping[str, float]) -> dict[str, float]:
    """Return the change of each weight from left to right, largest first, equal ones left out.

    Both are scaled to the same length first: only the direction of weights decides.

    >>> differences({"lm": 0.3, "words": 0.4}, {"lm": 0.6, "words": 0.8, "PT:a~b": 0.0})
    {}
    """
    sizes = [length(side) for side in (left, right)]
    names = dict.fromkeys([*left, *right])
    moved = {n: right.get(n, 0.0) / sizes[1] - left.get(n, 0.0) / sizes[0] for n in names}
    kept = {name: value for name, value in moved.items() if abs(value) > 1e-12}
    return dict(sorted(kept.items(), key=lambda item: (-abs(item[1]), item[0])))
