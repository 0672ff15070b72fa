"""Gains in context, one sentence after the other."""

from __future__ import annotations

import numpy as np

from twins.lists import Array, Lists


class SentenceGain:
    """The sentence alone; times its length if asked."""

    def __init__(self, lists: Lists, scale: str = "one") -> None:
        self.lists = lists
        self.scale = scale
        self.length = float(sum(lists.words)) / max(sum(len(s) > 0 for s in lists.stats), 1)

    def factor(self, sentence: int) -> float:
        """Return what gains are multiplied by."""
        own = self.lists.words[sentence]
        return {"one": 1.0, "length": own, "background": self.length + own}[self.scale]

    def __call__(self, sentence: int) -> Array:
        """Return the gains of a sentence's hypotheses."""
        gains = self.lists.sentence_gain(self.lists.stats[sentence])
        return gains * self.factor(sentence)

    def observe(self, sentence: int, best: int, oracle: int) -> None:
        """Hear what was chosen."""

    def end_epoch(self, proposed: Array) -> None:
        """Hear that every sentence was seen, and which weights are proposed."""


class BackgroundGain(SentenceGain):
    """G(e) = gain(B + b(e)), B <- γ(B + b(chosen))."""

    def __init__(
        self, lists: Lists, decay: float, history: str = "1best", scale: str = "one"
    ) -> None:
        super().__init__(lists, scale)
        self.decay = decay
        self.history = history
        self.background = np.mean([stats[0] for stats in lists.stats if len(stats)], axis=0)

    def __call__(self, sentence: int) -> Array:
        gains = self.lists.gain(self.background + self.lists.stats[sentence])
        return gains * self.factor(sentence)

    def observe(self, sentence: int, best: int, oracle: int) -> None:
        chosen = oracle if self.history == "oracle" else best
        self.background = self.decay * (self.background + self.lists.stats[sentence][chosen])
        self.length = self.decay * (self.length + self.lists.words[sentence])


class ContextGain(SentenceGain):
    """What the last epoch's weights choose with this sentence exchanged, differences times N.

    With `follow`, what was chosen on the way takes its place.
    """

    def __init__(self, lists: Lists, scale: str = "one", follow: bool = True) -> None:
        super().__init__(lists, scale)
        self.previous: Array | None = None
        self.follow = follow

    def __call__(self, sentence: int) -> Array:
        if self.previous is None:
            return super().__call__(sentence)
        corpus = self.previous.sum(axis=0)
        whole = self.lists.gain(corpus)[0]
        rows = corpus - self.previous[sentence] + self.lists.stats[sentence]
        gains: Array = whole + len(self.lists.stats) * (self.lists.gain(rows) - whole)
        return gains * self.factor(sentence)

    def observe(self, sentence: int, best: int, oracle: int) -> None:
        if self.follow and self.previous is not None:
            self.previous[sentence] = self.lists.stats[sentence][best]

    def end_epoch(self, proposed: Array) -> None:
        self.previous = self.lists.chosen(proposed)
