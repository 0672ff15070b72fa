"""How features vary within lists: what is common to a list's hypotheses cannot matter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tunesmith.weights import Vector, Weights

if TYPE_CHECKING:
    from tunesmith.spaces.base import Spaces
    from tunesmith.spaces.pools import Pools

# A dense matrix of features × features is made to recover weights; beyond this it is too large.
MOST_FEATURES = 1000
# Spreads that are kept beside weights, so that a file of millions of weights stays as it is.
MOST_SPREADS = 1000
# Strings of each forest that stand for it.
LISTED = 100


class Within:
    """Sums over hypotheses of features taken as differences to the mean of their list.

    Everything is added up in the order of the hypotheses, so that results are the same to the bit
    wherever they are computed.
    """

    def __init__(self, pools: Pools) -> None:
        starts = pools.core.starts
        self._core, self._count, self._width = pools.core, pools.hypotheses, len(pools.names)
        self.sizes = np.maximum(np.diff(starts), 1).astype(np.float64)

    @cached_property
    def _lists(self) -> npt.NDArray[np.int64]:
        """The list of each hypothesis."""
        return np.repeat(np.arange(len(self.sizes)), np.diff(self._core.starts))

    @cached_property
    def _entries(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], Vector]:
        """Hypotheses, features and values of all that is not zero."""
        rows, ids, values = self._core.csr()
        return np.repeat(np.arange(self._count), np.diff(rows)), ids, values.astype(np.float64)

    def centre(self, values: Vector) -> Vector:
        """Return values of hypotheses as differences to the mean of their list."""
        means = _added(self._lists, values, len(self.sizes)) / self.sizes
        centred: Vector = values - means[self._lists]
        return centred

    def scores(self, weights: Vector) -> Vector:
        """Return the sum of weight times feature of each hypothesis."""
        rows, ids, values = self._entries
        return _added(rows, values * weights[ids], self._count)

    @cached_property
    def _cells(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], Vector]:
        """Lists, features, and Σ x² of each feature that varies within a list, x centred."""
        lists, ids, sums, squares = self._core.cells()
        found = squares - sums * sums * (1.0 / self.sizes)[lists]
        # What is left of large squares that cancel out is rounding.
        varying = found > 1e-13 * squares
        return lists[varying], ids[varying], found[varying]

    def variances(self) -> Vector:
        """Return Σ x² per feature, x centred; zero where it never varies within a list."""
        _, ids, found = self._cells
        return _added(ids, found, self._width)

    def block_variances(
        self, ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], Vector]:
        """Return Σ x² per feature within each block of lists, x centred, where it is not zero.

        `ends` says where blocks end. The answer has the start of each block and the end of the
        last, features, and values.
        """
        return self._by_block(ends, self._cells[2])

    def _by_block(
        self, ends: npt.NDArray[np.int64], values: Vector
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], Vector]:
        """Return the sums of values of cells for each feature within each block of lists."""
        lists, ids, _ = self._cells
        block = np.searchsorted(ends, lists, side="right")
        keys, place = np.unique(block * self._width + ids, return_inverse=True)
        starts = np.searchsorted(keys, np.arange(len(ends) + 1) * self._width)
        features = (keys % max(self._width, 1)).astype(np.uint32)
        return starts.astype(np.int64), features, _added(place, values, len(keys))

    def varying(self) -> npt.NDArray[np.int64]:
        """Return per feature the number of lists within which it varies."""
        return np.bincount(self._cells[1], minlength=self._width)

    def covariances(self, values: Vector) -> Vector:
        """Return Σ x·v per feature, both centred."""
        rows, ids, own = self._entries
        return _added(ids, own * self.centre(values)[rows], self._width)

    def spread(self) -> Vector:
        """Return the standard deviation per feature, one where it does not vary."""
        variance = self.variances() / max(self._count, 1)
        return np.where(variance > 0.0, np.sqrt(variance), 1.0)

    def deviations(self) -> Vector:
        """Return the mean over lists of each feature's standard deviation within the list.

        Lists of one hypothesis do not count; a feature that a list lacks does not vary there.
        """
        summed = _added(self._cells[1], self._scaled, self._width)
        return summed / max(float((self.sizes > 1).sum()), 1.0)

    def block_deviations(
        self, ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], Vector]:
        """Return the sums of standard deviations per feature within each block of lists.

        In the form of `block_variances`.
        """
        return self._by_block(ends, self._scaled)

    @property
    def _scaled(self) -> Vector:
        """The standard deviation of each cell, zero in lists of one hypothesis."""
        scale = np.where(self.sizes > 1, 1.0 / np.sqrt(self.sizes), 0.0)
        lists, _, found = self._cells
        return np.asarray(np.sqrt(found) * scale[lists], np.float64)

    def influence(self, weights: Vector) -> Vector:
        """Return per list Σ |weight| √(Σ x²): how far the weights move scores within the list."""
        lists, ids, found = self._cells
        moved = np.sqrt(found) * np.abs(weights)[ids]
        # By feature, so that sums do not depend on the order in which hypotheses bring features.
        order = np.lexsort((ids, lists))
        return _added(lists[order], moved[order], len(self.sizes))

    def gram(self) -> npt.NDArray[np.float64]:
        """Return Σ x xᵀ, dense, x centred."""
        return self._core.gram()


def _added(keys: npt.NDArray[np.integer[Any]], values: Vector, length: int) -> Vector:
    """Return the sum of the values of each key, added up from the first to the last."""
    return np.asarray(np.bincount(keys, values, length), np.float64)


def spreads(spaces: Spaces, weights: Weights, threads: int = 0) -> dict[str, float]:
    """Return the mean standard deviation within lists of the features that matter most.

    What matters is |weight| × spread: how far a feature moves scores within a list. At most
    `MOST_SPREADS` features are returned, largest first, and none that moves nothing. The best
    strings of forests stand for them.
    """
    lists = spaces.listed([spaces.vector(weights, partial=True)], LISTED, threads)
    found, names = Within(lists).deviations(), lists.names
    return most_influential(names, found, weights.vector(names))


def most_influential(names: Sequence[str], found: Vector, weights: Vector) -> dict[str, float]:
    """Return the spreads of the features that move scores most, largest first."""
    influence = np.abs(weights) * found
    order = np.argsort(-influence, kind="stable")[:MOST_SPREADS]
    return {names[i]: float(found[i]) for i in order if influence[i] > 0.0}


def recover_weights(pools: Pools) -> Weights | None:
    """Return the weights behind the lists' own total scores.

    None where scores are missing or are no linear function of the features. Differences within
    lists decide, so scores may hold anything that a sentence's hypotheses share.
    """
    scores, names = pools.core.scores, pools.names
    if not len(scores) or not np.isfinite(scores).all() or len(names) > MOST_FEATURES:
        return None
    within = Within(pools)
    target = within.centre(scores)
    spread = float(target @ target)
    if spread == 0.0:
        return None
    # In units of each feature's variation, so that rare and small ones count as much.
    unit = within.spread()
    gram = within.gram() / np.outer(unit, unit)
    found, *_ = np.linalg.lstsq(gram, within.covariances(scores) / unit, rcond=1e-10)
    weights = found / unit
    missed = target - within.centre(within.scores(weights))
    if float(missed @ missed) > 1e-4 * spread:
        return None
    size = float(np.abs(weights).max())
    return Weights.from_vector(names, np.where(np.abs(weights) > 1e-6 * size, weights, 0.0))
