"""Learners that a decoder follows: equal to passes over its lists, and to twins in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins.drawing import Stream, visiting_order
from twins.fixed import Fixed
from twins.gaining import SentenceGain
from twins.lists import Lists, learnable
from twins.quick import FOLLOWING, QUICK
from twins.selecting import hope_fear, sampled_pairs
from twins.updating import Fobos, hinge_slope, logistic_slope

from tunesmith import Weights
from tunesmith.learn import selectors, updates
from tunesmith.learn.online import Learner, Online, Regime, Schedule, with_regime
from tunesmith.learn.task import Task
from tunesmith.metrics import get_metric
from tunesmith.presets import make_tuner, preset_options
from tunesmith.sources import Source
from tunesmith.spaces import Pools, Spaces
from tunesmith.tuning.rounds import Passes
from tunesmith.tuning.setup import Setup

Array = npt.NDArray[np.float64]
METRIC = "bleu:tokenize=none"
START = Weights({"f0": 0.1})


@st.composite
def sparse_lists(draw: st.DrawFn) -> Pools:
    """Lists in which every sentence has features that others have not."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    words = ["a", "b", "c", "d", "e", "f"]
    rows, starts, ids, values = [0], [0], list[int](), list[float]()
    texts, references = list[str](), list[list[str]]()
    for _ in range(chance.integers(3, 9)):
        references.append([" ".join(chance.choice(words, 5))])
        for _ in range(chance.integers(1, 6)):
            texts.append(" ".join(chance.choice(words, chance.integers(3, 7))))
            chosen = np.unique(np.concatenate([[0, 1], chance.integers(2, 30, 4)]))
            ids.extend(chosen)
            values.extend(chance.normal(size=len(chosen)))
            rows.append(len(ids))
        starts.append(len(texts))
    names = [f"f{number}" for number in range(30)]
    return Pools.from_arrays((rows, ids, values), starts, names, texts, references)


class Own(Fixed):
    """The same, but the lists of a sentence know only the features that they have."""

    def found(self, translator: Any, sentences: Sequence[int], k: int) -> Spaces:
        some = self.lists.subset(list(sentences))
        rows, ids, values = some.core.csr()
        own, places = np.unique(ids, return_inverse=True)
        return Pools.from_arrays(
            (rows, places, values),
            some.core.starts,
            [self.lists.names[i] for i in own],
            some.core.texts(np.arange(some.hypotheses)),
            some.references,
        )


def passed(source: Source, tuner: Online, passes: int, seed: int = 3) -> list[Weights]:
    """Return what a learner that a decoder follows proposes after each pass, from f0 = 0.1 on."""
    rounds, weights = Passes(tuner, source, Setup(get_metric(METRIC), {}, {}, 1), seed), START
    rounds.begin(weights)
    found = list[Weights]()
    for _ in range(passes):
        step = rounds.step(weights)
        if step is None:
            break
        weights = step.weights
        rounds.judge(step)
        found.append(weights)
    return found


def equal(found: Weights, wanted: Mapping[str, float]) -> None:
    for name, value in wanted.items():
        assert found.get(name, 0.0) == pytest.approx(value, abs=1e-9), name


def named(lists: Pools, weights: Array) -> dict[str, float]:
    return dict(zip(lists.names, weights.tolist(), strict=True))


def equals_lists(lists: Pools, decoder: Fixed, preset: str, regime: str) -> None:
    """Assert that following a decoder gives the weights of passes over its lists."""
    # Features that are met on the way have a unit of 1; those of lists are all measured.
    units = {"normalise": False} if "normalise" in preset_options(preset) else {}
    tuner = cast(Online, with_regime(make_tuner(preset, {**QUICK[preset], **units}), regime))
    free = np.full(len(lists.names), np.inf)
    task = Task(lists, get_metric(METRIC), -free, free, 1)
    expected = [
        named(lists, epoch.weights)
        for epoch in tuner.epochs(task, START.vector(lists.names), 3, None)
    ]
    for weights, wanted in zip(passed(decoder, tuner, len(expected)), expected, strict=True):
        equal(weights, wanted)


regimes = st.sampled_from(["batch=1", "batch=3", "shards=2"])


@given(sparse_lists(), st.sampled_from(FOLLOWING), regimes)
def test_lists_of_a_decoder_that_ignores_weights_are_lists(
    lists: Pools, preset: str, regime: str
) -> None:
    equals_lists(lists, Fixed(lists), preset, regime)


