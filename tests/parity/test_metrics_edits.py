"""WER and CER count the edits that rapidfuzz counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from tunesmith.metrics import get_metric

TEXT = st.one_of(
    st.text(max_size=100),
    st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=150).map(" ".join),
)


@given(TEXT, TEXT)
def test_edits_and_length(hypothesis: str, reference: str) -> None:
    words = hypothesis.split(), reference.split()
    row = get_metric("wer").stats([hypothesis], [[reference]])[0]
    assert row.tolist() == [Levenshtein.distance(*words), len(words[1])]
    texts = tuple(" ".join(side) for side in words)
    row = get_metric("cer").stats([hypothesis], [[reference]])[0]
    assert row.tolist() == [Levenshtein.distance(*texts), len(texts[1])]


@given(TEXT, st.lists(TEXT, min_size=1, max_size=4))
def test_the_lowest_rate_of_several(hypothesis: str, references: list[str]) -> None:
    words = hypothesis.split()
    rates = []
    for reference in references:
        edits, length = Levenshtein.distance(words, reference.split()), len(reference.split())
        rates.append((edits / length if length else float("inf") if edits else 0, edits, length))
    expected = min(rates, key=lambda rate: rate[0])
    row = get_metric("wer").stats([hypothesis], [references])[0]
    assert row.tolist() == list(expected[1:])
