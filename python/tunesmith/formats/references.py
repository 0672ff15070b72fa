"""References: one file per reference, matched with the lists by line or by key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.errors import InputError
from tunesmith.formats.base import (
    TWICE,
    Options,
    Path,
    Report,
    Skipped,
    TextFile,
    keyed_line,
    shown,
    without_compression,
)
from tunesmith.formats.jsonl import record_of, references_of, source_of

BLANK_REFERENCE = "blank reference"

Row = tuple[int | None, list[str]]
"""Line number and texts of a sentence."""


@dataclass(slots=True)
class References:
    """References of every sentence, the sentences without any, and the skipped lines."""

    texts: list[list[str]]
    blank: list[int]
    skipped: list[Skipped]


def carried_references(
    lists: Sequence[tuple[Path, Sequence[Sequence[str] | None] | None]],
    *,
    keys: Sequence[str] = (),
    skip_bad: bool = False,
    keep_blank: bool = False,
) -> References | None:
    """Return the references in lists of the same sentences, or None if there are none.

    Raise if files have different references for a sentence. A sentence without references raises
    or is skipped, as in `read_references`.
    """
    report = Report(skip_bad)
    carrying = [(path, texts) for path, texts in lists if texts is not None and any(texts)]
    if not carrying:
        return None
    path = carrying[0][0]
    found: list[list[str]] = []
    for index, row in enumerate(zip(*(texts for _, texts in carrying), strict=True)):
        name = shown(keys[index]) if keys else str(index)
        given = [(file, texts) for (file, _), texts in zip(carrying, row, strict=True) if texts]
        for file, texts in given[1:]:
            if list(texts) != list(given[0][1]):
                raise InputError(
                    f"the references of sentence {name} differ from those in {given[0][0]}",
                    str(file),
                    remedy="make them equal, or name files of references with --reference",
                )
        found.append([])
        for text in given[0][1] if given else [""]:
            if keep_blank or text.strip():
                found[-1].append(text)
            else:
                message = f"sentence {name} has no reference, or a blank one"
                remedy = "fill it in, use --skip-bad or --keep-blank, or name a --reference"
                report.bad(BLANK_REFERENCE, InputError(message, str(path), remedy=remedy))
    return _references(found, report)


def _references(texts: list[list[str]], report: Report) -> References:
    blank = [index for index, found in enumerate(texts) if not found]
    for index in blank:
        texts[index].append("")
    return References(texts, blank, list(report.skipped.values()))


def read_references(
    paths: Sequence[Path],
    *,
    sentences: int | None = None,
    keys: Sequence[str] = (),
    keyed: bool | None = None,
    skip_bad: bool = False,
    keep_blank: bool = False,
    sources: bool = False,
    remedy: str = "fill it in, or use --skip-bad or --keep-blank",
) -> References:
    """Return the references in one or more files, by sentence.

    A file holds one reference per line; or `key text` lines, which are matched with `keys`, the
    keys of the lists; or JSONL lists with `references`, matched by key if all have one. If
    `keyed` is not given, a file is keyed if its first line begins with one of the keys, or if
    half of the keys begin a line.

    Raise if the number of lines is not `sentences`, if a key has no reference, or if a reference
    is blank. `skip_bad` skips and counts blank references; sentences that then have none are in
    `blank`, with one empty text. `keep_blank` keeps blank references. `sources` reads source
    texts in the same way, from the `source` of JSONL lists. `remedy` replaces the advice for
    blank references if the caller does not have both options.
    """
    report = Report(skip_bad)
    if not paths:
        raise InputError("no references are given", remedy="name at least one file of references")
    expected = len(keys) if keys else sentences
    texts: list[list[str]] | None = None
    for path in paths:
        file = TextFile(path, report, Options())
        streams = _read(file, keys, keyed, sources)
        if expected is None:
            expected = len(streams)
        if len(streams) != expected:
            file.line = min(len(streams), expected) + 1
            raise file.error(
                f"{expected} lists but {len(streams)} references",
                "give one reference per list, in the same order; if the last lists are "
                "empty, give the number of sentences with --sentences",
            )
        texts = [[] for _ in range(expected)] if texts is None else texts
        for index, (line, found) in enumerate(streams):
            for text in found or [""]:
                file.line = line
                if keep_blank or text.strip():
                    texts[index].append(text)
                else:
                    of = f" of {shown(keys[index])}" if keys else ""
                    message = f"the reference{of} is blank"
                    report.bad(BLANK_REFERENCE, file.error(message, remedy))
    assert texts is not None
    return _references(texts, report)


def _read(file: TextFile, keys: Sequence[str], keyed: bool | None, sources: bool) -> list[Row]:
    """Return the texts of a file, in the order of the keys if it has keys."""
    lines = [(file.line, line) for line in file.lines()]
    first = next((line for _, line in lines if line and line.strip()), "")
    if _is_jsonl(file, first):
        return _from_jsonl(file, lines, [] if keyed is False else keys, sources)
    pairs = [(number, *keyed_line(line or "")) for number, line in lines]
    found = [(key, (number, [text])) for number, key, text in pairs if key]
    if keyed or (keyed is None and _are_keys([key for key, _ in found], keys)):
        return _by_key(file, found, keys)
    return [(number, [line or ""]) for number, line in lines]


def _are_keys(words: Sequence[str], keys: Sequence[str]) -> bool:
    """Return whether lines begin with keys: the first line does, or half of the keys occur."""
    known = set(keys)
    return not known.isdisjoint(words[:1]) or 0 < len(known) <= 2 * len(known.intersection(words))


def _is_jsonl(file: TextFile, first: str) -> bool:
    """Return whether the first line is a JSONL list; the file may have any name."""
    if not first.lstrip().startswith("{"):
        return False
    if without_compression(file.path).endswith(".jsonl"):
        return True
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return "references" in record or "hypotheses" in record


def _from_jsonl(
    file: TextFile,
    lines: Sequence[tuple[int | None, str | None]],
    keys: Sequence[str],
    sources: bool,
) -> list[Row]:
    """Return the texts in lists: by key if all readable lines have one, else line by line."""
    rows: list[Row] = []
    keyed: list[tuple[str, Row]] = []
    unread = 0
    for number, line in lines:
        file.line = number
        if line is not None and not line.strip():
            continue
        record = record_of(file, line)
        if record is None:
            unread += 1
            rows.append((number, []))
            continue
        text = source_of(file, record) if sources else None
        rows.append((number, [text or ""] if sources else references_of(file, record) or []))
        if record.get("key") is not None:
            keyed.append((record["key"], rows[-1]))
    if keys and keyed and len(keyed) + unread == len(rows):
        return _by_key(file, keyed, keys)
    return rows


def _by_key(file: TextFile, rows: Sequence[tuple[str, Row]], keys: Sequence[str]) -> list[Row]:
    """Return rows in the order of the keys; raise for a missing key, count unknown ones."""
    table: dict[str, Row] = {}
    wanted = set(keys)
    for key, row in rows:
        file.line = row[0]
        if key in table:
            file.bad(TWICE, f"the key {shown(key)} is given twice", "give every key one line")
        elif key in wanted:
            table[key] = row
        else:
            error = file.error(f"no list has the key {shown(key)}", "nothing to do")
            file.report.note("reference without a list", error)
    missing = [key for key in keys if key not in table]
    if missing:
        file.line = None
        raise file.error(
            f"{len(keys)} lists but {len(table)} of their keys have a reference; "
            f"the first without one is {shown(missing[0])}",
            "add the references, or remove the lists",
        )
    return [table[key] for key in keys]
