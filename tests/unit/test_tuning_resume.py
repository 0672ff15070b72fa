"""A run that is stopped anywhere goes on to the same weights and events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from twins.lists import Array, learnable
from twins.quick import ON_LISTS, QUICK

from tunesmith import InputError, Result, tune
from tunesmith.learn import selectors, updates
from tunesmith.learn.baselines import RandomSearch
from tunesmith.learn.gains import SENTENCE, Gain
from tunesmith.learn.online import Learner, Online, Regime, Schedule, with_regime
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.runs.config import settings_of
from tunesmith.tuning import journal, runner
from tunesmith.tuning import result as results

TIMES = {"time", "seconds"}
# What no test would find: nothing differs.
UNCLEAR = {
    "bootstrap": {"p": 1.0, "ci": [0.0, 0.0], "difference": 0.0},
    "randomisation": {"p": 1.0},
}


@pytest.fixture(autouse=True)
def checkpoints_at_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "CHECKPOINT_SECONDS", 0.0)
    # Most of the time of so small a run, and no part of what is resumed.
    monkeypatch.setattr(results, "_significance", lambda *_: UNCLEAR)


class Stopped(Exception):  # noqa: N818
    """What the listener raises."""


class StopAt:
    """Raise at the event with a number."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.seen = 0

    def __call__(self, event: dict[str, Any]) -> None:
        self.seen += 1
        if self.seen > self.last:
            raise Stopped


def timeless(path: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in event.items() if key not in TIMES}
        for event in RunDirectory(path).open().events()
    ]


def files(path: Path) -> dict[str, bytes]:
    """The weights of every epoch and of the end."""
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*.toml"))}


def same(path: Path, whole: Path, result: Result, wanted: Result) -> None:
    assert dict(result.weights) == dict(wanted.weights)
    assert (result.tuned, result.refused) == (wanted.tuned, wanted.refused)
    assert (result.heldout, result.significance) == (wanted.heldout, wanted.significance)
    assert timeless(path) == timeless(whole)
    assert files(path) == files(whole)
    assert RunDirectory(path).finished


def stop_everywhere(tmp_path: Path, **asked: Any) -> int:
    """Stop at every event in turn, go on each time, compare; return the number of events."""
    whole = tmp_path / "whole"
    wanted = tune(learnable(2, 8, 6), run=whole, threads=1, **asked)
    count = len(timeless(whole))
    for last in range(count):
        path = tmp_path / f"stopped-{last}"
        with pytest.raises(Stopped):
            tune(learnable(2, 8, 6), run=path, listen=StopAt(last), threads=1, **asked)
        assert not RunDirectory(path).finished
        result = tune(learnable(2, 8, 6), run=path, resume=True, threads=1, **asked)
        same(path, whole, result, wanted)
    return count


@pytest.mark.parametrize("preset", ON_LISTS)
def test_a_run_stopped_at_any_event_resumes_to_the_same_weights(
    tmp_path: Path, preset: str
) -> None:
    assert stop_everywhere(tmp_path, preset=preset, options=QUICK[preset]) >= 4


@pytest.mark.parametrize("preset", ["kbmira", "mert"])
def test_runs_and_folds_stopped_at_any_event_resume_to_the_same_result(
    tmp_path: Path, preset: str
) -> None:
    options = {"kbmira": {"passes": 2}, "mert": {"restarts": 1}}[preset]
    events = stop_everywhere(tmp_path, preset=preset, options=options, seeds=2, folds=2)
    assert events == 1 + 4 * 3 + 1


@pytest.mark.parametrize("mix", [0, 2])
def test_a_mixed_run_with_a_falling_rate_resumes_to_the_same_weights(
    tmp_path: Path, mix: int
) -> None:
    options = {"passes": 6, "decrease": 0.7, "n": 2}
    tuner = with_regime(make_tuner("mira-hildreth", options), f"shards=2,mix={mix}")
    assert stop_everywhere(tmp_path, tuner=tuner) == 9


def test_a_run_that_ended_early_does_not_go_on_when_resumed(tmp_path: Path) -> None:
    """Passes stop when nothing is left to update; so must those of a resumed run."""

    class Twice:
        """Move for two passes, then be content."""

        def init(self, features: int, /) -> Array:
            return np.zeros(1)

        def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
            if state[0] < 16:
                separate(w)
                w[0] += 0.01
            return w, state + 1

    tuner = Online(
        learner=Learner(selector=selectors.HopeFear(), update=updates.Custom(Twice())),
        schedule=Schedule(passes=10, average="none"),
    )
    # The start, three passes of ten (the last without an update), the end of the run, the end.
    assert stop_everywhere(tmp_path, tuner=tuner, preset="kbmira") == 6


