"""N-best lists read and written in any format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    End,
    Format,
    Hypothesis,
    Item,
    Lists,
    Numbers,
    Options,
    Path,
    Report,
    Skipped,
    TextFile,
    find,
    names,
    shown,
)
from tunesmith.formats.detect import detect

MISSING = 1_000_000
"""Ids may skip at most this many sentences in all; a larger gap means a damaged id."""

NATIVE = ("moses", "cdec", "travatar")


class Nbest(NamedTuple):
    """Lists, and the lines that were skipped."""

    pools: Pools
    skipped: list[Skipped]


@dataclass(slots=True)
class Along:
    """Sources and references that came with the lists; `None` if there are none."""

    sources: Sequence[str | None] | None = None
    references: Sequence[Sequence[str] | None] | None = None


Columns = Sequence[str] | Mapping[str, Path | None]


@dataclass(frozen=True)
class Reading:
    """Options for reading n-best files.

    `format` is detected if not given. `skip_bad` skips and counts bad hypotheses,
    `keep_blank` keeps hypotheses without text. `columns` names scores to tune for, which are
    then not features; a path names a file with one number per hypothesis, in the list's order.
    `features` adds features from such files. `per_sentence` is the number of hypotheses per
    sentence for formats that need it. `keyed` reads the ids of a Moses, cdec or Travatar list as
    keys, `first_id` is the id of the first sentence. `sentences` is the number of sentences:
    lists missing at the end are then empty.
    """

    format: str | None = None
    skip_bad: bool = False
    keep_blank: bool = False
    columns: Mapping[str, Path | None] = field(default_factory=dict)
    features: Mapping[str, Path] = field(default_factory=dict)
    per_sentence: int | None = None
    keyed: bool = False
    first_id: int = 0
    sentences: int | None = None

    def read(self, path: Path, along: Along | None = None) -> Nbest:
        """Return the lists of a file and the skipped lines; fill `along` with the lists' texts.

        Raise an `InputError` with file, line and remedy if the file is bad.
        """
        name = self.format_of(path)
        if name in NATIVE:
            reader = self._native(path, name)
            pools = reader.read()
            assert pools is not None, "a reader refuses an empty list"
            return Nbest(pools, [Skipped(*skip) for skip in reader.skipped])
        file, builder = self._builder(path)
        builder.fill(self._items(name, file))
        pools = builder.finish()
        if along is not None:
            places = pools.keys or range(pools.sentences)
            texts = [builder.begun.get(at, Empty(at)) for at in places]
            along.sources = [item.source for item in texts]
            along.references = [item.references for item in texts]
        return Nbest(pools, list(file.report.skipped.values()))

    def stream(
        self, path: Path, limit: int, skipped: list[Skipped] | None = None
    ) -> Iterator[Pools]:
        """Yield at most `limit` lists at a time, as soon as they are complete.

        The lists need not fit into memory. Skipped lines are added to `skipped` at the end.

        A Moses, cdec or Travatar list is complete when the next id comes or the file ends. Formats
        that mark the end of a list complete it at once. Other formats come in one part, and so do
        the latter with `skip_bad` or `sentences`, which need the whole file.
        """
        name = self.format_of(path)
        found: list[Skipped] = []
        if name in NATIVE:
            reader = self._native(path, name)
            while (part := reader.read(limit)) is not None:
                yield part
            found = [Skipped(*skip) for skip in reader.skipped]
        elif find(name).ends and not self.skip_bad and self.sentences is None:
            file, builder = self._builder(path)
            yield from builder.parts(self._items(name, file), limit)
            found = list(file.report.skipped.values())
        else:
            whole = self.read(path)
            yield whole.pools
            found = whole.skipped
        if skipped is not None:
            skipped.extend(found)

    def format_of(self, path: Path) -> str:
        """Return the name of a file's format; raise if it cannot be detected."""
        return self.format or detect(path)

    def _native(self, path: Path, name: str) -> _core.NbestReader:
        return _core.NbestReader(
            fspath(path),
            name,
            skip_bad=self.skip_bad,
            keep_blank=self.keep_blank,
            keyed=self.keyed,
            first_id=self.first_id,
            sentences=self.sentences,
            columns=[column for column, file in self.columns.items() if file is None],
            column_files=[
                (column, fspath(file)) for column, file in self.columns.items() if file is not None
            ],
            feature_files=[(feature, fspath(file)) for feature, file in self.features.items()],
        )

    def _builder(self, path: Path) -> tuple[TextFile, _Builder]:
        options = Options(self.per_sentence, self.keep_blank, self.features)
        file = TextFile(path, Report(self.skip_bad), options)
        return file, _Builder(file, list(self.columns), self.sentences)

    def _items(self, name: str, file: TextFile) -> Iterator[Item]:
        files = {column: path for column, path in self.columns.items() if path is not None}
        return _items(find(name), file, files)


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
    """Return the lists of a file and the skipped lines; `Reading` explains the options.

    `along` receives the sources and references in the list, which JSONL may have.
    """
    wanted = dict.fromkeys(columns) if not isinstance(columns, Mapping) else dict(columns)
    reading = Reading(
        format,
        skip_bad,
        keep_blank,
        wanted,
        features or {},
        per_sentence,
        keyed,
        first_id,
        sentences,
    )
    return reading.read(path, along)


