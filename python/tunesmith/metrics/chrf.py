"""chrF and chrF++, as sacreBLEU computes them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property, partial

from sacrebleu.metrics.chrf import CHRF

from tunesmith import _core
from tunesmith.metrics.base import Metric
from tunesmith.metrics.registry import register


@dataclass(frozen=True)
class Chrf(Metric):
    """chrF: the F-score of character n-grams; with `word_order=2` chrF++, which adds words.

    chrF = (1 + β²)·P·R / (β²·P + R), P and R the means of precision and recall over the orders
    that both sides have n-grams of. White space is left out of the characters unless
    `whitespace`. `eps_smoothing` takes the mean of the orders' F-scores instead, as chrF++.py
    does. Of several references the one with the best score counts, sentence by sentence.

    Statistics: `[n-grams of the hypothesis, of the reference, matches]` per order, characters
    first.

    Popović 2015, 2017.
    """

    char_order: int = 6
    word_order: int = 0
    beta: int = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    higher_is_better = True

    def __post_init__(self) -> None:
        # Check options now, not when the metric is first used.
        _ = self.native

    @property
    def name(self) -> str:
        """`chrf`, with a plus for each word order."""
        return "chrf" + "+" * self.word_order

    @property
    def label(self) -> str:
        """`chrF2`, with the weight of recall in it."""
        return f"chrF{self.beta}" + "+" * self.word_order

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.chrf(**asdict(self))

    def signature(self, references: int = 1) -> str:
        """Return sacreBLEU's signature."""
        own = CHRF(**asdict(self))
        own.num_refs = references
        return str(own.get_signature())


register("chrf", Chrf)
register("chrf++", partial(Chrf, word_order=2))
