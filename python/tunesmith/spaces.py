"""The hypotheses of a corpus, with their references: what every tuner works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.features import Vector, Weights
from tunesmith.metrics import Metric, get_metric

Positions = npt.NDArray[np.int64]


class Pools:
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
        references: Sequence[Sequence[str]] | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        if references is not None and len(references) != core.sentences:
            raise InputError(
                f"{core.sentences} lists, but references for {len(references)} sentences",
                remedy="give one reference line per list, blank lines included",
            )
        if sources is not None and len(sources) != core.sentences:
            raise InputError(
                f"{core.sentences} lists, but {len(sources)} source sentences",
                remedy="give one source line per list",
            )
        self.core = core
        self.references = None if references is None else [list(refs) for refs in references]
        self.sources = None if sources is None else list(sources)
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
        references: Sequence[Sequence[str]] | None = None,
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
    def sentences(self) -> int:
        """Number of lists."""
        return self.core.sentences

    @property
    def hypotheses(self) -> int:
        """Number of hypotheses in all lists."""
        return self.core.hypotheses

    @property
    def names(self) -> list[str]:
        """Feature names; a feature's id is its place here."""
        return self.core.names

    def table(self, metric: Metric, threads: int = 0) -> _core.Table:
        """Return the statistics of every hypothesis, computed at the first call."""
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

    def vector(self, weights: Vector | Mapping[str, float]) -> Vector:
        """Return weights in the order of the names."""
        if isinstance(weights, Mapping):
            return Weights(weights).vector(self.names)
        return np.ascontiguousarray(weights, np.float64)

    def outputs(self, positions: Positions) -> list[str]:
        """Return the chosen texts, one per sentence, blank where the list is empty."""
        found = iter(self.core.texts(positions[positions >= 0]))
        return [next(found) if position >= 0 else "" for position in positions.tolist()]

    def statistics(self, metric: Metric, positions: Positions) -> npt.NDArray[np.float64]:
        """Return one row of statistics per sentence for the chosen hypotheses.

        An empty list counts as a blank output, so that nobody gains by losing a sentence.
        """
        rows = self.core.take(self.table(metric), positions)
        empty = positions < 0
        if empty.any() and self.references is not None and metric.native.reads_text:
            chosen = np.flatnonzero(empty)
            references = [self.references[i] for i in chosen]
            rows[chosen] = metric.native.stats([""] * len(chosen), references)
        return rows

    def score(self, metric: Metric, positions: Positions) -> float:
        """Return the corpus score of the chosen hypotheses."""
        return metric.native.score(self.statistics(metric, positions).sum(axis=0))

    def signature(self, metric: Metric) -> str:
        """Return the metric's signature for these references."""
        counts = {len(references) for references in self.references or [[""]]}
        return metric.signature(counts.pop() if len(counts) == 1 else -1)

    def oracle(self, metric: Metric, *, best: bool = True) -> Positions:
        """Return the choices with the best (or worst) corpus score that exchanging finds."""
        return self.core.oracle(self.table(metric), metric.native, best)

    def subset(self, sentences: Sequence[int]) -> Pools:
        """Return some of the sentences, statistics recomputed when asked for."""
        chosen = [int(sentence) for sentence in sentences]
        part = Pools(
            self.core.subset(chosen),
            None if self.references is None else [self.references[i] for i in chosen],
            None if self.sources is None else [self.sources[i] for i in chosen],
        )
        if self.origin is not self:
            part.origin = self.origin
        for key, table in self._tables.items():
            starts = self.core.starts
            places = [np.arange(starts[i], starts[i + 1]) for i in chosen]
            rows = table.rows()[np.concatenate(places)] if places else np.zeros((0, table.width))
            part._tables[key] = _core.Table.from_rows(part.core.starts, rows)
        part._metrics = list(self._metrics)
        return part

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
            f"Pools({self.sentences} sentences, {self.hypotheses} hypotheses, "
            f"{len(self.names)} features)"
        )
