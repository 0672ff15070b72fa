"""A metric put in context for one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

Kind = Literal["sentence", "background", "context"]
History = Literal["1best", "oracle"]
Scale = Literal["one", "length", "background"]


@dataclass(frozen=True)
class Gain:
    """How the statistics of a hypothesis become the gain that learning sees.

    `sentence`: the sentence alone, smoothed where its metric needs it; for BLEU that is BLEU+1
    (one added to matches and totals of n > 1).

    `background`: G(e) = gain(B + b(e)), B the statistics of earlier choices, the model's best
    (`history="1best"`) or y+ (`"oracle"`), multiplied by `decay` after each sentence
    (Chiang et al. 2008). B starts at the mean of the first-ranked hypotheses, so that the first
    sentences are not measured against nothing.

    `context`: first epoch as `sentence`; afterwards G(e) = gain(B_prev - b(ŷ_prev,i) + b(e)) with
    B_prev the whole corpus as the weights that the previous epoch proposes translate it. The
    difference to the corpus is multiplied by the number of sentences, so that it compares with
    BLEU+1. Deviation: Eidelman 2012 takes the translations made during the epoch. No single weights
    have made these, and with averaged weights they say too little about the length of what is
    proposed. Without averaging they replace the earlier ones: otherwise a whole pass would
    correct a length that its first steps have corrected already.

    `scale` multiplies every gain by 1, by the sentence's length, or by the length of sentence and
    background together; it decides what C and B of the margin updates mean.
    """

    kind: Kind = "sentence"
    decay: float = 0.9
    history: History = "1best"
    scale: Scale = "one"

    KERNEL: ClassVar[str] = "core/solve/src/gain.rs"


SENTENCE = Gain()
