"""Workers that select for one learner: the weights of one process to the bit, nothing lost."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins.lists import Array, learnable
from twins.pickling import Pickling
from twins.quick import FORCED, QUICK
from twins.toy import POOR, make_world
from twins.training import task_of

from tunesmith import Forests, Result, Weights, _core, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Engine, Pool
from tunesmith.errors import InputError
from tunesmith.learn import selectors, updates
from tunesmith.learn.gains import Gain
from tunesmith.learn.online import Learner, Online, Regime, Schedule
from tunesmith.learn.task import Task
from tunesmith.learn.versions import ENTRIES, Change, Moved, Versions
from tunesmith.metrics import get_metric
from tunesmith.presets import PRESETS, make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Bins
from tunesmith.tuning.rounds import Following

START = np.array([0.002, 0.05, -0.03, 0.04])
METRIC = "bleu:tokenize=none"
SPLIT = ("mira", "mira-hildreth", "adagrad", "arow", "perceptron", "kbmira")
WHOLE = ("rm", "rm-cp", "mira-cp")
LIVE = ("mira", "mira-hildreth", "adagrad", "perceptron")
SPACES: list[tuple[Kind, str]] = [
    ("phrase", "list"),
    ("hiero", "list"),
    ("hiero", "forest"),
    ("phrase", "bins"),
]
BATCHES, LATE = Regime(batch=5), Regime(batch=2, delay=2, stale="gradient")


def of(preset: str, regime: Regime) -> Online:
    return replace(cast(Online, make_tuner(preset, QUICK[preset])), regime=regime)


def epochs(tuner: Online, task: Task, engine: Engine) -> list[tuple[Any, ...]]:
    found = replace(task, engine=engine)
    return [
        (each.weights.tobytes(), repr(each.facts), each.last)
        for each in tuner.epochs(found, START, 3, None)
    ]


def test_every_online_preset_is_tried() -> None:
    online = {name for name in PRESETS if isinstance(make_tuner(name), Online)}
    assert online - FORCED == {*SPLIT, *WHOLE, *(name for name in online if name[:3] == "sa-")}
    for preset in (*SPLIT, *WHOLE):
        assert of(preset, Regime()).learner.splits == (preset in SPLIT)


@pytest.mark.parametrize("preset", SPLIT)
@pytest.mark.parametrize("forests", [False, True], ids=["lists", "forests"])
def test_batches_over_workers_are_those_of_one_process(preset: str, forests: bool) -> None:
    lists = learnable(2, empty=[3])
    task = task_of(Forests.of_lists(lists) if forests else lists, "bleu", -5.0, 5.0)
    tuner = of(preset, Regime(batch=3))
    wanted = epochs(tuner, task, THREADS)
    assert len(wanted) > 1 and wanted[-1][0] != START.tobytes()
    for workers in (1, 2, 4):
        engine = Pickling(workers)
        assert epochs(tuner, task, engine) == wanted
        if workers > 1:
            assert all("_select" in questions for questions in engine.asked)
            assert not any("_walk" in questions for questions in engine.asked)


@pytest.mark.parametrize("preset", WHOLE)
def test_updates_that_select_again_stay_at_one_worker(preset: str) -> None:
    task, tuner = task_of(learnable(2), "bleu"), of(preset, Regime(batch=3))
    engine = Pickling(3)
    assert epochs(tuner, task, engine) == epochs(tuner, task, THREADS)
    assert "_walk" in engine.asked[0] and "_select" not in engine.asked[0]


def test_batches_of_bins_are_those_of_one_process() -> None:
    """A step on all bins of its lines."""
    lists = learnable(2)
    bins = Bins.of_lists(lists, (np.arange(lists.sentences) // 2).tolist())
    task, tuner = task_of(bins, "bleu"), of("kbmira", Regime(batch=2))
    engine = Pickling(2)
    assert epochs(tuner, task, engine) == epochs(tuner, task, THREADS)
    assert "_select" in engine.asked[1]


GAINS = [
    Gain(),
    Gain("background", scale="background"),
    Gain("background", history="oracle"),
    Gain("context"),
]


@given(
    gain=st.sampled_from(GAINS),
    average=st.sampled_from(["all", "updates", "epoch", "none"]),
    update=st.sampled_from(
        [
            updates.PassiveAggressive(0.1, scale_by_oracle=True),
            updates.Hildreth(0.1),
            updates.AdaGrad("logistic", 0.1, 0.01),
            updates.Sgd("hinge", 0.1, l2=0.01),
            updates.Arow(),
            updates.Perceptron(mean=True),
        ]
    ),
    selector=st.sampled_from(
        [
            selectors.HopeFear(),
            selectors.Pairs(40, 0.0, 4),
            selectors.Lists(3, True),
            selectors.HopeFear(k=3),
        ]
    ),
    batch=st.integers(2, 13),
    proposals=st.integers(1, 2),
    losing=st.sampled_from([0.0, 0.2]),
)
def test_gains_averages_and_lazy_steps_are_the_same(
    gain: Gain, average: Any, update: Any, selector: Any, batch: int, proposals: int, losing: float
) -> None:
    tuner = Online(
        learner=Learner(selector=selector, update=update, gain=gain),
        schedule=Schedule(passes=3, average=average, slow_down=0.9, proposals=proposals),
        regime=Regime(batch=batch),
    )
    task = task_of(learnable(2, empty=[3]), "bleu", -5.0, 5.0)
    assert epochs(tuner, task, Pickling(2, losing=losing)) == epochs(tuner, task, THREADS)


def test_bounds_of_several_kinds_in_one_problem_are_split() -> None:
    """Hildreth's problem takes all rounds of a selector at once; RM-PA does not."""
    bounded = selectors.Bounded(selectors.HopeFear(), 1.0, 0.01)
    tuner = of("mira-hildreth", Regime(batch=4))
    tuner = replace(tuner, learner=replace(tuner.learner, selector=bounded))
    assert tuner.learner.splits
    task = task_of(learnable(2), "bleu")
    assert epochs(tuner, task, Pickling(2)) == epochs(tuner, task, THREADS)


