"""Runs the jobs of one call of `tune`: rounds are proposed, scored, kept, stopped, written down."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tunesmith.learn.task import Tuner
from tunesmith.metrics import Metric
from tunesmith.sources.base import Chosen
from tunesmith.tuning.journal import Journal
from tunesmith.tuning.keeper import Keeper
from tunesmith.tuning.limits import idle_limits
from tunesmith.tuning.result import same_direction
from tunesmith.tuning.rounds import Rounds, make_rounds
from tunesmith.tuning.standing import Clock, Job, Keep, Standing, finite, is_finite
from tunesmith.tuning.start import Start
from tunesmith.weights import Weights

# Weights that an event shows.
EVENT_WEIGHTS = 50


class Runner:
    """Runs jobs one after the other, from the same start."""

    def __init__(
        self,
        tuner: Tuner,
        start: Start,
        *,
        iterations: int | None,
        stop: float,
        seconds: float | None,
        merged: bool,
        journal: Journal,
        keeper: Keeper,
        clock: Clock,
        facts: dict[str, Any],
    ) -> None:
        self._tuner, self._setup, self._start = tuner, start.setup, start
        self._iterations, self._stop, self._merged = iterations, stop, merged
        self._seconds = math.inf if seconds is None else seconds
        self._journal, self._keeper, self._clock = journal, keeper, clock
        self._facts = facts
        self._first: Rounds | None = None
        self.names: list[str] = []
        """The features that the first job has met."""
        self.oracle: float | None = None
        """The best score that its hypotheses allow; None where it follows a decoder."""

    @property
    def _metric(self) -> Metric:
        return self._setup.metric

    def run_all(self, jobs: Sequence[Job]) -> list[Standing]:
        """Return where each job ends."""
        return [self._run(job, place) for place, job in enumerate(jobs)]

    def _run(self, job: Job, place: int) -> Standing:
        keeper = self._keeper
        if 0 < place < len(keeper.finished):
            return keeper.finished[place]
        rounds, most = make_rounds(
            self._tuner, job.source, self._setup, job.seed, self._iterations, self._merged
        )
        standing, weights = self._enter(job, rounds, place)
        if place == 0:
            self._announce(rounds, standing, most)
            if rounds.contends and standing.rounds == 0 == len(keeper.finished):
                # After the event, because a resumed run does not announce itself again.
                keeper.checkpoint(standing, weights, {}, now=True)
        if place == len(keeper.finished):
            self._rounds(job, rounds, standing, weights, most)
            keeper.finished.append(standing)
            keeper.checkpoint(None, weights, {}, now=True)
        if place == 0:
            self._first, self.names = rounds, rounds.names
            if not job.source.fixed:
                self.oracle = rounds.oracle(self._start.weights)
        return standing

    def spreads(self, weights: Weights) -> dict[str, float] | None:
        """Return how far features vary within the lists of the first job; None where it follows a
        decoder, or where a weight is not finite."""
        return self._first.spreads(weights) if self._first and is_finite(weights) else None

    def _enter(self, job: Job, rounds: Rounds, place: int) -> tuple[Standing, Weights]:
        """Begin a job, or go on with the one that a kill interrupted."""
        keeper, start = self._keeper, self._start.weights
        if place < len(keeper.finished):
            standing = keeper.finished[place]
            rounds.restore(start, keeper.load(job, standing.rounds), {})
            return standing, standing.weights
        found = keeper.interrupted()
        if found is not None:
            standing, weights, state = found
            rounds.restore(start, keeper.load(job, standing.rounds), state)
            return standing, weights
        before = time.perf_counter()
        choice, decoded = rounds.begin(start)
        heldout: Sequence[Chosen] = []
        if job.kind == "run":
            choice = self._start.choice or choice
            heldout = self._start.heldout_choices or self._on_heldout(start)
        if not job.source.fixed:
            self._clock.decode += time.perf_counter() - before
        keeper.save(job, 0, decoded)
        score = choice.score(self._metric)
        standing = Standing(start, start=score, curve=[score], start_choice=choice)
        standing.heldout_start_choices = heldout
        standing.heldout_start = [each.score(self._metric) for each in heldout]
        if rounds.contends:
            standing.keep(0, start, choice, score, heldout)
            standing.heldout = standing.heldout_start
            standing.gain = self._gain(heldout[0] if job.keep is Keep.HELDOUT else choice)
        return standing, start

    def _rounds(
        self, job: Job, rounds: Rounds, standing: Standing, weights: Weights, most: int | None
    ) -> None:
        """Let a job make its rounds; `standing` is where it stands, then where it ends."""
        clock, live = self._clock, not job.source.fixed
        while not standing.ended and (most is None or standing.rounds < most):
            began, before = time.perf_counter(), replace(clock)
            step = rounds.step(weights)
            if step is None:
                break
            proposed = time.perf_counter()
            choice, decoded = rounds.judge(step)
            heldout = self._on_heldout(step.weights) if job.kind == "run" else []
            judged = time.perf_counter()
            clock.optimise += step.optimise_seconds if live else judged - began
            clock.decode += step.decode_seconds + judged - proposed if live else 0.0
            moved, weights = step.weights.change(weights), step.weights
            scores = [each.score(self._metric) for each in heldout]
            standing.counts = step.facts.get("counts", {})
            self._judge(job, rounds, standing, weights, choice, heldout, scores)
            self._keeper.save(job, standing.rounds, decoded)
            tired = 0 < rounds.patience <= standing.rounds - standing.peaked
            still = rounds.contends and moved <= self._stop
            took = time.perf_counter() - began
            standing.seconds += took
            standing.ended = step.last or still or tired or standing.seconds >= self._seconds
            seconds = {
                "decode_seconds": clock.decode - before.decode,
                "optimise_seconds": clock.optimise - before.optimise,
                "weight_change": moved,
            }
            self._journal.event(
                "epoch",
                **job.name,
                epoch=standing.rounds,
                score=standing.curve[-1],
                heldout=scores[0] if scores else None,
                heldout_all=scores,
                nonzero=weights.nonzero,
                seconds=took,
                weights=weights.top(EVENT_WEIGHTS),
                **(seconds if live else {}),
                **choice.facts(self._metric),
                **step.facts,
            )
            if job.kind == "run":
                self._journal.weights(standing.rounds, weights, job.number)
            self._keeper.checkpoint(standing, weights, step.state, now=live)
        self._journal.event(
            f"{job.kind}_end", **job.name, epoch=standing.round, score=standing.score
        )

    def _judge(
        self,
        job: Job,
        rounds: Rounds,
        standing: Standing,
        weights: Weights,
        choice: Chosen,
        heldout: Sequence[Chosen],
        scores: list[float],
    ) -> None:
        """Add a round to a standing, and keep it if it is the best so far."""
        score = choice.score(self._metric)
        standing.curve.append(score)
        gain = None
        if is_finite(weights):
            gain = self._gain(heldout[0] if job.keep is Keep.HELDOUT else choice)
        better = gain is not None and (standing.gain is None or gain > standing.gain)
        if better:
            standing.gain, standing.peaked = gain, standing.rounds
        if better or job.keep is Keep.LAST or standing.score is None:
            standing.keep(standing.rounds, weights, choice, score, heldout)
            standing.heldout = scores
        if rounds.contends and not standing.moved:
            start = self._start.weights
            names = list(dict.fromkeys([*start, *weights]))
            standing.moved = not same_direction(weights.vector(names), start.vector(names))

    def _on_heldout(self, weights: Weights) -> Sequence[Chosen]:
        usable = finite(weights)
        return [each.choose(usable, self._setup.threads) for each in self._start.heldout]

    def _gain(self, choice: Chosen) -> float:
        total = choice.statistics(self._metric).sum(axis=0)
        return float(self._metric.native.gains(total[None, :])[0])

    def _announce(self, rounds: Rounds, standing: Standing, most: int | None) -> None:
        """Say what the run begins with."""
        known, metric, source = rounds.known, self._metric, self._start.source
        start, more = self._start.weights, dict[str, Any]()
        self.oracle = rounds.oracle(start)
        if source.fixed:
            more["worst"] = rounds.oracle(start, best=False)
        if not source.fixed and source.all_features:
            met, setup = set(known.names), self._setup
            more["idle_weights"] = [n for n, value in start.items() if value and n not in met]
            more["idle_limits"] = idle_limits([*start, *met], setup.bounds, setup.fixed)
        self._journal.event(
            "start",
            metric_higher=metric.higher_is_better,
            features=known.width,
            sentences=source.sentences,
            hypotheses=known.hypotheses,
            space=rounds.space,
            start=standing.start,
            **({} if standing.start_choice is None else standing.start_choice.facts(metric)),
            oracle=self.oracle,
            epochs=most,
            **self._facts,
            **more,
        )
