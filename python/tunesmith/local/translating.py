"""Translate each sentence with weights of its own, learnt from similar examples (Liu et al. 2012).

>>> index = Index.open("index", translator)  # doctest: +SKIP
>>> local = LocalTranslator(translator, index, Local("ebuu", k=100))  # doctest: +SKIP
>>> [each.text for each in local.translate(["Das ist ein Haus."])]  # doctest: +SKIP
['This is a house.']
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from tunesmith._core import Blocks
from tunesmith.decode.batches import Pace, in_batches
from tunesmith.decode.markup import without_tags
from tunesmith.decode.translated import Translation
from tunesmith.decode.translator import Translator
from tunesmith.engines import Pool
from tunesmith.formats.base import Report
from tunesmith.local.index import Neighbour, Neighbours
from tunesmith.local.weights import NEAR, Local, learn
from tunesmith.metrics import Metric
from tunesmith.spaces import Pools


class Examples(Protocol):
    """Examples with lists: what learning needs of an index."""

    @property
    def metric(self) -> Metric:
        """The metric whose statistics the lists have."""

    def near(self, words: str, k: int, *, leave_out: bool) -> Sequence[Neighbour]:
        """Return the `k` most similar examples, best first."""

    def lists(self, ids: Sequence[int]) -> Pools:
        """Return the lists of examples; raise a `KeyError` for one that is not there."""

    def blocks(self, ids: Sequence[int]) -> Blocks:
        """Return the lists of examples with their gains; raise as `lists`."""


# An example may be taken back between search and use; then the search is repeated.
TRIES = 5


@dataclass(frozen=True)
class LocalWeights:
    """What was learnt for one sentence."""

    neighbours: Sequence[Neighbour]
    """The examples, most similar first."""
    changed: dict[str, float]
    """The weights that differ from the base weights."""
    moved: dict[str, float]
    """By how much they differ."""
    retrieval_seconds: float
    training_seconds: float


UNCHANGED = LocalWeights([], {}, {}, 0.0, 0.0)
"""For sentences without examples."""


@dataclass(frozen=True)
class LocalTranslation(Translation):
    """A translation with weights of its own; `seconds` are those of decoding."""

    neighbours: Sequence[Neighbour]
    """The examples that the weights were learnt from, most similar first."""
    changed: dict[str, float]
    """The weights that differ from the base weights."""
    moved: dict[str, float]
    """By how much they differ."""
    retrieval_seconds: float
    """Finding the examples and reading their lists."""
    training_seconds: float


class LocalTranslator:
    """A translator that learns weights for each sentence before it decodes the sentence.

    Sentences are independent of each other: results are the same for any number of threads. The
    model and the base weights are shared by all sentences.
    """

    def __init__(self, translator: Translator, index: Examples, local: Local | None = None) -> None:
        self.translator = translator
        self.index = index
        self.local = local or Local()
        self._tuner = self.local.tuner()
        self._lists: Callable[[Sequence[int]], Pools | Blocks]
        self._lists = index.blocks if isinstance(self._tuner, NEAR) else index.lists

    @property
    def metric(self) -> Metric:
        """The metric whose sentence gains are learnt from: that of the index."""
        return self.index.metric

    def translate(
        self, lines: Iterable[str], *, threads: int = 0, details: int = 0, markup: str = "none"
    ) -> Iterator[LocalTranslation]:
        """Yield the translation of each line, in order, as `Translator.translate` does."""

        def work(batch: list[str], first: int) -> list[LocalTranslation]:
            return self.batch(batch, threads=threads, details=details, markup=markup, first=first)

        return in_batches(lines, Pace(threads, details), work)

    def learn(
        self,
        lines: Sequence[str],
        *,
        threads: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> list[LocalWeights]:
        """Return what is learnt for each line; `UNCHANGED` for lines without examples.

        `first` and `file` say where errors are; `report` counts bad lines that are skipped.
        """
        words = self.translator.words(lines, markup, first, file, report)
        sentences = [without_tags(each, markup) for each in words]
        if threads == 1 or len(sentences) < 2:
            return [self.learn_one(each) for each in sentences]
        return list(Pool(threads).map(self.learn_one, sentences))

    def learn_one(self, words: str) -> LocalWeights:
        """Return what is learnt for a sentence in words of the model."""
        if not words.strip():
            return UNCHANGED
        begun = perf_counter()
        neighbours, lists = self._examples(words)
        found = perf_counter()
        if lists is None:
            return LocalWeights(neighbours, {}, {}, found - begun, 0.0)
        base = self.translator.weights
        changed = learn(self._tuner, lists, self.metric, base, self.translator.fixed)
        moved = {name: value - base.get(name, 0.0) for name, value in changed.items()}
        return LocalWeights(neighbours, changed, moved, found - begun, perf_counter() - found)

    def _examples(self, words: str) -> tuple[Sequence[Neighbour], Pools | Blocks | None]:
        """Return the neighbours of a sentence and their lists, None if there are none."""
        for left in reversed(range(TRIES)):
            found = self.index.near(words, self.local.k, leave_out=self.local.leave_out)
            if not found:
                return [], None
            try:
                # The texts of neighbours are read only if somebody looks at them.
                if isinstance(found, Neighbours):
                    return found, self._lists(found.ids)
                return found, self._lists([each.id for each in found])
            except KeyError:
                if left == 0:
                    raise
        raise AssertionError("unreachable")

    def batch(
        self,
        lines: Sequence[str],
        *,
        threads: int = 0,
        details: int = 0,
        unique: bool = False,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
        learnt: Sequence[LocalWeights] | None = None,
    ) -> list[LocalTranslation]:
        """Return the translations of lines, all at once, as `Translator.batch` does.

        `learnt` is what `learn` returned for these lines, if they were learnt for before.
        """
        if learnt is None:
            # Bad lines are counted once, below.
            skip = Report(report.skip_bad if report is not None else False)
            learnt = self.learn(
                lines, threads=threads, markup=markup, first=first, file=file, report=skip
            )
        found = self.translator.batch(
            lines,
            threads=threads,
            details=details,
            unique=unique,
            markup=markup,
            first=first,
            file=file,
            report=report,
            changes=[each.changed for each in learnt],
        )
        return [
            LocalTranslation(**vars(each), **vars(own))
            for each, own in zip(found, learnt, strict=True)
        ]

    def weights_of(self, found: LocalTranslation | LocalWeights) -> Mapping[str, float]:
        """Return the weights that a sentence was translated with."""
        return ChainMap(found.changed, self.translator.weights)  # type: ignore[arg-type]
