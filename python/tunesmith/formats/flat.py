"""Plain text with the same number of hypotheses for every sentence, and files of scores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path as FilePath

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import (
    AS_JSONL,
    End,
    Format,
    Hypothesis,
    Item,
    Lists,
    Numbers,
    TextFile,
    one_line,
    register,
)
from tunesmith.formats.folder import TOTAL, entries, new_folder, open_all

_SIDE = re.compile(r"(?P<name>.+)\.(?P<kind>scores|columns)(\.gz|\.zst)?")


def per_sentence(file: TextFile) -> int:
    """Return the number of hypotheses per sentence; raise if the option is missing."""
    size = file.options.per_sentence
    if size is None or size < 1:
        raise InputError(
            "the format needs the number of hypotheses per sentence",
            file.path,
            remedy="give the number, for instance --per-sentence 10",
        )
    return size


def fixed(file: TextFile, count: int, size: int) -> None:
    """Raise if the last list is too short."""
    if count % size:
        file.line = count
        raise file.error(
            f"{count} hypotheses are not a multiple of {size} per sentence",
            "check --per-sentence",
        )


def fixed_size(lists: Lists, path: str) -> None:
    """Raise if lists differ in length."""
    sizes = lists.sizes()
    if len(sizes) > 1:
        raise InputError(
            f"lists have {min(sizes)} to {max(sizes)} hypotheses, but no ids",
            path,
            remedy=f"{AS_JSONL}, or make all lists equally long",
        )


def read(file: TextFile) -> Iterator[Item]:
    """Read a file, or a folder with `hyps.txt`, `NAME.scores` and `NAME.columns`.

    `total.scores` is the total; the other scores are features.
    """
    folder = FilePath(file.path)
    features: dict[str, Numbers] = {}
    columns: dict[str, Numbers] = {}
    texts = file
    if folder.is_dir():
        found = entries(folder)
        if "hyps.txt" not in found:
            raise InputError("no hyps.txt in the folder", file.path, remedy="name the file itself")
        texts = file.open(found["hyps.txt"])
        for path in sorted(found.values()):
            side = _SIDE.fullmatch(path.name)
            if side:
                kind = features if side["kind"] == "scores" else columns
                kind[side["name"]] = Numbers(side["name"], file.open(path))
    size = per_sentence(file)
    count = 0
    for line in texts.lines():
        file.line = texts.line
        values: dict[str, float | None] = {}
        for name, numbers in [*features.items(), *columns.items()]:
            given = numbers.text()
            # A blank line means that the hypothesis has no value.
            if given:
                values[name] = numbers.file.number(given, "value")
            elif given is None:
                values[name] = None
        sentence = count // size
        count += 1
        if line is None or None in values.values():
            yield None
            continue
        known = {name: value for name, value in values.items() if value is not None}
        score = known.pop(TOTAL, None)
        yield Hypothesis(
            sentence,
            line,
            {name: value for name, value in known.items() if name in features},
            score,
            columns={name: value for name, value in known.items() if name in columns},
        )
        if count % size == 0:
            yield End()
    for numbers in [*features.values(), *columns.values()]:
        numbers.finish()
    fixed(texts, count, size)


def write(lists: Lists, path: str) -> None:
    """Write a folder: `hyps.txt`, `NAME.scores` per feature, `NAME.columns` per column."""
    fixed_size(lists, path)
    features, columns = lists.names(), lists.pools.columns
    if len({TOTAL, *features, *columns}) < 1 + len(features) + len(columns):
        raise InputError(
            f"a feature or column is named like another, or {TOTAL}", path, remedy="rename it"
        )
    with new_folder(path) as folder, ExitStack() as files:
        texts = files.enter_context(AtomicWriter(folder / "hyps.txt"))
        totals = files.enter_context(AtomicWriter(folder / f"{TOTAL}.scores"))
        scores = open_all(files, folder, {name: f"{name}.scores" for name in features}, path)
        cells = open_all(files, folder, {name: f"{name}.columns" for name in columns}, path)
        for sentence in lists:
            for hypothesis in sentence.hypotheses:
                one_line(sentence, path, hypothesis.text)
                texts.write(hypothesis.text + "\n")
                totals.write(_line(hypothesis.score))
                for name, out in scores.items():
                    out.write(_line(hypothesis.features.get(name)))
                for name, out in cells.items():
                    out.write(_line(hypothesis.columns.get(name)))


def _line(value: float | None) -> str:
    return "\n" if value is None else f"{value!r}\n"


register(Format("flat", read, write, columns=True, ends=True))
