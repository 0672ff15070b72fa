"""Runs with a decoder: what they report, and what may not change before they are resumed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from twins.fixed import Proposing
from twins.live import METRIC, source
from twins.toy import POOR, make_world

from tunesmith import Result, tune
from tunesmith.errors import InputError
from tunesmith.metrics import get_metric
from tunesmith.runs import RunDirectory
from tunesmith.sources import Command, Live

Array = npt.NDArray[np.float64]
DAY = 86_400.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("live"))


@pytest.mark.parametrize("preset", ["mert", "mira"])
def test_sentences_that_changed_are_told_also_by_a_run_that_was_stopped(
    world: Path, tmp_path: Path, preset: str
) -> None:
    def run(name: str, **more: Any) -> Result:
        options: dict[str, Any] = {"iterations": 3, "threads": 1, "run": tmp_path / name}
        start = POOR["phrase"]
        return tune(source(world, k=30), preset, METRIC, start=start, **options, **more)

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    whole = run("whole")
    rows = RunDirectory(tmp_path / "whole").changes()
    assert rows
    gained = [row["gain_after"] - row["gain_before"] for row in rows]
    counts = {"changed": len(rows), "better": sum(gain > 0 for gain in gained)}
    counts |= {"worse": sum(gain < 0 for gain in gained), "sentences": len(source(world).sources)}
    assert whole.changed == counts
    # Online tuners keep no lists of the end.
    assert bool(whole.weights.spread) == (preset == "mert")
    metric = get_metric(METRIC)
    for row in rows:
        assert row["before"] != row["after"]
        gains = metric.native.sentence_gains(
            metric.stats([row["before"], row["after"]], [row["reference"]] * 2)
        )
        assert [row["gain_before"], row["gain_after"]] == pytest.approx(gains.tolist())
    with pytest.raises(KeyboardInterrupt):
        run("stopped", listen=stop)
    again = run("stopped", resume=True)
    assert (again.tuned, again.changed) == (whole.tuned, whole.changed)
    assert RunDirectory(tmp_path / "stopped").changes() == rows
    finished = run("stopped", resume=True)
    assert finished.changed == whole.changed
    assert finished.weights.spread == again.weights.spread == whole.weights.spread


@pytest.mark.parametrize("preset", ["mert", "mira"])
def test_seconds_are_those_of_all_processes(
    world: Path, tmp_path: Path, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, clock = [0.0], time.perf_counter
    monkeypatch.setattr("time.perf_counter", lambda: clock() + later[0])

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "epoch":
            later[0] += DAY
            if event["epoch"] == 2:
                raise KeyboardInterrupt

    def run(**more: Any) -> Result:
        options: dict[str, Any] = {"iterations": 3, "run": tmp_path / "run"}
        start = POOR["phrase"]
        return tune(source(world, k=30), preset, METRIC, start=start, **options, **more)

    with pytest.raises(KeyboardInterrupt):
        run(listen=listen)
    later[0] = 0.0
    # What came after the last checkpoint is done again.
    assert run(resume=True).seconds // DAY == 1


def test_a_run_names_the_input_that_is_not_the_same(world: Path, tmp_path: Path) -> None:
    def run(start: Mapping[str, float], held: list[Live], **more: Any) -> Result:
        options: dict[str, Any] = {"iterations": 1, "run": tmp_path / "run", "heldout": held}
        return tune(source(world, k=30), "mert", METRIC, start=start, **options, **more)

    held = [source(world, k=30)]
    run(POOR["phrase"], held)
    with pytest.raises(InputError, match="another configuration: start weights changed"):
        run({**POOR["phrase"], "lm": 0.0}, held, resume=True)
    with pytest.raises(InputError, match="held-out text 1 is missing"):
        run(POOR["phrase"], [], resume=True)


@dataclass(frozen=True)
class Slow(Proposing):
    """A tuner with an option."""

    rate: float = 0.5


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"fixed": {"lm": 0.25}}, "fixed.lm was not given, now 0.25"),
        ({"bounds": {"lm": (0.0, 1.0)}}, r"bounds.lm was not given, now \[0.0, 1.0\]"),
        ({"stop": 0.5}, "stop was 1e-05, now 0.5"),
        ({"metric": "bleu:tokenize=none,lowercase=yes"}, "measure.lowercase was false, now true"),
        ({"tuner": Slow({"lm": 1.0}, 2.0)}, "tuner.rate was 0.5, now 2.0"),
        ({"k": 7}, "source.k was 30, now 7"),
        ({"space": "forest"}, 'source.space was "list", now "forest"'),
        ({"settings": {"stack": 3.0}}, "source.settings.stack was not given, now 3.0"),
        ({"density": 9.0}, "source.density was 50.0, now 9.0"),
        ({"tokenized": True}, "source.tokenized was false, now true"),
        ({"templates": ["rule-id"]}, r"source.templates was \[\], now"),
    ],
)
def test_a_run_names_the_setting_that_is_not_the_same(
    world: Path, changed: dict[str, Any], told: str
) -> None:
    def run(resume: bool, given: dict[str, Any]) -> Result:
        given = {"k": 30, "tuner": Slow({"lm": 1.0}), "threads": 1 + resume, **given}
        of_source = {"k", "space", "settings", "density", "tokenized"}
        made = source(
            *(world, "phrase", *given.pop("templates", ())),
            **{key: given.pop(key) for key in of_source & given.keys()},
        )
        options: dict[str, Any] = {"iterations": 1, "run": world / "settings", "resume": resume}
        metric = given.pop("metric", METRIC)
        return tune(made, metric=metric, start=POOR["phrase"], **options, **given)

    # The same run for all of them; other threads are no other setting.
    run((world / "settings").is_dir(), {})
    with pytest.raises(InputError, match=f"another configuration: (.*; )?{told}"):
        run(True, changed)


def test_a_run_names_the_command_that_is_not_the_same(tmp_path: Path) -> None:
    def run(command: str, **more: Any) -> Result:
        made = Command(f"test -f {{weights}} && {command}", ["ein haus"], [["a house"]])
        tuner = Proposing({"f": 1.0})
        options: dict[str, Any] = {"tuner": tuner, "iterations": 1, "run": tmp_path / "run"}
        return tune(made, metric=METRIC, start={"f": 0.5}, **options, **more)

    run("echo '0 ||| a house ||| f= 1 ||| 1'")
    with pytest.raises(InputError, match=r"another configuration: source\.command was"):
        run("echo '0 ||| a house ||| f= 2 ||| 1'", resume=True)


@pytest.mark.parametrize("space", ["list", "forest"])
def test_a_run_is_resumed_only_with_the_files_that_it_decoded(
    world: Path, tmp_path: Path, space: str
) -> None:
    def stop(event: dict[str, Any]) -> None:
        if event.get("epoch") == 2:
            raise KeyboardInterrupt

    def run(**more: Any) -> Result:
        made = source(world, "phrase", k=10, space=space)
        options: dict[str, Any] = {"iterations": 3, "threads": 1, "run": tmp_path / "run"}
        return tune(made, "mert", METRIC, start=POOR["phrase"], **options, **more)

    with pytest.raises(KeyboardInterrupt):
        run(listen=stop)
    first, second, *_ = sorted((tmp_path / "run" / "decoded").iterdir())
    one, two = first.read_bytes(), second.read_bytes()
    for file, content in ((first, two), (second, one)):
        own = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"{file.name}.*not the file that the run decoded"):
            run(resume=True)
        file.write_bytes(own)
    second.rename(tmp_path / "aside")
    with pytest.raises(InputError, match=f"{second.name}.*missing"):
        run(resume=True)
    (tmp_path / "aside").rename(second)
    assert run(resume=True).iterations >= 2
