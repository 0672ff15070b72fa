"""What all rounds of tuning need to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.engines import THREADS, Engine
from tunesmith.learn.task import Task
from tunesmith.metrics import Metric
from tunesmith.spaces import Outline
from tunesmith.tuning.limits import Bounds, limits


@dataclass(frozen=True)
class Setup:
    """What all rounds need to know."""

    metric: Metric
    bounds: Bounds
    fixed: Mapping[str, float]
    threads: int
    engine: Engine = THREADS

    def task(self, outline: Outline, *, growing: bool) -> Task:
        """Return spaces as a task; with `growing`, limits may name features to come."""
        lower, upper = limits(outline.names, self.bounds, self.fixed, growing=growing)
        return Task(outline, self.metric, lower, upper, self.threads, self.engine)
