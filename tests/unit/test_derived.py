"""Features that lists themselves give."""

from __future__ import annotations

import numpy as np
import pytest
from twins.lists import learnable

from tunesmith import InputError, Pools, get_metric, tune
from tunesmith.spaces.derived import FEATURES, derived_in, with_derived

LISTS = [["a b c d", "a b c e", "x y"], [], ["one"], ["p q", "p q", "p"]]


def lists() -> Pools:
    """Return lists of several lengths, one of them empty, with sparse features."""
    texts = [text for each in LISTS for text in each]
    starts = np.cumsum([0, *map(len, LISTS)])
    rows = [0, 1, 1, 2, 3, 5, 5, 6]
    return Pools.from_arrays(
        (rows, [0, 1, 0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        starts,
        ["lm", "rare"],
        texts=texts,
        references=[["a b c d"], ["r"], ["one"], ["p q"]],
        scores=np.arange(7.0),
    )


def column(pools: Pools, name: str) -> list[float]:
    """Return the values of a feature."""
    return [dict(pools.core.features(at)).get(name, 0.0) for at in range(pools.hypotheses)]


def test_the_first_of_each_list_is_marked_and_words_are_counted() -> None:
    found = with_derived(lists(), ["first", "words"])
    assert column(found, "list:first") == [1, 0, 0, 1, 1, 0, 0]
    assert column(found, "list:words") == [4, 4, 2, 1, 2, 2, 1]


def test_agreement_of_two_is_the_metric_between_them() -> None:
    pools = Pools.from_arrays(
        np.zeros((2, 0)), [0, 2], [], texts=["the cat sat on the mat", "the cat sat on a mat ."]
    )
    for name, metric in (("agreement", "bleu:tokenize=none"), ("agreement-chrf", "chrf")):
        native = get_metric(metric).native
        texts = pools.core.texts(np.arange(2))
        wanted = native.sentence_gains(native.stats(texts, [[texts[1]], [texts[0]]]))
        found = column(with_derived(pools, [name]), f"list:{name}")
        assert found == pytest.approx(10 * wanted, rel=1e-6)


def test_agreement_against_several_uses_their_mean_counts() -> None:
    # A slow twin: expected counts of the others, clipped at the hypothesis' own.
    texts = ["a b c", "a b d", "a c"]
    pools = Pools.from_arrays(np.zeros((3, 0)), [0, 3], [], texts=texts)

    def counts(text: str) -> dict[tuple[str, ...], int]:
        words = text.split()
        found: dict[tuple[str, ...], int] = {}
        for n in range(1, 5):
            for at in range(len(words) - n + 1):
                gram = tuple(words[at : at + n])
                found[gram] = found.get(gram, 0) + 1
        return found

    native = get_metric("bleu:tokenize=none").native
    rows = []
    for text in texts:
        others = [other for other in texts if other != text]
        row = [len(text.split()), np.mean([len(other.split()) for other in others])]
        matches, totals = [0.0] * 4, [0.0] * 4
        for gram, count in counts(text).items():
            mean = sum(counts(other).get(gram, 0) for other in others) / len(others)
            matches[len(gram) - 1] += min(mean, count)
            totals[len(gram) - 1] += count
        rows.append([*row, *matches, *totals])
    wanted = 10 * native.sentence_gains(np.array(rows))
    assert column(with_derived(pools, ["agreement"]), "list:agreement") == pytest.approx(wanted)


def test_nothing_else_of_the_lists_changes() -> None:
    old, new = lists(), with_derived(lists(), list(FEATURES))
    assert new.names == [*old.names, *(f"list:{name}" for name in FEATURES)]
    for at in range(old.hypotheses):
        kept = [(name, value) for name, value in new.core.features(at) if name in old.names]
        assert kept == old.core.features(at)
    assert new.core.starts.tolist() == old.core.starts.tolist()
    assert new.core.scores.tolist() == old.core.scores.tolist()
    assert new.references == old.references
    assert new.subset([0, 3]).names == new.names
    # The scores in the lists were made without the new features.
    assert new.origin.names == old.names


def test_names_that_are_unknown_or_taken_are_refused() -> None:
    with pytest.raises(InputError, match=r"'agreemnt'.*use one of first, agreement"):
        with_derived(lists(), ["agreemnt"])
    with pytest.raises(InputError, match="list:first already"):
        with_derived(with_derived(lists(), ["first"]), ["first"])
    assert with_derived(lists(), []).names == ["lm", "rare"]
    assert derived_in({"lm": 1.0, "list:first": 2.0}) == ["first"]


def test_tuning_learns_to_trust_the_first_where_no_other_feature_helps() -> None:
    pools = learnable(3, 60)
    metric = get_metric("bleu")
    # Put the oracle first in each list, and take all features away.
    order = []
    for sentence, best in enumerate(pools.oracle(metric).tolist()):
        start, end = pools.core.starts[sentence : sentence + 2].tolist()
        order += [best, *(at for at in range(start, end) if at != best)]
    texts = pools.core.texts(np.array(order, np.int64))
    bare = Pools.from_arrays(
        np.random.default_rng(1).normal(size=(len(texts), 1)),
        pools.core.starts,
        ["noise"],
        texts=texts,
        references=pools.references,
    )
    tuned = tune(with_derived(bare, ["first"]), "kbmira", metric, folds=3)
    assert tuned.weights["list:first"] > 0
    assert tuned.heldout == pytest.approx(tuned.heldout_start)
    noise = tune(bare, "kbmira", metric, folds=3)
    assert noise.heldout is not None and tuned.heldout is not None
    assert noise.heldout < tuned.heldout
