"""Line search by looking everywhere, and the expected gain from its definition."""

from __future__ import annotations

import itertools

import numpy as np

from twins.lists import Array, Lists


def breakpoints(lists: Lists, weights: Array, direction: Array) -> Array:
    """Return every step at which two hypotheses of a sentence change places."""
    found: list[float] = []
    for features in lists.features:
        scores, slopes = features @ weights, features @ direction
        for a in range(len(scores)):
            for b in range(a):
                if slopes[a] != slopes[b]:
                    found.append((scores[b] - scores[a]) / (slopes[a] - slopes[b]))
    return np.unique(found)


def best_step(
    lists: Lists, weights: Array, direction: Array, low: float, high: float
) -> tuple[float, float]:
    """Return (step, gain) of the best step between `low` and `high`; no step if none is better."""
    points = breakpoints(lists, weights, direction)
    points = points[(points > low) & (points < high)]
    first = low if np.isfinite(low) else (points[0] if len(points) else 0.0) - 1.0
    last = high if np.isfinite(high) else (points[-1] if len(points) else 0.0) + 1.0
    edges = np.concatenate([[first], points, [last]])
    best = (0.0, lists.corpus_gain(weights))
    for left, right in itertools.pairwise(edges):
        # Lines that meet in one point leave intervals that are nothing but rounding.
        if right - left < 1e-9 * max(abs(left), 1e-3):
            continue
        step = 0.5 * (left + right)
        gain = lists.corpus_gain(weights + step * direction)
        if gain > best[1]:
            best = (step, gain)
    return best


def expected_gain(lists: Lists, weights: Array, alpha: float, corpus: bool) -> float:
    """Return E_p[G] with p ∝ exp(α s): of sentences, or of the expected corpus statistics."""
    total = np.zeros(lists.metric.native.width)
    values = []
    for features, stats in zip(lists.features, lists.stats, strict=True):
        if not len(stats):
            continue
        scores = alpha * (features @ weights)
        mass = np.exp(scores - scores.max())
        mass /= mass.sum()
        total += mass @ stats
        values.append(float(mass @ lists.sentence_gain(stats)))
    return float(lists.gain(total)[0]) if corpus else float(np.mean(values))


def slope(function: object, at: Array, width: float = 1e-6) -> Array:
    """Return the gradient of a function by central differences."""
    assert callable(function)
    unit = np.eye(len(at)) * width
    return np.array([(function(at + step) - function(at - step)) / (2 * width) for step in unit])
