"""A metric put in context for one sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Scale = Literal["one", "length", "background"]


@dataclass(frozen=True)
class Gain:
    """How the statistics of a hypothesis become the gain that learning sees.

    `sentence`: the sentence alone, smoothed where its metric needs it; for BLEU that is BLEU+1
    (one added to matches and totals of n > 1).

    `background`: G(e) = gain(B + b(e)), B the statistics of what was chosen before, the model's
    best (`history="1best"`) or y+ (`"oracle"`), multiplied by `decay` after each sentence
    (Chiang et al. 2008). B starts at the mean of the first-ranked hypotheses, so that the first
    sentences are not measured against nothing.

    `context`: first epoch as `sentence`; afterwards G(e) = gain(B_prev - b(ŷ_prev,i) + b(e)) with
    B_prev the whole corpus as the weights that the previous epoch proposes translate it, the
    difference to the corpus multiplied by the number of sentences, so that it compares with BLEU+1.
    Eidelman 2012 has the translations along the way there, which no single weights have made: with
    averaged weights they told too little of what is proposed, above all of its length. Where nobody
    averages, they take the place of those before them: otherwise a whole pass would pull at a
    length that its first steps have mended.

    `gain_scale` multiplies every gain by 1, by the sentence's length, or by the length of
    sentence and background together; it decides what C and B of the margin updates mean.
    """

    gain: Literal["sentence", "background", "context"] = "sentence"
    decay: float = 0.9
    history: Literal["1best", "oracle"] = "1best"
    gain_scale: Scale = "one"

    def options(self) -> dict[str, object]:
        """Return the keyword arguments of the native learner."""
        return asdict(self)


SENTENCE = Gain()


def sentence(scale: Scale = "one") -> Gain:
    """BLEU+1, or the plain sentence score of a metric that needs no smoothing."""
    return Gain("sentence", gain_scale=scale)


def background(
    decay: float = 0.9,
    history: Literal["1best", "oracle"] = "1best",
    scale: Scale = "one",
) -> Gain:
    """The gain over a decayed background."""
    return Gain("background", decay, history, scale)


def context(scale: Scale = "one") -> Gain:
    """The gain within the corpus that the previous epoch's weights choose."""
    return Gain("context", gain_scale=scale)
