"""How different the translations of a list are from each other (Liu & Huang 2014)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations


def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
    """Return the n-grams of a text with their counts."""
    words = text.split()
    return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))


def difference(one: Counter[tuple[str, ...]], other: Counter[tuple[str, ...]]) -> int:
    """Return d = -Σ_i Σ_j [y_i = y'_j] over the n-grams of two texts (Gimpel et al. 2013)."""
    return -sum(count * other[gram] for gram, count in one.items())


def diversity(texts: Sequence[str], n: int = 2, *, normalised: bool = True) -> float | None:
    """Return the mean difference of all pairs of texts; None where there is no pair to compare.

    With q = n - 1, d(y, y') = -Σ_i Σ_j [y_{i:i+q} = y'_{j:j+q}] counts the n-grams that two texts
    share. It grows with their length; normalised it is d'(y, y') = 1 - 2d(y, y') / (d(y, y) +
    d(y', y')), which is 0 for equal texts and 1 for texts without a common n-gram. Pairs in which
    neither text is n words long do not count.

    >>> diversity(["a b c", "a b d"])
    0.5
    >>> diversity(["a b c", "a b c"])
    0.0
    >>> diversity(["a b c", "a b d"], normalised=False)
    -1.0
    """
    counted = [grams(text, n) for text in texts]
    own = [difference(each, each) for each in counted]
    found = []
    for one, other in combinations(range(len(texts)), 2):
        both = own[one] + own[other]
        if both == 0:
            continue
        shared = difference(counted[one], counted[other])
        found.append(1.0 - 2.0 * shared / both if normalised else float(shared))
    return sum(found) / len(found) if found else None
