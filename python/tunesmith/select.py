"""Selectors: from the hypotheses of a sentence to constraints.

A selector of your own is a function of two arrays (and a seed, if it draws): the model scores and
the gains of a sentence's hypotheses. It answers with pairs (better, worse); each becomes the
constraint `w·(f(better) - f(worse)) >= gain(better) - gain(worse)`.

>>> def best_against_model(scores, gains, seed):
...     return [(int(gains.argmax()), int(scores.argmax()))]
>>> selector = of_function(best_against_model)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from tunesmith._core import Selector
from tunesmith.errors import InputError
from tunesmith.features import Vector

Oracle = Literal["M-C", "LU", "MB"]
Prediction = Literal["M+C", "PB", "MC"]
Choose = Callable[
    [npt.NDArray[np.float64], npt.NDArray[np.float64], int], Sequence[tuple[int, int]]
]

# γ and β of Eidelman 2012, eq. 3: argmax γ·score ± β·gain.
ORACLES = {"M-C": (1.0, 1.0), "LU": (0.0, 1.0), "MB": (0.0, 1.0)}
PREDICTIONS = {"M+C": (1.0, 1.0), "PB": (1.0, 0.0), "MC": (0.0, 1.0)}


def hope_fear(
    oracle: Oracle = "M-C",
    prediction: Prediction = "M+C",
    k: int = 0,
    pinned: Vector | None = None,
    beta: float = 1.0,
) -> Selector:
    """One pair per sentence: y+ = argmax γ⁺s - β⁺c, y- = argmax γ⁻s + β⁻c (Eidelman 2012, eq. 3).

    Oracles: `M-C` (hope), `LU` (lowest cost of the k-best), `MB` (lowest cost of all).
    Predictions: `M+C` (fear), `PB` (the model's best), `MC` (highest cost).
    `k` limits the candidates to the k best-scoring; 0 takes the whole list. With `pinned`
    y+ is that of these weights, whatever those of the moment are (the fixed half of a ramp loss).
    `beta` is β⁺ of hopes: the lower, the nearer they lie to the model's best.
    """
    if oracle not in ORACLES:
        raise InputError(f"no oracle named {oracle!r}", remedy="use M-C, LU or MB")
    if prediction not in PREDICTIONS:
        raise InputError(f"no prediction named {prediction!r}", remedy="use M+C, PB or MC")
    oracle_k = 0 if oracle == "MB" else k
    weights = None if pinned is None else pinned.tolist()
    score, gain = ORACLES[oracle]
    return Selector.hope_fear((score, beta * gain), PREDICTIONS[prediction], oracle_k, k, weights)


def lists(n: int = 10, model: bool = False, k: int = 0) -> Selector:
    """Several constraints per sentence (Hasler et al. 2011).

    All pairs of n hopes and n fears; with `model`, every member of the model's, the hopes' and the
    fears' n-best against the best hope.
    """
    return Selector.lists(n, model, k)


def pairs(samples: int = 5000, threshold: float = 0.05, keep: int = 50) -> Selector:
    """Sampled pairs (Hopkins & May 2011).

    Draw `samples` (Γ), keep those whose gains differ by more than `threshold`, of these the `keep`
    (Ξ) most different.
    """
    return Selector.pairs(samples, threshold, keep)


def expected(alpha: float = 1.0, k: int = 0) -> Selector:
    """The gradient of the expected gain under p ∝ exp(α s), to be used with the linear loss."""
    return Selector.expected(alpha, k)


def bounded(inner: Selector, bound: float = 1.0, price: float = 0.01, k: int = 0) -> Selector:
    """Add the relative margin's bounds: -B <= s(y+) - s(y) <= B (Eidelman et al. 2013).

    `bound` is B, `price` the slack price D. The update meets the inner constraint first, then the
    lowest-scoring candidate, then the highest.
    """
    return Selector.bounded(inner, bound, price, k)


def of_function(choose: Choose) -> Selector:
    """A selector written in Python: `choose(scores, gains, seed) -> [(better, worse), …]`."""
    return Selector.python(choose)
