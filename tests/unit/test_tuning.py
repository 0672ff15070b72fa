"""What tune() returns, refuses and keeps apart."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from twins.lists import NAMES, Array, WordOverlap, counted, learnable
from twins.quick import ON_LISTS, QUICK

from tunesmith import (
    Bins,
    Forests,
    InputError,
    Pools,
    Result,
    Weights,
    get_metric,
    tune,
)
from tunesmith.learn import selectors, updates
from tunesmith.learn.online import Learner, Online, Schedule
from tunesmith.learn.task import Epoch, Task
from tunesmith.spaces.moments import recover_weights
from tunesmith.tuning.comparison import average_direction
from tunesmith.tuning.limits import limits
from tunesmith.tuning.loop import fold_parts


class Stay:
    """A tuner that proposes given weights, one epoch each."""

    def __init__(self, *proposals: Any) -> None:
        self.proposals = [np.array(weights, np.float64) for weights in proposals]
        self.tasks: list[Task] = []
        self.starts: list[Array] = []

    def epochs(self, task: Task, start: Array, seed: int, state: Any) -> Any:
        self.tasks.append(task)
        self.starts.append(start)
        for number, weights in enumerate(self.proposals, start=1):
            yield Epoch(number, weights, {}, {}, number == len(self.proposals))


def online(selector: selectors.Selector, update: updates.Update, **more: Any) -> Online:
    """Return a tuner of one's own."""
    return Online(learner=Learner(selector=selector, update=update), **more)


GOOD, BAD = [1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]


# Scores


def test_scores_are_those_of_the_chosen_outputs() -> None:
    pools = learnable(1)
    result = tune(pools, "mira", "bleu", threads=1)
    metric = get_metric("bleu")
    first, chosen = pools.first(), pools.best(result.weights)
    references = pools.references or []
    assert result.start == metric.corpus_score(pools.outputs(first), references)
    assert result.tuned == metric.corpus_score(pools.outputs(chosen), references)
    assert result.start < result.tuned
    assert result.heldout is None and result.significance["on"] == "lists"
    assert result.second is not None and result.second["name"] == "chrf"
    plain = result.to_json()
    assert plain["weights"] == dict(result.weights)
    assert {"tuner", "metric", "start", "tuned", "oracle", "heldout", "seconds"} <= set(plain)


def test_an_error_rate_is_lowered() -> None:
    result = tune(learnable(1), "mira", "ter", threads=1)
    assert result.oracle is not None and result.oracle <= result.tuned < result.start
    assert result.refused is None


def test_an_empty_list_counts_as_a_blank_output() -> None:
    pools = learnable(1, empty=[2, 5])
    result = tune(pools, "mira", "wer", threads=1)
    outputs = pools.outputs(pools.best(result.weights))
    assert outputs[2] == outputs[5] == ""
    assert result.tuned == get_metric("wer").corpus_score(outputs, pools.references or [])


def test_the_second_metric_is_scored_and_not_tuned() -> None:
    pools = learnable(1)
    result = tune(pools, "mira", "bleu", second_metric="ter", threads=1)
    assert result.second is not None
    assert result.second["tuned"] == pools.score(get_metric("ter"), pools.best(result.weights))
    assert result.second["start"] == pools.score(get_metric("ter"), pools.first())


# Start weights


def test_start_weights_are_a_mapping_or_a_vector() -> None:
    pools = learnable(1)
    start = {"lm": 0.5, "noise": -1.0, "unheard-of": 3.0}
    vector = np.array([0.0, 0.5, 0.0, -1.0])
    for given in (start, Weights(start), vector):
        stay = Stay(GOOD)
        result = tune(pools, tuner=stay, start=given)
        assert stay.starts[0].tolist() == vector.tolist()
        assert result.start == pools.score(get_metric("bleu"), pools.best(vector))


def test_without_start_weights_those_behind_the_scores_are_recovered() -> None:
    pools = learnable(4, scored=True)
    stay = Stay(GOOD)
    tune(pools, tuner=stay)
    np.testing.assert_allclose(stay.starts[0], [0.02, 0.5, -0.3, 0.4], atol=1e-6)


