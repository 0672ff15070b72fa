"""Files that are either the old one or the new one, whenever the process dies."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tunesmith.errors import InputError

# Leftovers of a killed write carry this suffix, so that a run directory can tell them
# from files somebody put there.
TEMPORARY = ".part"


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    An error inside the block leaves `path` as it was. A disk that is full or a directory
    that cannot be written becomes an `InputError`. Unless `durable`, a power cut (not a
    kill) may lose the file: for those that nothing depends on, many times faster.
    """
    # On the same file system, or the rename would not be atomic. Exclusive creation with
    # an unguessable name; unlike tempfile's, its mode is what the user's umask says.
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}"
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
        if durable:
            sync_directory(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


def sync_directory(path: Path) -> None:
    """Make a rename inside `path` survive a power cut, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Some network file systems refuse this; the rename itself has still happened.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> InputError:
    """Say why `path` could not be written and what would help."""
    return InputError(
        f"cannot write: {error.strerror or error}",
        file=str(path),
        remedy="check the path, its permissions and the free space",
    )
