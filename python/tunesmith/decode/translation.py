"""Translation: load a model, give it weights, translate text.

>>> model = Model.load("model")  # doctest: +SKIP
>>> translator = model.translator()  # doctest: +SKIP
>>> [each.text for each in translator.translate(["Das ist ein Haus."])]  # doctest: +SKIP
['This is a house.']
>>> pools = translator.nbest(["Das ist ein Haus."], k=100)  # doctest: +SKIP
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from sys import maxsize
from time import perf_counter
from typing import Any, Self, TypeVar

from tunesmith import _core
from tunesmith._core import Derivation, Step
from tunesmith.decode import moses
from tunesmith.decode.conversion import cached, from_cache
from tunesmith.decode.markup import marked, refuse_lattice, without_tags
from tunesmith.decode.model_weights import Kind, kind_of, templates_of, untuned, without_effect
from tunesmith.decode.templates import SETS, Template, template_of
from tunesmith.engines.delivery import Files
from tunesmith.errors import InputError, WithoutEffect, check_regular
from tunesmith.files.cache import user_cache
from tunesmith.formats.base import Report
from tunesmith.learn.selectors import Violations
from tunesmith.spaces import Bins, Forests, Pools, check_range
from tunesmith.spaces.bins import Ranked
from tunesmith.training.model import (
    HIERO,
    LM,
    OWN_TEMPLATES,
    PHRASES,
    check_templates,
    read_model,
    text_sides,
)
from tunesmith.training.rules import import_cdec
from tunesmith.training.text import TextSide
from tunesmith.weights import Weights

Found = TypeVar("Found")
KINDS: dict[Kind, tuple[str, Callable[..., _core.Decoder]]] = {
    "phrase": (PHRASES, _core.Decoder.phrase),
    "hiero": (HIERO, _core.Decoder.hiero),
}
WEIGHTS = "weights.toml"
"""The weights file in a model directory, used if no other weights are given."""
BATCH = 100
"""Maximum number of lines translated at a time."""
LISTED = 100_000
"""Maximum number of hypotheses in the lists of a batch: about 200 MB."""
LAST_BIN = 100
"""Default length of the last bin."""
MAX_WORDS = 200
GIVEN = "given"
BAD_MARKUP = "bad markup"
BAD_TEXT = "no plain text"

_PLAIN = TextSide(protected=())


class Pace:
    """The size of the next batch: about a second's work, and lists that fit into memory.

    Small batches show slow translations sooner; a batch has at least as many lines as threads.

    >>> pace = Pace(threads=2)
    >>> pace.took(2, seconds=0.01)
    >>> pace.size
    100
    >>> pace.took(100, seconds=20.0)
    >>> pace.size
    5
    """

    def __init__(self, threads: int = 0, k: int = 1) -> None:
        self._most = max(1, min(BATCH, LISTED // max(1, k)))
        self._least = min(self._most, threads or os.cpu_count() or 1)
        self.size = self._least

    def took(self, lines: int, seconds: float) -> None:
        """Record how long a batch took."""
        self.size = max(self._least, min(self._most, int(lines / max(seconds, 1e-6))))


@dataclass(frozen=True, repr=False)
class Model:
    """A model for translation: rules, language model, preparation of text, default weights."""

    decoder: _core.Decoder
    weights: Weights
    tuned: bool = True
    """Whether the weights were tuned or given, not defaults."""
    kind: Kind | None = None
    """The kind of rules of a model directory."""
    source: TextSide = _PLAIN
    target: TextSide = _PLAIN
    settings: Mapping[str, float] = field(default_factory=dict)
    markup: str = "none"
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Weights that tuning must not change."""
    absent: Sequence[str] = ()
    """Features among them that a configuration of Moses does not have."""
    escaped: bool = True
    """Whether `&lt;` in marked text means <; words in models of Moses are written with entities."""
    templates: Sequence[str] = ()
    """Templates and sets that are turned on."""
    own: Sequence[Template] = ()
    """Templates written in Python."""
    make: Callable[[Sequence[str]], _core.Decoder] | None = None
    """Makes the decoder with other templates turned on; None if the model has no templates."""
    files: Sequence[Path] = ()
    """The files that the model was loaded from, except weights."""
    again: Callable[[Files], Model] | None = field(default=None, compare=False)
    """Loads a copy in another process."""
    origin: Files | None = field(default=None, compare=False)
    """What a copy is loaded from."""
    _others: dict[tuple[str, ...], Model] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        """Return a short line without the weights, which may be millions."""
        sparse = f", templates={list(self.templates)}" if self.templates else ""
        return (
            f"<Model kind={self.kind} features={len(self.decoder.dense)} "
            f"weights={len(self.weights)} tuned={self.tuned}{sparse}>"
        )

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[dict[str, Any], Files]]:
        """Return how to pickle the model: a copy loads the same files."""
        if self.again is None or self.origin is None:
            raise TypeError(
                "this model was not loaded from files, so it cannot be copied to another process: "
                "use Model.load, Model.of_moses or Model.of_cdec"
            )
        names = [each.name for each in fields(self) if each.name not in _LOADED]
        return _copied, ({name: getattr(self, name) for name in names}, self.origin)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        kind: Kind | None = None,
        templates: Sequence[Template | str] = (),
        named: Sequence[str] = (),
    ) -> Self:
        """Load a model directory of `tunesmith train`.

        `templates` are templates of your own or names; they and those in `named` are turned on in
        addition to those in the model's description.

        If a model has phrases and hierarchical rules, `kind` chooses; the default is phrases. The
        weights come from `weights.toml`, if it exists. If they were tuned for the other kind, a
        warning says so and default weights are used. Raise if the model is incomplete, lacks rules
        of this kind, or if a template is unknown.
        """
        folder = Path(folder)
        description = read_model(folder)
        held = [name for name, (table, _) in KINDS.items() if table in description["files"]]
        chosen = kind or next(iter(held), None)
        if chosen not in held:
            raise InputError(
                f"the model has no rules of kind {chosen}",
                str(folder),
                remedy=f"use {' or '.join(held)}, or train with --kind both",
            )
        table, make = KINDS[chosen]
        weights = _own_weights(folder, chosen)
        tuned_with = [] if weights is None else templates_of(weights)
        declared = description.get("features", {}).get("templates", [])
        also = _names(named) + [each for each in _names(templates) if isinstance(each, str)]
        known = list(dict.fromkeys([*declared, *also, *tuned_with]))
        check_templates(known, str(folder))
        own = [each for each in templates if not isinstance(each, str)]

        def made(names: Sequence[str]) -> _core.Decoder:
            ours = [name for name in names if name not in OWN_TEMPLATES]
            others = [OWN_TEMPLATES[name]() for name in names if name in OWN_TEMPLATES]
            return make(
                folder / table, folder / LM, templates=ours, folder=folder, own=[*own, *others]
            )

        decoder = made(known)
        source, target = text_sides(folder)
        others = {rules for name, (rules, _) in KINDS.items() if name != chosen}
        files = [name for name in description["files"] if name not in others]
        root, used = folder.absolute(), ("model.toml", *files)
        return cls(
            decoder,
            untuned(decoder.dense, chosen) if weights is None else weights,
            weights is not None,
            chosen,
            source,
            target,
            templates=known,
            own=own,
            make=made,
            files=[folder / name for name in used],
            again=partial(_loaded, cls, chosen, own, known),
            origin=Files({name: root / name for name in used if (root / name).is_file()}),
        )

    @classmethod
    def of_moses(
        cls,
        ini: str | PathLike[str],
        cache: str | PathLike[str] | None = None,
        tell: Callable[[str], object] = lambda message: None,
    ) -> Self:
        """Load the model of a Moses configuration, with Moses' names, weights and settings.

        Its text files are converted once, into `cache` or the user's cache; `tell` gets a message.
        Raise, with name and line, for unsupported settings that would change the output.
        """
        config = moses.read_config(Path(ini))
        table, lm = moses.converted(config, None if cache is None else Path(cache), tell)
        return cls._of_config(config, _pair(table, lm))

    @classmethod
    def _of_config(cls, config: moses.Config, converted: Files) -> Self:
        """Return the model of a configuration whose text files were converted."""
        table, lm = converted.paths.values()
        labels = (config.lm.label, config.phrases.label, config.phrases.size)
        reordering = config.reordering.label if config.reordering else None
        with from_cache(table, lm):
            decoder = _core.Decoder.phrase(table, lm, moses=(*labels, reordering))
        return cls(
            decoder,
            config.weights,
            settings=config.settings,
            markup=config.markup,
            fixed=config.fixed,
            absent=list(config.absent),
            escaped=False,
            files=[
                part.path
                for part in (config.phrases, config.lm, config.reordering)
                if part is not None
            ],
            again=partial(cls._of_config, config),
            origin=converted,
        )

    @classmethod
    def of_cdec(
        cls,
        grammar: str | PathLike[str],
        lm: str | PathLike[str],
        weights: Mapping[str, float],
        cache: str | PathLike[str] | None = None,
        tell: Callable[[str], object] = lambda message: None,
    ) -> Self:
        """Load a grammar as cdec reads it, with cdec's names and feature values.

        Text files are converted once, as for Moses.
        """
        rules, model = Path(grammar), Path(lm)
        folder = user_cache() if cache is None else Path(cache)

        def convert(out: Path) -> None:
            if not import_cdec(rules, out).entries:
                raise InputError(
                    "the grammar has no rules",
                    str(rules),
                    remedy="give rules such as [X] ||| the [X,1] ||| das [X,1] ||| Count=1",
                )

        table = cached(folder, [rules], ".rules", convert, tell)
        made = model
        if model.suffix != ".tlm":
            made = cached(
                folder, [model], ".tlm", lambda out: _core.LanguageModel.load(model).save(out), tell
            )
        return cls._of_grammar(weights, (rules, model), _pair(table, made))

    @classmethod
    def _of_grammar(
        cls, weights: Mapping[str, float], texts: Sequence[Path], converted: Files
    ) -> Self:
        """Return the model of a grammar that was converted."""
        table, lm = converted.paths.values()
        own = [text.absolute() for text in texts]
        with from_cache(*(path for path in (table, lm) if path not in own)):
            decoder = _core.Decoder.hiero(table, lm, cdec=True)
        return cls(
            decoder,
            Weights(weights),
            files=list(texts),
            again=partial(cls._of_grammar, weights, texts),
            origin=converted,
        )

    def translator(
        self,
        weights: Mapping[str, float] | str | PathLike[str] | None = None,
        settings: Mapping[str, float] | None = None,
        *,
        tokenized: bool = False,
        zero: bool = False,
    ) -> Translator:
        """Return a translator: the model with weights (default: its own) and search settings.

        `weights` may be a file. The templates that they were tuned with are turned on; a warning
        lists names that the model cannot have. With `tokenized`, input and output are words of the
        model; without, text is prepared and restored as in training. Raise if weights are not
        finite, belong to the other kind of rules, or none belongs to this model, and for unknown
        settings. Weights that are all zero are allowed with `zero`: learning may begin with them.
        """
        given = self.weights if weights is None else weights
        if isinstance(given, str | PathLike):
            given = Weights.load(given)
        chosen = given if isinstance(given, Weights) else Weights(given)
        chosen.check_finite()
        self._check_kind(chosen)
        model = self.with_templates(templates_of(chosen))
        if unknown := model.unknown(chosen):
            where = "named= of Model.load" if model.make else None
            warnings.warn(without_effect(unknown, chosen.file, where), WithoutEffect, stacklevel=2)
        names = self.decoder.dense
        known = any(name in chosen for name in names)
        if not any(chosen.get(name) for name in names) and not (zero and known):
            raise InputError(
                "all weights for features of this model are zero"
                if known
                else "no weight is for a feature of this model",
                chosen.file,
                remedy=f"its features are {', '.join(names)}",
            )
        return Translator(model, chosen, {**self.settings, **(settings or {})}, tokenized)

    def with_templates(self, names: Sequence[str]) -> Model:
        """Return the model with more templates turned on, or itself if all of them are.

        The files are loaded once for the same templates.
        """
        on = _members(self.templates)
        more = tuple(name for name in dict.fromkeys(names) if not _members([name]) <= on)
        if self.make is None or not more:
            return self
        if more not in self._others:
            all_on = [*self.templates, *more]
            changed = replace(self, decoder=self.make(all_on), templates=all_on, _others={})
            self._others[more] = changed
        return self._others[more]

    def without_templates(self) -> Model:
        """Return the model with no more templates turned on than its own weights need."""
        needed = templates_of(self.weights)
        if self.make is None or _members(needed) == _members(self.templates):
            return self
        return replace(self, decoder=self.make(needed), templates=needed, _others={})

    def _check_kind(self, weights: Weights) -> None:
        found = kind_of(weights)
        if self.kind is not None and found not in (None, self.kind):
            raise InputError(
                f"weights for {found} rules, but the model is of kind {self.kind}",
                weights.file,
                remedy=f"give weights that were tuned with kind {self.kind}, or take {found}",
            )

    def unknown(self, weights: Mapping[str, float]) -> list[str]:
        """Return the names of weights without effect: no feature of the model can have them.

        Every name of a template that is turned on counts as a feature.
        """
        # Features of your own may have any name.
        if self.own:
            return []
        on, dense = _members(self.templates), {*self.decoder.dense, GIVEN}
        # There are millions of names, but few prefixes.
        heads = {name.partition(":")[0] for name in weights} - dense
        off = {head for head in heads if template_of(f"{head}:") not in on}
        if not off:
            return []
        return [
            name
            for name, weight in weights.items()
            if weight and name not in dense and name.partition(":")[0] in off
        ]

    def following(
        self, learner: _core.Learner, settings: Mapping[str, float] | None = None
    ) -> Translator:
        """Return a translator with a learner's current weights; input and output are tokenised.

        Only weights that changed since the last call are passed on.
        """
        return Translator(self, learner, {**self.settings, **(settings or {})}, tokenized=True)


