"""Choosing hypotheses from plain arrays of scores and gains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twins.drawing import Stream
from twins.lists import Array

ORACLES = {"M-C": (1, 1), "LU": (0, 1), "MB": (0, 1)}
PREDICTIONS = {"M+C": (1, 1), "PB": (1, 0), "MC": (0, 1)}


def ranked(
    scores: Array,
    gains: Array,
    model: float,
    gain: float,
    k: int = 0,
    texts: Sequence[str] | None = None,
) -> list[int]:
    """Return candidates by `model·s + gain·G`, ties by score, then by place; of the k best.

    With `texts`, these are the best derivations of k different ones.
    """
    places = sorted(range(len(scores)), key=lambda y: (-scores[y], y))
    if texts is not None:
        places = unique(places, texts, len(places))
    places = sorted(places[:k] if k else places)
    value = model * scores + gain * gains
    return sorted(places, key=lambda y: (-value[y], -scores[y], y))


def hope_fear(
    scores: Array,
    gains: Array,
    oracle: str = "M-C",
    prediction: str = "M+C",
    k: int = 0,
    texts: Sequence[str] | None = None,
) -> tuple[int, int]:
    """Return y+ and y- of Eidelman 2012, eq. 3; with `texts` among different ones."""
    model, gain = ORACLES[oracle]
    better = ranked(scores, gains, model, gain, 0 if oracle == "MB" else k, texts)[0]
    model, gain = PREDICTIONS[prediction]
    return better, ranked(scores, gains, model, -gain, k, texts)[0]


def unique(places: Sequence[int], texts: Sequence[str], n: int) -> list[int]:
    """Return the first n places with different texts."""
    seen: set[str] = set()
    kept = [y for y in places if not (texts[y] in seen or seen.add(texts[y]))]  # type: ignore[func-returns-value]
    return kept[:n]


def hope_fear_lists(
    scores: Array, gains: Array, texts: Sequence[str], n: int, model: bool
) -> list[tuple[int, int]]:
    """Return the pairs of Hasler et al. 2011 in which y+ is better."""
    hopes = unique(ranked(scores, gains, 1, 1), texts, n)
    fears = unique(ranked(scores, gains, 1, -1), texts, n)
    if model:
        best = unique(ranked(scores, gains, 1, 0), texts, n)
        pairs = [(hopes[0], y) for y in sorted({*best, *hopes, *fears})]
    else:
        pairs = [(a, b) for a in hopes for b in fears]
    return [(a, b) for a, b in pairs if gains[a] > gains[b]]


def sampled_pairs(
    gains: Array, stream: Stream, samples: int, threshold: float, keep: int
) -> list[tuple[int, int]]:
    """Return PRO's pairs: drawn, different enough, the most different kept."""
    drawn = []
    if len(gains) < 2:
        return []
    for _ in range(samples):
        a, b = stream.pair_below(len(gains))
        if abs(gains[a] - gains[b]) > threshold:
            drawn.append((a, b) if gains[a] > gains[b] else (b, a))
    return sorted(drawn, key=lambda pair: (-(gains[pair[0]] - gains[pair[1]]), *pair))[:keep]


def extremes(scores: Array) -> tuple[int, int]:
    """Return the lowest and the highest scoring candidate, the first among equals."""
    return int(np.argmin(scores)), int(np.argmax(scores))