def test_without_scores_learning_starts_at_nothing() -> None:
    stay = Stay(GOOD)
    tune(learnable(4), tuner=stay)
    assert not stay.starts[0].any()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.zeros(3), "for 4 features"),
        ([np.nan, 0, 0, 0], "is nan"),
        ({"lm": np.inf}, "the weight of lm is inf"),
    ],
)
def test_start_weights_that_do_not_fit_are_refused(start: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tune(learnable(1), "mira", start=start)


# Recovering weights


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_behind_linear_scores_are_recovered(sparse: bool) -> None:
    rng = np.random.default_rng(2)
    sizes = [5, 0, 1, 8, 6, 0]
    pools = counted(rng, sizes, 3, sparse=sparse)
    weights = np.array([0.5, -2.0, 0.0])
    scores = pools.core.dot(weights, 1) + np.repeat(rng.normal(size=6) * 50, sizes)
    rows, ids, values = pools.core.csr()
    scored = Pools.from_arrays((rows, ids, values), pools.core.starts, pools.names, scores=scores)
    found = recover_weights(scored)
    assert found is not None
    np.testing.assert_allclose(found.vector(pools.names), weights, atol=1e-6)


@pytest.mark.parametrize("constant", [1.0, 12345.678, -1e6])
def test_features_that_never_vary_do_not_disturb_recovery(constant: float) -> None:
    rng = np.random.default_rng(2)
    features = np.column_stack([rng.normal(size=(40, 2)), np.full(40, constant)])
    features = features.astype(np.float32).astype(np.float64)
    scores = features @ [1.0, -0.5, 0.25]
    pools = Pools.from_arrays(features, np.arange(0, 41, 8), ["a", "b", "c"], scores=scores)
    found = recover_weights(pools)
    assert found is not None
    np.testing.assert_allclose(found.vector(["a", "b"]), [1.0, -0.5], rtol=1e-4)
    assert np.array_equal(pools.best(found), pools.best(np.array([1.0, -0.5, 0.0])))


@pytest.mark.parametrize("kind", ["missing", "noise", "constant", "infinite", "quadratic"])
def test_no_weights_are_recovered_from_scores_that_are_not_linear(kind: str) -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 2))
    scores = {
        "missing": np.full(60, np.nan),
        "noise": rng.normal(size=60),
        "constant": np.ones(60),
        "infinite": np.where(np.arange(60) == 3, np.inf, features[:, 0]),
        "quadratic": (features**2).sum(axis=1),
    }[kind]
    pools = Pools.from_arrays(features, np.arange(0, 61, 10), ["a", "b"], scores=scores)
    assert recover_weights(pools) is None


def test_merged_lists_start_from_the_weights_of_the_first() -> None:
    """Later lists were scored by other weights; together their scores fit none."""
    one, two = learnable(4, scored=True), learnable(4, 12, 9)
    stay = Stay(GOOD)
    merged = Pools.merge([one, two])
    tune(merged, tuner=stay)
    np.testing.assert_allclose(stay.starts[0], [0.02, 0.5, -0.3, 0.4], atol=1e-6)


# Held-out lists and folds


def test_heldout_lists_are_scored_but_not_learnt_from() -> None:
    pools, held = learnable(1), learnable(2)
    alone = tune(pools, "mira", threads=1)
    result = tune(pools, "mira", heldout=held, threads=1)
    assert result.weights == alone.weights
    metric = get_metric("bleu")
    assert result.heldout == held.score(metric, held.best(result.weights))
    assert result.heldout_start == held.score(metric, held.first())
    assert result.significance["on"] == "heldout"


@pytest.mark.parametrize("metric", ["bleu", "column:worth"])
def test_heldout_lists_may_have_other_features_in_another_order(metric: str) -> None:
    pools = learnable(1)
    same = learnable(2)
    shuffled = learnable(2, names=["extra", "noise", "words", "quality", "lm"])
    assert shuffled.names != same.names
    result = tune(pools, "mira", metric, heldout=same, threads=1)
    other = tune(pools, "mira", metric, heldout=shuffled, threads=1)
    assert (other.heldout, other.heldout_start) == (result.heldout, result.heldout_start)


