"""Translation: a model from its files, weights put on it, text in and text out.

>>> model = Model.load("model")  # doctest: +SKIP
>>> translator = model.translator()  # doctest: +SKIP
>>> [each.text for each in translator.translate(["Das ist ein Haus."])]  # doctest: +SKIP
['This is a house.']
>>> pools = translator.nbest(["Das ist ein Haus."], k=100)  # doctest: +SKIP
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log
from os import PathLike
from pathlib import Path
from typing import Literal, Self, TypeVar
from xml.sax.saxutils import escape, unescape

from tunesmith import _core, moses
from tunesmith._core import Derivation, Step
from tunesmith.conversion import cache_beside, cached, from_cache
from tunesmith.errors import InputError
from tunesmith.features import Weights
from tunesmith.formats.base import Report
from tunesmith.spaces import Bins, Forests, Pools
from tunesmith.templates import SETS, TEMPLATES, Template, template_of
from tunesmith.training.model import (
    HIERO,
    LM,
    PHRASES,
    check_templates,
    read_model,
    text_sides,
)
from tunesmith.training.rules import import_cdec
from tunesmith.training.text import TextSide

Kind = Literal["phrase", "hiero"]
Found = TypeVar("Found")
KINDS: dict[Kind, tuple[str, Callable[..., _core.Decoder]]] = {
    "phrase": (PHRASES, _core.Decoder.phrase),
    "hiero": (HIERO, _core.Decoder.hiero),
}
MARKUP = ("none", "exclusive", "inclusive", "ignore")
WEIGHTS = "weights.toml"
"""Weights in a model directory: those that count when no others are given."""
BATCH = 100
"""Lines that are translated at a time."""
MAX_WORDS = 200
GIVEN = "given"
BAD_MARKUP = "bad markup"

# A > in quotes is part of a value.
_TAG = re.compile(r"""(<(?:[^>"']|"[^"]*"|'[^']*')*>)""")
_GIVEN = re.compile(r"""(\b(?:translation|english)\s*=\s*)(["'])(.*?)\2""")
_ENTITY = re.compile(r"""(\bentity\s*=\s*)(["'])(.*?)\2""")
_QUOTE = {"&quot;": '"'}
_PLAIN = TextSide()

# Where tuning starts: Moses' weights for phrases, cdec's for hierarchical rules, by the ends of
# names. Columns of cdec are costs.
_UNTUNED: dict[Kind, dict[str, float]] = {
    "phrase": {
        "lm": 0.5,
        "|e)": 0.2,
        "|f)": 0.2,
        "words": 1.0,
        "phrases": 0.2,
        "unknown": -100.0,
        "distortion": 0.3,
        "monotone": 0.3,
        "swap": 0.3,
        "discontinuous": 0.3,
    },
    "hiero": {
        "lm": 0.1 / log(10),
        "lm-unknown": -1.0,
        "EgivenFCoherent": -0.1,
        "SampleCountF": -0.1,
        "CountEF": 0.1,
        "MaxLexFgivenE": -0.1,
        "MaxLexEgivenF": -0.1,
        "IsSingletonF": -0.01,
        "IsSingletonFE": -0.01,
        "glue": 0.01,
        "unknown": -0.1,
    },
}


def untuned(names: Iterable[str], kind: Kind = "phrase") -> Weights:
    """Return sensible weights for a model of which nothing is known but its features.

    >>> dict(untuned(["lm", "p(e|f)", "words", "count"]))
    {'lm': 0.5, 'p(e|f)': 0.2, 'words': 1.0, 'count': 0.0}
    """
    ends = _UNTUNED[kind]
    return Weights(
        {name: next((ends[end] for end in ends if name.endswith(end)), 0.0) for name in names}
    )


def templates_of(weights: Weights) -> list[str]:
    """Return the templates whose features the weights were tuned with.

    Where nobody wrote them down the names of the features tell.

    >>> templates_of(Weights({"lm": 0.5, "PT:das~the": 1.0, "AL:das~the": -0.1}))
    ['pairs', 'rule-id']
    """
    found = weights.meta.get("templates")
    if isinstance(found, list):
        return [str(name) for name in found]
    heads = {name.partition(":")[0] for name in weights if ":" in name}
    known = {each.name for each in TEMPLATES}
    return sorted({template_of(f"{head}:") for head in heads} & known)


@dataclass(frozen=True)
class Model:
    """What translates, without weights of your own: rules, language model, how text is prepared."""

    decoder: _core.Decoder
    weights: Weights
    tuned: bool = True
    """Whether somebody chose the weights."""
    source: TextSide = _PLAIN
    target: TextSide = _PLAIN
    settings: Mapping[str, float] = field(default_factory=dict)
    markup: str = "none"
    escaped: bool = True
    """Whether `&lt;` in marked text is a <; models of Moses have words that are written so."""
    templates: Sequence[str] | None = ()
    """Templates and sets that are turned on; `None` with some of your own, whose features may have
    any name."""

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        kind: Kind | None = None,
        templates: Sequence[Template] = (),
        named: Sequence[str] = (),
    ) -> Self:
        """Load a model directory of `tunesmith train`; `templates` are some of your own, `named`
        are turned on beside those that the model names itself.

        Of a model with phrases and hierarchical rules the phrases are taken unless `kind` says
        otherwise. Weights are those of `weights.toml`, if it is there. Refuses a folder without a
        whole model, and a kind that it does not have.
        """
        folder = Path(folder)
        told = read_model(folder)
        held = [name for name, (table, _) in KINDS.items() if table in told["files"]]
        chosen = kind or next(iter(held), None)
        if chosen not in held:
            raise InputError(
                f"the model has no rules of kind {chosen}",
                str(folder),
                remedy=f"use {' or '.join(held)}, or train with --kind both",
            )
        table, make = KINDS[chosen]
        given = folder / WEIGHTS
        tuned = given.is_file()
        weights = Weights.load(given) if tuned else None
        tuned_with = [] if weights is None else templates_of(weights)
        check_templates(tuned_with, str(given))
        own = told.get("features", {}).get("templates", [])
        known = list(dict.fromkeys([*own, *named, *tuned_with]))
        decoder = make(
            folder / table,
            folder / LM,
            templates=known,
            folder=folder,
            own=list(templates),
        )
        source, target = text_sides(folder)
        if weights is None:
            weights = untuned(decoder.dense, chosen)
        return cls(decoder, weights, tuned, source, target, templates=None if templates else known)

    @classmethod
    def of_moses(
        cls,
        ini: str | PathLike[str],
        cache: str | PathLike[str] | None = None,
        tell: Callable[[str], object] = lambda message: None,
    ) -> Self:
        """Load what a Moses configuration describes, with Moses' names, weights and settings.

        Its text files are converted once, into `cache`, or a folder next to the configuration, or
        the user's cache where that cannot be written to; `tell` hears of it. Refuses, by name and
        line, features that are not supported.
        """
        config = moses.read_config(Path(ini))
        for line in config.remarks:
            tell(line)
        table, lm = moses.converted(config, None if cache is None else Path(cache), tell)
        labels = (config.lm.label, config.phrases.label, config.phrases.size)
        reordering = config.reordering.label if config.reordering else None
        with from_cache(table, lm):
            moses.check_scores(config, table)
            decoder = _core.Decoder.phrase(table, lm, moses=(*labels, reordering))
        return cls(
            decoder,
            config.weights,
            settings=config.settings,
            markup=config.markup,
            escaped=False,
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

        Text files are converted once, as those of Moses are.
        """
        rules, model = Path(grammar), Path(lm)
        folder = cache_beside(rules.parent) if cache is None else Path(cache)

        def convert(out: Path) -> None:
            if not import_cdec(rules, out).entries:
                raise InputError(
                    "the grammar has no rules",
                    str(rules),
                    remedy="give rules such as [X] ||| the [X,1] ||| das [X,1] ||| Count=1",
                )

        table = cached(folder, [rules], ".rules", convert, tell)
        made = [table]
        if model.suffix != ".tlm":
            text = model
            model = cached(
                folder, [text], ".tlm", lambda out: _core.LanguageModel.load(text).save(out), tell
            )
            made.append(model)
        with from_cache(*made):
            decoder = _core.Decoder.hiero(table, model, cdec=True)
        return cls(decoder, Weights(weights))

    def translator(
        self,
        weights: Mapping[str, float] | None = None,
        settings: Mapping[str, float] | None = None,
        *,
        tokenized: bool = False,
    ) -> Translator:
        """Return the model with weights (its own if none are given) and settings of the search.

        With `tokenized`, words go in and come out as the model has them; without, text is prepared
        and restored as at training. Refuses weights that are not finite, weights none of which is
        for this model, and settings that it does not have.
        """
        given = self.weights if weights is None else weights
        chosen = given if isinstance(given, Weights) else Weights(given)
        chosen.check_finite()
        names = self.decoder.dense
        if not any(chosen.get(name) for name in names):
            known = any(name in chosen for name in names)
            raise InputError(
                "all weights for features of this model are zero"
                if known
                else "no weight is for a feature of this model",
                chosen.file,
                remedy=f"its features are {', '.join(names)}",
            )
        search = {**self.settings, **(settings or {})}
        if search.get("max_words", MAX_WORDS) < 2:
            # The core cuts no shorter pieces.
            raise InputError(
                f"max_words cannot be {search['max_words']:g}",
                remedy="give a whole number that is at least 2",
            )
        return Translator(self, chosen, search, tokenized)

    def unknown(self, weights: Mapping[str, float]) -> list[str]:
        """Return the names of weights that have no effect: no feature of the model can have them.

        Those of templates that are turned on are all taken for features.
        """
        if self.templates is None:
            return []
        sets = {known.name: known.templates for known in SETS}
        on = {each for name in self.templates for each in sets.get(name, [name])}
        dense = {*self.decoder.dense, GIVEN}
        heads = {
            name: name.partition(":")[0]
            for name, weight in weights.items()
            if weight and name not in dense
        }
        # There are millions of names and few ways to begin one.
        off = {head for head in set(heads.values()) if template_of(f"{head}:") not in on}
        return [name for name, head in heads.items() if head in off]

    def following(
        self, learner: _core.Learner, settings: Mapping[str, float] | None = None
    ) -> Translator:
        """Return the model with the weights that a learner has now; words go in and come out.

        Only weights that have changed since the last call are handed over.
        """
        return Translator(self, learner, {**self.settings, **(settings or {})}, tokenized=True)


@dataclass(frozen=True)
class Phrase:
    """A rule as it was used."""

    span: tuple[int, int]
    """The first of the words that it covers, and the first behind them."""
    source: str
    target: str
    origin: str
    """`table`, `unknown`, `given` (by markup) or `glue`."""


@dataclass(frozen=True)
class Translation:
    """What came out for a line."""

    text: str
    source: str
    """The words of the line as the model saw them."""
    target: str
    """The words of the translation as the model wrote them."""
    score: float | None
    """The model's; none if there is no translation."""
    pieces: int
    """How many the sentence was cut into."""
    seconds: float
    derivations: list[Derivation]
    """The best ways to translations, as many as were asked for."""

    def phrases(self, derivation: Derivation) -> list[Phrase]:
        """Return the rules of a derivation in words, in the order of the translation.

        Hierarchical rules come from the top down, rules of a sentence that was cut in the order of
        the source.
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
    """How many words of the reference its translations have."""
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
        """Longer sentences are cut."""
        self.dense = model.decoder.dense
        """Features that the model always has."""
        self._escaped = model.escaped
        self._source, self._target = (_PLAIN, _PLAIN) if tokenized else (model.source, model.target)
        # What the user gives by markup has its own probability, which is not to be weighted.
        fixed = {GIVEN: 1.0}
        if isinstance(weights, _core.Learner):
            self.weights = Weights(fixed)
            self._core = weights.translator(model.decoder, [*chosen.items()], [*fixed.items()])
        else:
            self.weights = weights.replaced(fixed)
            self._core = model.decoder.translator([*self.weights.items()], [*chosen.items()])

    def translate(
        self, lines: Iterable[str], *, threads: int = 0, details: int = 0, markup: str = "none"
    ) -> Iterator[Translation]:
        """Yield the translation of each line, in order, an empty one for an empty line.

        Lines are taken in batches, so that they need not fit into memory. With `details`, as many
        of the best derivations come along. Refuses bad `markup` with the number of the line.
        """
        taken = iter(lines)
        first = 1
        while batch := list(islice(taken, BATCH)):
            yield from self.batch(
                batch, threads=threads, details=details, markup=markup, first=first
            )
            first += len(batch)

    def batch(
        self,
        lines: Sequence[str],
        *,
        threads: int = 0,
        details: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> list[Translation]:
        """Return the translations of lines, all at once.

        `first` and `file` say where errors are; `report` counts bad lines that are to be skipped.
        """
        words = self.prepared(lines, markup)

        def found() -> list[_core.Translation]:
            return self._core.translate(words, threads, details, markup)

        translations = _checked(found, words, first, file, report)
        return [
            Translation(
                self.restored(each.text),
                _bare(line, markup),
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
    ) -> Pools:
        """Return the `k` best translations of each line, in the model's words, with all features.

        With `unique` each string comes once, with its best derivation; with `links` word alignments
        stand behind the scores.
        """
        words = self.prepared(lines, markup)

        def found() -> _core.Pools:
            return self._core.nbest(words, k, unique, threads, links, markup)

        pools = _checked(found, words, first, file, report)
        return Pools(pools, sources=[_bare(each, markup) for each in words])

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
        """Return everything that was found for each line, in the model's words."""
        words = self.prepared(lines, markup)

        def found() -> _core.Forests:
            return self._core.forests(words, threads, markup)

        forests = _checked(found, words, first, file, report)
        return Forests(forests, sources=[_bare(each, markup) for each in words])

    def bins(
        self,
        lines: Sequence[str],
        *,
        potential: bool = True,
        forced: Sequence[str] | None = None,
        threads: int = 0,
        markup: str = "none",
        first: int = 1,
        file: str = "input",
        report: Report | None = None,
    ) -> Bins:
        """Return the partial translations that the beam kept, best estimate first.

        There is a list for each line and number of covered words. If they are `potential` the best
        translation of the rest stands behind each. With `forced`, a reference for each line, only
        what leads to the references, or to the beginning of one, is there, and all of it. Refuses
        hierarchical models.
        """
        words = self.prepared(lines, markup)
        wanted = None if forced is None else [self._target.prepare(each) for each in forced]

        def found() -> tuple[_core.Pools, list[int], list[int]]:
            return self._core.bins(words, potential, threads, markup, wanted)

        core, of, covered = _checked(found, words, first, file, report)
        bare = [_bare(each, markup) for each in words]
        return Bins(core, of, covered, sources=[bare[line] for line in of])

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

        Where there are none they are derivations of the longest part of the reference that can be
        reached from its beginning. Only the distortion limit prunes: without one, long sentences
        take very long. Refuses hierarchical models.
        """
        words = self.prepared(lines, markup)
        wanted = [self._target.prepare(each) for each in references]

        def found() -> tuple[_core.Pools, list[int], list[bool]]:
            return self._core.force(words, wanted, k, threads, markup)

        core, reached, whole = _checked(found, words, first, file, report)
        pools = Pools(core, sources=[_bare(each, markup) for each in words])
        return Forced(pools, reached, whole)

    def features(self, derivation: Derivation) -> dict[str, float]:
        """Return the features of a derivation; those that the model always has are all there."""
        return {**dict.fromkeys(self.dense, 0.0), **dict(derivation.features)}

    def contributions(self, derivation: Derivation) -> dict[str, float]:
        """Return what each feature adds to the score, the largest first."""
        each = {name: value * self.weights.get(name, 0.0) for name, value in derivation.features}
        return dict(sorted(each.items(), key=lambda item: -abs(item[1])))

    def prepared(self, lines: Iterable[str], markup: str = "none") -> list[str]:
        """Return lines as the model sees them; what is inside tags is left as it is."""
        if markup == "none":
            return [self._source.prepare(line) for line in lines]
        return [self._marked(line) for line in lines]

    def restored(self, words: str) -> str:
        """Return the model's words as text."""
        return self._target.restore(words)

    def _marked(self, line: str) -> str:
        """Prepare what stands between tags, and translations inside them, which are text too.

        Placeholders are words of the model and stay as they are.
        """

        def prepared(text: str, side: TextSide) -> str:
            plain = unescape(text, _QUOTE) if self._escaped else text
            return escape(side.prepare(plain), {char: name for name, char in _QUOTE.items()})

        def given(found: re.Match[str]) -> str:
            each = (prepared(text, self._target) for text in found[3].split("||"))
            return f"{found[1]}{found[2]}{'||'.join(each)}{found[2]}"

        # Every other part is a tag.
        texts, tags = (_TAG.split(line)[at::2] for at in (0, 1))
        held = [False, *(_ENTITY.search(tag) is not None for tag in tags)]
        for at, text in enumerate(texts):
            # A tag that is not closed is refused, not escaped.
            if not held[at] and "<" not in text:
                texts[at] = prepared(text, self._source)
        tags = [(_ENTITY if held[at] else _GIVEN).sub(given, tag) for at, tag in enumerate(tags, 1)]
        return " ".join(part for pair in zip(texts, [*tags, ""], strict=True) for part in pair)


def _bare(line: str, markup: str) -> str:
    return line if markup == "none" else " ".join(unescape(_TAG.sub(" ", line), _QUOTE).split())


def _checked(
    find: Callable[[], Found], words: list[str], first: int, file: str, report: Report | None
) -> Found:
    """Return what is found; a bad line raises with its place, or is counted and made empty."""
    while True:
        try:
            return find()
        except InputError as error:
            if error.line is None:
                raise
            place = InputError(error.message, file, first + error.line - 1, error.remedy)
            (report or Report()).bad(BAD_MARKUP, place)
            words[error.line - 1] = ""
