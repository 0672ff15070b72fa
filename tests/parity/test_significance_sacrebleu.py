"""The paired tests agree with sacreBLEU's own, but for ties, which it leaves out."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result

from tunesmith.metrics import Metric, Rows, get_metric
from tunesmith.metrics.significance import confidence, paired_bootstrap, paired_randomisation

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
METRICS = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}


def corpus(seed: int, noise: float) -> list[str]:
    """The same sentences at every seed, some of their words changed."""
    truth, generator = np.random.default_rng(0), np.random.default_rng(seed)
    texts = []
    for _ in range(80):
        words = truth.integers(0, 50, truth.integers(4, 15))
        wrong = generator.random(len(words)) < noise
        texts.append(" ".join(f"w{word}" for word in np.where(wrong, 99, words)))
    return texts


REFERENCE = corpus(0, 0.0)
SYSTEMS = [corpus(seed, noise) for seed, noise in ((1, 0.2), (2, 0.2), (3, 0.18), (4, 0.1))]


def tied(metric: Metric, baseline: Rows, system: Rows, samples: int) -> float:
    """The share of exchanges that sacreBLEU leaves out: those as large as the real difference.

    Whole edits make them frequent for TER.
    """
    generator = np.random.default_rng(12345)
    kept = generator.integers(2, size=(samples, len(baseline)), dtype=bool)
    one, other = kept @ baseline + ~kept @ system, ~kept @ baseline + kept @ system
    real = abs(metric.score(system.sum(axis=0)) - metric.score(baseline.sum(axis=0)))
    equal = np.isclose(np.abs(metric.scores(one) - metric.scores(other)), real, rtol=0, atol=1e-10)
    return float(np.count_nonzero(equal)) / (samples + 1)


@pytest.mark.parametrize("kind", ["bs", "ar"])
@pytest.mark.parametrize("name", METRICS)
def test_p_values_and_intervals(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    samples = 1000
    named: list[tuple[str, Sequence[str]]] = [(str(i), texts) for i, texts in enumerate(SYSTEMS)]
    _, table = PairedTest(named, {name: METRICS[name]}, [REFERENCE], kind, n_samples=samples)()
    results = next(value for key, value in table.items() if key != "System")
    metric = get_metric(name)
    rows = [metric.stats(texts, [[text] for text in REFERENCE]) for texts in SYSTEMS]
    test = paired_bootstrap if kind == "bs" else paired_randomisation
    for result, system in zip(results[1:], rows[1:], strict=True):
        assert isinstance(result, Result)
        assert result.p_value is not None
        found = test(metric, rows[0], system, samples=samples)
        assert found.system == pytest.approx(result.score, abs=1e-9)
        ties = tied(metric, rows[0], system, samples) if kind == "ar" else 0
        assert found.p - ties == pytest.approx(result.p_value, abs=0.003)
        if kind == "bs":
            interval = confidence(metric, system, samples=samples)
            assert interval.mean == pytest.approx(result.mean, abs=1e-3)
            assert interval.half == pytest.approx(result.ci, abs=1e-3)


@pytest.mark.shared
@pytest.mark.skipif(not ROOT.is_dir(), reason=f"the shared data are not at {ROOT}")
@pytest.mark.parametrize("kind", ["bs", "ar"])
@pytest.mark.parametrize("name", METRICS)
def test_real_systems(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)

    def lines(path: str) -> list[str]:
        with gzip.open(ROOT / path, "rt", encoding="utf-8", newline="\n") as file:
            return file.read().rstrip("\n").split("\n")

    reference = lines("multi30k/test_2016_flickr.en.gz")
    outputs: list[tuple[str, Sequence[str]]] = [
        (system, lines(f"multi30k-moses/output/{system}.test_2016_flickr.en.gz"))
        for system in ("mira", "mert", "pro", "untuned")
    ]
    theirs = {"bleu": BLEU(force=True), "chrf": CHRF(), "ter": TER()}[name]
    _, table = PairedTest(outputs, {name: theirs}, [reference], kind, n_samples=1000)()
    results = next(value for key, value in table.items() if key != "System")
    metric = get_metric(name)
    rows = [metric.stats(texts, [[text] for text in reference]) for _, texts in outputs]
    test = paired_bootstrap if kind == "bs" else paired_randomisation
    for result, system in zip(results[1:], rows[1:], strict=True):
        assert isinstance(result, Result)
        found = test(metric, rows[0], system, samples=1000)
        ties = tied(metric, rows[0], system, 1000) if kind == "ar" else 0
        assert found.p - ties == pytest.approx(result.p_value, abs=0.003)