def test_a_resumed_run_can_be_stopped_again_and_again(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"preset": "rm", "options": QUICK["rm"], "seeds": 2, "threads": 1}
    wanted = tune(learnable(2, 8, 6), run=tmp_path / "whole", **asked)
    resume, attempts = False, 0
    while True:
        attempts += 1
        try:
            # The first event of a resumed run is the start, told again.
            result = tune(
                learnable(2, 8, 6), run=tmp_path / "run", resume=resume, listen=StopAt(2), **asked
            )
            break
        except Stopped:
            resume = True
        if attempts > 50:
            pytest.fail("no progress")
        if attempts > 11:
            result = tune(learnable(2, 8, 6), run=tmp_path / "run", resume=True, **asked)
            break
    same(tmp_path / "run", tmp_path / "whole", result, wanted)


def test_checkpoints_that_are_far_apart_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHECKPOINT_SECONDS", 1e9)
    assert stop_everywhere(tmp_path, preset="kbmira", options={"passes": 3}, seeds=2) == 10


def test_a_finished_run_resumes_to_its_own_result(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"preset": "kbmira", "options": QUICK["kbmira"], "threads": 1}
    wanted = tune(learnable(2), run=tmp_path / "run", **asked)
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    again = tune(learnable(2), run=tmp_path / "run", resume=True, **asked)
    assert dict(again.weights) == dict(wanted.weights)
    assert before == {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}


def test_a_run_is_not_resumed_with_other_settings(tmp_path: Path) -> None:
    pools = learnable(2)
    with pytest.raises(Stopped):
        tune(pools, "kbmira", run=tmp_path / "run", listen=StopAt(3))
    asked: dict[str, Any] = {"preset": "kbmira", "run": tmp_path / "run", "resume": True}
    others: list[dict[str, Any]] = [
        {"preset": "rm"},
        {"seed": 2},
        {"metric": "ter"},
        {"options": {"passes": 5}},
        {"keep": "last"},
    ]
    for other in others:
        with pytest.raises(InputError):
            tune(pools, **asked | other)
    with pytest.raises(InputError, match="already holds a run"):
        tune(pools, "kbmira", run=tmp_path / "run")


def test_a_run_names_the_option_of_a_tuner_that_is_not_the_same(tmp_path: Path) -> None:
    run: dict[str, Any] = {"run": tmp_path / "run", "threads": 1}
    tune(learnable(2), tuner=RandomSearch(50), **run)
    with pytest.raises(InputError, match=r"configuration: tuner\.tries was 50, now 60 "):
        tune(learnable(2), tuner=RandomSearch(60), **run, resume=True)


# Parts of a tuner of one's own


class Halfway:
    """Go part of the way to what each step asks for."""

    def __init__(self, part: float) -> None:
        self.part = part

    def init(self, features: int, /) -> Array:
        return np.zeros(0)

    def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
        rows = separate(w)
        for row, (a, b) in enumerate(pairwise(rows["starts"])):
            w[rows["ids"][a:b]] += self.part * rows["gains"][row] * rows["values"][a:b]
        return w, state


class Slotted(Halfway):
    """The same with an attribute that no `__dict__` holds."""

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        super().__init__(0.1)
        self.most = most


