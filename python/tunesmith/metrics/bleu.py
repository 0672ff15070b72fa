"""BLEU, as sacreBLEU computes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sacrebleu.metrics.bleu import BLEU

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics.base import Metric
from tunesmith.metrics.registry import register

NATIVE_TOKENIZERS = ("none", "13a", "intl", "char")


@dataclass(frozen=True)
class Bleu(Metric):
    """BLEU: the geometric mean of n-gram precisions, times a penalty for being short.

    BLEU = min(1, exp(1 - r/h)) · (∏ₙ mₙ/tₙ)^(1/N) for n = 1..N. h and r are the lengths of
    hypotheses and references, mₙ the n-grams that match, each at most as often as in the one
    reference that has most of them, tₙ all of the hypotheses. An order without a match counts
    as half a match, the next such as a quarter, and so on (sacreBLEU's "exp" smoothing).

    Statistics: `[h, r, m₁..m_N, t₁..t_N]`. The gain of a single sentence is BLEU+1: one more
    match and one more n-gram in every order but the first.

    `tokenize` is any of sacreBLEU's tokenisers; all but none, 13a, intl and char run in Python.
    `max_order` is N, 1 to 4. `length` chooses among the lengths of several references: `closest`
    (the shorter of two as close), `shortest`, `average`; only the first is sacreBLEU's, the
    signature names the others.

    Papineni et al. 2002; BLEU+1: Lin and Och 2004; smoothing: mteval-v13a.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    max_order: int = 4
    length: str = "closest"

    name = "bleu"
    label = "BLEU"
    higher_is_better = True

    def __post_init__(self) -> None:
        if self.tokenize not in BLEU.TOKENIZERS:
            raise InputError(
                f"unknown tokeniser {self.tokenize!r}",
                remedy=f"choose one of {', '.join(BLEU.TOKENIZERS)}",
            )
        # Check options now, not when the metric is first used.
        self._plain("none")

    def _plain(self, tokenize: str) -> _core.Metric:
        return _core.Metric.bleu(
            tokenize=tokenize,
            lowercase=self.lowercase,
            max_order=self.max_order,
            length=self.length,
        )

    @cached_property
    def _sacrebleu(self) -> BLEU:
        try:
            return BLEU(
                tokenize=self.tokenize, lowercase=self.lowercase, max_ngram_order=self.max_order
            )
        except (Exception, SystemExit) as error:
            raise InputError(
                f"sacreBLEU cannot start its tokeniser {self.tokenize!r}: {error}",
                remedy="install what it asks for, such as sacrebleu[ja] or sentencepiece",
            ) from error

    @cached_property
    def native(self) -> _core.Metric:
        if self.tokenize in NATIVE_TOKENIZERS:
            return self._plain(self.tokenize)
        # Lower-casing comes before tokenising, so both happen in Python.
        return self._plain("none").prepared(self._sacrebleu._preprocess_segment)

    def signature(self, references: int = 1) -> str:
        """Return sacreBLEU's signature, extended by options that sacreBLEU does not have."""
        self._sacrebleu.num_refs = references
        parts = self._sacrebleu.get_signature()
        if self.max_order != 4:
            parts.update("order", self.max_order)
        if self.length != "closest":
            parts.update("length", self.length)
        return str(parts)


register("bleu", Bleu)
