"""The three ways to spend rounds: epochs on saved lists, decodings that are merged, passes.

Each round proposes weights and says what they choose; the loop scores them and decides.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import THREADS, Crew, Pool
from tunesmith.engines.dealing import evenly
from tunesmith.errors import InputError
from tunesmith.files.arrays import unpacked
from tunesmith.learn.online import Online
from tunesmith.learn.summaries import oracle_score, sizes_held, spreads_held
from tunesmith.learn.task import (
    Epoch,
    Facts,
    SavedState,
    Selection,
    State,
    Statistics,
    Task,
    Tuner,
)
from tunesmith.sources import Saved, Source
from tunesmith.sources.base import Choice, Chosen
from tunesmith.spaces import Outline, Pools, Spaces
from tunesmith.spaces.moments import spreads
from tunesmith.tuning.dealing import Sentences
from tunesmith.tuning.holding import Holders
from tunesmith.tuning.limits import Bounds, limits, may_match
from tunesmith.tuning.setup import Setup
from tunesmith.weights import Vector, Weights

# Default number of decodings for batch tuners.
ITERATIONS = 25
# Decodings in a row that are no better than the best so far, after which a batch tuner gives up.
PATIENCE = 5
# Sentences by which a decoder's scores are measured before the first pass.
SURVEYED = 100
# What a round may know of the hypotheses it has seen.
GAINS = ("model", "oracle", "prediction", "spread", "corpus")


@dataclass(frozen=True)
class Step:
    """Proposed weights, what was seen on the way, and how to go on from here."""

    weights: Weights
    facts: Facts
    state: State = field(default_factory=dict)
    last: bool = False
    optimise_seconds: float = 0.0
    decode_seconds: float = 0.0
    vector: Vector | None = None
    """The weights in the order of the features, where that is known."""


@dataclass(frozen=True)
class Decoded:
    """A decoding that a run keeps, to go on from: its weights, and perhaps what it found."""

    weights: Weights
    found: Callable[[], Spaces] | None = None
    """Returns what was found; None if workers hold it: they decode again."""


class Rounds(Protocol):
    """Proposes weights round after round."""

    patience: int
    """How many rounds in a row that are no better than the best so far end the run; 0: none."""
    contends: ClassVar[bool]
    """Whether the start weights are kept where no round is better."""

    @property
    def space(self) -> str:
        """What a tuner sees of each sentence: a list, a forest, or the sentence itself."""

    def begin(self, start: Weights) -> tuple[Chosen, Decoded | None]:
        """Take the start weights; return what they choose and what was decoded, to be kept."""

    def restore(self, start: Weights, decoded: Iterable[Decoded], state: SavedState) -> None:
        """Go on after the step whose state is given; `decoded` was kept by earlier rounds."""

    def step(self, weights: Weights) -> Step | None:
        """Return the next proposal, None where nothing is left to do."""

    def judge(self, step: Step) -> tuple[Chosen, Decoded | None]:
        """Return what proposed weights choose, and what was decoded, to be kept."""

    @property
    def known(self) -> Outline:
        """What is known of the hypotheses."""

    @property
    def names(self) -> list[str]:
        """The features that were met, and those that had a weight before."""

    def oracle(self, weights: Weights, *, best: bool = True) -> float | None:
        """Return the best (or worst) score that the hypotheses allow.

        The weights decide between equals. None where a decoder follows the learner.
        """

    def spreads(self, weights: Weights) -> dict[str, float] | None:
        """Return how far the features that matter most vary within lists; None as above."""


class Epochs:
    """Saved lists: every epoch of the tuner is a round."""

    contends: ClassVar[bool] = False

    def __init__(self, tuner: Tuner, source: Saved, setup: Setup, seed: int) -> None:
        self._tuner, self._source, self._setup, self._seed = tuner, source, setup, seed
        self._epochs: Iterator[Epoch] = iter(())
        self._task = setup.task(source.spaces, growing=False)
        self.space = source.spaces.what
        self.patience = tuner.schedule.patience if isinstance(tuner, Online) else 0

    @property
    def spaces(self) -> Spaces:
        """The saved lists."""
        return self._source.spaces

    @property
    def known(self) -> Outline:
        """The saved lists."""
        return self.spaces

    @property
    def names(self) -> list[str]:
        """Their features."""
        return self.spaces.names

    def oracle(self, weights: Weights, *, best: bool = True) -> float | None:
        """Return the best (or worst) score that the lists allow."""
        spaces, metric = self.spaces, self._setup.metric
        vector = spaces.vector(weights, partial=True)
        return spaces.score(metric, spaces.oracle(metric, vector, best=best))

    def spreads(self, weights: Weights) -> dict[str, float] | None:
        """Return how far features vary within the lists."""
        return spreads(self.spaces, weights, self._setup.threads)

    def begin(self, start: Weights) -> tuple[Chosen, Decoded | None]:
        """Begin with the start weights."""
        self.restore(start, (), {})
        return self._source.choose(start, self._setup.threads), None

    def restore(self, start: Weights, decoded: Iterable[Decoded], state: SavedState) -> None:
        """Go on from the tuner's own state."""
        task = self._task = self._setup.task(self.spaces, growing=False)
        vector = task.clip(self.spaces.vector(start, partial=True))
        self._epochs = self._tuner.epochs(task, vector, self._seed, state or None)

    def step(self, weights: Weights) -> Step | None:
        """Return the next epoch's proposal."""
        epoch = next(self._epochs, None)
        if epoch is None:
            return None
        found = Weights.from_vector(self.names, epoch.weights)
        return Step(found, epoch.facts, epoch.state, epoch.last, vector=epoch.weights)

    def judge(self, step: Step) -> tuple[Chosen, Decoded | None]:
        """Return what the weights choose from the lists; workers find out for theirs."""
        assert step.vector is not None
        best = self._task.best(self._source.usable(step.vector))
        return Choice(self.spaces, best), None


