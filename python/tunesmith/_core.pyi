from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Self, final, overload

import numpy as np
from numpy.typing import NDArray

from tunesmith.errors import InputError

__all__ = [
    "GLUE_RULES",
    "HEURISTICS",
    "TAGGER_TEMPLATES",
    "TEMPLATES",
    "TEMPLATE_SETS",
    "AlignedCorpus",
    "AtomicWriter",
    "Blocks",
    "Constraints",
    "Contest",
    "Decoder",
    "Derivation",
    "Examples",
    "Expectation",
    "Forests",
    "LanguageModel",
    "Learner",
    "LineSearch",
    "Lines",
    "LmEstimate",
    "LmState",
    "Metric",
    "NbestReader",
    "Near",
    "Pools",
    "PoolsBuilder",
    "RuleTable",
    "Sampler",
    "Segments",
    "Selected",
    "Selector",
    "Step",
    "StructuredLearner",
    "StructuredTask",
    "StructuredWeights",
    "Table",
    "Templates",
    "Translation",
    "Translator",
    "Update",
    "Walker",
    "__version__",
    "error_update",
    "estimate_lm",
    "fast_align",
    "import_cdec_grammar",
    "import_moses_table",
    "line_limit",
    "line_too_long",
    "make_classes",
    "margin_update",
    "parse_links",
    "permutation",
    "read_cdec",
    "read_classes",
    "read_moses",
    "sweep",
    "symmetrise",
    "symmetrise_files",
    "tell_bus_errors",
    "worth",
    "write_nbest",
]

__version__: str

# Text files

