"""Tests of whether a difference between two systems is more than chance.

All tests work on rows of statistics, one per sentence, so they apply to every metric. With the same
seed they draw the same samples as sacreBLEU. Their p-values agree with sacreBLEU's except for ties:
a sample that differs exactly as much as the systems do counts as "at least as large", according to
the definition of a p-value. sacreBLEU ignores ties, which makes a system significantly different
from itself (p = 1/1001) or from one that differs in a single sentence; here both have p = 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tunesmith.errors import InputError
from tunesmith.metrics import Metric, Rows

SEED = 12345
"""The values of sacreBLEU, so that results are comparable."""

Verdict = Literal["better", "unclear", "worse"]
CHANCE = 0.05
"""The significance level: with a larger p the verdict is "unclear"."""

# Number of draws in memory at a time.
_DRAWS = 1 << 24
# Differences closer than this are ties: rounding depends on the order of the sum.
_TIE = 1e-10


@dataclass(frozen=True)
class Interval:
    """Where 95% of the bootstrapped scores lie, and their mean and standard deviation."""

    mean: float
    low: float
    high: float
    std: float

    @property
    def half(self) -> float:
        """Half its width, which sacreBLEU prints after ±."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline; `difference` is system minus baseline, in score."""

    baseline: float
    system: float
    difference: float
    p: float
    """The probability of a difference at least as large if both are equally good."""
    ci: tuple[float, float]
    """Where 95% of the bootstrapped differences lie."""
    test: str
    samples: int
    seed: int


@dataclass(frozen=True)
class Runs:
    """One system over several runs of its optimiser."""

    scores: tuple[float, ...]
    mean: float
    s_test: float
    """Standard deviation over the runs: the optimiser's randomness. Zero for a single run."""
    s_sel: float
    """Standard deviation over bootstrapped test sets, averaged over runs."""


@dataclass(frozen=True)
class RunsComparison:
    """Several runs of a system against several runs of a baseline."""

    baseline: Runs
    system: Runs
    difference: float
    p: float
    samples: int
    seed: int


@dataclass(frozen=True)
class BothTests:
    """Both tests of several runs of a system against several runs of a baseline."""

    randomisation: RunsComparison
    bootstrap: Comparison

    @property
    def p(self) -> float:
        """The larger of the two, which decides."""
        return max(self.randomisation.p, self.bootstrap.p)


def verdict(gain: float, *p: float) -> Verdict:
    """Return the verdict on a gain, which is positive if better; the largest p decides.

    >>> verdict(1.2, 0.001, 0.003), verdict(1.2, 0.001, 0.2), verdict(-1.2, 0.001)
    ('better', 'unclear', 'worse')
    """
    if max(p, default=1.0) >= CHANCE or gain == 0.0:
        return "unclear"
    return "better" if gain > 0.0 else "worse"


def confidence(
    metric: Metric, rows: npt.ArrayLike, samples: int = 1000, seed: int = SEED
) -> Interval:
    """Return the 95% bootstrap interval of a system's score (Koehn 2004).

    Raise if the corpus is empty.
    """
    matrix = _matrix(metric, rows)
    return _interval(_resampled(metric, [matrix], samples, seed)[0])


def paired_bootstrap(
    metric: Metric,
    baseline: npt.ArrayLike,
    system: npt.ArrayLike,
    samples: int = 1000,
    seed: int = SEED,
) -> Comparison:
    """Compare two systems on test sets drawn from the sentences with replacement.

    p is the share of test sets on which the difference lies further from the mean difference
    than the real one lies from zero (Koehn 2004, in the form of Moses' and sacreBLEU's test).
    Rows are one per sentence, for the same sentences in both. Raise if the numbers of rows differ.
    """
    left, right = _pair(metric, baseline, system)
    scores = _resampled(metric, [left, right], samples, seed)
    signed = scores[1] - scores[0]
    drawn = np.abs(signed)
    before, after = (metric.score(rows.sum(axis=0)) for rows in (left, right))
    p = _p_value(drawn - drawn.mean(), abs(after - before))
    ci = _bounds(signed)
    return Comparison(before, after, after - before, p, ci, "bootstrap", samples, seed)


