"""The stages of a training: which are done, how far the others are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.runs.atomic import TEMPORARY
from tunesmith.runs.config import read_object
from tunesmith.runs.lock import LOCK, Lock

TICK = 1000
"""Lines between two reports."""
MEASURED = ("dev", "dev_target")
"""Inputs that no stage but `dev` looks at."""
ANEW = "name a new folder, or remove this one"


@dataclass(frozen=True)
class News:
    """How far a stage is; `total` is 0 where nobody knows it."""

    stage: str
    state: Literal["begun", "going", "done", "kept"]
    step: str = ""
    done: int = 0
    total: int = 0


Tell = Callable[[News], object]
Progress = Callable[[str, int, int], object]
"""Told the step, how much of it is done, and how much there is."""


class Stages:
    """Which stages are done, kept beside the model so that a killed training goes on.

    Refuses a folder that another training writes, until the end of the `with` block.
    """

    def __init__(self, folder: Path, config: dict[str, Any], tell: Tell) -> None:
        self.file = folder / "stages.json"
        self.config = config
        self.done: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.tell = tell
        # First of all: a folder of somebody else's gets no lock of ours.
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
        # Before any work, so that the folder is known again wherever it stops.
        self._save()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What the stages of this training told, now or when they were done."""
        return {name: self.done[name] for name in self.asked}

    def run(
        self, name: str, outputs: Sequence[Path], work: Callable[[Progress], dict[str, Any]]
    ) -> None:
        """Do a stage, unless it is done and its outputs are there."""
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
        """Take over what an earlier training did; refuse one of other text or options."""
        told = read_object(self.file, ANEW)
        if not _is_record(told):
            raise InputError("not a record of stages", str(self.file), remedy=ANEW)
        config, done = told["config"], told["done"]
        # Where nothing is done yet, nothing is lost: options may have been a mistake.
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
    """Yield lines and tell how many there were so far."""
    for number, line in enumerate(lines, 1):
        if number % TICK == 0:
            progress(step, number, 0)
        yield line


def _is_record(told: dict[str, Any]) -> bool:
    config, done = told.get("config"), told.get("done")
    if not isinstance(config, dict) or not isinstance(done, dict):
        return False
    inputs = config.get("inputs")
    return isinstance(inputs, list) and all(
        isinstance(each, dict) for each in (*inputs, *done.values())
    )


def _contents(config: dict[str, Any], measured: bool) -> dict[str, Any]:
    """Return a configuration with the inputs that are measured, or with the others, and without
    the places of their files: those may move."""
    inputs = [
        {key: value for key, value in item.items() if key != "path"}
        for item in config["inputs"]
        if (item.get("role") in MEASURED) == measured
    ]
    return {**config, "inputs": inputs}
