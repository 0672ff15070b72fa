"""Passes and decodings: what a round goes on from, when it is the last, which one is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from twins.fixed import Fixed, Proposing
from twins.lists import learnable
from twins.live import METRIC

from tunesmith import Result, Weights, tune
from tunesmith.learn import selectors, updates
from tunesmith.learn.online import Learner, Online, Schedule
from tunesmith.learn.task import Epoch
from tunesmith.metrics import get_metric
from tunesmith.sources import Saved, Source
from tunesmith.spaces import Forests, Pools, Spaces
from tunesmith.tuning.rounds import Decoded, Decodings, Epochs, Passes
from tunesmith.tuning.setup import Setup

Array = npt.NDArray[np.float64]


@dataclass
class Turning(Source):
    """A decoder that finds the same hypotheses with all weights, in another order."""

    lists: Pools

    def __post_init__(self) -> None:
        self.references, self.sources = self.lists.references or [], [""] * self.lists.sentences

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        return Forests.of_lists(self.lists).prune(weights)


class Pruning(Turning):
    """The same, as if its beam had a threshold."""

    prunes = True


class Pointing(Proposing):
    """A tuner that proposes weights of which only the direction means something."""

    scale_free = True


@pytest.mark.parametrize("forests", [False, True])
@pytest.mark.parametrize(
    ("tuner", "source", "scaled"),
    [(Pointing, Turning, True), (Proposing, Pruning, True), (Proposing, Turning, False)],
)
def test_scores_stay_as_large_as_they_were_where_directions_are_tuned_or_a_beam_prunes(
    forests: bool, tuner: type[Proposing], source: type[Turning], scaled: bool
) -> None:
    chance = np.random.default_rng(2)
    features = chance.normal(size=(20, 4))
    features[:, 2] = np.repeat(np.arange(5), 4)
    features[4:, 3] = 0.0
    texts = [" ".join(chance.choice(list("abcdef"), 6)) for _ in features]
    references = [[" ".join(chance.choice(list("abcdef"), 6))] for _ in range(5)]
    names = ["a", "b", "same", "rare"]
    lists = Pools.from_arrays(features, np.arange(0, 21, 4), names, texts, references)
    proposed = {"a": 0.02, "b": -0.01, "same": 0.9, "rare": 0.03}
    decodings = Decodings(tuner(proposed), source(lists), Setup(get_metric("bleu"), {}, {}, 1), 3)
    start = Weights({"a": 0.8, "b": -0.4, "same": -100.0, "rare": -100.0})
    kept = Decoded(start, lambda: Forests.of_lists(lists) if forests else lists)
    decodings.restore(start, [kept], {})
    step = decodings.step(start)
    assert step is not None
    sized = {"a": 0.8, "b": -0.4, "same": -100.0, "rare": 1.2}
    assert dict(step.weights) == pytest.approx(sized if scaled else proposed)


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
