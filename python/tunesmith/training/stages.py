"""The stages of a training: which are done, and the progress of the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.files.atomic import TEMPORARY
from tunesmith.files.fingerprint import read_object
from tunesmith.files.lock import LOCK, Lock

TICK = 1000
"""Lines between two reports."""
MEASURED = ("dev", "dev_target")
"""Inputs that no stage but `dev` looks at."""
ANEW = "name a new folder, or remove this one"


@dataclass(frozen=True)
class News:
    """The progress of a stage; `total` is 0 if unknown."""

    stage: str
    state: Literal["begun", "going", "done", "kept"]
    step: str = ""
    done: int = 0
    total: int = 0


Tell = Callable[[News], object]
Progress = Callable[[str, int, int], object]
"""Called with the step, the amount done, and the total, 0 if it is unknown."""


class Stages:
    """The record of finished stages, kept beside the model so that a killed training can continue.

    Locks the folder until the end of the `with` block; raises if another training writes it.
    """

    def __init__(self, folder: Path, config: dict[str, Any], tell: Tell) -> None:
        self.file = folder / "stages.json"
        self.config = config
        self.done: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.tell = tell
        # Check before locking: do not put a lock into a folder that is not ours.
        begun = {folder / LOCK, *folder.glob(f".{self.file.name}.*{TEMPORARY}")}
        if not self.file.exists() and set(folder.iterdir()) - begun:
            raise InputError("the folder is not empty", str(folder), remedy="name a new folder")
        self._lock = Lock(folder, "model")
        try:
            self._begin(folder)
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, folder: Path) -> None:
        if self.file.exists():
            self._take_up(folder)
        for place in (folder, folder / "work"):
            for leftover in place.glob(f".*{TEMPORARY}"):
                leftover.unlink(missing_ok=True)
        # Save before any work, so that a stopped training recognises its folder.
        self._save()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """The facts that the stages returned, in this training or an earlier one."""
        return {name: self.done[name] for name in self.asked}

    def run(
        self, name: str, outputs: Sequence[Path], work: Callable[[Progress], dict[str, Any]]
    ) -> None:
        """Run a stage, unless it is done and its outputs exist."""
        self.asked.append(name)
        if name in self.done and all(output.exists() for output in outputs):
            self.tell(News(name, "kept"))
            return
        self.tell(News(name, "begun"))
        began = time.perf_counter()
        facts = work(lambda *step: self.tell(News(name, "going", *step)))
        self.done[name] = {**facts, "seconds": round(time.perf_counter() - began, 3)}
        self._save()
        self.tell(News(name, "done"))

    def _take_up(self, folder: Path) -> None:
        """Take over the stages of an earlier training; raise if its text or options differ."""
        record = read_object(self.file, ANEW)
        if not _is_record(record):
            raise InputError("not a record of stages", str(self.file), remedy=ANEW)
        config, done = record["config"], record["done"]
        # If no stage is done, options may change: nothing is lost.
        if done and _contents(config, False) != _contents(self.config, False):
            raise InputError(
                "the folder holds a model trained from other text or with other options",
                str(folder),
                remedy=ANEW,
            )
        if _contents(config, True) != _contents(self.config, True):
            done.pop("dev", None)
        self.done = done

    def _save(self) -> None:
        with AtomicWriter(self.file) as out:
            out.write(json.dumps({"config": self.config, "done": self.done}, indent=1))


def counted(lines: Iterable[str], step: str, progress: Progress) -> Iterator[str]:
    """Yield lines and report their number so far."""
    for number, line in enumerate(lines, 1):
        if number % TICK == 0:
            progress(step, number, 0)
        yield line


def _is_record(record: dict[str, Any]) -> bool:
    config, done = record.get("config"), record.get("done")
    if not isinstance(config, dict) or not isinstance(done, dict):
        return False
    inputs = config.get("inputs")
    return isinstance(inputs, list) and all(
        isinstance(each, dict) for each in (*inputs, *done.values())
    )


def _contents(config: dict[str, Any], measured: bool) -> dict[str, Any]:
    """Return a configuration with only the measured inputs, or only the others, without paths.

    Files may move.
    """
    inputs = [
        {key: value for key, value in item.items() if key != "path"}
        for item in config["inputs"]
        if (item.get("role") in MEASURED) == measured
    ]
    return {**config, "inputs": inputs}