def test_heldout_forests_may_have_other_features_in_another_order() -> None:
    pools = Forests.of_lists(learnable(1))
    names = ["extra", "noise", "words", "quality", "lm"]
    same, shuffled = (
        tune(pools, tuner=Stay([0.2, 0.1, 0.0, 0.3]), start=np.array(GOOD), heldout=held)
        for held in (Forests.of_lists(learnable(2)), Forests.of_lists(learnable(2, names=names)))
    )
    assert (same.heldout, same.heldout_start) == (shuffled.heldout, shuffled.heldout_start)


def test_weights_may_be_kept_by_the_heldout_score() -> None:
    pools, held = learnable(1), learnable(2)
    for keep in ("best", "heldout", "last"):
        stay = Stay(GOOD, [0.9, 0.1, 0, 0], BAD)
        metric = get_metric("bleu")
        task_best = [pools.score(metric, pools.best(w)) for w in stay.proposals]
        held_best = [held.score(metric, held.best(w)) for w in stay.proposals]
        expected = {
            "best": stay.proposals[int(np.argmax(task_best))],
            "heldout": stay.proposals[int(np.argmax(held_best))],
            "last": stay.proposals[-1],
        }[keep]
        result = tune(pools, tuner=stay, heldout=held, keep=keep)
        assert result.weights.vector(NAMES).tolist() == expected.tolist()


@pytest.mark.parametrize("folds", [2, 3, 12])
def test_fold_weights_never_see_their_sentences(folds: int) -> None:
    pools = learnable(1)
    stay = Stay(GOOD)
    result = tune(pools, tuner=stay, folds=folds, seed=5)
    parts = fold_parts(pools.sentences, folds, 5)
    assert sorted(np.concatenate(parts).tolist()) == list(range(12))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    whole = pools.references or []
    assert len({texts[0] for texts in whole}) == 12
    for part, task in zip(parts, stay.tasks[1:], strict=True):
        seen = {texts[0] for texts in task.spaces.references or []}
        assert seen == {texts[0] for i, texts in enumerate(whole) if i not in part}
    assert result.significance["on"] == "folds"


def test_every_fold_is_scored_with_its_own_weights() -> None:
    pools = learnable(1)
    result = tune(pools, "mira", folds=3, threads=1)
    chosen = np.full(12, -1)
    for part in fold_parts(12, 3, 1):
        rest = pools.subset([i for i in range(12) if i not in part])
        weights = tune(rest, "mira", threads=1, start=np.zeros(4)).weights
        chosen[part] = pools.best(weights)[part]
    assert result.heldout == pools.score(get_metric("bleu"), chosen)
    assert result.heldout_start == result.start


@pytest.mark.parametrize(
    "lines",
    [
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
        [0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3],
    ],
    ids=["even", "uneven"],
)
@pytest.mark.parametrize("folds", [2, 4])
def test_folds_never_split_the_bins_of_a_line(lines: Any, folds: int) -> None:
    lists = learnable(1)
    bins = Bins.of_lists(replace_references(lists, lines), lines)
    stay = Stay(GOOD)
    result = tune(bins, tuner=stay, folds=folds, seed=2)
    left_out: list[int] = []
    for task in stay.tasks[1:]:
        learnt = Counter(int(named[0]) for named in task.spaces.references or [])
        # A line is there with all of its bins, or not at all.
        assert all(count == lines.count(line) for line, count in learnt.items())
        left_out += [line for line in range(4) if line not in learnt]
    assert len(stay.tasks) == 1 + folds
    # Every line is held out once.
    assert sorted(left_out) == [0, 1, 2, 3]
    assert result.significance["on"] == "folds" and result.changed["sentences"] == 4


def replace_references(lists: Pools, lines: list[int]) -> Pools:
    """Return lists whose references name the line that they belong to."""
    return Pools(lists.core, [[str(line)] for line in lines])


