"""Classes of words: found in text by exchange, or read from a file."""

from __future__ import annotations

from os import PathLike

from tunesmith import _core

CLASSES = "classes.txt"
"""Its name in a model directory."""

Path = str | PathLike[str]


def make_classes(text: Path, out: Path, *, classes: int = 50, rounds: int = 20) -> int:
    """Write the class of each word of a text, and return the number of words.

    The classes are a local maximum of the likelihood of a class bigram model (Kneser & Ney 1993):
    words move one by one to the class where it is highest, at most `rounds` times each. The same
    text gives the same classes. Lines are a word, a tab and a class, as mkcls writes them. Refuses
    text without words.
    """
    return _core.make_classes(text, out, classes=classes, rounds=rounds)


def read_classes(path: Path) -> dict[str, str]:
    """Return the classes of words, by any method, in a file as `make_classes` writes it.

    Raises `InputError` with file and line for what is not a word, a tab and a class, and for a word
    with two classes.
    """
    return _core.read_classes(path)
