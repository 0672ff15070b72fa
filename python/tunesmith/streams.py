"""Text line by line as it comes, in batches: what is at hand is not kept waiting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from os import PathLike, fspath

from tunesmith.errors import InputError
from tunesmith.formats.base import UTF8, Options, Report, Source

STDIN = 0
CHUNK = 1 << 16


def batches(path: str | PathLike[str], size: int, report: Report) -> Iterator[list[str]]:
    """Yield the lines of a file (plain, gzip or zstd) in lists of at most `size`.

    The lines of the standard input, `-`, are yielded as soon as they have arrived. A line that is
    not UTF-8 raises, or is counted and comes as an empty one, as `report` wants it.
    """
    if fspath(path) == "-":
        first = 1
        for lines in _arriving(STDIN):
            for start in range(0, len(lines), size):
                part = lines[start : start + size]
                yield [_text(line, first + at, report) for at, line in enumerate(part)]
                first += len(part)
        return
    texts = (line or "" for line in Source(path, report, Options()).lines())
    while batch := list(islice(texts, size)):
        yield batch


def _arriving(descriptor: int) -> Iterator[list[bytes]]:
    """Yield whole lines whenever there are some; the last one may lack its end."""
    begun: list[bytes] = []
    while chunk := os.read(descriptor, CHUNK):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        if others:
            yield [b"".join(begun), *others[:-1]]
            begun = [others[-1]]
    if last := b"".join(begun):
        yield [last]


def _text(line: bytes, number: int, report: Report) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        message = f"{UTF8}: byte 0x{line[error.start]:02x} at offset {error.start}"
        remedy = "convert the text to UTF-8, for instance with iconv"
        report.bad(UTF8, InputError(message, "standard input", number, remedy))
        return ""
