"""BLEU, chrF and TER are sacreBLEU's, statistic by statistic, on any text."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import pytest
import sacrebleu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from tunesmith.metrics import Metric, get_metric

Pairs = list[tuple[str, list[str]]]

# The two sides know different versions of Unicode, so characters that the older one lacks are
# left out.
ANY = st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=25)
MARKS = st.lists(
    st.sampled_from(
        [
            *"aAbcé ßΣς.,-'\"&;:!?()/$%{}[]<>@€„“…«»、。東京ひカ（）٣½\u00a0\u2003\n\t\x1c\x85",
            *("&quot;", "&amp;", "&lt;", "<skipped>", "'s ", " the ", "-\n", "\n-", "3.5", "1,000"),
        ]
    ),
    max_size=40,
).map("".join)
WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "the", "cat", "."]), max_size=30).map(
    " ".join
)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text, and references with some of its blocks moved and words changed."""
    text = draw(WORDS)
    references = []
    for _ in range(draw(st.integers(1, 3))):
        words = text.split()
        for _ in range(draw(st.integers(0, 3))):
            start, end, target = sorted(draw(st.tuples(*[st.integers(0, len(words))] * 3)))
            words = words[:start] + words[end:target] + words[start:end] + words[target:]
        for _ in range(draw(st.integers(0, 3))):
            if words:
                words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from("abxy"))
        references.append(" ".join(words))
    return text, references


TEXT = st.one_of(ANY, MARKS, WORDS)
PAIR = st.one_of(st.tuples(TEXT, st.lists(TEXT, min_size=1, max_size=3)), shuffled())
PAIRS = st.lists(PAIR, min_size=1, max_size=4)

CASES: dict[str, sacrebleu.metrics.base.Metric] = {
    **{
        f"bleu:tokenize={name},lowercase={lower}": BLEU(
            tokenize=name, lowercase=bool(lower), force=True
        )
        for name in ("none", "13a", "intl", "char", "zh")
        for lower in (0, 1)
    },
    **{f"bleu:max_order={n}": BLEU(max_ngram_order=n, force=True) for n in (1, 2, 3)},
    "chrf": CHRF(),
    "chrf++": CHRF(word_order=2),
    "chrf:char_order=3,beta=1,whitespace=1": CHRF(char_order=3, beta=1, whitespace=True),
    "chrf++:lowercase=1,eps_smoothing=1": CHRF(word_order=2, lowercase=True, eps_smoothing=True),
    "ter": TER(),
    "ter:case_sensitive=1": TER(case_sensitive=True),
    "ter:normalized=1": TER(normalized=True),
    "ter:no_punct=1": TER(no_punct=True),
    "ter:normalized=1,no_punct=1,asian_support=1": TER(
        normalized=True, no_punct=True, asian_support=True
    ),
    "ter:normalized=1,asian_support=1": TER(normalized=True, asian_support=True),
}


def assert_equal(ours: Metric, theirs: sacrebleu.metrics.base.Metric, pairs: Pairs) -> None:
    """Statistics are the same numbers, scores the same to the last bit but a few."""
    expected = [
        [float(x) for x in theirs._extract_corpus_statistics([text], [[ref] for ref in refs])[0]]
        for text, refs in pairs
    ]
    rows = ours.stats([text for text, _ in pairs], [refs for _, refs in pairs])
    assert rows.tolist() == expected
    total = rows.sum(axis=0)
    score = theirs._compute_score_from_stats(total.tolist()).score
    assert ours.score(total) == pytest.approx(score, abs=1e-9)
    assert f"{ours.score(total):.2f}" == f"{score:.2f}"


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs=PAIRS)
def test_any_text_scores_as_in_sacrebleu(name: str, pairs: Pairs) -> None:
    assert_equal(get_metric(name), CASES[name], pairs)


def test_long_sentences_leave_the_beam_and_the_search_as_in_sacrebleu() -> None:
    words = [f"w{i % 37}" for i in range(120)]
    text = " ".join(words)
    pairs = [
        (" ".join(words[60:] + words[:60]), [text]),
        (" ".join(reversed(words[:70])), [text]),
        (" ".join(words[:90]), [" ".join(words[30:])]),
        ("w1 w2", [text]),
        (text, ["w3 w9 w1"]),
        (" ".join(["a", "b"] * 30), [" ".join(["b", "a"] * 31)]),
        (" ".join(words[:64]), [" ".join(words[8:64] + words[:8])]),
        (" ".join(words[:65]), [" ".join(words[8:65] + words[:8])]),
    ]
    assert_equal(get_metric("ter"), TER(), pairs)


def test_the_classes_of_every_character_are_those_of_sacrebleu() -> None:
    tokenizer = BLEU(tokenize="intl").tokenizer
    known = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")
    ]
    texts = [f"x{char}x 1{char}1 x{char}" for char in known]
    rows = get_metric("bleu:tokenize=intl").stats(texts, [["x"]] * len(texts))
    ours = dict(zip(known, rows[:, 0].astype(int).tolist(), strict=True))
    theirs = {char: len(tokenizer(text).split()) for char, text in zip(known, texts, strict=True)}
    assert ours == theirs


def test_the_references_of_a_corpus_may_differ_in_number() -> None:
    texts = ["a b c d e", "f g h i"]
    references = [["a b c d e f"], ["f g i", "f h h i"]]
    # sacreBLEU takes None where a sentence has fewer references; its types do not say so.
    theirs: list[Any] = [["a b c d e f", "f g i"], [None, "f h h i"]]
    for name in ("bleu", "chrf", "ter"):
        metric = CASES[name] if name in CASES else BLEU()
        expected = metric.corpus_score(texts, theirs).score
        assert get_metric(name).corpus_score(texts, references) == pytest.approx(expected, abs=1e-9)
        assert get_metric(name).signature(-1) == str(metric.get_signature())
