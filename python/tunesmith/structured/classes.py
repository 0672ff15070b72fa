"""Parts of speech as word classes: the file that `class-bigrams` reads, from tagged text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.structured.conllu import BLANK, Sentence


def write_tag_classes(
    sentences: Iterable[Sentence],
    out: str | PathLike[str],
    *,
    column: str = "upos",
    lower: bool = False,
) -> int:
    """Write the most frequent tag of each word as its class, and return the number of words.

    Of tags that are equally frequent the first in the alphabet counts. With `lower`, words are
    those of a model of lower-cased text. Raise if no word has a tag.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word in sentence.words:
            # Classes are columns between tabs, and words of a model hold no spaces.
            form = word.form.lower() if lower else word.form
            if word.tag(column) != BLANK and not any(mark.isspace() for mark in form):
                seen[form][word.tag(column)] += 1
    if not seen:
        raise InputError(f"no word has a tag ({column})", remedy="tag the text first")
    best = {word: min(tags, key=lambda tag: (-tags[tag], tag)) for word, tags in seen.items()}
    with atomic_write(Path(out)) as file:
        file.write("".join(f"{word}\t{best[word]}\n" for word in sorted(best)).encode())
    return len(best)
