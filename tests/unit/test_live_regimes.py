"""Regimes of tuners that follow a decoder: batches, shards and delays, on any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from twins.fixed import Fixed
from twins.lists import learnable
from twins.live import METRIC, learn, source
from twins.toy import POOR, make_world

from tunesmith import Weights, _core, tune
from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.learn.online import Online, Regime, _Team, with_regime
from tunesmith.learn.task import Tuner
from tunesmith.metrics import get_metric
from tunesmith.presets import make_tuner
from tunesmith.sources import Live, Source
from tunesmith.spaces import Spaces
from tunesmith.tuning.rounds import Passes
from tunesmith.tuning.setup import Setup


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("live"))


REGIMES = [
    *("batch=1", "batch=7", "shards=2", "shards=3,mix=2", "shards=2,mix=0", "delay=2"),
    *("batch=3,delay=1", "delay=2,stale=gradient", "batch=3,delay=1,stale=gradient"),
]


@pytest.mark.parametrize("regime", REGIMES)
def test_weights_do_not_depend_on_threads(world: Path, regime: str) -> None:
    tuner = cast(Online, with_regime(make_tuner("mira"), regime))
    one, two, again = (
        learn(world, tuner, "rule-id", threads=threads, iterations=2) for threads in (1, 2, 3)
    )
    assert dict(one.weights) == dict(two.weights) == dict(again.weights)
    assert one.curve == two.curve


@dataclass(frozen=True, kw_only=True)
class MixedAlone(Regime):
    """Mixes a single learner with itself."""

    @property
    def mixings(self) -> int:
        return self.mix


def test_one_shard_that_is_mixed_is_serial(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serial = cast(Online, make_tuner("rm"))
    one = learn(world, serial, "rule-id", iterations=2)
    mixed, mix = list[int](), _Team.mix

    def counted(team: _Team) -> None:
        mixed.append(team.size)
        mix(team)

    monkeypatch.setattr(_Team, "mix", counted)
    two = learn(world, replace(serial, regime=MixedAlone(mix=4)), "rule-id", iterations=2)
    assert mixed == [1] * 8
    assert dict(one.weights) == dict(two.weights)


@pytest.mark.parametrize(
    "regime",
    ["batch=7", "shards=2", "shards=2,mix=0", "delay=2", "delay=2,stale=gradient"],
)
def test_a_regime_makes_a_difference(world: Path, regime: str) -> None:
    tuner = make_tuner("mira", {"c": 0.05})
    serial, other = (
        learn(world, cast(Online, each), iterations=2, keep="last")
        for each in (tuner, with_regime(tuner, regime))
    )
    assert dict(serial.weights) != dict(other.weights)


@pytest.mark.parametrize("ordered", ["true", "false"])
@pytest.mark.parametrize("stale", ["lists", "gradient"])
def test_staleness_is_told(world: Path, ordered: str, stale: str) -> None:
    events: list[dict[str, Any]] = []
    regime = f"delay=3,ordered={ordered},stale={stale}"
    tuner = cast(Online, with_regime(make_tuner("mira"), regime))
    learn(world, tuner, listen=events.append, iterations=2)
    epochs = [event for event in events if event["event"] == "epoch"]
    sentences = len((world / "dev.src").read_text().splitlines())
    assert [event["visits"] for event in epochs] == [sentences] * 2
    for each in (event["staleness"] for event in epochs):
        assert 0 < each["mean"] <= 40
        if ordered == "true":
            assert each["max"] == 3


@pytest.mark.parametrize(
    ("regime", "message"),
    [
        ("shards=0", "no part"),
        ("batch", "no part"),
        ("delay=1,shards=2", "both shards"),
        ("mix=3", "mix without shards.*give shards=2"),
        ("shards=1,mix=0", "mix without shards"),
        ("ordered=false", "ordered without a delay.*give delay=1"),
        ("delay=0,ordered=false", "ordered without a delay"),
        ("batch=2,stale=gradient", "stale without a delay.*give delay=1"),
        ("delay=2,stale=no", "'stale=no' is no part of a regime.*stale=gradient"),
        ("delay=2,stale=gradient,shards=2", "both shards"),
    ],
)
def test_bad_regimes_are_refused(regime: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_regime(make_tuner("mira"), regime)


class Late(Fixed):
    """A decoder whose first answer comes when it is asked for the fourth time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked, self.answers, self.fourth = count(1), count(1), Event()

    def following(self, learner: _core.Learner) -> None:
        if next(self.asked) == 4:
            self.fourth.set()

    def found(self, translator: Any, sentences: Sequence[int], k: int) -> Spaces:
        assert next(self.answers) > 1 or self.fourth.wait(60)
        return super().found(translator, sentences, k)


def first_pass(source: Source, tuner: Tuner) -> dict[str, Any]:
    """Return what was seen in the first pass."""
    assert isinstance(tuner, Online)
    passes = Passes(tuner, source, Setup(get_metric("bleu"), {}, {}, 2), 3)
    start = Weights({"quality": 0.1})
    passes.begin(start)
    step = passes.step(start)
    assert step is not None
    return step.facts


@pytest.mark.parametrize("stale", ["lists", "gradient"])
def test_batches_are_taken_as_they_arrive(stale: str) -> None:
    tuner = with_regime(make_tuner("mira"), f"batch=2,delay=2,ordered=false,stale={stale}")
    assert first_pass(Late(learnable(1)), tuner)["staleness"]["max"] >= 1


@pytest.mark.parametrize("preset", ["adagrad", "mira"])
def test_what_nobody_watches_is_not_reported_as_zero(preset: str) -> None:
    facts = first_pass(Fixed(learnable(1)), make_tuner(preset))
    assert facts["model"] > 0.0
    known = [facts[key] is not None for key in ("oracle", "prediction", "spread")]
    assert known == [preset == "mira"] * 3


class Forgetful(Live):
    """A decoder that begins anew with each batch: nothing is kept of phrases."""

    def following(self, learner: _core.Learner) -> Translator:
        weights = Weights.from_vector(learner.names, learner.weights)
        return self.model.translator(weights, self.settings, tokenized=True)


@pytest.mark.parametrize("regime", ["batch=3", "shards=2", "delay=2"])
def test_what_is_kept_of_phrases_changes_no_weight(world: Path, regime: str) -> None:
    tuner = with_regime(make_tuner("adagrad", {"l1": 0.001, "eta": 0.1}), regime)
    found = source(world, "phrase", "green2013", k=30)
    forgetful = Forgetful(found.model, found.lines, found.raw_references, k=30)
    kept, anew = (
        tune(each, "adagrad", METRIC, start=POOR["phrase"], tuner=tuner, iterations=3)
        for each in (found, forgetful)
    )
    assert kept.weights == anew.weights
    assert kept.weights.nonzero > 100
