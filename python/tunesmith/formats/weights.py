"""Weights in the files of Moses and cdec, under the names in their n-best lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from itertools import count
from os import fspath
from pathlib import Path as FilePath

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import FIELDS, TWICE, Options, Path, Report, TextFile, shown

Weights = dict[str, float]

_PATH = re.compile(r"(?<=\bpath=)\S+")


def block_names(label: str, size: int) -> list[str]:
    """Return `LM0` for one value, `TM0_1`, `TM0_2`… for several, as in n-best lists."""
    return [label] if size == 1 else [f"{label}_{number + 1}" for number in range(size)]


def _text_file(path: Path) -> TextFile:
    return TextFile(path, Report(), Options())


def _number(file: TextFile, text: str) -> float:
    value = file.number(text, "weight")
    assert value is not None, "a strict report raises"
    return value


def _add(file: TextFile, weights: Weights, name: str, value: float) -> None:
    if name in weights:
        file.bad(TWICE, f"the weight {shown(name)} is given twice", "give every name one weight")
    weights[name] = value


def read_moses_ini(path: Path) -> Weights:
    """Return the weights in `[weight]` of a Moses configuration and in its `[weight-file]`."""
    file = _text_file(path)
    weights: Weights = {}
    section = ""
    found = False
    for line in file:
        text = line.split("#", 1)[0].strip()
        if heading := re.fullmatch(r"\[(.+)\]", text):
            section = heading[1]
            found = found or section in ("weight", "weight-file")
        elif text and section == "weight":
            label, values = _block(file, text)
            for name, value in zip(block_names(label, len(values)), values, strict=True):
                _add(file, weights, name, value)
        elif text and section == "weight-file":
            for name, value in read_moses_sparse(FilePath(fspath(path)).parent / text).items():
                _add(file, weights, name, value)
    if not found:
        raise InputError(
            "no [weight] section",
            fspath(path),
            remedy="use a configuration of Moses 1.0 or later, where weights have labels",
        )
    return weights


def _block(file: TextFile, text: str) -> tuple[str, list[float]]:
    label, *values = text.split()
    if not label.endswith("=") or len(label) < 2 or not values:
        file.bad(FIELDS, f"{shown(text)} is not Label= weights", "write Label= and its weights")
    return label[:-1], [_number(file, value) for value in values]


def write_moses_ini(weights: Mapping[str, float], path: Path, template: Path | None = None) -> None:
    """Write a `[weight]` section, or a copy of `template` with a new one.

    Labels of the template without a new value keep the old one. Weights without a label there go to
    a file of sparse weights next to `path`. If `path` is in another folder than the template,
    paths become absolute.
    """
    if template is None:
        with AtomicWriter(path) as out:
            out.write("[weight]\n" + "".join(f"{line}\n" for line in _blocks(weights)))
        return
    file = _text_file(template)
    home, target = (FilePath(fspath(each)).absolute() for each in (template, path))
    moved = home.parent.resolve() != target.parent.resolve()
    left = dict(weights)
    lines: list[str] = []
    section = ""
    found = False
    for line in file:
        text = line.split("#", 1)[0].strip()
        if heading := re.fullmatch(r"\[(.+)\]", text):
            section = heading[1]
            found = found or section == "weight"
        if section == "weight-file":
            continue
        if text and section == "weight" and not heading:
            label, values = _block(file, text)
            names = block_names(label, len(values))
            new = [left.pop(name, old) for name, old in zip(names, values, strict=True)]
            line = f"{label}= " + " ".join(map(repr, new))
        if moved and section == "feature":
            line = _PATH.sub(lambda given: _in_full(given[0], home.parent), line)
        lines.append(line)
    if not found:
        raise InputError("no [weight] section", fspath(template), remedy="use another template")
    if left:
        sparse = target.with_name(f"{target.name}.sparse")
        write_moses_sparse(left, sparse)
        lines += ["", "[weight-file]", str(sparse) if moved else sparse.name]
    with AtomicWriter(path) as out:
        out.write("".join(f"{line}\n" for line in lines))


def _in_full(path: str, folder: FilePath) -> str:
    """Return the absolute path if a file in the folder begins with it; suffixes may be missing.

    Return other paths unchanged: Moses looks for them from its working directory.
    """
    place = folder / path
    return str(place) if any(place.parent.glob(f"{escape(place.name)}*")) else path


def _blocks(weights: Mapping[str, float]) -> list[str]:
    """Return lines `Label= values`; names that are numbered from one share a label."""
    lines = []
    done: set[str] = set()
    for name in weights:
        if name in done:
            continue
        members: Sequence[str] = [name]
        base, _, number = name.rpartition("_")
        if base and number == "1":
            run = (f"{base}_{position}" for position in count(1))
            members = _while_in(run, weights)
        label = name if len(members) == 1 else base
        lines.append(f"{_plain(label)}= " + " ".join(repr(weights[member]) for member in members))
        done.update(members)
    return lines


def _while_in(names: Iterator[str], weights: Mapping[str, float]) -> list[str]:
    members: list[str] = []
    for name in names:
        if name not in weights:
            return members
        members.append(name)
    return members


def _plain(name: str) -> str:
    if not name or re.search(r"\s", name) or name.startswith(("#", "[")):
        raise InputError(f"the name {name!r} cannot be written", remedy="rename the feature")
    return name


def write_cdec(weights: Mapping[str, float], path: Path) -> None:
    """Write `name weight` lines."""
    with AtomicWriter(path) as out:
        for name, value in weights.items():
            out.write(f"{_plain(name)} {value!r}\n")


def read_cdec(path: Path) -> Weights:
    """Return the weights in `name weight` lines of cdec; `#` begins a comment."""
    file = _text_file(path)
    weights: Weights = {}
    for line in file:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        parts = text.split()
        if len(parts) != 2:
            file.bad(FIELDS, f"{shown(text)} is not name and weight", "write name, space, weight")
        _add(file, weights, parts[0], _number(file, parts[1]))
    return weights


# Moses writes its sparse weights in the same form.
read_moses_sparse, write_moses_sparse = read_cdec, write_cdec
