"""From where all jobs ended to the result: one set of weights, and an honest comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith.learn.untuned import START, untuned_choices
from tunesmith.metrics import Metric, Rows
from tunesmith.sources import Saved, Source
from tunesmith.sources.base import Choice, Chosen, Joined
from tunesmith.tuning.limits import limits
from tunesmith.tuning.result import changes, count_changes, judged, second_scores, tests
from tunesmith.tuning.setup import Setup
from tunesmith.tuning.standing import Job, Keep, Standing, finite
from tunesmith.tuning.start import Start
from tunesmith.weights import Vector, Weights

Parts = Sequence[npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Comparison:
    """What was chosen before and after tuning, on sentences that were not learnt from where there
    are any."""

    metric: Metric
    source: Source
    on: str
    """`heldout`, `folds`, or what was learnt from: `lists` or `text`."""
    before: Chosen
    after: Chosen

    def facts(
        self, weights: Weights, threads: int, keep: Keep, second: str | Metric | None, seed: int
    ) -> dict[str, Any]:
        """Return the fields of a result that tell whether tuning helped.

        `weights` are those of the start.
        """
        rows, best, scores = self._untuned(weights, threads)
        found = tests(self.metric, rows, best, self.after.statistics(self.metric), seed)
        found["on"] = self.on
        # The best of many rounds on the held-out sentences is a little too good there.
        found["chosen_there"] = keep is Keep.HELDOUT
        return {
            "second": second_scores(self.source, self.metric, second, self.before, self.after),
            "significance": found,
            "baselines": scores,
            "verdict": judged(self.metric, found),
            "changed": count_changes(self.metric, *self._both()),
        }

    def changes(self) -> Iterator[dict[str, Any]]:
        """Yield the sentences whose output changed."""
        return changes(self.metric, *self._both(), self.source)

    def outputs(self) -> Iterator[dict[str, Any]]:
        """Yield the output for each sentence, at the start and after tuning, with references."""
        keys, references = self.source.keys, self.source.references
        for i, (start, output) in enumerate(
            zip(self.before.outputs(), self.after.outputs(), strict=True)
        ):
            yield {
                "key": keys[i] if keys else None,
                "reference": references[i] if references else [],
                "start": start,
                "output": output,
            }

    def _both(self) -> tuple[list[Rows], list[list[str]]]:
        both = self.before, self.after
        return [each.statistics(self.metric) for each in both], [each.outputs() for each in both]

    def _untuned(
        self, weights: Weights, threads: int
    ) -> tuple[Mapping[str, Rows], str, dict[str, float]]:
        """Return statistics of what needs no tuning, the name of the best, and all scores."""
        if not isinstance(self.source, Saved):
            rows = {START: self.before.statistics(self.metric)}
            return rows, START, {START: self.before.score(self.metric)}
        assert isinstance(self.before, Choice), "saved lists are here"
        spaces = self.source.spaces
        vector = spaces.vector(weights, partial=True)
        simple = untuned_choices(spaces, self.metric, self.before.positions, vector, threads)
        rows = {
            name: Choice(spaces, simple.choices[name]).statistics(self.metric)
            for name in {START, simple.best}
        }
        return rows, simple.best, simple.scores


@dataclass(frozen=True)
class Outcome:
    """The weights that all seeds lead to, with their scores."""

    weights: Weights
    start: float
    tuned: float
    heldout: list[float]
    heldout_start: list[float]
    comparison: Comparison


def outcome_of(
    start: Start, jobs: Sequence[Job], ends: Sequence[Standing], parts: Parts
) -> Outcome:
    """Return what the seeds found together, compared on held-out text, on folds, or where it was
    learnt; `parts` are the sentences of each fold."""
    setup, source = start.setup, start.source
    metric, threads = setup.metric, setup.threads
    runs = [end for job, end in zip(jobs, ends, strict=True) if job.kind == "run"]
    folds = [end for job, end in zip(jobs, ends, strict=True) if job.kind == "fold"]
    weights = average([run.weights for run in runs], setup)
    usable = finite(weights)
    # A decoder need not translate again what the kept round has translated.
    alone = runs[0] if len(runs) == 1 and not source.fixed else None
    first = runs[0].start_choice or start.choice or source.choose(start.weights, threads)
    after: Chosen = (alone and alone.choice) or source.choose(usable, threads)
    tuned = after.score(metric) if alone is None or alone.score is None else alone.score
    if start.heldout:
        known = runs[0].heldout_start_choices or start.heldout_choices
        before = known[0] if known else start.heldout[0].choose(start.weights, threads)
        choices = (alone and alone.heldout_choices) or [
            each.choose(usable, threads) for each in start.heldout
        ]
        comparison = Comparison(metric, start.heldout[0], "heldout", before, choices[0])
        scores = [each.score(metric) for each in choices]
        return Outcome(weights, runs[0].start, tuned, scores, runs[0].heldout_start, comparison)
    if folds:
        chosen = [
            source.subset(part.tolist()).choose(finite(end.weights), threads)
            for part, end in zip(parts, folds, strict=True)
        ]
        joined = Joined(list(zip(parts, chosen, strict=True)))
        comparison = Comparison(metric, source, "folds", first, joined)
        scores = [joined.score(metric)]
        return Outcome(weights, runs[0].start, tuned, scores, [runs[0].start], comparison)
    on = "lists" if source.fixed else "text"
    return Outcome(
        weights, runs[0].start, tuned, [], [], Comparison(metric, source, on, first, after)
    )


def average(runs: Sequence[Weights], setup: Setup) -> Weights:
    """Return the mean of the runs' weights; lengths count where limits give them a meaning."""
    if len(runs) == 1:
        return runs[0]
    names = list(dict.fromkeys(name for each in runs for name in each))
    lower, upper = limits(names, setup.bounds, setup.fixed, growing=True)
    vectors = [each.vector(names) for each in runs]
    limited = any(np.isfinite(limit[limit != 0.0]).any() for limit in (lower, upper))
    mean = np.mean(vectors, axis=0) if limited else average_direction(vectors)
    return Weights.from_vector(names, np.clip(mean, lower, upper))


def average_direction(runs: Sequence[Vector]) -> Vector:
    """Return the mean of the runs' weights, each scaled to the same length first."""
    norms = [float(np.linalg.norm(w)) for w in runs]
    size = float(np.mean(norms))
    scaled = [w / n * size if n else w for w, n in zip(runs, norms, strict=True)]
    mean: Vector = np.mean(scaled, axis=0)
    return mean