# Fields that a copy reads from the files.
_LOADED = ("decoder", "source", "target", "make", "origin", "_others")


def _loaded(
    cls: type[Model],
    kind: Kind,
    own: Sequence[Template],
    templates: Sequence[str],
    files: Files,
) -> Model:
    """Return the model of a model directory, which may be a copy without weights."""
    return cls.load(files.paths["model.toml"].parent, kind, own, templates)


def _pair(table: Path, lm: Path) -> Files:
    """Return converted files by the names that they have elsewhere."""
    return Files({"table.rules": table.absolute(), "lm.tlm": lm.absolute()})


def _copied(kept: Mapping[str, Any], origin: Files) -> Model:
    """Return a model like the one that was pickled, from the same files."""
    model: Model = kept["again"](origin)
    decoder = model.decoder
    if model.make is not None and [*model.templates] != [*kept["templates"]]:
        # The folder's weights may have changed, and with them the templates.
        decoder = model.make(kept["templates"])
    return replace(model, decoder=decoder, _others={}, **kept)


def _members(names: Iterable[str]) -> set[str]:
    """Return templates, with sets replaced by their members."""
    sets = {known.name: known.templates for known in SETS}
    return {each for name in names for each in sets.get(name, [name])}


def _names(given: Sequence[Found]) -> list[Found]:
    """Return names as a list; raise for a single string."""
    if isinstance(given, str):
        raise InputError(f"{given!r} in place of a list", remedy=f'write ["{given}"]')
    return list(given)


