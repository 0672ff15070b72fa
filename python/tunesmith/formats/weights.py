"""Weights in the files of Moses and cdec, under the names that their n-best lists give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from itertools import count
from os import fspath
from pathlib import Path as FilePath

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import FIELDS, TWICE, Options, Path, Report, Source, shown

Weights = dict[str, float]

_PATH = re.compile(r"(?<=\bpath=)\S+")


def block_names(label: str, size: int) -> list[str]:
    """``LM0`` for one value, ``TM0_1``, ``TM0_2``… for several, as in a list."""
    return [label] if size == 1 else [f"{label}_{number + 1}" for number in range(size)]


def _source(path: Path) -> Source:
    return Source(path, Report(), Options())


def _number(source: Source, text: str) -> float:
    value = source.number(text, "weight")
    assert value is not None, "a strict report raises"
    return value


def _add(source: Source, weights: Weights, name: str, value: float) -> None:
    if name in weights:
        source.bad(TWICE, f"the weight {shown(name)} is given twice", "give every name one weight")
    weights[name] = value


def read_moses_ini(path: Path) -> Weights:
    """The ``[weight]`` section of a Moses configuration, and the file of ``[weight-file]``."""
    source = _source(path)
    weights: Weights = {}
    section = ""
    found = False
    for line in source:
        text = line.split("#", 1)[0].strip()
        if heading := re.fullmatch(r"\[(.+)\]", text):
            section = heading[1]
            found = found or section in ("weight", "weight-file")
        elif text and section == "weight":
            label, values = _block(source, text)
            for name, value in zip(block_names(label, len(values)), values, strict=True):
                _add(source, weights, name, value)
        elif text and section == "weight-file":
            for name, value in read_moses_sparse(FilePath(fspath(path)).parent / text).items():
                _add(source, weights, name, value)
    if not found:
        raise InputError(
            "no [weight] section",
            fspath(path),
            remedy="use a configuration of Moses 1.0 or later, where weights have labels",
        )
    return weights


def _block(source: Source, text: str) -> tuple[str, list[float]]:
    label, *values = text.split()
    if not label.endswith("=") or len(label) < 2 or not values:
        source.bad(FIELDS, f"{shown(text)} is not Label= weights", "write Label= and its weights")
    return label[:-1], [_number(source, value) for value in values]


def write_moses_ini(weights: Mapping[str, float], path: Path, template: Path | None = None) -> None:
    """Writes a ``[weight]`` section, in place of that of ``template`` where one is given.

    With a template its labels get the new values and keep the old ones where there are none;
    what has no label there goes to a file of sparse weights next to ``path``. In another folder
    than the template's, paths are written in full.
    """
    if template is None:
        with AtomicWriter(path) as out:
            out.write("[weight]\n" + "".join(f"{line}\n" for line in _blocks(weights)))
        return
    source = _source(template)
    home, target = (FilePath(fspath(each)).absolute() for each in (template, path))
    moved = home.parent.resolve() != target.parent.resolve()
    left = dict(weights)
    lines: list[str] = []
    section = ""
    found = False
    for line in source:
        text = line.split("#", 1)[0].strip()
        if heading := re.fullmatch(r"\[(.+)\]", text):
            section = heading[1]
            found = found or section == "weight"
        if section == "weight-file":
            continue
        if text and section == "weight" and not heading:
            label, values = _block(source, text)
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
    """The path in the folder, if anything there begins so: endings may be left out.

    Any other is as Moses takes it, from where it is started.
    """
    place = folder / path
    return str(place) if any(place.parent.glob(f"{escape(place.name)}*")) else path


def _blocks(weights: Mapping[str, float]) -> list[str]:
    """Lines ``Label= values``; names that are numbered from one share a label."""
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


def read_moses_sparse(path: Path) -> Weights:
    """``name weight`` lines, as Moses writes sparse weights."""
    return _read_pairs(path)


def write_moses_sparse(weights: Mapping[str, float], path: Path) -> None:
    """Writes ``name weight`` lines."""
    with AtomicWriter(path) as out:
        for name, value in weights.items():
            out.write(f"{_plain(name)} {value!r}\n")


def read_cdec(path: Path) -> Weights:
    """``name weight`` lines, as cdec writes weights; ``#`` begins a comment."""
    return _read_pairs(path)


def write_cdec(weights: Mapping[str, float], path: Path) -> None:
    """Writes ``name weight`` lines."""
    write_moses_sparse(weights, path)


def _read_pairs(path: Path) -> Weights:
    source = _source(path)
    weights: Weights = {}
    for line in source:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        parts = text.split()
        if len(parts) != 2:
            source.bad(FIELDS, f"{shown(text)} is not name and weight", "write name, space, weight")
        _add(source, weights, parts[0], _number(source, parts[1]))
    return weights
