"""What a format is: a function from lines to hypotheses, and perhaps one for the way back."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith._core import Lines, Pools
from tunesmith.errors import InputError

Path = str | PathLike[str]

# The reasons under which bad input is counted; the same words as in the core.
FIELDS = "missing fields"
NUMBER = "text where a number should be"
INFINITE = "NaN or infinity"
TWICE = "a feature twice"
BLANK = "blank hypothesis"
BLANK_LINE = "blank line"
UTF8 = "invalid UTF-8"
ORDER = "ids out of order"

AS_JSONL = "use --out-format jsonl"
"""The way out for what another format cannot hold."""


@dataclass(slots=True)
class Hypothesis:
    """One hypothesis; ``sentence`` is its number from zero, or its key."""

    sentence: int | str
    text: str
    features: dict[str, float] = field(default_factory=dict)
    score: float | None = None
    extra: str = ""
    columns: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Empty:
    """A sentence whose list may stay empty, and the texts that go along."""

    sentence: int | str
    source: str | None = None
    references: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The list that was begun is complete: nothing need be read to know that."""


Item = Hypothesis | Empty | End | None
"""What a format's ``read`` yields; ``None`` stands for a hypothesis that was reported as bad."""


@dataclass(slots=True)
class Skipped:
    """Lines left out for one reason, with the first of them."""

    reason: str
    count: int
    first: InputError

    def __str__(self) -> str:
        return f"{self.reason}: {self.count}, first {self.first}"


@dataclass(slots=True)
class Report:
    """Stops at the first bad line, or counts what is left out."""

    skip_bad: bool = False
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def bad(self, reason: str, error: InputError) -> None:
        if not self.skip_bad:
            raise error
        self.note(reason, error)

    def note(self, reason: str, error: InputError) -> None:
        """Counts what is left out in any case."""
        if reason in self.skipped:
            self.skipped[reason].count += 1
        else:
            self.skipped[reason] = Skipped(reason, 1, error)


@dataclass(frozen=True, slots=True)
class Options:
    """What a reader may want to know beyond the path."""

    per_sentence: int | None = None
    keep_blank: bool = False
    feature_files: Mapping[str, Path] = field(default_factory=dict)


class Source:
    """The lines of a file for a format's ``read``, and the place to report bad ones."""

    def __init__(self, path: Path, report: Report, options: Options) -> None:
        self.path = fspath(path)
        self.report = report
        self.options = options
        self.line: int | None = None

    def __iter__(self) -> Iterator[str]:
        """Every line that is text; one that is not UTF-8 is reported and left out."""
        return (line for line in self.lines() if line is not None)

    def lines(self) -> Iterator[str | None]:
        """Every line; ``None`` in place of one that is not UTF-8."""
        lines = Lines(self.path)
        while True:
            try:
                text = next(lines)
            except StopIteration:
                return
            except InputError as error:
                self.line = error.line
                # Only such a line can be stepped over; a damaged archive ends the file.
                if not error.message.startswith(UTF8):
                    raise
                self.report.bad(UTF8, error)
                yield None
                continue
            self.line = lines.line
            yield text

    def open(self, path: Path) -> Source:
        """Another file of the same list."""
        return Source(path, self.report, self.options)

    def error(self, message: str, remedy: str) -> InputError:
        """An error at the current line."""
        return InputError(message, self.path, self.line, remedy)

    def bad(self, reason: str, message: str, remedy: str) -> None:
        """Reports the current line as bad: raises, or counts it and returns."""
        self.report.bad(reason, self.error(message, remedy))

    def number(self, text: str, what: str) -> float | None:
        """A finite number, or ``None`` after reporting why it is none."""
        value = parse_number(text)
        if value is None:
            self.bad(NUMBER, f"the {what} {shown(text)} is not a number", "write a number")
            return None
        if not math.isfinite(value):
            message = f"the {what} {shown(text)} is not a finite number"
            self.bad(INFINITE, message, "write a finite number")
            return None
        return value


def parse_number(text: str) -> float | None:
    """What a decimal number says; ``None`` for text. Underscores and foreign digits are text."""
    if not text.isascii() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_stream(path: Path) -> bool:
    """Whether a path can be read only once: the standard input or a pipe."""
    if fspath(path) == "-":
        return True
    try:
        mode = FilePath(path).stat().st_mode
    except (OSError, ValueError):
        # Whoever opens it says what is wrong.
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def unpacked(name: str) -> str:
    """A file's name without the ending that says how it is packed."""
    return re.sub(r"\.(gz|zst)$", "", name)


def keyed_line(line: str) -> tuple[str, str]:
    """Key and text of a ``key text`` line, whatever white space divides them."""
    key, *text = line.strip().split(None, 1)[:2] or [""]
    return key, text[0] if text else ""


def shown(text: str) -> str:
    """A token as an error shows it: quoted and short."""
    return '"' + (text if len(text) <= 40 else text[:40] + "…") + '"'


