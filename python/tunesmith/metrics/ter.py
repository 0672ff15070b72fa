"""TER, as sacreBLEU computes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property

from sacrebleu.metrics.ter import TER

from tunesmith import _core
from tunesmith.metrics.base import Metric
from tunesmith.metrics.registry import register


@dataclass(frozen=True)
class Ter(Metric):
    """TER: word edits and shifts of blocks, over the average length of the references.

    The edits are those against the nearest reference, found by Tercom's greedy search with its
    limits (blocks of 10 words, 50 words apart, a beam of 25). Case is ignored unless
    `case_sensitive`. `normalized` separates punctuation from words, `no_punct` removes it,
    `asian_support` extends both to Chinese and Japanese characters.

    Statistics: `[edits, average reference length]`. The gain is 1 - edits/length, below zero
    where there are more edits than words.

    Snover et al. 2006.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    name = "ter"
    label = "TER"
    higher_is_better = False

    @cached_property
    def native(self) -> _core.Metric:
        return _core.Metric.ter(**asdict(self))

    def signature(self, references: int = 1) -> str:
        """Return sacreBLEU's signature."""
        own = TER(**asdict(self))
        own.num_refs = references
        return str(own.get_signature())


register("ter", Ter)
