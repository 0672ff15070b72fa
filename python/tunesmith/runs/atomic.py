"""Files that are either the old one or the new one, whenever the process dies."""

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

# Leftovers of a killed write carry this suffix, so that a run directory can tell them
# from files somebody put there.
TEMPORARY = ".part"


class _Stream(io.RawIOBase):
    """The core's writer as a file of Python's that takes bytes."""

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
    leaves `path` as it was, links are followed, devices and pipes are written directly. A disk that
    is full or a directory that cannot be written becomes an `InputError`. Unless `durable`, a power
    cut (not a kill) may lose the file: for those that nothing depends on, many times faster.
    """
    with AtomicWriter(path, durable=durable) as out:
        yield _Stream(out)


def cannot_write(path: Path, error: OSError) -> InputError:
    """Say why `path` could not be written and what would help."""
    return InputError(
        f"cannot write: {error.strerror or error}",
        file=str(path),
        remedy="check the path, its permissions and the free space",
    )
