"""One writer for a database: writes that wait together are committed together."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any, TypeVar

from tunesmith.serve.database import FAILURES, connect
from tunesmith.serve.settings import RequestError, busy

Done = TypeVar("Done")
Write = Callable[[sqlite3.Connection], Any]
Waiting = tuple[Write, "Future[Any]"]
# Errors of SQLite that say that the disk cannot take more.
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Writer:
    """A thread that owns the only writing connection.

    A write is a function of the connection. It runs in a savepoint of its own: if it raises, only
    its own changes are undone. Its future is resolved after the commit, so what it returns is on
    the disk.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._base = connect(path)
        self._queue: Queue[Waiting | None] = Queue(limit)
        self.broken: str | None = None
        """Why writing failed for good, if it did."""
        self.commits = 0
        self._thread = Thread(target=self._work, name="store", daemon=True)
        self._thread.start()

    def submit(self, write: Callable[[sqlite3.Connection], Done]) -> Future[Done]:
        """Queue a write; raise if too many wait."""
        future: Future[Done] = Future()
        try:
            self._queue.put_nowait((write, future))
        except Full:
            raise busy(
                "store_busy", "too much feedback waits for the disk: send it again"
            ) from None
        return future

    def close(self) -> None:
        """Finish the queued writes and close the connection."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        open_ = True
        while open_:
            first = self._queue.get()
            waiting = [] if first is None else [first]
            open_ = first is not None
            try:
                while open_:
                    more = self._queue.get_nowait()
                    if more is None:
                        open_ = False
                    else:
                        waiting.append(more)
            except Empty:
                pass
            # Those who no longer wait need no write.
            waiting = [each for each in waiting if each[1].set_running_or_notify_cancel()]
            if waiting:
                self._commit(waiting)
        self._base.close()

    def _commit(self, waiting: list[Waiting]) -> None:
        """Run writes in one transaction, and tell those who wait."""
        done: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            self._base.execute("BEGIN IMMEDIATE")
            for write, future in waiting:
                done.append((future, *self._try(write)))
            self._base.execute("COMMIT")
            self.commits += 1
        except FAILURES as error:
            with suppress(*FAILURES):
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
            refusal = self._refusal(error)
            done = [(future, None, refusal) for _, future in waiting]
        for future, result, failure in done:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _try(self, write: Write) -> tuple[Any, Exception | None]:
        """Return the result of a write, or the error that its changes were undone for.

        Errors of the database itself end the transaction: they are raised.
        """
        self._base.execute("SAVEPOINT one")
        try:
            result = write(self._base)
        except sqlite3.IntegrityError as error:
            failure: Exception = error
        except sqlite3.Error:
            raise
        except Exception as error:
            failure = error
        else:
            self._base.execute("RELEASE one")
            return result, None
        self._base.execute("ROLLBACK TO one")
        self._base.execute("RELEASE one")
        return None, failure

    def _refusal(self, error: Exception) -> RequestError:
        # The low byte is the kind of error, the rest is detail.
        kind = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if kind in FULL:
            return busy(
                "store_full",
                f"nothing was saved: the disk of the store cannot be written ({error})",
                507,
                60,
            )
        if kind in DAMAGED:
            self.broken = str(error)
            return RequestError(
                500, "store_damaged", f"nothing was saved: the store is damaged ({error})"
            )
        return busy("store_failed", f"nothing was saved: {error}")
