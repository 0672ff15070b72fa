"""Online tuners: what one step is, how often, and how sentences are spread over learners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import Crew, Worker, begins, reads
from tunesmith.errors import InputError
from tunesmith.files.arrays import packed, unpacked
from tunesmith.learn.gains import SENTENCE, Gain
from tunesmith.learn.master import Master
from tunesmith.learn.scale import Fit, in_units, measure, paces
from tunesmith.learn.selectors import Selector, Violations
from tunesmith.learn.task import Epoch, Facts, SavedState, State, Task, Tuner
from tunesmith.learn.updates import Custom, Update
from tunesmith.learn.versions import Moved
from tunesmith.weights import Vector

Average = Literal["all", "updates", "epoch", "none"]
Order = npt.NDArray[np.uint32]
Stale = Literal["lists", "gradient"]
# Hypotheses of a sentence by which scores are measured, where a selector has no limit.
MEASURED = 500
STATS = ("model", "oracle", "prediction")


@dataclass(frozen=True, kw_only=True)
class Learner:
    """One step: the selector makes constraints of a sentence, the update moves the weights.

    With `spread` > 0, C, B, D and gains are meant for scores that spread over so much within a
    sentence, in the mean, and are multiplied by what the start weights' scores spread over instead;
    0 takes them as they are. With `normalise`, common features are measured in units of their
    standard deviation within lists, so that no feature moves faster because its numbers are large;
    features that a decoder meets later have a unit of 1.
    """

    selector: Selector
    update: Update
    gain: Gain = SENTENCE
    spread: float = 0.0
    normalise: bool = False

    KERNEL: ClassVar[str] = "core/solve/src/pass.rs"

    @property
    def splits(self) -> bool:
        """Whether one process can choose the constraints of a step, and another one take it.

        Not if an update selects again under weights that it has moved: cutting planes, the bounds
        of the relative margin one after the other, and updates written in Python.
        """
        return self.update.kernel().splits(self.selector.kernel())

    def fitted(self, task: Task, start: Vector, k: int) -> Fit:
        """Return the unit of scores, and how fast each weight moves, under the start weights."""
        if not (self.spread or self.normalise):
            return Fit()
        lists, weights = task.survey(start, k)
        found = measure(lists, weights, k)
        unit = found.spread / self.spread if self.spread else 1.0
        names = task.names or task.spaces.names
        return Fit(
            # Weights of zero have no size.
            unit or 1.0,
            tuple(paces(found, names).tolist()) if self.normalise else None,
        )

    def kernel(
        self,
        task: Task,
        start: Vector,
        *,
        seed: int,
        batch: int,
        average: Average,
        fit: Fit | None = None,
        selecting: bool = False,
    ) -> _core.Learner:
        """Return a learner that passes over the sentences of a task from the start weights.

        One that is `selecting` chooses constraints for another one and takes no steps itself.
        """
        fit = fit or Fit()
        update = in_units(self.update, fit.unit).kernel()
        bounded = bool(np.isfinite(task.lower).any() or np.isfinite(task.upper).any())
        return _core.Learner(
            task.spaces.core,
            task.table,
            task.metric.native,
            in_units(self.selector, fit.unit).kernel(),
            update.selecting() if selecting else update,
            start,
            gain=self.gain.kind,
            decay=self.gain.decay,
            history=self.gain.history,
            gain_scale=self.gain.scale or "one",
            lengths=task.lengths(),
            lower=task.lower.tolist() if bounded else None,
            upper=task.upper.tolist() if bounded else None,
            batch=batch,
            seed=seed,
            averaged=average != "none",
            idle=average != "updates",
            names=task.names,
            unit=fit.unit * self.gain.times,
            paces=fit.paces,
        )


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The number of passes, their order, the weights proposed after each, and when to stop.

    `average` proposes the mean of the weights after every step so far (`all`), after every step
    that changed them (`updates`), of the current pass (`epoch`), or the weights themselves
    (`none`). `slow_down` multiplies the learning rate after each pass. Training stops after a pass
    without updates, or when in three passes no weight moved by more than `stop` (Hasler et al.
    2011), or when `patience` passes in a row scored no better than the best so far (0: never).
    Weights are proposed `proposals` times in each pass, so that held-out text can choose among
    more of them.
    """

    passes: int = 20
    shuffle: bool = True
    average: Average = "all"
    slow_down: float = 1.0
    stop: float = 0.0
    patience: int = 0
    proposals: int = 1

    @property
    def rounds(self) -> int:
        """How often weights are proposed at most."""
        return self.passes * self.proposals


