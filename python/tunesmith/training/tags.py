"""Tags of words in their phrases: the file that `tag-bigrams` reads, from tagged target text.

A word may have other tags in other phrases: `house` is a noun, in `to house` a verb. The phrases of
a model are parts of its training text, so that their tags are known where that text is tagged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tunesmith._core import Lines
from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write

TAGS = "tags.txt"
"""The file name in a model directory."""

LONGEST = 7
"""The longest phrases of a table."""

Tagged = Sequence[tuple[str, str]]
"""Words with their tags; a word without one has an empty tag."""


class Written(NamedTuple):
    """What was written: words, and phrases with tags that their words have elsewhere not."""

    words: int
    phrases: int


def read_tagged(path: str | PathLike[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield the sentences of a text with a tag behind each word: `the|DET house|NOUN`.

    Raise, with file and line, for a word without a tag.
    """
    for number, line in enumerate(Lines(path), 1):
        sentence = []
        for token in line.split():
            word, _, tag = token.rpartition("|")
            if not word or not tag:
                raise InputError(
                    f"{token!r} is no word with a tag",
                    str(path),
                    number,
                    remedy="write word|TAG, with spaces between",
                )
            sentence.append((word, tag))
        yield sentence


def write_tags(
    sentences: Iterable[Tagged],
    out: str | PathLike[str],
    *,
    longest: int = LONGEST,
    fold: Callable[[str], str] = str,
) -> Written:
    """Write the most frequent tag of each word, and the tags of phrases where these differ.

    Phrases are all parts of sentences of at most `longest` words. A line is a phrase, a tab and as
    many tags. Of tags that are equally frequent the first in the alphabet count. `fold` makes words
    of the model, lower-cased for instance. Raise if no word has a tag.
    """
    texts = [_columns(each, fold) for each in sentences]
    best = _best_tags(texts)
    if not best:
        raise InputError("no word has a tag", remedy="tag the text first")
    # Only a phrase in which some word has another tag than elsewhere can differ.
    unusual: set[str] = set()
    for words, tags in texts:
        odd = [
            place
            for place, (word, tag) in enumerate(zip(words, tags, strict=True))
            if tag and tag != best[word]
        ]
        for start, end in _windows(len(words), longest):
            if any(start <= place < end for place in odd) and all(tags[start:end]):
                unusual.add(" ".join(words[start:end]))
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for words, tags in texts:
        for start, end in _windows(len(words), longest):
            phrase = " ".join(words[start:end])
            if phrase in unusual and all(tags[start:end]):
                seen[phrase][" ".join(tags[start:end])] += 1
    lines = [f"{word}\t{best[word]}\n" for word in sorted(best)]
    count = len(lines)
    for phrase in sorted(seen):
        chosen = _most(seen[phrase])
        if chosen != " ".join(best[word] for word in phrase.split(" ")):
            lines.append(f"{phrase}\t{chosen}\n")
    with atomic_write(Path(out)) as file:
        file.write("".join(lines).encode())
    return Written(count, len(lines) - count)


def _columns(sentence: Tagged, fold: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Return words and tags; a word or tag with a space, which no model has, is left untagged."""
    words = [fold(word) for word, _ in sentence]
    tags = [
        "" if any(mark.isspace() for mark in word + tag) else tag
        for word, (_, tag) in zip(words, sentence, strict=True)
    ]
    return words, tags


def _best_tags(texts: Iterable[tuple[list[str], list[str]]]) -> dict[str, str]:
    """Return the most frequent tag of each word."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for words, tags in texts:
        for word, tag in zip(words, tags, strict=True):
            if tag and word:
                seen[word][tag] += 1
    return {word: _most(tags) for word, tags in seen.items()}


def _most(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name))


def _windows(length: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield where phrases of two words and more begin and end."""
    for start in range(length):
        for end in range(start + 2, min(start + longest, length) + 1):
            yield start, end
