"""What needs no tuning, and how tuned weights are held against it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from twins.lists import learnable

from tunesmith import Forests, InputError, Pools, Weights, _core, get_metric, tune
from tunesmith.learn.untuned import described, tried_alone, untuned_choices
from tunesmith.runs import RunDirectory
from tunesmith.spaces.moments import Within, spreads

BLEU = get_metric("bleu")


def systems(sentences: int = 60, good: Sequence[float] = (0.3, 0.9, 0.5)) -> Pools:
    """Return lists of one output per system, with a feature for each; `good` says how many words
    each has right, and no other feature tells right from wrong."""
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(50)]
    texts, references = [], []
    for _ in range(sentences):
        truth = rng.choice(words, 8)
        references.append([" ".join(truth)])
        for share in good:
            right = rng.random(8) < share
            texts.append(" ".join(np.where(right, truth, rng.choice(words, 8))))
    count = len(good)
    features = np.hstack(
        [np.tile(np.eye(count), (sentences, 1)), rng.normal(size=(sentences * count, 1))]
    )
    names = [f"system{i}" for i in range(count)] + ["noise"]
    starts = range(0, sentences * count + 1, count)
    return Pools.from_arrays(features, starts, names, texts=texts, references=references)


def test_each_feature_alone_counts_with_its_better_sign() -> None:
    pools = learnable(1, 40)
    for metric in (BLEU, get_metric("wer")):
        found = untuned_choices(pools, metric, pools.first(), np.zeros(4))
        assert list(found.scores)[:2] == ["start", "consensus"]
        assert {name[1:] for name in found.alone} == set(pools.names)
        assert next(iter(found.alone)) == "+quality"
        better = max if metric.higher_is_better else min
        assert found.scores[found.best] == better(found.scores.values())
        for name, score in found.alone.items():
            signs = [pools.score(metric, pools.best({name[1:]: sign})) for sign in (1.0, -1.0)]
            assert score == better(signs)
            assert score == pools.score(metric, found.choices[name])
        assert found.scores["start"] == pools.score(metric, pools.first())
        chosen = pools.consensus(np.zeros(4))
        assert found.scores["consensus"] == pools.score(metric, chosen)


def test_forests_of_lists_choose_as_the_lists_do() -> None:
    pools = learnable(1)
    forests, weights = Forests.of_lists(pools), np.array([1.0, 0.1, 0.0, 0.0])
    lists = untuned_choices(pools, BLEU, pools.best(weights), weights)
    found = untuned_choices(forests, BLEU, forests.best(weights), weights)
    assert found.alone == lists.alone and found.scores["start"] == lists.scores["start"]


def test_of_many_features_those_of_most_lists_are_tried_alone() -> None:
    sentences, rare = 10, 60
    ids, rows = [], [0]
    for sentence in range(sentences):
        for hypothesis in range(2):
            # One in each hypothesis, one in half of the lists, one in one hypothesis of each list.
            here = [0, 3 + sentence]
            here += [1] if sentence % 2 else []
            here += [2] if hypothesis else []
            ids += sorted(here)
            rows.append(len(ids))
    names = ["every", "half", "one", *(f"rare{i}" for i in range(rare))]
    pools = Pools.from_arrays(
        (rows, ids, np.ones(len(ids))),
        range(0, 2 * sentences + 1, 2),
        names,
        texts=["a", "b"] * sentences,
        references=[["b"]] * sentences,
    )
    assert tried_alone(pools) == [0, 1, 2]
    assert tried_alone(Forests.of_lists(pools)) == []
    found = untuned_choices(pools, get_metric("wer"), pools.first(), np.zeros(len(names)))
    assert (found.best, found.scores["+one"], found.features) == ("+one", 0.0, len(names))


def test_a_feature_that_is_frequent_in_few_lists_only_is_not_tried_alone() -> None:
    """Rare features of the other lists are none of it."""
    # One in each hypothesis, one in each of the first list, and one of its own in each other.
    ids = [each for row in range(40) for each in (0, 1 if row < 10 else row)]
    rows = (range(0, 81, 2), ids, np.ones(80))
    names = [f"f{place}" for place in range(60)]
    pools = Pools.from_arrays(rows, range(0, 41, 10), names)
    assert tried_alone(pools) == [0]


def test_there_is_no_consensus_among_equal_texts() -> None:
    pools = Pools.from_arrays([[1.0], [2.0]], [0, 2], ["a"], references=[["x"]])
    assert "consensus" not in untuned_choices(pools, BLEU, pools.first(), np.zeros(1)).scores


def test_names_are_said_in_words() -> None:
    names = ("start", "consensus", "+consensus", "-lm", "++")
    told = ["the start", "consensus", "consensus alone", "-lm alone", "+ alone"]
    assert [described(name) for name in names] == told


def test_tuning_that_finds_one_good_system_claims_no_win() -> None:
    pools = systems()
    result = tune(pools, "kbmira", folds=3, threads=1)
    tests = result.significance
    # The first system in the file is poor, so that anything beats the start.
    assert tests["start"]["bootstrap"]["difference"] > 10
    assert tests["start"]["randomisation"]["p"] < 0.01
    assert (tests["against"], tests["on"]) == ("+system1", "folds")
    assert result.baselines["+system1"] == max(result.baselines.values())
    assert result.heldout is not None
    difference = result.heldout - result.baselines["+system1"]
    assert tests["bootstrap"]["difference"] == pytest.approx(difference)
    assert result.verdict != "better"
    plain = result.to_json()
    assert plain["verdict"] == result.verdict and plain["baselines"] == result.baselines


def test_tuning_that_joins_two_features_is_better_than_each() -> None:
    rng = np.random.default_rng(3)
    quality = rng.normal(size=(200, 6))
    noise = rng.normal(size=(200, 6)) * 3
    features = np.stack([quality + noise, noise], axis=2).reshape(-1, 2)
    worth = np.round(quality * 5).ravel() + 50
    pools = Pools.from_arrays(
        features,
        range(0, 1201, 6),
        ["seen", "noise"],
        texts=[" ".join(["x"] * int(max(value, 1))) for value in worth],
        references=[[" ".join(["x"] * 90)]] * 200,
    )
    result = tune(pools, "mert", "wer", folds=3, threads=1)
    assert result.verdict == "better"
    assert result.significance["bootstrap"]["difference"] < 0
    assert result.baselines[result.significance["against"]] == min(result.baselines.values())


def test_baselines_are_scored_on_the_sentences_of_the_test() -> None:
    pools, held = systems(), systems(40)
    result = tune(pools, "kbmira", heldout=held, keep="heldout", threads=1)
    assert result.significance["on"] == "heldout" and result.significance["chosen_there"]
    chosen = held.best({"system1": 1.0})
    assert result.baselines["+system1"] == held.score(BLEU, chosen)
    assert result.baselines["start"] == result.heldout_start


def test_all_changed_sentences_are_counted_and_written(tmp_path: Path) -> None:
    pools = systems(300)
    result = tune(pools, "kbmira", threads=1, run=tmp_path / "run")
    before, after = (pools.outputs(each) for each in (pools.first(), pools.best(result.weights)))
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert changed > 200
    assert (result.changed["changed"], result.changed["sentences"]) == (changed, 300)
    directory = RunDirectory(tmp_path / "run")
    rows = directory.changes()
    assert len(rows) == changed
    gains = [row["gain_after"] - row["gain_before"] for row in rows]
    assert result.changed["better"] == sum(gain > 0 for gain in gains)
    assert result.changed["worse"] == sum(gain < 0 for gain in gains)
    assert directory.events()[-1]["changed"] == result.changed
    assert (directory.result() or {})["changed"] == result.changed


def dense(pools: Pools) -> npt.NDArray[np.float64]:
    """Return hypotheses × features."""
    rows, ids, values = pools.core.csr()
    matrix = np.zeros((pools.hypotheses, len(pools.names)))
    matrix[np.repeat(np.arange(pools.hypotheses), np.diff(rows)), ids] = values
    return matrix


def test_moments_are_those_of_centred_matrices() -> None:
    rng = np.random.default_rng(1)
    starts = [0, 0, 7, 8, 20, 35]
    matrix = rng.normal(size=(35, 6)).astype(np.float32) * (rng.random((35, 6)) < 0.6)
    matrix[:, 5] = np.repeat([0.0, 0.1, 0.2, 0.3, 0.4], np.diff(starts))
    pools = Pools.from_arrays(matrix, starts, list("abcdef"), texts=[f"t{i}" for i in range(35)])
    within, exact = Within(pools), dense(pools)
    blocks = [slice(a, b) for a, b in pairwise(starts) if b > a]
    centred = np.concatenate([exact[b] - exact[b].mean(axis=0) for b in blocks])
    values = rng.normal(size=35)
    levelled = np.concatenate([values[b] - values[b].mean() for b in blocks])
    np.testing.assert_allclose(within.gram(), centred.T @ centred, atol=1e-12)
    np.testing.assert_allclose(within.variances(), (centred**2).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(within.centre(values), levelled, atol=1e-12)
    np.testing.assert_allclose(within.covariances(values), centred.T @ levelled, atol=1e-12)
    np.testing.assert_allclose(within.scores(values[:6]), exact @ values[:6], atol=1e-12)
    # Rounding is no variation.
    assert within.variances()[5] == 0.0 and within.spread()[5] == 1.0
    cells = np.zeros((5, 6))
    for number, (a, b) in enumerate(pairwise(starts)):
        cells[number] = (centred[a:b] ** 2).sum(axis=0) * (np.arange(6) < 5)
    wanted = np.sqrt(cells) @ np.abs(values[:6])
    np.testing.assert_allclose(within.influence(values[:6]), wanted, atol=1e-12)
    np.testing.assert_array_equal(within.varying(), (cells > 1e-12).sum(axis=0))


def test_moments_add_up_in_the_order_of_the_hypotheses() -> None:
    """Tuned weights depend on every bit of the sums."""
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(400, 2)) * 10.0 ** rng.integers(-4, 5, size=(400, 2))
    pools = Pools.from_arrays(matrix, [0, 400], ["a", "b"], texts=[f"t{i}" for i in range(400)])
    exact = dense(pools)
    products = squares = first = second = 0.0
    for one, other in exact.tolist():
        products, squares = products + one * other, squares + one * one
        first, second = first + one, second + other
    within = Within(pools)
    assert within.gram()[0, 1] == products - first * (second * (1.0 / 400))
    assert within.variances()[0] == squares - first * first * (1.0 / 400)


def test_moments_cost_no_more_than_the_features_that_occur() -> None:
    """A dense table of these lists and features would have sixteen billion cells."""
    lists, width = 40_000, 400_000
    core = _core.Pools.from_arrays(
        np.arange(0, 2 * lists + 1, 2),
        [""] * (2 * lists),
        np.arange(2 * lists + 1),
        np.arange(2 * lists) * 5,
        np.ones(2 * lists),
        [f"f{i}" for i in range(width)],
    )
    within = Within(Pools(core))
    assert np.count_nonzero(within.variances()) == 2 * lists
    assert within.influence(np.ones(width)) == pytest.approx(np.full(lists, 2 * 0.5**0.5))


def test_spread_is_the_mean_deviation_within_lists() -> None:
    pools = learnable(1, empty=[2], scored=True)
    matrix = dense(pools)
    starts = pools.core.starts
    lists = [matrix[a:b] for a, b in pairwise(starts) if b - a > 1]
    wanted = np.mean([each.std(axis=0) for each in lists], axis=0)
    np.testing.assert_allclose(Within(pools).deviations(), wanted, rtol=1e-6)
    weights = Weights({"noise": 1.0, "lm": 1.0, "words": 0.0, "gone": 5.0})
    found = spreads(pools, weights)
    assert list(found) == ["lm", "noise"] and found["lm"] == pytest.approx(wanted[1])
    # All strings of a forest stand for it.
    assert spreads(Forests.of_lists(pools), weights).keys() == found.keys()


def test_tuned_weights_know_the_spread_of_their_features(tmp_path: Path) -> None:
    result = tune(learnable(1), "mira", run=tmp_path / "run", threads=1)
    again = Weights.load(tmp_path / "run" / "weights.toml")
    assert again.spread == result.weights.spread and set(again.spread) == set(result.weights)
    assert result.to_json()["influence"] == result.weights.influence


def test_a_start_without_a_single_feature_is_refused() -> None:
    with pytest.raises(InputError, match=r"no feature is called 'lmm' \(use 'lm'\)"):
        tune(learnable(1), "mira", start={"lmm": 1.0})
