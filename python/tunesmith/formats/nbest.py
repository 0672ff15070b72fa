"""Reading and writing of n-best lists in any format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tunesmith import _core
from tunesmith._core import Pools
from tunesmith.errors import InputError
from tunesmith.formats.base import (
    AS_JSONL,
    BLANK,
    BLANK_LINE,
    INFINITE,
    ORDER,
    TWICE,
    Empty,
    Format,
    Hypothesis,
    Lists,
    Options,
    Path,
    Report,
    Skipped,
    Source,
    find,
    shown,
)
from tunesmith.formats.detect import detect

MISSING = 1_000_000
"""Ids may leave out so many sentences in all; a larger gap is a damaged id."""

NATIVE = ("moses", "cdec")


class Nbest(NamedTuple):
    """Lists, and what was left out of them."""

    pools: Pools
    skipped: list[Skipped]


@dataclass(slots=True)
class Along:
    """Texts that came with the lists, by sentence; ``None`` where there are none."""

    sources: Sequence[str | None] | None = None
    references: Sequence[Sequence[str] | None] | None = None


Columns = Sequence[str] | Mapping[str, Path | None]


def read_nbest(
    path: Path,
    format: str | None = None,
    *,
    skip_bad: bool = False,
    keep_blank: bool = False,
    columns: Columns = (),
    features: Mapping[str, Path] | None = None,
    per_sentence: int | None = None,
    sentences: int | None = None,
    keyed: bool = False,
    first_id: int = 0,
    along: Along | None = None,
) -> Nbest:
    """The lists of a file, and what was left out.

    ``format`` is found out where it is not given. ``columns`` names features that are scores to
    be tuned for, not features; a path for one says that a file has it, one number per hypothesis
    in the order of the list. ``features`` adds features from such files. ``per_sentence`` is the
    number of hypotheses per sentence for formats that do not say. ``sentences`` is the number of
    sentences: lists missing at the end are then empty. ``keyed`` reads the ids of a Moses or cdec
    list as labels, ``first_id`` is the number of the first sentence there. ``along`` is filled
    with the sources and references that a list has in it, as JSONL may.

    Refuses, with file, line and remedy, whatever is wrong with the file; with ``skip_bad`` bad
    hypotheses are left out and counted, and hypotheses without text too unless ``keep_blank``.
    """
    name = detect(path) if format is None else format
    wanted = dict.fromkeys(columns) if not isinstance(columns, Mapping) else dict(columns)
    files = {column: file for column, file in wanted.items() if file is not None}
    if name in NATIVE:
        reader = _core.NbestReader(
            fspath(path),
            name,
            skip_bad=skip_bad,
            keep_blank=keep_blank,
            keyed=keyed,
            first_id=first_id,
            sentences=sentences,
            columns=[column for column, file in wanted.items() if file is None],
            column_files=[(column, fspath(file)) for column, file in files.items()],
            feature_files=[(feature, fspath(file)) for feature, file in (features or {}).items()],
        )
        pools = reader.read()
        assert pools is not None, "a reader refuses an empty list"
        return Nbest(pools, [Skipped(*skip) for skip in reader.skipped])
    chosen = find(name)
    report = Report(skip_bad)
    source = Source(path, report, Options(per_sentence, keep_blank, features or {}))
    builder = _Builder(source, list(wanted), sentences)
    builder.fill(_items(chosen, source, files))
    pools = builder.finish()
    if along is not None:
        texts = [builder.begun.get(at, Empty(at)) for at in pools.keys or range(pools.sentences)]
        along.sources = [item.source for item in texts]
        along.references = [item.references for item in texts]
    return Nbest(pools, list(report.skipped.values()))


def read_stream(
    path: Path, format: str | None = None, *, limit: int, skip_bad: bool = False
) -> Iterator[Pools]:
    """A Moses or cdec list that need not fit into memory, ``limit`` sentences at a time."""
    name = detect(path) if format is None else format
    if name not in NATIVE:
        raise InputError(
            f"lists in format {name} are only read whole", fspath(path), remedy="use moses or cdec"
        )
    reader = _core.NbestReader(fspath(path), name, skip_bad=skip_bad)
    while (part := reader.read(limit)) is not None:
        yield part


def write_nbest(
    pools: Pools,
    path: Path,
    format: str,
    *,
    order: NDArray[np.int64] | None = None,
    scores: Mapping[str, NDArray[np.float64]] | None = None,
    sources: Sequence[str | None] | None = None,
    references: Sequence[Sequence[str] | None] | None = None,
    keyed: bool = False,
    first_id: int = 0,
    lossy: bool = False,
) -> None:
    """Writes lists, whole or not at all.

    ``order`` gives the positions of the hypotheses in a new order, sentence by sentence;
    ``scores`` are more named scores, one per hypothesis. ``sources`` and ``references`` go along
    where the format has a place for them. Refuses what the format cannot hold, unless ``lossy``.
    """
    target = fspath(path)
    more = dict(scores or {})
    if format in NATIVE:
        _core.write_nbest(
            pools,
            target,
            format,
            order=None if order is None else np.asarray(order).tolist(),
            scores=[(name, np.asarray(values).tolist()) for name, values in more.items()],
            keyed=keyed,
            first_id=first_id,
        )
        return
    chosen = find(format)
    if chosen.write is None:
        raise InputError(f"format {format} is only read", target, remedy=AS_JSONL)
    for name, values in more.items():
        if len(values) != pools.hypotheses:
            raise InputError(
                f"{len(values)} scores {name} for {pools.hypotheses} hypotheses",
                target,
                remedy="give one per hypothesis",
            )
    lists = Lists(pools, order, more, sources, references, first_id)
    if not lossy:
        _refuse_loss(chosen, lists, target)
    chosen.write(lists, target)


class NbestWriter:
    """A Moses or cdec list that comes in parts; on leaving its block it is there whole, or not."""

    def __init__(self, path: Path, format: str = "moses") -> None:
        self.format = format
        self.sentences = 0
        self._out = _core.AtomicWriter(path)

    def add(self, pools: Pools) -> None:
        """Writes the lists of the next sentences."""
        with TemporaryDirectory() as folder:
            part = FilePath(folder, "part")
            _core.write_nbest(pools, part, self.format, first_id=self.sentences)
            self._out.write(part.read_bytes().decode())
        self.sentences += pools.sentences

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._out.__exit__(kind, error, trace)


def _refuse_loss(format: Format, lists: Lists, path: str) -> None:
    pools = lists.pools
    lost = []
    if format.features is not None:
        lost += [f"feature {name}" for name in lists.names() if name not in format.features]
    if not format.columns:
        lost += [f"column {name}" for name in pools.columns]
    if not format.extra and any(pools.extra(at) for at in range(pools.hypotheses)):
        lost.append("what stands behind the scores")
    if lost:
        first = ", ".join(lost[:3]) + (" and more" if len(lost) > 3 else "")
        raise InputError(
            f"format {format.name} has no place for {first}",
            path,
            remedy=f"{AS_JSONL}; in Python lossy=True allows the loss",
        )


class _Numbers:
    """A file with one number per hypothesis."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.source = source
        self.lines = source.lines()
        self.count = 0

    def next(self) -> float | None:
        try:
            line = next(self.lines)
        except StopIteration:
            self.source.line = self.count + 1
            raise self.source.error(
                f"the file ends after {self.count} lines, the list does not",
                "give one number per hypothesis",
            ) from None
        self.count += 1
        return None if line is None else self.source.number(line.strip(), f"value of {self.name}")

    def finish(self) -> None:
        for line in self.lines:
            if line is None or line.strip():
                raise self.source.error(
                    f"the file goes on after {self.count} lines, where the list ends",
                    "give one number per hypothesis",
                )