@pytest.mark.parametrize("preset", SPLIT)
def test_a_run_goes_on_with_another_number_of_workers(preset: str) -> None:
    task, tuner = task_of(learnable(2), "bleu"), of(preset, Regime(batch=3))
    apart = replace(task, engine=Pickling(2))
    for first, second in ((task, apart), (apart, task)):
        whole = list(tuner.epochs(first, START, 3, None))
        rest = list(tuner.epochs(second, START, 3, whole[0].state))
        assert len(rest) == len(whole) - 1 > 0
        for found, wanted in zip(rest, whole[1:], strict=True):
            assert np.array_equal(found.weights, wanted.weights)
            assert repr(found.facts) == repr(wanted.facts)


@pytest.mark.parametrize("regime", [Regime(batch=3), Regime(shards=2, mix=2), Regime()])
@pytest.mark.parametrize("average", ["none", "all"])
def test_a_run_goes_on_within_a_pass(regime: Regime, average: Any) -> None:
    """Gains in context have moved on since the pass began."""
    learner = Learner(
        selector=selectors.HopeFear(), update=updates.PassiveAggressive(c=0.1), gain=Gain("context")
    )
    schedule = Schedule(passes=3, average=average, proposals=3)
    tuner = Online(learner=learner, schedule=schedule, regime=regime)
    for metric in ("bleu", "chrf"):
        task = task_of(learnable(2), metric)
        for engine in (THREADS, Pickling(2)):
            whole = list(tuner.epochs(replace(task, engine=engine), START, 3, None))
            for done in range(1, len(whole)):
                rest = list(tuner.epochs(task, START, 3, whole[done - 1].state))
                assert len(rest) == len(whole) - done
                for found, wanted in zip(rest, whole[done:], strict=True):
                    assert np.array_equal(found.weights, wanted.weights)


# With a live decoder.


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("master"))


def live(world: Path, kind: Kind, **more: Any) -> Live:
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:11] for side in ("src", "tgt")
    )
    model = Model.load(world / "model", kind, named=["pairs"])
    return Live(model, ["", *lines], [[text] for text in ["", *references]], k=20, **more)


