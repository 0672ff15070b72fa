"""The hypotheses of a corpus, with their references: what every tuner works on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from math import inf, isfinite
from os import PathLike
from sys import maxsize
from threading import Lock
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.features import Vector, Weights
from tunesmith.metrics import Metric, get_metric

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
        # Spaces without sentences are there all the same.
        return True

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

    @abstractmethod
    def subset(self, sentences: Sequence[int]) -> Spaces:
        """Return some of the sentences."""

    @abstractmethod
    def aligned(self, names: Sequence[str]) -> Spaces:
        """Return the spaces with the features of `names` first, in their order, others after."""

    @abstractmethod
    def taken_by(self, learner: _core.Learner) -> Spaces:
        """Return the spaces with the ids that a learner has for their features, without names."""

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
        used = [name for name, value in weights.items() if value]
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
        """Return the corpus score of the chosen hypotheses."""
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


class Pools(Spaces):
    """Candidate lists, one per sentence, possibly empty, in the order in which they came.

    `references` holds the references of each sentence; metrics that read text need them. Metric
    statistics are computed once per metric and kept.

    >>> pools = Pools.from_arrays(
    ...     features=[[-1.0, 3.0], [-2.0, 4.0], [-1.5, 2.0]],
    ...     starts=[0, 2, 3],
    ...     names=["lm", "words"],
    ...     texts=["a b c", "a b c d", "x y"],
    ...     references=[["a b c d"], ["x y"]],
    ... )
    >>> pools.sentences, pools.hypotheses
    (2, 3)
    >>> pools.outputs(pools.first())
    ['a b c', 'x y']
    """

    def __init__(
        self,
        core: _core.Pools,
        references: References | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        super().__init__(core.sentences, references, sources, "list")
        self.core: _core.Pools = core
        # Of merged lists the first: its scores were all made by one set of weights.
        self.origin = self
        self._tables: dict[str, _core.Table] = {}
        # A metric without a repr of its own is named by its address, which is its own while it
        # lives: those that have a table are kept.
        self._metrics: list[Metric] = []

    @classmethod
    def from_arrays(
        cls,
        features: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
        starts: npt.ArrayLike,
        names: Sequence[str],
        texts: Sequence[str] | None = None,
        references: References | None = None,
        scores: npt.ArrayLike | None = None,
    ) -> Pools:
        """Lists from arrays: a matrix (hypotheses × names), or `(rows, ids, values)` in CSR form.

        `starts` has the first hypothesis of each sentence, and the number of all. Values are kept
        as 32-bit floats. Refuses values that are not finite and shapes that do not fit.
        """
        first = np.asarray(starts, np.int64)
        if isinstance(features, tuple):
            rows, ids, values = features
        else:
            matrix = np.asarray(features, np.float64)
            if matrix.ndim != 2 or matrix.shape[1] != len(names):
                raise InputError(
                    f"a feature matrix of shape {matrix.shape} for {len(names)} names",
                    remedy="give one row per hypothesis and one column per name",
                )
            rows = np.arange(matrix.shape[0] + 1) * matrix.shape[1]
            ids = np.tile(np.arange(matrix.shape[1]), matrix.shape[0])
            values = matrix.ravel()
        count = int(first[-1]) if first.size else 0
        if scores is not None and np.shape(scores) != (count,):
            raise InputError(
                f"scores of shape {np.shape(scores)} for {count} hypotheses",
                remedy="give one score per hypothesis",
            )
        core = _core.Pools.from_arrays(
            first,
            [""] * count if texts is None else list(texts),
            np.ascontiguousarray(rows, np.int64),
            np.ascontiguousarray(ids, np.int64),
            np.ascontiguousarray(values, np.float64),
            list(names),
            None if scores is None else np.ascontiguousarray(scores, np.float64),
        )
        return cls(core, references)

    @property
    def hypotheses(self) -> int:
        """Number of hypotheses in all lists."""
        return self.core.hypotheses

    @property
    def keys(self) -> list[str]:
        """A label per sentence where the format has one."""
        return self.core.keys

    def table(self, metric: Metric | str, threads: int = 0) -> _core.Table:
        """Return the statistics of every hypothesis, computed at the first call."""
        metric = get_metric(metric)
        key = repr(metric)
        if key not in self._tables:
            self._tables[key] = metric.table(self, threads)
            self._metrics.append(metric)
        return self._tables[key]

    def set_statistics(self, metric: Metric | str, rows: npt.ArrayLike) -> None:
        """Use ready-made statistics, one row per hypothesis, for a metric.

        Refuses other numbers of rows and columns than the lists and the metric have.
        """
        metric = get_metric(metric)
        matrix = np.ascontiguousarray(rows, np.float64)
        wanted = (self.hypotheses, metric.native.width)
        if matrix.shape != wanted:
            raise InputError(
                f"statistics of shape {matrix.shape} for {metric.name}",
                remedy=f"give {wanted[0]} rows, one per hypothesis, of {wanted[1]} numbers",
            )
        self._tables[repr(metric)] = _core.Table.from_rows(self.core.starts, matrix)
        self._metrics.append(metric)

    def first(self) -> Positions:
        """Return the first-ranked hypothesis of each list, -1 where it is empty."""
        starts = self.core.starts
        return np.where(starts[1:] > starts[:-1], starts[:-1], -1).astype(np.int64)

    def best(self, weights: Vector | Mapping[str, float], threads: int = 0) -> Positions:
        """Return the best-scoring hypothesis of each list, the first among equals."""
        return self.core.best(self.vector(weights), threads)

    def outputs(self, positions: Positions) -> list[str]:
        """Return the chosen texts, one per sentence, blank where the list is empty."""
        found = iter(self.core.texts(positions[positions >= 0]))
        return [next(found) if position >= 0 else "" for position in positions.tolist()]

    def statistics(self, metric: Metric | str, positions: Positions) -> npt.NDArray[np.float64]:
        """Return one row of statistics per sentence for the chosen hypotheses.

        An empty list counts as a blank output, so that nobody gains by losing a sentence.
        """
        metric = get_metric(metric)
        rows = self.core.take(self.table(metric), positions)
        empty = positions < 0
        if empty.any() and self.references is not None and metric.native.reads_text:
            chosen = np.flatnonzero(empty)
            references = [self.references[i] for i in chosen]
            rows[chosen] = metric.native.stats([""] * len(chosen), references)
        return rows

    def oracle(
        self,
        metric: Metric | str,
        weights: Vector | Mapping[str, float] | None = None,
        *,
        best: bool = True,
    ) -> Positions:
        """Return the choices with the best (or worst) corpus score that exchanging finds."""
        metric = get_metric(metric)
        return self.core.oracle(self.table(metric), metric.native, best)

    def consensus(
        self, weights: Vector | Mapping[str, float], alpha: float | None = None, threads: int = 0
    ) -> Positions:
        """Return the hypothesis of each list that the others agree with best."""
        return self.core.consensus(self.vector(weights), alpha, threads)

    def subset(self, sentences: Sequence[int]) -> Pools:
        """Return some of the sentences, statistics recomputed when asked for."""
        chosen = [int(sentence) for sentence in sentences]
        part = Pools(self.core.subset(chosen), *self._chosen(chosen))
        if self.origin is not self:
            part.origin = self.origin
        for key, table in self._tables.items():
            starts = self.core.starts
            places = [np.arange(starts[i], starts[i + 1]) for i in chosen]
            rows = table.rows()[np.concatenate(places)] if places else np.zeros((0, table.width))
            part._tables[key] = _core.Table.from_rows(part.core.starts, rows)
        part._metrics = list(self._metrics)
        return part

    def aligned(self, names: Sequence[str]) -> Pools:
        """Return the lists with the features of `names` first, in their order, others after."""
        if self.names == list(names):
            return self
        base = _core.PoolsBuilder(self.core.columns, list(names)).finish()
        return Pools(_core.Pools.merge([base, self.core]), self.references, self.sources)

    def taken_by(self, learner: _core.Learner) -> Pools:
        """Return the lists with a learner's ids."""
        return Pools(learner.take(self.core), self.references, self.sources)

    def contents(self, metric: Metric) -> Iterator[bytes]:
        """Yield features and statistics, for a fingerprint."""
        for array in (self.core.starts, *self.core.csr(), self.table(metric).rows()):
            yield np.ascontiguousarray(array).tobytes()

    @classmethod
    def merge(cls, parts: Sequence[Pools]) -> Pools:
        """Join lists of the same sentences; equal text and features are kept once."""
        references = next((part.references for part in parts if part.references), None)
        sources = next((part.sources for part in parts if part.sources), None)
        merged = cls(_core.Pools.merge([part.core for part in parts]), references, sources)
        merged.origin = parts[0]
        return merged

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.sentences} sentences, {self.hypotheses} hypotheses, "
            f"{len(self.names)} features)"
        )


