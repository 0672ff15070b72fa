"""Text files read whole, with a limit on the length of a line."""

from __future__ import annotations

from pathlib import Path

from tunesmith._core import line_limit, line_too_long
from tunesmith.errors import InputError

CHUNK = 1 << 20


def read_whole(path: Path) -> bytes:
    """Return the content of a file of lines.

    Raise if a line is longer than the core's limit: such a file is not text. Raise an `OSError` if
    the system does.
    """
    limit = line_limit()
    chunks: list[bytes] = []
    line, length = 1, 0
    with path.open("rb") as stream:
        # Chunks are no longer than a line may be, so that only the first line can be too long.
        while chunk := stream.read(min(CHUNK, limit)):
            first = chunk.find(b"\n")
            length += len(chunk) if first < 0 else first
            if length > limit:
                raise line_too_long(str(path), line)
            if first >= 0:
                length = len(chunk) - chunk.rfind(b"\n") - 1
                line += chunk.count(b"\n")
            chunks.append(chunk)
    return b"".join(chunks)


def cannot_read(path: Path, error: OSError, remedy: str = "check the path") -> InputError:
    """Return the error that says why `path` could not be read, and a remedy."""
    return InputError(f"cannot read: {error.strerror or error}", file=str(path), remedy=remedy)
