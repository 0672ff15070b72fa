"""A translator: a model with weights, and everything that is asked of its search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tunesmith import _core
from tunesmith._core import Derivation
from tunesmith.decode.batches import Pace, in_batches
from tunesmith.decode.lines import (
    BAD_TEXT,
    changes_of,
    check_counts,
    checked,
    refuse_string,
    texts_of,
)
from tunesmith.decode.markup import marked, without_tags
from tunesmith.decode.translated import Forced, Translation
from tunesmith.formats.base import Report
from tunesmith.learn.selectors import Violations
from tunesmith.spaces import Bins, Forests, Pools
from tunesmith.spaces.bins import Ranked
from tunesmith.training.text import TextSide
from tunesmith.weights import Weights

if TYPE_CHECKING:
    from tunesmith.decode.translation import Model

LAST_BIN = 100
"""Default length of the last bin."""
MAX_WORDS = 200
GIVEN = "given"
PLAIN = TextSide(protected=())
"""How words of a model are prepared: not at all."""


class Translator:
    """A model with weights."""

    def __init__(
        self,
        model: Model,
        weights: Weights | _core.Learner,
        settings: Mapping[str, float],
        tokenized: bool,
    ) -> None:
        chosen = {"max_words": MAX_WORDS, **settings}
        self.max_words = chosen["max_words"]
        """Longer sentences are translated in parts."""
        self.dense = model.decoder.dense
        """The names of features that the model always has."""
        self.model = model
        self.settings = chosen
        self.tokenized = tokenized
        self._escaped = model.escaped
        self._source, self._target = (PLAIN, PLAIN) if tokenized else (model.source, model.target)
        # Translations given by markup have their own probability, which must not be weighted.
        fixed = {GIVEN: 1.0}
        self.fixed = frozenset([*fixed, *model.fixed])
        """The names of weights that no learning may change."""
        if isinstance(weights, _core.Learner):
            self.weights = Weights(fixed)
            self._core = weights.translator(model.decoder, [*chosen.items()], [*fixed.items()])
        else:
            self.weights = weights.with_constants(fixed)
            self._core = model.decoder.translator([*self.weights.items()], [*chosen.items()])

    def translate(
        self, lines: Iterable[str], *, threads: int = 0, details: int = 0, markup: str = "none"
    ) -> Iterator[Translation]:
        """Yield the translation of each line, in order, an empty one for an empty line.

        Lines are read in batches, so that they need not fit into memory. Each translation has the
        `details` best derivations. Raise for bad `markup`, with the number of the line, and for a
        string instead of lines.
        """
        check_counts(threads=threads, details=details)

        def work(batch: list[str], first: int) -> list[Translation]:
            return self.batch(batch, threads=threads, details=details, markup=markup, first=first)

        return in_batches(lines, Pace(threads, details), work)

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
        changes: Sequence[Mapping[str, float]] | None = None,
    ) -> list[Translation]:
        """Return the translations of lines, all at once.

        With `unique`, the `details` best derivations have different strings. `first` and `file` say
        where errors are; `report` counts bad lines that are skipped. `changes` are weights of each
        line that replace those of the translator; the others stay shared.
        """
        words = self.words(lines, markup, first, file, report)
        check_counts(threads=threads, details=details)
        changed = changes_of(changes, len(words))

        def found() -> list[_core.Translation]:
            return self._core.translate(words, threads, details, markup, unique, changed)

        translations = checked(found, words, first, file, report)
        return [
            Translation(
                self.restored(each.text),
                without_tags(line, markup),
                each.text,
                each.derivations[0].score if each.derivations else each.score,
                each.pieces,
                each.seconds,
                each.derivations,
            )
            for each, line in zip(translations, words, strict=True)
        ]

    def nbest(
        self,
        lines: Sequence[str],
        k: int,
        *,
        unique: bool = True,
        links: bool = False,
        threads: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
        changes: Sequence[Mapping[str, float]] | None = None,
    ) -> Pools:
        """Return the `k` best translations of each line, as words of the model, with all features.

        With `unique`, each string occurs once, with its best derivation; with `links`, word
        alignments follow the scores. `changes` are weights of each line, as for `batch`.
        """
        words = self.words(lines, markup, first, file, report)
        check_counts(threads=threads, k=k)
        changed = changes_of(changes, len(words))

        def found() -> _core.Pools:
            return self._core.nbest(words, k, unique, threads, links, markup, changed)

        pools = checked(found, words, first, file, report)
        return Pools(pools, sources=[without_tags(each, markup) for each in words])

    def forests(
        self,
        lines: Sequence[str],
        *,
        threads: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> Forests:
        """Return the forest of each line, in words of the model."""
        words = self.words(lines, markup, first, file, report)
        check_counts(threads=threads)

        def found() -> _core.Forests:
            return self._core.forests(words, threads, markup)

        forests = checked(found, words, first, file, report)
        return Forests(forests, sources=[without_tags(each, markup) for each in words])

    def bins(
        self,
        lines: Sequence[str],
        k: int = LAST_BIN,
        *,
        ways: int = 1,
        ranked: Ranked | str = Ranked.ESTIMATE,
        forced: Sequence[str] | None = None,
        threads: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> Bins:
        """Return the partial translations that the beam kept, best first: lists for each line.

        A phrase-based search has a bin for every number of covered words, a hierarchical one for
        every span. The last bin of a line holds its `k` best whole translations, unique by string.
        The others hold what the beam kept, with `ways` derivations of each hypothesis at most.
        Bins are `ranked` by the score of what is translated, or by the estimate that the search
        prunes by: features are those of the one or the other. With `forced`, a reference for each
        line, bins hold the partial translations that lead to the reference, and no others.
        """
        words = self.words(lines, markup, first, file, report)
        wanted = None if forced is None else self._references(forced)
        check_counts(threads=threads, k=k, ways=ways)
        future = Ranked(ranked) is Ranked.ESTIMATE

        def found() -> _core.Pools:
            return self._core.bins(words, k, ways, future, threads, markup, wanted)

        core = checked(found, words, first, file, report)
        return Bins.of_lines(core, None, [without_tags(each, markup) for each in words])

    def force(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        k: int = 1,
        *,
        threads: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> Forced:
        """Return the `k` best derivations of a reference for each line.

        If there are none, return derivations of the longest beginning of the reference that can be
        reached. All limits of the search hold, except that nothing is pruned; a search that looks
        at more than `force_limit` cells is given up with what it has. Raise for hierarchical
        models.
        """
        words = self.words(lines, markup, first, file, report)
        wanted = self._references(references)
        check_counts(threads=threads, k=k)

        def found() -> tuple[_core.Pools, list[int], list[bool]]:
            return self._core.force(words, wanted, k, threads, markup)

        core, reached, whole = checked(found, words, first, file, report)
        pools = Pools(core, sources=[without_tags(each, markup) for each in words])
        return Forced(pools, reached, whole)

    def reach(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        *,
        threads: int = 0,
        first: int = 1,
        file: str = "input",
    ) -> list[_core.Contest]:
        """Return how far the reference of each line can be reached. Raise as `force` does."""
        words = self.words(lines, "none", first, file, None)
        wanted = self._references(references)
        check_counts(threads=threads)
        return self._core.reach(words, wanted, threads)

    def violations(
        self, lines: Sequence[str], references: Sequence[str], wanted: Violations, threads: int = 0
    ) -> tuple[Pools, list[_core.Contest]]:
        """Return a list for each reference: a gold derivation, then those of the beam that it is to
        beat at the step that is corrected; and how far each reference can be reached.

        The list is gold alone where the search makes no mistake, and empty where the reference is
        of no use. Raise for hierarchical models.
        """
        words = self.words(lines, "none", 1, "input", None)
        pools, contests = self._core.violations(
            words,
            self._references(references),
            wanted.update,
            wanted.k,
            wanted.future,
            wanted.least,
            threads,
        )
        return Pools(pools, sources=words), contests

    def features(self, derivation: Derivation) -> dict[str, float]:
        """Return the features of a derivation; features that the model always has may be zero."""
        return {**dict.fromkeys(self.dense, 0.0), **dict(derivation.features)}

    def contributions(
        self, derivation: Derivation, weights: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return each feature's contribution to the score, largest first.

        `weights` are those that the derivation was found with, if not the translator's.
        """
        used = self.weights if weights is None else weights
        each = {name: value * used.get(name, 0.0) for name, value in derivation.features}
        return dict(sorted(each.items(), key=lambda item: -abs(item[1])))

    def words(
        self,
        lines: Sequence[str],
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> list[str]:
        """Return prepared lines; a bad line raises, or is counted and left empty."""
        refuse_string(lines)
        texts = list(lines)
        return checked(lambda: self.prepared(texts, markup), texts, first, file, report, BAD_TEXT)

    def prepared(self, lines: Iterable[str], markup: str = "none") -> list[str]:
        """Return lines as the model sees them, without changing tags.

        Raise for a string instead of lines, and for lines that are not text.
        """
        texts = texts_of(lines)
        if markup == "none":
            return [self._source.prepare(line) for line in texts]
        return [marked(line, self._source, self._target, self._escaped) for line in texts]

    def prepared_references(self, texts: Iterable[str]) -> list[str]:
        """Return target text in words of the model. Raise as `prepared` does."""
        return self._references(texts)

    def _references(self, texts: Iterable[str]) -> list[str]:
        return [self._target.prepare(text) for text in texts_of(texts)]

    def restored(self, words: str) -> str:
        """Return words of the model as text."""
        return self._target.restore(words)
