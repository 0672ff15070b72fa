"""Text files of other programs, converted once and kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tunesmith import _core
from tunesmith.errors import InputError

CACHE = "tunesmith-cache"
CONVERSION = "2"
"""Counts up when the same text becomes another file."""


def cached(
    folder: Path,
    texts: Sequence[Path],
    ending: str,
    make: Callable[[Path], object],
    tell: Callable[[str], object],
) -> Path:
    facts = [_core.__version__, CONVERSION]
    for text in texts:
        told = text.stat()
        facts += [str(text.resolve()), str(told.st_size), str(told.st_mtime_ns)]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    out = folder / f"{texts[0].name.split('.')[0]}-{key}{ending}"
    if not out.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        tell(f"converting {', '.join(map(str, texts))}, once, to {out}")
        # Nobody sees a file that is not whole, and two who make it do not meet.
        part = out.with_name(f"{out.stem}.{os.getpid()}{ending}")
        try:
            make(part)
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    return out


@contextmanager
def from_cache(*files: Path) -> Iterator[None]:
    """Say what helps where one of these files cannot be read: it is made again once it is gone."""
    try:
        yield
    except InputError as error:
        if error.file not in [str(file) for file in files]:
            raise
        remedy = "delete this file, it is made again from the text"
        raise InputError(error.message, error.file, error.line, remedy) from None


def cache_beside(beside: Path) -> Path:
    # Root may write anywhere, but a folder without any right to write is not meant to be.
    if os.access(beside, os.W_OK) and beside.stat().st_mode & 0o222:
        return beside / CACHE
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tunesmith"
