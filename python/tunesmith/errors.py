"""Errors that name the file, the line and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

# How many names a message lists.
SHOWN_NAMES = 12


class InputError(ValueError):
    """Unusable input; printed as `file:line: message (remedy)`."""

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, file, line, remedy)
        self.message = message
        self.file = file
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}: " if self.line is None else f"{self.file}:{self.line}: "
        remedy = "" if self.remedy is None else f" ({self.remedy})"
        return f"{place}{self.message}{remedy}"


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there is no memory, for data, a thread or a module."""
    said = str(error)
    # The interpreter and the loader have no classes of their own for these.
    signs = ("can't start new thread", "failed to map segment", "annot allocate memory")
    return isinstance(error, MemoryError) or any(sign in said for sign in signs)


class WithoutEffect(UserWarning):
    """Weights that a model cannot use."""


def check_regular(path: str | PathLike[str]) -> None:
    """Raise if a file of a model is a pipe or a device: opening one may block for ever.

    Missing files and folders pass: the reader raises for them.
    """
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():
        raise InputError("not a regular file", str(file), remedy="give a file on a disk")


def no_feature(name: str, names: Sequence[str]) -> InputError:
    """Return the error for a name that matches no feature."""
    return InputError(
        f"no feature is called {name!r}", remedy=f"there are {', '.join(names[:SHOWN_NAMES])}"
    )
