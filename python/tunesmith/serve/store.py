"""Feedback on disk: what people corrected, whether it is used, and why not."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Literal, Self

from tunesmith.files.lock import Lock
from tunesmith.serve.database import FAILURES, connect, open_store
from tunesmith.serve.settings import Feedback, RequestError, busy
from tunesmith.serve.tokens import Token, find_token, list_tokens
from tunesmith.serve.writer import Writer

Status = Literal["accepted", "held"]
MINUTE = 60.0
# Corrections beyond the rate are held; beyond this multiple of it they are refused.
FLOOD = 10
_COLUMNS = (
    "feedback.id, source, translation, suggestion, status, reasons, token, "
    "coalesce(tokens.name, ''), feedback.created, changed"
)
_FROM = "feedback LEFT JOIN tokens ON tokens.id = token"


@dataclass(frozen=True)
class Correction:
    """A correction in the store."""

    id: int
    source: str
    translation: str
    suggestion: str | None
    """The translation that was corrected, if the client said."""
    status: Status
    reasons: list[str]
    """Why it is held."""
    token: int | None
    name: str
    """The name of the token that sent it."""
    created: float
    changed: float

    def described(self) -> dict[str, Any]:
        """Return the correction as the service shows it."""
        return {
            "id": self.id,
            "source": self.source,
            "translation": self.translation,
            "suggestion": self.suggestion,
            "status": self.status,
            "reasons": self.reasons,
            "name": self.name,
            "created": _time(self.created),
            "changed": _time(self.changed),
        }


class Store:
    """The folder of a service: feedback and tokens in one database, with one writer."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.path = open_store(folder, create=True)
        self._lock = Lock(folder, "store")
        self._reader = connect(self.path)
        self._reading = ThreadLock()
        self.writer = Writer(self.path, limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is being written, and let others open the store."""
        self.writer.close()
        self._reader.close()
        self._lock.release()

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._reading:
            try:
                yield self._reader
            except (*FAILURES, json.JSONDecodeError) as error:
                self.writer.broken = str(error)
                message = f"the store cannot be read ({error})"
                raise RequestError(500, "store_damaged", message) from error

    def token(self, text: str) -> Token | None:
        """Return the valid token that was presented, if it is one."""
        with self._read() as base:
            return find_token(base, text)

    def tokens(self) -> list[Token]:
        """Return all tokens."""
        with self._read() as base:
            return list_tokens(base)

    def find(self, number: int) -> Correction | None:
        """Return a correction by its number."""
        with self._read() as base:
            return _found(base, number)

    def corrections(
        self, limit: int, before: int | None, status: str | None, token: int | None
    ) -> list[Correction]:
        """Return the newest corrections below a number, of a status, of a token."""
        wanted = {
            "feedback.id < ?": before,
            "status = ?": status,
            "token = ?": token,
        }
        given = {test: value for test, value in wanted.items() if value is not None}
        where = " AND ".join(given) or "1"
        with self._read() as base:
            rows = base.execute(
                f"SELECT {_COLUMNS} FROM {_FROM} WHERE {where} ORDER BY feedback.id DESC LIMIT ?",
                (*given.values(), limit),
            ).fetchall()
        return [_correction(row) for row in rows]

    def accepted(self) -> dict[int, tuple[str, str]]:
        """Return source and translation of all accepted corrections, by number."""
        with self._read() as base:
            rows = base.execute(
                "SELECT id, source, translation FROM feedback WHERE status = 'accepted' ORDER BY id"
            ).fetchall()
        return {number: (source, translation) for number, source, translation in rows}

    def counts(self) -> dict[str, int]:
        """Return the number of corrections by status."""
        with self._read() as base:
            rows = base.execute("SELECT status, count(*) FROM feedback GROUP BY status").fetchall()
        return {"accepted": 0, "held": 0, **dict(rows)}

    def remembered(self, sources: Sequence[str]) -> list[tuple[int, str] | None]:
        """Return number and text of the newest accepted correction of each sentence, if any."""
        with self._read() as base:
            return [
                base.execute(
                    "SELECT id, translation FROM feedback WHERE key = ? AND status = 'accepted' "
                    "ORDER BY changed DESC, id DESC LIMIT 1",
                    (key_of(source),),
                ).fetchone()
                for source in sources
            ]

    def add(
        self,
        source: str,
        translation: str,
        suggestion: str | None,
        token: Token,
        reasons: Sequence[str],
        rules: Feedback,
    ) -> Future[Correction]:
        """Write a correction, held if there are reasons; the future has it once it is on disk.

        Duplicates and the rate of the token are more reasons. The future raises if the token sends
        far too many.
        """

        def write(base: sqlite3.Connection) -> Correction:
            now = time.time()
            recent = base.execute(
                "SELECT count(*) FROM feedback WHERE token IS ? AND created > ?",
                (token.id, now - MINUTE),
            ).fetchone()[0]
            if recent >= rules.rate * FLOOD:
                raise busy(
                    "too_much_feedback",
                    f"more than {rules.rate * FLOOD} corrections in a minute from one token",
                    429,
                    int(MINUTE),
                )
            why = list(reasons)
            twin = base.execute(
                "SELECT id FROM feedback WHERE key = ? AND translation = ? ORDER BY id LIMIT 1",
                (key_of(source), translation),
            ).fetchone()
            if twin is not None:
                why.append(f"the same as correction {twin[0]}")
            if recent >= rules.rate:
                why.append(f"more than {rules.rate} corrections in a minute from one token")
            if not rules.accept:
                why.append("every correction is reviewed")
            values = (
                source,
                translation,
                suggestion,
                key_of(source),
                "held" if why else "accepted",
            )
            made = base.execute(
                "INSERT INTO feedback (source, translation, suggestion, key, status, reasons, "
                "token, created, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, json.dumps(why), token.id, now, now),
            )
            return _kept(base, made.lastrowid or 0)

        return self.writer.submit(write)

    def change(self, number: int, status: Status) -> Future[Correction | None]:
        """Approve or hold a correction; the future has it, or None if there is none."""

        def write(base: sqlite3.Connection) -> Correction | None:
            found = _found(base, number)
            if found is None or found.status == status:
                return found
            why = [] if status == "accepted" else ["undone in review"]
            base.execute(
                "UPDATE feedback SET status = ?, reasons = ?, changed = ? WHERE id = ?",
                (status, json.dumps(why), time.time(), number),
            )
            return _kept(base, number)

        return self.writer.submit(write)

    def remove(self, number: int) -> Future[bool]:
        """Delete a correction; the future says whether there was one."""

        def write(base: sqlite3.Connection) -> bool:
            return bool(base.execute("DELETE FROM feedback WHERE id = ?", (number,)).rowcount)

        return self.writer.submit(write)


def key_of(source: str) -> str:
    """Return what sentences have in common that are the same but for spaces."""
    return " ".join(source.split())


def _found(base: sqlite3.Connection, number: int) -> Correction | None:
    row = base.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE feedback.id = ?", (number,)
    ).fetchone()
    return None if row is None else _correction(row)


def _kept(base: sqlite3.Connection, number: int) -> Correction:
    found = _found(base, number)
    assert found is not None
    return found


def _correction(row: Any) -> Correction:
    values = list(row)
    values[5] = json.loads(values[5])
    return Correction(*values)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
