"""Cache of text files of other programs, converted once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tunesmith import _core
from tunesmith.errors import InputError, check_regular

CONVERSION = "3"
"""Increase it when the same text is converted to a different file."""


def cached(
    folder: Path,
    texts: Sequence[Path],
    ending: str,
    make: Callable[[Path], object],
    tell: Callable[[str], object],
) -> Path:
    """Return the file that `make` converts text files to; convert them only once.

    The key is path, size and time of the files. Several threads and processes may convert at the
    same time: each writes its own file and moves it into place atomically.
    """
    facts = [_core.__version__, CONVERSION]
    for text in texts:
        check_regular(text)
        status = text.stat()
        facts += [str(text.resolve()), str(status.st_size), str(status.st_mtime_ns)]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    out = folder / f"{texts[0].name.split('.')[0]}-{key}{ending}"
    if not out.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"converted files cannot be kept here: {error.strerror}"
            raise InputError(
                message, str(folder), remedy="name a folder with --cache DIR"
            ) from None
        part = out.with_name(f"{out.stem}.{uuid4().hex}{ending}")
        tell(f"converting {', '.join(map(str, texts))}, once, to {out}")
        try:
            make(part)
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    return out


@contextmanager
def from_cache(*files: Path) -> Iterator[None]:
    """Add a remedy to errors about unreadable cached files: delete them, they are made again."""
    try:
        yield
    except InputError as error:
        if error.file not in [str(file) for file in files]:
            raise
        remedy = "delete this file; it is made again from the text"
        raise InputError(error.message, error.file, error.line, remedy) from None