@dataclass(slots=True)
class Sentence:
    """One list on its way into a file."""

    index: int
    key: str
    hypotheses: list[Hypothesis]
    source: str | None = None
    references: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Lists:
    """Pools on their way into a file: a new order, more named scores, texts that go along."""

    pools: Pools
    order: NDArray[np.int64] | None = None
    scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    sources: Sequence[str | None] | None = None
    references: Sequence[Sequence[str] | None] | None = None
    first_id: int = 0

    def names(self) -> list[str]:
        """Every feature that may occur, the new scores among them."""
        return [*self.pools.names, *self.scores]

    def sizes(self) -> set[int]:
        """How many hypotheses the lists have."""
        starts = self.pools.starts
        ranks = np.arange(self.pools.hypotheses) if self.order is None else np.asarray(self.order)
        home = np.searchsorted(starts, ranks, side="right") - 1
        return set(np.bincount(home, minlength=self.pools.sentences).tolist())

    def __iter__(self) -> Iterator[Sentence]:
        pools = self.pools
        starts, scores, keys = pools.starts, pools.scores, pools.keys
        columns = {name: pools.column(name) for name in pools.columns}
        ranks = np.arange(pools.hypotheses) if self.order is None else np.asarray(self.order)
        home = np.searchsorted(starts, ranks, side="right") - 1
        if np.any(np.diff(home) < 0) or len(np.unique(ranks)) < len(ranks):
            raise InputError(
                "the new order has a hypothesis out of place",
                remedy="give each hypothesis once, sentence by sentence",
            )
        bounds = np.searchsorted(home, np.arange(pools.sentences + 1))
        for index in range(pools.sentences):
            chosen = ranks[bounds[index] : bounds[index + 1]]
            key = keys[index] if index < len(keys) else str(index + self.first_id)
            hypotheses = []
            texts = pools.texts(chosen.astype(np.int64))
            for position, text in zip(chosen.tolist(), texts, strict=True):
                features = {name: short(value) for name, value in pools.features(position)}
                features |= {name: float(more[position]) for name, more in self.scores.items()}
                score = float(scores[position])
                cells = {name: float(column[position]) for name, column in columns.items()}
                hypotheses.append(
                    Hypothesis(
                        index,
                        text,
                        features,
                        None if math.isnan(score) else score,
                        pools.extra(position),
                        {name: cell for name, cell in cells.items() if not math.isnan(cell)},
                    )
                )
            yield Sentence(
                index,
                key,
                hypotheses,
                None if self.sources is None else self.sources[index],
                None if self.references is None else self.references[index],
            )


Read = Callable[[Source], Iterable[Item]]
Write = Callable[[Lists, str], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A named format.

    ``read`` yields hypotheses, those of a sentence together; ``None`` stands for one that was
    reported as bad, so that files with one number per hypothesis stay in step. ``write`` writes
    the whole of ``Lists`` to a path. ``features`` are the only features the format can hold,
    ``None`` where it can hold any; ``columns`` and ``extra`` say whether it can hold those.
    ``ends`` says that ``read`` yields the lists in their order, each with an ``End`` behind it, so
    that a list can be answered before the next one comes.
    """

    name: str
    read: Read | None = None
    write: Write | None = None
    features: frozenset[str] | None = None
    columns: bool = False
    extra: bool = False
    ends: bool = False
    keyed_files: bool = False
    """Files of numbers belong to hypotheses by key; the format opens them itself."""


_formats: dict[str, Format] = {}


def register(format: Format) -> Format:
    """Makes a format known by its name; refuses a name that is taken."""
    if format.name in _formats:
        raise ValueError(f"format {format.name} is already registered")
    _formats[format.name] = format
    return format


def names() -> list[str]:
    """The names of all formats."""
    return sorted(_formats)


def find(name: str) -> Format:
    """The format of that name; refuses one that does not exist."""
    if name not in _formats:
        raise InputError(f"no format is called {name}", remedy=f"use one of {', '.join(names())}")
    return _formats[name]


def total(hypothesis: Hypothesis) -> float | None:
    """The score of a format that has only one: the total, else the feature of that name."""
    if hypothesis.score is not None:
        return hypothesis.score
    return hypothesis.features.get("score")


def needed_total(sentence: Sentence, hypothesis: Hypothesis, path: str) -> float:
    """The score of a format that cannot do without; refuses a hypothesis that has none."""
    score = total(hypothesis)
    if score is None:
        raise InputError(
            f"a hypothesis of sentence {sentence.key} has no score",
            path,
            remedy=f"{AS_JSONL}, which does without",
        )
    return score


def plain_key(sentence: Sentence, path: str) -> str:
    """The key for a ``key text`` line; refuses one that such a line cannot hold."""
    if not sentence.key or re.search(r"\s", sentence.key):
        raise InputError(
            f"the key {sentence.key!r} is blank or holds white space",
            path,
            remedy=f"rename it, or {AS_JSONL}",
        )
    return sentence.key


def short(value: float) -> float:
    """The number with the fewest digits that is the same in 32 bits, as files had it."""
    for digits in (6, 7, 8):
        rounded = float(f"{value:.{digits}g}")
        if np.float32(rounded) == value:
            return rounded
    return float(f"{value:.9g}")


def one_line(sentence: Sentence, path: str, *texts: Any) -> None:
    """Refuses what a line of text cannot hold."""
    for text in texts:
        if any(mark in str(text) for mark in "\n\r"):
            raise InputError(
                f"a text of sentence {sentence.key} holds a line break",
                path,
                remedy=f"{AS_JSONL}, or replace the line break",
            )
