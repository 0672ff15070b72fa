"""Generated sample n-best lists: English sentences, distorted as by a poor system.

A small grammar writes sentences; a channel swaps, drops, doubles and misspells their words. The
lists are ordered by the channel's own score, which is noisy; a language model and a length give
additional information. The same seed gives the same lists.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from tunesmith._core import AtomicWriter

_WORDS = {
    "who": "the baker|a tired teacher|the old sailor|my neighbour|two children|the young doctor|"
    "a quiet student|the gardener|our guide|the night watchman|a travelling musician|the clerk",
    "does": "sells|carries|watches|repairs|paints|borrows|hides|praises|forgets|washes|counts",
    "what": "warm bread|a broken clock|three red apples|the blue door|an old map|a small boat|"
    "some letters|the tall ladder|a silver coin|the long table|green bottles|a heavy suitcase",
    "where": "near the station|in the garden|behind the church|at the market|under the bridge|"
    "by the river|on the hill|in front of the school|beside the road|in a narrow street",
    "when": "every morning|on sunday|after the rain|before dinner|in early spring|at midnight|"
    "during the holidays|once a year|as soon as he can|when nobody looks",
}
_FILLER = ["the", "a", "of", "in", "on", "at", "very", "and", "to", "quite", "with", "for"]


# The part of a list that shares a mistake.
USUAL = 0.6


def sentences(count: int, seed: int) -> list[str]:
    """Return sentences of the grammar."""
    rng = np.random.default_rng([seed, 1])
    options = {slot: words.split("|") for slot, words in _WORDS.items()}
    shapes = (
        "who does what where when",
        "when who does what where",
        "who does what when",
        "who does what where",
        "where who does what when",
        "who does what",
    )
    made = []
    for _ in range(count):
        shape = shapes[rng.integers(len(shapes))].split()
        made.append(" ".join(options[slot][rng.integers(len(options[slot]))] for slot in shape))
    return made


def distort(words: list[str], edits: int, rng: np.random.Generator) -> list[str]:
    """Return the words with some random errors."""
    words = list(words)
    for _ in range(edits):
        at = int(rng.integers(len(words)))
        kind = rng.integers(5)
        if kind == 0 and len(words) > 2:
            del words[at]
        elif kind == 1 and at + 1 < len(words):
            words[at], words[at + 1] = words[at + 1], words[at]
        elif kind == 2:
            words.insert(at, _FILLER[rng.integers(len(_FILLER))])
        elif kind == 3:
            words[at] = _FILLER[rng.integers(len(_FILLER))]
        elif len(words[at]) > 3:
            cut = int(rng.integers(1, len(words[at]) - 1))
            words[at] = words[at][:cut] + words[at][cut + 1 :]
    return words


class Bigrams:
    """A bigram model with add-one smoothing: enough to recognise a bad word order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.words: Counter[str] = Counter()
        for text in texts:
            words = ["<s>", *text.split(), "</s>"]
            self.words.update(words)
            self.pairs.update(pairwise(words))

    def score(self, words: list[str]) -> float:
        """Return the log-probability of the words."""
        path = ["<s>", *words, "</s>"]
        return sum(
            math.log((self.pairs[pair] + 0.1) / (self.words[pair[0]] + 0.1 * len(self.words)))
            for pair in pairwise(path)
        )

    def unknown(self, words: list[str]) -> int:
        """Return the number of unknown words."""
        return sum(word not in self.words for word in words)


def write_sample(folder: Path, count: int = 300, size: int = 30, seed: int = 1) -> None:
    """Write dev and test lists of `size` hypotheses in Moses' format, and their references."""
    model = Bigrams(sentences(150, seed + 100))
    for number, part in enumerate(("dev", "test")):
        references = sentences(count, seed + number)
        rng = np.random.default_rng([seed, number, 2])
        with AtomicWriter(str(folder / f"{part}.ref")) as out:
            out.write("".join(f"{text}\n" for text in references))
        with AtomicWriter(str(folder / f"{part}.nbest.gz")) as out:
            for sentence, reference in enumerate(references):
                rows = []
                # Real systems make the same mistakes in most of a list's hypotheses.
                usual = distort(reference.split(), 4, rng)
                for _ in range(size):
                    edits = int(rng.integers(1, 6))
                    said = usual if rng.random() < USUAL else reference.split()
                    words = distort(said, edits, rng)
                    channel = -0.2 * edits + float(rng.normal(0.0, 0.5))
                    rows.append(
                        (
                            channel,
                            " ".join(words),
                            f"channel= {channel:.4f} lm= {model.score(words):.4f} "
                            f"words= {len(words)} unknown= {model.unknown(words)} "
                            f"noise= {float(rng.normal()):.4f}",
                        )
                    )
                rows.sort(reverse=True)
                out.write(
                    "".join(
                        f"{sentence} ||| {text} ||| {features} ||| {score:.4f}\n"
                        for score, text, features in rows
                    )
                )
