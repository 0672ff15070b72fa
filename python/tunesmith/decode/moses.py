"""Configurations of Moses: read, checked, and their text files converted once."""

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
from tunesmith.decode.conversion import cached
from tunesmith.decode.moses_sections import (
    HIERARCHICAL,
    LANGUAGE_MODELS,
    OFF,
    ON,
    OPTION_REMEDIES,
    OPTIONS,
    PENALTIES,
    SECTIONS,
    SHORT,
    SUPPORTED,
    TABLES,
)
from tunesmith.errors import InputError, check_regular
from tunesmith.files.cache import user_cache
from tunesmith.formats.base import parse_number
from tunesmith.formats.weights import block_names, read_moses_ini
from tunesmith.training.rules import import_moses
from tunesmith.weights import Weights

PHRASE_SCORES, ORIENTATIONS = 4, 6
DIGITS = 9
"""Maximum number of digits of a number in a configuration."""
MARKUP = {
    "exclusive": "exclusive",
    "inclusive": "inclusive",
    "ignore": "ignore",
    "pass-through": "none",
}
SEARCHES = {0: "stacks", 1: "cube pruning"}


@dataclass(frozen=True)
class Part:
    """A feature of a configuration with its file."""

    label: str
    path: Path
    size: int
    """The number of its values."""
    line: int
    """Its line in the configuration."""


