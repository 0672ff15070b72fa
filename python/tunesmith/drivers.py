"""The loop of every tuner: a task in, one set of weights per epoch out.

A tuner is anything with `epochs(task, start, seed, state)`: it yields an `Epoch` at a time, and
goes on from the `state` of the last one as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.features import Vector
from tunesmith.gains import SENTENCE, Gain
from tunesmith.metrics import Metric
from tunesmith.runs.checkpoint import packed, unpacked
from tunesmith.spaces import Spaces

State = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]
Statistics = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What to tune: lists or forests, a metric, limits on the weights."""

    pools: Spaces
    metric: Metric
    lower: Vector
    upper: Vector
    threads: int = 0

    @property
    def table(self) -> _core.Table | _core.Segments:
        """Statistics of every hypothesis, or what computes them."""
        return self.pools.table(self.metric, self.threads)

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Which weights may move."""
        return self.lower < self.upper

    def clip(self, weights: Vector) -> Vector:
        """Return the weights within their bounds."""
        return np.clip(weights, self.lower, self.upper)

    def chosen(self, weights: Vector, names: list[str] | None = None) -> Statistics:
        """Return the statistics of what the weights choose, a row for each sentence.

        `names` are those of the weights, where they are more than the task's.
        """
        return self.pools.statistics(self.metric, self.pools.best(weights, self.threads))

    def evaluate(self, weights: Vector) -> tuple[float, float]:
        """Return the corpus score and the corpus gain of what the weights choose."""
        total = self.chosen(weights).sum(axis=0)
        return self.metric.score(total), float(self.metric.native.gains(total[None, :])[0])

    def walk(
        self, learner: _core.Learner, order: npt.NDArray[np.uint32], epoch: int, online: Online
    ) -> list[Facts]:
        """Let a learner pass over sentences; return what it saw."""
        online.check_at_hand()
        return [learner.run(order, epoch)]

    def limit(self, learner: _core.Learner) -> None:
        """Give features that a learner has taken over their limits; here all have theirs."""

    @property
    def names(self) -> list[str] | None:
        """Names for a learner that may meet new features; none where ids are enough."""
        return None

    def lengths(self) -> list[float] | None:
        """Return the length of each source sentence, where sources are known."""
        sources = self.pools.sources
        return None if sources is None else [float(len(source.split())) for source in sources]


@dataclass(frozen=True)
class Epoch:
    """Where a tuner stands after an epoch: the weights it proposes and how to go on."""

    number: int
    weights: Vector
    state: State
    facts: Facts = field(default_factory=dict)
    last: bool = False
    names: list[str] | None = None
    """Of the weights, where the tuner has met features that the task did not name."""


class Tuner(Protocol):
    """An algorithm that learns weights."""

    def epochs(
        self, task: Task, start: Vector, seed: int, state: Mapping[str, npt.NDArray[Any]] | None
    ) -> Iterator[Epoch]:
        """Yield epochs, from the first or after the one whose state is given."""


@dataclass(frozen=True)
class Online:
    """Pass after pass over the sentences: select, step, observe.

    `batch` sentences see the same weights; with `shards` > 1 as many learners each pass over their
    part from common weights, which are averaged `mix` times per pass (iterative parameter mixing,
    McDonald et al. 2010); with `mix` = 0 each goes on from its own, and only what they propose is
    averaged (Hasler et al. 2011). `average` proposes the mean of the weights after every step so
    far (`all`), of the current pass (`epoch`), or the weights themselves (`none`).

    With a live decoder, each batch is decoded with the weights of the moment, `k` hypotheses a
    sentence. With `delay` > 0 the decoder does not wait for steps: up to `delay` + 1 batches are on
    their way at a time, and each step is taken on lists that are up to `delay` steps old (stale
    gradients); unless `ordered`, as they arrive, when a batch that takes long may be any number of
    steps old. Tuners that are not `live` are meant for all lists of several decodings.

    Stops early after a pass without updates, or when in three passes no weight moved by more than
    `stop` (Hasler et al. 2011).
    """

    selector: _core.Selector
    update: _core.Update
    gain: Gain = SENTENCE
    passes: int = 20
    batch: int = 1
    shuffle: bool = True
    average: Literal["all", "epoch", "none"] = "all"
    slow_down: float = 1.0
    stop: float = 0.0
    shards: int = 1
    mix: int = 20
    delay: int = 0
    ordered: bool = True
    k: int = 500
    live: bool = True

    def check_at_hand(self) -> None:
        """Refuse to be late where lists are at hand."""
        if self.delay:
            raise InputError(
                "lists that are at hand cannot be late",
                remedy="stale steps want a live decoder; choose another regime",
            )

    def epochs(
        self,
        task: Task,
        start: Vector,
        seed: int,
        state: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[Epoch]:
        """Yield the weights after each pass."""
        learners = [self._learner(task, start, seed) for _ in range(max(self.shards, 1))]
        done, moved = 0, [np.inf, np.inf]
        if state is not None:
            done, moved = int(state["done"][0]), state["moved"].tolist()
            for number, learner in enumerate(learners):
                if "names" in state:
                    learner.adopt(unpacked(state["names"]))
                    task.limit(learner)
                learner.restore(
                    *(
                        state[f"{part}.{number}"]
                        for part in ("weights", "lag", "steps", "gain", "update")
                    )
                )
                # As often as it was done, so that rounding is the same too.
                for _ in range(done):
                    learner.slow_down(self.slow_down)
        for epoch in range(done + 1, self.passes + 1):
            if epoch > 1 and self.gain.gain == "context":
                chosen = task.chosen(task.clip(self._proposed(learners)), learners[0].names)
                for learner in learners:
                    learner.set_context(chosen)
            before = np.mean([learner.weights for learner in learners], axis=0)
            order = (
                _core.permutation(seed, epoch, task.pools.sentences)
                if self.shuffle
                else np.arange(task.pools.sentences, dtype=np.uint32)
            )
            if self.average == "epoch":
                for learner in learners:
                    learner.restart_average()
            seen = self._pass(task, learners, order, epoch)
            weights = np.mean([learner.weights for learner in learners], axis=0)
            proposed = self._proposed(learners)
            # Features that are new were zero before.
            change = weights - np.pad(before, (0, len(weights) - len(before)))
            moved = [*moved[-2:], float(np.abs(change).max(initial=0.0))]
            last = seen["updates"] == 0 or max(moved) <= self.stop
            for learner in learners:
                learner.slow_down(self.slow_down)
            names = learners[0].names
            yield Epoch(
                epoch,
                task.clip(proposed),
                self._state(learners, names, epoch, moved),
                {**seen, "weight_change": moved[-1]},
                last or epoch == self.passes,
                names or None,
            )
            if last:
                return

    def _learner(self, task: Task, start: Vector, seed: int) -> _core.Learner:
        bounded = bool(np.isfinite(task.lower).any() or np.isfinite(task.upper).any())
        return _core.Learner(
            task.pools.core,
            task.table,
            task.metric.native,
            self.selector,
            self.update,
            start,
            lengths=task.lengths(),
            lower=task.lower.tolist() if bounded else None,
            upper=task.upper.tolist() if bounded else None,
            batch=self.batch,
            seed=seed,
            averaged=self.average != "none",
            names=task.names,
            **self.gain.options(),  # type: ignore[arg-type]
        )

    def _proposed(self, learners: Sequence[_core.Learner]) -> Vector:
        """Return the mean of the learners' weights, or of their averages."""
        averaged = self.average != "none"
        each = [learner.average if averaged else learner.weights for learner in learners]
        return np.asarray(np.mean(each, axis=0))

    def _pass(
        self,
        task: Task,
        learners: list[_core.Learner],
        order: npt.NDArray[np.uint32],
        epoch: int,
    ) -> Facts:
        if len(learners) == 1:
            return merge_facts(task.walk(learners[0], order, epoch, self))
        facts: list[Facts] = []
        lengths = task.lengths()
        with ThreadPoolExecutor(task.threads or None) as workers:
            for part in np.array_split(order, max(self.mix, 1)):
                shards = dealt(part, lengths, len(learners))
                jobs = [
                    workers.submit(task.walk, learner, shard, epoch, self)
                    for learner, shard in zip(learners, shards, strict=True)
                ]
                for job in jobs:
                    facts.extend(job.result())
                _adopt(task, learners)
                if self.mix:
                    _mix(learners)
        return merge_facts(facts)

    @staticmethod
    def _state(
        learners: list[_core.Learner], names: list[str], done: int, moved: list[float]
    ) -> State:
        state: State = {"done": np.array([done]), "moved": np.array(moved[-2:])}
        if names:
            state["names"] = packed(names)
        for number, learner in enumerate(learners):
            state |= {f"{part}.{number}": array for part, array in learner.state().items()}
        return state


