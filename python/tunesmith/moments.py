"""How features vary within lists: what is common to a list's hypotheses cannot matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith.features import Vector, Weights
from tunesmith.spaces import Forests, Pools, Spaces

# A dense matrix of features × features is made to recover weights; beyond this it is too large.
MOST_FEATURES = 1000
# Spreads that are kept beside weights, so that a file of millions of weights stays as it is.
MOST_SPREADS = 1000
# Strings of each forest that stand for it.
LISTED = 100


class Within:
    """Sums over hypotheses of features taken as differences to the mean of their list."""

    def __init__(self, pools: Pools) -> None:
        # Half a second that commands which need no moments do not wait for.
        from scipy.sparse import csr_array

        rows, ids, values = pools.core.csr()
        starts = pools.core.starts
        count, width = pools.hypotheses, len(pools.names)
        self.sizes = np.maximum(np.diff(starts), 1).astype(np.float64)
        self.lists = np.repeat(np.arange(pools.sentences), np.diff(starts))
        self.matrix: Any = csr_array(
            (values.astype(np.float64), ids.astype(np.int64), rows), shape=(count, width)
        )
        ones = np.ones(count)
        member: Any = csr_array(
            (ones, self.lists, np.arange(count + 1)), shape=(count, pools.sentences)
        )
        self._member = member.T.tocsr()
        self._sums: Any = self._member @ self.matrix

    def centre(self, values: Vector) -> Vector:
        """Return values of hypotheses as differences to the mean of their list."""
        means = (self._member @ values) / self.sizes
        centred: Vector = values - means[self.lists]
        return centred

    def variances(self) -> Vector:
        """Return Σ x² per feature, x centred; zero where it never varies within a list."""
        return _column_sums(self.cells())

    def cells(self) -> Any:
        """Return Σ x² per list and feature, x centred, as a sparse matrix."""
        from scipy.sparse import csr_array

        squares = self._member @ self.matrix.power(2)
        found = squares - self._sums.power(2).multiply(1.0 / self.sizes[:, None])
        # What is left of large squares that cancel out is rounding.
        return csr_array(found.multiply(found > 1e-13 * squares))

    def covariances(self, values: Vector) -> Vector:
        """Return Σ x·v per feature, both centred."""
        product: Vector = self.matrix.T @ self.centre(values)
        return product

    def spread(self) -> Vector:
        """Return the standard deviation per feature, one where it does not vary."""
        variance = self.variances() / max(self.matrix.shape[0], 1)
        return np.where(variance > 0.0, np.sqrt(variance), 1.0)

    def deviations(self) -> Vector:
        """Return the mean over lists of each feature's standard deviation within the list.

        Lists of one hypothesis do not count; a feature that a list lacks does not vary there.
        """
        several = self.sizes > 1
        scale = np.where(several, 1.0 / np.sqrt(self.sizes), 0.0)
        summed = _column_sums(self.cells().sqrt().multiply(scale[:, None]))
        return summed / max(float(several.sum()), 1.0)

    def gram(self) -> npt.NDArray[np.float64]:
        """Return Σ x xᵀ, dense, x centred."""
        scaled = self._sums.multiply(1.0 / self.sizes[:, None])
        product = self.matrix.T @ self.matrix - self._sums.T @ scaled
        return np.asarray(product.toarray(), np.float64)


def _column_sums(matrix: Any) -> Vector:
    return np.asarray(matrix.sum(axis=0), np.float64).ravel()


def spreads(spaces: Spaces, weights: Weights, threads: int = 0) -> dict[str, float]:
    """Return the mean standard deviation within lists of the features that matter most.

    What matters is |weight| × spread: how far a feature moves scores within a list. At most
    `MOST_SPREADS` features are returned, largest first, and none that moves nothing. The best
    strings of forests stand for them.
    """
    if isinstance(spaces, Forests):
        spaces = spaces.kbest(spaces.vector(weights, partial=True), LISTED, threads=threads)
    if not isinstance(spaces, Pools):
        return {}
    found, names = Within(spaces).deviations(), spaces.names
    influence = np.abs(weights.vector(names)) * found
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
    missed = target - within.centre(within.matrix @ weights)
    if float(missed @ missed) > 1e-4 * spread:
        return None
    size = float(np.abs(weights).max())
    return Weights.from_vector(names, np.where(np.abs(weights) > 1e-6 * size, weights, 0.0))
