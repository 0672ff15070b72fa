"""A translator whose lines are dealt to the workers of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunesmith.decode.translated import Translation
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.engines import Engine, Worker, reads
from tunesmith.errors import InputError
from tunesmith.formats.base import Report
from tunesmith.spaces import Pools
from tunesmith.weights import Weights

SHARES = 4
"""Pieces of a batch for each worker, so that all end at about the same time."""


@dataclass(frozen=True)
class _Recipe:
    """What a worker makes its translator from."""

    model: Model
    weights: Weights
    settings: Mapping[str, float]
    tokenized: bool


@dataclass(slots=True)
class _Notes(Report):
    """A report that keeps what it was told, for the driver."""

    notes: list[tuple[str, InputError]] = field(default_factory=list)

    def note(self, reason: str, error: InputError) -> None:
        """Keep a bad line."""
        self.notes.append((reason, error))


class Spread:
    """Translates as the translator does, with a copy of the model at each worker."""

    def __init__(self, translator: Translator, engine: Engine, threads: int) -> None:
        recipe = _Recipe(
            translator.model, translator.weights, translator.settings, translator.tokenized
        )
        self._crew, self._threads = engine.crew(recipe, threads), threads
        self.workers = self._crew.size
        """How many there are."""

    def batch(
        self, lines: Sequence[str], *, first: int = 1, report: Report | None = None, **how: Any
    ) -> list[Translation]:
        """Return the translations of lines, as `Translator.batch` without details."""
        pieces = self._pieces(_batch, lines, first, report, how)
        return [each for piece in pieces for each in piece]

    def nbest(
        self,
        lines: Sequence[str],
        k: int,
        *,
        first: int = 1,
        report: Report | None = None,
        **how: Any,
    ) -> Pools:
        """Return the best translations of each line, as `Translator.nbest`."""
        if not lines:
            return Pools.join([self._crew.ask(_nbest, lines, False, {**how, "k": k})[0]])
        return Pools.join(list(self._pieces(_nbest, lines, first, report, {**how, "k": k})))

    def _pieces(
        self,
        question: Callable[..., tuple[Any, list[tuple[str, InputError]]]],
        lines: Sequence[str],
        first: int,
        report: Report | None,
        how: dict[str, Any],
    ) -> Iterator[Any]:
        size = -(-len(lines) // (SHARES * self.workers)) or 1
        skip = report is not None and report.skip_bad
        asked = [
            (lines[at : at + size], skip, {**how, "first": first + at, "threads": self._threads})
            for at in range(0, len(lines), size)
        ]
        for found, notes in self._crew.map(question, asked):
            for reason, error in notes:
                assert report is not None
                report.note(reason, error)
            yield found


def _translator(worker: Worker) -> Translator:
    if "translator" not in worker.kept:
        made: _Recipe = worker.share
        worker.kept["translator"] = Translator(
            made.model, made.weights, made.settings, made.tokenized
        )
    found: Translator = worker.kept["translator"]
    return found


@reads
def _batch(
    worker: Worker, lines: Sequence[str], skip: bool, how: Mapping[str, Any]
) -> tuple[list[Translation], list[tuple[str, InputError]]]:
    report = _Notes(skip)
    return _translator(worker).batch(lines, report=report, **how), report.notes


@reads
def _nbest(
    worker: Worker, lines: Sequence[str], skip: bool, how: Mapping[str, Any]
) -> tuple[Pools, list[tuple[str, InputError]]]:
    report = _Notes(skip)
    return _translator(worker).nbest(lines, report=report, **how), report.notes
