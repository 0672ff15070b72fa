"""Tuning with a decoder that follows the weights: presets learn, features are met on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from twins.live import METRIC, learn, source
from twins.quick import FOLLOWING, FORCED, QUICK
from twins.toy import POOR, make_world

from tunesmith import tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.learn import selectors, updates
from tunesmith.learn.online import Learner, Online, Schedule
from tunesmith.presets import PRESETS, make_tuner
from tunesmith.sources import Live
from tunesmith.sources.live import SpaceName

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("live"))


def test_a_string_is_one_reference(world: Path) -> None:
    found = source(world)
    texts = [" ".join(each) for each in found.raw_references]
    assert Live(found.model, found.lines, texts).references == found.references


def test_a_beam_prunes_by_scores_only_if_it_is_given_a_threshold(world: Path) -> None:
    assert not source(world).prunes and not source(world, "hiero").prunes
    assert source(world, settings={"threshold": 3.0}).prunes


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("preset", FOLLOWING)
def test_every_online_preset_learns(world: Path, kind: Kind, preset: str) -> None:
    # So few steps must be large ones.
    large: dict[str, dict[str, Any]] = {
        "perceptron": {"rate": 0.05, "oracle": "LU"},
        "arow": {"r": 1.0},
        "mira-hildreth": {"c": 0.01},
    }
    options = {**QUICK[preset], **large.get(preset, {})}
    found = tune(
        *(source(world, kind, k=50), preset, METRIC),
        start=POOR[kind],
        options=options,
        iterations=4,
    )
    assert found.refused is None
    assert found.tuned > found.start + 2
    assert found.decode_seconds > 0 < found.optimise_seconds


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_hope_and_fear_are_found_in_the_forest_of_the_moment(world: Path, kind: Kind) -> None:
    """The best of all strings, and not only of the best-scoring ones, is y+ from the first on."""

    def gains(space: SpaceName, k: int) -> tuple[float, float]:
        """Return the gains of y+ and y- in a pass that hardly moves the weights."""
        events: list[dict[str, Any]] = []
        options = {"c": 1e-9, "gain": "sentence", "oracle": "LU", "prediction": "MC", "k": k}
        made = source(world, kind, "rule-id", space=space, k=k or None)
        tune(
            *(made, "mira", METRIC),
            start=POOR[kind],
            options=options,
            iterations=1,
            listen=events.append,
        )
        (epoch,) = [event for event in events if event["event"] == "epoch"]
        return epoch["oracle"], epoch["prediction"]

    listed, all_of_it = gains("list", 20), gains("forest", 0)
    assert gains("forest", 20) == all_of_it
    assert all_of_it[0] > listed[0] + 0.05 and all_of_it[1] < listed[1]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_sparse_features_are_learnt_from_the_forest_of_the_moment(world: Path, kind: Kind) -> None:
    made = source(world, kind, "rule-id", space="forest")
    options = {"c": 0.05, "k": 0, "spread": 0, "normalise": False}
    found = tune(made, "mira", METRIC, start=POOR[kind], options=options, iterations=2)
    assert found.tuned > found.start + 2
    assert any(name.startswith("PT:") for name in found.weights)


def test_forests_are_pruned_and_keep_their_best(world: Path) -> None:
    whole = source(world, "hiero", space="forest", density=None).decode(POOR["hiero"])
    pruned = source(world, "hiero", space="forest", density=2.0).decode(POOR["hiero"])
    assert pruned.hypotheses < whole.hypotheses / 2
    one, other = (each.outputs(each.best(POOR["hiero"])) for each in (whole, pruned))
    assert one == other


def test_features_are_met_on_the_way(world: Path) -> None:
    tuner = cast(Online, make_tuner("mira"))
    found = learn(world, tuner, "rule-id", "bigrams", iterations=2)
    assert found.weights.nonzero > 40
    assert any(name.startswith("PT:") for name in found.weights)
    assert any(name.startswith("TB:") for name in found.weights)


class Counting:
    """A perceptron that counts how often it has met each feature."""

    def init(self, features: int, /) -> Array:
        return np.zeros(features)

    def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
        rows = separate(w)
        np.add.at(w, rows["ids"], 0.01 * rows["values"])
        np.add.at(state, rows["ids"], 1)
        return w, state


class Growing(Counting):
    def rearrange(self, state: Array, places: npt.NDArray[np.uint32], features: int, /) -> Array:
        moved = np.zeros(features)
        moved[places] = state
        return moved


def test_an_update_of_ones_own_follows_new_features(world: Path) -> None:
    growing, counting = (
        Online(
            learner=Learner(selector=selectors.HopeFear(), update=updates.Custom(rule)),
            schedule=Schedule(average="none"),
        )
        for rule in (Growing(), Counting())
    )
    found = learn(world, growing, "rule-id", iterations=1, keep="last")
    assert found.weights.nonzero > 20
    with pytest.raises(ValueError, match="no rearrange"):
        learn(world, counting, "rule-id", iterations=1)


def test_an_update_in_python_refuses_to_slow_down() -> None:
    learner = Learner(selector=selectors.HopeFear(), update=updates.Custom(Counting()))
    with pytest.raises(InputError, match="no learning rate that could slow down"):
        Online(learner=learner, schedule=Schedule(slow_down=0.5))
    assert Online(learner=learner).schedule.slow_down == 1.0


@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in FORCED])
def test_every_preset_learns_from_bins(world: Path, preset: str) -> None:
    model = Model.load(world / "model", "phrase")
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:12] for side in ("src", "tgt")
    )
    made = model.translator(POOR["phrase"], {"stack": 10})
    bins = made.bins(["", *lines]).against(["", *references])
    found = tune(bins, preset, METRIC, start=made.weights, options=QUICK[preset], threads=1)
    # Most bins hold partial translations: what is learnt there may cost the output something.
    start, tuned = (bins.score_all(METRIC, bins.best(w)) for w in (made.weights, found.weights))
    assert tuned > start or found.tuned > found.start
    assert (found.refused is None) == (found.tuned > found.start)
    # Lines are compared, and not bins.
    assert found.changed["sentences"] == 13
    assert found.tuned == bins.score(METRIC, bins.best(found.weights))
