"""Atomic writes: a process that dies leaves either the old file or the new one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# The suffix of temporary files. A run directory tells leftovers of a killed write
# from files of the user by it.
TEMPORARY = ".part"


class _Stream(io.RawIOBase):
    """The core's writer as a binary Python file."""

    def __init__(self, out: AtomicWriter) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer, /) -> int:
        whole = bytes(content)
        self._out.write(whole)
        return len(whole)


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[io.RawIOBase]:
    """Open a file that takes the place of `path` when the block ends without an error.

    The rules are those of the core's writer (`core/text/src/write.rs`): an error inside the block
    leaves `path` unchanged, links are followed, devices and pipes are written directly. Raise an
    `InputError` if the disk is full or the directory cannot be written. Without `durable`, writing
    is many times faster, but a power cut (not a kill) may lose the file: only use it for files that
    no other file depends on.
    """
    with AtomicWriter(path, durable=durable) as out:
        yield _Stream(out)


def cannot_write(path: Path, error: OSError) -> InputError:
    """Return the error that says why `path` could not be written, and a remedy."""
    return InputError(
        f"cannot write: {error.strerror or error}",
        file=str(path),
        remedy="check the path, its permissions and the free space",
    )
