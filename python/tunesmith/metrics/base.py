"""The interface of metrics: statistics that add up over sentences, and a score of their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError

if TYPE_CHECKING:
    from tunesmith.spaces import Pools

Rows = npt.NDArray[np.float64]


class Metric:
    """A metric that every tuner, test and command accepts.

    Statistics are rows of `width` numbers. `score` of their sum is the number that the metric's own
    program prints (0-100). A *gain* is the same on a scale where 1 is best and higher is better.

    A metric of your own is a class with a name, `width` and three methods: `row` reads a text,
    `score_rows` and `gain_rows` turn rows (of sums or of sentences) into numbers. For a metric of
    numbers that come with the hypotheses, omit `row` and give `columns`. If gains of single
    sentences differ from those of sums, define `sentence_gain_rows`.

    >>> import numpy as np
    >>> class WordF1(Metric):
    ...     '''Overlap of word types. Statistics: types shared, of hypothesis, of reference.'''
    ...     name, width = "word-f1", 3
    ...     def row(self, hypothesis, references):
    ...         own = set(hypothesis.split())
    ...         sets = [set(reference.split()) for reference in references]
    ...         best = max(sets, key=lambda words: len(words & own))
    ...         return [len(best & own), len(own), len(best)]
    ...     def score_rows(self, rows):
    ...         return 100 * self.gain_rows(rows)
    ...     def gain_rows(self, rows):
    ...         return 2 * rows[:, 0] / np.maximum(rows[:, 1] + rows[:, 2], 1)
    >>> metric = WordF1()
    >>> stats = metric.stats(["a b c", "d"], [["a b"], ["x", "d e"]])
    >>> stats.tolist()
    [[2.0, 3.0, 2.0], [1.0, 1.0, 2.0]]
    >>> metric.score(stats.sum(axis=0))
    75.0

    Then `tune(pools, metric=WordF1())`, or `register("word-f1", WordF1)` to call it by name.
    """

    @property
    def name(self) -> str:
        """The name in options and results, such as `chrf++`."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The printed name, such as `chrF2++`."""
        return self.name

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher score is better; a higher gain always is."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the lists that it reads; empty for a metric that reads text."""
        return ()

    @property
    def native(self) -> _core.Metric:
        """The metric as the core runs it."""
        # Made at each call: keeping it would create a reference cycle that is never freed.
        return _core.Metric.python(self)

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are not part of the value, and objects of the core cannot be pickled.
        kept, made = vars(self), type(self)
        return {
            name: value
            for name, value in kept.items()
            if not isinstance(getattr(made, name, None), cached_property)
        }

    def signature(self, references: int = 1) -> str:
        """Return the settings that make a score reproducible, in sacreBLEU's form.

        `references` is the number of references, -1 if it differs between sentences.
        """
        return signature(references, metric=self.name)

    def stats(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Rows:
        """Return one row per hypothesis; `references[i]` belong to `hypotheses[i]`.

        Raise if the numbers differ or a hypothesis has no references; blank ones are allowed.
        """
        if any(isinstance(texts, str) for texts in references):
            raise InputError(
                "the references are a text, not a list",
                remedy="give each hypothesis a list of references, even for one",
            )
        return self.native.stats(list(hypotheses), [list(texts) for texts in references])

    def rows(self, columns: Mapping[str, npt.ArrayLike]) -> Rows:
        """Return one row per hypothesis from the columns that the metric reads."""
        missing = [name for name in self.columns if name not in columns]
        if missing or not self.columns:
            raise InputError(
                f"no column {missing[0]!r}" if missing else f"{self.name} reads text, not columns",
                remedy=f"there are {', '.join(columns) or 'none'}",
            )
        return np.column_stack([np.asarray(columns[name], np.float64) for name in self.columns])

    def table(self, pools: Pools, threads: int = 0) -> _core.Table:
        """Return the statistics of every hypothesis of the lists.

        Raise if the lists lack the references or columns that the metric reads.
        """
        if self.columns:
            rows = self.rows({name: pools.core.column(name) for name in pools.core.columns})
            return _core.Table.from_rows(pools.core.starts, rows)
        if pools.references is None:
            raise InputError(f"{self.name} needs references", remedy="give at least one")
        table = pools.core.table(self.native, pools.by_line(pools.references), threads)
        assert table is not None, "whole translations have statistics"
        return table

    def score(self, stats: npt.ArrayLike) -> float:
        """Return the corpus score of summed statistics."""
        return self.native.score(np.asarray(stats, np.float64))

    def scores(self, rows: npt.ArrayLike) -> Rows:
        """Return the score of each row."""
        return self.native.scores(np.asarray(rows, np.float64))

    def corpus_score(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        """Return the score of one output against the references of each sentence."""
        return self.score(self.stats(hypotheses, references).sum(axis=0))


def signature(references: int, **parts: str | int | bool) -> str:
    """Return a signature in sacreBLEU's form, for metrics that sacreBLEU does not have."""
    shown: dict[str, str | int | bool] = {"nrefs": "var" if references < 0 else references}
    shown |= parts
    shown["version"] = f"tunesmith-{_core.__version__}"
    text = {True: "yes", False: "no"}
    return "|".join(
        f"{key}:{text[value] if isinstance(value, bool) else value}" for key, value in shown.items()
    )
