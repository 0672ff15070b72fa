"""Lists cut and joined lose nothing and add nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.lists import Array

from tunesmith import Pools

few = settings(max_examples=40, deadline=None)
Hypothesis = tuple[str, tuple[tuple[str, float], ...]]

values = st.integers(-2, 2).map(float)
features = st.dictionaries(st.sampled_from("abcd"), values, max_size=3)
hypotheses = st.tuples(
    st.sampled_from(["", "x", "x y", "z"]), features.map(lambda f: tuple(sorted(f.items())))
)
corpora = st.lists(st.lists(hypotheses, max_size=5), min_size=1, max_size=4)
orders = st.permutations(list("abcd"))


def made(corpus: list[list[Hypothesis]], names: list[str]) -> Pools:
    flat = [hypothesis for sentence in corpus for hypothesis in sentence]
    rows = np.cumsum([0, *(len(entries) for _, entries in flat)])
    ids = [names.index(name) for _, entries in flat for name, _ in entries]
    numbers = [value for _, entries in flat for _, value in entries]
    starts = np.cumsum([0, *map(len, corpus)])
    return Pools.from_arrays((rows, ids, numbers), starts, names, [text for text, _ in flat])


def told(pools: Pools) -> list[list[Hypothesis]]:
    starts, texts = pools.core.starts, pools.core.texts(np.arange(pools.hypotheses))
    return [
        [(texts[h], tuple(sorted(pools.core.features(h)))) for h in range(a, b)]
        for a, b in pairwise(starts.tolist())
    ]


def scores(pools: Pools, weights: dict[str, float]) -> Array:
    return pools.core.dot(pools.vector(weights), 1)


@few
@given(corpora, orders)
def test_lists_tell_what_they_were_made_of(
    corpus: list[list[Hypothesis]], names: list[str]
) -> None:
    assert told(made(corpus, names)) == corpus


@few
@given(corpora, corpora, orders, orders)
def test_merging_joins_lists_and_keeps_equals_once(
    one: list[list[Hypothesis]],
    two: list[list[Hypothesis]],
    first: list[str],
    second: list[str],
) -> None:
    merged = Pools.merge([made(one, first), made(two, second)])
    longest = max(len(one), len(two))
    wanted = []
    for i in range(longest):
        both = (one[i] if i < len(one) else []) + (two[i] if i < len(two) else [])
        wanted.append(list(dict.fromkeys(both)))
    assert told(merged) == wanted
    again = Pools.merge([merged, merged])
    assert told(again) == wanted


@few
@given(corpora, orders, st.data())
def test_a_subset_holds_the_chosen_sentences(
    corpus: list[list[Hypothesis]], names: list[str], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(corpus) - 1), max_size=5))
    assert told(made(corpus, names).subset(chosen)) == [corpus[i] for i in chosen]


@few
@given(corpora, orders, st.dictionaries(st.sampled_from("abcd"), values))
def test_scores_are_weighted_sums_and_the_best_is_the_first_of_the_highest(
    corpus: list[list[Hypothesis]], names: list[str], weights: dict[str, float]
) -> None:
    pools = made(corpus, names)
    wanted = [
        [sum(weights.get(name, 0.0) * value for name, value in entries) for _, entries in sentence]
        for sentence in corpus
    ]
    assert scores(pools, weights).tolist() == [score for sentence in wanted for score in sentence]
    starts = pools.core.starts.tolist()
    best = [
        starts[i] + sentence.index(max(sentence)) if sentence else -1
        for i, sentence in enumerate(wanted)
    ]
    for threads in (1, 2, 4):
        assert pools.best(weights, threads).tolist() == best
