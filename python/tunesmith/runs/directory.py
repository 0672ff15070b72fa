"""The run directory: configuration, events, checkpoints and result of one tuning run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.files.arrays import Checkpoint, read_arrays, write_arrays
from tunesmith.files.atomic import TEMPORARY, atomic_write, cannot_write
from tunesmith.files.fingerprint import read_object
from tunesmith.files.lock import LOCK, Lock
from tunesmith.files.plain import one_line, pretty
from tunesmith.formats.weights_file import dump_weights
from tunesmith.runs.config import (
    FREE,
    Config,
    read_config,
    refuse_difference,
    write_config,
)
from tunesmith.runs.events import Event, EventLog, read_events

# The files that a run writes before its first checkpoint.
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

    A process that dies at any point leaves a directory that `resume` accepts: it continues from
    the last checkpoint and drops the events after it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.events_file = self.path / "events.jsonl"
        self.checkpoint_file = self.path / "checkpoint.npz"
        self.weights_file = self.path / "weights.toml"
        self.changes_file = self.path / "changes.jsonl"
        self.outputs_file = self.path / "outputs.jsonl"
        self.result_file = self.path / "result.json"
        self.analyses_file = self.path / "analyses.jsonl"
        self._lock: Lock | None = None
        self._log: EventLog | None = None

    # -- opening -------------------------------------------------------------------------

    def create(self, config: Mapping[str, object]) -> Self:
        """Begin a run in a new or empty directory, or replace a run without a checkpoint.

        Raise if the directory holds anything else.
        """
        # Check before locking, so that a wrong directory stays untouched, and again after
        # locking, in case another process was faster.
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
        """Open a run for reading, also while another process writes it."""
        if not self.config_file.is_file():
            raise self.missing()
        return self

    @property
    def stages(self) -> list[Path]:
        """The runs of a chain of tuners, if this is the directory of one: `1-mert`, `2-mira`."""
        if self.config_file.is_file():
            return []
        found = [each.parent for each in self.path.glob("*-*/config.json")]
        numbered = [each for each in found if each.name.partition("-")[0].isdecimal()]
        return sorted(numbered, key=lambda each: int(each.name.partition("-")[0]))

    def missing(
        self,
        message: str = "there is no run here: config.json is missing",
        remedy: str = "give the directory that was given to --run",
    ) -> InputError:
        """Return the error for a directory without a run; of a chain, it names the runs."""
        if self.stages:
            message = "each tuner of a chain has a run of its own"
            remedy = f"give one of {', '.join(map(str, self.stages))}"
        return InputError(message, file=str(self.path), remedy=remedy)

    def resume(
        self, config: Mapping[str, object] | None = None, free: Collection[str] = FREE
    ) -> Self:
        """Open a stopped run for writing; `load_checkpoint` returns where it stopped.

        With a `config`, raise if it differs from the one the run was started with, except for
        the keys in `free`. The events of a finished run are not changed.
        """
        if not self.path.is_dir():
            raise InputError(
                "there is no run to resume here",
                file=str(self.path),
                remedy="start it without --resume, or check the path",
            )
        # A run that was killed before its first event can simply begin.
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
        """Write the checkpoint from which a killed run continues."""
        if self._log is None:
            raise ValueError("this run is not open for writing: create or resume it")
        # Events must be on disk first: a checkpoint that counts lost events is useless.
        position, count = self._log.mark()
        write_arrays(self.checkpoint_file, arrays, state, count, position)

    def epoch_weights_file(self, epoch: int, run: int | None = None) -> Path:
        """Return the path of the weights after `epoch`; with several seeds, those of `run`."""
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
        """Write the final weights and return the file."""
        self._must_write()
        dump_weights(self.weights_file, weights, meta)
        return self.weights_file

    def save_changes(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write the sentences whose output changed by tuning."""
        self._must_write()
        with atomic_write(self.changes_file) as stream:
            for row in rows:
                stream.write(one_line(row))

    def save_outputs(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write what the final weights choose for each sentence that the result is judged on."""
        self._must_write()
        with atomic_write(self.outputs_file) as stream:
            for row in rows:
                stream.write(one_line(row))

    def finish(self, result: Mapping[str, object]) -> None:
        """Write the result, which marks the run as finished; call it last."""
        self._must_write()
        if self._log is not None:
            self._log.mark()
        with atomic_write(self.result_file) as stream:
            stream.write(pretty(result))

    def add_analysis(self, kind: str, facts: Mapping[str, object]) -> None:
        """Add an analysis of a finished run, for its report.

        It takes the place of an earlier one that differs only in what was found: `rows`, `total`.
        """
        if not self.finished:
            raise InputError(
                "the run has not ended",
                str(self.path),
                remedy="wait for it, or go on with --resume",
            )
        self._claim()
        try:
            added = {"analysis": kind, **facts}
            earlier = [each for each in self.analyses() if _asked(each) != _asked(added)]
            lines = [*earlier, added]
            with atomic_write(self.analyses_file) as stream:
                for line in lines:
                    stream.write(one_line(line))
        finally:
            self.close()

    # -- reading -------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the run has ended and written its result."""
        return self.result_file.exists()

    def config(self) -> Config:
        """Return the configuration of the run."""
        return read_config(self.config_file)

    def events(self) -> list[Event]:
        """Return the events so far, without an incomplete last line."""
        return read_events(self.events_file)

    def changes(self) -> list[dict[str, Any]]:
        """Return the sentences whose output changed; none before the run has ended."""
        return read_events(self.changes_file)

    def outputs(self) -> list[dict[str, Any]]:
        """Return the output for each sentence that the result is judged on; none before the end."""
        return read_events(self.outputs_file)

    def analyses(self) -> list[dict[str, Any]]:
        """Return the analyses that were added."""
        return read_events(self.analyses_file)

    def result(self) -> dict[str, Any] | None:
        """Return the result, or None while the run is unfinished."""
        if not self.finished:
            return None
        return read_object(self.result_file, remedy="remove the file and go on with --resume")

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint, None if there is none; raise if it is damaged."""
        return read_arrays(self.checkpoint_file)

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
        """Return the files in the directory except the lock and unfinished writes."""
        if not self.path.is_dir():
            return []
        try:
            return sorted(entry.name for entry in self.path.iterdir() if not _ours(entry))
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _forgettable(self) -> bool:
        """Return whether the directory holds only a run without a checkpoint."""
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
        """Remove leftovers of killed writes; the lock ensures that no process is writing."""
        for leftover in self.path.rglob(f".*{TEMPORARY}"):
            leftover.unlink(missing_ok=True)


def _asked(analysis: Mapping[str, object]) -> bytes:
    """Return what an analysis was about, without what it found."""
    found = ("rows", "total")
    return one_line({key: value for key, value in analysis.items() if key not in found})


def _ours(entry: Path) -> bool:
    return entry.name == LOCK or (entry.name.startswith(".") and entry.name.endswith(TEMPORARY))
