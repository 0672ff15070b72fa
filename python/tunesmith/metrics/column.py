"""Metrics of numbers that come with the hypotheses, such as COMET scores or error counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics.base import Metric, Rows, signature
from tunesmith.metrics.registry import get_metric, register


@dataclass(frozen=True)
class Column(Metric):
    """The mean of a column, one value per hypothesis.

    score = scale · Σ value / number of values, gain = score/100, or 1 - score/100 for a column of
    costs (`higher=False`). `scale` is 100 for values between 0 and 1, 1 for values that have a
    scale of 100 already.

    Statistics: `[value, 1]`. A hypothesis without a value is an error.
    """

    column: str
    scale: float = 100.0
    higher: bool = True

    def __post_init__(self) -> None:
        _ = self.native

    @property
    def name(self) -> str:
        """`column:NAME`, with a minus before a cost."""
        return f"column:{'' if self.higher else '-'}{self.column}"

    @property
    def label(self) -> str:
        """The column's own name."""
        return self.column

    @property
    def higher_is_better(self) -> bool:
        """Whether the column holds scores and not costs."""
        return self.higher

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.mean(scale=self.scale, higher=self.higher)

    def rows(self, columns: Mapping[str, npt.ArrayLike]) -> Rows:
        """Return a row `[value, 1]` per hypothesis."""
        values = super().rows(columns)
        return np.column_stack([values, np.ones(len(values))])

    def signature(self, references: int = 1) -> str:
        """Return a signature in sacreBLEU's form; references do not matter."""
        return signature(references, column=self.column, scale=f"{self.scale:g}")


@dataclass(frozen=True)
class RatioColumns(Metric):
    """The ratio of the sums of two columns, such as errors and length.

    score = scale · Σ numerator / Σ denominator, gain = 1 - score/100, or score/100 with
    `higher`. If the denominators sum to zero, any numerator is a full error.

    Statistics: `[numerator, denominator]`.
    """

    numerator: str
    denominator: str
    scale: float = 100.0
    higher: bool = False

    def __post_init__(self) -> None:
        _ = self.native

    @property
    def name(self) -> str:
        """`column:NUMERATOR/DENOMINATOR`, with a leading plus if higher is better."""
        return f"column:{'+' if self.higher else ''}{self.numerator}/{self.denominator}"

    @property
    def label(self) -> str:
        """The names of the two columns."""
        return f"{self.numerator}/{self.denominator}"

    @property
    def higher_is_better(self) -> bool:
        """Whether the ratio counts successes, not errors."""
        return self.higher

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.numerator, self.denominator)

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.ratio(scale=self.scale, higher=self.higher)

    def signature(self, references: int = 1) -> str:
        """Return a signature in sacreBLEU's form; references do not matter."""
        return signature(references, column=self.label, scale=f"{self.scale:g}")


@dataclass(frozen=True)
class StatisticsColumns(Metric):
    """Another metric from statistics that were computed elsewhere, one column per number.

    >>> metric = column("wer(errors words)")
    >>> metric.columns
    ('errors', 'words')
    >>> metric.score([1, 4])
    25.0
    """

    metric: Metric
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.names) != self.metric.native.width:
            raise InputError(
                f"{len(self.names)} columns for the statistics of {self.metric.name}",
                remedy=f"it has {self.metric.native.width}",
            )

    @property
    def name(self) -> str:
        """`column:METRIC(COLUMNS)`."""
        return f"column:{self.metric.name}({' '.join(self.names)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in the order of the statistics."""
        return self.names

    @property
    def label(self) -> str:
        return self.metric.label

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    @property
    def native(self) -> _core.Metric:
        return self.metric.native

    def signature(self, references: int = 1) -> str:
        return self.metric.signature(references)


def column(target: str, scale: float = 100.0) -> Metric:
    """Return the metric that `column:TARGET` names.

    `NAME` is the mean of a column, `-NAME` the mean of a cost (lower is better), `ERRORS/LENGTH` a
    ratio of sums (lower is better), `+RIGHT/ALL` a ratio of sums (higher is better),
    `METRIC(A B …)` another metric from columns of its statistics.

    >>> column("comet").name, column("-cost").higher_is_better, column("errors/words").columns
    ('column:comet', False, ('errors', 'words'))
    """
    inner = re.fullmatch(r"([^()]+)\(([^()]*)\)", target)
    if inner:
        return StatisticsColumns(get_metric(inner[1]), tuple(inner[2].split()))
    sign = target[0] if target[:1] in ("-", "+") else ""
    names = target[len(sign) :].split("/")
    if len(names) > 2 or not all(names):
        raise InputError(
            f"{target!r} does not name a column", remedy="write NAME, -NAME, or ERRORS/LENGTH"
        )
    better = {"-": False, "+": True, "": len(names) == 1}[sign]
    if len(names) == 2:
        return RatioColumns(names[0], names[1], scale, better)
    return Column(names[0], scale, better)


register("column", column)