def _own_weights(folder: Path, kind: Kind) -> Weights | None:
    """Return the weights in a model directory, or None if there are none for this kind of rules."""
    path = folder / WEIGHTS
    check_regular(path)
    if not path.is_file():
        return None
    weights = Weights.load(path)
    found = kind_of(weights)
    if found in (None, kind):
        return weights
    warnings.warn(
        f"{path}: these weights were tuned for {found} rules and are not used for {kind} rules "
        f"(tune for {kind} rules, too, and name the weights)",
        WithoutEffect,
        stacklevel=3,
    )
    return None


@dataclass(frozen=True)
class Phrase:
    """A rule as it was used."""

    span: tuple[int, int]
    """The position of the first covered word, and of the first word after them."""
    source: str
    target: str
    origin: str
    """`table`, `unknown`, `given` (by markup) or `glue`."""


@dataclass(frozen=True)
class Translation:
    """The translation of a line."""

    text: str
    source: str
    """The words of the line as the model saw them."""
    target: str
    """The words of the translation as the model wrote them."""
    score: float | None
    """The model's score; None if there is no translation."""
    pieces: int
    """The number of parts that the sentence was cut into."""
    seconds: float
    derivations: list[Derivation]
    """The best derivations, as many as requested."""

    def phrases(self, derivation: Derivation) -> list[Phrase]:
        """Return the rules of a derivation in words, in the order of the translation.

        Hierarchical rules come top-down. If a sentence was cut, its parts come in source order.
        """
        words = self.source.split()
        steps = derivation.steps
        if self.pieces > 1:
            steps = sorted(steps, key=lambda step: step.start)
        elif not any(None in step.source for step in steps):
            steps = steps[::-1]

        def shown(step: Step) -> Phrase:
            source = ("[X]" if place is None else words[place] for place in step.source)
            return Phrase(
                (step.start, step.end), " ".join(source), " ".join(step.target), step.origin
            )

        return [shown(step) for step in steps]


