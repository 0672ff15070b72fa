"""One learner whose constraints are chosen by several workers.

The driver holds the learner and takes its steps. Workers hold mirrors of it: they are sent the
weights that changed, decode or look up their lines, and answer with constraints. The driver puts
the answers of a batch in the order of its lines, whoever gave them.

Each state of the learner has a version. A question says from which version its changes lead to
which. A worker that has another version, because it is the successor of a lost one, does not
answer; it is then asked again with everything since the last version that was settled.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import Crew, Worker, begins, reads
from tunesmith.files.arrays import packed, unpacked
from tunesmith.learn.scale import Fit
from tunesmith.learn.task import Facts, SavedState, Selection, State, Task
from tunesmith.learn.versions import Base, Change, Lines, Versions
from tunesmith.weights import Vector

if TYPE_CHECKING:
    from tunesmith.learn.online import Online

PARTS = ("weights", "lag", "steps", "gain", "update")
"""The parts of a learner's state."""


@dataclass
class _Mirror:
    """A worker's copy of the driver's learner."""

    learner: _core.Learner
    version: int

    def reset(self, task: Task, base: Base) -> None:
        """Become the learner that it was at a version."""
        learner = self.learner
        if base.names is not None:
            # Features that only this copy has met come after those of the base.
            own, known = learner.names, set(base.names)
            learner.adopt([*base.names, *(name for name in own if name not in known)])
            learner.forget(len(base.names))
            task.limit(learner)
        learner.mirror(base.weights, base.gain)
        if base.context is not None:
            learner.set_context(base.context)
        self.version = base.version

    def follow(self, task: Task, change: Change, version: int) -> None:
        """Become the learner of a later version."""
        if change.names:
            self.learner.extend(change.names)
            task.limit(self.learner)
        if change.context is not None:
            self.learner.set_context(change.context)
        self.learner.follow(change.ids, change.values, change.lines, change.stats)
        self.version = version


@begins
def _begin(worker: Worker, online: Online, start: Vector, seed: int, fit: Fit, base: Base) -> None:
    """Make a copy of the driver's learner."""
    schedule, task = online.schedule, worker.share
    learner = online.learner.kernel(
        task,
        start,
        seed=seed,
        batch=online.regime.batch,
        average=schedule.average,
        fit=fit,
        selecting=True,
    )
    mirror = worker.kept["mirror"] = _Mirror(learner, base.version)
    mirror.reset(task, base)


@reads
def _select(
    worker: Worker,
    base: Base | None,
    since: int,
    change: Change,
    version: int,
    lines: Lines,
    epoch: int,
    online: Online,
) -> Selection | None:
    """Choose the constraints of lines under a version; return None from another one than `since`.

    A base is gone back to, whatever the worker's version is.
    """
    mirror: _Mirror = worker.kept["mirror"]
    task: Task = worker.share
    if base is not None:
        mirror.reset(task, base)
    if mirror.version != since:
        return None
    mirror.follow(task, change, version)
    return task.select(mirror.learner, lines, epoch, online, worker.pool)


@dataclass(frozen=True)
class _Asked:
    """A batch that a worker was asked about."""

    lines: Lines
    place: int
    version: int
    made: int
    """How many steps of the pass had been taken."""


