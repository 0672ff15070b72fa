"""What simulated passes must obey, whatever is measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.engines import simulation
from tunesmith.engines.simulation import REGIMES, Measurements, Predicted, simulate, spread_of
from tunesmith.errors import InputError
from tunesmith.sources.base import LIST

TIMES = st.lists(st.floats(0.01, 2.0), min_size=1, max_size=20).map(tuple)
FREE = {"latency": 0.0, "bandwidth": 1e18}


@given(TIMES, st.integers(1, 200), st.sampled_from(sorted(REGIMES)))
def test_one_worker_takes_the_sum_of_all_times(
    times: tuple[float, ...], sentences: int, regime: str
) -> None:
    known = Measurements(times, **FREE)
    total = float(known.drawn(sentences).sum())
    found = simulate(regime, known, 1, sentences)
    assert math.isclose(found.seconds, total) and math.isclose(found.efficiency, 1.0)


@given(
    TIMES,
    *(st.integers(1, most) for most in (200, 50, 60)),
    st.sampled_from(sorted(REGIMES)),
)
def test_no_number_of_workers_beats_the_work_or_the_longest_sentence(
    times: tuple[float, ...], sentences: int, workers: int, cores: int, regime: str
) -> None:
    known = Measurements(times, 0.01, 1e4, 1e5, 0.02)
    drawn = known.drawn(sentences)
    found = simulate(regime, known, workers, sentences, cores)
    least = float(drawn.sum()) / min(workers, cores)
    assert found.seconds >= max(least, float(drawn.max())) * (1 - 1e-9)
    if cores >= workers:
        assert found == simulate(regime, known, workers, sentences)
    assert 0.0 < found.efficiency <= 1.0 + 1e-9
    assert found.staleness >= 0.0 and found.bytes_moved >= 0.0


def test_equal_sentences_of_a_stale_gradient_are_late_by_the_other_workers() -> None:
    found = simulate("stale-gradient", Measurements((1.0,), **FREE), 10, 1000)
    assert math.isclose(found.seconds, 100.0)
    # The first round of workers begins with the same weights.
    assert 8.9 < found.staleness <= 9.0


def test_mixing_is_bound_by_the_network_when_weights_are_many() -> None:
    found = simulate("mixing", Measurements((0.1,), 0.0, update_bytes=8e6), 1000, 10_000)
    assert found.bottleneck == "network"
    assert found.bytes_moved == 2 * 20 * 1000 * 8e6


def test_a_mixing_waits_for_as_many_sentences_as_the_learner_of_a_run_takes_at_once() -> None:
    # Four shards of 25 sentences in 20 pieces: five of two sentences, then fifteen of one.
    found = simulate("mixing", Measurements((1.0,), **FREE), 4, 100, cores=2)
    assert math.isclose(found.seconds, 5 * 4.0 + 15 * 2.0)
    alone = simulate("mixing", Measurements((1.0,), **FREE), 4, 100)
    assert math.isclose(alone.seconds, 5 * 2.0 + 15 * 1.0)


def test_mixings_without_steps_are_messages_only() -> None:
    known = Measurements((1.0,), latency=0.01, bandwidth=1e18)
    few, many = (simulate("mixing", known, 4, 100, mix=mix).seconds for mix in (25, 10**9))
    assert math.isclose(few, 25 * (1.0 + 8 * 0.01))
    assert math.isclose(many, 25 * 1.0 + 10**9 * 8 * 0.01)


def test_the_lists_of_a_batch_tuner_stay_with_at_most_so_many_workers_as_there_are_blocks() -> None:
    known = Measurements((0.1,), 0.0, 1e3, list_bytes=1e6, optimise_seconds=0.1, **FREE)
    assert simulation.LIST == LIST
    found = [simulate("batch-tuner", known, workers, 2560) for workers in (1, 16, 256, 2560)]
    assert [round(each.seconds, 6) for each in found] == [512.0, 32.0, 2.0, 2.0]
    assert {each.bottleneck for each in found} == {"workers"}
    # One translation of each line, and weights for each worker.
    assert [each.bytes_moved for each in found][:2] == [2560 * 1e4 + 1e3, 2560 * 1e4 + 16e3]


@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_a_long_text_is_in_proportion(regime: str) -> None:
    known = Measurements((0.1, 0.3), 0.001, 1000.0, 1e4, 0.001)

    def of(sentences: int) -> Predicted:
        return simulate(regime, known, 10, sentences)

    # Shards of a long text are more equal than those of a short one.
    assert math.isclose(of(1_000_000).seconds, 10 * of(100_000).seconds, rel_tol=0.05)


@pytest.mark.parametrize("regime", sorted(REGIMES))
@pytest.mark.parametrize("sentences", [256, 300_000])
def test_workers_on_one_core_are_as_fast_as_one_worker(regime: str, sentences: int) -> None:
    known = Measurements((0.1, 0.3), **FREE)
    one, four = (simulate(regime, known, workers, sentences, cores=1) for workers in (1, 4))
    assert math.isclose(one.seconds, four.seconds, rel_tol=0.02)
    # Workers without a sentence are idle.
    idle = simulate(regime, Measurements((0.1,), **FREE), 1_000, 100, cores=1)
    assert math.isclose(idle.seconds, 10.0)
    with pytest.raises(InputError, match="0 cores"):
        simulate(regime, known, 4, sentences, cores=0)


def test_bad_measurements_are_refused() -> None:
    for bad in (None, [], "x", "123", {"3": 1}, [True], [0.0], [10**400], [math.nan]):
        with pytest.raises(InputError):
            Measurements.of({"decode_seconds": bad})
    with pytest.raises(InputError, match="not measurements"):
        Measurements.of({})
    with pytest.raises(InputError, match="unknown measurement speed"):
        Measurements.of({"decode_seconds": [1.0], "speed": 1})
    with pytest.raises(InputError, match=r"m\.json: latency is -1"):
        Measurements.of({"decode_seconds": [1.0], "latency": -1}, "m.json")
    with pytest.raises(InputError, match="use decode_seconds, step_seconds, update_bytes"):
        Measurements.of({"decode_seconds": [1.0], "speed": 1})


def test_numbers_of_workers() -> None:
    assert spread_of("1..1000") == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert spread_of("8,2") == [2, 8]
    for bad in ("0..5", "5..1", "x", "", "1,,2", "-1"):
        with pytest.raises(InputError, match=r"write 1\.\.1000"):
            spread_of(bad)