@dataclass(frozen=True)
class Config:
    """The content of a configuration."""

    ini: Path
    phrases: Part
    lm: Part
    reordering: Part | None
    weights: Weights
    settings: dict[str, float]
    markup: str
    absent: dict[str, float]
    """Weights of features that our decoder always has and the configuration lacks."""
    fixed: dict[str, float]
    """Weights that tuning must not change: those above, and those with tuneable=false."""


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
    sections: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Values and their lines."""
    weights: list[tuple[str, int, int]] = field(default_factory=list)
    """Label, number of weights, line."""

    def read(self) -> None:
        section = ""
        for number, line in enumerate(Lines(self.ini), 1):
            text = line.split("#", 1)[0].strip()
            if heading := re.match(r"\[([^\]]*)\]", text):
                section = heading[1]
            elif text:
                # As in Moses, a section without a value is ignored.
                self.sections.setdefault(section, []).append((text, number))
                if section == "feature":
                    self._feature(text, number)
                elif section == "weight":
                    label, *values = text.split()
                    self.weights.append((label.removesuffix("="), len(values), number))

    def _feature(self, text: str, number: int) -> None:
        kind, *given = text.split()
        options = {}
        for option in given:
            key, equals, value = option.partition("=")
            if not equals:
                self.refuse(f"{option} is not name=value", number, "write name=value")
            if key in options:
                self.refuse(f"{key}= is given twice", number, "keep one of the two")
            options[key] = value
        count = sum(feature.kind == kind for feature in self.features)
        label = options.get("name", f"{kind}{count}")
        self.features.append(_Feature(kind, label, options, number))

    def check_sections(self) -> None:
        """Raise for unsupported sections that would change the output, and for unknown ones."""
        for name, values in self.sections.items():
            text, line = values[0]
            if not name:
                self.refuse(f"{text!r} stands before any section", line, "write its [section]")
            known = SECTIONS.get(SHORT.get(name, name))
            if known is None:
                self.refuse(
                    f"[{name}] is not a section of Moses", line, "correct its name, or take it out"
                )
            if name in SHORT:
                if known.use != "ignored":
                    self.refuse(
                        f"[{name}] has no effect in a file: it is an option of the command line",
                        line,
                        f"write [{SHORT[name]}], or take it out",
                    )
            elif known.use == "refused":
                for text, line in values:
                    if " ".join(text.lower().split()) not in known.harmless:
                        message = f"[{name}] {text} is not supported"
                        self.refuse(message, line, known.remedy)

    def is_on(self, section: str) -> bool:
        """Return whether a switch is on; raise if its value is neither true nor false."""
        for text, line in self.sections.get(section, [])[:1]:
            if text.lower() not in ON | OFF:
                self.refuse(f"[{section}] {text!r}", line, "write true or false")
            return text.lower() in ON
        return False

    def check_mapping(self, table: str) -> None:
        """Raise for steps other than one translation with the table."""
        steps = self.sections.get("mapping", [])
        for place, (text, line) in enumerate(steps):
            if place or " ".join(text.split()) not in ("0 T 0", "T 0", f"0 {table}"):
                self.refuse(
                    f"[mapping] {text} is not supported",
                    line,
                    "keep one step, 0 T 0: one table translates all words",
                )

    def refuse(self, message: str, line: int | None, remedy: str) -> NoReturn:
        raise InputError(message, str(self.ini), line, remedy)

    def one(self, kinds: tuple[str, ...], what: str, instead: str) -> _Feature | None:
        """Return the only feature of some kinds."""
        found = [feature for feature in self.features if feature.kind in kinds]
        if len(found) > 1:
            remedy = f"take this line and the weights of {found[1].label} out, {instead}"
            self.refuse(f"a second {what}", found[1].line, remedy)
        return found[0] if found else None

    def count(self, feature: _Feature, key: str, default: int) -> int:
        """Return a number among the options of a feature."""
        text = feature.options.get(key, str(default))
        if not text.isdecimal() or len(text) > DIGITS:
            remedy = f"give a number of at most {DIGITS} digits"
            self.refuse(f"{key}={text}", feature.line, remedy)
        return int(text)

    def part(self, feature: _Feature, size: int | None) -> Part:
        """Return a feature with its file, which may have a compression suffix.

        Without a size, the number of values is the number of scores in the table.
        """
        given = feature.options.get("path")
        if given is None:
            self.refuse(f"{feature.label} has no path=", feature.line, "name its file")
        path = self.ini.parent / given
        stem = path.with_suffix("") if path.suffix in (".minphr", ".minlexr") else path
        tried = [path, stem, *(stem.with_name(stem.name + end) for end in (".gz", ".zst"))]
        for each in tried:
            check_regular(each)
        found = next((each for each in tried if each.is_file() and each.suffix[:4] != ".min"), None)
        if found is None:
            self.refuse(
                f"no text file at {path}, which {feature.label} names",
                feature.line,
                "give the text file that it was made from, plain or gzipped",
            )
        count = self.count(feature, "num-features", size or PHRASE_SCORES)
        if size is None:
            size = _scores(found)
            if count != size:
                message = f"num-features={count}, but {found} has {size} scores"
                remedy = f"write num-features={size}, and as many weights"
                self.refuse(message, feature.line, remedy)
        if count != size:
            message = f"num-features={count}, but {feature.kind} has {size}"
            self.refuse(message, feature.line, f"write num-features={size}")
        return Part(feature.label, found, count, feature.line)

    def number(self, section: str, default: float) -> float:
        """Return the number in a section; raise if it is out of range."""
        text, line = self.sections.get(section, [(str(default), 0)])[0]
        value = parse_number(text)
        whole = section != "beam-threshold"
        least = -1 if section == "distortion-limit" else 0
        if value is None or not value >= least or (whole and not value.is_integer()):
            wanted = f"a {'whole ' if whole else ''}number of at least {least}"
            remedy = f"correct it, or take the section out for Moses' {default:g}"
            self.refuse(f"[{section}] {text!r} is not {wanted}", line, remedy)
        return value

    def markup(self) -> str:
        """Return how tags in the text are treated."""
        text, line = self.sections.get("xml-input", [("", 0)])[0]
        if text and text not in MARKUP:
            self.refuse(f"[xml-input] {text!r}", line, f"use one of {', '.join(MARKUP)}")
        return MARKUP.get(text, "none")


def read_config(ini: Path) -> Config:
    """Return the content of a configuration of Moses.

    Paths are relative to it. Raise for unsupported features, options and sections that would change
    the output, for features without weights, weights without features, and missing files.
    """
    check_regular(ini)
    reader = _Reader(ini)
    reader.read()
    reader.check_sections()
    for feature in reader.features:
        _check_feature(reader, feature)
    phrases = reader.one(
        TABLES, "phrase table", "and its step of [mapping], or train one model on all the text"
    )
    lm = reader.one(
        LANGUAGE_MODELS,
        "language model",
        "or make one model of all the text with tunesmith lm estimate",
    )
    if phrases is None or lm is None:
        reader.refuse(
            "no phrase table" if phrases is None else "no language model",
            None,
            "describe it in [feature], as PhraseDictionaryMemory or KENLM",
        )
    reordering = reader.one(
        ("LexicalReordering",), "reordering model", "or train one model on all the text"
    )
    reader.check_mapping(phrases.label)
    parts = (
        reader.part(phrases, None),
        reader.part(lm, 1),
        None if reordering is None else reader.part(reordering, ORIENTATIONS),
    )
    sizes = {part.label: part.size for part in parts if part is not None}
    weights = _weights(reader, sizes)
    # Every feature needs weights, except the one for unknown words, which has a default in Moses.
    given = read_moses_ini(ini)
    names = [f"{kind}0" for kind in PENALTIES]
    absent = {name: weights.get(name, 0.0) for name in names if name not in given}
    fixed = {**absent, **_not_tuned(reader, sizes, weights)}
    return Config(ini, *parts, weights, _settings(reader, phrases), reader.markup(), absent, fixed)


def _scores(table: Path) -> int:
    """Return the number of scores in the first line of a phrase table."""
    for line in Lines(table):
        fields = line.split("|||")
        # The conversion of the table reports bad lines.
        return len(fields[2].split()) if len(fields) > 2 else 0
    raise _empty(table)


def _empty(table: Path) -> InputError:
    remedy = "give the table that was trained, or train it again"
    return InputError("the phrase table is empty", str(table), remedy=remedy)


def _check_feature(reader: _Reader, feature: _Feature) -> None:
    """Raise for a feature or an option that would change the output and is not supported."""
    kind, label, line = feature.kind, feature.label, feature.line
    if kind not in OPTIONS:
        instead = "write PhraseDictionaryMemory, and path= its text table"
        reader.refuse(
            f"the feature {kind} is not supported",
            line,
            instead
            if kind.startswith("PhraseDictionary") or kind == "ProbingPT"
            else f"take it and its weight out; those supported are {', '.join(SUPPORTED)}",
        )
    if kind in PENALTIES:
        if any(other.kind == kind and other.line < line for other in reader.features):
            remedy = f"take it out, and add its weight to that of {kind}0"
            reader.refuse(f"a second {kind}", line, remedy)
        if label != f"{kind}0":
            reader.refuse(f"{kind} with the name {label}", line, f"call it {kind}0")
        if reader.count(feature, "num-features", 1) != 1:
            reader.refuse(f"{label} has one value", line, "write num-features=1")
    if any(other.label == label and other.line < line for other in reader.features):
        reader.refuse(f"a second feature with the name {label}", line, "give it another name")
    for key, value in feature.options.items():
        allowed = OPTIONS[kind].get(key)
        if allowed is None or (allowed and value.lower() not in allowed):
            remedy = OPTION_REMEDIES.get(key, "take it out")
            message = f"{label} has the {key} {value!r}, which is not supported"
            reader.refuse(message, line, remedy)
    if kind == "LexicalReordering" and "type" not in feature.options:
        reader.refuse(f"{label} has no type=", line, OPTION_REMEDIES["type"])


def _not_tuned(reader: _Reader, sizes: dict[str, int], weights: Weights) -> dict[str, float]:
    """Return the names of weights that the configuration excludes from tuning."""
    found = {}
    for feature in reader.features:
        names = block_names(feature.label, sizes.get(feature.label, 1))
        flags = ["0"] * len(names)
        if feature.options.get("tuneable", "true").lower() in ON:
            given = feature.options.get("tuneable-components")
            flags = ["1"] * len(names) if given is None else given.lower().split(",")
        if len(flags) != len(names) or not {*flags} <= ON | OFF:
            reader.refuse(
                f"tuneable-components={feature.options['tuneable-components']}",
                feature.line,
                f"write {len(names)} flags, 0 or 1, with commas between them",
            )
        for name, flag in zip(names, flags, strict=True):
            if flag in OFF:
                found[name] = weights[name]
    return found


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
    for name, weight in given.items():
        if weight and name not in single and name != "UnknownWordPenalty0":
            remedy = "take it out of the file: sparse features of Moses are not supported"
            line = reader.sections.get("weight-file", [("", 0)])[0][1]
            reader.refuse(f"the file of sparse weights has one for {name}", line, remedy)
    return Weights(given, file=str(reader.ini))


# Moses' sections, our settings, Moses' defaults.
_SETTINGS = {
    "stack": ("stack", 200.0),
    "cube-pruning-pop-limit": ("pop_limit", 1000.0),
    "distortion-limit": ("distortion_limit", -1.0),
    "max-phrase-length": ("phrase_limit", 20.0),
    "beam-threshold": ("threshold", 1e-5),
}


def _settings(reader: _Reader, phrases: _Feature) -> dict[str, float]:
    settings = {
        name: reader.number(section, default) for section, (name, default) in _SETTINGS.items()
    }
    # Moses has a ratio of probabilities, we have a difference of logarithms; 0 keeps everything.
    ratio = settings["threshold"]
    settings["threshold"] = -log(ratio) if 0 < ratio < 1 else 1e9
    algorithm = reader.number("search-algorithm", 0)
    if algorithm not in SEARCHES:
        line = reader.sections["search-algorithm"][0][1]
        known = " or ".join(f"{number} ({name})" for number, name in SEARCHES.items())
        remedy = f"use {known} with a phrase table; for hierarchical rules, {HIERARCHICAL}"
        reader.refuse(f"search algorithm {algorithm:g}", line, remedy)
    if algorithm == 0:
        settings["pop_limit"] = 0
    limit = reader.number("ttable-limit", 20)
    if "table-limit" in phrases.options:
        limit = reader.count(phrases, "table-limit", 0)
    # With one table this limit applies after the other, in the same order.
    most = reader.number("max-trans-opt-per-coverage", 5000)
    settings["table_limit"] = min(filter(None, (limit, most)), default=0)
    settings["drop_unknown"] = float(reader.is_on("drop-unknown"))
    return settings


def converted(
    config: Config, cache: Path | None, tell: Callable[[str], object]
) -> tuple[Path, Path]:
    """Return the phrase table and the language model in our format, converted only once.

    They are kept in `cache`, or in the user's cache, by path, size and time of the text files.
    """
    folder = cache or user_cache()
    phrases, lm = config.phrases.path, config.lm.path
    orders = None if config.reordering is None else config.reordering.path
    texts = [phrases] if orders is None else [phrases, orders]
    table = cached(folder, texts, ".rules", partial(_import, phrases, orders), tell)
    return table, cached(
        folder, [lm], ".tlm", lambda out: _core.LanguageModel.load(lm).save(out), tell
    )


def _import(phrases: Path, orders: Path | None, out: Path) -> None:
    if import_moses(phrases, out, orders).entries == 0:
        raise _empty(phrases)
