"""What the significance tests promise: seeds, ties, several runs, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.errors import InputError
from tunesmith.metrics import Bleu, Column, Metric, Wer
from tunesmith.metrics.significance import (
    bootstrap_runs,
    compare_both,
    compare_runs,
    confidence,
    paired_bootstrap,
    paired_randomisation,
)

Rows = np.ndarray


def errors(seed: int, sentences: int = 300, rate: float = 0.2) -> Rows:
    generator = np.random.default_rng(seed)
    length = generator.integers(5, 30, sentences)
    return np.column_stack([generator.binomial(length, rate), length]).astype(float)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_randomisation])
def test_a_system_is_not_better_than_itself(test: object) -> None:
    rows = errors(1)
    found = test(Wer(), rows, rows)  # type: ignore[operator]
    assert found.p == 1
    assert found.difference == 0
    assert found.ci == (0, 0)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_randomisation])
def test_a_clear_difference_is_significant_and_a_faint_one_is_not(test: object) -> None:
    base = errors(1)
    clear = test(Wer(), base, errors(2, rate=0.1))  # type: ignore[operator]
    assert clear.p < 0.01
    assert clear.difference == pytest.approx(clear.system - clear.baseline)
    assert clear.ci[0] < clear.difference < clear.ci[1] < 0
    faint = test(Wer(), base, errors(3))  # type: ignore[operator]
    assert faint.p > 0.05
    assert faint.ci[0] < 0 < faint.ci[1]


def test_one_changed_sentence_proves_nothing() -> None:
    rows = errors(1)
    other = rows.copy()
    other[7, 0] += 3
    assert paired_randomisation(Wer(), rows, other).p == 1
    other[9, 0] += 3
    assert paired_randomisation(Wer(), rows, other).p == pytest.approx(0.5, abs=0.02)


def test_the_seed_decides() -> None:
    left, right = errors(1), errors(2)
    for test in (paired_bootstrap, paired_randomisation):
        assert test(Wer(), left, right, seed=7) == test(Wer(), left, right, seed=7)
        assert test(Wer(), left, right, seed=7) != test(Wer(), left, right, seed=8)
    runs = compare_runs(Wer(), [left], [right], samples=500, seed=7)
    assert runs == compare_runs(Wer(), [left], [right], samples=500, seed=7)


def test_fractions_tie_as_whole_numbers_do() -> None:
    generator = np.random.default_rng(5)
    values = generator.random(50)
    rows = np.column_stack([values, np.ones(50)])
    other = rows.copy()
    other[3, 0] += 0.1
    assert paired_randomisation(Column("x"), rows, other).p == 1


def test_an_interval_holds_the_score() -> None:
    rows = errors(1)
    found = confidence(Wer(), rows)
    assert found.low < Wer().score(rows.sum(axis=0)) < found.high
    assert found.half == pytest.approx((found.high - found.low) / 2)
    assert found.std == pytest.approx(found.half / 1.96, rel=0.15)


def test_one_run_each_is_the_plain_test() -> None:
    left, right = errors(1), errors(2, rate=0.185)
    runs = compare_runs(Wer(), [left], [right])
    plain = paired_randomisation(Wer(), left, right)
    assert runs.p == pytest.approx(plain.p, abs=0.02)
    assert runs.baseline.scores == (plain.baseline,)
    assert runs.baseline.s_test == 0
    assert runs.system.s_sel == pytest.approx(confidence(Wer(), right).std)


def test_runs_of_one_optimiser_are_averaged_before_they_are_compared() -> None:
    base = [errors(seed) for seed in (1, 2, 3)]
    system = [errors(seed, rate=0.1) for seed in (4, 5, 6)]
    found = compare_runs(Wer(), base, system, samples=2000)
    scores = [Wer().score(rows.sum(axis=0)) for rows in base]
    assert found.baseline.scores == pytest.approx(scores)
    assert found.baseline.mean == pytest.approx(np.mean(scores))
    assert found.baseline.s_test == pytest.approx(np.std(scores, ddof=1))
    assert found.difference == pytest.approx(found.system.mean - found.baseline.mean)
    assert found.p < 0.01
    again = compare_runs(Wer(), base, base, samples=500)
    assert again.p == 1
    # Different numbers of runs can be compared, too.
    assert compare_runs(Wer(), base, system[:1], samples=500).p < 0.02


def test_equal_runs_are_no_more_evidence_than_one() -> None:
    """A tuner without randomness finds the same with every seed."""
    left, right = errors(1), errors(2, rate=0.185)
    one = bootstrap_runs(Wer(), [left], [right], samples=500)
    five = bootstrap_runs(Wer(), [left] * 5, [right] * 5, samples=500)
    assert five.p == one.p
    # Randomisation alone would be fooled.
    assert compare_runs(Wer(), [left] * 5, [right] * 5, samples=500).p < one.p / 2
    assert compare_both(Wer(), [left] * 5, [right] * 5, samples=500).p == one.p


def test_a_difference_is_significant_where_its_interval_leaves_zero_out() -> None:
    for seed in range(2, 30):
        found = bootstrap_runs(Wer(), [errors(1)], [errors(seed, rate=0.16)], samples=999)
        inside = found.ci[0] <= 0.0 <= found.ci[1]
        if not 0.03 < found.p < 0.08:
            assert (found.p > 0.05) == inside


def test_what_cannot_be_compared_is_refused() -> None:
    rows = errors(1)
    with pytest.raises(InputError, match="300 sentences against 200"):
        paired_bootstrap(Wer(), rows, rows[:200])
    with pytest.raises(InputError, match="rows of 10 numbers"):
        paired_randomisation(Bleu(), rows, rows)
    with pytest.raises(InputError, match="no sentences"):
        confidence(Wer(), np.zeros((0, 2)))
    with pytest.raises(InputError, match="without runs"):
        compare_runs(Wer(), [], [rows])
    with pytest.raises(InputError, match="samples"):
        paired_bootstrap(Wer(), rows, rows, samples=0)
    with pytest.raises(InputError, match="samples"):
        paired_randomisation(Wer(), rows, rows, samples=0)


def test_a_metric_in_python_can_be_tested() -> None:
    class Rate(Metric):
        name, width, higher_is_better = "rate", 2, False

        def score_rows(self, rows: Rows) -> Rows:
            return np.asarray(100 * rows[:, 0] / rows[:, 1])

        def gain_rows(self, rows: Rows) -> Rows:
            return 1 - self.score_rows(rows) / 100

    left, right = errors(1), errors(2)
    ours, native = paired_bootstrap(Rate(), left, right), paired_bootstrap(Wer(), left, right)
    assert ours.p == native.p
    assert ours.difference == pytest.approx(native.difference)