def test_every_fold_of_bins_is_scored_with_its_own_weights() -> None:
    lists, lines = learnable(1), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    bins = Bins.of_lists(lists, lines)
    result = tune(bins, "mira", folds=2, threads=1)
    chosen = np.full(12, -1)
    for part in fold_parts(4, 2, 1):
        held = np.flatnonzero(np.isin(lines, part))
        rest = bins.subset([i for i in range(12) if i not in held])
        weights = tune(rest, "mira", threads=1, start=np.zeros(4)).weights
        chosen[held] = bins.best(weights)[held]
    assert result.heldout == bins.score(get_metric("bleu"), chosen)
    assert result.heldout_start == result.start


# Seeds


def test_runs_of_several_seeds_are_averaged() -> None:
    pools = learnable(1)
    single = [tune(pools, "mira", seed=seed, threads=1) for seed in (7, 8, 9)]
    result = tune(pools, "mira", seed=7, seeds=3, threads=1)
    mean = average_direction([one.weights.vector(NAMES) for one in single])
    np.testing.assert_allclose(result.weights.vector(NAMES), mean, rtol=1e-12)
    assert result.runs == [one.tuned for one in single]
    assert len({tuple(one.weights.values()) for one in single}) == 3


def test_no_run_counts_for_more_because_its_weights_are_large() -> None:
    mean = average_direction([np.array([100.0, 0.0]), np.array([0.0, 1.0])])
    assert mean[0] == pytest.approx(mean[1])
    assert average_direction([np.zeros(2), np.array([0.0, 2.0])]).tolist() == [0.0, 0.5]
    assert average_direction([np.array([3.0, 4.0])]).tolist() == [3.0, 4.0]


def test_averaging_runs_keeps_the_size_of_weights_relative_to_fixed_ones() -> None:
    """With a weight fixed, the length of the others means something."""
    pools = learnable(1)

    class BySeed(Stay):
        def epochs(self, task: Task, start: Array, seed: int, state: Any) -> Any:
            size = {1: 1.0, 2: 3.0}[seed]
            yield Epoch(1, np.array([size, 0.0, 0.0, 0.5]), {}, {}, True)

    result = tune(pools, tuner=BySeed(), seeds=2, fixed={"noise": 0.5})
    assert result.weights.vector(NAMES).tolist() == [2.0, 0.0, 0.0, 0.5]


# Limits


def test_bounds_and_fixed_weights_take_names_and_patterns() -> None:
    names = ["TM0", "TM1", "TM*", "LM"]
    lower, upper = limits(names, {"TM*": (0.0, 1.0), "TM[01]": (-1.0, 2.0)}, {"LM": 0.5})
    assert lower.tolist() == [-1.0, -1.0, 0.0, 0.5]
    assert upper.tolist() == [2.0, 2.0, 1.0, 0.5]


def test_limits_that_fit_nothing_are_refused() -> None:
    with pytest.raises(InputError, match=r"no feature is called 'XX\*'.*lm"):
        tune(learnable(1), "mira", bounds={"XX*": (0, 1)})
    with pytest.raises(InputError, match="lower one first"):
        tune(learnable(1), "mira", bounds={"lm": (1, 0)})
    with pytest.raises(InputError):
        tune(learnable(1), "mira", fixed={"lm": np.nan})


@pytest.mark.parametrize("preset", ON_LISTS)
def test_tuning_with_every_weight_fixed_is_refused(preset: str) -> None:
    with pytest.raises(InputError, match="fixed"):
        tune(learnable(1), preset, options=QUICK[preset], fixed={"*": 0.5})


def test_limits_hold_in_the_result() -> None:
    result = tune(
        learnable(1), "mira", seeds=2, bounds={"qual*": (-0.1, 0.0)}, fixed={"lm": 0.3}, threads=1
    )
    assert -0.1 <= result.weights["quality"] <= 0.0
    assert result.weights["lm"] == 0.3


# Refusals


def test_all_zero_weights_are_refused() -> None:
    result = tune(learnable(1), tuner=Stay([0.0] * 4))
    assert result.refused is not None and "zero" in result.refused


def test_unchanged_weights_are_refused() -> None:
    result = tune(learnable(1), tuner=Stay(GOOD), start=np.array(GOOD))
    assert result.refused is not None and "not changed" in result.refused


