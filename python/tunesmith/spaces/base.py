"""What the sentences of a corpus could become: what every tuner works on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces.oracle import added, search_oracle
from tunesmith.spaces.outline import Outline, Positions
from tunesmith.weights import Vector, Weights

if TYPE_CHECKING:
    from tunesmith.spaces.pools import Pools

References = Sequence[Sequence[str] | str]
"""The references of each sentence; a string is the only one."""


def references_of(texts: str | Sequence[str]) -> list[str]:
    """Return the references of a sentence; a string is one."""
    return [texts] if isinstance(texts, str) else list(texts)


class Spaces(Outline):
    """All that the sentences of a corpus could become, with references.

    What is chosen is an array of positions, one per sentence, -1 where there is nothing to choose;
    positions mean something only to the spaces that gave them.
    """

    core: _core.Pools | _core.Forests
    counts: Mapping[str, int] = {}
    """What a source counted while it found these, for the events of a run."""

    def __init__(
        self,
        sentences: int,
        references: References | None,
        sources: Sequence[str] | None,
        what: str,
    ) -> None:
        self.what = what
        for texts, called in ((references, "references"), (sources, "sources")):
            if isinstance(texts, str):
                raise InputError(
                    f"a string in place of {called}",
                    remedy="give a list with one for each sentence",
                )
        if references is not None and len(references) != sentences:
            raise InputError(
                f"{sentences} {what}s, but references for {len(references)} sentences",
                remedy=f"give one reference line per {what}, blank lines included",
            )
        if sources is not None and len(sources) != sentences:
            raise InputError(
                f"{sentences} {what}s, but {len(sources)} source sentences",
                remedy=f"give one source line per {what}",
            )
        self.references = (
            None if references is None else [references_of(texts) for texts in references]
        )
        self.sources = None if sources is None else list(sources)

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return self.core.sentences

    def __len__(self) -> int:
        return self.sentences

    def __bool__(self) -> bool:
        # An empty corpus is a valid space.
        return True

    @property
    def whole(self) -> Spaces:
        """These spaces."""
        return self

    @property
    def groups(self) -> Positions:
        """The line that each list or forest belongs to: several only where a line has bins."""
        return np.arange(self.sentences, dtype=np.int64)

    @property
    def binned(self) -> bool:
        """Whether a line has a list for every step of its search."""
        return False

    @property
    @abstractmethod
    def extents(self) -> Positions:
        """Number of hypotheses of each list, of edges of each forest."""

    @property
    @abstractmethod
    def keys(self) -> list[str]:
        """A label per sentence, or nothing."""

    @property
    def names(self) -> list[str]:
        """Feature names; a feature's id is its place here."""
        return self.core.names

    @abstractmethod
    def table(self, metric: Metric | str, threads: int = 0) -> _core.Table | _core.Segments:
        """Return the statistics of every hypothesis, or what computes them when asked."""

    @abstractmethod
    def first(self) -> Positions:
        """Return the choice of whoever made the spaces."""

    @abstractmethod
    def best(self, weights: Vector | Mapping[str, float], threads: int = 0) -> Positions:
        """Return the best-scoring hypothesis of each sentence, the first among equals."""

    @abstractmethod
    def outputs(self, positions: Positions) -> list[str]:
        """Return the chosen texts, one per sentence, blank where there is nothing to choose."""

    @abstractmethod
    def statistics(self, metric: Metric | str, positions: Positions) -> npt.NDArray[np.float64]:
        """Return one row of statistics per sentence for the chosen hypotheses.

        A sentence without any counts as a blank output, so that nobody gains by losing one.
        """

    def oracle(
        self,
        metric: Metric | str,
        weights: Vector | Mapping[str, float],
        *,
        best: bool = True,
    ) -> Positions:
        """Return the choices with the best (or worst) corpus score that can be found."""
        measure = get_metric(metric)
        return search_oracle(_Alone(self, measure, self.vector(weights), best), measure, best)

    exchanges: ClassVar[int]
    """How often choices are exchanged, at most, in the search for an oracle."""
    in_turn: ClassVar[bool]
    """Whether an exchange knows those of the sentences before it."""

    @abstractmethod
    def best_alone(self, metric: Metric, weights: Vector, best: bool) -> Positions:
        """Return the choices with the best (or worst) gain of each sentence alone."""

    @abstractmethod
    def exchanged(
        self,
        metric: Metric,
        weights: Vector,
        best: bool,
        chosen: Positions,
        total: Vector,
        first: int = 0,
    ) -> tuple[Positions, Vector]:
        """Return better (or worse) choices for a corpus, and the sum of their statistics.

        `total` is the sum of the statistics of all choices of the corpus, which may have other
        sentences, too. `chosen` are those of the sentences from `first` on; without `in_turn`,
        these are all.
        """

    @abstractmethod
    def consensus(
        self, weights: Vector | Mapping[str, float], alpha: float | None = None, threads: int = 0
    ) -> Positions:
        """Return the hypotheses of highest BLEU against the expected n-gram counts under exp(α s).

        Minimum Bayes risk decoding as in DeNero, Chiang & Knight 2009: the gain of the expectation
        stands for the expectation of gains.
        """

    @abstractmethod
    def kept(self, positions: Positions) -> tuple[Spaces, Positions]:
        """Return small spaces with the texts of the chosen hypotheses, and where they are."""

    @abstractmethod
    def relative(self, positions: Positions, first: int = 0) -> list[Any]:
        """Return choices in a form that means the same to a part of the spaces and to the whole.

        They are those of the lists or forests from `first` on.
        """

    @abstractmethod
    def absolute(self, choices: Sequence[Any], first: int = 0) -> Positions:
        """Return as positions what `relative` gave."""

    @abstractmethod
    def subset(self, sentences: Sequence[int]) -> Self:
        """Return some of the sentences."""

    @property
    def thins(self) -> bool:
        """Whether `thinned` leaves anything out."""
        return False

    def thinned(self, several: Iterable[npt.NDArray[np.bool_]]) -> Iterator[Self]:
        """Yield spaces of the same sentences that hold little of those not kept."""
        for _ in several:
            yield self

    @classmethod
    @abstractmethod
    def join(cls, parts: Sequence[Any]) -> Spaces:
        """Return the sentences of all parts, which are of this kind, one after the other."""

    @abstractmethod
    def aligned(self, names: Sequence[str]) -> Self:
        """Return the spaces with the features of `names` first, in their order, others after."""

    @abstractmethod
    def with_ids_of(self, learner: _core.Learner) -> Self:
        """Return the spaces with the ids that a learner has for their features, without names."""

    @abstractmethod
    def merged(self, other: Self, threads: int = 0) -> Self:
        """Return what either holds; both are of the same sentences, from different searches."""

    @abstractmethod
    def listed(self, points: Sequence[Vector], k: int, threads: int = 0) -> Pools:
        """Return lists: these, or the `k` best of each forest at some points."""

    @abstractmethod
    def pruned(self, weights: Mapping[str, float], density: float, threads: int = 0) -> Self:
        """Return the best `density` edges for each word of forests; lists as they are."""

    @abstractmethod
    def decoded(self, weights: Mapping[str, float], threads: int = 0) -> Positions:
        """Return the choices of the decoder that has just found these with the weights."""

    @abstractmethod
    def recovered_weights(self) -> Weights | None:
        """Return the weights behind the spaces' own scores, if they have scores that weights
        explain."""

    @abstractmethod
    def save(self, path: Path) -> Path:
        """Write the spaces to a file of this name with a suffix of its own; return the file."""

    @abstractmethod
    def contents(self, metric: Metric) -> Iterator[bytes]:
        """Yield all that tuning can depend on, for a fingerprint."""

    def score(self, metric: Metric | str, positions: Positions) -> float:
        """Return the corpus score of the chosen hypotheses; of bins, those of the last count."""
        metric = get_metric(metric)
        return metric.native.score(self.statistics(metric, positions)[self.last].sum(axis=0))

    def score_all(self, metric: Metric | str, positions: Positions) -> float:
        """Return the corpus score of the chosen hypotheses of all bins."""
        metric = get_metric(metric)
        return metric.native.score(self.statistics(metric, positions).sum(axis=0))

    def signature(self, metric: Metric | str) -> str:
        """Return the metric's signature for these references."""
        metric = get_metric(metric)
        counts = {len(references) for references in self.references or [[""]]}
        return metric.signature(counts.pop() if len(counts) == 1 else -1)

    def _chosen(self, sentences: Sequence[int]) -> tuple[list[list[str]] | None, list[str] | None]:
        """Return references and sources of some sentences."""
        return (
            None if self.references is None else [self.references[i] for i in sentences],
            None if self.sources is None else [self.sources[i] for i in sentences],
        )


def check_range(name: str, value: float | None, low: float, high: float = inf) -> None:
    """Refuse a value outside of its range, and one that is no number."""
    if value is not None and not low <= value <= high:
        to = "on" if high == inf else f"to {high}"
        raise InputError(f"{name} is {value}", remedy=f"give a number from {low} {to}")


@dataclass(frozen=True)
class _Alone:
    """The search for an oracle in spaces that are all here."""

    spaces: Spaces
    metric: Metric
    weights: Vector
    best: bool

    @property
    def exchanges(self) -> int:
        return self.spaces.exchanges

    def alone(self) -> tuple[Positions, Vector]:
        found = self.spaces.best_alone(self.metric, self.weights, self.best)
        return found, added(self.spaces.statistics(self.metric, found))

    def exchanged(self, chosen: Positions, total: Vector) -> tuple[Positions, Vector]:
        return self.spaces.exchanged(self.metric, self.weights, self.best, chosen, total)
