"""Tuning with a decoder that follows the weights: growth, regimes, bounds, equality with lists."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from twins.fixed import Fixed
from twins.lists import learnable
from twins.quick import FOLLOWING, FORCED, QUICK
from twins.toy import POOR, make_world

from tunesmith import Result, Weights, _core, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.learn import selectors, updates
from tunesmith.learn.online import Learner, Online, Regime, Schedule, _Team, with_regime
from tunesmith.learn.task import Epoch, Task, Tuner
from tunesmith.metrics import get_metric
from tunesmith.presets import PRESETS, make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.sources import Command, Live, Saved, Source
from tunesmith.sources.live import SpaceName
from tunesmith.spaces import Forests, Pools, Spaces
from tunesmith.tuning.rounds import Decoded, Decodings, Epochs, Passes
from tunesmith.tuning.setup import Setup

Array = npt.NDArray[np.float64]
METRIC = "bleu:tokenize=none"
START = Weights({"f0": 0.1})
DAY = 86_400.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("live"))


def source(world: Path, kind: Kind = "phrase", *templates: str, **more: Any) -> Live:
    model = Model.load(world / "model", kind, named=templates)
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    return Live(model, lines, [[text] for text in references], **more)


def test_a_string_is_one_reference(world: Path) -> None:
    found = source(world)
    texts = [" ".join(each) for each in found.raw_references]
    assert Live(found.model, found.lines, texts).references == found.references


def learn(world: Path, tuner: Online, *templates: str, **more: Any) -> Result:
    threads = more.pop("threads", 0)
    start = POOR[more.get("kind", "phrase")]
    made = source(world, more.pop("kind", "phrase"), *templates, k=30, threads=threads)
    return tune(made, "mira", METRIC, start=start, tuner=tuner, threads=threads, **more)


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
class Proposing:
    """A tuner that has its mind made up."""

    weights: Mapping[str, float]

    def epochs(self, task: Task, start: Array, seed: int, state: Any) -> Iterator[Epoch]:
        yield Epoch(1, task.spaces.vector(self.weights), {}, last=True)


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


@dataclass
class Turning(Source):
    """A decoder that finds the same hypotheses with all weights, in another order."""

    lists: Pools

    def __post_init__(self) -> None:
        self.references, self.sources = self.lists.references or [], [""] * self.lists.sentences

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        return Forests.of_lists(self.lists).prune(weights)


class Pointing(Proposing):
    """The same, but only the direction of its weights means something."""

    scale_free = True


@pytest.mark.parametrize("forests", [False, True])
def test_scores_stay_as_large_as_they_were_where_only_directions_are_tuned(forests: bool) -> None:
    chance = np.random.default_rng(2)
    features = chance.normal(size=(20, 4))
    features[:, 2] = np.repeat(np.arange(5), 4)
    features[4:, 3] = 0.0
    texts = [" ".join(chance.choice(list("abcdef"), 6)) for _ in features]
    references = [[" ".join(chance.choice(list("abcdef"), 6))] for _ in range(5)]
    names = ["a", "b", "same", "rare"]
    lists = Pools.from_arrays(features, np.arange(0, 21, 4), names, texts, references)
    tuner = Pointing({"a": 0.02, "b": -0.01, "same": 0.9, "rare": 0.03})
    decodings = Decodings(tuner, Turning(lists), Setup(get_metric("bleu"), {}, {}, 1), 3)
    start = Weights({"a": 0.8, "b": -0.4, "same": -100.0, "rare": -100.0})
    kept = Decoded(start, lambda: Forests.of_lists(lists) if forests else lists)
    decodings.restore(start, [kept], {})
    step = decodings.step(start)
    assert step is not None
    assert dict(step.weights) == pytest.approx({"a": 0.8, "b": -0.4, "same": -100.0, "rare": 1.2})


@pytest.mark.parametrize(
    ("proposed", "keep", "reason"),
    [
        ({"quality": -1.0}, "best", "no decoding with other weights scored better than the start,"),
        ({"quality": -1.0}, "heldout", "scored better on held-out text than the start"),
        ({"quality": -1.0}, "last", "worse than the start"),
        ({"quality": 1.0}, "best", "the weights have not changed"),
        ({"quality": 2.0}, "best", "the weights have not changed"),
    ],
)
def test_a_start_that_is_kept_for_want_of_better_is_told_from_unchanged_weights(
    proposed: dict[str, float], keep: str, reason: str
) -> None:
    decoder = Turning(learnable(1))
    held = [decoder] if keep == "heldout" else []
    found = tune(
        *(decoder, "own", "bleu"),
        start={"quality": 1.0},
        tuner=Proposing(proposed),
        iterations=2,
        heldout=held,
        keep=keep,
    )
    assert found.refused is not None and reason in found.refused


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


UPDATES: list[updates.Update] = [
    updates.Perceptron(0.1),
    updates.PassiveAggressive(0.1),
    updates.Hildreth(0.1),
    updates.CuttingPlane(0.1),
    updates.Sgd("hinge", 0.1),
    updates.Arow(linear=True, rate=0.1, r=1e12),
]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_steps_become_smaller_from_pass_to_pass(update: updates.Update, live: bool) -> None:
    """One sentence, whose constraint is violated by far: every step is as large as may be."""
    lists = Pools.from_arrays([[0.0], [1.0]], [0, 2], ["f0"], ["b c d e", "a"], [["a"]])
    start, far = -1e6, {"f0": -1e6}
    tuner = Online(
        learner=Learner(selector=selectors.HopeFear("LU", "MC"), update=update),
        schedule=Schedule(passes=4, average="none", slow_down=0.5),
    )
    setup = Setup(get_metric("wer"), {}, {}, 1)
    rounds = (
        Passes(tuner, Fixed(lists), setup, 1) if live else Epochs(tuner, Saved(lists), setup, 1)
    )
    weights = Weights(far)
    rounds.begin(weights)
    moves = list[float]()
    for _ in range(4):
        step = rounds.step(weights)
        assert step is not None
        moves.append(step.weights["f0"] - weights["f0"])
        weights = step.weights
    assert weights["f0"] > start
    assert moves == pytest.approx([0.1, 0.05, 0.025, 0.0125], rel=1e-6)


def test_an_update_in_python_refuses_to_slow_down() -> None:
    learner = Learner(selector=selectors.HopeFear(), update=updates.Custom(Counting()))
    with pytest.raises(InputError, match="no learning rate that could slow down"):
        Online(learner=learner, schedule=Schedule(slow_down=0.5))
    assert Online(learner=learner).schedule.slow_down == 1.0


def test_passes_of_a_decoder_end_when_in_three_no_weight_moved_by_more() -> None:
    lists, weights = learnable(3), Weights({"quality": 0.1})

    def passes(stop: float) -> tuple[list[float], list[bool]]:
        """Return how far weights moved in each pass, and whether it was the last."""
        tuner = Online(
            learner=Learner(selector=selectors.HopeFear(), update=updates.PassiveAggressive(0.05)),
            schedule=Schedule(passes=15, average="none", slow_down=0.8, stop=stop),
        )
        rounds, reached = (
            Passes(tuner, Fixed(lists), Setup(get_metric("bleu"), {}, {}, 1), 1),
            weights,
        )
        rounds.begin(reached)
        moves, ends = list[float](), list[bool]()
        while (step := rounds.step(reached)) is not None:
            rounds.judge(step)
            moves.append(step.weights.change(reached))
            ends.append(step.last)
            reached = step.weights
        return moves, ends

    moves, _ = passes(0.0)
    assert len(moves) == 15
    limits = [max(moves[n - 2 : n + 1]) for n in range(2, 15)]
    for n in range(2, 15):
        last = next(m for m in range(2, 15) if limits[m - 2] <= limits[n - 2])
        assert passes(limits[n - 2]) == (moves[: last + 1], [False] * last + [True])


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


@dataclass
class OneMore(Source):
    """A decoder that finds one more translation, worse than the first, every time."""

    sources: list[str] = field(default_factory=lambda: ["s"])
    references: list[list[str]] = field(default_factory=lambda: [["a b c d"]])
    decoded: list[float] = field(default_factory=list)

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Pools:
        self.decoded.append(weights["f"])
        texts = ["a b c d", *(f"a b x{number}" for number in range(len(self.decoded)))]
        # With a weight above zero the last is first.
        order = texts if weights["f"] <= 0.0 else texts[::-1]
        features = np.array([[float(texts.index(text))] for text in order])
        return Pools.from_arrays(features, [0, len(order)], ["f"], order, self.references)


@dataclass
class Stubborn:
    """A tuner that raises the weight whatever the lists say."""

    def epochs(self, task: Any, start: Any, seed: int, state: Any = None) -> Iterator[Epoch]:
        yield Epoch(1, start + 1.0, {}, {"model": 0.5, "weight_change": 1.0}, True)


@pytest.mark.parametrize("keep", ["best", "last", "heldout"])
def test_a_batch_tuner_goes_on_from_what_it_proposes_and_gives_up_after_five(keep: str) -> None:
    source = OneMore()
    held = [OneMore()] if keep == "heldout" else []
    start = Weights({"f": -0.5})
    result = tune(source, metric=METRIC, start=start, tuner=Stubborn(), keep=keep, heldout=held)
    assert source.decoded == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert result.curve[0] > max(result.curve[1:])
    # The first decoding scored best.
    assert result.iterations == 5
    kept = (4.5, result.curve[-1]) if keep == "last" else (-0.5, result.start)
    assert (result.weights["f"], result.tuned) == kept


def test_a_resumed_run_remembers_which_decoding_was_best(tmp_path: Path) -> None:
    def stop(event: dict[str, Any]) -> None:
        if event.get("epoch") == 4:
            raise KeyboardInterrupt

    def run(**more: Any) -> Result:
        options: dict[str, Any] = {"tuner": Stubborn(), "keep": "last", "run": tmp_path / "run"}
        return tune(decoder, metric=METRIC, start=Weights({"f": -0.5}), **options, **more)

    decoder = OneMore()
    with pytest.raises(KeyboardInterrupt):
        run(listen=stop)
    assert run(resume=True).iterations == 5


def test_what_a_tuner_knows_of_its_best_epoch_is_told_of_the_decoding() -> None:
    events: list[dict[str, Any]] = []
    tune(
        OneMore(),
        metric=METRIC,
        start={"f": -0.5},
        tuner=Stubborn(),
        iterations=1,
        listen=events.append,
    )
    (told,) = [event for event in events if event["event"] == "epoch"]
    assert told["model"] == 0.5 and "projected" in told and "oracle" not in told


def test_what_a_decoder_of_another_kind_has_no_feature_for_is_told() -> None:
    events: list[dict[str, Any]] = []
    options: dict[str, Any] = {"bounds": {"g*": (0, 1)}, "fixed": {"h": 0.5}, "iterations": 1}
    start = {"f": -0.5, "idle": 1.0, "none": 0.0}
    options |= {"start": start, "tuner": Stubborn(), "listen": events.append}
    result = tune(OneMore(), metric=METRIC, **options)
    assert events[0]["idle_weights"] == ["idle"]
    assert events[0]["idle_limits"] == result.idle_limits == ["g*", "h"]
    # It may have no place for them.
    assert "h" not in result.weights


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
