"""Moses' own results on its own model: scores, features, what its search finds, BLEU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from tunesmith._core import Lines
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.formats import read_nbest

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
MOSES = ROOT / "multi30k-moses"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not MOSES.is_dir(), reason=f"the shared data are not at {MOSES}"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model.of_moses(MOSES / "moses.mira.ini", cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return list(Lines(ROOT / "multi30k" / "test_2016_flickr.de.gz"))


def moses_list(name: str) -> Iterator[tuple[int, str, dict[str, float], float]]:
    """Yield sentence, text, features and score of each hypothesis.

    Moses does not list what it does not tune: unknown words.
    """
    pools = read_nbest(MOSES / name).pools
    texts = pools.texts(np.arange(pools.hypotheses))
    places = np.repeat(np.arange(pools.sentences), np.diff(pools.starts))
    for at, (sentence, text) in enumerate(zip(places.tolist(), texts, strict=True)):
        yield sentence, " ".join(text.split()), dict(pools.features(at)), float(pools.scores[at])


def test_derivations_have_moses_scores_and_features(model: Model, sources: list[str]) -> None:
    """Nearly every derivation of Moses' lists of ten is among our best, with all its values."""
    translator = model.translator(settings={"pop_limit": 1000, "stack": 100})
    pools = translator.nbest(sources, 200, unique=False)
    ours: dict[tuple[int, str], list[int]] = {}
    texts = pools.core.texts(np.arange(pools.hypotheses))
    places = np.repeat(np.arange(len(sources)), np.diff(pools.core.starts))
    for at, (sentence, text) in enumerate(zip(places.tolist(), texts, strict=True)):
        ours.setdefault((sentence, text), []).append(at)
    found = total = 0
    for sentence, text, features, score in moses_list("test_2016.mira.cube1000.best10.gz"):
        total += 1
        for at in ours.get((sentence, text), []):
            mine = dict(pools.core.features(at))
            # One of the derivations of a string; each of its values is held against Moses'.
            if all(abs(mine[name] - value) < 1e-3 for name, value in features.items()):
                assert pools.core.scores[at] == pytest.approx(score, abs=1e-3)
                found += 1
                break
    assert total == 10_000
    assert found >= 0.99 * total, f"{found} of {total}"


@pytest.mark.parametrize(("pop", "stack"), [(300, 100), (1000, 100), (5000, 1000)])
def test_search_finds_what_moses_finds(
    model: Model, sources: list[str], pop: int, stack: int
) -> None:
    translator = model.translator(settings={"pop_limit": pop, "stack": stack})
    ours = [each.score for each in translator.translate(sources[:300])]
    name = f"test_2016.first300.search1.{pop}.{stack}.best1.gz"
    theirs = [score for _, _, _, score in moses_list(name)]
    assert len(theirs) == 300
    pairs = zip(ours, theirs, strict=True)
    reached = sum(mine is not None and mine >= score - 1e-3 for mine, score in pairs)
    assert reached >= 0.99 * 300, f"{reached} of 300"


def test_translations_are_as_good(model: Model, sources: list[str]) -> None:
    def bleu(translator: Translator) -> float:
        outputs = [each.text for each in translator.translate(sources)]
        references = list(Lines(ROOT / "multi30k" / "test_2016_flickr.en.gz"))
        return sacrebleu.corpus_bleu(outputs, [references], tokenize="none", force=True).score

    assert bleu(model.translator()) >= 40.10 - 0.1