class Decodings:
    """Decode, merge, optimise on everything decoded so far, again until nothing is new.

    Workers of the engine decode, keep what they find and answer the tuner. Tuners that one worker
    does the work of, and decoders that only this process can ask, have everything in one place: the
    one worker of this process holds it, and the tuner's task deals it to others.
    """

    contends: ClassVar[bool] = True
    patience = PATIENCE

    def __init__(self, tuner: Tuner, source: Source, setup: Setup, seed: int) -> None:
        self._tuner, self._setup, self._seed = tuner, setup, seed
        self._source, self._known = source, 0
        self._made: Holders | None = None

    @property
    def _holders(self) -> Holders:
        if self._made is None:
            apart = getattr(self._tuner, "shared", False) and self._source.spreads
            self._made = Holders(
                self._source, self._setup, self._setup.engine if apart else THREADS
            )
        return self._made

    @property
    def space(self) -> str:
        """A list or a forest."""
        return self.known.what

    @property
    def known(self) -> Outline:
        """What is known of everything decoded so far."""
        return self._holders.held.outline

    @property
    def names(self) -> list[str]:
        """The features of everything that was decoded so far."""
        return self.known.names

    def oracle(self, weights: Weights, *, best: bool = True) -> float | None:
        """Return the best (or worst) score that everything decoded so far allows."""
        held = self._holders.held
        return oracle_score(held, held.outline.vector(weights, partial=True), best=best)

    def spreads(self, weights: Weights) -> dict[str, float] | None:
        """Return how far features vary within everything decoded so far."""
        return spreads_held(self._holders.held, weights)

    def begin(self, start: Weights) -> tuple[Chosen, Decoded | None]:
        """Decode with the start weights."""
        return self._decode(start)

    def restore(self, start: Weights, decoded: Iterable[Decoded], state: SavedState) -> None:
        """Merge what earlier rounds decoded; the state says how much the last one knew.

        Where workers are to hold it, or have held it, they decode again with the same weights.
        """
        holders = self._holders
        for each in decoded:
            if holders.here and each.found is not None:
                holders.take(each.weights, each.found())
            else:
                holders.decode(each.weights)
        self._known = int(state["known"][0]) if "known" in state else 0

    def step(self, weights: Weights) -> Step | None:
        """Return the weights of the tuner's best epoch on everything decoded so far.

        Nothing is left to do when the last decoding brought nothing new.
        """
        began = time.perf_counter()
        holders = self._holders
        known = holders.held.outline
        if known.holds_as_many(self._known):
            return None
        self._known = known.hypotheses
        task = holders.task()
        start = task.clip(known.vector(weights, partial=True))
        # The current weights do not compete: what they choose from was found with them.
        chosen, best, score, facts, inner = start, -np.inf, 0.0, Facts(), 0
        takes_last = getattr(self._tuner, "take", "best") == "last"
        for epoch in self._tuner.epochs(task, start, self._seed + holders.decodings, None):
            if not np.isfinite(epoch.weights).all():
                continue
            reached, gain = task.evaluate(epoch.weights)
            if gain > best or takes_last:
                chosen, best, score, facts = epoch.weights, gain, reached, epoch.facts
                inner = epoch.number
        if best == -np.inf:
            score, best = task.evaluate(start)
        chosen = self._scaled(task, chosen, start, best)
        # A feature that no hypothesis has any more keeps its weight.
        proposed = Weights({**weights, **Weights.from_vector(known.names, chosen)})
        oracle = oracle_score(holders.held, chosen)
        projected = self._projected(task, chosen, score)
        if task is not holders.held:
            task.release()
        return Step(
            proposed,
            {
                **{key: facts[key] for key in GAINS if facts.get(key) is not None},
                **projected,
                "oracle_score": oracle,
                "hypotheses": known.hypotheses,
                "inner_epoch": inner,
            },
            {"known": np.array([self._known])},
            optimise_seconds=time.perf_counter() - began,
        )

    def _projected(self, task: Task, weights: Vector, score: float) -> Facts:
        """Return the score that the weights would have on everything decoded so far."""
        if not task.outline.binned:
            return {"projected": score}
        last = task.chosen(weights).sum(axis=0)
        return {"projected": task.metric.score(last), "projected_bins": score}

    def judge(self, step: Step) -> tuple[Chosen, Decoded | None]:
        """Decode with the proposed weights."""
        return self._decode(step.weights)

    def _decode(self, weights: Weights) -> tuple[Chosen, Decoded | None]:
        choice, found = self._holders.decode(weights)
        return choice, Decoded(weights, None if found is None else partial(_same, found))

    def _scaled(self, task: Task, weights: Vector, start: Vector, gain: float) -> Vector:
        """Return weights of the size at the start, where size is not tuned or narrows the beam.

        Weights of features that never vary have no size and keep their value.
        """
        if not (getattr(self._tuner, "scale_free", False) or self._source.prunes):
            return weights
        free = [np.where(task.free, each, 0.0) for each in (start, weights)]
        (old, new), varying = sizes_held(self._holders.held, free)
        varying &= task.free
        sized = (old > 0.0) & (new > 0.0)
        # The median, because a single large weight may matter in a few lists only.
        factor = float(np.median(old[sized] / new[sized])) if sized.any() else 1.0
        scaled = task.clip(np.where(varying, factor * weights, start))
        # Weights that are fixed or bounded may give sizes a meaning.
        return scaled if task.evaluate(scaled)[1] >= gain - 1e-9 else weights


