"""What tuning found, and whether it helped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunesmith.learn.untuned import START
from tunesmith.metrics import Metric, Rows, get_metric
from tunesmith.metrics.significance import Verdict, paired_bootstrap, paired_randomisation, verdict
from tunesmith.sources import Source
from tunesmith.sources.base import Chosen
from tunesmith.weights import Vector, Weights


@dataclass(frozen=True)
class Result:
    """What tuning found; scores are on the metric's own scale.

    On saved lists, scores are of what the weights choose from them; with a decoder, of its output.
    """

    tuner: str
    metric: str
    signature: str
    weights: Weights
    start: float
    tuned: float
    oracle: float | None
    """The best score that the lists allow, of a decoder all lists of the first seed; None where the
    decoder follows the learner."""
    heldout: float | None
    """The tuned score on the first held-out corpus, or on all folds."""
    heldout_start: float | None
    heldout_all: list[float]
    """The tuned scores on all held-out corpora."""
    heldout_start_all: list[float]
    runs: list[float]
    """The tuned score of each seed."""
    curve: list[float]
    """The score at the start and after each round of the first seed."""
    second: dict[str, Any] | None
    significance: dict[str, Any]
    seconds: float
    decode_seconds: float
    optimise_seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    baselines: dict[str, float] = field(default_factory=dict)
    """Scores of what needs no tuning, on the sentences that `significance` is about: `start`; on
    saved lists also `consensus`, and single features as `+NAME` or `-NAME`."""
    verdict: Verdict = "unclear"
    """Whether the tuned weights are better than the best of `baselines`, which
    `significance["against"]` names; `significance["on"]` says on what: `lists` and `text` are those
    that were learnt from, where `better` proves nothing."""
    changed: dict[str, int] = field(default_factory=dict)
    """How many of the `sentences` have `changed` output compared with the start, and how many of
    these are `better` and `worse`; on the sentences that `significance` is about."""
    counts: dict[str, int] = field(default_factory=dict)
    """What `maxforce` could learn from in the last pass of the first seed: pairs `used`, reached as
    a `whole` or as `prefixes`, `unreachable` ones, `wrong` ones (violations) …; else empty."""
    idle_limits: list[str] = field(default_factory=list)
    """Names and patterns of bounds and fixed weights that match no feature."""
    stages: list[dict[str, Any]] = field(default_factory=list)
    """What each tuner of a chain found: `tuner`, `start`, `tuned`, `heldout`, `refused`."""

    @property
    def iterations(self) -> int:
        """The number of rounds of the first seed."""
        return len(self.curve) - 1

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        plain = {key: value for key, value in self.__dict__.items() if key != "weights"}
        return {
            **plain,
            "iterations": self.iterations,
            "nonzero": self.weights.nonzero,
            "weights": dict(self.weights),
            "influence": self.weights.influence,
        }


def second_scores(
    source: Source,
    metric: Metric,
    asked: str | Metric | None,
    before: Chosen,
    after: Chosen,
) -> dict[str, Any] | None:
    """Score with a metric that was not tuned: a gain on one should be no loss on the other."""
    if asked is None:
        if not source.references:
            return None
        asked = {"bleu": "chrf", "wer": "cer"}.get(metric.name, "bleu")
    other = get_metric(asked)

    def score(choice: Chosen) -> float:
        if other.columns or not source.references:
            return choice.score(other)
        return other.corpus_score(choice.outputs(), source.references)

    counts = {len(references) for references in source.references or [[""]]}
    return {
        "name": other.name,
        "signature": other.signature(counts.pop() if len(counts) == 1 else -1),
        "start": score(before),
        "tuned": score(after),
    }


def tests(
    metric: Metric, simple: Mapping[str, Rows], best: str, system: Rows, seed: int
) -> dict[str, Any]:
    """Return tests of the tuned choices against the best of those that need no tuning, and against
    the start. All are given as statistics per line."""
    found = _significance(metric, simple[best], system, seed)
    start = found if best == START else _significance(metric, simple[START], system, seed)
    return {**found, "against": best, "start": start}


def judged(metric: Metric, found: Mapping[str, Any]) -> Verdict:
    """Return the verdict of tests."""
    difference = found["bootstrap"]["difference"]
    gain = difference if metric.higher_is_better else -difference
    return verdict(gain, found["bootstrap"]["p"], found["randomisation"]["p"])


def _significance(metric: Metric, before: Rows, after: Rows, seed: int) -> dict[str, Any]:
    bootstrap = paired_bootstrap(metric, before, after, seed=seed)
    shuffled = paired_randomisation(metric, before, after, seed=seed)
    return {
        "bootstrap": {
            "p": bootstrap.p,
            "ci": list(bootstrap.ci),
            "difference": bootstrap.difference,
        },
        "randomisation": {"p": shuffled.p},
    }


def refusal(
    metric: Metric,
    begin: Weights,
    end: Weights,
    start: float,
    tuned: float,
    *,
    moved: bool,
    heldout: bool,
) -> str | None:
    """Return why the weights are no good, or None.

    `moved` says whether a decoder tried other weights than those of the start, `heldout` whether
    held-out text decided.
    """
    names = list(dict.fromkeys([*begin, *end]))
    before, weights = begin.vector(names), end.vector(names)
    if not np.isfinite(weights).all():
        return "a weight is not finite: the step size is too large"
    if moved and same_direction(weights, before):
        on = " on held-out text" if heldout else ""
        return f"no decoding with other weights scored better{on} than the start, which was kept"
    if not weights.any():
        return "all weights are zero: the regularisation is too strong"
    if same_direction(weights, before):
        return "the weights have not changed: no constraint was violated, or the start is optimal"
    worse = tuned < start if metric.higher_is_better else tuned > start
    if worse:
        return f"the tuned score {tuned:.2f} is worse than the start {start:.2f}"
    return None


def same_direction(one: Vector, other: Vector) -> bool:
    """Whether two weight vectors choose alike everywhere, being multiples of each other."""
    norms = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    if not all(norms):
        return norms == (0.0, 0.0)
    return bool(np.abs(one / norms[0] - other / norms[1]).max() < 1e-12)


def changes(
    metric: Metric, rows: Sequence[Rows], texts: Sequence[Sequence[str]], source: Source
) -> Iterator[dict[str, Any]]:
    """Yield the sentences whose output changed, the largest change in gain first.

    Statistics and texts are those before and after; `source` has sentences and references.
    """
    before, after = (metric.native.sentence_gains(each) for each in rows)
    changed = _changed(texts)
    changed.sort(key=lambda i: (-abs(after[i] - before[i]), i))
    keys = source.keys
    for i in changed:
        yield {
            "sentence": i,
            "key": keys[i] if keys else None,
            "source": source.sources[i] if source.sources else None,
            "reference": source.references[i] if source.references else [],
            "before": texts[0][i],
            "after": texts[1][i],
            "gain_before": float(before[i]),
            "gain_after": float(after[i]),
        }


def count_changes(
    metric: Metric, rows: Sequence[Rows], texts: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Return how many sentences there are, how many changed, and how many of these gained or lost.

    Statistics and texts are those before and after.
    """
    before, after = (metric.native.sentence_gains(each) for each in rows)
    changed = _changed(texts)
    moved = (after - before)[changed]
    return {
        "sentences": len(texts[0]),
        "changed": len(changed),
        "better": int(np.count_nonzero(moved > 0)),
        "worse": int(np.count_nonzero(moved < 0)),
    }


def _changed(texts: Sequence[Sequence[str]]) -> list[int]:
    return [i for i, (before, after) in enumerate(zip(*texts, strict=True)) if before != after]
