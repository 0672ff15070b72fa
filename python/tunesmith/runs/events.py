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
from tunesmith.files.atomic import cannot_write
from tunesmith.files.plain import one_line
from tunesmith.files.text import cannot_read, read_whole

Event = dict[str, Any]


class EventLog:
    """An append-only file of events that holds whole lines up to `position`.

    Opening truncates the file to `position` bytes: the events that a killed run wrote after its
    last checkpoint will happen again.
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
        """Write one event and flush it to the system, so that a kill cannot lose it.

        If the line cannot be written completely, remove it and raise an `InputError`.
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
        """Return position and count after writing everything to disk."""
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
    """Return the events of a file without an incomplete last line; none if the file is missing.

    Raise, with the line's number, for any other line that is not a JSON object.
    """
    path = Path(path)
    try:
        data = read_whole(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_read(path, error) from error
    rows: list[Event] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            # Only a last line without a line break can come from a kill.
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
    """Raise if the file does not hold the events that the checkpoint counts."""
    if position == 0:
        return
    try:
        with path.open("rb") as stream:
            head = stream.read(position)
    except FileNotFoundError:
        head = b""
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(head) != position or not head.endswith(b"\n") or head.count(b"\n") != count:
        raise InputError(
            f"the checkpoint was taken after {count} events ({position} bytes), "
            f"but the file does not hold them",
            file=str(path),
            remedy="restore the file of the run, or start a new run directory",
        )