@dataclass(frozen=True, kw_only=True)
class Regime:
    """How sentences are spread over steps and learners.

    `batch` sentences see the same weights. With `shards` > 1, the sentences are dealt once to as
    many learners; each passes over its own shard from common weights, which are averaged `mix`
    times per pass (iterative parameter mixing, McDonald et al. 2010). With `mix` = 0 each learner
    goes on from its own weights, and only the proposed weights are averages (Hasler et al. 2011).

    With `delay` > 0 a live decoder does not wait for steps: up to `delay` + 1 batches are under way
    at a time, and each step is taken on lists that are up to `delay` steps old (stale gradients).
    Unless `ordered`, steps are taken as lists arrive, and a batch that takes long may be any number
    of steps old.

    With `stale` lists, constraints are chosen from late lists under the weights of the moment. With
    `stale` gradients, they are chosen by whoever decodes, under the same weights, and only the step
    is late (algorithm 2 of Green et al. 2013). Updates that are gradients (`Sgd`, `AdaGrad`, the
    mean of the perceptron) are then those at the weights of the decoder; others meet the
    constraints from the weights of the moment.
    """

    batch: int = 1
    shards: int = 1
    mix: int = 20
    delay: int = 0
    ordered: bool = True
    stale: Stale = "lists"

    @property
    def mixings(self) -> int:
        """How often a pass averages the weights of learners; a single learner needs none."""
        return self.mix if self.shards > 1 else 0

    @classmethod
    def parse(cls, text: str, base: Regime) -> Regime:
        """Return `base` with changes such as `shards=2,mix=5`; raise if they make no sense.

        >>> Regime.parse("delay=3,ordered=false", Regime())
        Regime(batch=1, shards=1, mix=20, delay=3, ordered=False, stale='lists')
        """
        least = {"batch": 1, "shards": 1, "mix": 0, "delay": 0}
        chosen: dict[str, Any] = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            if name == "ordered" and value in ("true", "false"):
                chosen[name] = value == "true"
            elif name == "stale" and value in get_args(Stale):
                chosen[name] = value
            elif name in least and value.isdecimal() and int(value) >= least[name]:
                chosen[name] = int(value)
            else:
                raise InputError(
                    f"{part!r} is no part of a regime",
                    remedy="give batch=N, shards=N,mix=N or delay=N,stale=gradient,ordered=false",
                )
        changed = replace(base, **chosen)
        if "mix" in chosen and changed.shards == 1:
            raise InputError("mix without shards", remedy="give shards=2 or more with it")
        for name in ("ordered", "stale"):
            if name in chosen and changed.delay == 0:
                raise InputError(f"{name} without a delay", remedy="give delay=1 or more with it")
        if changed.delay and changed.shards > 1:
            raise InputError("both shards and a delay", remedy="choose one of the two")
        return changed


