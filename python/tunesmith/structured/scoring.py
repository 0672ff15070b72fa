"""Accuracy of tags and trees against a gold text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from tunesmith.errors import InputError
from tunesmith.structured.conllu import BLANK, DEPREL, HEAD, UPOS, XPOS, Sentence, Word


@dataclass(frozen=True)
class Scores:
    """Percentages of right words, None where a text has no such column.

    `exact` is the percentage of sentences in which all of these are right.
    """

    sentences: int
    words: int
    upos: float | None
    xpos: float | None
    uas: float | None
    las: float | None
    exact: float


def score(gold: Iterable[Sentence], found: Iterable[Sentence]) -> Scores:
    """Return how many tags and heads of a text are right.

    A column counts if both texts have it. Words without it in the gold text are left out. Raise an
    `InputError` with file and line if the texts have different sentences or words.
    """
    pairs = list(zip_longest(gold, found))
    for one, other in pairs:
        if one is None or other is None:
            longer = one or other
            assert longer is not None
            raise InputError(
                "this sentence is missing from the other file",
                longer.file or None,
                longer.line or None,
                remedy="give two files with the same sentences",
            )
        for here, there in zip_longest(one.words, other.words):
            if here is None or there is None or here.form != there.form:
                raise InputError(
                    f"{there.form if there else 'the end'!r} stands here, and "
                    f"{here.form if here else 'the end'!r} in the other file",
                    other.file or None,
                    (there or other).line or None,
                    remedy="give two files with the same words",
                )
    words = [
        (a, b, place)
        for place, (one, other) in enumerate(pairs)
        for a, b in zip(one.words, other.words, strict=True)
    ]
    if not words:
        raise InputError("there are no words to score", remedy="give files with sentences")
    right: dict[str, float] = {}
    wrong: set[int] = set()
    for name, measure in _MEASURES.items():
        counted = [(a, b, place) for a, b, place in words if measure(a) is not None]
        if not counted or all(measure(b) is None for _, b, _ in words):
            continue
        missed = [place for a, b, place in counted if measure(a) != measure(b)]
        right[name] = 100.0 * (len(counted) - len(missed)) / len(counted)
        wrong.update(missed)
    if not right:
        raise InputError(
            "neither tags nor heads are in both files", remedy="give files with the same columns"
        )
    return Scores(
        len(pairs),
        len(words),
        right.get("upos"),
        right.get("xpos"),
        right.get("uas"),
        right.get("las"),
        100.0 * (len(pairs) - len(wrong)) / len(pairs),
    )


def _present(word: Word, place: int) -> str | None:
    text = word.fields[place]
    return None if text == BLANK else text


def _labelled(word: Word) -> tuple[str, str] | None:
    head, label = _present(word, HEAD), _present(word, DEPREL)
    return None if head is None or label is None else (head, label)


_MEASURES = {
    "upos": lambda word: _present(word, UPOS),
    "xpos": lambda word: _present(word, XPOS),
    "uas": lambda word: _present(word, HEAD),
    "las": _labelled,
}
