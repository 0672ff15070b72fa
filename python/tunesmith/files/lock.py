"""One writer per run: a lock that the system itself releases when the process dies."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from tunesmith.errors import InputError

LOCK = ".lock"


class Lock:
    """An exclusive lock on a directory, held from construction until `release`.

    Refuses with an `InputError` while another process holds it; `what` is how the error calls what
    is in the directory. The file stays behind on purpose: removing it would let two processes lock
    two different files of one name.
    """

    def __init__(self, directory: Path, what: str = "run") -> None:
        path = directory / LOCK
        # Any thread may release the lock. A file system without locks is refused: a file that only
        # stands for a lock would outlive a killed process.
        self._lock = FileLock(
            path,
            thread_local=False,
            fallback_to_soft=False,
            preserve_lock_file=True,
            on_acquired=_sign,
        )
        try:
            self._lock.acquire(blocking=False)
        except Timeout as error:
            raise InputError(
                f"another process{_holder(path)} is writing this {what}",
                file=str(directory),
                remedy=f"wait for it to end, or choose another {what} directory",
            ) from error
        except OSError as error:
            raise InputError(
                f"cannot lock the {what} directory: {error.strerror or error}",
                file=str(path),
                remedy="check the permissions of the directory, and that its file system has locks",
            ) from error

    def release(self) -> None:
        """Let others write; a second call does nothing."""
        self._lock.release()


def _sign(descriptor: int) -> None:
    """Write the number of this process behind the first byte, which Windows locks for reading."""
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f" {os.getpid()}\n".encode())


def _holder(path: Path) -> str:
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(1)
            digits = file.read(20).strip()
    except OSError:
        return ""
    return f" ({digits.decode()})" if digits.isdigit() else ""