class Master:
    """The learner of a tuner, for which workers select."""

    size = 1

    def __init__(self, crew: Crew, task: Task) -> None:
        self._crew, self._task = crew, task
        self._versions = Versions(crew.size)
        self._context: npt.NDArray[np.float64] | None = None
        self._base: Base | None = None

    def begin(self, online: Online, start: Vector, seed: int, fit: Fit) -> None:
        """Make the learner; workers make theirs before the first pass."""
        self._beginning = (online, start, seed, fit)
        self.learner = online.learner.kernel(
            self._task,
            start,
            seed=seed,
            batch=online.regime.batch,
            average=online.schedule.average,
            fit=fit,
        )

    def restore(self, state: SavedState) -> None:
        """Go on from a state."""
        online = self._beginning[0]
        passes, rest = divmod(int(state["done"][0]), online.schedule.proposals)
        if "names" in state:
            self.learner.adopt(unpacked(state["names"]))
            self._task.limit(self.learner)
        self.learner.restore(*(np.asarray(state[f"{part}.0"]) for part in PARTS))
        for _ in range(passes):
            # Multiply as often as before, so that rounding is the same.
            self.learner.slow_down(online.schedule.slow_down)
        if rest and "context.0" in state:
            self.learner.set_context(np.array(state["context.0"]))

    def settle(self, state: SavedState) -> None:
        """Let workers that come later begin from here."""
        del state  # the learner itself is here
        self._notice()
        base = self._base = Base.of(self._versions.now, self.learner)
        self._crew.settle([(_begin, [(*self._beginning, base)] * self._crew.size)])

    def each(self, method: str, *args: Any) -> None:
        """Call a method of the learner."""
        getattr(self.learner, method)(*args)
        if method == "set_context":
            (self._context,) = args

    def mean(self, what: str) -> Vector:
        """Return a vector of the learner; a sum of one, so that zeros have the sign of sums."""
        return np.asarray(np.mean([getattr(self.learner, what)], axis=0))

    def names(self) -> list[str]:
        """Return the names of the features."""
        return self.learner.names

    def share_names(self) -> None:
        """Do nothing: there is one learner."""

    def contexts(self) -> State:
        """Return the context that gains have come to, and go on from there, as learners at workers
        do."""
        found = self.learner.context
        if found is None:
            return {}
        self.each("set_context", found)
        return {"context.0": found}

    def mix(self) -> None:
        """Do nothing: there is one learner."""

    def state(self, names: list[str], done: int, moved: list[float]) -> State:
        """Return the state for a checkpoint: that of a learner in a worker."""
        state: State = {"done": np.array([done]), "moved": np.array(moved[-2:])}
        if names:
            state["names"] = packed(names)
        return state | {f"{part}.0": array for part, array in self.learner.state().items()}

    def walk(self, online: Online, orders: Sequence[Lines], epoch: int) -> list[Facts]:
        """Pass over the sentences of an order; return facts about the steps."""
        (order,) = orders
        if self._base is None:
            self._join()
        if not self._task.follows:
            online.refuse_delay()
            return [self._walk_lists(online, order, epoch)]
        size = max(online.regime.batch, 1)
        batches = [order[at : at + size] for at in range(0, len(order), size)]
        if online.regime.stale == "gradient":
            return self._walk_late(online, batches, epoch)
        return [self._step(self._ask(online, each, epoch), each) for each in batches]

    def _join(self) -> None:
        """Let workers begin from where the learner is."""
        self._notice()
        self._versions = Versions(self._crew.size)
        base = self._base = Base.of(0, self.learner)
        self._crew.ask_all(_begin, [(*self._beginning, base)] * self._crew.size)

    def _notice(self) -> None:
        """Make a version of what has changed, if anything has that selecting depends on."""
        if self._task.follows or self.learner.scored:
            changes = self.learner.changes()
            self._versions.add(Change(**changes, context=self._context))
            self._context = None

    def _walk_lists(self, online: Online, order: Lines, epoch: int) -> Facts:
        """Pass over lists that workers hold: one pass for the update, whatever it puts off."""
        learner = self.learner
        scored = learner.scored
        learner.open(scored)
        for batch in learner.batches(np.ascontiguousarray(order)):
            if scored:
                learner.catch_up(batch)
            parts = [part for each in self._ask(online, batch, epoch) for part in each.parts]
            learner.meet(parts, batch)
            learner.apply(parts, batch)
        return learner.close()

    def _walk_late(self, online: Online, batches: Sequence[Lines], epoch: int) -> list[Facts]:
        """Ask ahead, and step on constraints of the weights of some steps ago."""
        facts, regime = list[Facts](), online.regime
        asked, waiting = list[_Asked](), set[int]()

        def job(batch: Lines) -> Callable[[int], tuple[Any, ...]]:
            def question(place: int) -> tuple[Any, ...]:
                lines = np.ascontiguousarray(batch)
                args = self._question(online, place, lines, epoch)
                waiting.add(len(asked))
                asked.append(_Asked(lines, place, self._versions.now, len(facts)))
                return args

            return question

        jobs = (job(batch) for batch in batches)
        for number, answer in self._crew.pipeline(_select, jobs, regime.delay, regime.ordered):
            each = asked[number]
            found = self._again(online, each, epoch) if answer is None else answer
            waiting.discard(number)
            late = len(facts) - each.made
            facts.append({**self._step([found], each.lines), "staleness": late})
            self._compact([asked[other].version for other in waiting])
        return facts

    def _ask(self, online: Online, batch: Lines, epoch: int) -> list[Selection]:
        """Return what all workers choose for their lines of a batch, under the same weights."""
        places = self._task.placed(batch, self._crew.size)
        lines = [np.ascontiguousarray(batch[places == place]) for place in range(self._crew.size)]
        questions = [self._question(online, *each, epoch) for each in enumerate(lines)]
        answers = self._crew.ask_all(_select, questions)
        asked = [_Asked(each, place, self._versions.now, 0) for place, each in enumerate(lines)]
        found = [
            self._again(online, each, epoch) if answer is None else answer
            for each, answer in zip(asked, answers, strict=True)
        ]
        self._compact([])
        return found

    def _question(self, online: Online, place: int, lines: Lines, epoch: int) -> tuple[Any, ...]:
        """Return arguments with what a worker has missed."""
        self._notice()
        since, change = self._versions.send(place)
        return None, since, change, self._versions.now, lines, epoch, online

    def _again(self, online: Online, asked: _Asked, epoch: int) -> Selection:
        """Ask a worker that had another version than it should have."""
        base = self._base
        assert base is not None
        change = self._versions.between(base.version, asked.version)
        args = (base, base.version, change, asked.version, asked.lines, epoch, online)
        found: Selection | None = self._crew.ask_at(asked.place, _select, args)
        assert found is not None, "a worker can always go back to a base"
        return found

    def _compact(self, wanted: list[int]) -> None:
        """Forget changes that no question can need any more."""
        assert self._base is not None
        self._versions.compact([self._base.version, *wanted])

    def _step(self, answers: Sequence[Selection], batch: Lines) -> Facts:
        """Take a step on what was chosen for the lines of a batch that workers have decoded."""
        began, learner = time.perf_counter(), self.learner
        parts = [part for each in answers for part in each.parts]
        known, lines = learner.size, np.ascontiguousarray(batch)
        learner.meet(parts, lines)
        if learner.size > known:
            self._task.limit(learner)
        learner.open(any(part.scored for part in parts))
        learner.apply(parts, lines)
        seen = learner.close()
        total = Counter[str]()
        for each in answers:
            total.update(each.counts)
        return {
            **seen,
            **({"counts": dict(total)} if total else {}),
            # Workers decode side by side.
            "decode_seconds": max(each.seconds for each in answers),
            "optimise_seconds": time.perf_counter() - began,
        }
