"""Questions by which tests find out where workers are, and end them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tunesmith.engines import Engine, Worker, begins, grows, reads
from tunesmith.errors import InputError


@reads
def process(worker: Worker) -> int:
    """Return the process of a worker."""
    return os.getpid()


def processes(engine: Engine) -> list[int]:
    """Return the processes of all workers of an engine."""
    crew = engine.crew(None, 1)
    return crew.ask_all(process, [()] * crew.size)


def open_door() -> None:
    """Let a cluster of the tests go without tokens, unless this process began Ray with one.

    Ray reads that once in a process; the nodes of the cluster take it from the environment.
    """
    if "RAY_AUTH_TOKEN" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "disabled"


def kill(number: int) -> None:
    """End a process as a lack of memory would."""
    os.kill(number, signal.SIGKILL)


@begins
def start(worker: Worker, total: int) -> None:
    """Begin to count."""
    worker.kept["total"] = total


def add(worker: Worker, amount: int, fatal: str = "") -> int:
    """Count, and return the sum; the first who finds no file `fatal` dies after counting."""
    worker.kept["total"] += amount
    if fatal:
        try:
            Path(fatal).touch(exist_ok=False)
        except FileExistsError:
            return total(worker)
        kill(os.getpid())
    return total(worker)


@grows
def enlarge(worker: Worker, amount: int) -> int:
    """Add to what the worker holds; forget the rest."""
    total: int = (worker.share or 0) + amount
    worker.share = total
    worker.kept.clear()
    return total


@reads
def held(worker: Worker) -> tuple[int, int]:
    """Return what the worker holds, and the sum."""
    return worker.share, worker.kept.get("total", 0)


@reads
def total(worker: Worker) -> int:
    """Return the sum."""
    found: int = worker.kept["total"]
    return found


@reads
def square(worker: Worker, number: int, fatal: str = "") -> int:
    """Return a square; the first who finds no file `fatal` dies."""
    if fatal:
        try:
            Path(fatal).touch(exist_ok=False)
        except FileExistsError:
            return number * number
        kill(os.getpid())
    return number * number


@reads
def end(worker: Worker) -> None:
    """Kill whoever is asked."""
    kill(os.getpid())


@reads
def refuse(worker: Worker) -> None:
    """Raise an error."""
    raise InputError("bad", "file", 3, remedy="do something")


class TangledError(Exception):
    """An error that can be written, and not be made again from what was written."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"code {code} at {where}")


@reads
def tangle(worker: Worker) -> None:
    """Raise an error that the driver cannot read."""
    raise TangledError(7, "home")


@reads
def halt(worker: Worker, mark: str) -> str:
    """Stop the first process that is asked, as if its machine hung; let the others answer."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return "answered"
    os.kill(os.getpid(), signal.SIGSTOP)
    return "late"
