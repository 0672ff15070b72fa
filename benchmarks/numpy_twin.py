"""MERT and batch MIRA as one would write them in NumPy.

Straightforward, list by list: dense matrices, no compiled code, no tricks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tunesmith import Pools, _core
from tunesmith.metrics import Metric
from tunesmith.weights import Vector

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lists:
    """Features and BLEU statistics of each sentence's hypotheses; no list is empty."""

    features: list[Matrix]
    stats: list[Matrix]

    @classmethod
    def of(cls, pools: Pools, metric: Metric) -> Lists:
        """Copy lists out of the library."""
        rows, ids, values = pools.core.csr()
        matrix = np.zeros((pools.hypotheses, len(pools.names)))
        matrix[np.repeat(np.arange(pools.hypotheses), np.diff(rows)), ids] = values
        cuts = pools.core.starts[1:-1]
        stats = pools.table(metric).rows()
        return cls(np.split(matrix, cuts), np.split(stats, cuts))

    def best(self, weights: Vector) -> list[int]:
        """Return the best hypothesis of each list."""
        return [int(np.argmax(features @ weights)) for features in self.features]

    def score(self, weights: Vector) -> float:
        """Return the BLEU of what the weights choose, between 0 and 1."""
        chosen = [stats[best] for stats, best in zip(self.stats, self.best(weights), strict=True)]
        return float(bleu(np.sum(chosen, axis=0)))


def bleu(stats: Matrix) -> Matrix:
    """Return BLEU of rows `[h, r, m1..m4, t1..t4]`, zero where an order has no match."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(stats[..., 2:6] / stats[..., 6:10]).mean(axis=-1)
        brevity = np.minimum(0.0, 1.0 - stats[..., 1] / stats[..., 0])
        scores: Matrix = np.nan_to_num(np.exp(logs + brevity))
    return scores


def mert(lists: Lists, start: Vector, seed: int, tolerance: float = 1e-5) -> Vector:
    """Climb by exact line search along the axes, in random order, until a round gains nothing."""
    rng = np.random.default_rng([seed, 0])
    weights = start.copy()
    gain = lists.score(weights)
    while True:
        before = gain
        for axis in rng.permutation(len(weights)).tolist():
            step, reached = line_search(lists, weights, axis)
            if reached > gain:
                weights[axis] += step
                gain = reached
        weights /= np.abs(weights).sum()
        if gain - before < tolerance:
            return weights


def line_search(lists: Lists, weights: Vector, axis: int) -> tuple[float, float]:
    """Return the best step along an axis, and the BLEU it reaches."""
    total = np.zeros(10)
    places: list[Matrix] = []
    changes: list[Matrix] = []
    for features, stats in zip(lists.features, lists.stats, strict=True):
        at, lines = envelope(features @ weights, features[:, axis])
        total += stats[lines[0]]
        places.append(at)
        changes.append(np.diff(stats[lines], axis=0))
    at = np.concatenate(places)
    order = np.argsort(at, kind="stable")
    at = at[order]
    sums = total + np.vstack([np.zeros(10), np.cumsum(np.concatenate(changes)[order], axis=0)])
    # Breakpoints at the same place are passed together.
    real = np.concatenate([[True], np.diff(at, append=np.inf) > 1e-9])
    scores = np.where(real, bleu(sums), 0.0)
    if not len(at):
        return 0.0, float(scores[0])
    middles = np.concatenate([[at[0] - 0.1], (at[1:] + at[:-1]) / 2, [at[-1] + 0.1]])
    best = int(np.argmax(scores))
    return float(middles[best]), float(scores[best])


def envelope(intercepts: Matrix, slopes: Matrix) -> tuple[Matrix, list[int]]:
    """Return where the upper envelope of lines breaks, and its lines from left to right."""
    lowest = np.flatnonzero(slopes == slopes.min())
    line = int(lowest[np.argmax(intercepts[lowest])])
    lines = [line]
    places: list[float] = []
    while True:
        steeper = np.flatnonzero(slopes > slopes[line])
        if not len(steeper):
            return np.array(places), lines
        crossings = (intercepts[line] - intercepts[steeper]) / (slopes[steeper] - slopes[line])
        place = crossings.min()
        ties = steeper[crossings == place]
        line = int(ties[np.argmax(slopes[ties])])
        places.append(float(place))
        lines.append(line)


def kbmira(
    lists: Lists, start: Vector, seed: int, passes: int = 60, c: float = 0.02, decay: float = 0.999
) -> Vector:
    """Batch k-best MIRA: hope and fear over a decaying background, the best pass's average."""
    first = np.array([stats[0] for stats in lists.stats])
    background, length = first.mean(axis=0), first[:, 0].mean()
    weights, best, best_score = start.copy(), start, -1.0
    for epoch in range(1, passes + 1):
        total = np.zeros_like(weights)
        for i in _core.permutation(seed, epoch, len(first)).tolist():
            features, stats = lists.features[i], lists.stats[i]
            scores = features @ weights
            gains = bleu(background + stats) * (length + first[i, 0])
            hope = int(np.argmax(scores + gains))
            fear = int(np.argmax(scores - gains))
            model = int(np.argmax(scores))
            delta = features[hope] - features[fear]
            loss = gains[hope] - gains[fear] - delta @ weights
            norm = delta @ delta
            if loss > 0 and norm > 0:
                weights += min(c, loss / norm) * delta
            background = decay * (background + stats[model])
            length = decay * (length + first[i, 0])
            total += weights
        average = total / len(first)
        score = lists.score(average)
        if score > best_score:
            best, best_score = average, score
    return best
