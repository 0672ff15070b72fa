"""Lists or forests that are there already: the same answer whatever the weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.errors import InputError
from tunesmith.metrics import Metric
from tunesmith.sources.base import Choice, Source
from tunesmith.spaces import Spaces
from tunesmith.weights import Vector, Weights


@dataclass
class Saved(Source):
    """Spaces that were decoded before."""

    spaces: Spaces

    fixed = True

    def __post_init__(self) -> None:
        of = self.spaces.by_line
        self.references = of(self.spaces.references) if self.spaces.references else []
        self.sources = of(self.spaces.sources) if self.spaces.sources else []

    @property
    def sentences(self) -> int:
        """Number of lines."""
        return self.spaces.lines

    def suited(self, space: str) -> Saved:
        """Return the source; raise if it lacks the bins that a tuner learns from."""
        if space == "bins" and not self.spaces.binned:
            raise InputError(
                f"the tuner learns from the bins of a search, not from {self.spaces.what}s",
                remedy="use it with a decoder (tunesmith tune), or take the tuner without sa-",
            )
        return self

    @property
    def keys(self) -> list[str]:
        """The labels of the lists, where their format has some."""
        return self.spaces.by_line(self.spaces.keys) if self.spaces.keys else []

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Return the spaces."""
        return self.spaces

    def choose(self, weights: Weights, threads: int = 0) -> Choice:
        """Return the best hypotheses; features that the weights do not know weigh nothing."""
        return self.choose_vector(self.spaces.vector(weights, partial=True), threads)

    def choose_vector(self, weights: Vector, threads: int = 0) -> Choice:
        """Return the best hypotheses under weights that may be fewer than the features."""
        return Choice(self.spaces, self.spaces.best(self.usable(weights), threads))

    def usable(self, weights: Vector) -> Vector:
        """Return a weight for every feature, given perhaps fewer.

        Weights that are not finite count as zero: a tuner may find better ones yet, or is refused.
        """
        finite = np.nan_to_num(weights, posinf=0.0, neginf=0.0)
        return np.pad(finite, (0, self.spaces.width - len(finite)))

    def opening(
        self, start: Mapping[str, float] | Vector | None, threads: int = 0
    ) -> tuple[Vector, Choice]:
        """Return the weights to begin with, and the choices that count as the start.

        Without start weights, those behind the spaces' own scores are recovered, or zero is used,
        which keeps the order of lists.
        """
        spaces = self.spaces
        if start is None:
            vector = spaces.vector(spaces.recovered_weights() or {})
            return vector, Choice(spaces, spaces.first())
        # Weights of a larger model are welcome; those of another one are a mistake.
        if isinstance(start, Mapping):
            spaces.check_names(start, learnt=True)
        vector = spaces.vector(start, partial=True)
        return vector, Choice(spaces, spaces.best(vector, threads))

    def subset(self, sentences: Sequence[int]) -> Saved:
        """Return some of the lines."""
        wanted = np.isin(self.spaces.groups, list(sentences))
        return Saved(self.spaces.subset(np.flatnonzero(wanted).tolist()))

    def aligned(self, names: Sequence[str]) -> Saved:
        """Return the same with the features of `names` first."""
        return Saved(self.spaces.aligned(names))

    def digest(self, metric: Metric) -> str:
        """Return a fingerprint of hypotheses, features and statistics."""
        made = hashlib.sha256()
        for part in self.spaces.contents(metric):
            made.update(part)
        made.update("\n".join(self.spaces.names).encode("utf-8", "surrogatepass"))
        return made.hexdigest()

    def check(self) -> None:
        """Raise if there is nothing to learn from."""
        if self.spaces.hypotheses == 0:
            raise InputError("the lists hold no hypotheses", remedy="check the n-best file")
        if not self.spaces.names:
            raise InputError("the hypotheses have no features", remedy="nothing can be tuned")