@dataclass(frozen=True, kw_only=True)
class Online:
    """Pass after pass over the sentences: select, step, observe.

    With a live decoder, each batch is decoded with the current weights, `k` hypotheses a sentence.
    Without `follow`, the tuner is meant for the merged lists of several decodings.
    """

    learner: Learner
    schedule: Schedule = field(default_factory=Schedule)
    regime: Regime = field(default_factory=Regime)
    k: int = 500
    follow: bool = True

    def __post_init__(self) -> None:
        """Raise an `InputError` if a schedule would have no effect on the update."""
        if isinstance(self.learner.update, Custom) and self.schedule.slow_down != 1.0:
            raise InputError(
                "an update written in Python has no learning rate that could slow down",
                remedy="leave slow_down at 1, and let the rule make its steps smaller",
            )
        if self.regime.stale == "gradient" and not self.learner.splits:
            raise InputError(
                "stale=gradient needs an update that chooses its constraints once in a step",
                remedy="give stale=lists, or a tuner without bounds, cutting planes or an update "
                "written in Python",
            )

    def epochs(
        self, task: Task, start: Vector, seed: int, state: SavedState | None = None
    ) -> Iterator[Epoch]:
        """Yield the weights after each pass, or after each part of one."""
        schedule, sentences = self.schedule, task.spaces.lines
        shards = deal(sentences, task.lengths(), max(self.regime.shards, 1))
        team = self._team(task, shards)
        fit = self.learner.fitted(task, start, self._listed) if state is None else Fit.of(state)
        team.begin(self, start, seed, fit)
        done, moved = 0, [np.inf, np.inf]
        before, updates = start, 0
        if state is not None:
            done, moved = int(state["done"][0]), state["moved"].tolist()
            team.restore(state)
            if done % schedule.proposals:
                before, updates = np.array(state["before"]), int(state["updates"][0])
        for number in range(done + 1, schedule.rounds + 1):
            epoch, part = 1 + (number - 1) // schedule.proposals, (number - 1) % schedule.proposals
            ends = part == schedule.proposals - 1
            if part == 0:
                if epoch > 1 and self.learner.gain.kind == "context":
                    names = team.names() if task.names is not None else None
                    chosen = task.chosen(task.clip(self._proposed(team)), names)
                    team.each("set_context", chosen)
                before, updates = team.mean("weights"), 0
                if schedule.average == "epoch":
                    team.each("restart_average")
            order = (
                _core.permutation(seed, epoch, sentences)
                if schedule.shuffle
                else np.arange(sentences, dtype=np.uint32)
            )
            seen = self._pass(team, order, shards, epoch, part)
            weights, proposed = team.mean("weights"), self._proposed(team)
            updates += seen["updates"]
            # Features that are new were zero before.
            before = np.pad(before, (0, len(weights) - len(before)))
            change = float(np.abs(weights - before).max(initial=0.0))
            last = False
            if ends:
                moved = [*moved[-2:], change]
                last = updates == 0 or max(moved) <= schedule.stop
                team.each("slow_down", schedule.slow_down)
            names = team.names()
            kept = team.state(names, number, moved) | fit.state()
            if not ends:
                kept |= {"before": before, "updates": np.array([updates])} | team.contexts()
            team.settle(kept)
            yield Epoch(
                number,
                task.clip(proposed),
                kept,
                {**_scored(seen, task), "weight_change": change},
                last or number == schedule.rounds,
                names or None,
            )
            if last:
                return

    @property
    def shares(self) -> int:
        """How many workers sentences can be dealt to: one for each learner, or line of a batch."""
        if self.regime.shards > 1:
            return self.regime.shards
        return self.regime.batch if self.learner.splits else 1

    @property
    def _listed(self) -> int:
        """How many hypotheses of a sentence the size of scores is measured on."""
        return int(getattr(self.learner.selector, "k", 0)) or MEASURED

    @property
    def violations(self) -> Violations | None:
        """What a decoder is forced for, if the tuner learns from that."""
        selector = self.learner.selector
        return selector if isinstance(selector, Violations) else None

    def refuse_delay(self) -> None:
        """Raise if steps are to be taken on stale lists."""
        if self.regime.delay:
            raise InputError(
                "delay needs a live decoder: saved lists have no stale steps",
                remedy="leave delay out of the regime",
            )

    def _team(self, task: Task, shards: npt.NDArray[np.intp]) -> _Team | Master:
        """Return learners at the workers; or one here, if workers can select for it."""
        regime = self.regime
        late = regime.stale == "gradient"
        if regime.shards > 1 or not (late or self.shares > 1):
            return _Team(task.dealt(shards), max(regime.shards, 1))
        # Any worker may be asked to decode any sentence; a saved list lies at one of them.
        crew = task.crew if task.follows else task.dealt(np.arange(len(shards)))
        if late:
            return Master(crew.abreast(regime.delay + 1), task)
        return Master(crew, task) if crew.size > 1 else _Team(crew, 1)

    def _proposed(self, team: _Team | Master) -> Vector:
        """Return the mean of the learners' weights, or of their averages."""
        return team.mean("weights" if self.schedule.average == "none" else "average")

    def _pass(
        self,
        team: _Team | Master,
        order: Order,
        shards: npt.NDArray[np.intp],
        epoch: int,
        part: int = 0,
    ) -> Facts:
        """Let every learner pass over its shard, in the order of the whole; mix on the way."""
        count = self.schedule.proposals
        own = [
            np.array_split(order[shards[order] == shard], count)[part] for shard in range(team.size)
        ]
        mixings = -(-self.regime.mixings // count)
        facts: list[Facts] = []
        pieces = max(mixings, 1)
        for number, parts in enumerate(
            zip(*(np.array_split(each, pieces) for each in own), strict=True), 1
        ):
            facts += team.walk(self, parts, epoch)
            if number == pieces and part == count - 1:
                team.each("end_epoch")
            team.share_names()
            if mixings:
                team.mix()
        return merge_facts(facts)


def with_regime(tuner: Tuner, regime: str | None) -> Tuner:
    """Return an online tuner with changes to its regime, such as `shards=2,mix=5`."""
    if regime is None:
        return tuner
    if not isinstance(tuner, Online):
        raise InputError(
            "only online tuners have a regime", remedy="leave it out; all threads are used anyway"
        )
    return replace(tuner, regime=Regime.parse(regime, tuner.regime))


def deal(sentences: int, lengths: Sequence[float] | None, shards: int) -> npt.NDArray[np.intp]:
    """Return the shard of each sentence: as many to each, and about as many words.

    All shards wait for the slowest, so sentences are dealt from long to short, with the direction
    changing after each turn.

    >>> deal(4, [9, 1, 7, 4], 2).tolist()
    [0, 0, 1, 1]
    """
    if lengths is None:
        lengths = [1.0] * sentences
    ranked = np.argsort(-np.asarray(lengths), kind="stable")
    turns, seats = np.divmod(np.arange(sentences), shards)
    holder = np.empty(sentences, dtype=np.intp)
    holder[ranked] = np.where(turns % 2, shards - 1 - seats, seats)
    return holder


class _Team:
    """The learners of one tuner, spread over workers: learner n is at worker n modulo workers."""

    def __init__(self, crew: Crew, size: int) -> None:
        self._crew, self.size = crew, size
        self._places = [list(range(place, size, crew.size)) for place in range(crew.size)]
        self._mixed: Vector | None = None
        """The weights of the last mixing, if every worker has them."""
        self._shared = 0
        """How many features all learners have, in the same order."""

    def _ask(self, question: Any, *args: Any) -> list[Any]:
        """Return the answers of all learners in their order.

        An argument that differs between learners is given as a `_PerLearner`.
        """
        answers = self._crew.ask_all(question, self._given(args))
        found = {
            number: answer
            for place, several in zip(self._places, answers, strict=True)
            for number, answer in zip(place, several, strict=True)
        }
        return [found[number] for number in range(self.size)]

    def _given(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the arguments for each worker."""
        return [
            (
                place,
                *([arg[n] for n in place] if isinstance(arg, _PerLearner) else arg for arg in args),
            )
            for place in self._places
        ]

    def begin(self, online: Online, start: Vector, seed: int, fit: Fit) -> None:
        self._beginning = (online, start, seed, fit)
        self._mixed, self._shared = None, 0
        self._ask(_begin, *self._beginning)

    def restore(self, state: SavedState) -> None:
        """Go on from a state."""
        for question, *args in self._way_to(state):
            self._ask(question, *args)

    def settle(self, state: SavedState) -> None:
        """Let workers that come later begin from a state."""
        # They will not have the weights of the last mixing.
        self._mixed = None
        way = [(_begin, *self._beginning), *self._way_to(state)]
        self._crew.settle([(question, self._given(tuple(args))) for question, *args in way])

    def _way_to(self, state: SavedState) -> list[tuple[Any, ...]]:
        """Return the questions that bring new learners to a state."""
        schedule = self._beginning[0].schedule
        passes, rest = divmod(int(state["done"][0]), schedule.proposals)
        parts = ("weights", "lag", "steps", "gain", "update")
        states = [[state[f"{part}.{n}"] for part in parts] for n in range(self.size)]
        names = unpacked(state["names"]) if "names" in state else None
        # Multiply as often as before, so that rounding is the same.
        slower = [(_call, "slow_down", (schedule.slow_down,))] * passes
        known = []
        if rest and "context.0" in state:
            contexts = _PerLearner(np.array(state[f"context.{n}"]) for n in range(self.size))
            known = [(_set_contexts, contexts)]
        return [(_restore, _PerLearner(states), names), *slower, *known]

    def each(self, method: str, *args: Any) -> None:
        """Call a method of every learner."""
        self._ask(_call, method, args)

    def mean(self, what: str) -> Vector:
        """Return the mean of the learners' vectors."""
        return np.asarray(np.mean(self._ask(_look, what), axis=0))

    def names(self) -> list[str]:
        """Return the names of the features; all learners have the same between pieces."""
        return list(self._crew.ask(_look, [0], "names")[0])

    def walk(self, online: Online, orders: Sequence[Order], epoch: int) -> list[Facts]:
        """Let every learner pass over its part."""
        seen = self._ask(_walk, _PerLearner(orders), online, epoch)
        return [fact for facts in seen for fact in facts]

    def share_names(self) -> None:
        """Give all learners the features that any of them has met since it was last asked."""
        if self.size == 1:
            return
        known = self._shared
        met = self._ask(_met, known)
        new = list(dict.fromkeys(name for each in met for name in each))
        if any(each != new for each in met):
            self._ask(_share, known, new)
        self._shared = known + len(new)

    def contexts(self) -> State:
        """Return the context that each learner's gains have come to; they go on from there.

        Its sum is taken anew, here and in a run that is resumed, so that rounding is the same.
        """
        found = self._ask(_look, "context")
        if found[0] is None:
            return {}
        self._ask(_set_contexts, _PerLearner(found))
        return {f"context.{number}": each for number, each in enumerate(found)}

    def mix(self) -> None:
        """Give all learners the mean of their weights; send what differs from the last mixing."""
        earlier = self._mixed
        found = self._ask(_moved, earlier is None)
        mean = np.asarray(np.mean([each.onto(earlier) for each in found], axis=0))
        self._ask(_mix, Moved.since(earlier, mean))
        self._mixed = mean

    def state(self, names: list[str], done: int, moved: list[float]) -> State:
        """Return the state for a checkpoint."""
        state: State = {"done": np.array([done]), "moved": np.array(moved[-2:])}
        if names:
            state["names"] = packed(names)
        for number, each in enumerate(self._ask(_call, "state", ())):
            state |= {f"{part}.{number}": array for part, array in each.items()}
        return state


class _PerLearner(list[Any]):
    """A list with one argument for each learner."""


def _learners(worker: Worker, numbers: Sequence[int]) -> list[_core.Learner]:
    return [worker.kept["learners"][number] for number in numbers]


@begins
def _begin(
    worker: Worker, numbers: Sequence[int], online: Online, start: Vector, seed: int, fit: Fit
) -> list[None]:
    make, batch, average = online.learner.kernel, online.regime.batch, online.schedule.average
    worker.kept["learners"] = {
        number: make(worker.share, start, seed=seed, batch=batch, average=average, fit=fit)
        for number in numbers
    }
    return [None for _ in numbers]


def _restore(
    worker: Worker,
    numbers: Sequence[int],
    states: Sequence[Sequence[Vector]],
    names: list[str] | None,
) -> list[None]:
    if names is not None:
        _share(worker, numbers, 0, names)
    for learner, (weights, lag, steps, gain, update) in zip(
        _learners(worker, numbers), states, strict=True
    ):
        learner.restore(weights, lag, steps, gain, update)
    return [None for _ in numbers]


@reads
def _met(worker: Worker, numbers: Sequence[int], known: int) -> list[list[str]]:
    return [learner.names[known:] for learner in _learners(worker, numbers)]


def _share(worker: Worker, numbers: Sequence[int], known: int, new: list[str]) -> list[None]:
    """Let the learners have the same features: the first ones that all know, then these."""
    for learner in _learners(worker, numbers):
        learner.adopt(learner.names[:known] + new)
        worker.share.limit(learner)
    return [None for _ in numbers]


@reads
def _moved(worker: Worker, numbers: Sequence[int], whole: bool) -> list[Moved]:
    earlier = None if whole else worker.kept["mixed"]
    return [Moved.since(earlier, learner.weights) for learner in _learners(worker, numbers)]


def _mix(worker: Worker, numbers: Sequence[int], sent: Moved) -> list[None]:
    worker.kept["mixed"] = mean = sent.onto(worker.kept.get("mixed"))
    return _call(worker, numbers, "set_weights", (mean,))


def _call(worker: Worker, numbers: Sequence[int], method: str, args: tuple[Any, ...]) -> list[Any]:
    return [getattr(learner, method)(*args) for learner in _learners(worker, numbers)]


def _set_contexts(
    worker: Worker, numbers: Sequence[int], contexts: Sequence[npt.NDArray[np.float64]]
) -> list[None]:
    for learner, context in zip(_learners(worker, numbers), contexts, strict=True):
        learner.set_context(context)
    return [None for _ in numbers]


@reads
def _look(worker: Worker, numbers: Sequence[int], what: str) -> list[Any]:
    return [getattr(learner, what) for learner in _learners(worker, numbers)]


def _walk(
    worker: Worker,
    numbers: Sequence[int],
    orders: Sequence[Order],
    online: Online,
    epoch: int,
) -> list[list[Facts]]:
    """Let the learners pass over their parts, side by side."""
    task: Task = worker.share

    def walk(each: tuple[_core.Learner, Order]) -> list[Facts]:
        return task.walk(*each, epoch, online, worker.pool)

    pairs = list(zip(_learners(worker, numbers), orders, strict=True))
    if len(pairs) == 1:
        # On the main thread, which alone receives Ctrl-C.
        return [walk(pairs[0])]
    return list(worker.pool.map(walk, pairs))


def merge_facts(facts: list[Facts]) -> Facts:
    """Join the facts of several learners: counts add up, means are weighted by visits."""
    visits = sum(fact["visits"] for fact in facts)
    share = [fact["visits"] / visits if visits else 0.0 for fact in facts]

    def mean(key: str) -> float:
        return float(sum(s * fact[key] for s, fact in zip(share, facts, strict=True)))

    spread = sum(s * fact["spread"][0] for s, fact in zip(share, facts, strict=True))
    square = sum(
        s * (fact["spread"][0] ** 2 + fact["spread"][1] ** 2)
        for s, fact in zip(share, facts, strict=True)
    )
    # Zeros stand for values that were not observed: selectors that draw pairs have no single y+.
    paired = bool(spread) or any(fact["oracle"] or fact["prediction"] for fact in facts)
    watched = paired or any(fact["model"] for fact in facts)
    return {
        "visits": visits,
        "updates": sum(fact["updates"] for fact in facts),
        "loss": sum(fact["loss"] for fact in facts),
        "model": mean("model") if watched else None,
        "oracle": mean("oracle") if paired else None,
        "prediction": mean("prediction") if paired else None,
        "spread": {"mean": spread, "sd": max(square - spread**2, 0.0) ** 0.5} if paired else None,
        "stats": _summed(facts, STATS if paired else STATS[:1]) if watched else {},
        **_clocked(facts),
        **_counted(facts),
    }


def _summed(facts: list[Facts], names: Sequence[str]) -> dict[str, Vector]:
    """Add up the statistics of what was chosen, by what it was chosen as."""
    rows = {name: [f for fact in facts if len(f := fact[f"{name}_stats"])] for name in names}
    return {name: np.sum(several, axis=0) for name, several in rows.items() if several}


def _scored(seen: Facts, task: Task) -> Facts:
    """Return facts with the corpus scores of the model's best, of y+ and of y- of a pass."""
    stats = seen.pop("stats")
    scores = {name: task.metric.score(total) for name, total in stats.items()}
    return {**seen, "corpus": scores} if scores else seen


def _counted(facts: list[Facts]) -> Facts:
    """Add up what a source counted while it found hypotheses."""
    total = Counter[str]()
    for fact in facts:
        total.update(fact.get("counts", {}))
    return {"counts": dict(total)} if total else {}


def _clocked(facts: list[Facts]) -> Facts:
    """Join the facts that only passes with a decoder have: seconds and staleness."""
    clocks = ("decode_seconds", "optimise_seconds")
    found = {key: sum(f[key] for f in facts) for key in clocks if facts and key in facts[0]}
    stale = [fact["staleness"] for fact in facts if "staleness" in fact]
    if any(stale):
        found["staleness"] = {"mean": float(np.mean(stale)), "max": max(stale)}
    return found
