"""What the sentences of a corpus could become: what every tuner works on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from warnings import warn

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics import Metric, get_metric
from tunesmith.weights import Vector, Weights

if TYPE_CHECKING:
    from tunesmith.spaces.pools import Pools

T = TypeVar("T")
Positions = npt.NDArray[np.int64]
References = Sequence[Sequence[str] | str]
"""The references of each sentence; a string is the only one."""

# Names that a message lists, and among how many it looks for similar ones.
SHOWN_NAMES = 12
SEARCHED_NAMES = 5000


def references_of(texts: str | Sequence[str]) -> list[str]:
    """Return the references of a sentence; a string is one."""
    return [texts] if isinstance(texts, str) else list(texts)


class Spaces(ABC):
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
        """A list or a forest: what there is of each sentence."""
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
    def groups(self) -> Positions:
        """The line that each list or forest belongs to: several only where a line has bins."""
        return np.arange(self.sentences, dtype=np.int64)

    @property
    def last(self) -> Positions:
        """The list or forest of each line that holds whole translations."""
        return np.arange(self.sentences, dtype=np.int64)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.last)

    @property
    def binned(self) -> bool:
        """Whether a line has a list for every step of its search."""
        return False

    def by_line(self, values: Sequence[T]) -> list[T]:
        """Return the values of the lines, given those of all lists: of bins, the last one's."""
        return [values[place] for place in self.last.tolist()]

    @property
    @abstractmethod
    def flat(self) -> bool:
        """Whether every hypothesis is written out, as in a list."""

    @property
    @abstractmethod
    def hypotheses(self) -> int:
        """Number of hypotheses in all lists, of edges in all forests."""

    @property
    @abstractmethod
    def keys(self) -> list[str]:
        """A label per sentence, or nothing."""

    @property
    def names(self) -> list[str]:
        """Feature names; a feature's id is its place here."""
        return self.core.names

    @cached_property
    def width(self) -> int:
        """Number of features: the length of a vector of weights."""
        return len(self.names)

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

    @abstractmethod
    def oracle(
        self,
        metric: Metric | str,
        weights: Vector | Mapping[str, float],
        *,
        best: bool = True,
    ) -> Positions:
        """Return the choices with the best (or worst) corpus score that can be found."""

    @abstractmethod
    def consensus(
        self, weights: Vector | Mapping[str, float], alpha: float | None = None, threads: int = 0
    ) -> Positions:
        """Return the hypotheses of highest BLEU against the expected n-gram counts under exp(α s).

        Minimum Bayes risk decoding as in DeNero, Chiang & Knight 2009: the gain of the expectation
        stands for the expectation of gains.
        """

    def kept(self, positions: Positions) -> tuple[Spaces, Positions]:
        """Return spaces with the chosen hypotheses and where they are: perhaps smaller ones."""
        return self, positions

    @abstractmethod
    def relative(self, positions: Positions) -> list[Any]:
        """Return choices in a form that means the same to a part of the spaces and to the whole."""

    @abstractmethod
    def absolute(self, choices: Sequence[Any]) -> Positions:
        """Return as positions what `relative` gave, one for each list or forest."""

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
    def holds_as_many(self, hypotheses: int) -> bool:
        """Whether a search that merged into these has brought nothing new since there were so many
        hypotheses; forests cannot tell."""

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

    def vector(self, weights: Vector | Mapping[str, float], *, partial: bool = False) -> Vector:
        """Return weights in the order of the names.

        Refuses a vector of another length, weights that are not finite, and a mapping in which a
        weight other than zero has no feature here, unless `partial`. `Weights` that were learnt or
        read may know features that these sentences lack: they cause a warning, and are refused only
        where no weight has a feature.
        """
        if isinstance(weights, Mapping):
            if not partial:
                self.check_names(weights)
            vector = Weights(weights).vector(self.names)
        else:
            vector = np.ascontiguousarray(weights, np.float64)
            if vector.shape != (self.width,):
                raise InputError(
                    f"weights of shape {vector.shape} for {self.width} features",
                    remedy="give one weight per name, in the order of the names",
                )
        if not np.isfinite(vector).all():
            Weights.from_vector(self.names, vector).check_finite()
        return vector

    def check_names(self, weights: Mapping[str, float], *, learnt: bool = False) -> None:
        """Refuse weights other than zero that have no feature here.

        `Weights` cause a warning in place of that, and those that were `learnt` elsewhere nothing
        at all, but both are refused where no weight has a feature.
        """
        constants = weights.constants if isinstance(weights, Weights) else frozenset[str]()
        used = [name for name, value in weights.items() if value and name not in constants]
        unknown = [name for name in used if name not in self._known]
        if not unknown or not self.hypotheses:
            return
        some = len(unknown) < len(used)
        if some and learnt:
            return
        if some and isinstance(weights, Weights):
            shown = ", ".join(unknown[:5]) + ("…" if len(unknown) > 5 else "")
            told = f"weights without a feature in the {self.what}s: {len(unknown)} ({shown})"
            # To whoever called the method that called `vector`.
            warn(told, stacklevel=4)
            return
        also = f"; if the {self.what}s may lack it, give Weights(…)" if some else ""
        raise InputError(
            f"no feature is called {unknown[0]!r}",
            weights.file if isinstance(weights, Weights) else None,
            remedy=self._similar(unknown[0]) + also,
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def _similar(self, name: str) -> str:
        if near := get_close_matches(name, self.names[:SEARCHED_NAMES]):
            return f"use {' or '.join(map(repr, near))}"
        more = "…" if self.width > SHOWN_NAMES else ""
        listed = ", ".join(self.names[:SHOWN_NAMES]) + more
        return f"there are {listed}" if listed else f"the {self.what}s have no features at all"

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
