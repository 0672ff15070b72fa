"""The search for the choices with the best corpus score, wherever the hypotheses are."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tunesmith.metrics import Metric
from tunesmith.weights import Vector

C = TypeVar("C")


class Searched(Protocol[C]):
    """A corpus in which choices can be exchanged; `C` is what stands for the choices."""

    @property
    def exchanges(self) -> int:
        """How often choices are exchanged, at most."""

    def alone(self) -> tuple[C, Vector]:
        """Return what is best for each sentence alone, and the sum of the statistics."""

    def exchanged(self, chosen: C, total: Vector) -> tuple[C, Vector]:
        """Return better choices within the corpus, and the sum of their statistics."""


def search_oracle(corpus: Searched[C], metric: Metric, best: bool) -> C:
    """Return the choices with the best (or worst) corpus score that exchanging finds.

    It begins with what is best for each sentence alone, and ends when exchanging brings no more.
    Exact for metrics whose sentences do not interact; for BLEU a close bound.
    """

    def worth(total: Vector) -> float:
        gain = float(metric.native.gains(total[None, :])[0])
        return gain if best else -gain

    chosen, total = corpus.alone()
    for _ in range(corpus.exchanges):
        others, changed = corpus.exchanged(chosen, total)
        if worth(changed) <= worth(total):
            break
        chosen, total = others, changed
    return chosen


def added(rows: npt.NDArray[np.float64]) -> Vector:
    """Return the sum of rows, added up from the first to the last."""
    if not len(rows):
        return np.zeros(rows.shape[1])
    total: Vector = np.add.accumulate(rows, axis=0)[-1]
    return total
