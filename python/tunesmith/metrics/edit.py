"""Word and character error rate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tunesmith import _core
from tunesmith.metrics.base import Metric, signature
from tunesmith.metrics.registry import register


@dataclass(frozen=True)
class Wer(Metric):
    """WER: insertions, deletions and substitutions of words, over the reference's length.

    Words are what white space separates. Of several references the one with the lowest rate
    counts, sentence by sentence.

    Statistics: `[edits, reference length]`. The gain is 1 - edits/length, below zero where there
    are more edits than words.

    Levenshtein 1966.
    """

    lowercase: bool = False

    name = "wer"
    label = "WER"
    higher_is_better = False

    @cached_property
    def native(self) -> _core.Metric:
        """The metric as the core runs it."""
        return _core.Metric.wer(lowercase=self.lowercase)

    def signature(self, references: int = 1) -> str:
        """Return a signature in sacreBLEU's form."""
        return signature(references, case="lc" if self.lowercase else "mixed", unit="word")


@dataclass(frozen=True)
class Cer(Metric):
    """CER: WER's edits on characters, a run of white space counted as one space.

    Statistics: `[edits, reference length]`, both in characters.
    """

    lowercase: bool = False

    name = "cer"
    label = "CER"
    higher_is_better = False

    @cached_property
    def native(self) -> _core.Metric:
        """The metric as the core runs it."""
        return _core.Metric.cer(lowercase=self.lowercase)

    def signature(self, references: int = 1) -> str:
        """Return a signature in sacreBLEU's form."""
        return signature(references, case="lc" if self.lowercase else "mixed", unit="char")


register("wer", Wer)
register("cer", Cer)
