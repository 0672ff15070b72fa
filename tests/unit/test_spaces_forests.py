"""Forests: choices, lists, files, pruning, consensus, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.lists import Array, learnable
from twins.toy import POOR, make_world

from tunesmith import Forests, InputError, Pools, get_metric, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.metrics.bleu import Bleu

WEIGHTS = np.array([1.0, 0.5, -0.3, 0.4])


def forests(**options: int) -> Forests:
    return Forests.of_lists(learnable(3, empty=[2]), **options)


def test_choices_have_texts_statistics_and_a_score() -> None:
    lists = learnable(3, empty=[2])
    made = Forests.of_lists(lists)
    chosen, wanted = made.best(WEIGHTS), lists.best(WEIGHTS)
    bleu = get_metric("bleu")
    assert made.outputs(chosen) == lists.outputs(wanted)
    assert (chosen < 0).tolist() == (wanted < 0).tolist()
    assert made.score(bleu, chosen) == lists.score(bleu, wanted)
    assert made.signature(bleu) == lists.signature(bleu)


def test_lists_of_forests_are_sorted_and_scored_by_their_features() -> None:
    lists = forests().kbest(WEIGHTS, 5)
    starts = lists.core.starts
    assert np.diff(starts).max() == 5 and np.diff(starts)[2] == 0
    scores = lists.core.scores
    assert scores == pytest.approx(lists.core.dot(WEIGHTS), rel=1e-6)
    for a, b in itertools.pairwise(starts):
        assert (np.diff(scores[a:b]) <= 0).all()
        assert len(set(lists.core.texts(np.arange(a, b)))) == b - a


@pytest.mark.parametrize("name", ["a.forests", "a.forests.gz", "a.forests.zst"])
def test_a_file_brings_back_the_same_forests(tmp_path: Path, name: str) -> None:
    made = forests()
    made.save(tmp_path / name)
    back = Forests.load(tmp_path / name, made.references)
    assert back.names == made.names and back.core.encoded() == made.core.encoded()
    for size, other in zip(made.sizes().values(), back.sizes().values(), strict=True):
        assert np.array_equal(size, other)


def test_other_and_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.forests.gz"
    with pytest.raises(InputError, match="no such file"):
        Forests.load(path)
    path.write_text("text\n")
    with pytest.raises(InputError, match="not a file of forests"):
        Forests.load(path)
    forests().save(path)
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], whole[:-1], whole[:100] + b"x" + whole[101:]):
        path.write_bytes(part)
        with pytest.raises(InputError, match="truncated or corrupt"):
            Forests.load(path)


def test_joined_forests_share_their_features_by_name() -> None:
    one = forests()
    other = Forests.of_lists(learnable(4, names=tuple(reversed(learnable(4).names))))
    both = Forests.join([one, other])
    assert both.sentences == one.sentences + other.sentences and both.names == one.names
    named = dict(zip(one.names, WEIGHTS.tolist(), strict=True))
    outputs = [part.outputs(part.best(named)) for part in (one, other, both)]
    assert outputs[0] + outputs[1] == outputs[2]


def test_joined_and_merged_forests_look_as_far_as_the_widest_of_them() -> None:
    parts = [forests(k=7, pops=30), forests(k=9, pops=3)]
    for both in (Forests.join(parts), Forests.merge(parts)):
        assert (both.k, both.pops) == (9, 30)
    assert Forests.join([]).sentences == 0


def test_merged_forests_choose_among_all_that_was_found() -> None:
    lists = learnable(3), learnable(4)
    made = [Forests.of_lists(part) for part in lists]
    both = Forests.merge(made)
    merged = Pools.merge(lists)
    assert both.sentences == 12 and both.hypotheses == sum(part.hypotheses for part in made)
    assert both.outputs(both.best(WEIGHTS)) == merged.outputs(merged.best(WEIGHTS))


def test_pruned_forests_keep_the_best() -> None:
    made = forests()
    ways: tuple[dict[str, Any], ...] = ({"beam": 1.0}, {"posterior": 0.2}, {"density": 0.5})
    for pruned in (made.prune(WEIGHTS, **way) for way in ways):
        assert pruned.hypotheses < made.hypotheses
        best = [space.outputs(space.best(WEIGHTS)) for space in (made, pruned)]
        assert best[0] == best[1]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"beam": np.nan}, "from 0 on"),
        ({"beam": -1.0}, "from 0 on"),
        ({"density": np.nan}, "from 0 on"),
        ({"density": -1.0}, "from 0 on"),
        ({"posterior": np.nan}, "from 0 to 1"),
        ({"posterior": -0.1}, "from 0 to 1"),
        ({"posterior": 2.0}, "from 0 to 1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], remedy: str) -> None:
    ((name, value),) = options.items()
    with pytest.raises(InputError, match=rf"the {name} is {value} \(give a number {remedy}\)"):
        forests().prune(WEIGHTS, **options)


@pytest.mark.parametrize("k", [-1, 2**70])
def test_lists_of_an_impossible_length_are_refused(k: int) -> None:
    with pytest.raises(InputError, match=f"k is {k}"):
        forests().kbest(WEIGHTS, k)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_expectations_of_a_list_are_sums_over_it(seed: int, alpha: float) -> None:
    lists = learnable(seed, empty=[2])
    found = Forests.of_lists(lists).expectations(WEIGHTS, alpha)
    assert found[2] == {}
    assert found == expected(lists, WEIGHTS, alpha)


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_expectations_of_a_forest_are_sums_over_all_derivations(tmp_path: Path, kind: Kind) -> None:
    model = Model.load(make_world(tmp_path) / "model", kind)
    lines = ["das kleine haus ein buch hat", "ein auto", "das rote brot"]
    made = model.translator(POOR[kind]).forests(lines).prune(POOR[kind], density=20.0)
    lists = made.kbest(POOR[kind], 10_000, unique=False)
    count = np.diff(lists.core.starts)
    assert count.max() > 100 and count == pytest.approx(10 ** made.sizes()["derivations"])
    for alpha in (0.3, 1.0):
        wanted = expected(lists, made.vector(POOR[kind]), alpha)
        assert made.expectations(POOR[kind], alpha) == wanted
        scores = np.exp(alpha * lists.core.dot(made.vector(POOR[kind])))
        sums = np.add.reduceat(scores, lists.core.starts[:-1])
        assert np.exp(made.log_partition(POOR[kind], alpha)) == pytest.approx(sums, rel=1e-6)


def expected(lists: Pools, weights: Array, alpha: float) -> list[Any]:
    """Return the mean of the features of each list, every hypothesis as often as it is probable."""
    found: list[Any] = []
    for a, b in itertools.pairwise(lists.core.starts.tolist()):
        rows = [lists.core.features(at) for at in range(a, b)]
        scores = [sum(weights[lists.names.index(n)] * v for n, v in row) for row in rows]
        mass = np.exp(alpha * (np.array(scores) - max(scores, default=0.0)))
        sums: dict[str, float] = {}
        for row, share in zip(rows, mass / mass.sum(), strict=True):
            for name, value in row:
                sums[name] = sums.get(name, 0.0) + share * value
        found.append(pytest.approx(sums, rel=1e-5, abs=1e-6))
    return found


def test_a_factor_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="alpha is nan"):
        forests().expectations(WEIGHTS, np.nan)
    assert forests().log_partition(WEIGHTS)[2] == -np.inf


def test_an_oracle_is_better_than_the_model_and_the_worst_is_worse() -> None:
    made, bleu = forests(), get_metric("bleu")
    scores = [made.score(bleu, made.oracle(bleu, WEIGHTS, best=best)) for best in (False, True)]
    assert scores[0] < made.score(bleu, made.best(WEIGHTS)) < scores[1]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 5), st.sampled_from([0.1, 1.0, 3.0]))
def test_consensus_is_the_best_against_expected_counts(seed: int, alpha: float) -> None:
    lists = learnable(seed, empty=[2])
    chosen = lists.consensus(WEIGHTS, alpha)
    made = Forests.of_lists(lists)
    assert made.outputs(made.consensus(WEIGHTS, alpha)) == lists.outputs(chosen)
    starts, scores = lists.core.starts, lists.core.dot(WEIGHTS)
    for sentence, (a, b) in enumerate(itertools.pairwise(starts)):
        if a == b:
            assert chosen[sentence] == -1
            continue
        mass = np.exp(alpha * (scores[a:b] - scores[a:b].max()))
        mass /= mass.sum()
        texts = [text.split() for text in lists.core.texts(np.arange(a, b))]
        counts = [grams(text) for text in texts]
        expected: dict[tuple[str, ...], float] = {}
        for share, count in zip(mass, counts, strict=True):
            for gram, times in count.items():
                expected[gram] = expected.get(gram, 0.0) + share * times
        length = sum(share * len(text) for share, text in zip(mass, texts, strict=True))
        gains = []
        for text, count in zip(texts, counts, strict=True):
            row = np.zeros(10)
            row[:2] = len(text), length
            for gram, times in count.items():
                row[1 + len(gram)] += min(times, expected[gram])
                row[5 + len(gram)] += times
            gains.append(Bleu().native.sentence_gains(row[None, :])[0])
        assert gains[chosen[sentence] - a] == pytest.approx(max(gains), rel=1e-9)


def grams(words: list[str]) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for n in range(1, 5):
        for start in range(len(words) - n + 1):
            gram = tuple(words[start : start + n])
            found[gram] = found.get(gram, 0) + 1
    return found


def test_a_sure_model_is_its_own_consensus() -> None:
    lists = learnable(1)
    sure = lists.outputs(lists.consensus(WEIGHTS, 1e6))
    assert sure == lists.outputs(lists.best(WEIGHTS))


def test_what_forests_cannot_do_is_refused() -> None:
    made = forests()
    with pytest.raises(InputError, match="start weights"):
        tune(made, "kbmira")
    with pytest.raises(InputError, match="reads columns"):
        tune(made, "kbmira", "column:worth", start=WEIGHTS)
    with pytest.raises(InputError, match="references for 1 sentences"):
        Forests(made.core, [["one"]])
    with pytest.raises(InputError, match="needs references"):
        Forests(made.core).score(get_metric("bleu"), made.best(WEIGHTS))


def test_wider_searches_find_better_hopes() -> None:
    bleu = get_metric("bleu")
    scores = []
    for pops in (1, 50):
        made = forests(pops=pops)
        scores.append(made.score(bleu, made.oracle(bleu, WEIGHTS)))
    assert scores[0] <= scores[1]


@pytest.mark.parametrize("preset", ["kbmira", "rampion"])
def test_hopes_and_fears_are_looked_for_in_the_whole_forest(preset: str) -> None:
    """However short lists would be: of one string nothing could be learned."""
    short, long = (tune(forests(k=k), preset, start=WEIGHTS).weights for k in (1, 100))
    assert short == long and list(short.values()) != WEIGHTS.tolist()
