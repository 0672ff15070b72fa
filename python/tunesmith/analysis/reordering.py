"""Which of two outputs has the word order of the reference (Green et al. 2013, section 5.3).

The paper judged by hand; here the order of the words that an output and a reference share decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Reordered:
    """Sentences in which two systems order the same words differently."""

    sentences: int
    differ: int
    left: int
    """In which the left system is closer to the reference."""
    right: int

    @property
    def neither(self) -> int:
        """In which both are equally close."""
        return self.differ - self.left - self.right


def order_of(output: Sequence[str], reference: Sequence[str]) -> float | None:
    """Return the share of word pairs in the order of the reference; None where there is no pair.

    Only words that occur once in both count.

    >>> order_of("b a c".split(), "a b c d".split())
    0.6666666666666666
    """
    places = [
        {word: place for place, word in enumerate(words) if counts[word] == 1}
        for words in (output, reference)
        for counts in [Counter(words)]
    ]
    shared = sorted(places[0].keys() & places[1].keys(), key=lambda word: places[0][word])
    pairs = list(combinations(shared, 2))
    if not pairs:
        return None
    return sum(places[1][a] < places[1][b] for a, b in pairs) / len(pairs)


def reordered(
    left: Sequence[str], right: Sequence[str], references: Sequence[Sequence[str]]
) -> Reordered:
    """Return how often two outputs order the words that both have differently, and who is right."""
    differ = wins = losses = 0
    for one, other, texts in zip(left, right, references, strict=True):
        a, b = one.split(), other.split()
        if order_of(a, b) in (None, 1.0):
            continue
        differ += 1
        best = [
            max((order_of(words, text.split()) or 0.0 for text in texts), default=0.0)
            for words in (a, b)
        ]
        wins += best[0] > best[1]
        losses += best[0] < best[1]
    return Reordered(len(left), differ, wins, losses)
