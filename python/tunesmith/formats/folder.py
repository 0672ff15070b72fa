"""Lists stored as folders: files found with or without compression, folders written atomically."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import AS_JSONL, without_compression

MANY = 200
TOTAL = "total"
"""The file that holds the total score; the others hold features."""


def entries(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by name without compression suffix."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {without_compression(path.name): path for path in files}


def open_all(
    stack: ExitStack, folder: Path, files: Mapping[str, str], path: str
) -> dict[str, AtomicWriter]:
    """Open a file for every name; raise for names with a path and for too many files."""
    if len(files) > MANY:
        raise InputError(
            f"{len(files)} features are too many for a file each", path, remedy=AS_JSONL
        )
    for name in files:
        if not re.fullmatch(r"[\w=+~^@%,()-][\w=+~^@%,(). -]*", name) or len(name.encode()) > 200:
            raise InputError(
                f"the name {name!r} cannot be a file's name",
                path,
                remedy=f"rename it, or {AS_JSONL}",
            )
    return {name: stack.enter_context(AtomicWriter(folder / file)) for name, file in files.items()}


@contextmanager
def new_folder(path: str) -> Iterator[Path]:
    """Yield a folder to fill, then move it to `path`; raise if `path` exists."""
    target = Path(path)
    if target.exists():
        raise InputError("is there already", path, remedy="remove it or choose another name")
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(
            str(error.strerror or error).lower(), path, remedy="choose another place"
        ) from error
    try:
        try:
            yield scratch
        except InputError as error:
            # Name the target in the error: the user does not know the temporary folder.
            place = (error.file or "").replace(str(scratch), path, 1) or None
            raise InputError(error.message, place, error.line, error.remedy) from error
        scratch.chmod(0o755)
        try:
            scratch.rename(target)
        except OSError as error:
            raise InputError(
                str(error.strerror or error).lower(), path, remedy="choose another place"
            ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
