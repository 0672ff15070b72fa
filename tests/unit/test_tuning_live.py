"""Seeds, folds, held-out text and verdicts with a decoder in the loop, as with saved lists."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins.toy import POOR, make_world

from tunesmith import Result, Weights, get_metric, tune
from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.runs import RunDirectory
from tunesmith.sources import Live
from tunesmith.tuning.comparison import average_direction
from tunesmith.tuning.loop import fold_parts

METRIC = "bleu:tokenize=none"
TIMES = {"time", "seconds", "decode_seconds", "optimise_seconds"}
# A tuner that merges the lists of decodings, and one that follows the decoder.
BOTH = pytest.mark.parametrize("preset", ["mert", "mira"])
OPTIONS: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 1},
    "mira": {"spread": 0, "normalise": False, "c": 0.05},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("live"))


@cache
def model(world: Path) -> Model:
    return Model.load(world / "model", "phrase")


def source(world: Path, text: str = "dev", lines: int | None = 12) -> Live:
    sides = [(world / f"{text}.{side}").read_text().splitlines()[:lines] for side in ("src", "tgt")]
    return Live(model(world), sides[0], sides[1], k=20, threads=1)


def learn(world: Path, preset: str, made: Live | None = None, **more: Any) -> Result:
    return tune(
        made or source(world),
        preset,
        METRIC,
        start=POOR["phrase"],
        options=OPTIONS[preset],
        **{"iterations": 2, "threads": 1} | more,
    )


def translated(made: Live, weights: Weights) -> list[str]:
    return made.choose(weights, 1).outputs()


def score(made: Live, weights: Weights, metric: str = METRIC) -> float:
    return get_metric(metric).corpus_score(translated(made, weights), made.references)


# Stopped at every event


class Stopped(Exception):  # noqa: N818
    """What the listener raises."""


def stops() -> Iterator[Any]:
    """Yield listeners, each of which raises one event later than the one before."""
    last = 0
    while True:
        count = iter(range(last))

        def listen(event: dict[str, Any], count: Iterator[int] = count) -> None:
            if next(count, None) is None:
                raise Stopped(event["event"])

        yield listen
        last += 1


def timeless(path: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in event.items() if key not in TIMES}
        for event in RunDirectory(path).open().events()
    ]


def stopped_anywhere_is_the_same(world: Path, folder: Path, preset: str, **asked: Any) -> Result:
    """Stop at every event in turn, go on, and compare with a run that was left alone."""
    whole = folder / "whole"
    wanted = learn(world, preset, run=whole, **asked)
    count = len(timeless(whole))
    for number, listen in enumerate(islice(stops(), count)):
        path = folder / f"stopped-{number}"
        with pytest.raises(Stopped):
            learn(world, preset, run=path, listen=listen, **asked)
        assert not RunDirectory(path).finished
        found = learn(world, preset, run=path, resume=True, **asked)
        assert dict(found.weights) == dict(wanted.weights)
        for name in ("start", "tuned", "runs", "curve", "heldout_all", "heldout_start_all"):
            assert getattr(found, name) == getattr(wanted, name), name
        for name in ("significance", "second", "verdict", "changed", "refused", "oracle"):
            assert getattr(found, name) == getattr(wanted, name), name
        assert timeless(path) == timeless(whole)
        weights = [each / "weights.toml" for each in (path, whole)]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        changes = [RunDirectory(each).changes() for each in (path, whole)]
        assert changes[0] == changes[1]
    return wanted


@BOTH
def test_several_seeds_stopped_at_any_event_resume_to_the_same_result(
    world: Path, tmp_path: Path, preset: str
) -> None:
    found = stopped_anywhere_is_the_same(world, tmp_path, preset, seeds=2)
    assert len(found.runs) == 2


@BOTH
def test_folds_stopped_at_any_event_resume_to_the_same_result(
    world: Path, tmp_path: Path, preset: str
) -> None:
    found = stopped_anywhere_is_the_same(world, tmp_path, preset, folds=2)
    assert found.significance["on"] == "folds"


@BOTH
def test_heldout_text_of_a_run_stopped_at_any_event_has_the_same_scores(
    world: Path, tmp_path: Path, preset: str
) -> None:
    held = [source(world, "test", 8), source(world, "train", 8)]
    asked: dict[str, Any] = {"heldout": held, "keep": "heldout", "second_metric": "ter"}
    found = stopped_anywhere_is_the_same(world, tmp_path, preset, **asked)
    assert len(found.heldout_all) == 2


# Seeds


@BOTH
def test_runs_of_several_seeds_are_averaged(world: Path, preset: str) -> None:
    single = [learn(world, preset, seed=seed) for seed in (7, 8)]
    assert dict(single[0].weights) != dict(single[1].weights)
    found = learn(world, preset, seed=7, seeds=2)
    assert found.runs == [one.tuned for one in single]
    names = list(dict.fromkeys(name for one in single for name in one.weights))
    mean = average_direction([one.weights.vector(names) for one in single])
    assert found.weights.vector(names) == pytest.approx(mean, rel=1e-12)
    # The score is that of the average, not of any run.
    assert found.tuned == score(source(world), found.weights)
    assert found.start == single[0].start and found.curve == single[0].curve


def test_the_average_of_seeds_is_what_held_out_text_is_scored_with(world: Path) -> None:
    held = source(world, "test", 8)
    found = learn(world, "mira", seeds=2, heldout=held)
    assert found.heldout == score(held, found.weights)
    assert found.heldout_start == score(held, Weights(POOR["phrase"]))


def test_the_average_of_seeds_keeps_bounds_and_fixed_weights(world: Path) -> None:
    limits: dict[str, Any] = {"bounds": {"lm": (0.0, 0.05)}, "fixed": {"words": -0.5}}
    found = learn(world, "mira", seeds=2, **limits)
    assert 0.0 <= found.weights["lm"] <= 0.05
    assert found.weights["words"] == -0.5


def test_the_oracle_is_that_of_all_decodings(world: Path) -> None:
    once, again = (learn(world, "mert", iterations=count) for count in (1, 3))
    assert once.oracle is not None and again.oracle is not None
    assert again.tuned <= again.oracle > once.oracle
    assert learn(world, "mira").oracle is None


# Folds


@BOTH
def test_every_line_is_translated_with_the_weights_of_the_other_folds(
    world: Path, preset: str
) -> None:
    made = source(world)
    found = learn(world, preset, folds=2, seed=3)
    parts = fold_parts(made.sentences, 2, 3)
    outputs = [""] * made.sentences
    for part in parts:
        rest = [line for line in range(made.sentences) if line not in part]
        weights = learn(world, preset, made.subset(rest), seed=3).weights
        for line, text in zip(part, translated(made.subset(part.tolist()), weights), strict=True):
            outputs[line] = text
    metric = get_metric(METRIC)
    assert found.heldout == metric.corpus_score(outputs, made.references)
    assert found.heldout_start == found.start
    assert found.heldout_all == [found.heldout]
    assert (found.significance["on"], found.changed["sentences"]) == ("folds", made.sentences)
    first = translated(made, Weights(POOR["phrase"]))
    assert found.changed["changed"] == sum(a != b for a, b in zip(first, outputs, strict=True))
    # Folds have no part in the weights.
    assert dict(found.weights) == dict(learn(world, preset, seed=3).weights)


def test_folds_and_held_out_text_exclude_each_other(world: Path) -> None:
    with pytest.raises(InputError, match="both folds and held-out"):
        learn(world, "mira", folds=2, heldout=source(world, "test"))
    with pytest.raises(InputError, match="13 folds of 12"):
        learn(world, "mira", folds=13)


# Held-out text


@BOTH
def test_all_held_out_sources_are_scored_and_none_is_learnt_from(world: Path, preset: str) -> None:
    alone = learn(world, preset)
    held = [source(world, "test", 8), source(world, "train", 10)]
    events: list[dict[str, Any]] = []
    found = learn(world, preset, heldout=held, listen=events.append)
    assert dict(found.weights) == dict(alone.weights)
    start = Weights(POOR["phrase"])
    assert found.heldout_all == [score(each, found.weights) for each in held]
    assert found.heldout_start_all == [score(each, start) for each in held]
    assert (found.heldout, found.heldout_start) == (
        found.heldout_all[0],
        found.heldout_start_all[0],
    )
    assert len(set(found.heldout_all)) == 2
    # Tests are about the first.
    assert (found.significance["on"], found.changed["sentences"]) == ("heldout", 8)
    told = [event for event in events if event["event"] == "epoch"]
    assert all(len(event["heldout_all"]) == 2 for event in told)
    assert all(event["heldout"] == event["heldout_all"][0] for event in told)


def test_weights_are_kept_by_the_first_held_out_source(world: Path) -> None:
    held = [source(world, "test", 8), source(world, "train", 10)]
    events: list[dict[str, Any]] = []
    asked: dict[str, Any] = {"heldout": held, "keep": "heldout", "iterations": 4}
    found = learn(world, "mira", listen=events.append, **asked)
    told = [event["heldout"] for event in events if event["event"] == "epoch"]
    assert found.heldout == max([found.heldout_start, *told])
    assert found.significance["chosen_there"]


# The second metric, tests and the verdict


@BOTH
def test_the_second_metric_is_scored_and_not_tuned(world: Path, preset: str) -> None:
    made, start = source(world), Weights(POOR["phrase"])
    alone = learn(world, preset)
    assert alone.second is not None and alone.second["name"] == "chrf"
    assert alone.second["tuned"] == score(made, alone.weights, "chrf")
    found = learn(world, preset, second_metric="ter")
    assert found.second is not None and found.second["name"] == "ter"
    assert found.second["start"] == score(made, start, "ter")
    assert found.second["tuned"] == score(made, found.weights, "ter")
    assert dict(found.weights) == dict(alone.weights)


def test_the_second_metric_is_scored_on_the_held_out_text(world: Path) -> None:
    held = source(world, "test", 8)
    found = learn(world, "mira", heldout=held, second_metric="ter")
    assert found.second is not None
    assert found.second["tuned"] == score(held, found.weights, "ter")


@pytest.mark.parametrize("asked", [{}, {"folds": 2}, {"seeds": 2}])
def test_tests_compare_with_the_start(world: Path, asked: dict[str, Any]) -> None:
    found = learn(world, "mira", **asked)
    tests = found.significance
    assert set(tests) == {
        "bootstrap",
        "randomisation",
        "against",
        "start",
        "on",
        "chosen_there",
    }
    # A decoder has nothing else that needs no tuning.
    assert tests["against"] == "start" and list(found.baselines) == ["start"]
    assert tests["start"] == {name: tests[name] for name in ("bootstrap", "randomisation")}
    after, before = found.tuned, found.start
    if "folds" in asked:
        assert found.heldout is not None and found.heldout_start is not None
        after, before = found.heldout, found.heldout_start
    assert tests["bootstrap"]["difference"] == pytest.approx(after - before)
    low, high = tests["bootstrap"]["ci"]
    assert low <= after - before <= high
    assert 0 < tests["bootstrap"]["p"] <= 1 and 0 < tests["randomisation"]["p"] <= 1
    assert not tests["chosen_there"]


def test_a_large_gain_on_held_out_text_is_called_better(world: Path) -> None:
    made, held = source(world, lines=None), source(world, "test", None)
    found = learn(world, "mert", made, heldout=held, iterations=4)
    assert found.heldout is not None and found.heldout_start is not None
    assert found.heldout > found.heldout_start + 5
    assert found.verdict == "better"


def test_a_start_that_is_good_already_is_never_called_worse_than_tuning(world: Path) -> None:
    """The same outputs before and after: nothing to tell apart."""
    held = source(world, "test", None)
    good = dict(learn(world, "mira", source(world, lines=None), iterations=4).weights)
    names = list(good)
    made = source(world)
    found = tune(
        *(made, "mira", METRIC),
        start=good,
        options={"c": 1e-9},
        heldout=held,
        iterations=1,
        threads=1,
    )
    assert found.changed["changed"] == 0
    assert np.allclose(found.weights.vector(names), [good[name] for name in names])
    assert found.verdict == "unclear"
