"""A run that is stopped anywhere goes on to the same weights and events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins.lists import Array, learnable
from twins.quick import QUICK

from tunesmith import PRESETS, InputError, Result, jobs, select, tune, tuning, update
from tunesmith.baselines import RandomSearch
from tunesmith.drivers import Online
from tunesmith.runs import RunDirectory

TIMES = {"time", "seconds"}


@pytest.fixture(autouse=True)
def checkpoints_at_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CHECKPOINT_SECONDS", 0.0)
    # Most of the time of so small a run, and no part of what is resumed.
    monkeypatch.setattr(tuning, "_significance", lambda *_: {})


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


@pytest.mark.parametrize("preset", sorted(PRESETS))
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
    options = {"passes": 6, "shards": 2, "mix": mix, "decrease": 0.7, "n": 2}
    assert stop_everywhere(tmp_path, preset="mira-hildreth", options=options) == 9


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

    tuner = Online(select.hope_fear(), update.of_rule(Twice()), passes=10, average="none")
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
    monkeypatch.setattr(jobs, "CHECKPOINT_SECONDS", 1e9)
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
    others: list[dict[str, Any]] = [
        {"preset": "rm"},
        {"seed": 2},
        {"metric": "ter"},
        {"options": {"passes": 5}},
        {"keep": "last"},
    ]
    for other in others:
        with pytest.raises(InputError):
            tune(pools, **{"preset": "kbmira", "run": tmp_path / "run", "resume": True} | other)
    with pytest.raises(InputError, match="already holds a run"):
        tune(pools, "kbmira", run=tmp_path / "run")


def test_a_run_names_the_option_of_a_tuner_that_is_not_the_same(tmp_path: Path) -> None:
    run: dict[str, Any] = {"run": tmp_path / "run", "threads": 1}
    tune(learnable(2), tuner=RandomSearch(50), **run)
    with pytest.raises(InputError, match=r"configuration: tuner\.tries was 50, now 60 "):
        tune(learnable(2), tuner=RandomSearch(60), **run, resume=True)


KILLED = """
import os, random, signal, sys, time
sys.path[:0] = {path!r}
from twins.lists import learnable
from tunesmith import jobs, tune, tuning
jobs.CHECKPOINT_SECONDS = 0.0
tuning._significance = lambda *_: {{}}
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
    code = KILLED.format(path=sys.path, preset=preset, options=QUICK[preset])
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1
    assert timeless(path) == timeless(whole)
    assert files(path) == files(whole)
    assert json.loads((path / "result.json").read_text())["tuned"] == wanted.tuned
