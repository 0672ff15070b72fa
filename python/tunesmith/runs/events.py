"""The events of a run: one JSON object per line, appended as they happen."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tunesmith.errors import InputError
from tunesmith.limits import read_whole
from tunesmith.runs.atomic import cannot_write
from tunesmith.runs.plain import one_line

Event = dict[str, Any]


class EventLog:
    """An append-only file of events that holds whole lines up to `position`.

    Opening cuts the file back to `position` bytes: what a killed run wrote after its last
    checkpoint, torn or not, is going to happen again.
    """

    def __init__(self, path: Path, position: int = 0, count: int = 0) -> None:
        self.path = path
        self.position = position
        self.count = count
        # Several runs may report from several threads.
        self._guard = threading.Lock()
        _check_position(path, position, count)
        try:
            self._descriptor: int | None = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666
            )
            os.ftruncate(self._descriptor, position)
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Write one event and hand it to the system, where a kill cannot reach it.

        A line that cannot be written whole is taken back, and an `InputError` says why.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = one_line({"event": kind, "time": now, **fields})
        with self._guard:
            if self._descriptor is None:
                raise ValueError("the event log is closed")
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                os.ftruncate(self._descriptor, self.position)
                raise cannot_write(self.path, error) from error
            self.position += len(line)
            self.count += 1

    def mark(self) -> tuple[int, int]:
        """Return position and count after making sure that all of it is on the disk."""
        with self._guard:
            if self._descriptor is None:
                raise ValueError("the event log is closed")
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise cannot_write(self.path, error) from error
            return self.position, self.count

    def close(self) -> None:
        """Stop writing; a second call does nothing."""
        with self._guard:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


def read_events(path: Path | str) -> list[Event]:
    """Return the events of a file; a torn last line is left out, a missing file has none.

    Any other line that is not a JSON object is refused with its number.
    """
    return read_lines(Path(path))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file under the rules of `read_events`."""
    try:
        data = read_whole(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", file=str(path)) from error
    rows: list[dict[str, Any]] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            # Only the last line, which no newline has ended, can be the mark of a kill.
            if number == len(lines):
                break
            raise InputError(
                f"not a JSON object: {error}",
                file=str(path),
                line=number,
                remedy="remove the line",
            ) from error
        rows.append(row)
    return rows


def _check_position(path: Path, position: int, count: int) -> None:
    """Refuse a file that cannot be the one the checkpoint was taken with."""
    if position == 0:
        return
    try:
        with path.open("rb") as stream:
            head = stream.read(position)
    except FileNotFoundError:
        head = b""
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", file=str(path)) from error
    if len(head) != position or not head.endswith(b"\n") or head.count(b"\n") != count:
        raise InputError(
            f"the checkpoint was taken after {count} events ({position} bytes), "
            f"but the file does not hold them",
            file=str(path),
            remedy="bring back the file as the run left it, or start a new run directory",
        )
