"""The most frequent words of aligned text, for the templates that look at those only."""

from __future__ import annotations

from os import PathLike

from tunesmith.training.rules import AlignedCorpus

FREQUENT = "frequent.txt"
"""Its name in a model directory."""


def write_frequent(
    corpus: AlignedCorpus,
    out: str | PathLike[str],
    *,
    pairs: int = 300,
    words: int = 150,
    threads: int = 0,
) -> tuple[int, int, int]:
    """Write the most frequent linked pairs, and the words of each side most often without a link.

    Return the numbers of pairs, source and target words, which are less than asked for where the
    text has no more. The defaults are those of Eidelman, Marton & Resnik (2013).
    """
    return corpus.write_frequent(out, pairs=pairs, words=words, threads=threads)
