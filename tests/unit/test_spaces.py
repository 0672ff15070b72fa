"""Lists from arrays: what they hold, what they refuse, how they are cut and joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from twins.lists import Array, WordOverlap, learnable

from tunesmith import Bins, Forests, InputError, Pools, Weights, get_metric

FEATURES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def made(**more: Any) -> Pools:
    given: dict[str, Any] = {
        "features": FEATURES,
        "starts": [0, 2, 2, 3],
        "names": ["a", "b"],
        "texts": ["x y", "x z", "w"],
        "references": [["x y"], ["v"], ["w", "u"]],
    }
    return Pools.from_arrays(**(given | more))


def test_lists_hold_what_they_were_given() -> None:
    pools = made(scores=[3.0, 2.0, 1.0])
    assert (pools.sentences, pools.hypotheses, pools.names) == (3, 3, ["a", "b"])
    assert pools.core.starts.tolist() == [0, 2, 2, 3]
    assert pools.core.scores.tolist() == [3.0, 2.0, 1.0]
    assert pools.core.features(1) == [("a", 3.0), ("b", 4.0)]
    assert pools.first().tolist() == [0, -1, 2]
    assert pools.outputs(pools.first()) == ["x y", "", "w"]
    assert repr(pools) == "Pools(3 sentences, 3 hypotheses, 2 features)"


def test_a_string_is_one_reference() -> None:
    strings, lists = made(references=["x y", "v", "w"]), made(references=[["x y"], ["v"], ["w"]])
    assert strings.references == lists.references == [["x y"], ["v"], ["w"]]
    bleu = get_metric("bleu")
    assert strings.score(bleu, strings.first()) == lists.score(bleu, lists.first())
    assert Forests.of_lists(strings).references == lists.references
    assert Forests(Forests.of_lists(lists).core, ["x y", "v", "w"]).references == lists.references
    bins = Bins.of_lists(lists, [0, 0, 1]).against(["x y", "v"])
    assert bins.references == [["x y"], ["x y"], ["v"]]
    with pytest.raises(InputError, match="a string in place of references"):
        made(references="xyz")


def test_spaces_have_a_length_and_are_there_without_sentences() -> None:
    pools = made()
    assert len(pools) == len(Forests.of_lists(pools)) == 3
    assert pools.subset([]) and len(pools.subset([])) == 0


def test_metrics_and_weights_are_known_by_name() -> None:
    pools = made()
    forests = Forests.of_lists(pools)
    bleu, weights = get_metric("bleu"), {"a": 1.0, "b": -1.0}
    vector = pools.vector(weights)
    for spaces in (pools, forests):
        chosen = spaces.oracle("bleu", weights)
        assert chosen.tolist() == spaces.oracle(bleu, vector).tolist()
        assert spaces.score("bleu", chosen) == spaces.score(bleu, chosen)
        assert spaces.signature("bleu") == spaces.signature(bleu)
        assert np.array_equal(spaces.statistics("bleu", chosen), spaces.statistics(bleu, chosen))


def test_dense_and_compressed_features_are_the_same() -> None:
    compressed = ([0, 2, 4, 6], [1, 0, 0, 1, 0, 1], [2.0, 1.0, 3.0, 4.0, 5.0, 6.0])
    dense, sparse = made().core.csr(), made(features=compressed).core.csr()
    for one, other in zip(dense, sparse, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": FEATURES[:2]},
        {"features": FEATURES[:, :1]},
        {"features": FEATURES.ravel()},
        {"features": [[1.0, np.nan], [3.0, 4.0], [5.0, 6.0]]},
        {"features": [[1.0, np.inf], [3.0, 4.0], [5.0, 6.0]]},
        {"features": [[1.0, 1e39], [3.0, 4.0], [5.0, 6.0]]},
        {"features": ([0, 1, 1, 2], [0, 2], [1.0, 2.0])},
        {"features": ([0, 1, 1, 2], [0, -1], [1.0, 2.0])},
        {"features": ([0, 2, 2, 2], [0, 0], [1.0, 2.0])},
        {"features": ([0, 2, 1, 2], [0, 1], [1.0, 2.0])},
        {"features": ([0, 1, 1, 2], [0, 1], [1.0])},
        {"features": ([0, 1, 2], [0, 1], [1.0, 2.0])},
        {"starts": [0, 2, 3]},
        {"starts": [0, 2, 2, 4]},
        {"starts": [1, 2, 2, 3]},
        {"starts": [0, 3, 2, 3]},
        {"starts": []},
        {"starts": [0, 2, 2, -3]},
        {"names": ["a", "a"]},
        {"names": ["a"]},
        {"texts": ["x"]},
        {"references": [["x"], ["y"]]},
        {"scores": [1.0]},
        {"scores": [1.0, 2.0, 3.0, 4.0]},
    ],
)
def test_arrays_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        made(**wrong)


def test_the_best_is_the_first_among_equals() -> None:
    pools = made(features=[[1.0, 2.0], [2.0, 1.0], [0.0, 0.0]])
    assert pools.best({"a": 1.0}).tolist() == [1, -1, 2]
    assert pools.best({"a": 1.0, "b": 1.0}).tolist() == [0, -1, 2]
    assert pools.best({}).tolist() == [0, -1, 2]
    assert pools.best(np.array([0.0, 1.0]), threads=2).tolist() == [0, -1, 2]


def test_a_name_that_no_feature_has_is_refused_with_similar_ones() -> None:
    pools = Pools.from_arrays([[1.0, 2.0]], [0, 1], ["lm", "words"], texts=["x"])
    for spaces in (pools, Forests.of_lists(pools)):
        for use in (spaces.best, spaces.consensus, spaces.vector):
            with pytest.raises(InputError, match=r"no feature is called 'lmm' \(use 'lm'\)"):
                use({"lmm": 1.0})
            with pytest.raises(InputError, match=r"'wrds' \(use 'words'; .* give Weights"):
                use({"lm": 1.0, "wrds": 1.0})
            with pytest.raises(InputError, match=r"'unheard-of' \(there are lm, words\)"):
                use(Weights({"unheard-of": 1.0}))
    # A weight of zero counts for nothing anyway.
    assert pools.vector({"lm": 1.0, "lmm": 0.0}).tolist() == [1.0, 0.0]


def test_weights_that_were_learnt_elsewhere_may_have_more_names() -> None:
    pools, learnt = made(), Weights({"b": 2.0, "PT:x~y": 9.0})
    with pytest.warns(UserWarning, match=r"without a feature in the lists: 1 \(PT:x~y\)") as told:
        assert pools.best(learnt).tolist() == pools.best({"b": 2.0}).tolist()
    assert told[0].filename == __file__
    assert pools.vector({"b": 2.0, "unheard-of": 9.0}, partial=True).tolist() == [0.0, 2.0]
    # Lists without hypotheses have nothing to choose wrongly.
    assert Pools.from_arrays(np.zeros((0, 0)), [0], []).best({"lm": 1.0}).tolist() == []


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], []])
def test_weights_that_do_not_fit_the_names_are_refused(weights: Any) -> None:
    pools = made()
    for space in (pools, Forests.of_lists(pools)):
        with pytest.raises(InputError, match=r"for 2 features \(give one weight per name"):
            space.best(np.array(weights))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_by_name(value: float) -> None:
    pools = made()
    for space in (pools, Forests.of_lists(pools)):
        for weights in (np.array([0.0, value]), {"b": value}):
            with pytest.raises(InputError, match=rf"of b is {value} \(give a finite number"):
                space.best(weights)


def test_features_that_only_held_out_lists_have_come_last() -> None:
    pools = made().aligned(["b", "new"])
    assert pools.names == ["b", "new", "a"]
    assert pools.best(np.array([0.0, 0.0, 1.0])).tolist() == made().best({"a": 1.0}).tolist()


def test_an_empty_list_scores_as_a_blank_output() -> None:
    pools, metric = made(), get_metric("wer")
    rows = pools.statistics(metric, pools.first())
    assert rows[1].tolist() == metric.stats([""], [["v"]])[0].tolist()
    assert pools.score(metric, pools.first()) == metric.corpus_score(
        ["x y", "", "w"], pools.references or []
    )


def test_choices_outside_of_a_list_are_refused() -> None:
    pools = made()
    with pytest.raises(IndexError):
        pools.score(get_metric("wer"), np.array([2, -1, 2]))
    with pytest.raises(ValueError):
        pools.score(get_metric("wer"), np.array([0, -1]))


def test_statistics_are_computed_once_per_metric() -> None:
    pools = made()
    assert pools.table(get_metric("wer")) is pools.table(get_metric("wer"))
    assert pools.table(get_metric("wer")) is not pools.table(get_metric("wer:lowercase=1"))


def test_statistics_are_not_confused_when_a_metric_is_gone() -> None:
    """Metrics without a repr of their own are told apart by more than an address in memory."""

    class Scaled(WordOverlap):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def row(self, hypothesis: str, references: Any) -> list[float]:
            return [self.factor * value for value in super().row(hypothesis, references)]

        __repr__ = object.__repr__

    pools = made()
    for factor in range(1, 20):
        rows = pools.table(Scaled(float(factor))).rows()
        assert rows[0].tolist() == [2.0 * factor] * 3


def test_ready_made_statistics_take_the_place_of_text() -> None:
    pools = made(references=None)
    pools.set_statistics("wer", [[1, 2], [0, 2], [2, 4]])
    assert pools.score(get_metric("wer"), np.array([1, -1, 2])) == pytest.approx(100 * 2 / 6)


@pytest.mark.parametrize("rows", [np.ones((3, 3)), np.ones((2, 2)), np.full((3, 2), np.nan)])
def test_ready_made_statistics_that_do_not_fit_are_refused(rows: Array) -> None:
    pools = made()
    with pytest.raises(ValueError):
        pools.set_statistics("wer", rows)


def test_a_subset_keeps_features_texts_references_and_statistics() -> None:
    pools = made(scores=[3.0, 2.0, 1.0])
    pools.set_statistics("cer", [[1, 2], [0, 2], [2, 4]])
    part = pools.subset([2, 0])
    assert part.core.starts.tolist() == [0, 1, 3]
    assert part.outputs(part.first()) == ["w", "x y"]
    assert part.references == [["w", "u"], ["x y"]]
    assert part.core.scores.tolist() == [1.0, 3.0, 2.0]
    assert part.names == pools.names
    assert part.table(get_metric("cer")).rows().tolist() == [[2, 4], [1, 2], [0, 2]]
    assert pools.subset([]).sentences == 0
    with pytest.raises(IndexError):
        pools.subset([3])


def test_merged_lists_keep_equal_hypotheses_once_and_know_all_features() -> None:
    one = made()
    two = Pools.from_arrays(
        ([0, 2, 3, 4], [0, 1, 0, 1], [2.0, 1.0, 7.0, 1.0]),
        [0, 1, 2, 3],
        ["b", "c"],
        ["x y", "new", "w"],
        [["x y"], ["v"], ["w", "u"]],
    )
    same = Pools.from_arrays(FEATURES[:, ::-1], [0, 2, 2, 3], ["b", "a"], ["x y", "x z", "w"])
    merged = Pools.merge([one, two, same])
    assert merged.names == ["a", "b", "c"]
    assert merged.core.starts.tolist() == [0, 3, 4, 6]
    assert merged.core.texts(np.arange(6)) == ["x y", "x z", "x y", "new", "w", "w"]
    assert merged.core.features(2) == [("b", 2.0), ("c", 1.0)]
    assert merged.references == one.references
    assert merged.origin is one


def test_merged_lists_with_different_columns_are_refused() -> None:
    with pytest.raises(InputError, match="columns"):
        Pools.merge([made(), learnable(1, 3)])


def test_the_oracle_is_the_best_there_is_and_the_worst_the_worst() -> None:
    pools, metric = learnable(3, empty=[1]), get_metric("wer")
    rows = pools.table(metric).rows()
    starts = pools.core.starts
    for best, choose in ((True, np.argmin), (False, np.argmax)):
        chosen = pools.oracle(metric, best=best)
        assert chosen[1] == -1
        for i in (0, 2, 3, 11):
            errors = rows[starts[i] : starts[i + 1], 0]
            assert errors[chosen[i] - starts[i]] == errors[choose(errors)]


def test_the_oracle_of_bleu_cannot_be_improved_by_an_exchange() -> None:
    pools, metric = learnable(3, 6, 5), get_metric("bleu")
    chosen = pools.oracle(metric)
    top = pools.score(metric, chosen)
    starts = pools.core.starts
    for i in range(6):
        for other in range(starts[i], starts[i + 1]):
            swapped = chosen.copy()
            swapped[i] = other
            assert pools.score(metric, swapped) <= top + 1e-9