@dataclass(frozen=True)
class Forced:
    """Derivations of references."""

    pools: Pools
    """A list for each line."""
    reached: list[int]
    """The number of words of the reference that the translations cover."""
    whole: list[bool]
    """Whether the reference is a translation of the whole line."""


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
        self._source, self._target = (_PLAIN, _PLAIN) if tokenized else (model.source, model.target)
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
        _check_counts(threads=threads, details=details)

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
        _check_counts(threads=threads, details=details)
        changed = _changes(changes, len(words))

        def found() -> list[_core.Translation]:
            return self._core.translate(words, threads, details, markup, unique, changed)

        translations = _checked(found, words, first, file, report)
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
        _check_counts(threads=threads, k=k)
        changed = _changes(changes, len(words))

        def found() -> _core.Pools:
            return self._core.nbest(words, k, unique, threads, links, markup, changed)

        pools = _checked(found, words, first, file, report)
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
        _check_counts(threads=threads)

        def found() -> _core.Forests:
            return self._core.forests(words, threads, markup)

        forests = _checked(found, words, first, file, report)
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
        _check_counts(threads=threads, k=k, ways=ways)
        future = Ranked(ranked) is Ranked.ESTIMATE

        def found() -> _core.Pools:
            return self._core.bins(words, k, ways, future, threads, markup, wanted)

        core = _checked(found, words, first, file, report)
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
        _check_counts(threads=threads, k=k)

        def found() -> tuple[_core.Pools, list[int], list[bool]]:
            return self._core.force(words, wanted, k, threads, markup)

        core, reached, whole = _checked(found, words, first, file, report)
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
        _check_counts(threads=threads)
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
        _refuse_string(lines)
        texts = list(lines)
        return _checked(lambda: self.prepared(texts, markup), texts, first, file, report, BAD_TEXT)

    def prepared(self, lines: Iterable[str], markup: str = "none") -> list[str]:
        """Return lines as the model sees them, without changing tags.

        Raise for a string instead of lines, and for lines that are not text.
        """
        texts = _texts(lines)
        if markup == "none":
            return [self._source.prepare(line) for line in texts]
        return [marked(line, self._source, self._target, self._escaped) for line in texts]

    def prepared_references(self, texts: Iterable[str]) -> list[str]:
        """Return target text in words of the model. Raise as `prepared` does."""
        return self._references(texts)

    def _references(self, texts: Iterable[str]) -> list[str]:
        return [self._target.prepare(text) for text in _texts(texts)]

    def restored(self, words: str) -> str:
        """Return words of the model as text."""
        return self._target.restore(words)