def with_regime(tuner: Tuner, regime: str | None) -> Tuner:
    """Return an online tuner with another way to use threads, such as `shards=2,mix=5`.

    >>> online = Online(_core.Selector.pairs(10, 0.1, 5), _core.Update.perceptron(1.0))
    >>> with_regime(online, "delay=3,ordered=false").delay
    3
    """
    if regime is None:
        return tuner
    if not isinstance(tuner, Online):
        raise InputError(
            "only online tuners have a regime", remedy="leave it out; all threads are used anyway"
        )
    known = {"batch": 1, "shards": 1, "mix": 0, "delay": 0}
    chosen: dict[str, Any] = {}
    for part in regime.split(","):
        name, _, value = part.partition("=")
        if name == "ordered" and value in ("true", "false"):
            chosen[name] = value == "true"
        elif name in known and value.isdecimal() and int(value) >= known[name]:
            chosen[name] = int(value)
        else:
            raise InputError(
                f"{part!r} is no part of a regime",
                remedy="give batch=N, shards=N,mix=N or delay=N,ordered=false",
            )
    changed = replace(tuner, **chosen)
    if "mix" in chosen and changed.shards == 1:
        raise InputError("mix without shards", remedy="give shards=2 or more with it")
    if "ordered" in chosen and changed.delay == 0:
        raise InputError("ordered without a delay", remedy="give delay=1 or more with it")
    if changed.delay and changed.shards > 1:
        raise InputError("both shards and a delay", remedy="choose one of the two")
    return changed


