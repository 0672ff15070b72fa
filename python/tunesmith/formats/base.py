"""The parts of a format: a function that reads hypotheses, and perhaps one that writes them."""

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

from tunesmith import plugins
from tunesmith._core import Lines, Pools
from tunesmith.errors import InputError

Path = str | PathLike[str]

# Reasons for skipping input, in the words of the core.
FIELDS = "missing fields"
NUMBER = "text where a number should be"
INFINITE = "NaN or infinity"
TWICE = "a feature twice"
BLANK = "blank hypothesis"
BLANK_LINE = "blank line"
UTF8 = "invalid UTF-8"
ORDER = "ids out of order"

AS_JSONL = "use --out-format jsonl"
"""The remedy in errors about data that a format cannot hold."""


@dataclass(slots=True)
class Hypothesis:
    """One hypothesis; `sentence` is its number, counted from zero, or its key."""

    sentence: int | str
    text: str
    features: dict[str, float] = field(default_factory=dict)
    score: float | None = None
    extra: str = ""
    columns: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Empty:
    """The start of a list, which may stay empty, with the sentence's source and references."""

    sentence: int | str
    source: str | None = None
    references: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The current list is complete; yielded before the next line is read."""


Item = Hypothesis | Empty | End | None
"""What a format's `read` yields; `None` replaces a hypothesis that was reported as bad."""


@dataclass(slots=True)
class Skipped:
    """The number of lines skipped for one reason, and the error of the first one."""

    reason: str
    count: int
    first: InputError

    def __str__(self) -> str:
        return f"{self.reason}: {self.count}, first {self.first}"


@dataclass(slots=True)
class Report:
    """Raises at the first bad line, or counts the lines that are skipped."""

    skip_bad: bool = False
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def bad(self, reason: str, error: InputError) -> None:
        if not self.skip_bad:
            raise error
        self.note(reason, error)

    def note(self, reason: str, error: InputError) -> None:
        """Count a line that is skipped even without `skip_bad`."""
        if reason in self.skipped:
            self.skipped[reason].count += 1
        else:
            self.skipped[reason] = Skipped(reason, 1, error)


@dataclass(frozen=True, slots=True)
class Options:
    """Options that some readers need beside the path."""

    per_sentence: int | None = None
    keep_blank: bool = False
    feature_files: Mapping[str, Path] = field(default_factory=dict)


class TextFile:
    """A text file that a format reads line by line; it reports bad lines."""

    def __init__(self, path: Path, report: Report, options: Options) -> None:
        self.path = fspath(path)
        self.report = report
        self.options = options
        self.line: int | None = None

    def __iter__(self) -> Iterator[str]:
        """Yield every valid line; report and skip lines that are not UTF-8."""
        return (line for line in self.lines() if line is not None)

    def lines(self) -> Iterator[str | None]:
        """Yield every line; `None` for a line that is not UTF-8, after reporting it."""
        lines = Lines(self.path)
        while True:
            try:
                text = next(lines)
            except StopIteration:
                return
            except InputError as error:
                self.line = error.line
                # Reading can go on after bad UTF-8, but not after a damaged archive.
                if not error.message.startswith(UTF8):
                    raise
                self.report.bad(UTF8, error)
                yield None
                continue
            self.line = lines.line
            yield text

    def open(self, path: Path) -> TextFile:
        """Return another file of the same list."""
        return TextFile(path, self.report, self.options)

    def error(self, message: str, remedy: str) -> InputError:
        """Return an error at the current line."""
        return InputError(message, self.path, self.line, remedy)

    def bad(self, reason: str, message: str, remedy: str) -> None:
        """Report the current line as bad: raise, or count it if bad lines are skipped."""
        self.report.bad(reason, self.error(message, remedy))

    def number(self, text: str, what: str) -> float | None:
        """Return a finite number, or `None` after reporting that the text is not one."""
        value = parse_number(text)
        if value is None:
            self.bad(NUMBER, f"the {what} {shown(text)} is not a number", "write a number")
            return None
        if not math.isfinite(value):
            message = f"the {what} {shown(text)} is not a finite number"
            self.bad(INFINITE, message, "write a finite number")
            return None
        return value


class Numbers:
    """A file with one number per hypothesis."""

    def __init__(self, name: str, file: TextFile) -> None:
        self.name = name
        self.file = file
        self.lines = file.lines()
        self.count = 0

    def text(self) -> str | None:
        """Return the next line without white space; raise if there is none, report bad UTF-8."""
        try:
            line = next(self.lines)
        except StopIteration:
            self.file.line = self.count + 1
            raise self.file.error(
                f"the file ends after {self.count} lines, the list does not",
                "give one number per hypothesis",
            ) from None
        self.count += 1
        return None if line is None else line.strip()

    def next(self) -> float | None:
        """Return the next number, or `None` after reporting that the line is bad."""
        text = self.text()
        return None if text is None else self.file.number(text, f"value of {self.name}")

    def finish(self) -> None:
        """Raise if the file goes on."""
        for line in self.lines:
            if line is None or line.strip():
                raise self.file.error(
                    f"the file goes on after {self.count} lines, where the list ends",
                    "give one number per hypothesis",
                )