def in_batches(
    lines: Iterable[str], pace: Pace, work: Callable[[list[str], int], list[Found]]
) -> Iterator[Found]:
    """Yield what `work` finds for each line, given a batch and the number of its first line.

    Raise for a string instead of lines.
    """
    _refuse_string(lines)
    return _in_batches(iter(lines), pace, work)


def _in_batches(
    lines: Iterator[str], pace: Pace, work: Callable[[list[str], int], list[Found]]
) -> Iterator[Found]:
    first = 1
    while batch := list(islice(lines, pace.size)):
        begun = perf_counter()
        found = work(batch, first)
        pace.took(len(batch), perf_counter() - begun)
        yield from found
        first += len(batch)


def _refuse_string(lines: Iterable[str]) -> None:
    if isinstance(lines, str):
        raise InputError(
            "a string in place of a list of lines",
            remedy="write [text] for one line, text.splitlines() for several",
        )


def _texts(lines: Iterable[str]) -> list[str]:
    """Return lines as a list; raise for a single string and for lines that are not text."""
    _refuse_string(lines)
    found = list(lines)
    for number, line in enumerate(found, 1):
        try:
            line.encode()
            refuse_lattice(line, "input", number)
        except UnicodeEncodeError as error:
            message = f"a lone surrogate, {line[error.start]!r}"
            remedy = "decode the text with its real encoding, without errors='surrogateescape'"
            raise InputError(message, "input", number, remedy) from None
        except AttributeError:
            message = f"{type(line).__name__} in place of a line"
            raise InputError(message, "input", number, "give lines as strings") from None
    return found


def _changes(
    changes: Sequence[Mapping[str, float]] | None, lines: int
) -> list[list[tuple[str, float]]] | None:
    """Return changes of weights as the core takes them; raise if they are of other lines."""
    if changes is None:
        return None
    if len(changes) != lines:
        raise InputError(
            f"changes of weights for {len(changes)} lines, but there are {lines}",
            remedy="give one mapping for each line, an empty one for no change",
        )
    for each in changes:
        Weights(each).check_finite()
    return [[*each.items()] for each in changes]


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        check_range(name, count, 0, maxsize)


def _checked(
    find: Callable[[], Found],
    words: list[str],
    first: int,
    file: str,
    report: Report | None,
    reason: str = BAD_MARKUP,
) -> Found:
    """Return the result of a search; a bad line raises, or is counted and left empty."""
    while True:
        try:
            return find()
        except InputError as error:
            if error.line is None:
                raise
            place = InputError(error.message, file, first + error.line - 1, error.remedy)
            (report or Report()).bad(reason, place)
            words[error.line - 1] = ""
