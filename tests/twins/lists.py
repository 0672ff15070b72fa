"""Small generated lists in which there is something to learn, and a plain view of any lists."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import Pools, _core
from tunesmith.metrics import Metric, get_metric

Array = npt.NDArray[np.float64]

NAMES = ("quality", "lm", "words", "noise")
WORDS = [
    "the",
    "a",
    "dog",
    "cat",
    "house",
    "tree",
    "runs",
    "sleeps",
    "over",
    "under",
    "red",
    "green",
    "small",
    "large",
    "and",
    "with",
]


class WordOverlap(Metric):
    """Shared word types against all, a metric written in Python."""

    name = "overlap"
    width = 3

    def row(self, hypothesis: str, references: Sequence[str]) -> list[float]:
        own, other = set(hypothesis.split()), set(references[0].split())
        return [len(own & other), len(own), len(other)]

    def score_rows(self, rows: Array) -> Array:
        return 100.0 * self.gain_rows(rows)

    def gain_rows(self, rows: Array) -> Array:
        return 2 * rows[:, 0] / np.maximum(rows[:, 1] + rows[:, 2], 1.0)

    def __repr__(self) -> str:
        return "WordOverlap()"


METRICS: dict[str, str | Metric] = {
    "bleu": "bleu",
    "chrf": "chrf",
    "chrf++": "chrf++",
    "ter": "ter",
    "wer": "wer",
    "cer": "cer",
    "column": "column:worth",
    "python": WordOverlap(),
}


def corrupt(words: Sequence[str], edits: int, rng: np.random.Generator) -> list[str]:
    """Return the words after some random edits."""
    words = list(words)
    for _ in range(edits):
        place = int(rng.integers(len(words)))
        kind = int(rng.integers(3))
        if kind == 0 and len(words) > 2:
            del words[place]
        elif kind == 1:
            words.insert(place, str(rng.choice(WORDS)))
        else:
            words[place] = str(rng.choice(WORDS))
    return words


def learnable(
    seed: int = 0,
    sentences: int = 12,
    size: int = 8,
    *,
    empty: Sequence[int] = (),
    names: Sequence[str] = NAMES,
    scored: bool = False,
) -> Pools:
    """Return lists whose order is poor, with one feature that knows better.

    With `scored` the lists carry the scores of the weights that ordered them.
    """
    rng = np.random.default_rng(seed)
    builder = _core.PoolsBuilder(["worth"], list(names))
    references = []
    for sentence in range(sentences):
        builder.sentence()
        truth = [str(word) for word in rng.choice(WORDS, int(rng.integers(7, 12)))]
        references.append([" ".join(truth)])
        if sentence in empty:
            continue
        rows = []
        for _ in range(size):
            edits = int(rng.integers(0, 7))
            words = corrupt(truth, edits, rng)
            quality = -edits + rng.normal(0, 0.8)
            values = [quality, rng.normal(-8, 2), float(len(words)), rng.normal()]
            rows.append((values, " ".join(words), 1.0 - edits / 10))
        ordering = np.array([0.02, 0.5, -0.3, 0.4])
        scores = np.array(
            [np.array(row[0], np.float32).astype(np.float64) @ ordering for row in rows]
        )
        for place in np.argsort(-scores, kind="stable"):
            values, text, worth = rows[place]
            builder.push(
                text,
                list(NAMES),
                values,
                float(scores[place]) + 10.0 * sentence if scored else None,
                "",
                {"worth": worth},
            )
    return Pools(builder.finish(), references)


def counted(
    rng: np.random.Generator,
    sizes: Sequence[int],
    features: int,
    *,
    metric: str = "wer",
    coarse: bool = False,
    sparse: bool = False,
    strings: int = 0,
) -> Pools:
    """Return lists with random features and random whole-numbered statistics of a metric.

    With `strings`, there are no more than so many different ones.
    """
    total = int(sum(sizes))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if coarse:
        values = rng.integers(-2, 3, (total, features)).astype(np.float64)
    else:
        values = rng.normal(size=(total, features))
    values = values.astype(np.float32).astype(np.float64)
    names = [f"f{i}" for i in range(features)]
    given: Any = values
    if sparse:
        present = rng.random((total, features)) < 0.5
        rows = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        given = (rows, np.nonzero(present)[1], values[present])
    kinds = np.arange(total) % (strings or max(total, 1))
    texts = [f"text {i}" for i in kinds]
    pools = Pools.from_arrays(given, starts, names, texts)
    pools.set_statistics(metric, statistics(rng, total, metric)[kinds])
    return pools


def statistics(rng: np.random.Generator, count: int, metric: str) -> Array:
    """Return rows that could be statistics of the metric: whole numbers, so that sums are exact."""
    if metric == "wer":
        words = rng.integers(4, 12, count)
        return np.column_stack([rng.binomial(words, 0.4), words]).astype(np.float64)
    assert metric == "bleu"
    length = rng.integers(5, 14, count)
    totals = [length - n for n in range(4)]
    matches = [length]
    for total in totals:
        matches.append(rng.binomial(np.minimum(matches[-1], total), 0.8))
    reference = np.maximum(length + rng.integers(-2, 3, count), 1)
    return np.column_stack([length, reference, *matches[1:], *totals]).astype(np.float64)


@dataclass(frozen=True)
class Lists:
    """Lists as plain matrices, one per sentence."""

    features: list[Array]
    stats: list[Array]
    words: list[float]
    metric: Metric
    blank: Array
    """Statistics of saying nothing, for sentences without hypotheses."""

    @classmethod
    def of(cls, pools: Pools, metric: str | Metric) -> Lists:
        metric = get_metric(metric)
        rows, ids, values = pools.core.csr()
        dense = np.zeros((pools.hypotheses, len(pools.names)))
        for h in range(pools.hypotheses):
            dense[h, ids[rows[h] : rows[h + 1]]] = values[rows[h] : rows[h + 1]]
        stats = pools.table(metric).rows()
        starts = pools.core.starts.tolist()
        spans = list(itertools.pairwise(starts))
        texts = pools.core.texts(np.arange(pools.hypotheses))
        words = [float(len(texts[a].split())) if b > a else 0.0 for a, b in spans]
        blank = np.zeros((len(spans), metric.native.width))
        if pools.references is not None and metric.native.reads_text:
            blank = metric.native.stats([""] * len(spans), pools.references)
        features, rows_of = ([each[a:b] for a, b in spans] for each in (dense, stats))
        return cls(features, rows_of, words, metric, blank)

    def gain(self, rows: Array) -> Array:
        """Return the corpus gain of each row."""
        return np.asarray(self.metric.native.gains(np.atleast_2d(rows)))

    def sentence_gain(self, rows: Array) -> Array:
        """Return the smoothed gain of each row."""
        return np.asarray(self.metric.native.sentence_gains(np.atleast_2d(rows)))

    def chosen(self, weights: Array) -> Array:
        """Return the statistics of what the weights choose, a row for each sentence."""
        rows = [
            stats[int(np.argmax(features @ weights))] if len(stats) else blank
            for features, stats, blank in zip(self.features, self.stats, self.blank, strict=True)
        ]
        return np.stack(rows)

    def corpus_gain(self, weights: Array) -> float:
        """Return the corpus gain of what the weights choose."""
        chosen = [
            stats[int(np.argmax(features @ weights))]
            for features, stats in zip(self.features, self.stats, strict=True)
            if len(stats)
        ]
        return float(self.gain(np.sum(chosen, axis=0))[0])
