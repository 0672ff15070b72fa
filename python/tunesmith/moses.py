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
from tunesmith._core import Lines, RuleTable
from tunesmith.conversion import cache_beside, cached
from tunesmith.errors import InputError
from tunesmith.features import Weights
from tunesmith.formats.base import parse_number
from tunesmith.formats.weights import block_names, read_moses_ini
from tunesmith.training.rules import import_moses

PENALTIES = ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion")
LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM")
REORDERING = ("wbe-msd-bidirectional-fe", "wbe-msd-bidirectional-fe-allff")
PHRASE_SCORES, ORIENTATIONS = 4, 6
SUPPORTED = (*PENALTIES, "PhraseDictionaryMemory", "LexicalReordering", "KENLM")
MARKUP = {
    "exclusive": "exclusive",
    "inclusive": "inclusive",
    "ignore": "ignore",
    "pass-through": "none",
}
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
    line: int
    """Where the configuration has it."""


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
    weights: list[tuple[str, int, int]] = field(default_factory=list)
    """Label, number of weights, line."""

    def read(self) -> None:
        section = ""
        for number, line in enumerate(Lines(self.ini), 1):
            text = line.split("#", 1)[0].strip()
            if heading := re.fullmatch(r"\[(.+)\]", text):
                section = SHORT.get(heading[1], heading[1])
                self.sections.setdefault(section, ("", number))
            elif text and section == "feature":
                self._feature(text, number)
            elif text and section == "weight":
                label, *values = text.split()
                self.weights.append((label.removesuffix("="), len(values), number))
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

    def part(self, feature: _Feature, size: int | None) -> Part:
        """Return a feature with its file; one that lacks its compression is found.

        Without a size the configuration may give any.
        """
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
        count = feature.options.get("num-features", str(size or PHRASE_SCORES))
        if not count.isdecimal():
            self.refuse(f"num-features={count}", feature.line, "give a number")
        if size not in (None, int(count)):
            message = f"num-features={count}, but {feature.kind} has {size}"
            self.refuse(message, feature.line, f"write num-features={size}")
        return Part(feature.label, found, int(count), feature.line)

    def number(self, section: str, default: float) -> float:
        """Return the number that stands in a section; refuse one that means nothing there."""
        text, line = self.sections.get(section, (str(default), 0))
        value = parse_number(text)
        whole = section != "beam-threshold"
        least = -1 if section == "distortion-limit" else 0
        if value is None or not value >= least or (whole and not value.is_integer()):
            wanted = f"a {'whole ' if whole else ''}number of at least {least}"
            remedy = f"correct it, or take the section out for Moses' {default:g}"
            self.refuse(f"[{section}] {text!r} is not {wanted}", line, remedy)
        return value

    def markup(self) -> str:
        """Return what tags in the text mean."""
        text, line = self.sections.get("xml-input", ("", 0))
        if text and text not in MARKUP:
            self.refuse(f"[xml-input] {text!r}", line, f"use one of {', '.join(MARKUP)}")
        return MARKUP.get(text, "none")


def read_config(ini: Path) -> Config:
    """Return what a configuration of Moses asks for.

    Paths are relative to it. Refuses features and kinds of search that are not supported, features
    without weights, weights without features, and files that are not there.
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
        reader.part(phrases, None),
        reader.part(lm, 1),
        None if reordering is None else reader.part(reordering, ORIENTATIONS),
    )
    weights = _weights(reader, {part.label: part.size for part in parts if part is not None})
    used = {*WITHOUT_EFFECT, *_SETTINGS, "search-algorithm", "ttable-limit", "xml-input"}
    return Config(
        ini,
        *parts,
        weights,
        _settings(reader, phrases),
        reader.markup(),
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
    labels = [feature.label for feature in reader.features]
    names = {label: block_names(label, sizes.get(label, 1)) for label in labels}

    def miscounted(label: str, count: int, line: int) -> NoReturn:
        size = len(names[label])
        message = f"{label} has {size} values and {count} weights"
        reader.refuse(message, line, f"write {label}= and {size} numbers under [weight]")

    single = {name for block in names.values() for name in block}
    for label, count, line in reader.weights:
        if label in names and count != len(names[label]):
            miscounted(label, count, line)
        if label not in names and label not in single:
            remedy = f"take it out, or correct it; there are {', '.join(labels)}"
            reader.refuse(f"no line of [feature] has the name {label}", line, remedy)
    for feature in reader.features:
        found = [name for name in names[feature.label] if name in given]
        if len(found) < len(names[feature.label]):
            miscounted(feature.label, len(found), feature.line)
    return Weights(given, file=str(reader.ini))


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
    table = cached(folder, texts, ".rules", partial(_import, phrases, orders), tell)
    return table, cached(
        folder, [lm], ".tlm", lambda out: _core.LanguageModel.load(lm).save(out), tell
    )


def _import(phrases: Path, orders: Path | None, out: Path) -> None:
    if import_moses(phrases, out, orders).entries == 0:
        raise InputError(
            "the phrase table is empty",
            str(phrases),
            remedy="give the table that was trained, or train it again",
        )


def check_scores(config: Config, table: Path) -> None:
    """Refuse a phrase table with other scores than the configuration says."""
    columns = RuleTable(table, verify=False).columns
    found = sum(scale == "probability" for _, scale in columns)
    found -= 0 if config.reordering is None else ORIENTATIONS
    if found != config.phrases.size:
        raise InputError(
            f"num-features={config.phrases.size}, but {config.phrases.path} has {found} scores",
            str(config.ini),
            config.phrases.line,
            f"write num-features={found}, and as many weights",
        )
