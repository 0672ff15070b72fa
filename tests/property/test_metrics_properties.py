"""What holds for every metric and every text."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.metrics import get_metric

NAMES = [
    "bleu",
    "bleu:tokenize=intl",
    "bleu:tokenize=char,max_order=2",
    "chrf",
    "chrf++",
    "ter",
    "ter:normalized=1,no_punct=1",
    "wer",
    "cer",
]
METRICS = [get_metric(name) for name in NAMES]

TEXT = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(["a", "b", "c", "d", ".", ",", "1", "2.5", "don't", "(x)"]), max_size=40
    ).map(" ".join),
)
PAIRS = st.lists(st.tuples(TEXT, st.lists(TEXT, min_size=1, max_size=3)), min_size=1, max_size=5)


@given(PAIRS)
def test_statistics_add_up_and_are_finite(pairs: list[tuple[str, list[str]]]) -> None:
    texts, references = [text for text, _ in pairs], [refs for _, refs in pairs]
    for metric in METRICS:
        rows = metric.stats(texts, references)
        assert np.isfinite(rows).all()
        assert (rows >= 0).all()
        alone = [metric.stats([text], [refs])[0] for text, refs in pairs]
        assert rows.tolist() == np.array(alone).tolist()
        score = metric.score(rows.sum(axis=0))
        assert score >= 0
        if metric.higher_is_better:
            assert score <= 100 + 1e-9


@given(TEXT.filter(lambda text: len("".join(text.split())) >= 4), TEXT)
def test_a_hypothesis_that_is_a_reference_is_perfect(text: str, other: str) -> None:
    for metric in METRICS:
        if metric.name == "ter" and metric.native.stats([text], [[text]])[0, 0]:
            continue  # sacreBLEU prepares references twice, so some text is not its own twin
        gain = metric.native.gains(metric.stats([text], [[text]]))[0]
        if metric.name == "bleu":
            # Without four words there are no 4-grams to match.
            assert gain == 0 or abs(gain - 1) < 1e-12
        elif metric.name == "ter":
            assert gain == 1 or not metric.stats([""], [[text]])[0, 1]
        else:
            assert abs(gain - 1) < 1e-12
        if metric.name in ("wer", "cer"):
            assert metric.stats([text], [[other, text]])[0, 0] == 0


@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), TEXT)
def test_another_reference_never_costs_edits(text: str, refs: list[str], more: str) -> None:
    wer, ter = get_metric("wer"), get_metric("ter")
    assert ter.stats([text], [[*refs, more]])[0, 0] <= ter.stats([text], [refs])[0, 0]
    few, many = wer.stats([text], [refs])[0], wer.stats([text], [[*refs, more]])[0]
    rates = [row[0] / row[1] if row[1] else (np.inf if row[0] else 0) for row in (few, many)]
    assert rates[1] <= rates[0]


@settings(max_examples=50)
@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(*[st.integers(0, 12)] * 2, *[st.tuples(*[st.integers(0, 6)] * 2)] * 4),
        min_size=1,
        max_size=30,
    ),
)
def test_many_gains_are_the_single_ones(order: int, drawn: list[Any]) -> None:
    metric = get_metric("bleu", max_order=order)
    counts = np.array(
        [[*row[:2], *[x for pair in row[2:] for x in pair]] for row in drawn], np.float64
    )
    matches, rest = counts[:, 2::2][:, :order], counts[:, 3::2][:, :order]
    rows = np.hstack([counts[:, :2], matches, matches + rest])
    together = metric.native.gains(rows)
    assert together.tolist() == [metric.native.gains(row[None])[0] for row in rows]
    np.testing.assert_allclose(together, metric.scores(rows) / 100, atol=1e-12)