class Bins(Pools):
    """Partial translations that a beam kept, a list for each line and number of covered words.

    Every bin is a list like any other, so tuning on bins is search-aware tuning. Texts are those
    of the covered words, followed by the best translation of the rest if they are `potential`.
    """

    def __init__(
        self,
        core: _core.Pools,
        lines: npt.ArrayLike,
        covered: npt.ArrayLike,
        references: References | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        super().__init__(core, references, sources)
        self.lines = np.asarray(lines, np.int64)
        """The line that each bin belongs to."""
        self.covered = np.asarray(covered, np.int64)
        """How many words of the line its translations cover."""

    def against(self, references: References) -> Bins:
        """Return the bins with references, given for each line."""
        most = int(self.lines.max(initial=-1))
        if most >= len(references):
            raise InputError(
                f"bins of {most + 1} lines, but references for {len(references)}",
                remedy="give references for every line, blank lines included",
            )
        chosen = [references[line] for line in self.lines]
        return Bins(self.core, self.lines, self.covered, chosen, self.sources)

    def rest(self, position: int) -> str:
        """Return the best translation of what a partial translation leaves uncovered."""
        return self.core.extra(position)


class Forests(Spaces):
    """The whole search space of a decoder, one forest per sentence, possibly without derivation.

    `k` strings stand for a forest where a tuner draws or sums over single hypotheses (pairs, the
    expected gain), and where a metric cannot be put together from parts (all but BLEU); a search
    for hope and fear over the whole forest looks at `pops` items of each node.

    >>> lists = Pools.from_arrays(
    ...     features=[[-1.0, 3.0], [-2.0, 4.0], [-1.5, 2.0]],
    ...     starts=[0, 2, 3],
    ...     names=["lm", "words"],
    ...     texts=["a b c", "a b c d", "x y"],
    ...     references=[["a b c d"], ["x y"]],
    ... )
    >>> forests = Forests.of_lists(lists)
    >>> weights = {"lm": 1.0, "words": 0.5}
    >>> forests.outputs(forests.best(weights))
    ['a b c', 'x y']
    >>> forests.kbest(weights, 2)
    Pools(2 sentences, 3 hypotheses, 2 features)
    """

    def __init__(
        self,
        core: _core.Forests,
        references: References | None = None,
        sources: Sequence[str] | None = None,
        *,
        k: int = 1500,
        pops: int = 20,
    ) -> None:
        super().__init__(core.sentences, references, sources, "forest")
        self.core: _core.Forests = core
        self.k, self.pops = k, pops
        self._segments: dict[str, _core.Segments] = {}
        # A metric without a repr of its own is named by its address, which is its own while it
        # lives: those that have segments are kept.
        self._metrics: list[Metric] = []
        # Every output that was ever chosen has a position, so that choices are arrays of numbers.
        self._lock = Lock()
        self._outputs: list[tuple[int, str]] = []
        self._places: dict[tuple[int, str], int] = {}

    @classmethod
    def of_lists(cls, lists: Pools, *, k: int = 1500, pops: int = 20) -> Forests:
        """Return every list as a forest of whole hypotheses: it behaves as the list does."""
        core = _core.Forests.of_lists(lists.core)
        return cls(core, lists.references, lists.sources, k=k, pops=pops)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        references: References | None = None,
        sources: Sequence[str] | None = None,
        *,
        k: int = 1500,
        pops: int = 20,
    ) -> Forests:
        """Return the forests of a file; refuses one that is cut short, damaged or of no forests."""
        return cls(_core.Forests.load(path), references, sources, k=k, pops=pops)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the forests, whole or not at all; `.gz` and `.zst` are compressed."""
        self.core.save(path)

    @classmethod
    def join(cls, parts: Sequence[Forests]) -> Forests:
        """Return the sentences of all parts, one part after the other."""

        def together(texts: list[list[str] | None] | list[list[list[str]] | None]) -> list[Any]:
            return [text for part in texts for text in part or ()]

        known = all(part.references is not None for part in parts)
        read = all(part.sources is not None for part in parts)
        return cls(
            _core.Forests.join([part.core for part in parts]),
            together([part.references for part in parts]) if known else None,
            together([part.sources for part in parts]) if read else None,
            **_reach(parts),
        )

    @classmethod
    def merge(cls, parts: Sequence[Forests], threads: int = 0) -> Forests:
        """Join the forests of the same sentences from several searches: all that any of them holds.

        Weights that were tuned on the union of earlier searches do not run away from them.
        """
        references = next((part.references for part in parts if part.references), None)
        sources = next((part.sources for part in parts if part.sources), None)
        core = _core.Forests.merge([part.core for part in parts], threads)
        return cls(core, references, sources, **_reach(parts))

    @property
    def hypotheses(self) -> int:
        """Number of edges in all forests."""
        return int(self.core.sizes()[1].sum())

    @property
    def keys(self) -> list[str]:
        """Nothing: forests have no labels."""
        return []

    def sizes(self) -> dict[str, npt.NDArray[Any]]:
        """Return nodes, edges and the logarithm (base 10) of derivations of each forest."""
        return dict(zip(("nodes", "edges", "derivations"), self.core.sizes(), strict=True))

    def table(self, metric: Metric | str, threads: int = 0) -> _core.Segments:
        """Return the references ready to score strings; refuses a metric that reads no text."""
        metric = get_metric(metric)
        key = repr(metric)
        if key not in self._segments:
            self._segments[key] = _core.Segments(
                self.core, metric.native, self._references(metric), self.k, self.pops, threads
            )
            self._metrics.append(metric)
        return self._segments[key]

    def kbest(
        self,
        weights: Vector | Mapping[str, float],
        k: int,
        unique: bool = True,
        threads: int = 0,
    ) -> Pools:
        """Return the `k` best of each sentence as lists, with scores; each string once if `unique`.

        The derivation kept for a string is its best. Refuses a `k` below zero.
        """
        check_range("k", k, 0, maxsize)
        core = self.core.kbest(self.vector(weights), k, unique, threads)
        return Pools(core, self.references, self.sources)

    def prune(
        self,
        weights: Vector | Mapping[str, float],
        *,
        beam: float | None = None,
        posterior: float | None = None,
        density: float | None = None,
        threads: int = 0,
    ) -> Forests:
        """Return smaller forests.

        `beam` keeps the edges of derivations that score at most so much less than the best,
        `posterior` those of at least that probability under p ∝ exp(s), `density` the best so many
        for each word, whatever the size of scores; the best derivation stays in any case. Refuses
        what is below zero, and a probability above one.
        """
        check_range("the beam", beam, 0)
        check_range("the posterior", posterior, 0, 1)
        check_range("the density", density, 0)
        core = self.core.prune(self.vector(weights), beam, posterior, density, threads)
        return Forests(core, self.references, self.sources, k=self.k, pops=self.pops)

    def first(self) -> Positions:
        """Refuse: a forest has no order of its own."""
        raise InputError("forests have no first-ranked hypotheses", remedy="give start weights")

    def best(self, weights: Vector | Mapping[str, float], threads: int = 0) -> Positions:
        """Return the best derivation of each forest as a position for the other methods."""
        best = self.core.best(self.vector(weights), threads)
        return self._positions([None if found is None else found[0] for found in best])

    def _positions(self, texts: Sequence[str | None]) -> Positions:
        positions = np.full(len(texts), -1, np.int64)
        with self._lock:
            for sentence, text in enumerate(texts):
                if text is not None:
                    key = (sentence, text)
                    place = self._places.setdefault(key, len(self._outputs))
                    if place == len(self._outputs):
                        self._outputs.append(key)
                    positions[sentence] = place
        return positions

    def outputs(self, positions: Positions) -> list[str]:
        """Return the chosen texts, one per sentence, blank where there is no derivation."""
        return [self._outputs[at][1] if at >= 0 else "" for at in positions.tolist()]

    def statistics(self, metric: Metric | str, positions: Positions) -> npt.NDArray[np.float64]:
        """Return one row of statistics per sentence for the chosen texts."""
        metric = get_metric(metric)
        references = self._references(metric)
        return metric.stats(self.outputs(positions), references)

    def _references(self, metric: Metric) -> list[list[str]]:
        if not metric.native.reads_text:
            raise InputError(
                f"{metric.name} reads columns, which forests do not have",
                remedy="tune on lists, or use a metric that reads text",
            )
        if self.references is None:
            raise InputError(f"{metric.name} needs references", remedy="give at least one")
        return self.references

    def oracle(
        self,
        metric: Metric | str,
        weights: Vector | Mapping[str, float],
        *,
        best: bool = True,
    ) -> Positions:
        """Return the choices with the best (or worst) corpus score that a search finds.

        Every sentence alone, then within the choices of all others; the search is that for hope
        and fear, without the model. Not exact: see `core/space/src/forest/gains.rs`.
        """
        texts, _ = self.table(metric).oracle(self.vector(weights), best)
        return self._positions(texts)

    def consensus(
        self, weights: Vector | Mapping[str, float], alpha: float | None = None, threads: int = 0
    ) -> Positions:
        """Return the string of each forest that all its derivations agree with best.

        Counts are those of the forest, by inside and outside; the string is found by the search
        for hope and fear. Not exact: see `core/space/src/forest/agree.rs`.
        """
        return self._positions(self.core.consensus(self.vector(weights), alpha, self.pops, threads))

    def expectations(
        self, weights: Vector | Mapping[str, float], alpha: float = 1.0
    ) -> list[dict[str, float]]:
        """Return the expected features of each forest over all derivations under p ∝ exp(α s).

        Features that a forest does not have are left out; one without derivation has none. Refuses
        a factor that is not finite.
        """
        vector, names = self.vector(weights), self.names
        _check_factor(alpha)

        def expected(sentence: int) -> dict[str, float]:
            ids, values = self.core.expectations(sentence, vector, alpha)
            return dict(zip((names[feature] for feature in ids), values.tolist(), strict=True))

        return [expected(sentence) for sentence in range(self.sentences)]

    def log_partition(
        self, weights: Vector | Mapping[str, float], alpha: float = 1.0, threads: int = 0
    ) -> Vector:
        """Return ln Σ exp(α s) over all derivations of each forest, -inf where there are none.

        It turns a score into a probability: ln p = α s - this.
        """
        _check_factor(alpha)
        return self.core.log_partition(self.vector(weights), alpha, threads)

    def subset(self, sentences: Sequence[int]) -> Forests:
        """Return some of the sentences."""
        chosen = [int(sentence) for sentence in sentences]
        core = self.core.subset(chosen)
        return Forests(core, *self._chosen(chosen), k=self.k, pops=self.pops)

    def aligned(self, names: Sequence[str]) -> Forests:
        """Return the forests with the features of `names` first, in their order, others after."""
        if self.names == list(names):
            return self
        core = self.core.renamed(list(names))
        return Forests(core, self.references, self.sources, k=self.k, pops=self.pops)

    def taken_by(self, learner: _core.Learner) -> Forests:
        """Return the forests with a learner's ids."""
        core = learner.take(self.core)
        return Forests(core, self.references, self.sources, k=self.k, pops=self.pops)

    def contents(self, metric: Metric) -> Iterator[bytes]:
        """Yield forests and references, for a fingerprint."""
        yield self.core.encoded()
        yield repr((metric.name, self.references, self.k, self.pops)).encode(
            "utf-8", "surrogatepass"
        )

    def __repr__(self) -> str:
        return (
            f"Forests({self.sentences} sentences, {self.hypotheses} edges, "
            f"{len(self.names)} features)"
        )


def _reach(parts: Sequence[Forests]) -> dict[str, int]:
    """Return the largest `k` and `pops` of parts, as options."""
    if not parts:
        return {}
    return {"k": max(part.k for part in parts), "pops": max(part.pops for part in parts)}


def check_range(name: str, value: float | None, low: float, high: float = inf) -> None:
    """Refuse a value outside of its range, and one that is no number."""
    if value is not None and not low <= value <= high:
        to = "on" if high == inf else f"to {high}"
        raise InputError(f"{name} is {value}", remedy=f"give a number from {low} {to}")


def _check_factor(alpha: float) -> None:
    if not isfinite(alpha):
        raise InputError(f"alpha is {alpha}", remedy="give a finite number")
