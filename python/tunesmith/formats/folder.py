"""Lists that are folders: found by name whatever their packing, written whole or not at all."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import AS_JSONL, unpacked

MANY = 200
TOTAL = "total"
"""The file that holds the total score; the others hold features."""


def entries(folder: Path) -> dict[str, Path]:
    """The files of a folder by name, packed or not."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {unpacked(path.name): path for path in files}


def open_all(
    stack: ExitStack, folder: Path, files: Mapping[str, str], path: str
) -> dict[str, AtomicWriter]:
    """A file for every name; refuses names that lead elsewhere, and more than can be open."""
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
    """A folder to fill, which takes its place at the end; refuses one that is there already."""
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
            # The reader asked for the target and has never heard of the folder it grows in.
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
