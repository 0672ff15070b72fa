"""Candidate lists: every hypothesis written out, one list per sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.files.arrays import packed, read_arrays, unpacked, write_arrays
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces.base import References, Spaces
from tunesmith.spaces.moments import recover_weights
from tunesmith.spaces.outline import Positions
from tunesmith.weights import Vector, Weights

# Texts of each hypothesis, in one array.
PACKED = ("texts", "extras")


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
        # None for its own, because an object that refers to itself is not freed at once.
        self._origin: Pools | None = None
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
    def origin(self) -> Pools:
        """Of merged lists the first: its scores were all made by one set of weights."""
        return self._origin or self

    @property
    def flat(self) -> bool:
        """Lists have every hypothesis written out."""
        return True

    @property
    def hypotheses(self) -> int:
        """Number of hypotheses in all lists."""
        return self.core.hypotheses

    @property
    def extents(self) -> Positions:
        """Number of hypotheses of each list."""
        return np.diff(self.core.starts)

    @property
    def keys(self) -> list[str]:
        """A label per sentence where the format has one."""
        return self.core.keys

    def table(self, metric: Metric | str, threads: int = 0) -> _core.Table:
        """Return the statistics of every hypothesis, computed at the first call."""
        metric = get_metric(metric)
        key = repr(metric)
        if key not in self._tables:
            return self._keep(metric, metric.table(self, threads))
        return self._tables[key]

    def _keep(self, metric: Metric, table: _core.Table) -> _core.Table:
        self._tables[repr(metric)] = table
        self._metrics.append(metric)
        return table

    def set_table(self, metric: Metric, table: _core.Table) -> None:
        """Take the statistics of every hypothesis as a table that was made of these lists."""
        self._keep(metric, table)

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
        self._keep(metric, _core.Table.from_rows(self.core.starts, matrix))

    def first(self) -> Positions:
        """Return the first-ranked hypothesis of each list, -1 where it is empty."""
        starts = self.core.starts
        return np.where(starts[1:] > starts[:-1], starts[:-1], -1).astype(np.int64)

    def best(self, weights: Vector | Mapping[str, float], threads: int = 0) -> Positions:
        """Return the best-scoring hypothesis of each list, the first among equals."""
        return self.core.best(self.vector(weights), threads)

    def relative(self, positions: Positions, first: int = 0) -> list[Any]:
        """Return the place of each choice in its list, -1 where there is none."""
        starts = self.core.starts[first : first + len(positions)]
        places: list[int] = np.where(positions < 0, -1, positions - starts).tolist()
        return places

    def absolute(self, choices: Sequence[Any], first: int = 0) -> Positions:
        """Return positions, given places in lists."""
        places = np.asarray(choices, np.int64)
        starts = self.core.starts[first : first + len(places)]
        return np.where(places < 0, -1, places + starts)

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

    exchanges = 20
    # Other orders find worse choices, and going over lists takes no time.
    in_turn = True

    def oracle(
        self,
        metric: Metric | str,
        weights: Vector | Mapping[str, float] | None = None,
        *,
        best: bool = True,
    ) -> Positions:
        """Return the choices with the best (or worst) corpus score that exchanging finds."""
        return super().oracle(metric, {} if weights is None else weights, best=best)

    def best_alone(self, metric: Metric, weights: Vector, best: bool) -> Positions:
        """Return the best (or worst) hypothesis of each list alone."""
        return self.core.best_alone(self.table(metric), metric.native, best)

    def exchanged(
        self,
        metric: Metric,
        weights: Vector,
        best: bool,
        chosen: Positions,
        total: Vector,
        first: int = 0,
    ) -> tuple[Positions, Vector]:
        """Return better (or worse) choices for lists from `first` on, and the sum afterwards."""
        return self.core.exchange(self.table(metric), metric.native, best, first, chosen, total)

    def kept(self, positions: Positions) -> tuple[Spaces, Positions]:
        """Return lists of the chosen hypotheses only, without features."""
        picked = self._like(self.core.picked(positions), self.references, self.sources)
        bare: dict[str, npt.NDArray[Any]] = {
            "rows": np.zeros(picked.hypotheses + 1, np.int64),
            "ids": np.zeros(0, np.int64),
            "values": np.zeros(0),
            "names": packed([]),
        }
        small = self._like(
            self.core_of({**picked._arrays(), **bare}), self.references, self.sources
        )
        metrics = {repr(metric): metric for metric in self._metrics}
        for key, table in self._tables.items():
            rows = self.core.take(table, positions)[positions >= 0]
            small.set_statistics(metrics[key], rows)
        return small, small.first()

    def consensus(
        self, weights: Vector | Mapping[str, float], alpha: float | None = None, threads: int = 0
    ) -> Positions:
        """Return the hypothesis of each list that the others agree with best."""
        return self.core.consensus(self.vector(weights), alpha, threads)

    def _like(
        self, core: _core.Pools, references: References | None, sources: Sequence[str] | None
    ) -> Self:
        """Return lists of this kind with another core."""
        return type(self)(core, references, sources)

    def subset(self, sentences: Sequence[int]) -> Self:
        """Return some of the sentences, with the statistics that are known."""
        chosen = [int(sentence) for sentence in sentences]
        part = self._like(self.core.subset(chosen), *self._chosen(chosen))
        part._origin = self._origin
        for key, table in self._tables.items():
            part._tables[key] = table.subset(chosen)
        part._metrics = list(self._metrics)
        return part

    @property
    def thins(self) -> bool:
        """Bins stay whole."""
        return not self.binned

    def thinned(self, several: Iterable[npt.NDArray[np.bool_]]) -> Iterator[Self]:
        """Yield as many lists with the same features; of those not kept, the first hypothesis.

        `several` says which are kept. What all lists begin with is known then: gains over a
        background start from its mean.
        """
        state = self.__getstate__()
        arrays = state["arrays"]
        starts, sizes = arrays["starts"], np.diff(arrays["rows"])
        lengths = np.diff(starts)
        texts = {name: unpacked(arrays[name]) for name in PACKED}
        for kept in several:
            chosen = np.repeat(kept, lengths)
            chosen[starts[:-1][lengths > 0]] = True
            cells = np.repeat(chosen, sizes)
            thin = {
                "starts": np.concatenate([[0], np.cumsum(chosen)])[starts],
                "rows": np.concatenate([[0], np.cumsum(sizes[chosen])]),
                **{name: arrays[name][cells] for name in ("ids", "values")},
                **{name: packed(list(compress(texts[name], chosen))) for name in PACKED},
                "scores": arrays["scores"][chosen],
                **{key: arrays[key][chosen] for key in arrays if key.startswith("column.")},
            }
            tables = [(metric, rows[chosen]) for metric, rows in state["tables"]]
            part = type(self).__new__(type(self))
            part.__setstate__({**state, "arrays": {**arrays, **thin}, "tables": tables})
            yield part

    def aligned(self, names: Sequence[str]) -> Self:
        """Return the lists with the features of `names` first, in their order, others after."""
        if self.names == list(names):
            return self
        base = _core.PoolsBuilder(self.core.columns, list(names)).finish()
        core = _core.Pools.merge([base, self.core])
        return self._like(core, self.references, self.sources)

    def with_ids_of(self, learner: _core.Learner) -> Self:
        """Return the lists with a learner's ids."""
        return self._like(learner.take(self.core), self.references, self.sources)

    def merged(self, other: Self, threads: int = 0) -> Self:
        """Return the hypotheses of both; equal text and features are kept once."""
        return self.merge([self, other])

    def listed(self, points: Sequence[Vector], k: int, threads: int = 0) -> Pools:
        """Return the lists themselves."""
        return self

    def pruned(self, weights: Mapping[str, float], density: float, threads: int = 0) -> Self:
        """Return the lists themselves."""
        return self

    def decoded(self, weights: Mapping[str, float], threads: int = 0) -> Positions:
        """Return the first-ranked hypotheses: a decoder writes its choice first."""
        return self.first()

    def recovered_weights(self) -> Weights | None:
        """Return the weights behind the lists' own scores, None where these are not linear."""
        return recover_weights(self.origin)

    def save(self, path: Path) -> Path:
        """Write the lists to an `.npz` file."""
        return self._save(path.with_suffix(".npz"), {})

    def _save(self, file: Path, told: Mapping[str, str]) -> Path:
        write_arrays(file, self._arrays(), told)
        return file

    @classmethod
    def load(cls, file: Path, references: References | None, sources: Sequence[str] | None) -> Self:
        """Return the lists of a file; raise if there is none, or it is damaged."""
        return cls(cls._read(file)[0], references, sources)

    @classmethod
    def _read(cls, file: Path) -> tuple[_core.Pools, Mapping[str, Any]]:
        """Return the core of a file, and the JSON values beside it."""
        found = read_arrays(file)
        if found is None:
            raise InputError(
                "what was decoded is missing", str(file), remedy="start the run in another folder"
            )
        try:
            return cls.core_of(found.arrays), found.state
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise InputError(
                f"does not hold lists: {error}", str(file), remedy="start the run in another folder"
            ) from error

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that the core holds, as arrays."""
        rows, ids, values = self.core.csr()
        return {
            "starts": self.core.starts,
            "rows": rows,
            "ids": ids,
            "values": values,
            "texts": self.core.packed(),
            "names": packed(self.names),
            "scores": self.core.scores,
            "keys": packed(self.core.keys),
            "extras": self.core.packed(extras=True),
            "lines": self.core.lines if self.binned else np.zeros(0, np.int64),
            "columns": packed(self.core.columns),
            **{f"column.{name}": self.core.column(name) for name in self.core.columns},
        }

    @staticmethod
    def core_of(arrays: Mapping[str, npt.NDArray[Any]]) -> _core.Pools:
        """Return the core that `_arrays` took apart."""
        return _core.Pools.from_arrays(
            arrays["starts"],
            unpacked(arrays["texts"]),
            arrays["rows"],
            arrays["ids"].astype(np.int64),
            arrays["values"].astype(np.float64),
            unpacked(arrays["names"]),
            arrays["scores"],
            [(name, arrays[f"column.{name}"].tolist()) for name in unpacked(arrays["columns"])],
            unpacked(arrays["keys"]),
            unpacked(arrays["extras"]),
            arrays["lines"].tolist(),
        )

    def __getstate__(self) -> dict[str, Any]:
        metrics = {repr(metric): metric for metric in self._metrics}
        return {
            "arrays": self._arrays(),
            "references": self.references,
            "sources": self.sources,
            # Ready-made statistics cannot be computed again.
            "tables": [(metrics[key], table.rows()) for key, table in self._tables.items()],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Pools.__init__(self, self.core_of(state["arrays"]), state["references"], state["sources"])
        for metric, rows in state["tables"]:
            self.set_statistics(metric, rows)

    def contents(self, metric: Metric) -> Iterator[bytes]:
        """Yield features and statistics, for a fingerprint."""
        for array in (self.core.starts, *self.core.csr(), self.table(metric).rows()):
            yield np.ascontiguousarray(array).tobytes()

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Join lists of the same sentences; equal text and features are kept once."""
        references = next((part.references for part in parts if part.references is not None), None)
        sources = next((part.sources for part in parts if part.sources is not None), None)
        core = _core.Pools.merge([part.core for part in parts])
        merged = parts[0]._like(core, references, sources)
        merged._origin = parts[0].origin
        return merged

    @classmethod
    def join(cls, parts: Sequence[Pools]) -> Pools:
        """Return the sentences of all parts, one part after the other; statistics are left out.

        Raise for parts with different columns, and for bins beside lists.
        """
        arrays = [part._arrays() for part in parts]
        if len({(part.binned, *part.core.columns) for part in parts}) > 1:
            raise ValueError("only lists of one kind with the same columns can be joined")
        ids = dict[str, int]()
        for part in parts:
            for name in part.names:
                ids.setdefault(name, len(ids))
        rows, places, values = [], [], []
        for each, part in zip(arrays, parts, strict=True):
            place = np.array([ids[name] for name in part.names], np.int64)[each["ids"]]
            # Features of a hypothesis stand in the order of their numbers.
            order = np.lexsort(
                (place, np.repeat(np.arange(part.hypotheses), np.diff(each["rows"])))
            )
            rows.append(each["rows"])
            places.append(place[order])
            values.append(each["values"][order])
        together = {
            "starts": _ends([each["starts"] for each in arrays]),
            "rows": _ends(rows),
            "ids": np.concatenate(places),
            "values": np.concatenate(values),
            "names": packed(list(ids)),
            "lines": _numbered([each["lines"] for each in arrays]),
            "columns": arrays[0]["columns"],
        }
        rest = [name for name in arrays[0] if name not in together]
        together |= {name: np.concatenate([each[name] for each in arrays]) for name in rest}

        def all_of(texts: Sequence[Sequence[Any] | None]) -> list[Any] | None:
            if any(each is None for each in texts):
                return None
            return [text for each in texts for text in each or ()]

        return parts[0]._like(
            cls.core_of(together),
            all_of([part.references for part in parts]),
            all_of([part.sources for part in parts]),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.sentences} sentences, {self.hypotheses} hypotheses, "
            f"{len(self.names)} features)"
        )


def _numbered(lines: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the lines of bins, those of one part after those of the other; nothing for lists."""
    counts = [int(each.max(initial=-1)) + 1 for each in lines]
    firsts = np.cumsum([0, *counts[:-1]])
    numbered = [first + each for first, each in zip(firsts, lines, strict=True)]
    return np.concatenate(numbered).astype(np.int64)


def _ends(offsets: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return offsets that begin with 0 and end with a length, one array after the other."""
    lengths = np.concatenate([np.diff(each) for each in offsets])
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