def test_weights_that_are_only_longer_are_refused_as_unchanged() -> None:
    result = tune(learnable(1), tuner=Stay([3.0, 0, 0, 0]), start=np.array(GOOD))
    assert result.refused is not None and "not changed" in result.refused


def test_a_tuned_score_below_the_start_is_refused() -> None:
    for metric in ("bleu", "ter"):
        result = tune(learnable(1), tuner=Stay(BAD), metric=metric, start=np.array(GOOD))
        assert result.refused is not None and "worse than the start" in result.refused


def test_weights_that_are_not_finite_are_refused() -> None:
    for more in ({}, {"heldout": learnable(2)}, {"folds": 2}, {"seeds": 2}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = tune(learnable(1), tuner=Stay([np.nan, 1.0, np.inf, 0.0]), **more)
        assert result.refused is not None and "finite" in result.refused


def test_weights_that_were_finite_once_are_kept() -> None:
    result = tune(learnable(1), tuner=Stay(GOOD, [np.nan] * 4))
    assert result.refused is None and dict(result.weights) == dict(zip(NAMES, GOOD, strict=True))


def test_a_score_that_is_no_number_is_refused() -> None:
    class Broken(WordOverlap):
        def score_rows(self, rows: Array) -> Array:
            return np.full(len(rows), np.nan)

        def __repr__(self) -> str:
            return "Broken()"

    with pytest.raises(ValueError, match="NaN"):
        tune(learnable(1), tuner=Stay(GOOD), metric=Broken())


def test_a_good_result_is_not_refused() -> None:
    assert tune(learnable(1), tuner=Stay(GOOD)).refused is None


def test_too_much_regularisation_is_refused_as_all_zero() -> None:
    result = tune(learnable(1), "adagrad", options={"l1": 1e6}, threads=1)
    assert result.refused is not None and "regularisation" in result.refused


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"preset": "mirra"}, "no tuner named 'mirra'.*mira"),
        ({"options": {"cc": 1}}, "no option 'cc'"),
        ({"metric": "blue"}, "unknown metric"),
        ({"folds": 1}, "1 folds"),
        ({"folds": 13}, "13 folds of 12"),
        ({"seeds": 0}, "0 runs"),
        ({"keep": "heldout"}, "there is none"),
        ({"folds": 2, "heldout": learnable(2)}, "both"),
        ({"seed": -1}, "seed"),
        ({"keep": "foo"}, "keep is 'foo'"),
        ({"threads": -1}, "-1 threads"),
    ],
)
def test_requests_that_make_no_sense_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tune(learnable(1), **asked)


# Lists at the edge


def arrays(features: Any, starts: Any, **more: Any) -> Pools:
    features = np.asarray(features, np.float64)
    names = [f"f{i}" for i in range(features.shape[1])]
    count = len(starts) - 1
    texts = [f"a b c d e {i % 7}" for i in range(len(features))]
    references = [[f"a b c d e {i}"] for i in range(count)]
    given: dict[str, Any] = {"texts": texts, "references": references} | more
    return Pools.from_arrays(features, starts, names, **given)


every_preset = pytest.mark.parametrize("preset", ON_LISTS)


def run(preset: str, pools: Pools, metric: str = "chrf", **more: Any) -> Result:
    result = tune(pools, preset, metric, options=QUICK[preset], threads=1, **more)
    assert np.isfinite(list(result.weights.values())).all()
    better = result.tuned <= result.start if metric == "wer" else result.tuned >= result.start
    assert result.refused or better
    return result


@every_preset
def test_lists_of_one_leave_nothing_to_learn(preset: str) -> None:
    result = run(preset, arrays(np.arange(8.0).reshape(4, 2), [0, 1, 2, 3, 4]))
    assert result.tuned == result.start == result.oracle


@every_preset
def test_equal_hypotheses_leave_nothing_to_learn(preset: str) -> None:
    texts = ["a b c"] * 6
    pools = arrays(np.ones((6, 2)), [0, 3, 6], texts=texts, references=[["a b"], ["a c"]])
    result = run(preset, pools)
    assert result.tuned == result.start == result.oracle


