"""One writer per run: a lock that the system itself releases when the process dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tunesmith.errors import InputError

LOCK = ".lock"


class Lock:
    """An exclusive lock on a directory, held from construction until `release`.

    Refuses with an `InputError` while another process holds it; `what` is how the error calls what
    is in the directory. The file stays behind on
    purpose: removing it would let two processes lock two different files of one name.
    """

    def __init__(self, directory: Path, what: str = "run") -> None:
        path = directory / LOCK
        try:
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(
                f"cannot lock the {what} directory: {error.strerror or error}",
                file=str(path),
                remedy="check the permissions of the directory",
            ) from error
        try:
            _lock(self._descriptor)
        except OSError as error:
            holder = _holder(self._descriptor)
            self.release()
            raise InputError(
                f"another process{holder} is writing this {what}",
                file=str(directory),
                remedy="wait for it to end, or choose another {what} directory",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others write; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    digits = os.read(descriptor, 20).strip()
    return f" ({digits.decode()})" if digits.isdigit() else ""


if sys.platform == "win32":
    import msvcrt

    # Windows locks bytes, and a locked byte cannot be read: lock one far behind the text.
    _BYTE = 1 << 30

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
