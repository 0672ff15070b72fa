"""Workers of a real Ray give the weights of the threads to the bit, also when some are lost."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins import asking
from twins.killing import Killing
from twins.lists import Array, learnable
from twins.quick import QUICK
from twins.toy import POOR, make_world
from twins.training import task_of

from tunesmith import Forests, Pools, tune
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Engine, ray_files
from tunesmith.engines import ray as ray_engine
from tunesmith.engines.ray import Ray
from tunesmith.errors import InputError
from tunesmith.learn.master import Master
from tunesmith.learn.online import with_regime
from tunesmith.learn.task import Task, Tuner
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Bins, Spaces

# Not imported here: the engine sets how it is imported.
if find_spec("ray") is None:
    pytest.skip("the extra ray is not installed", allow_module_level=True)

START = np.array([0.002, 0.05, -0.03, 0.04])
METRIC = "bleu:tokenize=none"
# One preset for each kind of question, and each regime of online tuners.
CASES = {
    "mira in order": ("mira", None),
    "mira in batches": ("mira", "batch=3"),
    "adagrad in batches": ("adagrad", "batch=4"),
    "bounds in batches": ("rm", "batch=3"),
    "mira mixed": ("mira", "shards=4,mix=2"),
    "mira apart": ("mira", "shards=3,mix=0"),
    "adagrad mixed": ("adagrad", "shards=2,mix=3"),
    "kbmira mixed": ("kbmira", "shards=2,mix=2"),
    "mert": ("mert", None),
    "pro": ("pro", None),
    "risk": ("risk", None),
    "rampion": ("rampion", None),
    "random": ("random", None),
    "grid": ("grid", None),
}
# The questions of each batch tuner on lists, forests or bins: a worker is killed before each.
QUESTIONS = {
    ("mert", "lists"): {"_vary", "_open", "_look", "_sums"},
    ("mert", "forests"): {"_vary", "_open", "_look", "_gather", "_open_other", "drop", "_sums"},
    ("mert", "bins"): {"_vary", "_open", "_look", "_sample", "_open_other", "drop", "_sums"},
    ("pro", "lists"): {"_chosen", "_sample", "_losses", "_sums"},
    ("risk", "forests"): {"_expect", "_stats", "_slopes", "_sums"},
    ("random", "bins"): {"_sums"},
}


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[int, Ray]]:
    """One Ray for all; the engine that started it ends it."""
    made = {workers: Ray(workers, timeout=60.0) for workers in (4, 2, 1)}
    with made[4], made[2], made[1]:
        yield made


def of(preset: str, regime: str | None) -> Tuner:
    return with_regime(make_tuner(preset, QUICK[preset]), regime)


def epochs(tuner: Tuner, task: Task, engine: Engine) -> list[Array]:
    found = replace(task, engine=engine)
    return [epoch.weights for epoch in tuner.epochs(found, START, 3, None)]


def test_any_number_of_workers_gives_the_weights_of_the_threads(engines: dict[int, Ray]) -> None:
    """All cases in one test, so that seven workers start in one process of a parallel suite."""
    task = task_of(learnable(2, empty=[3]), "bleu", -5.0, 5.0)
    for case, tuner in ((case, of(*CASES[case])) for case in CASES):
        wanted = epochs(tuner, task, THREADS)
        assert len(wanted) > 1 and not np.array_equal(wanted[-1], START), case
        for engine in engines.values():
            before = engine.replaced
            assert np.array_equal(epochs(tuner, task, engine), wanted), (case, engine)
            assert engine.replaced == before, (case, engine)


def as_bins(lists: Pools) -> Bins:
    return Bins.of_lists(lists, (np.arange(lists.sentences) // 2).tolist())


SPACES: dict[str, Callable[[Pools], Spaces]] = {
    "lists": lambda lists: lists,
    "forests": Forests.of_lists,
    "bins": as_bins,
}


@pytest.mark.parametrize("kind", ["forests", "bins"])
def test_forests_and_bins_give_the_same(engines: dict[int, Ray], kind: str) -> None:
    task = task_of(SPACES[kind](learnable(2, sentences=16)), "bleu", -5.0, 5.0)
    for preset in ("mert", "risk", "pro", "grid"):
        wanted = epochs(of(preset, None), task, THREADS)
        for engine in engines.values():
            assert np.array_equal(epochs(of(preset, None), task, engine), wanted), (preset, engine)


def test_statistics_that_are_no_whole_numbers_give_the_same(engines: dict[int, Ray]) -> None:
    task = task_of(learnable(2, sentences=20), "column:worth")
    for preset in ("mert", "risk", "pro", "random"):
        wanted = epochs(of(preset, None), task, THREADS)
        for engine in engines.values():
            assert np.array_equal(epochs(of(preset, None), task, engine), wanted), (preset, engine)


def live(folder: Path, **more: Any) -> Live:
    lines, references = (
        (folder / f"dev.{side}").read_text().splitlines()[:12] for side in ("src", "tgt")
    )
    model = Model.load(folder / "model", "phrase", named=["pairs"])
    return Live(model, lines, [[text] for text in references], k=20, **more)


def test_a_decoder_at_each_worker_gives_the_same(
    engines: dict[int, Ray], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = live(make_world(tmp_path_factory.mktemp("ray")))
    cases = [
        *(("mira", "shards=2,mix=2", 2), ("mira", "delay=2,batch=2", 1), ("mert", None, 4)),
        *(("mira", "batch=5", workers) for workers in engines),
        *(("adagrad", "batch=2,delay=2,stale=gradient", workers) for workers in engines),
    ]
    for preset, regime, workers in cases:
        found, wanted = (
            tune(
                source, metric=METRIC, tuner=of(preset, regime), start=POOR["phrase"],
                iterations=2, keep="last", engine=engine,
            )
            for engine in (engines[workers], THREADS)
        )  # fmt: skip
        assert dict(found.weights) == dict(wanted.weights)
        assert found.curve == wanted.curve


# Spaces that a batch tuner learns from with a decoder, tuners that ask all workers about them, and
# numbers of workers.
DECODED = [
    *(("list", "mert", workers) for workers in (1, 2, 4)),
    *(("list", "pro", 4), ("list", "risk", 2), ("list", "random", 4)),
    *(("forest", "risk", 2), ("forest", "mert", 4), ("bins", "sa-mert", 2), ("bins", "pro", 4)),
]
# Questions about lists that workers have decoded themselves: a worker is killed before each.
HELD = {
    "list": {"_decode_lines", "_merge_found", "_exchanges", "_alone", "_exchange_some"},
    "forest": {"_decode_lines", "_merge_found", "_exchanges", "_alone", "_exchange"},
}
TIMES = {"seconds", "decode_seconds", "optimise_seconds"}


def learnt(source: Live, preset: str, engine: Engine, **more: Any) -> tuple[Any, ...]:
    """Return all that a batch tuner finds in three decodings, but for times."""
    events: list[dict[str, Any]] = []
    options: dict[str, Any] = {"iterations": 3, "keep": "last", "start": POOR["phrase"], **more}
    found = tune(
        source,
        metric=METRIC,
        tuner=of(preset, None),
        engine=engine,
        listen=events.append,
        **options,
    )
    told = [{key: event[key] for key in event if key not in TIMES} for event in events]
    return dict(found.weights), found.weights.meta["spread"], found.curve, found.oracle, told


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("held"))


def test_workers_that_keep_what_they_decode_give_the_same(
    engines: dict[int, Ray], world: Path
) -> None:
    for space, preset, workers in DECODED:
        source = live(world, space=space)
        wanted = learnt(source, preset, THREADS)
        assert len(wanted[2]) == 4 and len(wanted[0]) > 20, (space, preset)
        assert learnt(source, preset, engines[workers]) == wanted, (space, preset, workers)


def test_workers_without_lines_change_nothing(engines: dict[int, Ray], world: Path) -> None:
    for space in ("list", "forest", "bins"):
        source = live(world, space=space).subset([0, 1, 2])
        assert learnt(source, "pro", engines[4]) == learnt(source, "pro", THREADS), space


def test_lists_that_workers_decode_never_travel(
    engines: dict[int, Ray], world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver sends none, and receives at most the one hypothesis that was chosen for a line."""
    received, take = [], Pools.__setstate__

    def fail(spaces: Spaces) -> None:
        raise AssertionError(f"{spaces} is sent")

    def count(lists: Pools, state: dict[str, Any]) -> None:
        take(lists, state)
        received.append(np.diff(lists.core.starts).max(initial=0))
        assert not lists.names, "features are sent"

    for kind in (Pools, Forests):
        monkeypatch.setattr(kind, "__getstate__", fail)
    monkeypatch.setattr(Pools, "__setstate__", count)
    monkeypatch.setattr(Forests, "__setstate__", fail)
    for space, preset in (("list", "mert"), ("forest", "risk"), ("bins", "pro")):
        learnt(live(world, space=space), preset, engines[2])
    assert len(received) >= 3 * 4 * 2 and max(received) == 1