def _items(
    format: Format, source: Source, column_files: Mapping[str, Path]
) -> Iterator[Hypothesis | Empty | None]:
    """What a format reads, with the numbers of the files that go along."""
    if format.read is None:
        raise InputError(f"format {format.name} is only written", source.path)
    columns = [_Numbers(name, source.open(file)) for name, file in column_files.items()]
    feature_files = {} if format.keyed_files else source.options.feature_files
    features = [_Numbers(name, source.open(file)) for name, file in feature_files.items()]
    for item in format.read(source):
        if isinstance(item, Empty):
            yield item
            continue
        cells = {numbers.name: numbers.next() for numbers in columns}
        values = {numbers.name: numbers.next() for numbers in features}
        if item is None:
            continue
        if None in values.values() or None in cells.values():
            continue
        twice = next((name for name in values if name in item.features), None)
        if twice is not None:
            source.bad(TWICE, f"the list already has feature {twice}", "name the file otherwise")
            continue
        item.features |= {name: value for name, value in values.items() if value is not None}
        item.columns |= {name: cell for name, cell in cells.items() if cell is not None}
        yield item
    for numbers in [*columns, *features]:
        numbers.finish()


class _Builder:
    """Pools from hypotheses in the order of a file."""

    def __init__(self, source: Source, columns: list[str], sentences: int | None) -> None:
        self.source = source
        self.columns = columns
        self.sentences = sentences
        self.builder = _core.PoolsBuilder(columns)
        self.places: dict[int | str, int] = {}
        self.current: int | str | None = None
        self.begun: dict[int | str, Empty] = {}
        self.repeated: int | str | None = None

    def fill(self, items: Iterable[Hypothesis | Empty | None]) -> None:
        for item in items:
            if isinstance(item, Empty):
                self.begin(item)
            elif item is not None:
                self.add(item)

    def begin(self, item: Empty) -> None:
        """Opens a new list; reports one whose key was there before, or the two would be merged."""
        self.repeated = None
        if item.sentence in self.places:
            self.repeated = item.sentence
            message = f"the key {shown(str(item.sentence))} is given twice"
            self.source.bad(ORDER, message, "give every list a key of its own")
        elif self.enter(item.sentence):
            self.begun[item.sentence] = item

    def enter(self, sentence: int | str) -> bool:
        """Opens a list unless it is open; false, and reported, where that cannot be."""
        if sentence == self.current:
            return True
        if sentence in self.places:
            message = f"the list of sentence {sentence} was already left"
            self.source.bad(ORDER, message, "bring the lines of a sentence together")
            return False
        if isinstance(sentence, int):
            limit = len(self.places) + MISSING if self.sentences is None else self.sentences
            if not 0 <= sentence < limit:
                message = f"sentence {sentence} is past the last of {limit}"
                self.source.bad(ORDER, message, "check the ids")
                return False
        try:
            self.builder.sentence(sentence if isinstance(sentence, str) else None)
        except UnicodeEncodeError:
            self.source.bad(*_surrogate())
            return False
        self.places[sentence] = len(self.places)
        self.current = sentence
        return True

    def add(self, item: Hypothesis) -> None:
        if item.sentence == self.repeated:
            # Reported with its list.
            return
        if not item.text.strip() and not self.source.options.keep_blank:
            # The sentence is known even if the hypothesis is not wanted.
            if not self.enter(item.sentence):
                return
            message = "the hypothesis has no text"
            self.source.bad(BLANK, message, "take it out, or use --skip-bad or --keep-blank")
            return
        columns = item.columns | {
            name: item.features.pop(name) for name in self.columns if name in item.features
        }
        for value in [*item.features.values(), *columns.values()]:
            if not math.isfinite(value):
                message = f"{value} is not a finite number"
                self.source.bad(INFINITE, message, "give every hypothesis a finite value")
                return
        if not self.enter(item.sentence):
            return
        names, values = list(item.features), list(item.features.values())
        try:
            self.builder.push(item.text, names, values, item.score, item.extra, columns)
        except UnicodeEncodeError:
            self.source.bad(*_surrogate())
        except InputError as error:
            self.source.bad(INFINITE, error.message, error.remedy or "")

    def finish(self) -> Pools:
        source, skipped = self.source, self.source.report.skipped
        if self.builder.hypotheses == 0:
            told = [skip for reason, skip in skipped.items() if reason != BLANK_LINE]
            first = f", first left out: {told[0].first}" if told else ""
            raise InputError(
                f"no hypotheses{first}", source.path, remedy="check the file and its format"
            )
        numbers = [place for place in self.places if isinstance(place, int)]
        if not numbers:
            return self.builder.finish()
        if len(numbers) < len(self.places):
            raise InputError(
                "some sentences have a key and some have none",
                source.path,
                remedy="give all a key, or none",
            )
        total = max(max(numbers) + 1, self.sentences or 0)
        if numbers == list(range(total)):
            return self.builder.finish()
        # One empty list at the end stands for every missing one.
        self.builder.sentence(None)
        empty = len(self.places)
        return self.builder.finish().subset([self.places.get(at, empty) for at in range(total)])


def _surrogate() -> tuple[str, str, str]:
    return "invalid UTF-8", "a text holds half a character", "write whole characters"
