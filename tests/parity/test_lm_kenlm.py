"""Language models against lmplz and KenLM on the same text."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tunesmith.lm import Estimate, LanguageModel, estimate

DATA = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
ARPA = DATA / "multi30k-moses" / "lm.arpa.gz"
TRAIN = DATA / "multi30k" / "train.en.gz"
TOLERANCE = 1e-4

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ARPA.exists(), reason="the real data are not here"),
]


@pytest.fixture(scope="module")
def estimated() -> Estimate:
    return estimate(TRAIN, order=5)


@pytest.fixture(scope="module")
def ours() -> LanguageModel:
    return LanguageModel.load(ARPA)


@pytest.fixture(scope="module")
def theirs() -> Any:
    return pytest.importorskip("kenlm").Model(str(ARPA))


def sentences(name: str) -> list[str]:
    with gzip.open(DATA / "multi30k" / f"{name}.gz", "rt", encoding="utf-8") as text:
        return [line.rstrip("\n") for line in text]


def ngrams(path: Path) -> Iterator[tuple[str, float, float]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as text:
        for line in text:
            fields = line.rstrip("\n").split("\t")
            if len(fields) > 1:
                yield fields[1], float(fields[0]), float(fields[2]) if len(fields) > 2 else 0.0


def test_every_ngram_equals_that_of_lmplz(estimated: Estimate, tmp_path: Path) -> None:
    path = tmp_path / "lm.arpa.gz"
    estimated.write_arpa(path)
    worst, count = 0.0, 0
    for ours, theirs in zip(ngrams(path), ngrams(ARPA), strict=True):
        assert ours[0] == theirs[0]
        worst = max(worst, abs(ours[1] - theirs[1]), abs(ours[2] - theirs[2]))
        count += 1
    assert count == 781_386
    assert worst < 1e-5


@pytest.mark.parametrize(
    "name", ["val.en", "test_2016_flickr.en", "test_2017_mscoco.en", "test_2016_flickr.de"]
)
@pytest.mark.parametrize(("bos", "eos"), [(True, True), (False, False)])
def test_queries_equal_those_of_kenlm(
    ours: LanguageModel, theirs: Any, name: str, bos: bool, eos: bool
) -> None:
    texts = sentences(name)
    sums = ours.score_many(texts, bos, eos)
    for text, total in zip(texts, sums, strict=True):
        expected = list(theirs.full_scores(text, bos=bos, eos=eos))
        found = ours.full_scores(text, bos, eos)
        assert [score.length for score in found] == [length for _, length, _ in expected]
        assert [not score.known for score in found] == [oov for _, _, oov in expected]
        for score, (log10, _, _) in zip(found, expected, strict=True):
            assert abs(score.log10 - log10) < TOLERANCE
        assert abs(total - sum(score.log10 for score in found)) < TOLERANCE
        assert abs(total - theirs.score(text, bos=bos, eos=eos)) < TOLERANCE * (len(found) + 1)


def test_states_are_as_short_as_those_of_kenlm(ours: LanguageModel, theirs: Any) -> None:
    kenlm = pytest.importorskip("kenlm")
    merged: dict[Any, Any] = {}
    apart: dict[Any, Any] = {}
    for text in sentences("val.en")[:300]:
        state, other = ours.begin_state(), kenlm.State()
        theirs.BeginSentenceWrite(other)
        for word in text.split():
            log10, state, _ = ours.score_word(state, word)
            following = kenlm.State()
            assert abs(theirs.BaseScore(other, word, following) - log10) < TOLERANCE
            other = following
            assert merged.setdefault(state, other) == other
            assert apart.setdefault(other, state) == state


def test_special_words_score_as_in_kenlm(ours: LanguageModel, theirs: Any) -> None:
    for text in ["a man </s>", "<s> a man", "<unk> man", "", "a   man\t ."]:
        expected = list(theirs.full_scores(text))
        found = ours.full_scores(text)
        assert [(score.length, not score.known) for score in found] == [
            (length, oov) for _, length, oov in expected
        ]
        np.testing.assert_allclose(
            [score.log10 for score in found], [log10 for log10, _, _ in expected], atol=TOLERANCE
        )


def test_kenlm_reads_what_we_write(estimated: Estimate, tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path / "lm.arpa"
    estimated.write_arpa(path)
    model, ours = kenlm.Model(str(path)), estimated.model()
    for text in sentences("val.en")[:100]:
        assert abs(model.score(text) - ours.score(text)) < 1e-3


def test_pruned_models_are_asked_alike(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path / "lm.arpa"
    found = estimate(TRAIN, order=4, prune=[0, 0, 1, 2])
    found.write_arpa(path)
    theirs, ours = kenlm.Model(str(path)), found.model()
    for text in sentences("val.en")[:200]:
        expected = [(length, oov) for _, length, oov in theirs.full_scores(text)]
        scores = ours.full_scores(text)
        assert [(score.length, not score.known) for score in scores] == expected
        assert abs(theirs.score(text) - sum(score.log10 for score in scores)) < 1e-3
