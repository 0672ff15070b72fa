"""Checks of what a translator is given: lines, counts, weights of single lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import maxsize
from typing import TypeVar

from tunesmith.decode.markup import refuse_lattice
from tunesmith.errors import InputError
from tunesmith.formats.base import Report
from tunesmith.spaces import check_range
from tunesmith.weights import Weights

Found = TypeVar("Found")
BAD_MARKUP = "bad markup"
BAD_TEXT = "no plain text"


def refuse_string(lines: Iterable[str]) -> None:
    """Raise for a single string in place of lines."""
    if isinstance(lines, str):
        raise InputError(
            "a string in place of a list of lines",
            remedy="write [text] for one line, text.splitlines() for several",
        )


def texts_of(lines: Iterable[str]) -> list[str]:
    """Return lines as a list; raise for a single string and for lines that are not text."""
    refuse_string(lines)
    found = list(lines)
    for number, line in enumerate(found, 1):
        try:
            line.encode()
            refuse_lattice(line, "input", number)
        except UnicodeEncodeError as error:
            message = f"a lone surrogate, {line[error.start]!r}"
            remedy = "decode the text with its real encoding, without errors='surrogateescape'"
            raise InputError(message, "input", number, remedy) from None
        except AttributeError:
            message = f"{type(line).__name__} in place of a line"
            raise InputError(message, "input", number, "give lines as strings") from None
    return found


def changes_of(
    changes: Sequence[Mapping[str, float]] | None, lines: int
) -> list[list[tuple[str, float]]] | None:
    """Return changes of weights as the core takes them; raise if they are of other lines."""
    if changes is None:
        return None
    if len(changes) != lines:
        raise InputError(
            f"changes of weights for {len(changes)} lines, but there are {lines}",
            remedy="give one mapping for each line, an empty one for no change",
        )
    for each in changes:
        Weights(each).check_finite()
    return [[*each.items()] for each in changes]


def check_counts(**counts: int) -> None:
    """Raise, with its name, for a count below zero."""
    for name, count in counts.items():
        check_range(name, count, 0, maxsize)


def checked(
    find: Callable[[], Found],
    words: list[str],
    first: int,
    file: str,
    report: Report | None,
    reason: str = BAD_MARKUP,
) -> Found:
    """Return the result of a search; a bad line raises, or is counted and left empty."""
    while True:
        try:
            return find()
        except InputError as error:
            if error.line is None:
                raise
            place = InputError(error.message, file, first + error.line - 1, error.remedy)
            (report or Report()).bad(reason, place)
            words[error.line - 1] = ""