def parse_number(text: str) -> float | None:
    """Return a decimal number, or `None`; underscores and non-ASCII digits are not accepted."""
    if not text.isascii() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_stream(path: Path) -> bool:
    """Return whether a path can be read only once: the standard input or a pipe."""
    if fspath(path) == "-":
        return True
    try:
        mode = FilePath(path).stat().st_mode
    except (OSError, ValueError):
        # The caller that opens it raises the error.
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def without_compression(name: str) -> str:
    """Return a file name without its compression suffix."""
    return re.sub(r"\.(gz|zst)$", "", name)


def keyed_line(line: str) -> tuple[str, str]:
    """Return key and text of a `key text` line, split at any white space."""
    key, *text = line.strip().split(None, 1)[:2] or [""]
    return key, text[0] if text else ""


def shown(text: str) -> str:
    """Return a token quoted and shortened, for error messages."""
    return '"' + (text if len(text) <= 40 else text[:40] + "…") + '"'


@dataclass(slots=True)
class Sentence:
    """One list to write."""

    index: int
    key: str
    hypotheses: list[Hypothesis]
    source: str | None = None
    references: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Lists:
    """Pools to write, with an optional new order, more named scores, sources and references."""

    pools: Pools
    order: NDArray[np.int64] | None = None
    scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    sources: Sequence[str | None] | None = None
    references: Sequence[Sequence[str] | None] | None = None
    first_id: int = 0

    def names(self) -> list[str]:
        """Return the names of all features, including the new scores."""
        return [*self.pools.names, *self.scores]

    def sizes(self) -> set[int]:
        """Return the set of list lengths."""
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


Read = Callable[[TextFile], Iterable[Item]]
Write = Callable[[Lists, str], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A named format.

    `read` yields the hypotheses of one sentence after the other. It yields `None` for a
    hypothesis that was reported as bad, so that files with one number per hypothesis stay aligned.
    `write` writes all `Lists` to a path. `features` are the only features that the format can
    hold, `None` if it can hold any; `columns` and `extra` say whether it can hold those.
    `ends` says that `read` yields the lists in order and an `End` after each, so that a list
    can be processed before the next one arrives.
    """

    name: str
    read: Read | None = None
    write: Write | None = None
    features: frozenset[str] | None = None
    columns: bool = False
    extra: bool = False
    ends: bool = False
    keyed_files: bool = False
    """The format itself opens files of numbers and matches them with hypotheses by key."""


_formats: dict[str, Format] = {}


def register(format: Format) -> Format:
    """Register a format under its name; raise if the name is taken."""
    if format.name in _formats:
        raise ValueError(f"format {format.name} is already registered")
    _formats[format.name] = format
    return format


def names() -> list[str]:
    """Return the names of all formats."""
    plugins.load("formats")
    return sorted(_formats)


def find(name: str) -> Format:
    """Return the format with this name; raise if there is none."""
    if name not in _formats:
        plugins.load("formats")
    if name not in _formats:
        raise InputError(f"no format is called {name}", remedy=f"use one of {', '.join(names())}")
    return _formats[name]


def total(hypothesis: Hypothesis) -> float | None:
    """Return the one score of a hypothesis: the total, or else the feature `score`."""
    if hypothesis.score is not None:
        return hypothesis.score
    return hypothesis.features.get("score")


def needed_total(sentence: Sentence, hypothesis: Hypothesis, path: str) -> float:
    """Return the score for a format that requires one; raise if the hypothesis has none."""
    score = total(hypothesis)
    if score is None:
        raise InputError(
            f"a hypothesis of sentence {sentence.key} has no score",
            path,
            remedy=f"{AS_JSONL}, which needs no score",
        )
    return score


def plain_key(sentence: Sentence, path: str) -> str:
    """Return the key for a `key text` line; raise if such a line cannot hold it."""
    if not sentence.key or re.search(r"\s", sentence.key):
        raise InputError(
            f"the key {sentence.key!r} is blank or holds white space",
            path,
            remedy=f"rename it, or {AS_JSONL}",
        )
    return sentence.key


def short(value: float) -> float:
    """Return the number with the fewest digits that is the same 32-bit float."""
    for digits in (6, 7, 8):
        rounded = float(f"{value:.{digits}g}")
        if np.float32(rounded) == value:
            return rounded
    return float(f"{value:.9g}")


def one_line(sentence: Sentence, path: str, *texts: Any) -> None:
    """Raise if a text contains a line break."""
    for text in texts:
        if any(mark in str(text) for mark in "\n\r"):
            raise InputError(
                f"a text of sentence {sentence.key} holds a line break",
                path,
                remedy=f"{AS_JSONL}, or replace the line break",
            )
