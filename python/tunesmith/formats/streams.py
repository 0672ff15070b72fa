"""Batches of lines from a file or a pipe, yielded as soon as lines arrive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from os import PathLike, fspath

from tunesmith._core import line_limit, line_too_long
from tunesmith.errors import InputError
from tunesmith.formats.base import UTF8, Options, Report, TextFile

STDIN = 0
CHUNK = 1 << 16


def batches(
    path: str | PathLike[str], size: Callable[[], int], report: Report
) -> Iterator[list[str]]:
    """Yield the lines of a file (plain, gzip or zstd) in lists of at most `size()` lines.

    `size` is called again for every list. Lines of the standard input, `-`, are yielded as soon as
    they arrive. A line that is not UTF-8 raises, or is counted and replaced by an empty one,
    depending on `report`.
    """
    if fspath(path) == "-":
        first = 1
        for lines in _arriving(STDIN):
            numbered = enumerate(lines, first)
            yield from _parts((_text(line, at, report) for at, line in numbered), size)
            first += len(lines)
        return
    yield from _parts((line or "" for line in TextFile(path, report, Options()).lines()), size)


def _parts(texts: Iterator[str], size: Callable[[], int]) -> Iterator[list[str]]:
    """Yield lists of at most `size()` texts; yield those before a bad one, then raise."""
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
    """Yield complete lines as soon as they arrive; the last may lack its line break."""
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