def test_tuners_that_one_worker_does_the_work_of_have_all_lists_in_one_place(
    engines: dict[int, Ray], world: Path
) -> None:
    for space, preset in (("list", "kbmira"), ("bins", "rampion")):
        source = live(world, space=space)
        more: dict[str, Any] = {"merged": True, "iterations": 2}
        wanted = learnt(source, preset, THREADS, **more)
        assert learnt(source, preset, engines[2], **more) == wanted


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 1), (0, 0)])
def test_a_stopped_run_goes_on_with_other_workers_to_the_same_weights(
    engines: dict[int, Ray], world: Path, tmp_path: Path, before: int, after: int
) -> None:
    """No workers are the threads of this process."""
    source, preset = live(world), "mert"
    run: dict[str, Any] = {"run": tmp_path / "run", "seeds": 2}
    on: dict[int, Engine] = {0: THREADS, **engines}

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and (event["run"], event["epoch"]) == (1, 1):
            raise KeyboardInterrupt

    options: dict[str, Any] = {"iterations": 2, "keep": "last", "start": POOR["phrase"]}
    options |= {"metric": METRIC, "tuner": of(preset, None)}
    with pytest.raises(KeyboardInterrupt):
        tune(source, engine=on[before], listen=stop, **options, **run)
    kept = {file.suffix for file in (tmp_path / "run" / "decoded").iterdir()}
    assert kept == ({".weights"} if before else {".weights", ".npz"})
    found = tune(source, engine=on[after], resume=True, **options, **run)
    wanted = tune(source, seeds=2, **options)
    assert dict(found.weights) == dict(wanted.weights)
    assert found.weights.meta["spread"] == wanted.weights.meta["spread"]
    assert (found.curve, found.oracle) == (wanted.curve, wanted.oracle)


