"""Workers of a real Ray give the weights of the threads to the bit, also when some are lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins import asking
from twins.lists import Array, learnable
from twins.quick import QUICK
from twins.toy import POOR, make_world
from twins.training import task_of

from tunesmith import Forests, tune
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Engine
from tunesmith.engines import ray as ray_engine
from tunesmith.engines.ray import Ray
from tunesmith.errors import InputError
from tunesmith.learn.online import with_regime
from tunesmith.learn.task import Task, Tuner
from tunesmith.presets import make_tuner
from tunesmith.sources import Live

# Not imported here: the engine sets how it is imported.
if find_spec("ray") is None:
    pytest.skip("the extra ray is not installed", allow_module_level=True)

START = np.array([0.002, 0.05, -0.03, 0.04])
METRIC = "bleu:tokenize=none"
# One preset for each kind of question, and each regime of online tuners.
CASES = {
    "mira in order": ("mira", None),
    "mira in batches": ("mira", "batch=3"),
    "mira mixed": ("mira", "shards=4,mix=2"),
    "mira apart": ("mira", "shards=3,mix=0"),
    "adagrad mixed": ("adagrad", "shards=2,mix=3"),
    "kbmira mixed": ("kbmira", "shards=2,mix=2"),
    "mert": ("mert", None),
    "pro": ("pro", None),
    "risk": ("risk", None),
    "rampion": ("rampion", None),
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


def test_forests_give_the_same(engines: dict[int, Ray]) -> None:
    task = task_of(Forests.of_lists(learnable(2)), "bleu", -5.0, 5.0)
    for preset in ("mert", "risk"):
        found, wanted = (epochs(of(preset, None), task, each) for each in (engines[2], THREADS))
        assert np.array_equal(found, wanted)


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
    cases = [("mira", "shards=2,mix=2", 2), ("mira", "delay=2,batch=2", 1), ("mert", None, 4)]
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


def test_errors_of_questions_arrive_whole(engines: dict[int, Ray]) -> None:
    crew = engines[2].crew(None, 1)
    with pytest.raises(InputError, match=r"^file:3: bad \(do something\)$"):
        crew.ask(asking.refuse)
    assert crew.ask(asking.square, 3) == 9


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


@pytest.mark.parametrize("case", ["mira mixed", "mert"])
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
