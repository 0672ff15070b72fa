"""Errors that name the file, the line and the way out."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


class InputError(ValueError):
    """An input that cannot be used; reads as ``file:line: message (remedy)``."""

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


class WithoutEffect(UserWarning):
    """Weights that a model cannot use."""


def check_regular(path: str | PathLike[str]) -> None:
    """Refuse a pipe or a device as a file of a model: opening one may wait for ever.

    What is not there, and folders, are for the reader to refuse.
    """
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():
        raise InputError("not a regular file", str(file), remedy="give a file on a disk")