class Passes:
    """The decoder follows the learner: each round is a pass over the sentences."""

    contends: ClassVar[bool] = True
    space = "sentence"

    def __init__(self, tuner: Online, source: Source, setup: Setup, seed: int) -> None:
        self._tuner, self._source, self._setup, self._seed = tuner, source, setup, seed
        wanted = tuner.violations
        self._pairs = None if wanted is None else source.forced(wanted)
        self.patience = tuner.schedule.patience
        self._spaces: Spaces | None = None
        self._epochs: Iterator[Epoch] = iter(())
        self._latest: Spaces | None = None
        self._names: list[str] = []

    @property
    def spaces(self) -> Spaces:
        """The translations at the start."""
        assert self._spaces is not None, "nothing has been decoded yet"
        return self._spaces

    @property
    def known(self) -> Outline:
        """The translations at the start."""
        return self.spaces

    @property
    def names(self) -> list[str]:
        """The features that any pass has met so far, and those of the weights at the start."""
        return self._names

    def oracle(self, weights: Weights, *, best: bool = True) -> float | None:
        """Return None: what a learner meets is not kept."""

    def spreads(self, weights: Weights) -> dict[str, float] | None:
        """Return None: what a learner meets is not kept."""

    def begin(self, start: Weights) -> tuple[Chosen, Decoded | None]:
        """Translate once with the start weights."""
        self._latest = found = self._source.decode(start, 1)
        kept = Decoded(start, partial(_same, found))
        self.restore(start, [kept], {})
        return Choice(found, found.decoded(start, self._setup.threads)), kept

    def restore(self, start: Weights, decoded: Iterable[Decoded], state: SavedState) -> None:
        """Begin from the start, or go on after the pass whose state is given."""
        first = next(iter(decoded)).found
        assert first is not None, "translations of the start weights are kept"
        self._spaces = first()
        names = list(dict.fromkeys([*self.spaces.names, *start]))
        self._names = unpacked(state["names"]) if "names" in state else names
        setup = self._setup
        lower, upper = limits(names, setup.bounds, setup.fixed, growing=True)
        pairs = self._pairs
        task = Following(
            self.spaces if pairs is None else self.spaces.subset(pairs.lines),
            setup.metric,
            lower,
            upper,
            setup.threads,
            setup.engine,
            source=self._source if pairs is None else pairs,
            features=names,
            bounds=setup.bounds,
            fixed=setup.fixed,
            latest=lambda: self._latest,
        )
        vector = task.clip(start.vector(names))
        self._epochs = self._tuner.epochs(task, vector, self._seed, state or None)

    def step(self, weights: Weights) -> Step | None:
        """Return the weights after another pass."""
        epoch = next(self._epochs, None)
        if epoch is None:
            return None
        facts = dict(epoch.facts)
        facts.pop("weight_change")
        self._names = epoch.names or self._names
        seconds = {part: facts.pop(part) for part in ("optimise_seconds", "decode_seconds")}
        # Zeros of features that the model always has are worth knowing.
        found = Weights.from_vector(
            self._names, epoch.weights, drop_zeros=True, always=self._source.always
        )
        return Step(found, facts, epoch.state, epoch.last, **seconds)

    def judge(self, step: Step) -> tuple[Chosen, Decoded | None]:
        """Translate once with the proposed weights; gains in context use it, too."""
        self._latest = found = self._source.decode(step.weights, 1)
        return Choice(found, found.decoded(step.weights, self._setup.threads)), None


