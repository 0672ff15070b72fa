"""The stages of a training: which are done, how far the others are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError

TICK = 1000
"""Lines between two reports."""


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
    """Which stages are done, kept beside the model so that a killed training goes on."""

    def __init__(self, folder: Path, config: dict[str, Any], tell: Tell) -> None:
        self.file = folder / "stages.json"
        self.done: dict[str, Any] = {}
        self.tell = tell
        if self.file.exists():
            try:
                kept = json.loads(self.file.read_text(encoding="utf-8"))
            except ValueError:
                kept = {}
            if _contents(kept.get("config", {})) != _contents(config):
                raise InputError(
                    "the folder holds a model trained from other text or with other options",
                    str(folder),
                    remedy="name a new folder, or remove this one",
                )
            self.done = kept["done"]
        elif any(folder.iterdir()):
            raise InputError("the folder is not empty", str(folder), remedy="name a new folder")
        self.config = config

    def run(
        self, name: str, outputs: Sequence[Path], work: Callable[[Progress], dict[str, Any]]
    ) -> None:
        """Do a stage, unless it is done and its outputs are there."""
        if name in self.done and all(output.exists() for output in outputs):
            self.tell(News(name, "kept"))
            return
        self.tell(News(name, "begun"))
        began = time.perf_counter()
        facts = work(lambda *step: self.tell(News(name, "going", *step)))
        self.done[name] = {**facts, "seconds": round(time.perf_counter() - began, 3)}
        with AtomicWriter(self.file) as out:
            out.write(json.dumps({"config": self.config, "done": self.done}, indent=1))
        self.tell(News(name, "done"))


def counted(lines: Iterable[str], step: str, progress: Progress) -> Iterator[str]:
    """Yield lines and tell how many there were so far."""
    for number, line in enumerate(lines, 1):
        if number % TICK == 0:
            progress(step, number, 0)
        yield line


def _contents(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without the places of its files: those may move."""
    inputs = [
        {key: value for key, value in item.items() if key not in ("path", "file")}
        for item in config.get("inputs", [])
    ]
    return {**config, "inputs": inputs}
