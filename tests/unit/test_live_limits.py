"""Bounds and fixed weights with a decoder in the loop, and mistakes found before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from twins.live import METRIC, learn, source
from twins.toy import POOR, make_world

from tunesmith import Result, tune
from tunesmith.errors import InputError
from tunesmith.learn.online import Online, with_regime
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Spaces


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("live"))


def test_bounds_hold_for_features_that_are_met_later(world: Path) -> None:
    tuner = cast(Online, make_tuner("mira", {"c": 0.5}))
    bounds = {"PT:*": (0.0, 0.001)}
    found = learn(world, tuner, "rule-id", iterations=2, bounds=bounds)
    met = [value for name, value in found.weights.items() if name.startswith("PT:")]
    assert met
    assert all(0.0 <= value <= 0.001 for value in met)
    assert found.idle_limits == []


@pytest.mark.parametrize("regime", ["batch=1", "shards=2"])
def test_bounds_of_features_that_are_met_later_hold_after_a_stop(
    world: Path, tmp_path: Path, regime: str
) -> None:
    tuner = cast(Online, with_regime(make_tuner("mira", {"c": 0.5}), regime))
    bounds = {"PT:*": (0.0, 0.001)}

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 3:
            raise KeyboardInterrupt

    def run(name: str, **more: Any) -> Result:
        where = {"run": tmp_path / name, "iterations": 4, "keep": "last", "bounds": bounds}
        return learn(world, tuner, "rule-id", **where, **more)

    whole = run("whole")
    assert all(0 <= weight <= 0.001 for name, weight in whole.weights.items() if "PT:" in name)
    with pytest.raises(KeyboardInterrupt):
        run("stopped", listen=stop)
    assert dict(run("stopped", resume=True).weights) == dict(whole.weights)


@pytest.mark.parametrize("preset", ["mira", "kbmira"])
def test_limits_may_name_what_a_template_has_not_found_yet(world: Path, preset: str) -> None:
    some = learn(world, cast(Online, make_tuner("mira")), "rule-id", iterations=1)
    met = next(name for name in some.weights if name.startswith("PT:"))
    limits: dict[str, Any] = {
        "fixed": {met: 0.25, "PT:never~met": 0.0},
        "bounds": {"TB:*": (0.0, 1.0)},
    }
    tuner = cast(Online, make_tuner(preset))
    found = learn(world, tuner, "rule-id", iterations=2, keep="last", **limits)
    assert found.weights[met] == 0.25
    assert "TB:*" in found.idle_limits and met not in found.idle_limits


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"bounds": {"lm": (2.0, 1.0)}}, "lower one first"),
        ({"fixed": {"lm": np.nan}}, "lower one first"),
        ({"fixed": {"nosuch": 1.0}}, "no feature is called 'nosuch'.*there are .*lm"),
        ({"bounds": {"PT": (0.0, 1.0)}}, "no feature is called 'PT'"),
        ({"fixed": {"TB:a~b": 1.0}}, "no feature is called 'TB:a~b'"),
        ({"tuner": with_regime(make_tuner("mira"), "delay=2"), "merged": True}, "needs a live"),
        ({"tuner": with_regime(make_tuner("kbmira"), "delay=2")}, "needs a live"),
        ({"second_metric": "nix"}, "unknown metric 'nix'"),
        ({"keep": "foo"}, "keep is 'foo'.*best, last, heldout"),
        ({"keep": "heldout"}, "there is none"),
        ({"iterations": 0}, "0 iterations.*at least one"),
        ({"threads": -1}, "-1 threads.*0 for one per core"),
        ({"seed": -1}, "the seed is -1.*from 0 on"),
        ({"seed": 2**63}, "the seed is"),
    ],
)
@pytest.mark.parametrize("preset", ["mert", "mira"])
def test_mistakes_are_found_before_anything_is_decoded(
    world: Path, tmp_path: Path, preset: str, asked: dict[str, Any], message: str
) -> None:
    made = source(world, "phrase", "rule-id")
    made.decode = made.found = None  # type: ignore[assignment]
    with pytest.raises(InputError, match=message):
        tune(made, preset, METRIC, start=POOR["phrase"], run=tmp_path / "run", **asked)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("preset", ["mert", "mira"])
def test_limits_hold_from_the_first_decoding_on(world: Path, preset: str) -> None:
    class Watched(Live):
        def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
            used.append(dict(weights))
            return super().decode(weights, k)

    used: list[dict[str, float]] = []
    made = source(world)
    made = Watched(made.model, made.lines, made.raw_references, k=30)
    start = {name: weight for name, weight in POOR["phrase"].items() if name != "words"}
    limits: dict[str, Any] = {
        "bounds": {"lm": (0.7, 0.8), "words": (0.1, 0.2)},
        "fixed": {"*(e|f)": 0.125},
    }
    tune(made, preset, METRIC, start=start, iterations=2, **limits)
    assert len(used) >= 3
    for weights in used:
        assert 0.7 <= weights["lm"] <= 0.8 and 0.1 <= weights["words"] <= 0.2
        fixed = [weight for name, weight in weights.items() if name.endswith("(e|f)")]
        assert fixed and set(fixed) == {0.125}
