"""Scores of real text: sacreBLEU's to the last digit, and the error rates that are known."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

from tunesmith import _core
from tunesmith.metrics import get_metric

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"the shared data are not at {ROOT}"),
]

METRICS = {
    "bleu": BLEU(force=True),
    "bleu:tokenize=none": BLEU(tokenize="none", force=True),
    "bleu:tokenize=intl,lowercase=1": BLEU(tokenize="intl", lowercase=True, force=True),
    "bleu:tokenize=char": BLEU(tokenize="char", force=True),
    "chrf": CHRF(),
    "chrf++": CHRF(word_order=2),
    "ter": TER(),
    "ter:normalized=1,case_sensitive=1": TER(normalized=True, case_sensitive=True),
}


def lines(name: str) -> list[str]:
    with gzip.open(ROOT / name, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().rstrip("\n").split("\n")


def nbest(name: str) -> list[list[str]]:
    lists: list[list[str]] = []
    for line in lines(name):
        number, text = line.split(" ||| ")[:2]
        while len(lists) <= int(number):
            lists.append([])
        lists[int(number)].append(text)
    return lists


def assert_equal(
    name: str, theirs: sacrebleu.metrics.base.Metric, texts: list[str], sides: list[list[str]]
) -> None:
    ours = get_metric(name)
    score = ours.corpus_score(texts, [list(refs) for refs in zip(*sides, strict=True)])
    expected = theirs.corpus_score(texts, sides)
    assert f"{score:.2f}" == expected.format(score_only=True, width=2)
    assert score == pytest.approx(expected.score, abs=1e-9)
    assert ours.signature(len(sides)) == str(theirs.get_signature())


@pytest.mark.parametrize("system", ["untuned", "mert", "mira", "pro"])
@pytest.mark.parametrize("name", METRICS)
def test_multi30k_outputs(name: str, system: str) -> None:
    texts = lines(f"multi30k-moses/output/{system}.test_2016_flickr.en.gz")
    assert_equal(name, METRICS[name], texts, [lines("multi30k/test_2016_flickr.en.gz")])


@pytest.mark.parametrize("name", METRICS)
def test_wmt21_outputs_with_two_references(name: str) -> None:
    lists = nbest("nbest-nmt/wmt21-systems.nbest.gz")
    sides = [lines(f"nbest-nmt/wmt21-systems.ref.{side}.en.gz") for side in "AB"]
    # sacreBLEU's TER takes a minute for a thousand sentences of this length.
    count = 150 if name.startswith("ter") else len(lists)
    for place in (0, 7):
        texts = [hypotheses[place] for hypotheses in lists[:count]]
        assert_equal(name, METRICS[name], texts, [side[:count] for side in sides])


@pytest.mark.parametrize(
    ("name", "first", "oracle"),
    [("dev_clean", 6.12, 4.04), ("dev_other", 16.76, 13.02), ("test_clean", 6.42, 4.17)],
)
def test_word_error_rates_of_speech_lists(name: str, first: float, oracle: float) -> None:
    lists = nbest(f"nbest-asr/{name}.nbest.gz")
    references = [[text] for text in lines(f"nbest-asr/{name}.ref.gz")]
    starts = np.cumsum([0, *map(len, lists)])
    metric = get_metric("wer")
    texts = [text for hypotheses in lists for text in hypotheses]
    rows = _core.Table.from_texts(metric.native, starts, texts, references).rows()
    assert f"{metric.score(rows[starts[:-1]].sum(axis=0)):.2f}" == f"{first:.2f}"
    # All references of a sentence are one, so the fewest errors are the best choice.
    least = [rows[start:end][rows[start:end, 0].argmin()] for start, end in pairwise(starts)]
    assert f"{metric.score(np.sum(least, axis=0)):.2f}" == f"{oracle:.2f}"


def test_tables_do_not_depend_on_threads() -> None:
    pools = _core.read_moses(ROOT / "multi30k-moses/nbest/run1.best100.out.gz")
    references = [[text] for text in lines("multi30k/val.en.gz")]
    for name in ("bleu", "chrf", "ter", "wer"):
        native = get_metric(name).native
        found = [pools.table(native, references, threads) for threads in (1, 2, 3)]
        tables = [table.rows() for table in found if table is not None]
        assert len(tables) == 3
        assert (tables[0] == tables[1]).all()
        assert (tables[0] == tables[2]).all()
