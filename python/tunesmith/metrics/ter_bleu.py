"""(TER - BLEU)/2, by which papers compare systems that differ in length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tunesmith import _core
from tunesmith.metrics.base import Metric
from tunesmith.metrics.bleu import Bleu
from tunesmith.metrics.registry import register
from tunesmith.metrics.ter import Ter


@dataclass(frozen=True)
class TerBleu(Metric):
    """(TER - BLEU)/2: lower is better.

    Statistics: those of TER, then those of BLEU. The gain is the mean of the two gains, for a
    sentence with BLEU+1. `tokenize`, `lowercase` and `length` are those of BLEU, `normalized` and
    `case_sensitive` those of TER. Forests are searched through their best strings.

    Servan & Schwenk 2011; Eidelman, Marton & Resnik 2013.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    length: str = "closest"
    normalized: bool = False
    case_sensitive: bool = False

    name = "ter-bleu"
    label = "(TER-BLEU)/2"
    higher_is_better = False

    def __post_init__(self) -> None:
        # Check options now, not when the metric is first used.
        assert self._bleu.name == "bleu"

    @cached_property
    def _bleu(self) -> Bleu:
        return Bleu(self.tokenize, self.lowercase, length=self.length)

    @cached_property
    def _ter(self) -> Ter:
        return Ter(normalized=self.normalized, case_sensitive=self.case_sensitive)

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.blend([(self._ter.native, 0.5), (self._bleu.native, -0.5)])

    def signature(self, references: int = 1) -> str:
        """Return the signatures of both parts."""
        return f"{self._ter.signature(references)} and {self._bleu.signature(references)}"


register("ter-bleu", TerBleu)