def best_first(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
    return [(int(gains.argmax()), int(scores.argmax()))]


def best_last(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
    return [(int(gains.argmax()), int(gains.argmin()))]


def against(place: int) -> selectors.Choose:
    def choose(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
        return [(int(gains.argmax()), place)]

    return choose


def at(place: int, scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
    return [(int(gains.argmax()), place)]


class Against:
    """A selector that is a method."""

    def __init__(self, place: int) -> None:
        self.place = place

    def choose(self, scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
        return [(int(gains.argmax()), self.place)]


HOPE, STEP = selectors.HopeFear(), updates.PassiveAggressive(0.05)


def own(
    selector: selectors.Selector = HOPE,
    update: updates.Update = STEP,
    gain: Gain = SENTENCE,
    **more: Any,
) -> Online:
    """Return a tuner of one's own, three passes long."""
    more.setdefault("schedule", Schedule(passes=3))
    return Online(learner=Learner(selector=selector, update=update, gain=gain), **more)


def bounded(bound: float, k: int = 0) -> Online:
    return own(selectors.Bounded(selectors.HopeFear(k=k), bound))


def custom(choose: selectors.Choose) -> Online:
    return own(selectors.Custom(choose))


def rule(made: updates.Rule) -> Online:
    return own(update=updates.Custom(made))


CHANGED: dict[str, tuple[Online, Online, str]] = {
    "update": (
        own(update=updates.PassiveAggressive(0.05)),
        own(update=updates.PassiveAggressive(5.0)),
        r"tuner\.learner\.update\.c was 0\.05, now 5\.0",
    ),
    "another update": (
        own(update=updates.Perceptron(0.1)),
        own(update=updates.Hildreth()),
        r'tuner\.learner\.update\.is was "Perceptron", now "Hildreth"',
    ),
    "gain": (
        own(gain=Gain("background", 0.9)),
        own(gain=Gain("background", 0.99)),
        r"tuner\.learner\.gain\.decay was 0\.9, now 0\.99",
    ),
    "kind of gain": (
        own(),
        own(gain=Gain("context")),
        r'tuner\.learner\.gain\.kind was "sentence", now "context"',
    ),
    "selector": (
        own(),
        own(selectors.HopeFear(oracle="LU")),
        r'tuner\.learner\.selector\.oracle was "M-C", now "LU"',
    ),
    "bound": (
        bounded(1.0),
        bounded(2.0),
        r"tuner\.learner\.selector\.bound was 1\.0, now 2\.0",
    ),
    "selector in a selector": (
        bounded(1.0),
        bounded(1.0, k=3),
        r"tuner\.learner\.selector\.inner\.k was 0, now 3",
    ),
    "passes": (
        own(),
        own(schedule=Schedule(passes=4)),
        r"tuner\.schedule\.passes was 3, now 4",
    ),
    "average": (
        own(),
        own(schedule=Schedule(passes=3, average="none")),
        r'tuner\.schedule\.average was "all", now "none"',
    ),
    "regime": (
        own(),
        own(regime=Regime(batch=4)),
        r"tuner\.regime\.batch was 1, now 4",
    ),
    "shards": (
        own(regime=Regime(shards=2, mix=1)),
        own(regime=Regime(shards=2, mix=2)),
        r"tuner\.regime\.mix was 1, now 2",
    ),
    "function": (
        custom(best_first),
        custom(best_last),
        r'tuner\.learner\.selector\.choose\.is was ".*best_first", now ".*best_last"',
    ),
    "nameless function": (
        custom(lambda scores, gains, seed: [(int(gains.argmax()), 0)]),
        custom(lambda scores, gains, seed: [(int(gains.argmax()), 1)]),
        r'tuner\.learner\.selector\.choose\.code was "\w+", now "\w+"',
    ),
    "function with another variable": (
        custom(against(0)),
        custom(against(1)),
        r"tuner\.learner\.selector\.choose\.reads\.place was 0, now 1",
    ),
    "partial function": (
        custom(partial(at, 0)),
        custom(partial(at, 1)),
        r"tuner\.learner\.selector\.choose\.with\.0\.0 was 0, now 1",
    ),
    "method": (
        custom(Against(0).choose),
        custom(Against(1).choose),
        r"tuner\.learner\.selector\.choose\.with\.place was 0, now 1",
    ),
    "rule": (
        rule(Halfway(0.1)),
        rule(Halfway(0.5)),
        r"tuner\.learner\.update\.rule\.part was 0\.1, now 0\.5",
    ),
    "rule with slots": (
        rule(Slotted(1)),
        rule(Slotted(2)),
        r"tuner\.learner\.update\.rule\.most was 1, now 2",
    ),
    "another rule": (
        rule(Halfway(0.1)),
        rule(Slotted(1)),
        r"tuner\.learner\.update\.rule\.is was .*Halfway.*, now .*Slotted",
    ),
}


@pytest.mark.parametrize("part", CHANGED)
def test_a_part_of_a_tuner_that_is_not_the_same_is_refused_by_name(
    tmp_path: Path, part: str
) -> None:
    before, after, message = CHANGED[part]
    asked: dict[str, Any] = {"run": tmp_path / "run", "threads": 1}
    with pytest.raises(Stopped):
        tune(learnable(2, 8, 6), tuner=before, listen=StopAt(2), **asked)
    with pytest.raises(InputError, match=f"another configuration: {message}"):
        tune(learnable(2, 8, 6), tuner=after, resume=True, **asked)
    # What was refused has spoilt nothing.
    result = tune(learnable(2, 8, 6), tuner=before, resume=True, **asked)
    assert dict(result.weights) == dict(tune(learnable(2, 8, 6), tuner=before, threads=1).weights)


@pytest.mark.parametrize(
    "make",
    [
        lambda: custom(against(1)),
        lambda: custom(partial(at, 1)),
        lambda: custom(Against(1).choose),
        lambda: custom(lambda scores, gains, seed: [(int(gains.argmax()), 2 in {0, 2, 5})]),
        lambda: rule(Slotted(2)),
        lambda: bounded(1.0, k=3),
    ],
)
def test_a_tuner_that_is_made_again_resumes(tmp_path: Path, make: Callable[[], Online]) -> None:
    asked: dict[str, Any] = {"run": tmp_path / "run", "threads": 1}
    with pytest.raises(Stopped):
        tune(learnable(2, 8, 6), tuner=make(), listen=StopAt(2), **asked)
    tune(learnable(2, 8, 6), tuner=make(), resume=True, **asked)
    assert RunDirectory(tmp_path / "run").finished


def test_settings_of_functions_are_the_same_in_every_process() -> None:
    """Sets of text come in another order in every process, and addresses differ."""
    code = """
from functools import partial
from tunesmith.runs.config import settings_of
def choose(scores, gains, seed, kinds=frozenset({"a", "b", "c", "d"})):
    def inner(kind):
        return kind in {"e", "f", "g", "h"} or choose
    return [inner(kind) for kind in kinds]
print(settings_of([choose, partial(choose, kinds={"x", "y", "z"}), lambda: inner]))
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }
    assert len(said) == 1 and "0x" not in said.pop()


def test_a_thing_that_holds_itself_has_settings() -> None:
    made = Against(1)
    made.me = made  # type: ignore[attr-defined]
    assert settings_of(made)["me"] == "itself"

    def again(count: int) -> object:
        return again(count - 1) if count else None

    assert settings_of(again)["calls"] == {"again": "itself"}


KILLED = """
import os, random, signal, sys, time
sys.path[:0] = {path!r}
from twins.lists import learnable
from tunesmith import tune
from tunesmith.tuning import journal, result
journal.CHECKPOINT_SECONDS = 0.0
result._significance = lambda *_: {unclear!r}
run, events = sys.argv[1], os.path.join(sys.argv[1], "events.jsonl")
chance = random.Random({preset!r})

def written():
    return os.stat(events).st_mtime_ns if os.path.exists(events) else 0

kills = 0
while True:
    before = written()
    child = os.fork()
    if child == 0:
        tune(learnable(2, 8, 6), {preset!r}, options={options!r}, seeds=2, threads=1, run=run,
             resume=os.path.exists(run), listen=lambda event: time.sleep(0.01))
        os._exit(0)
    if kills < 4:
        # Wait for a sign of work, then for a moment that nobody chose.
        while written() == before and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.0005)
        time.sleep(chance.uniform(0, 0.03))
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            break
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    if not os.WIFSIGNALED(status):
        sys.exit("the run failed")
    kills += 1
print(kills)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
@pytest.mark.parametrize("preset", ["mert", "kbmira", "pro", "rampion", "risk", "rm"])
def test_a_killed_run_resumes_to_the_same_weights(tmp_path: Path, preset: str) -> None:
    whole, path = tmp_path / "whole", tmp_path / "run"
    wanted = tune(learnable(2, 8, 6), preset, options=QUICK[preset], seeds=2, threads=1, run=whole)
    code = KILLED.format(path=sys.path, preset=preset, options=QUICK[preset], unclear=UNCLEAR)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1
    assert timeless(path) == timeless(whole)
    assert files(path) == files(whole)
    assert json.loads((path / "result.json").read_text())["tuned"] == wanted.tuned


def test_a_run_that_spent_its_seconds_begins_no_round_and_a_resumed_one_goes_on_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"preset": "mert", "options": {"restarts": 9}, "metric": "bleu"}
    whole = tune(learnable(2), **asked)
    # Every look at the clock is a second later.
    clock = iter(range(10**6))
    steady = SimpleNamespace(perf_counter=lambda: float(next(clock)))
    monkeypatch.setattr(runner, "time", steady)
    events: list[dict[str, Any]] = []
    found = tune(learnable(2), **asked, seconds=1e-9, listen=events.append)
    assert len(found.curve) == 2 < len(whole.curve)
    assert found.curve == whole.curve[:2]
    (took,) = (event["seconds"] for event in events if event["event"] == "epoch")
    budget = 3.5 * took
    run = {**asked, "seconds": budget, "run": tmp_path / "run"}
    with pytest.raises(Stopped):
        tune(learnable(2), **run, listen=StopAt(2))
    resumed = tune(learnable(2), **run, resume=True)
    assert resumed.curve == whole.curve[:5]
    with pytest.raises(InputError, match="seconds was"):
        tune(learnable(2), **{**run, "seconds": 2 * budget}, resume=True)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_no_seconds_are_refused(seconds: float) -> None:
    with pytest.raises(InputError, match="give more than none"):
        tune(learnable(2), "mert", "bleu", seconds=seconds)
