"""Tune as the library does, without what is only for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tunesmith.drivers import Task
from tunesmith.features import Vector
from tunesmith.jobs import Job, Journal, run_jobs
from tunesmith.presets import make_tuner


@dataclass(frozen=True)
class Tuned:
    """The weights a run ends with and their score on the lists."""

    weights: Vector
    score: float


def tune_once(
    task: Task, preset: str, start: Vector, seed: int = 1, options: Mapping[str, Any] | None = None
) -> Tuned:
    """Run a preset from given weights, scoring every epoch and keeping the best."""

    def evaluate(task: Task, weights: Vector) -> dict[str, Any]:
        score, gain = task.evaluate(weights)
        return {"score": score, "gain": gain}

    job = Job("run", 0, seed, task, "best")
    with Journal(None, {}, False, None) as journal:
        weights = run_jobs([job], make_tuner(preset, options), start, evaluate, journal)[0]
    return Tuned(weights, task.evaluate(weights)[0])
