"""Translation: load a model, give it weights, translate text.

>>> model = Model.load("model")  # doctest: +SKIP
>>> translator = model.translator()  # doctest: +SKIP
>>> [each.text for each in translator.translate(["Das ist ein Haus."])]  # doctest: +SKIP
['This is a house.']
>>> pools = translator.nbest(["Das ist ein Haus."], k=100)  # doctest: +SKIP
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from tunesmith import _core
from tunesmith.decode import moses
from tunesmith.decode.conversion import cached, from_cache
from tunesmith.decode.model_weights import (
    Kind,
    kind_of,
    own_weights,
    templates_of,
    untuned,
    without_effect,
)
from tunesmith.decode.templates import Template, members_of, template_of
from tunesmith.decode.translator import GIVEN, PLAIN, Translator
from tunesmith.engines.delivery import Files
from tunesmith.errors import InputError, WithoutEffect
from tunesmith.files.cache import user_cache
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


@dataclass(frozen=True, repr=False)
class Model:
    """A model for translation: rules, language model, preparation of text, default weights."""

    decoder: _core.Decoder
    weights: Weights
    tuned: bool = True
    """Whether the weights were tuned or given, not defaults."""
    kind: Kind | None = None
    """The kind of rules of a model directory."""
    source: TextSide = PLAIN
    target: TextSide = PLAIN
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
        weights = own_weights(folder, chosen)
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
        on = members_of(self.templates)
        more = tuple(name for name in dict.fromkeys(names) if not members_of([name]) <= on)
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
        if self.make is None or members_of(needed) == members_of(self.templates):
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
        on, dense = members_of(self.templates), {*self.decoder.dense, GIVEN}
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


def _names(given: Sequence[Found]) -> list[Found]:
    """Return names as a list; raise for a single string."""
    if isinstance(given, str):
        raise InputError(f"{given!r} in place of a list", remedy=f'write ["{given}"]')
    return list(given)
