"""The real lists and texts, which lie beside the repository and are not part of it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.harness import Skip
from benchmarks.rivals import Rivals
from tunesmith import Pools, get_metric, read_pools
from tunesmith.learn.task import Task
from tunesmith.metrics import Metric
from tunesmith.spaces.reading import read_weights
from tunesmith.weights import Vector

METRIC = "bleu:tokenize=none"


def shared_folder() -> Path:
    """Return where the data lie: TUNESMITH_SHARED, or `shared` beside the repository."""
    given = os.environ.get("TUNESMITH_SHARED")
    return Path(given) if given else Path(__file__).resolve().parent.parent.parent / "shared"


def batched(lines: Sequence[str], size: int) -> list[list[str]]:
    """Return lines in parts of some size."""
    return [list(lines[start : start + size]) for start in range(0, len(lines), size)]


@dataclass
class Corpus:
    """The lists that Moses left after eight iterations, with references and start weights."""

    lists: list[Path]
    references: Path
    weights: Path

    def load(self) -> Pools:
        """Read and merge the lists."""
        return read_pools([*self.lists], [self.references])

    def start(self, pools: Pools) -> Vector:
        """Return Moses' untuned weights."""
        return pools.vector(read_weights(self.weights))


@dataclass
class Setting:
    """What every benchmark is given: how thorough to be, the data, read once, other programs."""

    quick: bool = False
    shared: Path = field(default_factory=shared_folder)
    rivals: Rivals = field(default_factory=Rivals)

    def times(self, count: int) -> int:
        """Return how often to repeat: less where it is to be quick."""
        return 1 if self.quick else count

    def file(self, *parts: str) -> Path:
        """Return a file of the shared data; skip the benchmark where it is missing."""
        path = self.shared.joinpath("data", *parts)
        if not path.exists():
            raise Skip(f"{'/'.join(parts)} is not there; set TUNESMITH_SHARED to its folder")
        return path

    @cached_property
    def corpus(self) -> Corpus:
        """The eight lists."""
        lists = [
            self.file("multi30k-moses", "nbest", f"run{number}.best100.out.gz")
            for number in range(1, 9)
        ]
        return Corpus(
            lists,
            self.file("multi30k", "val.en.gz"),
            self.file("multi30k-moses", "moses.untuned.ini"),
        )

    @cached_property
    def pools(self) -> Pools:
        """The eight lists, merged."""
        return self.corpus.load()

    @cached_property
    def metric(self) -> Metric:
        """The metric that Moses tunes for."""
        return get_metric(METRIC)

    @cached_property
    def start(self) -> Vector:
        """Moses' untuned weights."""
        return self.corpus.start(self.pools)

    def task(self, pools: Pools | None = None, threads: int = 1) -> Task:
        """Return lists and metric as a tuner takes them, statistics computed."""
        pools = self.pools if pools is None else pools
        limit = np.full(len(pools.names), np.inf)
        pools.table(self.metric, threads)
        return Task(pools, self.metric, -limit, limit, threads)


def text_lines(path: Path) -> list[str]:
    """Return the lines of a gzipped text."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def first_sentences(pools: Pools, count: int) -> Pools:
    """Return the first lists only."""
    return pools.subset(range(min(count, pools.sentences)))