def dealt(
    part: npt.NDArray[np.uint32], lengths: Sequence[float] | None, shards: int
) -> list[npt.NDArray[np.uint32]]:
    """Deal sentences out to shards, as many to each, and about as many words.

    All shards wait for the last one. From long to short, to and fro; each has its own in the order
    of the whole.

    >>> [shard.tolist() for shard in dealt(np.array([2, 0, 3, 1], "u4"), [9, 1, 7, 4], 2)]
    [[0, 1], [2, 3]]
    """
    if lengths is None:
        return np.array_split(part, shards)
    ranked = np.argsort(-np.asarray(lengths)[part], kind="stable")
    turns, seats = np.divmod(np.arange(len(part)), shards)
    holder = np.empty(len(part), dtype=np.intp)
    holder[ranked] = np.where(turns % 2, shards - 1 - seats, seats)
    return [part[holder == shard] for shard in range(shards)]


def _adopt(task: Task, learners: Sequence[_core.Learner]) -> None:
    """Give all learners the features that any of them has met."""
    names = [learner.names for learner in learners]
    if any(each != names[0] for each in names):
        common = list(dict.fromkeys(name for each in names for name in each))
        for learner in learners:
            learner.adopt(common)
            task.limit(learner)


def _mix(learners: Sequence[_core.Learner]) -> None:
    """Give all learners the mean of their weights."""
    mixed = np.mean([learner.weights for learner in learners], axis=0)
    for learner in learners:
        learner.set_weights(mixed)


def merge_facts(facts: list[Facts]) -> Facts:
    """Join what several learners saw: counts add up, means are weighted by visits."""
    visits = sum(fact["visits"] for fact in facts)
    share = [fact["visits"] / visits if visits else 0.0 for fact in facts]

    def mean(key: str) -> float:
        return float(sum(s * fact[key] for s, fact in zip(share, facts, strict=True)))

    spread = sum(s * fact["spread"][0] for s, fact in zip(share, facts, strict=True))
    square = sum(
        s * (fact["spread"][0] ** 2 + fact["spread"][1] ** 2)
        for s, fact in zip(share, facts, strict=True)
    )
    # A pass has zeros for what nobody watched: selectors that draw pairs have no single y+.
    paired = bool(spread) or any(fact["oracle"] or fact["prediction"] for fact in facts)
    watched = paired or any(fact["model"] for fact in facts)
    return {
        "updates": sum(fact["updates"] for fact in facts),
        "loss": sum(fact["loss"] for fact in facts),
        "model": mean("model") if watched else None,
        "oracle": mean("oracle") if paired else None,
        "prediction": mean("prediction") if paired else None,
        "spread": {"mean": spread, "sd": max(square - spread**2, 0.0) ** 0.5} if paired else None,
        **_clocked(facts),
    }


def _clocked(facts: list[Facts]) -> Facts:
    """Join what only passes with a decoder have: seconds, and how old the lists were."""
    clocks = ("decode_seconds", "optimise_seconds")
    found = {key: sum(f[key] for f in facts) for key in clocks if facts and key in facts[0]}
    stale = [fact["staleness"] for fact in facts if "staleness" in fact]
    if any(stale):
        found["staleness"] = {"mean": float(np.mean(stale)), "max": max(stale)}
    return found
