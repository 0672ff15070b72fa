"""The load generator of the benchmarks: it counts answers and errors."""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import sys
from pathlib import Path

from serving import Serving

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.serve_bench import arrivals, saturated, steady


def test_every_request_is_answered(shared: Serving) -> None:
    lines = ["Das Haus ist alt.", "Ein Buch."]
    found = asyncio.run(steady(shared.url, os.getpid(), lines, arrivals(100, 0.5), 0.5))
    assert (len(found.seconds), found.errors) == (50, [])
    assert min(own for _, own, _ in found.resident) > 1_000_000
    assert found.figures[-1].sentences - found.figures[0].sentences == 50
    assert min(found.speeds) > 0


def test_requests_arrive_evenly_or_at_random() -> None:
    assert list(arrivals(4, 1)) == [0.0, 0.25, 0.5, 0.75]
    several = list(arrivals(100, 50, at_random=True))
    assert several == list(arrivals(100, 50, at_random=True))
    assert 4800 < len(several) < 5200
    gaps = [after - before for before, after in itertools.pairwise(several)]
    # The deviation of an exponential distribution is its mean.
    assert 0.009 < statistics.stdev(gaps) < 0.011


def test_a_service_is_kept_busy(shared: Serving) -> None:
    lines = ["Das Haus ist alt.", "Ein Buch."]
    found = asyncio.run(saturated(shared.url, lines, count=50))
    assert found.errors == [] and found.service > 0 and found.decoder > 0


def test_refused_requests_are_errors(shared: Serving) -> None:
    found = asyncio.run(
        steady(shared.url, os.getpid(), ["Haus " * 10_000], arrivals(100, 0.1), 0.1)
    )
    assert found.errors == ["status 422"] * 10


def test_a_service_that_is_gone_is_an_error() -> None:
    found = asyncio.run(
        steady("http://127.0.0.1:9", os.getpid(), ["Haus"], arrivals(100, 0.1), 0.1)
    )
    assert len(found.errors) == 10
