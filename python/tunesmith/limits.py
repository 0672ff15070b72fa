"""Whole files of text, read up to the first line that is too long to be one."""

from __future__ import annotations

from pathlib import Path

from tunesmith._core import line_limit, line_too_long

CHUNK = 1 << 20


def read_whole(path: Path) -> bytes:
    """Return the content of a file of lines.

    Refuses a line longer than the core's readers take, which a file that is no text has. An error
    of the system is an `OSError`.
    """
    limit = line_limit()
    chunks: list[bytes] = []
    line, length = 1, 0
    with path.open("rb") as stream:
        # No longer than a line may be, so that only its first line can have become too long.
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
