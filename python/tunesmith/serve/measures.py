"""Figures of a service in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Now(Collector):
    """Figures that are looked up when they are asked for."""

    def __init__(self, look: Callable[[], dict[str, tuple[str, float]]]) -> None:
        self._look = look

    def collect(self) -> Iterable[Any]:
        for name, (help_text, value) in self._look().items():
            yield GaugeMetricFamily(name, help_text, value=value)


class Measures:
    """The counters of one service; two services in a process do not share them."""

    def __init__(self, look: Callable[[], dict[str, tuple[str, float]]]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(_Now(look))
        add: Any = {"registry": self.registry}
        self.requests = Counter(
            "tunesmith_requests", "Answered requests.", ["route", "status"], **add
        )
        self.seconds = Histogram(
            "tunesmith_request_seconds", "Time of requests.", ["route"], buckets=SECONDS, **add
        )
        self.sentences = Counter("tunesmith_sentences", "Translated sentences.", **add)
        self.batch = Histogram(
            "tunesmith_batch_sentences",
            "Sentences of a batch.",
            buckets=(1, 2, 4, 8, 16, 32),
            **add,
        )
        self.decoding = Histogram(
            "tunesmith_batch_seconds", "Time of a batch.", buckets=SECONDS, **add
        )
        self.memory = Counter("tunesmith_memory", "Sentences answered from corrections.", **add)
        self.feedback = Counter("tunesmith_feedback", "Corrections received.", ["status"], **add)
        self.hung_up = Counter("tunesmith_hung_up", "Clients that did not wait.", **add)
        self.index_errors = Counter(
            "tunesmith_index_errors", "Corrections that the index could not take.", **add
        )

    def batch_done(self, size: int, seconds: float) -> None:
        """Count a batch."""
        self.sentences.inc(size)
        self.batch.observe(size)
        self.decoding.observe(seconds)

    def text(self) -> bytes:
        """Return all figures."""
        return generate_latest(self.registry)
