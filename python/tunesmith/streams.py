"""Text line by line as it comes, in batches: what is at hand is not kept waiting."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from os import PathLike, fspath

from tunesmith._core import line_limit, line_too_long
from tunesmith.errors import InputError
from tunesmith.formats.base import UTF8, Options, Report, Source

STDIN = 0
CHUNK = 1 << 16


def batches(
    path: str | PathLike[str], size: Callable[[], int], report: Report
) -> Iterator[list[str]]:
    """Yield the lines of a file (plain, gzip or zstd) in lists of at most the `size` of the moment.

    The lines of the standard input, `-`, are yielded as soon as they have arrived. A line that is
    not UTF-8 raises, or is counted and comes as an empty one, as `report` wants it.
    """
    if fspath(path) == "-":
        first = 1
        for lines in _arriving(STDIN):
            numbered = enumerate(lines, first)
            yield from _parts((_text(line, at, report) for at, line in numbered), size)
            first += len(lines)
        return
    yield from _parts((line or "" for line in Source(path, report, Options()).lines()), size)


def _parts(texts: Iterator[str], size: Callable[[], int]) -> Iterator[list[str]]:
    """Yield lists of at most `size`; what comes before a bad one is not lost."""
    part: list[str] = []
    try:
        for text in texts:
            part.append(text)
            if len(part) >= size():
                yield part
                part = []
    except InputError:
        if part:
            yield part
        raise
    if part:
        yield part


def _arriving(descriptor: int) -> Iterator[list[bytes]]:
    """Yield whole lines whenever there are some; the last one may lack its end."""
    begun: list[bytes] = []
    limit, length, number = line_limit(), 0, 1
    while chunk := os.read(descriptor, CHUNK):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        length += len(first)
        for place, size in enumerate([length, *map(len, others)]):
            if size > limit:
                raise line_too_long("standard input", number + place)
        if others:
            length = len(others[-1])
            number += len(others)
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