def test_errors_of_questions_arrive_whole(engines: dict[int, Ray]) -> None:
    crew = engines[2].crew(None, 1)
    with pytest.raises(InputError, match=r"^file:3: bad \(do something\)$"):
        crew.ask(asking.refuse)
    assert crew.ask(asking.square, 3) == 9


def test_errors_that_the_driver_cannot_read_keep_their_message(engines: dict[int, Ray]) -> None:
    with pytest.raises(RuntimeError, match=r"^TangledError: code 7 at home$"):
        engines[2].crew(None, 1).ask(asking.tangle)


def test_files_that_vanish_from_the_drivers_machine_are_told_in_one_line(
    engines: dict[int, Ray], tmp_path: Path
) -> None:
    engines[2].crew(None, 1)
    ray, gone = ray_engine._ray(), str(tmp_path / "gone")
    away = ray_files._Fetching(ray, ray_files.shelf(ray), 60.0)
    for ask in (lambda: away.digests([gone]), lambda: list(away.pieces(gone))):
        with pytest.raises(InputError, match=r"gone: cannot read: No such file [^\n]*$"):
            ask()


def test_a_file_that_does_not_come_in_time_is_told(engines: dict[int, Ray], tmp_path: Path) -> None:
    engines[2].crew(None, 1)
    ray = ray_engine._ray()
    away = ray_files._Fetching(ray, ray_files.shelf(ray), 0.0)
    with pytest.raises(InputError, match="do not come from the driver's machine: GetTimeoutError"):
        list(away.pieces(str(tmp_path)))


