"""Kaldi n-best lists in text form: `utterance-rank words`, with archives of costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path as FilePath

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import (
    FIELDS,
    TWICE,
    Format,
    Hypothesis,
    Lists,
    Path,
    TextFile,
    keyed_line,
    one_line,
    plain_key,
    register,
    shown,
)
from tunesmith.formats.folder import TOTAL, entries, new_folder, open_all

_KEY = re.compile(r"(.+)-(\d+)")


def keyed_numbers(file: TextFile) -> dict[str, float]:
    """Return the numbers of an archive by key; its lines are `key number`."""
    numbers: dict[str, float] = {}
    for line in file:
        key, value = keyed_line(line)
        if not key:
            continue
        if key in numbers:
            file.bad(TWICE, f"the key {shown(key)} is given twice", "give every key one value")
            continue
        number = file.number(value, "value")
        if number is not None:
            numbers[key] = number
    return numbers


def read(file: TextFile) -> Iterator[Hypothesis | None]:
    """Read a file of texts, or a folder with `words_text` and archives such as `acwt`.

    An archive named `total` gives the total; the others are features under their own names.
    Raise if an archive lacks a hypothesis: the value would count as zero.
    """
    texts = file
    archives: dict[str, Path] = dict(file.options.feature_files)
    if FilePath(file.path).is_dir():
        found = entries(FilePath(file.path))
        if "words_text" not in found:
            raise InputError("no words_text in the folder", file.path, remedy="name the file")
        texts = file.open(found.pop("words_text"))
        archives |= found
    tables = {name: keyed_numbers(file.open(path)) for name, path in archives.items()}
    for line in texts:
        file.line = texts.line
        key, text = keyed_line(line)
        if not key:
            continue
        parts = _KEY.fullmatch(key)
        if parts is None:
            texts.bad(FIELDS, f"the key {shown(key)} has no rank", "write utterance-rank, as a-1")
            yield None
            continue
        missing = [name for name in tables if name != TOTAL and key not in tables[name]]
        if missing:
            archive = file.open(archives[missing[0]])
            archive.bad(FIELDS, f"no value for {shown(key)}", "give every hypothesis a value")
            yield None
            continue
        features = {name: table[key] for name, table in tables.items() if key in table}
        score = features.pop(TOTAL, None)
        yield Hypothesis(parts[1], text, features, score)


def write(lists: Lists, path: str) -> None:
    """Write a folder with `words_text`, an archive per feature, and `total`."""
    if TOTAL in lists.names() or "words_text" in lists.names():
        raise InputError("a feature is named like a file of the format", path, remedy="rename it")
    with new_folder(path) as folder, ExitStack() as files:
        texts = files.enter_context(AtomicWriter(folder / "words_text"))
        totals = files.enter_context(AtomicWriter(folder / TOTAL))
        archives = open_all(files, folder, {name: name for name in lists.names()}, path)
        for sentence in lists:
            utterance = plain_key(sentence, path)
            for rank, hypothesis in enumerate(sentence.hypotheses, 1):
                one_line(sentence, path, hypothesis.text)
                key = f"{utterance}-{rank}"
                texts.write(f"{key} {hypothesis.text}\n")
                if hypothesis.score is not None:
                    totals.write(f"{key} {hypothesis.score!r}\n")
                for name, archive in archives.items():
                    archive.write(f"{key} {hypothesis.features.get(name, 0.0)!r}\n")


register(Format("kaldi", read, write, keyed_files=True))
