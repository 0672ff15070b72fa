"""Runs and folds one after the other, written down so that a killed one goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tunesmith.drivers import Task, Tuner
from tunesmith.features import Vector, Weights
from tunesmith.runs import RunDirectory

# A checkpoint costs a few milliseconds; epochs of fast tuners cost less. Going back at most this
# far after a kill changes nothing but time.
CHECKPOINT_SECONDS = 1.0
SHOWN_WEIGHTS = 50

Evaluate = Callable[[Task, Vector], dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """One run of a tuner: a seed on all sentences, or a fold."""

    kind: str
    number: int
    seed: int
    task: Task
    keep: str


class Journal:
    """Where events and checkpoints go: a run directory, a listener, both or nobody."""

    def __init__(
        self,
        directory: RunDirectory | None,
        settings: Mapping[str, Any],
        resume: bool,
        listen: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self._directory = directory
        self._listen = listen
        self._saved = 0.0
        self.finished = False
        self.point = None
        self._silent = False
        if directory is not None:
            if resume:
                directory.resume(settings)
                self.point = directory.load_checkpoint()
                self.finished = directory.finished
            else:
                directory.create(settings)
            # What comes before the checkpoint is in the file already.
            self._silent = self.point is not None or self.finished

    def event(self, kind: str, **fields: Any) -> None:
        """Write down an event and tell the listener."""
        if (
            self._directory is not None
            and not self.finished
            and not (self._silent and kind == "start")
        ):
            self._directory.event(kind, **fields)
        if self._listen is not None:
            self._listen({"event": kind, **fields})

    def checkpoint(
        self, arrays: Mapping[str, npt.NDArray[Any]], state: Mapping[str, Any], *, now: bool
    ) -> None:
        """Make this the point to go back to, if it is time."""
        due = now or time.monotonic() - self._saved > CHECKPOINT_SECONDS
        if self._directory is not None and not self.finished and due:
            self._directory.save_checkpoint(arrays, state)
            self._saved = time.monotonic()

    def weights(self, epoch: int, weights: Weights, job: Job) -> None:
        """Keep the weights of an epoch of a run."""
        if self._directory is not None and not self.finished and job.kind == "run":
            self._directory.save_epoch_weights(
                epoch, weights, {"epoch": epoch, "run": job.number}, run=job.number
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._directory is not None:
            self._directory.close()


def run_jobs(
    jobs: Sequence[Job], tuner: Tuner, start: Vector, evaluate: Evaluate, journal: Journal
) -> list[Vector]:
    """Return the weights each job ends with."""
    finals: list[Vector] = []
    resumed: Mapping[str, npt.NDArray[Any]] | None = None
    best: dict[str, Any] = {}
    if journal.point is not None:
        arrays = journal.point.arrays
        finals = [arrays[f"final.{n}"] for n in range(journal.point.state["finished"])]
        best = dict(journal.point.state["best"])
        if best:
            best["weights"] = arrays["best"]
            resumed = {
                name.removeprefix("state."): array
                for name, array in arrays.items()
                if name.startswith("state.")
            }
    for job in jobs[len(finals) :]:
        # A tuner that ended early does not know it from its state.
        ended = bool(best.pop("ended", False))
        final = _run(job, tuner, start, evaluate, journal, finals, best, resumed, ended)
        finals.append(final)
        best, resumed = {}, None
        journal.checkpoint(_finals(finals), {"finished": len(finals), "best": {}}, now=True)
    return finals


def _finals(finals: Sequence[Vector]) -> dict[str, npt.NDArray[Any]]:
    return {f"final.{number}": weights for number, weights in enumerate(finals)}


def _run(
    job: Job,
    tuner: Tuner,
    start: Vector,
    evaluate: Evaluate,
    journal: Journal,
    finals: Sequence[Vector],
    best: dict[str, Any],
    resumed: Mapping[str, npt.NDArray[Any]] | None,
    ended: bool,
) -> Vector:
    names = job.task.pools.names
    began = time.perf_counter()
    for epoch in () if ended else tuner.epochs(job.task, start, job.seed, resumed):
        seen = evaluate(job.task, epoch.weights)
        value = seen["heldout_gain" if job.keep == "heldout" else "gain"]
        if not np.isfinite(epoch.weights).all():
            value = -np.inf
        if not best or job.keep == "last" or value > best["value"]:
            best = {
                "value": value,
                "epoch": epoch.number,
                "score": seen["score"],
                "weights": epoch.weights,
            }
        now = time.perf_counter()
        named = Weights.from_vector(names, epoch.weights, drop_zeros=True)
        journal.event(
            "epoch",
            **{job.kind: job.number},
            **epoch.facts,
            epoch=epoch.number,
            score=seen["score"],
            heldout=seen.get("heldout") if job.kind == "run" else None,
            nonzero=int(np.count_nonzero(epoch.weights)),
            seconds=now - began,
            weights=named.top(SHOWN_WEIGHTS),
        )
        journal.weights(epoch.number, named, job)
        arrays = {**_finals(finals), "best": best["weights"]}
        arrays |= {f"state.{name}": array for name, array in epoch.state.items()}
        state = {key: value for key, value in best.items() if key != "weights"}
        state["ended"] = epoch.last
        journal.checkpoint(arrays, {"finished": len(finals), "best": state}, now=False)
        began = now
    if not best:
        best = {"epoch": 0, "score": None, "weights": start}
    journal.event(
        f"{job.kind}_end", **{job.kind: job.number}, epoch=best["epoch"], score=best["score"]
    )
    weights: Vector = best["weights"]
    return weights
