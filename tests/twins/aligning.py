"""fast_align as slowly as it can be written: dictionaries, sentence by sentence."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from scipy.special import digamma

Sentences = list[list[str]]
NULL = None


def distance(i: int, m: int, j: int, n: int) -> float:
    return abs(i / m - j / n)


def place(i: int, m: int, j: int, n: int, tension: float) -> float:
    """p(i | j) among m words, for word j of n; both from one."""
    values = [math.exp(-tension * distance(k, m, j, n)) for k in range(1, m + 1)]
    return values[i - 1] / sum(values)


def tighten(tension: float, seen: float, sizes: Counter[tuple[int, int]]) -> float:
    words = sum(n * count for (_, n), count in sizes.items())
    for _ in range(8):
        expected = sum(
            count * place(i, m, j, n, tension) * distance(i, m, j, n)
            for (m, n), count in sizes.items()
            for j in range(1, n + 1)
            for i in range(1, m + 1)
        )
        tension = min(max(tension + 20 * (expected / words - seen), 0.1), 14.0)
    return tension


def align(
    given: Sentences, produced: Sentences, iterations: int = 5
) -> tuple[list[list[list[float]]], float]:
    """Return for each word that is produced the joint probabilities with NULL and the given words,
    and the tension."""
    alpha, null, tension = 0.01, 0.08, 4.0
    table: dict[object, dict[str, float]] | None = None
    sizes = Counter((len(e), len(f)) for e, f in zip(given, produced, strict=True))
    words = sum(map(len, produced))
    for iteration in range(1, iterations + 1):
        counts: dict[object, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        seen, found = 0.0, []
        for e, f in zip(given, produced, strict=True):
            m, n, rows = len(e), len(f), []
            for j, word in enumerate(f, 1):
                row = [null * (1.0 if table is None else table[NULL][word])] + [
                    (1 - null)
                    * place(i, m, j, n, tension)
                    * (1.0 if table is None else table[other][word])
                    for i, other in enumerate(e, 1)
                ]
                rows.append(row)
                for i, share in enumerate(row):
                    counts[e[i - 1] if i else NULL][word] += share / sum(row)
                    seen += share / sum(row) * distance(i, m, j - 1, n) if i else 0.0
            found.append(rows)
        if iteration == iterations:
            return found, tension
        table = {}
        for other, row_counts in counts.items():
            total = digamma(sum(row_counts.values()) + alpha * len(row_counts))
            table[other] = {
                word: math.exp(digamma(count + alpha) - total) for word, count in row_counts.items()
            }
        if iteration > 1:
            tension = tighten(tension, seen / words, sizes)
    raise AssertionError("at least one iteration")
