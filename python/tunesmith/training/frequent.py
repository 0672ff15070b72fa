"""The most frequent words of aligned text, for templates that are limited to them."""

from __future__ import annotations

from os import PathLike

from tunesmith.training.rules import AlignedCorpus

FREQUENT = "frequent.txt"
"""The file name in a model directory."""


def write_frequent(
    corpus: AlignedCorpus,
    out: str | PathLike[str],
    *,
    pairs: int = 300,
    words: int = 150,
    threads: int = 0,
) -> tuple[int, int, int]:
    """Write the most frequent linked pairs, and each side's words most often without a link.

    Return the numbers of pairs, source words and target words, which are lower than requested if
    the text has no more. The defaults are those of Eidelman, Marton & Resnik (2013).
    """
    return corpus.write_frequent(out, pairs=pairs, words=words, threads=threads)
