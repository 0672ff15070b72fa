"""The load generator of the benchmarks: it counts answers and errors."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from serving import Serving

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.serve_bench import saturated, steady


def test_every_request_is_answered(shared: Serving) -> None:
    lines = ["Das Haus ist alt.", "Ein Buch."]
    found = asyncio.run(steady(shared.url, os.getpid(), lines, 100, 0.5))
    assert (len(found.seconds), found.errors) == (50, [])
    assert min(own for _, own, _ in found.resident) > 1_000_000


def test_a_service_is_kept_busy(shared: Serving) -> None:
    lines = ["Das Haus ist alt.", "Ein Buch."]
    found = asyncio.run(saturated(shared.url, lines, count=50))
    assert found.errors == [] and found.service > 0 and found.decoder > 0
    assert asyncio.run(saturated(shared.url, lines, seconds=0.2)).service > 0


def test_refused_requests_are_errors(shared: Serving) -> None:
    found = asyncio.run(steady(shared.url, os.getpid(), ["Haus " * 10_000], 100, 0.1))
    assert found.errors == ["status 422"] * 10


def test_a_service_that_is_gone_is_an_error() -> None:
    found = asyncio.run(steady("http://127.0.0.1:9", os.getpid(), ["Haus"], 100, 0.1))
    assert len(found.errors) == 10
