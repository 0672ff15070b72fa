"""One writer per run: a lock that the system itself releases when the process dies."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from tunesmith.errors import InputError

LOCK = ".lock"


class Lock:
    """An exclusive lock on a directory, held from construction until `release`.

    Raise an `InputError` if another process holds it; `what` names the content of the directory in
    the error. The file is not removed: otherwise two processes could lock two different files of
    the same name.
    """

    def __init__(self, directory: Path, what: str = "run") -> None:
        path = directory / LOCK
        # Any thread may release the lock. On a file system without locks, raise: a file used as a
        # lock would outlive a killed process.
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
    """Write the id of this process after the first byte, which Windows locks for reading."""
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
