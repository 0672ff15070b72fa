"""Moses' configurations: what they ask for, and their text files converted once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import log
from pathlib import Path
from typing import NoReturn

from tunesmith import _core
from tunesmith._core import Lines
from tunesmith.conversion import cache_beside, cached
from tunesmith.errors import InputError
from tunesmith.features import Weights
from tunesmith.formats.weights import block_names, read_moses_ini
from tunesmith.training.rules import import_moses

PENALTIES = ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion")
LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM")
REORDERING = ("wbe-msd-bidirectional-fe", "wbe-msd-bidirectional-fe-allff")
SUPPORTED = (*PENALTIES, "PhraseDictionaryMemory", "LexicalReordering", "KENLM")
MARKUP = {"exclusive": "exclusive", "inclusive": "inclusive", "ignore": "ignore"}
SHORT = {
    "b": "beam-threshold",
    "cbp": "cube-pruning-pop-limit",
    "dl": "distortion-limit",
    "s": "stack",
    "xi": "xml-input",
}
# Sections that do not bear on which translation is best, or say what is so in any case.
WITHOUT_EFFECT = (
    "input-factors",
    "mapping",
    "threads",
    "v",
    "verbose",
    "feature",
    "weight",
    "weight-file",
    "n-best-list",
    "input-file",
    "output-search-graph",
)


@dataclass(frozen=True)
class Part:
    """A feature of a configuration that has a file."""

    label: str
    path: Path
    size: int
    """The number of its values."""


@dataclass(frozen=True)
class Config:
    """What a configuration asks for."""

    ini: Path
    phrases: Part
    lm: Part
    reordering: Part | None
    weights: Weights
    settings: dict[str, float]
    markup: str
    remarks: list[str]
    """What was not understood, and has no effect."""


@dataclass
class _Feature:
    kind: str
    label: str
    options: dict[str, str]
    line: int


@dataclass
class _Reader:
    ini: Path
    features: list[_Feature] = field(default_factory=list)
    sections: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The first line of each."""

    def read(self) -> None:
        section = ""
        for number, line in enumerate(Lines(self.ini), 1):
            text = line.split("#", 1)[0].strip()
            if heading := re.fullmatch(r"\[(.+)\]", text):
                section = SHORT.get(heading[1], heading[1])
                self.sections.setdefault(section, ("", number))
            elif text and section == "feature":
                self._feature(text, number)
            elif text and not self.sections.get(section, ("", 0))[0]:
                self.sections[section] = (text, number)

    def _feature(self, text: str, number: int) -> None:
        kind, *given = text.split()
        options = {}
        for option in given:
            key, equals, value = option.partition("=")
            if not equals:
                self.refuse(f"{option} is not name=value", number, "write name=value")
            options[key] = value
        count = sum(feature.kind == kind for feature in self.features)
        label = options.get("name", f"{kind}{count}")
        self.features.append(_Feature(kind, label, options, number))

    def refuse(self, message: str, line: int | None, remedy: str) -> NoReturn:
        raise InputError(message, str(self.ini), line, remedy)

    def one(self, kinds: Callable[[str], bool], what: str) -> _Feature | None:
        """Return the only feature of a kind."""
        found = [feature for feature in self.features if kinds(feature.kind)]
        if len(found) > 1:
            self.refuse(f"a second {what}", found[1].line, "keep one of them")
        return found[0] if found else None

    def part(self, feature: _Feature, size: int) -> Part:
        """Return a feature with its file; one that lacks its compression is found."""
        given = feature.options.get("path")
        if given is None:
            self.refuse(f"{feature.label} has no path=", feature.line, "name its file")
        path = self.ini.parent / given
        stem = path.with_suffix("") if path.suffix in (".minphr", ".minlexr") else path
        tried = [path, stem, *(stem.with_name(stem.name + end) for end in (".gz", ".zst"))]
        found = next((each for each in tried if each.is_file() and each.suffix[:4] != ".min"), None)
        if found is None:
            self.refuse(
                f"no text file at {path}, which {feature.label} names",
                feature.line,
                "give the text file that it was made from, plain or gzipped",
            )
        count = feature.options.get("num-features", str(size))
        if not count.isdecimal():
            self.refuse(f"num-features={count}", feature.line, "give a number")
        return Part(feature.label, found, int(count))

    def number(self, section: str, default: float) -> float:
        """Return the number that stands in a section."""
        text, line = self.sections.get(section, (str(default), 0))
        try:
            return float(text)
        except ValueError:
            self.refuse(f"[{section}] {text!r} is not a number", line, "give a number")


