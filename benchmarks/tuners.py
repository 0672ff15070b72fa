"""Tune as the library does, without what is only for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunesmith.learn.task import Task
from tunesmith.presets import make_tuner
from tunesmith.weights import Vector


@dataclass(frozen=True)
class Tuned:
    """The weights a run ends with and their score on the lists."""

    weights: Vector
    score: float


def tune_once(
    task: Task, preset: str, start: Vector, seed: int = 1, options: Mapping[str, Any] | None = None
) -> Tuned:
    """Run a preset from given weights, scoring every epoch and keeping the best."""
    best, gain = start, -np.inf
    for epoch in make_tuner(preset, options).epochs(task, start, seed, None):
        reached = task.evaluate(epoch.weights)[1]
        if reached > gain:
            best, gain = epoch.weights, reached
    return Tuned(best, task.evaluate(best)[0])
