"""Forests: the whole search space of a decoder, packed into a hypergraph per sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from sys import maxsize
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces.base import References, Spaces, check_range
from tunesmith.spaces.oracle import added
from tunesmith.spaces.outline import Positions
from tunesmith.spaces.pools import Pools
from tunesmith.weights import Vector, Weights


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

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the forests, whole or not at all; `.gz` and `.zst` are compressed.

        A name without a suffix gets `.forests`.
        """
        file = Path(path)
        file = file if file.suffix else file.with_suffix(".forests")
        self.core.save(file)
        return file

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
        references = next((part.references for part in parts if part.references is not None), None)
        sources = next((part.sources for part in parts if part.sources is not None), None)
        core = _core.Forests.merge([part.core for part in parts], threads)
        return cls(core, references, sources, **_reach(parts))

    @property
    def flat(self) -> bool:
        """A forest shares parts between its hypotheses."""
        return False

    @property
    def hypotheses(self) -> int:
        """Number of edges in all forests."""
        return int(self.extents.sum())

    @property
    def extents(self) -> Positions:
        """Number of edges of each forest."""
        return self.core.sizes()[1]

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

    def _positions(self, texts: Sequence[str | None], first: int = 0) -> Positions:
        positions = np.full(len(texts), -1, np.int64)
        with self._lock:
            for sentence, text in enumerate(texts):
                if text is not None:
                    key = (first + sentence, text)
                    place = self._places.setdefault(key, len(self._outputs))
                    if place == len(self._outputs):
                        self._outputs.append(key)
                    positions[sentence] = place
        return positions

    def relative(self, positions: Positions, first: int = 0) -> list[Any]:
        """Return the text of each choice, None where there is no derivation."""
        return [self._outputs[at][1] if at >= 0 else None for at in positions.tolist()]

    def absolute(self, choices: Sequence[Any], first: int = 0) -> Positions:
        """Return positions, given texts."""
        return self._positions(choices, first)

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

    exchanges = 2
    # A search takes time: sentences are searched side by side.
    in_turn = False

    def best_alone(self, metric: Metric, weights: Vector, best: bool) -> Positions:
        """Return the best (or worst) strings that the search for hope and fear finds without the
        model, each sentence alone.

        Not exact: see `core/space/src/forest/gains.rs`.
        """
        return self._positions(self.table(metric).choices(weights, best))

    def exchanged(
        self,
        metric: Metric,
        weights: Vector,
        best: bool,
        chosen: Positions,
        total: Vector,
        first: int = 0,
    ) -> tuple[Positions, Vector]:
        """Return better (or worse) strings within the choices for all other sentences."""
        before = self.outputs(chosen), self.statistics(metric, chosen), total
        found = self._positions(self.table(metric).choices(weights, best, before))
        return found, added(self.statistics(metric, found))

    def kept(self, positions: Positions) -> tuple[Spaces, Positions]:
        """Return lists of the chosen texts, without features."""
        there = positions >= 0
        lists = Pools.from_arrays(
            np.zeros((int(there.sum()), 0)),
            np.concatenate([[0], np.cumsum(there)]),
            [],
            [text for text, has in zip(self.outputs(positions), there, strict=True) if has],
            self.references,
        )
        lists.sources = self.sources
        return lists, lists.first()

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

    def merged(self, other: Forests, threads: int = 0) -> Forests:
        """Return all that either holds."""
        return Forests.merge([self, other], threads)

    def listed(self, points: Sequence[Vector], k: int, threads: int = 0) -> Pools:
        """Return the `k` best strings of each forest at some points, merged."""
        lists = [self.kbest(point, k, threads=threads) for point in points]
        return lists[0] if len(lists) == 1 else Pools.merge(lists)

    def pruned(self, weights: Mapping[str, float], density: float, threads: int = 0) -> Forests:
        """Return the best `density` edges for each word."""
        vector = self.vector(weights, partial=True)
        return self.prune(vector, density=density, threads=threads)

    def decoded(self, weights: Mapping[str, float], threads: int = 0) -> Positions:
        """Return the best derivations under the weights that found the forests."""
        return self.best(self.vector(weights, partial=True), threads)

    def recovered_weights(self) -> Weights | None:
        """Return nothing: a forest has no scores of its own."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {
            "encoded": self.core.encoded(),
            "references": self.references,
            "sources": self.sources,
            "k": self.k,
            "pops": self.pops,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        core = _core.Forests.decoded(state.pop("encoded"))
        Forests.__init__(self, core, **state)

    def with_ids_of(self, learner: _core.Learner) -> Forests:
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


def _check_factor(alpha: float) -> None:
    if not isfinite(alpha):
        raise InputError(f"alpha is {alpha}", remedy="give a finite number")