def read_stream(
    path: Path, format: str | None = None, *, limit: int, skip_bad: bool = False
) -> Iterator[Pools]:
    """Yield `limit` lists at a time, which need not fit into memory (`Reading.stream`).

    Raise for a format that must be read whole.
    """
    reading = Reading(format, skip_bad)
    name = reading.format_of(path)
    if name not in NATIVE and not find(name).ends:
        streamed = ", ".join(each for each in names() if each in NATIVE or find(each).ends)
        raise InputError(
            f"lists in format {name} can only be read whole",
            fspath(path),
            remedy=f"use one of {streamed}",
        )
    yield from reading.stream(path, limit)


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
    """Write lists atomically.

    `order` gives the positions of the hypotheses in a new order, sentence by sentence;
    `scores` are more named scores, one per hypothesis. `sources` and `references` are written
    if the format can hold them. Raise if the format cannot hold the features, unless `lossy`.
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
        raise InputError(f"format {format} can be read, not written", target, remedy=AS_JSONL)
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
    """A context that writes a Moses or cdec list in parts; an error inside leaves no file."""

    def __init__(self, path: Path, format: str = "moses") -> None:
        self.format = format
        self.sentences = 0
        self._out = _core.AtomicWriter(path)

    def add(self, pools: Pools) -> None:
        """Write the lists of the next sentences."""
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
        lost.append("text after the scores")
    if lost:
        first = ", ".join(lost[:3]) + (" and more" if len(lost) > 3 else "")
        raise InputError(
            f"format {format.name} has no place for {first}",
            path,
            remedy=f"{AS_JSONL}; in Python lossy=True allows the loss",
        )


def _items(format: Format, file: TextFile, column_files: Mapping[str, Path]) -> Iterator[Item]:
    """Yield the items that a format reads, with numbers from column and feature files added."""
    if format.read is None:
        raise InputError(f"format {format.name} can be written, not read", file.path)
    columns = [Numbers(name, file.open(path)) for name, path in column_files.items()]
    feature_files = {} if format.keyed_files else file.options.feature_files
    features = [Numbers(name, file.open(path)) for name, path in feature_files.items()]
    for item in format.read(file):
        if isinstance(item, Empty | End):
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
            file.bad(
                TWICE,
                f"the list already has feature {twice}",
                "choose another name for the file's feature",
            )
            continue
        item.features |= {name: value for name, value in values.items() if value is not None}
        item.columns |= {name: cell for name, cell in cells.items() if cell is not None}
        yield item
    for numbers in [*columns, *features]:
        numbers.finish()


class _Builder:
    """Builds pools from hypotheses in the order of a file."""

    def __init__(self, file: TextFile, columns: list[str], sentences: int | None) -> None:
        self.file = file
        self.columns = columns
        self.sentences = sentences
        self.builder = _core.PoolsBuilder(columns)
        self.places: dict[int | str, int] = {}
        self.kinds: set[type] = set()
        self.current: int | str | None = None
        self.begun: dict[int | str, Empty] = {}
        self.repeated: int | str | None = None

    def fill(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Empty):
                self.begin(item)
            elif isinstance(item, Hypothesis):
                self.add(item)

    def parts(self, items: Iterable[Item], limit: int) -> Iterator[Pools]:
        """Yield lists, `limit` at a time, as they end."""
        filled = False
        for item in items:
            self.fill([item])
            if isinstance(item, End) and self.builder.sentences >= limit:
                filled |= self.builder.hypotheses > 0
                yield self.take()
        if self.builder.sentences or not filled:
            if not filled:
                self.refuse_empty()
            yield self.take()

    def take(self) -> Pools:
        """Return the lists so far and begin new ones."""
        self.refuse_mixed()
        pools = self.builder.finish()
        self.builder = _core.PoolsBuilder(self.columns)
        self.begun.clear()
        return pools

    def begin(self, item: Empty) -> None:
        """Open a new list; report a repeated key, because the two lists would be merged."""
        self.repeated = None
        if item.sentence in self.places:
            self.repeated = item.sentence
            message = f"the key {shown(str(item.sentence))} is given twice"
            self.file.bad(ORDER, message, "give every list a key of its own")
        elif self.enter(item.sentence):
            self.begun[item.sentence] = item

    def enter(self, sentence: int | str) -> bool:
        """Open a list unless it is open; return False after reporting that it cannot be."""
        if sentence == self.current:
            return True
        if sentence in self.places:
            message = f"the list of sentence {sentence} was already left"
            self.file.bad(ORDER, message, "bring the lines of a sentence together")
            return False
        if isinstance(sentence, int):
            limit = len(self.places) + MISSING if self.sentences is None else self.sentences
            if not 0 <= sentence < limit:
                message = f"sentence {sentence} is past the last of {limit}"
                self.file.bad(ORDER, message, "check the ids")
                return False
        try:
            self.builder.sentence(sentence if isinstance(sentence, str) else None)
        except UnicodeEncodeError:
            self.file.bad(*_surrogate())
            return False
        self.places[sentence] = len(self.places)
        self.kinds.add(type(sentence))
        self.current = sentence
        return True

    def add(self, item: Hypothesis) -> None:
        if item.sentence == self.repeated:
            # Its list was reported.
            return
        if not item.text.strip() and not self.file.options.keep_blank:
            # The sentence exists even if the hypothesis is skipped.
            if not self.enter(item.sentence):
                return
            message = "the hypothesis has no text"
            self.file.bad(BLANK, message, "take it out, or use --skip-bad or --keep-blank")
            return
        columns = item.columns | {
            name: item.features.pop(name) for name in self.columns if name in item.features
        }
        for value in [*item.features.values(), *columns.values()]:
            if not math.isfinite(value):
                message = f"{value} is not a finite number"
                self.file.bad(INFINITE, message, "give every hypothesis a finite value")
                return
        if not self.enter(item.sentence):
            return
        names, values = list(item.features), list(item.features.values())
        try:
            self.builder.push(item.text, names, values, item.score, item.extra, columns)
        except UnicodeEncodeError:
            self.file.bad(*_surrogate())
        except InputError as error:
            self.file.bad(INFINITE, error.message, error.remedy or "")

    def refuse_empty(self) -> None:
        """Raise if the file has no hypotheses."""
        file, skipped = self.file, self.file.report.skipped
        if self.builder.hypotheses == 0:
            bad = [skip for reason, skip in skipped.items() if reason != BLANK_LINE]
            first = f", first skipped line: {bad[0].first}" if bad else ""
            raise InputError(
                f"no hypotheses{first}", file.path, remedy="check the file and its format"
            )

    def refuse_mixed(self) -> None:
        """Raise if some lists have a key and some have none."""
        if len(self.kinds) > 1:
            raise InputError(
                "some sentences have a key and some have none",
                self.file.path,
                remedy="give all a key, or none",
            )

    def finish(self) -> Pools:
        self.refuse_empty()
        self.refuse_mixed()
        numbers = [place for place in self.places if isinstance(place, int)]
        if not numbers:
            return self.builder.finish()
        total = max(max(numbers) + 1, self.sentences or 0)
        if numbers == list(range(total)):
            return self.builder.finish()
        # One empty list at the end stands for every missing one.
        self.builder.sentence(None)
        empty = len(self.places)
        return self.builder.finish().subset([self.places.get(at, empty) for at in range(total)])


def _surrogate() -> tuple[str, str, str]:
    return "invalid UTF-8", "a text contains a lone surrogate", "write whole characters"
