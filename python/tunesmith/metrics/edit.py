"""Word and character error rate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tunesmith import _core
from tunesmith.metrics.base import Metric, signature
from tunesmith.metrics.registry import register


@dataclass(frozen=True)
class _ErrorRate(Metric):
    lowercase: bool = False

    higher_is_better = False
    unit: ClassVar[str]

    def signature(self, references: int = 1) -> str:
        return signature(references, case="lc" if self.lowercase else "mixed", unit=self.unit)


@dataclass(frozen=True)
class Wer(_ErrorRate):
    """WER: insertions, deletions and substitutions of words, over the reference's length.

    Words are what white space separates. Of several references the one with the lowest rate
    counts, sentence by sentence.

    Statistics: `[edits, reference length]`. The gain is 1 - edits/length, below zero where there
    are more edits than words.

    Levenshtein 1966.
    """

    name = "wer"
    label = "WER"
    unit = "word"

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.wer(lowercase=self.lowercase)


@dataclass(frozen=True)
class Cer(_ErrorRate):
    """CER: WER's edits on characters, a run of white space counted as one space.

    Statistics: `[edits, reference length]`, both in characters.
    """

    name = "cer"
    label = "CER"
    unit = "char"

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.cer(lowercase=self.lowercase)


register("wer", Wer)
register("cer", Cer)