def learnt(
    world: Path, tuner: Online, engine: Engine, kind: Kind = "phrase", **more: Any
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the last weights, and what events say of the passes."""
    events: list[dict[str, Any]] = []
    source = live(world, kind, space=more.pop("space", "list"), threads=more.get("threads", 0))
    found: Result = tune(
        source, metric=METRIC, tuner=tuner, start=POOR[kind], iterations=3, keep="last",
        engine=engine, listen=events.append, **more,
    )  # fmt: skip
    passes = [
        {key: value for key, value in event.items() if "seconds" not in key and key != "time"}
        for event in events
        if event["event"] == "epoch"
    ]
    return dict(found.weights), passes


@pytest.mark.parametrize(("kind", "space"), SPACES)
@pytest.mark.parametrize("preset", LIVE)
def test_batches_that_workers_decode_are_those_of_one_process(
    world: Path, preset: str, kind: Kind, space: str
) -> None:
    """New features included, and an empty sentence; a late gradient that is not late as well."""
    tuner = of(preset, BATCHES)
    wanted = learnt(world, tuner, THREADS, kind, space=space)
    assert any(":" in name for name in wanted[0])
    for workers in (2, 4):
        engine = Pickling(workers)
        assert learnt(world, tuner, engine, kind, space=space) == wanted
    punctual = replace(tuner, regime=replace(BATCHES, stale="gradient"))
    for each in (THREADS, Pickling(2)):
        assert learnt(world, punctual, each, kind, space=space) == wanted


@pytest.mark.parametrize(("kind", "space"), SPACES)
@pytest.mark.parametrize("preset", LIVE)
def test_stale_gradients_in_order_are_the_same_everywhere(
    world: Path, preset: str, kind: Kind, space: str
) -> None:
    tuner = of(preset, LATE)
    wanted = learnt(world, tuner, THREADS, kind, space=space)
    for each in (Pickling(1), Pickling(2), Pickling(4)):
        assert learnt(world, tuner, each, kind, space=space) == wanted
    for threads in (1, 3):
        assert learnt(world, tuner, THREADS, kind, space=space, threads=threads) == wanted
    assert wanted[1][0]["staleness"] == {"mean": 1.5, "max": 2}


@pytest.mark.parametrize("regime", [BATCHES, LATE], ids=["batches", "late"])
def test_violations_that_workers_find_are_those_of_one_process(world: Path, regime: Regime) -> None:
    """The counts of what can be reached as well."""
    wanted = learnt(world, of("maxforce", regime), THREADS)
    assert wanted[1][0]["counts"]["pairs"] == live(world, "phrase").sentences
    for engine in (Pickling(2), Pickling(3, losing=0.3)):
        assert learnt(world, of("maxforce", regime), engine) == wanted


def test_stale_gradients_are_neither_stale_lists_nor_batches(world: Path) -> None:
    found = [
        learnt(world, of("adagrad", regime), THREADS)[0]
        for regime in (LATE, replace(LATE, stale="lists"), Regime(batch=2))
    ]
    assert found[0] != found[1] != found[2] != found[0]


@pytest.mark.parametrize("regime", [BATCHES, LATE], ids=["batches", "late"])
@pytest.mark.parametrize("preset", LIVE)
def test_lost_workers_change_nothing(world: Path, preset: str, regime: Regime) -> None:
    engine = Pickling(3, losing=0.3)
    tuner = of(preset, regime)
    assert learnt(world, tuner, engine) == learnt(world, tuner, THREADS)
    assert len(engine.lost) > 5


@pytest.mark.parametrize("losing", [0.0, 0.3])
@pytest.mark.parametrize("preset", ["mira", "adagrad"])
def test_every_sentence_counts_once_in_whatever_order_answers_come(
    world: Path, preset: str, losing: float
) -> None:
    tuner = of(preset, Regime(batch=2, delay=3, ordered=False, stale="gradient"))
    sentences = live(world, "phrase").sentences
    for engine in (THREADS, Pickling(2, shuffling=True, losing=losing)):
        _, passes = learnt(world, tuner, engine)
        assert len(passes) > 1 and {each["visits"] for each in passes} == {sentences}
        assert all(each["staleness"]["max"] >= 3 for each in passes)


@pytest.mark.parametrize("regime", [BATCHES, LATE], ids=["batches", "late"])
def test_limits_of_features_that_workers_meet_hold(world: Path, regime: Regime) -> None:
    some = learnt(world, of("mira", regime), THREADS)[0]
    met = next(name for name in some if ":" in name)
    more: dict[str, Any] = {"bounds": {"WP:*": (-1e-4, 1e-4)}, "fixed": {met: 0.25}}
    wanted = learnt(world, of("mira", regime), THREADS, **more)
    assert learnt(world, of("mira", regime), Pickling(2, losing=0.2), **more) == wanted
    assert wanted[0][met] == 0.25
    sparse = [abs(value) for name, value in wanted[0].items() if ":" in name and name != met]
    assert 0.0 < max(sparse) <= 1e-4


@pytest.mark.parametrize("regime", [BATCHES, LATE], ids=["batches", "late"])
def test_a_run_with_a_decoder_that_was_stopped_goes_on_elsewhere(
    world: Path, tmp_path: Path, regime: Regime
) -> None:
    tuner = of("adagrad", regime)
    wanted = learnt(world, tuner, THREADS)

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    source, run = live(world, "phrase", space="list"), tmp_path / "run"
    asked: dict[str, Any] = {
        "metric": METRIC, "tuner": tuner, "start": POOR["phrase"], "iterations": 3,
        "keep": "last", "run": run,
    }  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        tune(source, **asked, engine=Pickling(2), listen=stop)
    found = tune(source, **asked, engine=Pickling(3), resume=True)
    assert dict(found.weights) == wanted[0]


def test_bins_of_one_line_have_no_stale_gradient(world: Path) -> None:
    tuner = of("mira", Regime(delay=2, stale="gradient"))
    with pytest.raises(InputError, match=r"bins of one line.*give batch=2"):
        learnt(world, tuner, THREADS, space="bins")


# What travels.


def following(world: Path) -> tuple[Following, Online, _core.Learner]:
    source, start = live(world, "phrase"), Weights(POOR["phrase"])
    found = source.decode(start, 1)
    names = list(dict.fromkeys([*found.names, *start]))
    free = np.full(len(names), np.inf)
    task = Following(
        found, get_metric(METRIC), -free, free, source=source, features=names, bounds={}, fixed={}
    )
    tuner = of("mira", BATCHES)
    vector = start.vector(names)
    return task, tuner, tuner.learner.kernel(task, vector, seed=3, batch=5, average="all")


def chosen(task: Task, tuner: Online, learner: _core.Learner, lines: Sequence[int]) -> Any:
    return task.select(learner, np.array(lines, np.uint32), 1, tuner, Pool(1)).parts


def test_selecting_leaves_a_learner_alone_and_constraints_are_plain_arrays(world: Path) -> None:
    task, tuner, learner = following(world)
    before = learner.names, learner.state()
    parts = chosen(task, tuner, learner, [1, 2, 3])
    assert learner.names == before[0]
    assert all(np.array_equal(before[1][key], each) for key, each in learner.state().items())
    assert sum(len(part) for part in parts) > 0
    for part in parts:
        copy = pickle.loads(pickle.dumps(part))
        assert repr(copy.arrays()) == repr(part.arrays())
        assert (len(copy), copy.scored) == (len(part), part.scored)


def test_a_line_that_is_missing_or_there_twice_is_refused(world: Path) -> None:
    task, tuner, learner = following(world)
    parts, lines = chosen(task, tuner, learner, [1, 2, 3]), np.array([3, 1, 2], np.uint32)
    for bad in (parts[:2], [*parts, parts[0]], [parts[0], parts[1], parts[1]]):
        with pytest.raises(ValueError, match="twice, or not at all"):
            learner.meet(bad, lines)
    with pytest.raises(ValueError, match="twice, or not at all"):
        learner.meet(parts, np.array([3, 1, 4], np.uint32))
    with pytest.raises(ValueError, match="features that were not met"):
        learner.apply(parts, lines)
    learner.meet(parts, lines)
    with pytest.raises(ValueError, match="no pass is open"):
        learner.apply(parts, lines)
    learner.open(True)
    learner.apply(parts, lines)
    assert learner.close()["visits"] == 3


def test_arrays_that_do_not_belong_together_are_refused(world: Path) -> None:
    task, tuner, learner = following(world)
    (part,) = chosen(task, tuner, learner, [1])
    good = part.arrays()
    (rows,) = good["rounds"]
    bad_rows = [
        {**rows, "starts": rows["starts"][:-1]},
        {**rows, "starts": rows["starts"] + np.uint64(1)},
        {**rows, "values": rows["values"][1:]},
        {**rows, "kinds": rows["kinds"] + np.uint8(7)},
        {**rows, "numbers": rows["numbers"][1:]},
        {**rows, "margins": np.zeros(len(rows["groups"]) + 1)},
    ]
    for bad in ({**good, "flags": good["flags"][1:]}, *({**good, "rounds": [b]} for b in bad_rows)):
        with pytest.raises(ValueError, match="do not belong together"):
            _core.Selected.of(bad)


def test_a_learner_that_selects_takes_no_step(world: Path) -> None:
    task, tuner, learner = following(world)
    made = {"seed": 3, "batch": 5, "average": "all", "selecting": True}
    copy = tuner.learner.kernel(task, learner.weights, **cast(Any, made))
    with pytest.raises(RuntimeError, match="takes no steps"):
        copy.run(np.array([1], np.uint32), 1)


WEIGHT = st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")]) | st.floats()


@given(st.lists(st.tuples(WEIGHT, WEIGHT)), st.lists(WEIGHT), st.booleans())
def test_weights_are_the_same_to_the_bit_after_their_changes(
    pairs: list[tuple[float, float]], more: list[float], known: bool
) -> None:
    earlier = np.array([one for one, _ in pairs], np.float64) if known else None
    now = np.array([*(two for _, two in pairs), *more], np.float64)
    moved = Moved.since(earlier, now)
    assert moved.onto(earlier).tobytes() == now.tobytes()
    assert len(pickle.dumps(moved)) <= len(pickle.dumps(Moved.since(None, now))) + 100


def test_mixing_sends_new_names_once_and_weights_that_moved(world: Path) -> None:
    tuner = of("adagrad", Regime(shards=3, mix=6))
    wanted = learnt(world, tuner, THREADS)
    heard = list[tuple[str, Any, Any]]()
    engine = Pickling(2, losing=0.1, heard=heard)
    assert learnt(world, tuner, engine) == wanted and engine.lost
    met = [names for name, _, answer in heard if name == "_met" for names in answer]
    told = [args[2] for name, args, _ in heard if name == "_share"]
    assert len(met) > 20 and told
    # Two workers are told of a feature once each.
    assert max(Counter(name for names in told for name in names).values()) <= 2
    sent = [args[1] for name, args, _ in heard if name == "_mix"]
    assert any(each.ids is not None for each in sent)


@st.composite
def changes(draw: st.DrawFn) -> list[Change]:
    several = []
    for number in range(draw(st.integers(1, 3 * ENTRIES))):
        ids = np.array(draw(st.lists(st.integers(0, 9), unique=True)), np.uint32)
        values = np.full(len(ids), float(number + 1))
        context = np.full((2, 1), number) if draw(st.booleans()) else None
        lines = np.array(draw(st.lists(st.integers(0, 1), max_size=2)), np.uint32)
        stats = np.full(2 * len(lines), 0.5 + number)
        several.append(Change([f"f{number}"], ids, values, lines, stats, context))
    return several


class State:
    """A slow, obvious learner that changes are applied to."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.weights: Array = np.zeros(10)
        self.seen: list[tuple[float, ...]] = []

    def take(self, change: Change) -> None:
        self.names += change.names
        self.weights[change.ids] = change.values
        if change.context is not None:
            self.seen = [tuple(change.context[:, 0])]
        self.seen += zip(change.lines.tolist(), change.stats.reshape(-1, 2)[:, 0], strict=True)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, State)
        same = np.array_equal(self.weights, other.weights)
        return same and (self.names, self.seen) == (other.names, other.seen)


@given(changes(), st.data())
def test_joined_changes_lead_to_the_same_version(
    several: list[Change], data: st.DataObject
) -> None:
    """Two workers that are asked now and then, and a third that goes back to the base."""
    versions, truth, workers = Versions(2), State(), [State(), State()]
    known = [0, 0]
    for change in several:
        versions.add(change)
        truth.take(change)
        for place in range(2):
            if data.draw(st.integers(0, 9)) == 0:
                since, missed = versions.send(place)
                assert since == known[place]
                workers[place].take(missed)
                known[place] = versions.now
                assert workers[place] == truth
        versions.compact([0])
    assert len(versions._log) <= ENTRIES + 1
    anew = State()
    anew.take(versions.between(0, versions.now))
    assert anew == truth


def test_a_worker_refuses_a_sentence_that_it_does_not_hold(world: Path) -> None:
    """It has no text of it: a translation of nothing would be learnt from without a word."""
    source = live(world, "phrase")
    kept = np.arange(source.sentences) % 2 == 0
    thin, translator = source.thinned(kept), source.model.translator()
    assert thin.found(translator, [0, 2], 5).lines == 2
    with pytest.raises(RuntimeError, match="another one holds"):
        thin.found(translator, [0, 1], 5)