def read_config(ini: Path) -> Config:
    """Return what a configuration of Moses asks for.

    Paths are relative to it. Refuses features and kinds of search that are not supported, features
    without weights, and files that are not there.
    """
    reader = _Reader(ini)
    reader.read()
    for feature in reader.features:
        _supported(reader, feature)
    phrases = reader.one(lambda kind: kind.startswith("PhraseDictionary"), "phrase table")
    lm = reader.one(lambda kind: kind in LANGUAGE_MODELS, "language model")
    if phrases is None or lm is None:
        reader.refuse(
            "no phrase table" if phrases is None else "no language model",
            None,
            "describe it in [feature], as PhraseDictionaryMemory or KENLM",
        )
    reordering = reader.one(lambda kind: kind == "LexicalReordering", "reordering model")
    parts = (
        reader.part(phrases, 4),
        reader.part(lm, 1),
        None if reordering is None else reader.part(reordering, 6),
    )
    weights = _weights(reader, {part.label: part.size for part in parts if part is not None})
    xml = reader.sections.get("xml-input", ("", 0))[0]
    used = {*WITHOUT_EFFECT, *_SETTINGS, "search-algorithm", "ttable-limit", "xml-input"}
    return Config(
        ini,
        *parts,
        weights,
        _settings(reader, phrases),
        MARKUP.get(xml, "none"),
        [
            f"{ini}:{line}: [{name}] is not known here and has no effect"
            for name, (_, line) in reader.sections.items()
            if name not in used
        ],
    )


def _supported(reader: _Reader, feature: _Feature) -> None:
    kind, label = feature.kind, feature.label
    if kind in PENALTIES:
        if label != f"{kind}0":
            reader.refuse(f"{kind} with the name {label}", feature.line, f"call it {kind}0")
    elif kind == "LexicalReordering":
        model = feature.options.get("type", "")
        if model not in REORDERING:
            remedy = f"those supported are {' and '.join(REORDERING)}"
            reader.refuse(f"{label} has the type {model!r}", feature.line, remedy)
    elif not kind.startswith("PhraseDictionary") and kind not in LANGUAGE_MODELS:
        reader.refuse(
            f"the feature {kind} is not supported",
            feature.line,
            f"take it and its weight out; those supported are {', '.join(SUPPORTED)}",
        )


def _weights(reader: _Reader, sizes: dict[str, int]) -> Weights:
    given = {"UnknownWordPenalty0": 1.0, **read_moses_ini(reader.ini)}
    for feature in reader.features:
        names = block_names(feature.label, sizes.get(feature.label, 1))
        missing = [name for name in names if name not in given]
        if missing:
            reader.refuse(
                f"{feature.label} has {len(names)} values and {len(names) - len(missing)} weights",
                feature.line,
                f"write {feature.label}= and {len(names)} numbers under [weight]",
            )
    return Weights(given)


# Moses' sections, our settings, Moses' defaults.
_SETTINGS = {
    "stack": ("stack", 200.0),
    "cube-pruning-pop-limit": ("pop_limit", 1000.0),
    "distortion-limit": ("distortion_limit", 6.0),
    "max-phrase-length": ("phrase_limit", 20.0),
    "beam-threshold": ("threshold", 1e-5),
}


def _settings(reader: _Reader, phrases: _Feature) -> dict[str, float]:
    settings = {
        name: reader.number(section, default) for section, (name, default) in _SETTINGS.items()
    }
    # A ratio of probabilities there, a difference of logarithms here; 0 keeps everything.
    ratio = settings["threshold"]
    settings["threshold"] = -log(ratio) if 0 < ratio < 1 else 1e9
    algorithm = reader.number("search-algorithm", 0)
    if algorithm not in (0, 1):
        line = reader.sections["search-algorithm"][1]
        reader.refuse(f"search algorithm {algorithm:g}", line, "use 0 (stacks) or 1 (cube pruning)")
    if algorithm == 0:
        settings["pop_limit"] = 0
    limit = phrases.options.get("table-limit")
    if limit is not None and not limit.isdecimal():
        reader.refuse(f"table-limit={limit}", phrases.line, "give a number")
    settings["table_limit"] = reader.number("ttable-limit", 20) if limit is None else float(limit)
    return settings


def converted(
    config: Config, cache: Path | None, tell: Callable[[str], object]
) -> tuple[Path, Path]:
    """Return the phrase table and the language model in our form, made when first asked for.

    They lie in `cache`, or next to the configuration, or in the user's cache if that folder is not
    to be written to, and are known by path, size and time of the text files.
    """
    folder = cache or cache_beside(config.ini.parent)
    phrases, lm = config.phrases.path, config.lm.path
    orders = None if config.reordering is None else config.reordering.path
    texts = [phrases] if orders is None else [phrases, orders]
    table = cached(folder, texts, ".rules", partial(import_moses, phrases, reordering=orders), tell)
    return table, cached(
        folder, [lm], ".tlm", lambda out: _core.LanguageModel.load(lm).save(out), tell
    )
