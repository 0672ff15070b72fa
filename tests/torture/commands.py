"""Commands in processes that can be killed, and what they leave behind."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

# A child of a server that has everything loaded starts in milliseconds.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["tunesmith.cli.train", "tunesmith.cli.tune", "tunesmith.cli.rerank", "tunesmith.cli.local"]
)
SEED = int(os.environ.get("TORTURE_SEED", "1"))
# Files that say when and by whom, not what.
PASSING = (".lock", "report.html", "checkpoint.npz")
TIMES = ("time", "seconds", "decode_seconds", "optimise_seconds")

Patches = Mapping[str, object]
Record = Callable[[str, object], None]


def seconds(name: str, usual: float) -> float:
    """Return a duration that a variable of the environment may change."""
    return float(os.environ.get(f"TORTURE_{name}", usual))


def chance(*about: object) -> random.Random:
    """Return random numbers for a test; `TORTURE_SEED` changes them."""
    print(f"seed {SEED} for {about}")
    return random.Random(f"{SEED} {about}")


def command(words: Sequence[object], log: Path, patches: Patches | None = None) -> None:
    """Run a command in this process, which has no other use; `patches` set names of modules."""
    from tunesmith.cli import app

    for name, value in (patches or {}).items():
        module, _, attribute = name.rpartition(".")
        setattr(import_module(module), attribute, value)
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(number, "wb", 0), write_through=True) for number in (1, 2)
    )
    import tunesmith.cli.console as console

    console.err.file, console.out.file = sys.stderr, sys.stdout
    app([str(word) for word in words], prog_name="tunesmith")


@dataclass(frozen=True)
class Job:
    """A command that may be killed: how it begins, how it goes on, and what it leaves."""

    name: str
    begin: Callable[[Path], Sequence[object]]
    again: Callable[[Path], Sequence[object]]
    kept: Callable[[Path], object]
    patches: Patches = field(default_factory=dict)
    # Whether everything was written before a kill; the command would not begin again.
    finished: Callable[[Path], bool] = lambda folder: False
    # Whether there is something to go on from.
    begun: Callable[[Path], bool] = lambda folder: True

    def start(self, folder: Path) -> ForkServerProcess:
        """Start the command, or go on with it."""
        begun = folder.exists()
        folder.mkdir(exist_ok=True)
        words = (self.again if begun else self.begin)(folder)
        started = SERVER.Process(target=command, args=(words, folder / "log", dict(self.patches)))
        started.start()
        return started

    def whole(self, folder: Path) -> float:
        """Run the command to its end and return how long it took."""
        began = time.monotonic()
        if self.finished(folder):
            return 0.0
        process = self.start(folder)
        process.join()
        assert process.exitcode == 0, (folder / "log").read_text()
        return time.monotonic() - began


def kill_often(job: Job, folder: Path, kills: int) -> tuple[int, int]:
    """Kill a command at random moments, let it go on, compare.

    A command that ends before it is killed begins anew in another folder. Return how often it ran
    to its end, and how many kills found something to go on from.
    """
    span = job.whole(folder / "whole")
    expected = job.kept(folder / "whole")
    dice = chance(job.name)
    rounds, done, after = 0, 0, 0
    place = folder / "killed-0"
    while done < kills:
        process = job.start(place)
        if dice.random() < 0.5:
            # Else most kills would come before the first checkpoint.
            while process.exitcode is None and not job.begun(place):
                process.join(0.002)
        # Early moments are as frequent as late ones, and some fall into the first milliseconds.
        process.join(dice.choice((0.05, 0.5, 1.0)) * span * dice.random())
        if process.exitcode is None:
            process.kill()
            process.join()
            done += 1
            after += job.begun(place)
            if not job.finished(place):
                continue
        else:
            assert process.exitcode == 0, (place / "log").read_text()
        assert job.kept(place) == expected, f"{job.name} in {place}"
        rounds += 1
        place = folder / f"killed-{rounds}"
    job.whole(place)
    assert job.kept(place) == expected, f"{job.name} in {place}"
    return rounds + 1, after


def timeless(value: Any) -> Any:
    """Return a JSON value without its times."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key not in TIMES}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def contents(folder: Path, *, leave_out: Sequence[str] = ()) -> dict[str, object]:
    """Return every file below a folder by name; JSON and TOML without times, others as bytes."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name in PASSING or name.split("/")[0] in leave_out:
            continue
        content = path.read_bytes()
        if path.suffix == ".json":
            found[name] = timeless(json.loads(content))
        elif path.suffix == ".toml":
            found[name] = timeless(tomllib.loads(content.decode()))
        elif path.suffix == ".jsonl":
            found[name] = [timeless(json.loads(line)) for line in content.splitlines()]
        else:
            found[name] = content
    return found