def paired_randomisation(
    metric: Metric,
    baseline: npt.ArrayLike,
    system: npt.ArrayLike,
    samples: int = 10000,
    seed: int = SEED,
) -> Comparison:
    """Compare two systems by exchanging their outputs at random, sentence by sentence.

    p is the share of exchanges after which the two differ at least as much as before (Riezler and
    Maxwell 2005). The interval of the difference is bootstrapped with a tenth of the samples.
    Raise as `paired_bootstrap` does.
    """
    left, right = _pair(metric, baseline, system)
    before, after = (metric.score(rows.sum(axis=0)) for rows in (left, right))
    generator = np.random.default_rng(seed)
    total = (left + right).sum(axis=0)
    drawn = []
    for block in _blocks(samples, len(left)):
        kept = generator.integers(2, size=(block, len(left)), dtype=bool)
        first = kept @ left + ~kept @ right
        drawn.append(np.abs(metric.scores(first) - metric.scores(total - first)))
    p = _p_value(np.concatenate(drawn), abs(after - before))
    scores = _resampled(metric, [left, right], max(samples // 10, 1), seed)
    ci = _bounds(scores[1] - scores[0])
    return Comparison(before, after, after - before, p, ci, "randomisation", samples, seed)


def compare_runs(
    metric: Metric,
    baseline: Sequence[npt.ArrayLike],
    system: Sequence[npt.ArrayLike],
    samples: int = 10000,
    seed: int = SEED,
) -> RunsComparison:
    """Compare two systems whose optimiser was run several times (Clark et al. 2011).

    Each run is a matrix of rows, one per sentence, for the same sentences in all. p comes from
    approximate randomisation stratified by sentence: for each sentence the outputs of all runs are
    dealt out to two pseudo-systems, whose difference in mean score is compared with the real one.
    p is meant beside that of `bootstrap_runs`, which says why. Raise if a system has no runs or the
    numbers of sentences differ.
    """
    runs, own = _runs(metric, baseline, system), len(baseline)
    left, right = _describe(metric, runs[:own], seed), _describe(metric, runs[own:], seed)
    drawn = []
    generator = np.random.default_rng(seed)
    for block in _blocks(samples, len(runs[0]) * len(runs)):
        drawn.append(_dealt(metric, runs, own, block, generator))
    p = _p_value(np.abs(np.concatenate(drawn)), abs(right.mean - left.mean))
    return RunsComparison(left, right, right.mean - left.mean, p, samples, seed)


def _runs(
    metric: Metric, baseline: Sequence[npt.ArrayLike], system: Sequence[npt.ArrayLike]
) -> list[Rows]:
    """Return the rows of all runs, those of the baseline first; raise if they do not fit."""
    if not baseline or not system:
        raise InputError("a system without runs", remedy="give at least one run of each")
    runs = [_matrix(metric, rows) for rows in [*baseline, *system]]
    for rows in runs:
        _same_sentences(runs[0], rows)
    return runs


def bootstrap_runs(
    metric: Metric,
    baseline: Sequence[npt.ArrayLike],
    system: Sequence[npt.ArrayLike],
    samples: int = 1000,
    seed: int = SEED,
) -> Comparison:
    """Compare the mean scores of several runs on test sets drawn with replacement.

    All runs are scored on the same drawn test sets; p is the share of test sets on which the
    difference of the means lies further from its own mean, on either side, than the real one lies
    from zero. `paired_bootstrap` has sacreBLEU's form, which counts the upper side only wherever
    all drawn differences have one sign: its p is then half as large.

    Runs of one system are more alike than those of two. `compare_runs` does not know that: with
    equal runs, or nearly equal ones, its p is too small. Here runs do not count as sentences, so
    the larger of both p decides. Raise as `compare_runs` does.
    """
    runs, own = _runs(metric, baseline, system), len(baseline)
    scores = np.stack(_resampled(metric, runs, samples, seed))
    signed = scores[own:].mean(axis=0) - scores[:own].mean(axis=0)
    whole = metric.scores(np.stack([rows.sum(axis=0) for rows in runs]))
    before, after = float(whole[:own].mean()), float(whole[own:].mean())
    p = _p_value(np.abs(signed - signed.mean()), abs(after - before))
    return Comparison(before, after, after - before, p, _bounds(signed), "bootstrap", samples, seed)


def compare_both(
    metric: Metric,
    baseline: Sequence[npt.ArrayLike],
    system: Sequence[npt.ArrayLike],
    samples: int = 1000,
    seed: int = SEED,
) -> BothTests:
    """Compare several runs by randomisation and by bootstrap; raise as `compare_runs` does."""
    return BothTests(
        compare_runs(metric, baseline, system, samples, seed),
        bootstrap_runs(metric, baseline, system, samples, seed),
    )


def _describe(metric: Metric, runs: Sequence[Rows], seed: int) -> Runs:
    scores = metric.scores(np.stack([rows.sum(axis=0) for rows in runs]))
    spread = [_interval(_resampled(metric, [rows], 1000, seed)[0]).std for rows in runs]
    return Runs(
        scores=tuple(scores.tolist()),
        mean=float(scores.mean()),
        s_test=float(scores.std(ddof=1)) if len(runs) > 1 else 0.0,
        s_sel=float(np.mean(spread)),
    )


def _dealt(
    metric: Metric, runs: Sequence[Rows], own: int, samples: int, generator: np.random.Generator
) -> Rows:
    """Return the differences between pseudo-systems that get the runs' sentences at random."""
    sentences = len(runs[0])
    drawn = generator.random((samples, sentences, len(runs)), dtype=np.float32)
    # Row `run * sentences + sentence` of all runs, one under the other.
    places = drawn.argsort(axis=2) * sentences + np.arange(sentences)[:, None]
    every = np.concatenate(runs)
    sample = np.repeat(np.arange(samples), sentences)
    scores = []
    for place in range(len(runs)):
        taken = places[:, :, place].ravel()
        sums = [np.bincount(sample, column[taken], samples) for column in every.T]
        scores.append(metric.scores(np.stack(sums, axis=1)))
    first, second = np.stack(scores[:own]), np.stack(scores[own:])
    difference: Rows = second.mean(axis=0) - first.mean(axis=0)
    return difference


def _resampled(metric: Metric, systems: Sequence[Rows], samples: int, seed: int) -> list[Rows]:
    """Return each system's scores on the same test sets drawn with replacement."""
    sentences = len(systems[0])
    generator = np.random.default_rng(seed)
    scores: list[list[Rows]] = [[] for _ in systems]
    for block in _blocks(samples, sentences):
        drawn = generator.choice(sentences, size=(block, sentences), replace=True)
        flat = (drawn + np.arange(block)[:, None] * sentences).ravel()
        times = np.bincount(flat, minlength=block * sentences).reshape(block, sentences)
        weights = times.astype(np.float64)
        for found, rows in zip(scores, systems, strict=True):
            found.append(metric.scores(weights @ rows))
    return [np.concatenate(found) for found in scores]


def _blocks(samples: int, size: int) -> Iterator[int]:
    """Yield numbers of samples to draw at a time; raise if there are none to draw."""
    if samples < 1:
        raise InputError(f"{samples} samples", remedy="give at least one")
    most = max(_DRAWS // size, 1)
    for start in range(0, samples, most):
        yield min(most, samples - start)


def _p_value(drawn: Rows, real: float) -> float:
    """Return the share of differences at least as large as the real one, itself included."""
    as_large = int(np.count_nonzero(drawn >= real - _TIE * max(real, 1.0)))
    return (as_large + 1) / (len(drawn) + 1)


def _bounds(values: Rows) -> tuple[float, float]:
    """Return the 2.5% and 97.5% quantiles as sacreBLEU computes them."""
    ordered = np.sort(values)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


def _interval(scores: Rows) -> Interval:
    low, high = _bounds(scores)
    return Interval(float(scores.mean()), low, high, float(scores.std()))


def _matrix(metric: Metric, rows: npt.ArrayLike) -> Rows:
    matrix = np.asarray(rows, np.float64)
    width = metric.native.width
    if matrix.ndim != 2 or matrix.shape[1] != width:
        raise InputError(
            f"statistics of shape {matrix.shape}", remedy=f"give rows of {width} numbers"
        )
    if not len(matrix):
        raise InputError("no sentences to compare on", remedy="give at least one")
    return matrix


def _pair(metric: Metric, baseline: npt.ArrayLike, system: npt.ArrayLike) -> tuple[Rows, Rows]:
    left, right = _matrix(metric, baseline), _matrix(metric, system)
    _same_sentences(left, right)
    return left, right


def _same_sentences(left: Rows, right: Rows) -> None:
    if len(left) != len(right):
        raise InputError(
            f"{len(left)} sentences against {len(right)}",
            remedy="compare outputs for the same sentences",
        )
