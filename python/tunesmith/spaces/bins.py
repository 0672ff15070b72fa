"""The beam of a search, step by step: tuning over bins is search-aware tuning."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import numpy as np

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces.base import References
from tunesmith.spaces.outline import Positions
from tunesmith.spaces.pools import Pools

SUFFIX = ".bins"


class Partial(StrEnum):
    """How a partial translation is scored (Liu & Huang 2014)."""

    POTENTIAL = "potential"
    """As the whole translation that it becomes with the best monotone translation of the rest."""
    BLEU = "bleu"
    """By itself, against references whose length is prorated by the covered words."""


class Ranked(StrEnum):
    """What the hypotheses of a bin are ranked by."""

    SCORE = "score"
    """The score of what is translated."""
    ESTIMATE = "estimate"
    """The score with what is hoped for the rest, which stacks are pruned by."""


class Bins(Pools):
    """Partial translations that a beam kept: for each line, a list for every step of the search.

    Every bin is a list like any other, so any tuner that learns from lists can learn from bins. The
    last bin of a line holds whole translations: the score of the bins is theirs. Hypotheses that
    come back in later decodings are the same if text, covered words and features are, and have
    the newest translation of the rest.
    """

    def __init__(
        self,
        core: _core.Pools,
        references: References | None = None,
        sources: Sequence[str] | None = None,
        partial: Partial | str = Partial.POTENTIAL,
    ) -> None:
        super().__init__(core, references, sources)
        self.what = "bin"
        self.partial = Partial(partial)
        self._groups = core.lines

    @property
    def groups(self) -> Positions:
        """The line that each bin belongs to."""
        return self._groups

    @property
    def binned(self) -> bool:
        """Lines have a list for every step of their search."""
        return True

    def table(self, metric: Metric | str, threads: int = 0) -> _core.Table:
        """Return the statistics of every hypothesis; raise if the metric cannot score parts."""
        metric = get_metric(metric)
        if self.partial is Partial.POTENTIAL or repr(metric) in self._tables:
            return super().table(metric, threads)
        return self._keep(metric, self._partial_table(metric, threads))

    def _partial_table(self, metric: Metric, threads: int) -> _core.Table:
        if self.references is None or self.sources is None:
            raise InputError(
                "partial BLEU needs references and source sentences", remedy="give both"
            )
        words = [len(source.split()) for source in self.by_line(self.sources)]
        table = (
            self.core.table(metric.native, self.by_line(self.references), threads, words)
            if metric.native.reads_text
            else None
        )
        if table is None:
            raise InputError(
                f"partial scores are defined for BLEU only, not for {metric.name}",
                remedy="use potential, which scores whole translations",
            )
        return table

    def outputs(self, positions: Positions) -> list[str]:
        """Return the whole translations that the chosen ones may become."""
        found = iter(self.core.wholes(positions[positions >= 0]))
        return [next(found) if position >= 0 else "" for position in positions.tolist()]

    def covered(self, position: int) -> list[tuple[int, int]]:
        """Return the spans of source words that a partial translation covers."""
        spans = self.core.extra(position).partition("\t")[0]
        ends = [span.split("-") for span in spans.split(",") if span]
        return [(int(start), int(end)) for start, end in ends]

    def surroundings(self, position: int) -> tuple[str, str]:
        """Return what stands before and behind it in the whole translation that it may become."""
        _, before, behind = self.core.extra(position).split("\t")
        return before, behind

    def final(self) -> Pools:
        """Return the lists of whole translations."""
        whole = self.subset(self.last.tolist())
        arrays = {**whole._arrays(), "lines": np.zeros(0, np.int64)}
        return Pools(self.core_of(arrays), whole.references, whole.sources)

    def _like(
        self, core: _core.Pools, references: References | None, sources: Sequence[str] | None
    ) -> Bins:
        return Bins(core, references, sources, self.partial)

    def merged(self, other: Self, threads: int = 0) -> Self:
        """Return the hypotheses of both; of equal ones, that of `other` with its surroundings."""
        merged = self.merge([other.aligned(self.names), self])
        # Nobody asks which weights made the first bins, and they are large.
        merged._origin = None
        return merged

    def decoded(self, weights: Any, threads: int = 0) -> Positions:
        """Return the best of each bin."""
        return self.best(self.vector(weights, partial=True), threads)

    def save(self, path: Path) -> Path:
        """Write the bins to a `.bins` file."""
        return self._save(path.with_suffix(SUFFIX), {"partial": self.partial.value})

    @classmethod
    def load(cls, file: Path, references: References | None, sources: Sequence[str] | None) -> Bins:
        """Return the bins of a file, given references and sources for each line."""
        core, told = cls._read(file)
        try:
            partial = Partial(told.get("partial", Partial.POTENTIAL))
        except ValueError as error:
            remedy = "start the run in another folder"
            raise InputError(f"does not hold bins: {error}", str(file), remedy=remedy) from error
        return cls.of_lines(core, references, sources, partial)

    @classmethod
    def of_lists(cls, pools: Pools, lines: Sequence[int]) -> Bins:
        """Return lists as the bins of lines, which are numbered from 0 on, in order."""
        arrays = {**pools._arrays(), "lines": np.asarray(lines, np.int64)}
        return cls(cls.core_of(arrays), pools.references, pools.sources)

    @classmethod
    def of_lines(
        cls,
        core: _core.Pools,
        references: References | None,
        sources: Sequence[str] | None,
        partial: Partial | str = Partial.POTENTIAL,
    ) -> Bins:
        """Return bins with the references and sources of their lines."""
        lines = core.lines
        count = int(lines.max(initial=-1)) + 1
        for given, what in ((references, "references"), (sources, "source sentences")):
            if given is not None and len(given) != count:
                raise InputError(
                    f"bins of {count} lines, but {len(given)} {what}",
                    remedy="give as many as there are lines, blank lines included",
                )
        every = lines.tolist()
        return cls(
            core,
            None if references is None else [references[line] for line in every],
            None if sources is None else [sources[line] for line in every],
            partial,
        )

    def against(self, references: References) -> Bins:
        """Return the bins with references, given for each line."""
        sources = None if self.sources is None else self.by_line(self.sources)
        return self.of_lines(self.core, references, sources, self.partial)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "partial": self.partial}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.what, self.partial = "bin", state["partial"]
        self._groups = self.core.lines