class Contested(deque[int]):
    """Another thread takes the last one between a look at the length and the taking."""

    def __len__(self) -> int:
        return super().__len__() + 1


def test_several_threads_may_dismiss_crews(
    engines: dict[int, Ray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Experiments ask from several threads, on one engine."""
    engine = engines[2]
    crew = engine.crew(None, 1)
    for seat in engine._seats:
        monkeypatch.setattr(seat, "gone", Contested([12345]))
    assert crew.ask(asking.square, 3) == 9
    assert [list(each.gone) for each in engine._seats] == [[], [12345]]


def test_the_way_of_new_workers_is_packed_once_for_all(engines: dict[int, Ray]) -> None:
    """A learner's weights, say: there may be a million of them and a thousand workers."""
    crew = engines[4].crew(None, 1)
    assert isinstance(crew, ray_engine._Actors)
    crew.settle([(asking.start, [(10,)] * 4), (asking.add, [(place,) for place in range(4)])])
    shared, _ = zip(*crew._log, strict=True)
    assert len({id(packed) for _, packed in shared}) == 1
    assert crew.ask_all(asking.total, [()] * 4) == [10, 11, 12, 13]


def test_shares_that_cannot_be_read_are_told(engines: dict[int, Ray]) -> None:
    with pytest.raises(InputError, match="no such share"):
        engines[2].crew(Broken(), 1).ask(asking.square, 3)


class Broken:
    """A share that only the driver has."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _refused, ()


def _refused() -> None:
    raise InputError("no such share")


# Faults.


def test_a_lost_worker_is_replaced_and_nothing_counts_twice(
    engines: dict[int, Ray], tmp_path: Path
) -> None:
    """It dies after it has counted, before it can answer."""
    engine = engines[2]
    crew, before = engine.crew(None, 1), engine.replaced
    crew.ask_all(asking.start, [(10,), (20,)])
    assert crew.ask_all(asking.add, [(1,), (2,)]) == [11, 22]
    fatal = str(tmp_path / "first")
    assert crew.ask_all(asking.add, [(1, fatal), (2,)]) == [12, 24]
    assert crew.ask_all(asking.total, [(), ()]) == [12, 24]
    assert engine.replaced == before + 1
    # The questions since the crew settled are all that a new worker is asked.
    crew.settle([(asking.start, [(100,), (200,)])])
    for number in asking.processes(engine):
        asking.kill(number)
    assert crew.ask_all(asking.total, [(), ()]) == [100, 200]
    assert engine.replaced == before + 3


def test_what_a_worker_has_grown_to_outlives_it(engines: dict[int, Ray]) -> None:
    """Questions that begin anew do not undo it; each growth undoes what was begun."""
    engine = engines[2]
    crew = engine.crew(None, 1)
    for amount in (1, 2):
        crew.ask_all(asking.enlarge, [(amount,), (10 * amount,)])
        crew.ask_all(asking.start, [(5,), (6,)])
        crew.ask_all(asking.add, [(1,), (1,)])
    crew.ask_all(asking.start, [(7,), (8,)])
    for number in asking.processes(engine):
        asking.kill(number)
    assert crew.ask_all(asking.held, [(), ()]) == [(3, 7), (30, 8)]
    crew.ask_all(asking.enlarge, [(4,), (40,)])
    for number in asking.processes(engine):
        asking.kill(number)
    assert crew.ask_all(asking.held, [(), ()]) == [(7, 0), (70, 0)]


@pytest.mark.parametrize(
    # A minute for each kind.
    "space",
    [pytest.param(space, marks=[] if space == "list" else pytest.mark.torture) for space in HELD],
)
def test_a_worker_that_holds_what_it_decoded_is_killed_before_each_question(
    engines: dict[int, Ray], world: Path, space: str
) -> None:
    """Its successor decodes again, with the weights of each round, and merges in the same order."""
    source = live(world, space=space)
    engine, before = Killing(engines[2], (0, 2), space), engines[2].replaced
    assert learnt(source, "mert", engine) == learnt(source, "mert", THREADS)
    shared = {"_statistics", "_influence", "_deviations", *QUESTIONS["mert", f"{space}s"]}
    assert set(engine.killed) == set(engine.asked) == HELD[space] | shared
    assert engines[2].replaced >= before + len(engine.killed)


def test_answers_of_several_workers_keep_their_order_when_some_are_lost(
    engines: dict[int, Ray], tmp_path: Path
) -> None:
    crew, before = engines[2].crew(None, 1), engines[2].replaced
    fatal = {number: str(tmp_path / f"{number}") for number in (3, 4)}
    asked = [(number, fatal.get(number, "")) for number in range(12)]
    assert list(crew.map(asking.square, asked)) == [number**2 for number in range(12)]
    # A question that waited behind a fatal one is no reason to replace the new worker.
    assert engines[2].replaced == before + 2


def test_a_question_that_ends_every_worker_is_given_up(
    engines: dict[int, Ray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "ATTEMPTS", 2)
    before = engines[1].replaced
    with pytest.raises(InputError, match="workers were lost with the question end") as refused:
        engines[1].crew(None, 1).ask(asking.end)
    # If Ray tells late that a worker had begun, its loss counts as one at the start: then more
    # than two are lost. Each of them was replaced, and the message counts them all.
    lost = int(refused.value.message.split()[0])
    assert 2 <= lost < 2 + ray_engine.STARTS
    assert engines[1].replaced == before + lost


@pytest.mark.parametrize("case", ["mira mixed", "mira in batches", "mert"])
def test_runs_whose_workers_are_killed_end_with_the_same_weights(
    engines: dict[int, Ray], case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    tuner, task = of(*CASES[case]), task_of(learnable(2), "bleu", -5.0, 5.0)
    engine, rng = engines[2], random.Random(case)
    wanted, found = epochs(tuner, task, THREADS), []
    before = engine.replaced
    for number, epoch in enumerate(tuner.epochs(replace(task, engine=engine), START, 3, None)):
        found.append(epoch.weights)
        if number < 2:
            asking.kill(rng.choice(asking.processes(engine)))
    assert np.array_equal(found, wanted)
    assert engine.replaced > before
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("preset", "kind"), QUESTIONS)
def test_a_worker_killed_before_each_question_changes_no_weight(
    engines: dict[int, Ray], preset: str, kind: str
) -> None:
    """The first time that it is asked, and the third."""
    tuner, task = of(preset, None), task_of(SPACES[kind](learnable(2)), "bleu", -5.0, 5.0)

    def found(engine: Engine) -> list[tuple[Array, tuple[float, float]]]:
        chosen = replace(task, engine=engine)
        return [
            (epoch.weights, chosen.evaluate(epoch.weights))
            for epoch in tuner.epochs(chosen, START, 3, None)
        ]

    engine, before = Killing(engines[2], (0, 2), f"{preset} {kind}"), engines[2].replaced
    for (weights, reached), (other, wanted) in zip(found(engine), found(THREADS), strict=True):
        assert np.array_equal(weights, other) and reached == wanted
    assert set(engine.killed) == set(engine.asked) == QUESTIONS[preset, kind]
    assert engines[2].replaced >= before + len(engine.killed)


@pytest.mark.parametrize(
    "regime", ["batch=4", "batch=2,delay=3,stale=gradient", "batch=2,delay=3,stale=gradient,any"]
)
def test_workers_that_decode_for_one_learner_are_killed_and_no_sentence_is_lost_or_doubled(
    engines: dict[int, Ray], tmp_path_factory: pytest.TempPathFactory, regime: str
) -> None:
    """A worker is killed in each pass, when it has answered some of its questions."""
    source, engine = live(make_world(tmp_path_factory.mktemp("killed"))), engines[2]
    ordered = not regime.endswith("any")
    tuner = of("adagrad", regime.replace("any", "ordered=false"))
    before, killed = engine.replaced, 0

    def learnt(on: Engine) -> tuple[dict[str, float], list[int]]:
        events: list[dict[str, Any]] = []
        found = tune(
            source, metric=METRIC, tuner=tuner, start=POOR["phrase"], iterations=3, keep="last",
            engine=on, listen=events.append,
        )  # fmt: skip
        passes = [event for event in events if event["event"] == "epoch"]
        return dict(found.weights), [event["visits"] for event in passes]

    numbers, rng = set(asking.processes(engine)), random.Random(regime)
    step = Master._step

    def stepped(self: Master, *args: Any) -> Any:
        nonlocal killed
        if rng.random() < 0.2 and killed < 4:
            # Those that were replaced meanwhile have another number.
            asking.kill(rng.choice(asking.processes(engine)))
            killed += 1
        return step(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Master, "_step", stepped)
        found = learnt(engine)
    assert killed > 1 and engine.replaced > before
    assert numbers != set(asking.processes(engine))
    assert len(found[1]) > 1 and set(found[1]) == {source.sentences}
    if ordered:
        assert found == learnt(THREADS)


def test_a_worker_that_hangs_is_replaced(engines: dict[int, Ray], tmp_path: Path) -> None:
    with Ray(1, timeout=3.0) as engine:
        crew = engine.crew(None, 1)
        assert crew.ask(asking.halt, str(tmp_path / "first")) == "answered"
        assert engine.replaced == 1


def test_a_ray_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises a plain exception when the machine is too busy."""

    def busy(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nThis could happen.")

    monkeypatch.setattr(ray_engine._ray(), "init", busy)
    with pytest.raises(InputError, match=r"no Ray on this machine: .* timed out during startup"):
        Ray(1)._connect()


@pytest.mark.parametrize("place", ["", "/a/folder/of/which/the/name/is/long"])
def test_a_ray_of_ones_own_has_a_folder_that_nobody_else_enters(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """There are pickles in it that workers read."""
    found = list[Path]()

    def init(**given: Any) -> None:
        found.append(Path(given["_temp_dir"]).parent)
        assert found[0].stat().st_mode & 0o777 == 0o700

    monkeypatch.setattr(ray_engine._ray(), "init", init)
    monkeypatch.setattr(ray_engine._ray(), "shutdown", lambda: None)
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    if place:
        monkeypatch.setenv("TMPDIR", place)
    with Ray(1) as engine:
        engine._connect()
        assert len(str(found[0])) < ray_engine.ROOM + len("/ray-12345678") + 1
    assert not found[0].exists()


def test_processes_of_a_ray_that_did_not_start_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They end when this process exits."""
    found, last = list[Path](), list[Callable[[], None]]()

    def init(**given: Any) -> None:
        found.append(Path(given["_temp_dir"]).parent)
        raise Exception("The current node timed out during startup.")

    def register(call: Callable[..., None], *args: Any, **named: Any) -> None:
        last.append(lambda: call(*args, **named))

    monkeypatch.setattr(ray_engine._ray(), "init", init)
    monkeypatch.setattr("atexit.register", register)
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    engine = Ray(1)
    with pytest.raises(InputError, match="timed out"):
        engine._connect()
    engine.close()
    (found[0] / "r" / "logs").mkdir(parents=True)
    for call in reversed(last):
        call()
    assert not found[0].exists()
