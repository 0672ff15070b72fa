"""Word classes: found in text by exchange, or read from a file."""

from __future__ import annotations

from os import PathLike

from tunesmith import _core

CLASSES = "classes.txt"
"""The file name in a model directory."""

Path = str | PathLike[str]


def make_classes(text: Path, out: Path, *, classes: int = 50, rounds: int = 20) -> int:
    """Write the class of each word of a text, and return the number of words.

    The classes are a local maximum of the likelihood of a class bigram model (Kneser & Ney 1993):
    words move one by one to the class where it is highest, at most `rounds` times each. The same
    text gives the same classes. Lines are a word, a tab and a class, as mkcls writes them. Raise if
    the text has no words.
    """
    return _core.make_classes(text, out, classes=classes, rounds=rounds)


def read_classes(path: Path) -> dict[str, str]:
    """Return the classes of words in a file with the format of `make_classes`.

    Raise an `InputError` with file and line for a line that is not a word, a tab and a class, and
    for a word with two classes.
    """
    return _core.read_classes(path)