@every_preset
def test_constant_features_are_survived(preset: str) -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack([np.ones(40), rng.normal(size=40)])
    run(preset, arrays(features, np.arange(0, 41, 8)))


@every_preset
def test_features_unseen_in_some_lists_are_learnt(preset: str) -> None:
    """`good` is there in the second list only, and tells its hypotheses apart."""
    texts = ["a b c x", "a b c d", "e f g x", "e f g h"]
    features = ([0, 1, 2, 3, 5], [0, 0, 0, 0, 1], [0.5, 0.4, 0.3, 0.2, 1.0])
    pools = Pools.from_arrays(
        features, [0, 2, 4], ["seen", "good"], texts, [["a b c d"], ["e f g h"]]
    )
    result = run(preset, pools)
    assert result.refused or result.weights["good"] > 0 or result.weights["seen"] < 0


@every_preset
def test_huge_values_are_survived(preset: str) -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack([rng.normal(size=40) * 1e30, rng.normal(size=40)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        run(preset, arrays(features, np.arange(0, 41, 8)))


@every_preset
def test_duplicates_are_survived(preset: str) -> None:
    pools = learnable(1, 6, 5)
    _, _, values = pools.core.csr()
    starts = pools.core.starts
    twice = np.concatenate([np.tile(np.arange(a, b), 2) for a, b in pairwise(starts)])
    matrix = values.reshape(-1, 4)[twice]
    texts = pools.core.texts(twice)
    doubled = Pools.from_arrays(matrix, starts * 2, pools.names, texts, pools.references)
    result = run(preset, doubled, "bleu")
    assert result.start == pools.score(get_metric("bleu"), pools.first())


@pytest.mark.parametrize("preset", ["mert", "kbmira", "pro", "rm-cp", "risk", "mira-hildreth"])
def test_a_list_of_five_thousand_is_survived(preset: str) -> None:
    rng = np.random.default_rng(1)
    sizes = [5000, 3]
    pools = counted(rng, sizes, 5)
    result = tune(pools, preset, "wer", options=QUICK[preset], threads=1)
    assert result.refused or result.tuned <= result.start


@every_preset
def test_empty_lists_are_passed_over(preset: str) -> None:
    result = run(preset, learnable(1, empty=[0, 4, 11]), "bleu")
    assert result.refused is None and result.tuned > result.start


@every_preset
def test_folds_without_a_hypothesis_are_survived(preset: str) -> None:
    pools = learnable(1, 4, 5, empty=[0, 1, 3])
    run(preset, pools, "wer", folds=4)


def test_lists_without_hypotheses_or_features_are_refused() -> None:
    with pytest.raises(InputError, match="no hypotheses"):
        tune(learnable(1, 3, empty=[0, 1, 2]), "mira")
    bare = Pools.from_arrays(np.zeros((2, 0)), [0, 2], [], ["a", "b"], [["a"]])
    with pytest.raises(InputError, match="no features"):
        tune(bare, "mira")


def test_a_metric_that_reads_text_needs_references() -> None:
    pools = Pools.from_arrays(np.ones((2, 1)), [0, 2], ["f"], ["a", "b"])
    with pytest.raises(InputError, match="needs references"):
        tune(pools, "mira", "bleu")


def test_a_tuner_of_ones_own_takes_the_place_of_a_preset() -> None:
    tuner = online(
        selectors.HopeFear("LU", "MC"), updates.Perceptron(0.1), schedule=Schedule(passes=4)
    )
    result = tune(learnable(1), tuner=tuner, threads=1)
    assert result.refused is None and result.tuned > result.start


def test_what_a_selector_or_a_rule_raises_reaches_the_caller() -> None:
    def broken(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
        raise ZeroDivisionError("by design")

    with pytest.raises(ZeroDivisionError, match="by design"):
        tune(learnable(1), tuner=online(selectors.Custom(broken), updates.Perceptron()))
    outside = selectors.Custom(lambda scores, gains, seed: [(0, 99)])
    with pytest.raises(RuntimeError, match="candidate 99 of a list of 8"):
        tune(learnable(1), tuner=online(outside, updates.Perceptron()))

    class Broken:
        def init(self, features: int, /) -> Array:
            return np.zeros(0)

        def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
            return w * np.nan, state

    with pytest.raises(RuntimeError, match="not finite"):
        tune(learnable(1), tuner=online(selectors.HopeFear(), updates.Custom(Broken())))


def test_separate_cannot_be_called_after_its_step() -> None:
    kept: list[Any] = []

    class Keeps:
        def init(self, features: int, /) -> Array:
            return np.zeros(0)

        def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
            separate(w)
            kept.append(separate)
            return w + 0.1, state

    rule = updates.Custom(Keeps())
    tune(learnable(1), tuner=online(selectors.HopeFear(), rule, schedule=Schedule(passes=1)))
    with pytest.raises(RuntimeError, match="ended"):
        kept[0](np.zeros(4))


def test_the_bounds_of_the_relative_margin_come_after_the_inner_constraints() -> None:
    """First the inner selector's rows, then y+ against the lowest-scoring candidate, then against
    the highest, under the weights of the moment; then nothing."""
    lists = learnable(1, 1, 6)
    rows, ids, values = lists.core.csr()
    features = np.zeros((lists.hypotheses, 4))
    for h in range(lists.hypotheses):
        features[h, ids[rows[h] : rows[h + 1]]] = values[rows[h] : rows[h + 1]]
    gains = get_metric("bleu").native.sentence_gains(lists.table("bleu").rows())
    oracle = int(np.argmax(gains))
    seen: list[list[list[tuple[list[float], float]]]] = []
    points = [np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 0.5])]

    class Asks:
        """Ask for the rows of all rounds under some weights, and stay."""

        def init(self, size: int, /) -> Array:
            return np.zeros(0)

        def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
            seen.append([self.rows(separate(points[min(r, 1)], r)) for r in range(4)])
            return w, state

        def rows(self, found: Any) -> list[tuple[list[float], float]]:
            made = []
            for row, (a, b) in enumerate(pairwise(found["starts"])):
                dense = np.zeros(4)
                dense[found["ids"][a:b]] = found["values"][a:b]
                made.append((dense.tolist(), float(found["gains"][row])))
            return made

    inner = selectors.HopeFear("LU", "PB")
    start = np.array([0.0, 1.0, 0.0, 0.0])
    for selector in (inner, selectors.Bounded(inner, 1.5, 0.01)):
        tuner = online(selector, updates.Custom(Asks()), schedule=Schedule(passes=1))
        tune(lists, tuner=tuner, start=start)
    plain, bounded = seen

    def row(other: int, sign: float, loss: Any) -> tuple[list[float], Any]:
        return (sign * (features[oracle] - features[other])).tolist(), loss

    first, second = (features @ point for point in points)
    best = int(np.argmax(first))
    assert oracle not in (best, int(np.argmin(second)), int(np.argmax(second)))
    assert plain[1:] == [[], [], []]
    assert plain[0] == [row(best, 1.0, pytest.approx(gains[oracle] - gains[best]))]
    assert bounded == [
        plain[0],
        [row(int(np.argmin(second)), -1.0, -1.5)],
        [row(int(np.argmax(second)), 1.0, -1.5)],
        [],
    ]


def test_events_tell_the_story() -> None:
    events: list[dict[str, Any]] = []
    result = tune(
        learnable(1), "kbmira", options={"passes": 3}, seeds=2, folds=2, listen=events.append
    )
    kinds = [event["event"] for event in events]
    one_run = ["epoch"] * 3
    assert kinds == [
        "start", *one_run, "run_end", *one_run, "run_end",
        *one_run, "fold_end", *one_run, "fold_end", "end",
    ]  # fmt: skip
    assert events[0]["start"] == result.start and events[0]["oracle"] == result.oracle
    assert events[0]["worst"] < events[0]["start"]
    assert events[-1]["tuned"] == result.tuned and events[-1]["status"] == "ok"
    epoch = events[1]
    assert epoch["run"] == 0 and epoch["epoch"] == 1 and set(epoch["weights"]) <= set(NAMES)
    assert epoch["spread"]["mean"] >= 0 and epoch["prediction"] <= epoch["oracle"]
