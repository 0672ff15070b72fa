"""The run directory: everything one tuning run was told, did, and found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.runs.atomic import TEMPORARY, atomic_write, cannot_write
from tunesmith.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from tunesmith.runs.config import (
    FREE,
    Config,
    read_config,
    read_object,
    refuse_difference,
    write_config,
)
from tunesmith.runs.events import Event, EventLog, read_events, read_lines
from tunesmith.runs.lock import LOCK, Lock
from tunesmith.runs.plain import one_line, pretty
from tunesmith.runs.weights_file import dump_weights

# What a run has written before its first checkpoint.
BEGINNING = ("config.json", "events.jsonl", "report.html", "decoded", "weights")


class RunDirectory:
    """One run on disk; write it after `create` or `resume`, read it after `open`.

    ```
    with RunDirectory("run").create({"preset": "rm", "seed": 1}) as run:
        run.event("start", preset="rm")
        run.save_checkpoint({"weights": w}, {"epoch": 1})
        run.save_weights({"LM0": 0.1}, {"tuner": "rm"})
        run.finish({"tuned": 39.2})
    ```

    A process that dies at any point leaves a directory that `resume` accepts: it takes up
    the last checkpoint and forgets the events after it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.events_file = self.path / "events.jsonl"
        self.checkpoint_file = self.path / "checkpoint.npz"
        self.weights_file = self.path / "weights.toml"
        self.changes_file = self.path / "changes.jsonl"
        self.result_file = self.path / "result.json"
        self._lock: Lock | None = None
        self._log: EventLog | None = None

    # -- opening -------------------------------------------------------------------------

    def create(self, config: Mapping[str, object]) -> Self:
        """Begin a run in a new or empty directory, or in place of one that came to no checkpoint.

        Refuses a directory that holds anything else.
        """
        # Before the lock, so that nothing is left in a directory that was a mistake, and
        # again after it, for the process that came second.
        self._refuse_occupied()
        self._claim()
        try:
            self._refuse_occupied()
            self._forget()
            self._begin(config)
        except BaseException:
            self.close()
            raise
        return self

    def open(self) -> Self:
        """Look at a run without writing, also while another process writes it."""
        if not self.config_file.is_file():
            raise InputError(
                "there is no run here: config.json is missing",
                file=str(self.path),
                remedy="give the directory that was given to --run",
            )
        return self

    def resume(
        self, config: Mapping[str, object] | None = None, free: Collection[str] = FREE
    ) -> Self:
        """Go on with a run that was stopped; `load_checkpoint` says from where.

        With a `config`, refuse unless it is the one the run was started with, apart from
        the keys in `free`. A finished run is opened without touching its events.
        """
        if not self.path.is_dir():
            raise InputError(
                "there is no run to resume here",
                file=str(self.path),
                remedy="start it without --resume, or check the path",
            )
        # Killed before its first word, a run loses nothing by beginning now.
        if config is None or self._foreign():
            self.open()
        self._claim()
        try:
            self._clean()
            if not self.config_file.exists() and config is not None:
                self._begin(config)
                return self
            if config is not None:
                refuse_difference(self.config_file, config, free)
            if not self.finished:
                point = self.load_checkpoint() or Checkpoint({}, {})
                self._log = EventLog(self.events_file, point.events_bytes, point.events)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Release the run for other processes; a second call does nothing."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- writing -------------------------------------------------------------------------

    def event(self, kind: str, /, **fields: object) -> None:
        """Append one event; `time` is added, unless given."""
        if self._log is None:
            raise ValueError("this run is not open for writing: create or resume it")
        self._log.append(kind, fields)

    def save_checkpoint(
        self, arrays: Mapping[str, npt.ArrayLike], state: Mapping[str, object]
    ) -> None:
        """Make this moment the one a killed run goes back to."""
        if self._log is None:
            raise ValueError("this run is not open for writing: create or resume it")
        # The events must be safe first: a checkpoint that counts lost ones is useless.
        position, count = self._log.mark()
        write_checkpoint(self.checkpoint_file, arrays, state, count, position)

    def epoch_weights_file(self, epoch: int, run: int | None = None) -> Path:
        """Return where the weights after `epoch` lie; with several seeds, those of `run`."""
        folder = self.path / "weights"
        if run is not None:
            folder /= f"run-{run:02d}"
        return folder / f"epoch-{epoch:04d}.toml"

    def save_epoch_weights(
        self,
        epoch: int,
        weights: Mapping[str, float],
        meta: Mapping[str, object],
        run: int | None = None,
    ) -> Path:
        """Write the weights after one epoch and return the file."""
        self._must_write()
        path = self.epoch_weights_file(epoch, run)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path.parent, error) from error
        # Resuming needs only the checkpoint.
        dump_weights(path, weights, meta, durable=False)
        return path

    def save_weights(self, weights: Mapping[str, float], meta: Mapping[str, object]) -> Path:
        """Write the weights the run ends with and return the file."""
        self._must_write()
        dump_weights(self.weights_file, weights, meta)
        return self.weights_file

    def save_changes(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write the sentences whose choice the tuning changed."""
        self._must_write()
        with atomic_write(self.changes_file) as stream:
            for row in rows:
                stream.write(one_line(row))

    def finish(self, result: Mapping[str, object]) -> None:
        """Write the result, which marks the run as finished; call it last."""
        self._must_write()
        if self._log is not None:
            self._log.mark()
        with atomic_write(self.result_file) as stream:
            stream.write(pretty(result))

    # -- reading -------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the run came to its end and wrote its result."""
        return self.result_file.exists()

    def config(self) -> Config:
        """Return what the run was asked to do."""
        return read_config(self.config_file)

    def events(self) -> list[Event]:
        """Return the events so far, without a torn last line."""
        return read_events(self.events_file)

    def changes(self) -> list[dict[str, Any]]:
        """Return the sentences that changed; none before the run has ended."""
        return read_lines(self.changes_file)

    def result(self) -> dict[str, Any] | None:
        """Return the result, or None while the run is unfinished."""
        if not self.finished:
            return None
        return read_object(self.result_file, remedy="remove the file and go on with --resume")

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint, None when there is none, and refuse a damaged one."""
        return read_checkpoint(self.checkpoint_file)

    # -- inside --------------------------------------------------------------------------

    def _claim(self) -> None:
        if self._lock is not None:
            raise ValueError("this run is already open for writing")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self._lock = Lock(self.path)

    def _begin(self, config: Mapping[str, object]) -> None:
        self._clean()
        write_config(self.config_file, {**config, "version": _core.__version__})
        self._log = EventLog(self.events_file)

    def _must_write(self) -> None:
        if self._lock is None:
            raise ValueError("this run is not open for writing: create or resume it")

    def _refuse_occupied(self) -> None:
        if self._forgettable():
            return
        if self.config_file.exists():
            raise InputError(
                "the directory already holds a run",
                file=str(self.path),
                remedy="go on with --resume, or choose another run directory",
            )
        if found := self._foreign():
            raise InputError(
                f"the run directory is not empty: it holds {found[0]}",
                file=str(self.path),
                remedy="choose an empty or new directory",
            )

    def _foreign(self) -> list[str]:
        """Return what else than a lock and unfinished writes the directory holds."""
        if not self.path.is_dir():
            return []
        try:
            return sorted(entry.name for entry in self.path.iterdir() if not _ours(entry))
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _forgettable(self) -> bool:
        """Whether the directory holds the beginning of a run, which has not come far enough for a
        checkpoint, and nothing else: whoever mends a mistake begins again."""
        if not (self.config_file.is_file() and self.events_file.is_file()):
            return False
        try:
            ours = "version" in self.config()
        except InputError:
            return False
        return ours and all(name in BEGINNING for name in self._foreign())

    def _forget(self) -> None:
        for name in BEGINNING:
            path = self.path / name
            if path.is_dir():
                rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _clean(self) -> None:
        """Remove what writes that were killed left behind; the lock says nobody is writing."""
        for leftover in self.path.rglob(f".*{TEMPORARY}"):
            leftover.unlink(missing_ok=True)


def _ours(entry: Path) -> bool:
    return entry.name == LOCK or (entry.name.startswith(".") and entry.name.endswith(TEMPORARY))
