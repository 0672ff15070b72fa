"""The one error for anything a user can put right: it names the file, the line and the remedy."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used; reads as `file:line: message (remedy)`."""

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}:"
        if self.line is not None:
            place += f"{self.line}:"
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{place} {self.message}{remedy}".lstrip()
