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
    (Chiang et al. 2008). B starts at the mean of the first-ranked hypotheses: an empty background
    would distort the gains of the first sentences.

    `context`: the same as `sentence` in the first epoch, afterwards
    G(e) = gain(B_prev - b(ŷ_prev,i) + b(e)). B_prev are the statistics of the whole corpus,
    translated with the weights that the previous epoch proposed. The difference to the gain of the
    corpus is multiplied by the number of sentences, so that its size is that of BLEU+1. Deviation:
    Eidelman 2012 takes the translations made during the epoch. They come from many different
    weights, and their length says too little about that of averaged weights. Without averaging,
    each translation made during the epoch replaces the earlier one: otherwise a whole pass would
    correct a length that its first steps have already corrected.

    `scale` multiplies every gain by 1, by the sentence's length, or by the length of sentence and
    background together. The meaning of C and B of the margin updates depends on it. By default
    that is the last for gains over a background (Chiang et al. 2008): a sentence changes the score
    of a background of ten sentences by a tenth of what it changes its own. Others are taken as they
    are. `times` multiplies all gains by one more number, α of Gimpel & Smith 2012.
    """

    kind: Kind = "sentence"
    decay: float = 0.9
    history: History = "1best"
    scale: Scale | None = None
    times: float = 1.0

    KERNEL: ClassVar[str] = "core/solve/src/gain.rs"

    def __post_init__(self) -> None:
        if self.scale is None:
            chosen: Scale = "background" if self.kind == "background" else "one"
            object.__setattr__(self, "scale", chosen)


SENTENCE = Gain()