# Steps that just meet a constraint leave ties, which sums in another order would break otherwise.
@given(sparse_lists(), st.sampled_from(["adagrad", "arow", "perceptron"]), regimes)
def test_features_that_are_met_on_the_way_have_other_ids_and_the_same_weights(
    lists: Pools, preset: str, regime: str
) -> None:
    equals_lists(lists, Own(lists), preset, regime)


@given(sparse_lists(), st.integers(1, 4))
def test_a_batch_of_a_decoder_that_follows_sees_one_weight_vector(lists: Pools, batch: int) -> None:
    plain, weights = Lists.of(lists, METRIC), START.vector(lists.names)
    tuner = Online(
        learner=Learner(selector=selectors.HopeFear(), update=updates.Sgd("hinge", 0.1)),
        schedule=Schedule(passes=3, average="none"),
        regime=Regime(batch=batch),
    )
    twin = Fobos(hinge_slope, 0.1, 0.0, 0.0, False)
    for epoch, found in enumerate(passed(Own(lists), tuner, 3), 1):
        order = visiting_order(3, epoch, lists.sentences)
        for start in range(0, len(order), batch):
            rows = []
            for sentence in order[start : start + batch]:
                features, gains = plain.features[sentence], SentenceGain(plain)(sentence)
                better, worse = hope_fear(features @ weights, gains)
                rows.append((features[better] - features[worse], gains[better] - gains[worse]))
            weights = twin.step(weights, rows)
        equal(found, named(lists, weights))


@given(sparse_lists(), st.integers(1, 3), st.integers(0, 3), st.sampled_from([0.0, 0.02]))
def test_a_stale_gradient_is_the_one_at_the_weights_of_some_steps_ago(
    lists: Pools, batch: int, delay: int, l1: float
) -> None:
    """Both what is compared and how steep the loss is; the step is taken from the last weights."""
    plain, weights = Lists.of(lists, METRIC), START.vector(lists.names)
    tuner = Online(
        learner=Learner(selector=selectors.HopeFear(), update=updates.AdaGrad("logistic", 0.2, l1)),
        schedule=Schedule(passes=3, average="none"),
        regime=Regime(batch=batch, delay=delay, stale="gradient"),
    )
    twin = Fobos(logistic_slope, 0.2, l1, 0.0, True)
    for epoch, found in enumerate(passed(Own(lists), tuner, 3), 1):
        order, history = visiting_order(3, epoch, lists.sentences), [weights]
        for start in range(0, len(order), batch):
            then, rows = history[max(len(history) - 1 - delay, 0)], []
            for sentence in order[start : start + batch]:
                features, gains = plain.features[sentence], SentenceGain(plain)(sentence)
                better, worse = hope_fear(features @ then, gains)
                if better != worse:
                    rows.append((features[better] - features[worse], gains[better] - gains[worse]))
            history.append(twin.step(history[-1], rows, then))
        weights = history[-1]
        equal(found, named(lists, weights))


def test_batches_of_a_decoder_that_follows_are_not_single_steps() -> None:
    """What the test above would not notice if lists had nothing to disagree about."""
    for batch in (2, 3, 12):
        tuner = make_tuner("mira", {"c": 0.05})
        serial, other = (
            passed(Fixed(learnable(1)), cast(Online, each), 2)
            for each in (tuner, with_regime(tuner, f"batch={batch}"))
        )
        assert serial[-1] != other[-1]


@given(sparse_lists(), st.integers(1, 3), st.sampled_from([0.0, 0.02, 0.3]))
def test_features_that_appear_and_rest_shrink_as_if_every_step_touched_them(
    lists: Pools, batch: int, l1: float
) -> None:
    plain, weights = Lists.of(lists, METRIC), START.vector(lists.names)
    tuner = Online(
        learner=Learner(
            selector=selectors.Pairs(40, 0.0, 4), update=updates.AdaGrad("logistic", 0.2, l1)
        ),
        schedule=Schedule(passes=3, average="none"),
        regime=Regime(batch=batch),
    )
    dense = Fobos(logistic_slope, 0.2, l1, 0.0, True)
    found = passed(Own(lists), tuner, 3)
    for epoch, reached in enumerate(found, 1):
        order = visiting_order(3, epoch, lists.sentences)
        for start in range(0, len(order), batch):
            rows = []
            for sentence in order[start : start + batch]:
                features, gains = plain.features[sentence], SentenceGain(plain)(sentence)
                drawn = Stream(3, epoch, sentence)
                for better, worse in sampled_pairs(gains, drawn, 40, 0.0, 4):
                    difference = gains[better] - gains[worse]
                    rows.append((features[better] - features[worse], difference))
            weights = dense.step(weights, rows)
        equal(reached, named(lists, weights))