def _same(spaces: Spaces) -> Spaces:
    return spaces


def _nothing() -> None:
    """Say that nothing was decoded."""


@dataclass(frozen=True, kw_only=True)
class Following(Task):
    """Sentences that a decoder translates when a learner comes to them, with its weights."""

    source: Source
    features: list[str]
    bounds: Bounds
    fixed: Mapping[str, float]
    latest: Callable[[], Spaces | None] = _nothing
    """What was decoded with the weights of the last pass, if it was."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "latest": _nothing}

    def chosen(self, weights: Vector, names: list[str] | None = None) -> Statistics:
        """Return the statistics of the translations."""
        found = self.latest()
        if found is None:
            found = self.source.decode(Weights.from_vector(names or self.features, weights), 1)
        return found.statistics(self.metric, found.first())

    def dealt(self, learners: npt.NDArray[np.intp]) -> Crew:
        """Return workers that hold the model and the sentences of their learners."""
        if not np.array_equal(self.__dict__.get("learners", ()), learners):
            self.release()
            crew = self.engine.crew(Sentences(self, learners), self.threads)
            self.__dict__.update(crew=crew, learners=learners)
        return self.crew

    def placed(self, batch: npt.NDArray[np.uint32], workers: int) -> npt.NDArray[np.intp]:
        """Return a worker for each line of a batch; all have about as many words to decode."""
        lengths = [1 + len(self.source.sources[line].split()) for line in batch]
        return evenly(np.array(lengths), workers)

    @property
    def names(self) -> list[str]:
        """The features that are known at the start."""
        return self.features

    def survey(self, start: Vector, k: int) -> tuple[Pools, Vector]:
        """Decode some of the sentences; return lists and the weights of their features."""
        weights = Weights.from_vector(self.features, start)
        lists = self.source.sampled(SURVEYED).decode(weights, k).listed([], k)
        return lists, lists.vector(weights, partial=True)

    def clip(self, weights: Vector) -> Vector:
        """Return the weights within their bounds; learners keep new features within theirs."""
        known = len(self.lower)
        return np.concatenate([np.clip(weights[:known], self.lower, self.upper), weights[known:]])

    def limit(self, learner: _core.Learner) -> None:
        """Give features that a learner met during training their limits."""
        if may_match(self.bounds, self.fixed):
            lower, upper = limits(learner.names, self.bounds, self.fixed, growing=True)
            learner.bound(lower.tolist(), upper.tolist())

    def walk(
        self,
        learner: _core.Learner,
        order: npt.NDArray[np.uint32],
        epoch: int,
        online: Online,
        pool: Pool,
    ) -> list[Facts]:
        """Decode batch after batch and let the learner take a step on each.

        With a delay, steps are taken on lists that were decoded with the weights of some steps ago.
        """
        regime, facts = online.regime, list[Facts]()
        size = max(regime.batch, 1)
        batches = [order[at : at + size] for at in range(0, len(order), size)]
        if regime.delay == 0:
            for batch in batches:
                found = self._decode(self.source.following(learner), batch, online.k)
                facts.append(self._step(learner, *found, batch, epoch))
            return facts

        def decode(
            made: int, translator: Any, batch: npt.NDArray[np.uint32]
        ) -> tuple[int, npt.NDArray[np.uint32], tuple[Spaces, float]]:
            return made, batch, self._decode(translator, batch, online.k)

        jobs = (
            partial(decode, len(facts), self.source.following(learner), batch) for batch in batches
        )
        for made, batch, lists in pool.pipeline(jobs, regime.delay, regime.ordered):
            late = len(facts) - made
            facts.append({**self._step(learner, *lists, batch, epoch), "staleness": late})
        return facts

    @property
    def follows(self) -> bool:
        """A decoder finds the lists."""
        return True

    def select(
        self,
        learner: _core.Learner,
        lines: npt.NDArray[np.uint32],
        epoch: int,
        online: Online,
        pool: Pool,
    ) -> Selection:
        """Decode lines and return their constraints; the learner is the same afterwards.

        Each line is taken by itself, so that the names of its new features come in an order that
        does not depend on other lines. With stale gradients the margins of the moment go along.
        """
        if not len(lines):
            return Selection([])
        began = time.perf_counter()
        translator = self.source.following(learner)

        def found(line: int) -> Spaces:
            return self.source.found(translator, [line], online.k)

        spaces = list(pool.map(found, lines.tolist()))
        seconds, known = time.perf_counter() - began, learner.size
        parts, counts = list[_core.Selected](), Counter[str]()
        late = online.regime.stale == "gradient"
        for each, line in zip(spaces, lines, strict=True):
            if late and online.regime.batch <= 1 and each.binned:
                raise InputError(
                    "stale gradients of the bins of one line are no single step",
                    remedy="give batch=2 or more with it, or stale=lists",
                )
            own = each.with_ids_of(learner)
            if learner.size > known:
                self.limit(learner)
            table, number = own.table(self.metric, self.threads), np.array([line], np.uint32)
            parts.append(learner.select_found(own.core, table, number, epoch, known, margins=late))
            counts.update(each.counts)
            learner.forget(known)
        return Selection(parts, seconds, dict(counts))

    def _decode(
        self, translator: Any, batch: npt.NDArray[np.uint32], k: int
    ) -> tuple[Spaces, float]:
        began = time.perf_counter()
        found = self.source.found(translator, batch.tolist(), k)
        return found, time.perf_counter() - began

    def _step(
        self,
        learner: _core.Learner,
        found: Spaces,
        seconds: float,
        batch: npt.NDArray[np.uint32],
        epoch: int,
    ) -> Facts:
        began, known = time.perf_counter(), learner.size
        spaces = found.with_ids_of(learner)
        if learner.size > known:
            self.limit(learner)
        table = spaces.table(self.metric, self.threads)
        seen = learner.visit(spaces.core, table, np.ascontiguousarray(batch), epoch)
        spent = time.perf_counter() - began
        counts = {"counts": found.counts} if found.counts else {}
        return {**seen, **counts, "decode_seconds": seconds, "optimise_seconds": spent}


def make_rounds(
    tuner: Tuner, source: Source, setup: Setup, seed: int, iterations: int | None, merged: bool
) -> tuple[Rounds, int | None]:
    """Return the rounds for a source, and how many there are at most.

    Online tuners follow a decoder that can be followed, unless the lists of all decodings are to be
    `merged` for them.
    """
    if isinstance(tuner, Online) and tuner.violations is not None:
        source.forced(tuner.violations)
        if merged:
            raise InputError(
                "the merged lists of decodings have no violations",
                remedy="leave --merged out, or choose another tuner",
            )
    if isinstance(tuner, Online) and tuner.follow and source.follows and not merged:
        passes = tuner.schedule.passes if iterations is None else iterations
        longer = replace(tuner, schedule=replace(tuner.schedule, passes=passes))
        return Passes(longer, source, setup, seed), longer.schedule.rounds
    if isinstance(tuner, Online):
        tuner.refuse_delay()
    if isinstance(source, Saved):
        return Epochs(tuner, source, setup, seed), None
    return Decodings(tuner, source, setup, seed), ITERATIONS if iterations is None else iterations