@final
class Lines:
    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    def __iter__(self) -> Iterator[str]: ...
    def __next__(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def file(self) -> str: ...

def line_limit() -> int: ...
def tell_bus_errors() -> None: ...
def line_too_long(file: str, line: int) -> InputError: ...

@final
class AtomicWriter:
    def __new__(cls, path: str | PathLike[str], *, durable: bool = True) -> Self: ...
    def write(self, content: str | bytes) -> None: ...
    def commit(self) -> None: ...
    def discard(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> bool: ...

# N-best lists

@final
class NbestReader:
    def __new__(
        cls,
        path: str | PathLike[str],
        format: str = "moses",
        *,
        skip_bad: bool = False,
        keep_blank: bool = False,
        keyed: bool = False,
        first_id: int = 0,
        sentences: int | None = None,
        columns: Sequence[str] = ...,
        column_files: Sequence[tuple[str, str]] = ...,
        feature_files: Sequence[tuple[str, str]] = ...,
    ) -> Self: ...
    def read(self, limit: int | None = None) -> Pools | None: ...
    @property
    def skipped(self) -> list[tuple[str, int, InputError]]: ...
    @property
    def bytes(self) -> int: ...

def read_moses(path: str | PathLike[str], columns: Sequence[str] = ...) -> Pools: ...
def read_cdec(path: str | PathLike[str], columns: Sequence[str] = ...) -> Pools: ...
def write_nbest(
    pools: Pools,
    path: str | PathLike[str],
    format: str = "moses",
    *,
    order: Sequence[int] | None = None,
    scores: Sequence[tuple[str, Sequence[float]]] = ...,
    keyed: bool = False,
    first_id: int = 0,
) -> None: ...

@final
class PoolsBuilder:
    def __new__(cls, columns: Sequence[str] = ..., names: Sequence[str] = ...) -> Self: ...
    @property
    def sentences(self) -> int: ...
    @property
    def hypotheses(self) -> int: ...
    def sentence(self, key: str | None = None) -> None: ...
    def push(
        self,
        text: str,
        names: Sequence[str],
        values: Sequence[float],
        score: float | None = None,
        extra: str = "",
        columns: Mapping[str, float] | None = None,
    ) -> None: ...
    def finish(self) -> Pools: ...

# Pools

@final
class Pools:
    @staticmethod
    def from_arrays(
        starts: NDArray[np.int64],
        texts: Sequence[str],
        rows: NDArray[np.int64],
        ids: NDArray[np.int64],
        values: NDArray[np.float64],
        names: Sequence[str],
        scores: NDArray[np.float64] | None = None,
        columns: Sequence[tuple[str, Sequence[float]]] = ...,
        keys: Sequence[str] = ...,
        extras: Sequence[str] = ...,
        lines: Sequence[int] = ...,
    ) -> Pools: ...
    @staticmethod
    def merge(parts: Sequence[Pools]) -> Pools: ...
    def subset(self, sentences: Sequence[int]) -> Pools: ...
    @property
    def sentences(self) -> int: ...
    @property
    def hypotheses(self) -> int: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def distinct_texts(self) -> int: ...
    @property
    def heap_bytes(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def lines(self) -> NDArray[np.int64]: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def starts(self) -> NDArray[np.int64]: ...
    @property
    def scores(self) -> NDArray[np.float64]: ...
    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]: ...
    def cells(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]: ...
    def gram(self) -> NDArray[np.float64]: ...
    def column(self, name: str) -> NDArray[np.float64]: ...
    def texts(self, positions: NDArray[np.int64]) -> list[str]: ...
    def packed(self, extras: bool = False) -> NDArray[np.uint8]: ...
    def picked(self, positions: NDArray[np.int64]) -> Pools: ...
    def wholes(self, positions: NDArray[np.int64]) -> list[str]: ...
    def extra(self, position: int) -> str: ...
    def features(self, position: int) -> list[tuple[str, float]]: ...
    def dot(self, weights: NDArray[np.float64], threads: int = 0) -> NDArray[np.float64]: ...
    def best(self, weights: NDArray[np.float64], threads: int = 0) -> NDArray[np.int64]: ...
    def table(
        self,
        metric: Metric,
        references: Sequence[Sequence[str]],
        threads: int = 0,
        words: Sequence[int] | None = None,
    ) -> Table | None: ...
    def take(self, table: Table, positions: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def agreement(self, by_words: bool, threads: int = 0) -> NDArray[np.float64]: ...
    def extended(self, more: Sequence[tuple[str, NDArray[np.float32]]]) -> Pools: ...
    def best_alone(self, table: Table, metric: Metric, best: bool) -> NDArray[np.int64]: ...
    def exchange(
        self,
        table: Table,
        metric: Metric,
        best: bool,
        first: int,
        positions: NDArray[np.int64],
        total: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
    def consensus(
        self, weights: NDArray[np.float64], alpha: float | None, threads: int = 0
    ) -> NDArray[np.int64]: ...

# Forests

@final
class Forests:
    @staticmethod
    def of_lists(pools: Pools) -> Forests: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Forests: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def encoded(self) -> bytes: ...
    @staticmethod
    def decoded(bytes: bytes) -> Forests: ...
    @staticmethod
    def join(parts: Sequence[Forests]) -> Forests: ...
    @staticmethod
    def merge(parts: Sequence[Forests], threads: int = 0) -> Forests: ...
    def subset(self, sentences: Sequence[int]) -> Forests: ...
    def renamed(self, names: Sequence[str]) -> Forests: ...
    @property
    def sentences(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def heap_bytes(self) -> int: ...
    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    def prune(
        self,
        weights: NDArray[np.float64],
        beam: float | None = None,
        posterior: float | None = None,
        density: float | None = None,
        threads: int = 0,
    ) -> Forests: ...
    def best(
        self, weights: NDArray[np.float64], threads: int = 0
    ) -> list[tuple[str, float] | None]: ...
    def kbest(
        self, weights: NDArray[np.float64], k: int, unique: bool = True, threads: int = 0
    ) -> Pools: ...
    def consensus(
        self,
        weights: NDArray[np.float64],
        alpha: float | None,
        pops: int,
        threads: int = 0,
    ) -> list[str | None]: ...
    def log_partition(
        self, weights: NDArray[np.float64], alpha: float, threads: int = 0
    ) -> NDArray[np.float64]: ...
    def expectations(
        self, sentence: int, weights: NDArray[np.float64], alpha: float
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]: ...

@final
class Segments:
    def __new__(
        cls,
        forests: Forests,
        metric: Metric,
        references: Sequence[Sequence[str]],
        list: int = 1500,
        pops: int = 20,
        threads: int = 0,
    ) -> Self: ...
    def best(self, weights: NDArray[np.float64], threads: int = 0) -> NDArray[np.float64]: ...
    def choices(
        self,
        weights: NDArray[np.float64],
        best: bool = True,
        before: tuple[list[str], NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 0,
    ) -> list[str]: ...

# Metrics

@final
class Metric:
    @staticmethod
    def bleu(
        *,
        tokenize: str = "13a",
        lowercase: bool = False,
        max_order: int = 4,
        length: str = "closest",
    ) -> Metric: ...
    @staticmethod
    def chrf(
        *,
        char_order: int = 6,
        word_order: int = 0,
        beta: float = 2.0,
        lowercase: bool = False,
        whitespace: bool = False,
        eps_smoothing: bool = False,
    ) -> Metric: ...
    @staticmethod
    def ter(
        *,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
    ) -> Metric: ...
    @staticmethod
    def wer(*, lowercase: bool = False) -> Metric: ...
    @staticmethod
    def cer(*, lowercase: bool = False) -> Metric: ...
    @staticmethod
    def mean(*, scale: float = 100.0, higher: bool = True) -> Metric: ...
    @staticmethod
    def ratio(*, scale: float = 100.0, higher: bool = False) -> Metric: ...
    @staticmethod
    def blend(parts: Sequence[tuple[Metric, float]]) -> Metric: ...
    @staticmethod
    def python(metric: object) -> Metric: ...
    def prepared(self, function: Callable[[str], str]) -> Metric: ...
    @property
    def width(self) -> int: ...
    @property
    def reads_text(self) -> bool: ...
    def score(self, stats: NDArray[np.float64]) -> float: ...
    def scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def gains(self, rows: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def sentence_gains(self, rows: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def stats(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> NDArray[np.float64]: ...

@final
class Table:
    @staticmethod
    def from_rows(starts: NDArray[np.int64], rows: NDArray[np.float64]) -> Table: ...
    @staticmethod
    def from_texts(
        metric: Metric,
        starts: NDArray[np.int64],
        texts: Sequence[str],
        references: Sequence[Sequence[str]],
    ) -> Table: ...
    def subset(self, sentences: Sequence[int]) -> Table: ...
    def rows(self) -> NDArray[np.float64]: ...
    @property
    def width(self) -> int: ...
    @property
    def hypotheses(self) -> int: ...
    @property
    def sentences(self) -> int: ...
    @property
    def distinct(self) -> int: ...

# Learning

@final
class Selector:
    @staticmethod
    def hope_fear(
        oracle: tuple[float, float],
        prediction: tuple[float, float],
        oracle_among: tuple[int, bool, bool],
        counted: tuple[int, bool, bool],
        pinned: Sequence[float] | None = None,
    ) -> Selector: ...
    @staticmethod
    def lists(n: int, model: bool, counted: tuple[int, bool, bool]) -> Selector: ...
    @staticmethod
    def pairs(samples: int, threshold: float, keep: int) -> Selector: ...
    @staticmethod
    def expected(alpha: float, k: int) -> Selector: ...
    @staticmethod
    def against(margin: float) -> Selector: ...
    @staticmethod
    def bounded(
        inner: Selector,
        bound: float,
        price: float,
        counted: tuple[int, bool, bool],
        by_cost: bool,
    ) -> Selector: ...
    @staticmethod
    def python(
        choose: Callable[
            [NDArray[np.float64], NDArray[np.float64], int], Sequence[tuple[int, int]]
        ],
    ) -> Selector: ...

@final
class Update:
    def splits(self, selector: Selector) -> bool: ...
    def selecting(self) -> Update: ...
    @staticmethod
    def passive_aggressive(c: float, rate: float, scale_by_oracle: bool) -> Update: ...
    @staticmethod
    def hildreth(
        c: float, rate: float, scale_by_oracle: bool, tolerance: float, sweeps: int
    ) -> Update: ...
    @staticmethod
    def cutting_plane(
        c: float, epsilon: float, epsilon_bound: float, moves: int, planes: int
    ) -> Update: ...
    @staticmethod
    def perceptron(rate: float, mean: bool = False, when: str = "wrong") -> Update: ...
    @staticmethod
    def arow(r: float, rate: float, variance: float, linear: bool) -> Update: ...
    @staticmethod
    def gradient(
        loss: str,
        rate: str,
        eta: float,
        l1: float,
        l2: float,
        anchor: Sequence[float] = ...,
        *,
        shrink: str = "exact",
    ) -> Update: ...
    @staticmethod
    def python(rule: object) -> Update: ...

@final
class Learner:
    def __new__(
        cls,
        pools: Pools | Forests,
        table: Table | Segments,
        metric: Metric,
        selector: Selector,
        update: Update,
        weights: NDArray[np.float64],
        *,
        gain: str = "sentence",
        decay: float = 0.9,
        history: str = "1best",
        gain_scale: str = "one",
        lengths: Sequence[float] | None = None,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
        batch: int = 1,
        seed: int = 0,
        averaged: bool = True,
        idle: bool = True,
        names: Sequence[str] | None = None,
        unit: float = 1.0,
        paces: Sequence[float] | None = None,
    ) -> Self: ...
    def run(self, order: NDArray[np.uint32], epoch: int) -> dict[str, Any]: ...
    @overload
    def take(self, spaces: Pools) -> Pools: ...
    @overload
    def take(self, spaces: Forests) -> Forests: ...
    def visit(
        self,
        spaces: Pools | Forests,
        table: Table | Segments,
        lines: NDArray[np.uint32],
        epoch: int,
    ) -> dict[str, Any]: ...
    def select(
        self, lines: NDArray[np.uint32], epoch: int, *, margins: bool = False
    ) -> Selected: ...
    def select_found(
        self,
        spaces: Pools | Forests,
        table: Table | Segments,
        lines: NDArray[np.uint32],
        epoch: int,
        known: int,
        *,
        margins: bool = False,
    ) -> Selected: ...
    def batches(self, order: NDArray[np.uint32]) -> list[NDArray[np.uint32]]: ...
    @property
    def scored(self) -> bool: ...
    def open(self, scored: bool) -> None: ...
    def catch_up(self, lines: NDArray[np.uint32]) -> None: ...
    def meet(self, parts: Sequence[Selected], lines: NDArray[np.uint32]) -> None: ...
    def apply(self, parts: Sequence[Selected], lines: NDArray[np.uint32]) -> None: ...
    def close(self) -> dict[str, Any]: ...
    def changes(self) -> dict[str, Any]: ...
    def extend(self, names: Sequence[str]) -> None: ...
    def follow(
        self,
        ids: NDArray[np.uint32],
        values: NDArray[np.float64],
        lines: NDArray[np.uint32],
        stats: NDArray[np.float64],
    ) -> None: ...
    def forget(self, known: int) -> None: ...
    @property
    def context(self) -> NDArray[np.float64] | None: ...
    def mirror(self, weights: NDArray[np.float64], gain: NDArray[np.float64]) -> None: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def size(self) -> int: ...
    def adopt(self, names: Sequence[str]) -> None: ...
    def bound(self, lower: Sequence[float], upper: Sequence[float]) -> None: ...
    def translator(
        self,
        decoder: Decoder,
        settings: Sequence[tuple[str, float]],
        constants: Sequence[tuple[str, float]],
    ) -> Translator: ...
    def set_context(self, chosen: NDArray[np.float64]) -> None: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def average(self) -> NDArray[np.float64]: ...
    def restart_average(self) -> None: ...
    def end_epoch(self) -> None: ...
    def slow_down(self, factor: float) -> None: ...
    def set_weights(self, weights: NDArray[np.float64]) -> None: ...
    def state(self) -> dict[str, NDArray[np.float64]]: ...
    def restore(
        self,
        weights: NDArray[np.float64],
        lag: NDArray[np.float64],
        steps: NDArray[np.float64],
        gain: NDArray[np.float64],
        update: NDArray[np.float64],
    ) -> None: ...

# Where each block ends, and the number of each sentence in the whole corpus.
_Blocks = tuple[Sequence[int], Sequence[int]]
# Sparse sums by block: starts and end, ids, values.
_Slopes = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]
# Changes at the far left by block; where statistics change, of which sentence, by how much.
_Breaks = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint32], NDArray[np.float64]]

@final
class Selected:
    @staticmethod
    def of(arrays: dict[str, Any]) -> Selected: ...
    def arrays(self) -> dict[str, Any]: ...
    @property
    def scored(self) -> bool: ...
    def __len__(self) -> int: ...

@final
class Constraints:
    def __len__(self) -> int: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def loss(
        self, weights: NDArray[np.float64], loss: str, threads: int = 0
    ) -> tuple[float, NDArray[np.float64]]: ...
    def losses(
        self, weights: NDArray[np.float64], loss: str, count: int, threads: int = 0
    ) -> tuple[NDArray[np.float64], _Slopes]: ...
    def squares(self, threads: int = 0) -> _Slopes: ...

@final
class Sampler:
    def __new__(
        cls,
        pools: Pools | Forests,
        table: Table | Segments,
        metric: Metric,
        features: int,
        blocks: _Blocks | None = None,
        part: tuple[Sequence[int], int] | None = None,
    ) -> Self: ...
    def rows(
        self,
        selector: Selector,
        weights: NDArray[np.float64],
        seed: int = 0,
        epoch: int = 0,
        threads: int = 0,
        chosen: NDArray[np.float64] | None = None,
    ) -> Constraints: ...

def permutation(seed: int, epoch: int, length: int) -> NDArray[np.uint32]: ...

@final
class LineSearch:
    def __new__(
        cls,
        pools: Pools | Forests,
        table: Table | Segments,
        metric: Metric,
        coordinates: Sequence[int],
        threads: int = 0,
        blocks: _Blocks | None = None,
    ) -> Self: ...
    def walker(self, weights: NDArray[np.float64]) -> Walker: ...

@final
class Walker:
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def gain(self) -> float: ...
    @property
    def sums(self) -> NDArray[np.float64]: ...
    def axis_breaks(self, axis: int, lower: float, upper: float) -> _Breaks: ...
    def breaks(self, direction: NDArray[np.float64], lower: float, upper: float) -> _Breaks: ...
    def axis(self, axis: int, lower: float, upper: float) -> tuple[float, float]: ...
    def direction(
        self, direction: NDArray[np.float64], lower: float, upper: float
    ) -> tuple[float, float]: ...
    def move_axis(self, axis: int, step: float) -> None: ...
    def move_to(self, weights: NDArray[np.float64]) -> None: ...

@final
class Expectation:
    def __new__(
        cls,
        pools: Pools | Forests,
        table: Table | Segments,
        metric: Metric,
        weights: NDArray[np.float64],
        threads: int = 0,
        blocks: _Blocks | None = None,
    ) -> Self: ...
    def stats(
        self, weights: NDArray[np.float64], alpha: float, threads: int = 0
    ) -> tuple[int, NDArray[np.float64]]: ...
    def slopes(
        self,
        weights: NDArray[np.float64],
        alpha: float,
        worth: int | Sequence[float],
        threads: int = 0,
    ) -> tuple[NDArray[np.float64], _Slopes]: ...
    def gain(
        self,
        weights: NDArray[np.float64],
        alpha: float,
        corpus: bool = False,
        threads: int = 0,
    ) -> tuple[float, NDArray[np.float64]]: ...

def sweep(
    metric: Metric,
    sums: NDArray[np.float64],
    left: NDArray[np.float64],
    at: NDArray[np.float64],
    sentences: NDArray[np.uint32],
    differences: NDArray[np.float64],
    lower: float,
    upper: float,
) -> tuple[float, float, float]: ...
def worth(metric: Metric, stats: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]: ...

@final
class Blocks:
    @staticmethod
    def of(pools: Pools, table: Table, metric: Metric) -> Blocks: ...
    def __len__(self) -> int: ...
    @property
    def names(self) -> list[str]: ...

def margin_update(
    lists: Blocks,
    weights: NDArray[np.float64],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    normalise: bool,
    strength: float,
    tolerance: float,
    passes: int,
) -> tuple[NDArray[np.float64], float, float, int, float]: ...
def error_update(
    lists: Blocks,
    weights: NDArray[np.float64],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    normalise: bool,
    strength: float,
    sharpness: float,
    tolerance: float,
    passes: int,
) -> tuple[NDArray[np.float64], float, float, int, float]: ...

# Word alignment

HEURISTICS: list[str]

def parse_links(line: str, lengths: tuple[int, int] | None = None) -> list[tuple[int, int]]: ...
def symmetrise(
    forward: list[tuple[int, int]], backward: list[tuple[int, int]], heuristic: str
) -> list[tuple[int, int]]: ...
def fast_align(
    source: str | PathLike[str],
    target: str | PathLike[str],
    forward: str | PathLike[str],
    backward: str | PathLike[str],
    *,
    iterations: int,
    alpha: float,
    null: float,
    tension: float,
    max_words: int,
    threads: int = 0,
    progress: Callable[[str, int, int], object] | None = None,
) -> tuple[int, int, int, tuple[float, float]]: ...
def symmetrise_files(
    forward: str | PathLike[str],
    backward: str | PathLike[str],
    out: str | PathLike[str],
    heuristic: str,
    *,
    texts: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
    threads: int = 0,
) -> int: ...

# Rules

GLUE_RULES: str

@final
class AlignedCorpus:
    def __new__(
        cls,
        source: str | PathLike[str],
        target: str | PathLike[str],
        alignment: str | PathLike[str],
        *,
        max_words: int = 1000,
        skip_bad: bool = False,
    ) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def skipped(self) -> list[tuple[str, int, InputError]]: ...
    @property
    def words(self) -> tuple[int, int]: ...
    def write_lexicon(
        self, inverse: str | PathLike[str], direct: str | PathLike[str], *, threads: int = 0
    ) -> int: ...
    def write_frequent(
        self, path: str | PathLike[str], *, pairs: int, words: int, threads: int = 0
    ) -> tuple[int, int, int]: ...
    def phrase_table(
        self,
        path: str | PathLike[str],
        *,
        max_length: int,
        reordering: bool,
        hierarchical_reordering: bool,
        reordering_sides: bool,
        smoothing: str,
        exact_lexicon: bool,
        min_count: int,
        memory: int,
        threads: int,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> dict[str, int]: ...
    def hiero_table(
        self,
        path: str | PathLike[str],
        *,
        max_span: int,
        max_symbols: int,
        max_gaps: int,
        min_gap: int,
        adjacent_gaps: bool,
        tight: bool,
        min_count: int,
        min_gap_count: int,
        memory: int,
        threads: int,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> dict[str, int]: ...

@final
class RuleTable:
    def __new__(cls, path: str | PathLike[str], *, verify: bool = True) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    @property
    def sources(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def words(self) -> tuple[int, int]: ...
    def source_id(self, word: str) -> int | None: ...
    def target_id(self, word: str) -> int | None: ...
    def source_word(self, id: int) -> str | None: ...
    def target_word(self, id: int) -> str | None: ...
    @property
    def root(self) -> tuple[int, int]: ...
    def child(self, node: tuple[int, int], symbol: int) -> tuple[int, int] | None: ...
    def children(self, node: tuple[int, int]) -> list[tuple[int, tuple[int, int]]]: ...
    def entries(
        self, node: tuple[int, int]
    ) -> list[tuple[list[int], list[float], list[tuple[int, int]]]]: ...
    def lookup(
        self, source: Sequence[int]
    ) -> list[tuple[list[int], list[float], list[tuple[int, int]]]]: ...
    def export_moses(self, path: str | PathLike[str]) -> None: ...
    def export_reordering(self, path: str | PathLike[str], model: str) -> None: ...
    def export_cdec(self, path: str | PathLike[str]) -> None: ...

def import_moses_table(
    phrases: str | PathLike[str],
    out: str | PathLike[str],
    reordering: str | PathLike[str] | None = None,
) -> dict[str, int]: ...
def import_cdec_grammar(
    grammar: str | PathLike[str], out: str | PathLike[str]
) -> dict[str, int]: ...

# Sparse features

TEMPLATES: list[tuple[str, str, str]]
TEMPLATE_SETS: list[tuple[str, list[str], str]]

@final
class Templates:
    def __new__(
        cls,
        names: Sequence[str] = ...,
        own: Sequence[object] = ...,
        folder: str | PathLike[str] | None = None,
    ) -> Self: ...
    def find(
        self,
        source: Sequence[str],
        target: Sequence[str],
        links: Sequence[tuple[int, int]] = ...,
        scores: Sequence[float] = ...,
    ) -> dict[str, float]: ...

def make_classes(
    text: str | PathLike[str], out: str | PathLike[str], *, classes: int, rounds: int
) -> int: ...
def read_classes(path: str | PathLike[str]) -> dict[str, str]: ...

# Language models

@final
class LmState:
    @property
    def words(self) -> list[int]: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class LanguageModel:
    @staticmethod
    def load(path: str | PathLike[str]) -> LanguageModel: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @property
    def order(self) -> int: ...
    @property
    def counts(self) -> list[int]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def begin_id(self) -> int: ...
    @property
    def end_id(self) -> int: ...
    def id(self, word: str) -> int: ...
    def word(self, id: int) -> str: ...
    def ids(self, sentence: str) -> NDArray[np.uint32]: ...
    def begin_state(self) -> LmState: ...
    def empty_state(self) -> LmState: ...
    def score_word(self, state: LmState, word: int) -> tuple[float, LmState, int]: ...
    def score_words(
        self, state: LmState, words: NDArray[np.uint32]
    ) -> tuple[tuple[NDArray[np.float32], NDArray[np.uint8]], list[LmState]]: ...
    def score(self, sentence: str, bos: bool = True, eos: bool = True) -> float: ...
    def full_scores(
        self, sentence: str, bos: bool = True, eos: bool = True
    ) -> list[tuple[float, int, bool]]: ...
    def score_many(
        self, sentences: Sequence[str], bos: bool = True, eos: bool = True, threads: int = 0
    ) -> NDArray[np.float64]: ...
    def score_ids(
        self, ids: NDArray[np.uint32], ends: NDArray[np.int64], bos: bool = True
    ) -> tuple[NDArray[np.float32], NDArray[np.uint8]]: ...
    def measure_file(
        self, path: str | PathLike[str], threads: int = 0
    ) -> tuple[int, int, int, float, float]: ...
    def measure(self, sentences: Sequence[str]) -> tuple[int, int, int, float, float]: ...

@final
class LmEstimate:
    @property
    def orders(self) -> list[tuple[int, int, list[float], str | None]]: ...
    @property
    def sentences(self) -> int: ...
    @property
    def words(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    def write_arpa(self, path: str | PathLike[str]) -> None: ...
    def model(self) -> LanguageModel: ...

def estimate_lm(
    paths: Sequence[str | PathLike[str]],
    sentences: Sequence[str] | None,
    *,
    order: int,
    prune: Sequence[int],
    vocabulary: Sequence[str] | None,
    memory: int,
    folder: str | PathLike[str] | None,
    skip_symbols: bool,
    fallback: Sequence[float],
    threads: int,
    progress: Callable[[str, int, int], object] | None = None,
) -> LmEstimate: ...

# Decoders

@final
class Decoder:
    @staticmethod
    def phrase(
        table: str | PathLike[str],
        lm: str | PathLike[str],
        moses: tuple[str, str, int, str | None] | None = None,
        templates: Sequence[str] = ...,
        folder: str | PathLike[str] | None = None,
        verify: bool = True,
        own: Sequence[object] = ...,
    ) -> Decoder: ...
    @staticmethod
    def hiero(
        table: str | PathLike[str],
        lm: str | PathLike[str],
        cdec: bool = False,
        templates: Sequence[str] = ...,
        folder: str | PathLike[str] | None = None,
        verify: bool = True,
        own: Sequence[object] = ...,
    ) -> Decoder: ...
    @property
    def dense(self) -> list[str]: ...
    @property
    def settings(self) -> list[tuple[str, str]]: ...
    def translator(
        self, weights: Sequence[tuple[str, float]], settings: Sequence[tuple[str, float]]
    ) -> Translator: ...

@final
class Translator:
    def translate(
        self,
        lines: Sequence[str],
        threads: int = 0,
        details: int = 0,
        markup: str = "none",
        unique: bool = False,
        changes: Sequence[Sequence[tuple[str, float]]] | None = None,
    ) -> list[Translation]: ...
    def nbest(
        self,
        lines: Sequence[str],
        k: int,
        unique: bool = True,
        threads: int = 0,
        links: bool = False,
        markup: str = "none",
        changes: Sequence[Sequence[tuple[str, float]]] | None = None,
    ) -> Pools: ...
    def force(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        k: int = 1,
        threads: int = 0,
        markup: str = "none",
    ) -> tuple[Pools, list[int], list[bool]]: ...
    def reach(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        threads: int = 0,
        markup: str = "none",
    ) -> list[Contest]: ...
    def violations(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        update: str = "max-violation",
        k: int = 1,
        future: bool = False,
        least: int | None = None,
        threads: int = 0,
        markup: str = "none",
    ) -> tuple[Pools, list[Contest]]: ...
    def bins(
        self,
        lines: Sequence[str],
        k: int,
        ways: int = 1,
        future: bool = False,
        threads: int = 0,
        markup: str = "none",
        references: Sequence[str] | None = None,
    ) -> Pools: ...
    def forests(self, lines: Sequence[str], threads: int = 0, markup: str = "none") -> Forests: ...

@final
class Contest:
    @property
    def words(self) -> int: ...
    @property
    def whole(self) -> bool: ...
    @property
    def states(self) -> int: ...
    @property
    def derivations(self) -> float: ...
    @property
    def given_up(self) -> str | None: ...
    @property
    def rungs(self) -> list[tuple[int, float, float, bool, bool]]: ...
    @property
    def step(self) -> int | None: ...

@final
class Translation:
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float | None: ...
    @property
    def pieces(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def derivations(self) -> list[Derivation]: ...

@final
class Derivation:
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def features(self) -> list[tuple[str, float]]: ...
    @property
    def links(self) -> list[tuple[int, int]]: ...
    @property
    def steps(self) -> list[Step]: ...

@final
class Step:
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> list[int | None]: ...
    @property
    def target(self) -> list[str]: ...
    @property
    def links(self) -> list[tuple[int, int]]: ...
    @property
    def origin(self) -> str: ...

# Examples of local training

@final
class Near:
    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> tuple[int, float, str, list[str]]: ...
    @property
    def ids(self) -> list[int]: ...

@final
class Examples:
    def __new__(cls) -> Self: ...
    def __len__(self) -> int: ...
    @staticmethod
    def write(
        path: str | PathLike[str],
        ids: Sequence[int],
        sources: Sequence[str],
        references: Sequence[Sequence[str]],
        pools: Pools,
        table: Table,
        metric: Metric,
    ) -> tuple[int, int, int]: ...
    def add(self, path: str | PathLike[str], checksum: int, removed: Sequence[int]) -> None: ...
    def files(self, ids: Sequence[int]) -> list[str | None]: ...
    def remove(self, ids: Sequence[int]) -> int: ...
    def merge(
        self, files: Sequence[str | PathLike[str]], path: str | PathLike[str]
    ) -> tuple[int, int, int]: ...
    def replace(self, files: Sequence[str | PathLike[str]], path: str | PathLike[str]) -> None: ...
    @property
    def ids(self) -> NDArray[np.uint64]: ...
    @property
    def sizes(self) -> list[tuple[str, int, int, int, int]]: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    def terms(self, sentence: str) -> list[tuple[str, float, float]]: ...
    def near(
        self,
        sentence: str,
        k: int,
        candidates: Sequence[int] | None = None,
        leave_out: bool = False,
    ) -> Near: ...
    def lists(
        self, ids: Sequence[int], texts: bool = False
    ) -> tuple[Pools, Table | None, list[str], list[list[str]]]: ...
    def blocks(self, ids: Sequence[int]) -> Blocks: ...
    def sources(self, ids: Sequence[int]) -> list[str]: ...

# Structured learning

TAGGER_TEMPLATES: list[str]

@final
class StructuredTask:
    @staticmethod
    def tagger(tags: list[str], templates: list[str]) -> StructuredTask: ...
    @staticmethod
    def parser(transitions: list[str]) -> StructuredTask: ...
    @staticmethod
    def python(task: Any) -> StructuredTask: ...
    def learner(
        self,
        examples: list[Any],
        *,
        beam: int | None,
        update: str,
        method: str,
        c: float,
        k: int,
        batch: int,
        voters: int,
        seed: int,
    ) -> StructuredLearner: ...
    def predict(
        self,
        weights: StructuredWeights,
        inputs: list[Any],
        beam: int | None,
        threads: int = 0,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> list[Any]: ...

@final
class StructuredLearner:
    def run_pass(
        self,
        epoch: int,
        shards: int = 0,
        threads: int = 0,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> tuple[int, int, int, int, float]: ...
    def weights(self) -> StructuredWeights: ...
    @property
    def skipped(self) -> tuple[int, int]: ...
    @property
    def derivations(self) -> list[float]: ...

@final
class StructuredWeights:
    @staticmethod
    def load(
        letters: NDArray[np.uint8],
        ends: NDArray[np.uint64],
        contexts: NDArray[np.uint32],
        actions: NDArray[np.uint32],
        weights: NDArray[np.float64],
        votes: NDArray[np.float64],
    ) -> StructuredWeights: ...
    def arrays(
        self,
    ) -> tuple[
        NDArray[np.uint8],
        NDArray[np.uint64],
        NDArray[np.uint32],
        NDArray[np.uint32],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def __len__(self) -> int: ...
